"""One job at two agents, one of which has the sender's interface and the other the receiver's. Runs in a lab; prints a JSON object."""

import json
import os
import signal
import sys
import threading

import netdyno as nd

# Behind a shell's & it is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
PROGRAM = nd.Program().find()
AGENTS = {
    "near": f"{PROGRAM} agent --stdio --allow-interface tx0",
    "far": [PROGRAM, "agent", "--stdio", "--allow-interface", "rx0"],
}
ENDS = {"on": "tx0@near", "measure": "rx0@far"}


def joint(*args, **kwargs):
    return nd.at_agents(nd.job(*args, **ENDS, **kwargs), AGENTS, timeout=120)


found = {}
report = joint(nd.send, "ipv4/udp", rate="5kpps", count=1000)
found["send"] = [report.tx.frames, report.rx.frames, report.loss.frames, sorted(agent.name for agent in report.result.agents)]
report = joint(nd.replay, nd.craft("ipv4/udp(dport=1..10)", count=10), rate="1kpps", capture="got.pcapng")
found["frames"] = [report.tx.frames, len(nd.read_frames("got.pcapng"))]
try:
    nd.at_agents(nd.job(nd.send, "ipv4/udp", on="tx0@nobody", rate="5kpps", count=10), AGENTS)
except nd.EngineError as error:
    found["refused"] = str(error)
threading.Timer(6, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    joint(nd.send, "ipv4/udp", rate="1kpps", duration="600s")
except KeyboardInterrupt as interrupt:
    found["interrupted"] = [interrupt.report.ok, interrupt.report.tx.frames]
json.dump(found, sys.stdout)
