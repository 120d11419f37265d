"""Jobs that need rights, by a user who has none and may not use sudo. Runs where `pa` and `pb` are a cable's ends, and `pc` and `pd` another's; prints a JSON object: of each
case the classes of what was raised, and its words.
"""

import json
import os
import socket
import sys
import tempfile

import netdyno as nd

UDP = "ether/ipv4(src=192.0.2.1,dst=192.0.2.2)/udp"
TCP = "ether/ipv4(src=192.0.2.1,dst=192.0.2.2)/tcp"
PACE = {"rate": "10kpps", "count": 10}
BETWEEN = {"between": ("pa", "pc"), "duration": 0.2}


def cases(folder: str) -> dict:
    """What is tried, by its name."""
    captures = os.path.join(folder, "in.pcap")
    with open(captures, "wb") as file:
        file.write(nd._job.capture(nd.craft(TCP, count=3)))
    found = {f"send by {engine}": lambda engine=engine: nd.send(UDP, on="pa", engine=engine, **PACE, **BY) for engine in ENGINES}
    found |= {f"measure by {how}": lambda how=how: nd.measure(on="pb", meter=how, duration=0.2, **BY) for how in ("auto", "xdp", "xdp-generic", "packet")}
    found |= {f"bridge by {engine}": lambda engine=engine: nd.bridge(engine=engine, **BETWEEN, **BY) for engine in ("auto", "xdp-generic", "packet")}
    return {
        **found,
        "send and measure": lambda: nd.send(UDP, on="pa", measure="pb", **PACE, **BY),
        "send in a lab": lambda: nd.send(UDP, lab=True, **PACE, **BY),
        "replay": lambda: nd.replay(captures, on="pa", **BY),
        "reflect": lambda: nd.reflect(on="pb", duration=0.2, **BY),
        "impair": lambda: nd.impair(loss="1%", **BETWEEN, **BY),
        "live": lambda: nd.live(captures, on="pa", to="192.0.2.2:80", from_="192.0.2.9", mac="02:00:00:00:00:02", **BY),
        "probe": lambda: nd.probe(on="pb", duration=0.2, **BY),
        "clone": lambda: nd.clone(on="pa", server="192.0.2.1:80", to=LISTENS, duration=0.2, **BY),
        "trial": lambda: nd.trial(UDP, lab=True, rate="1kpps", duration=0.2, **BY),
        "search": lambda: nd.search("throughput", UDP, lab=True, **BY),
        "a lab": lambda: nd.lab(**BY),
    }


# What a clone looks for before it begins.
LISTENER = socket.create_server(("192.0.2.1", 0))
LISTENS = f"192.0.2.1:{LISTENER.getsockname()[1]}"
ENGINES = ("auto", "xdp", "afxdp", "packet", "packet-ring")
BY = {"program": nd.Program(sudo=False if sys.argv[1] == "without" else None)}


def main() -> None:
    """Tries all."""
    told = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, case in cases(folder).items():
            try:
                case()
                told[name] = [[], "it was done"]
            except Exception as error:
                told[name] = [[kind.__name__ for kind in type(error).__mro__], str(error)]
    # What needs no rights goes on as if nothing had happened.
    assert nd.send(UDP, engine="null", rate="top", count=10).tx.frames == 10
    assert nd.Program().clock().exchanges >= 8
    json.dump(told, sys.stdout)


main()
