"""A stand-in for `netdyno agent --stdio`, as docs/agent.md describes it: for what a client does when its child misbehaves, which the real
one does not do at will. What it counts is time: 1,000 frames a second. Its first argument says what is wrong with it.
"""

import json
import os
import sys
import threading
import time

WRONG = sys.argv[1] if len(sys.argv) > 1 else ""
LOCK = threading.Lock()
HOST = {"name": "double", "kernel": "0", "architecture": "x86_64", "cores": 1, "boot_id": "0"}
LIMITS = {"line_bytes": 1 << 20, "chunk_bytes": 720896, "contents_bytes": 1 << 30, "contents": 1024, "running": 16, "runs": 64, "waiting": 256}


def say(**told):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **told}) + "\n")
        sys.stdout.flush()


class Run:
    def __init__(self, name, job):
        self.name, self.job, self.began = name, job, time.monotonic()
        self.stopped, self.aborted, self.waiting = threading.Event(), False, []
        threading.Thread(target=self.go, daemon=True).start()

    def go(self):
        last = float(str(self.job.get("duration", "30s")).rstrip("s"))
        number = 0
        text = "it has begun" + "." * (8000 if WRONG == "shouts" else 0)
        for _ in range(2000 if WRONG in ("notes", "shouts") else 1):
            say(method="run.note", params={"run": self.name, "code": "begun", "severity": "info", "text": text})
        while not self.stopped.wait(0.0005 if WRONG == "floods" else 0.02) and time.monotonic() - self.began < last:
            frames = int((time.monotonic() - self.began) * 1000)
            shot = {"schema": "netdyno.snapshot/1", "elapsed_ns": int((time.monotonic() - self.began) * 1e9), "run": {"command": "send"}}
            say(method="run.snapshot", params={"run": self.name, "sequence": number, "snapshot": {**shot, "tx": {"frames": frames, "bytes": frames * 60}}})
            number += 1
        self.stopped.set()
        say(method="run.ended", params={"run": self.name, "outcome": "done"})
        with LOCK:
            waiting, self.waiting = self.waiting, []
        for request in waiting:
            self.answer(request)

    def answer(self, request):
        if self.aborted:
            say(id=request, error={"code": -32006, "message": "the run was aborted", "data": {"kind": "aborted"}})
            return
        ns = int((time.monotonic() - self.began) * 1e9)
        tx = {"frames": ns // 1_000_000, "bytes": 0, "duration_ns": ns, "frames_per_second": 1000.0, "bits_per_second": 0.0, "bits_per_second_l1": 0.0}
        tx |= {"engine": "null", "failed": 0, "retried_enobufs": 0, "retried_eagain": 0, "truncated": 0}
        report = {"schema": "netdyno.report/2", "command": "send", "requested": self.job, "environment": {}, "result": {"verdict": {"outcome": "done"}, "tx": tx}}
        say(id=request, result={"report": report})


def params_of(runs, params):
    return runs[params["run"]].job


def main():
    runs, contents = {}, {}
    if WRONG == "sudo":
        sys.exit("sudo: a password is required")
    for line in sys.stdin:
        asked = json.loads(line)
        method, params, number = asked["method"], asked["params"], asked["id"]
        if WRONG == "silent":
            continue
        if method == "hello":
            protocol = "netdyno.agent/9" if WRONG == "version" else "netdyno.agent/1"
            say(id=number, result={"protocol": protocol, "version": "0.1.0", "job": "netdyno.job/1", "report": "netdyno.report/2", "host": HOST, "may": {}, "limits": LIMITS})
            if WRONG == "deaf":
                time.sleep(3600)
        elif method == "clock":
            if runs and WRONG == "chatty":
                say(method="run.note", params={"run": "r1", "code": "begun", "severity": "info", "text": f"asked {params['t1']}"})
            told = {"t1": params["t1"], "t2": time.clock_gettime_ns(time.CLOCK_TAI) + 5_000_000_000}
            say(id=number, result={**told, "t3": time.clock_gettime_ns(time.CLOCK_TAI) + 5_000_000_000})
        elif method == "content.begin":
            name = f"c{len(contents) + 1}"
            contents[name] = b""
            say(id=number, result={"content": name, "offset": 0})
        elif method == "content.chunk":
            import base64

            contents[params["content"]] += base64.b64decode(params["base64"])
            say(id=number, result={"offset": len(contents[params["content"]])})
        elif method == "content.end":
            say(id=number, result={})
        elif method == "job.start":
            if WRONG == "slow":
                time.sleep(1)
            if WRONG == "busy":
                text = "links[0].on: tx0 is held by another run"
                say(id=number, error={"code": -32002, "message": text, "data": {"kind": "refused", "setting": "links[0].on", "remedy": "wait for it"}})
                continue
            run = Run(f"r{len(runs) + 1}", params["job"])
            runs[run.name] = run
            say(id=number, result={"run": run.name, "job": params["job"], "interfaces": []})
        elif method == "job.wait":
            run = runs[params["run"]]
            if WRONG == "nested":
                sys.stdout.write('{"method": "run.note", "params": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
                sys.stdout.flush()
            if WRONG == "garbled":
                say(method="run.note", params=[1])
            if WRONG == "dies":
                os.kill(os.getpid(), 9)
            if WRONG == "denied":
                text = "loading an XDP program is not permitted"
                say(id=number, error={"code": -32003, "message": text, "data": {"kind": "permission", "remedy": "run the agent as root"}})
                continue
            with LOCK:
                over = run.stopped.is_set()
                if not over:
                    run.waiting.append(number)
            if over:
                run.answer(number)
        elif method in ("job.stop", "job.abort"):
            runs[params["run"]].aborted = method == "job.abort"
            runs[params["run"]].stopped.set()
            say(id=number, result={})
        elif method == "job.rate" and params.get("rate") == "1x":
            say(id=number, error={"code": -32602, "message": "job.rate: `1x` is not a rate", "data": {"kind": "usage", "setting": "rate"}})
        elif method == "job.files":
            files = []
            if WRONG in ("elsewhere", "changed"):
                name = os.environ["NETDYNO_DOUBLE_FILE"] if WRONG == "elsewhere" else params_of(runs, params)["write"]
                files = [{"name": name, "bytes": 3, "sha256": "00" * 32}]
            say(id=number, result={"files": files})
        elif method == "file.read":
            say(id=number, result={"base64": "YWJj", "offset": 3, "end": True})
        else:
            say(id=number, result={})
    for run in runs.values():
        run.stopped.set()
    marker = os.environ.get("NETDYNO_DOUBLE_ENDED")
    if marker:
        with open(marker, "a") as file:
            file.write("ended\n")


main()
