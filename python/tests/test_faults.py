"""What goes wrong around a run, really done: each is an error of its own class that says what to do, and leaves nothing. The child is a stand-in."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import netdyno as nd
import pytest
import scapy.all as sc
from netdyno import _agent
from netdyno.run import _is_written as is_written
from test_client import DOUBLE, JOB, program

MAC = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}


def children() -> list[int]:
    """Processes that this one has started and that go on. (If Ctrl-C comes between fork and its record, CPython forgets that it has a child: a
    number stays until the interpreter ends, and no process.)
    """
    found = []
    for task in Path("/proc/self/task").iterdir():
        # A thread may end meanwhile, and so may a child.
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in (task / "children").read_text().split()]
    goes_on = []
    for pid in found:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                goes_on.append(pid)
    return goes_on


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("netdyno-")]


def left() -> tuple[list[int], list[str], int]:
    gc.collect()
    return children(), threads(), len(os.listdir("/proc/self/fd"))


@pytest.fixture
def nothing_left():
    """No process, thread or descriptor more than before; what ends by itself has a moment for it."""
    before = left()
    yield
    until = time.monotonic() + 30
    while left() != before and time.monotonic() < until:
        time.sleep(0.01)
    assert left() == before


# Which kinds of error an agent may tell, and as what each is raised.
KINDS = {
    "usage": nd.UsageError,
    "unknown": nd.UsageError,
    "refused": nd.Refused,
    "limit": nd.Refused,
    "permission": nd.PermissionDenied,
    "aborted": nd.Aborted,
    "engine": nd.EngineError,
    "late": nd.EngineError,
    "internal": nd.EngineError,
}


def test_each_kind_of_error_that_an_agent_tells_has_its_class():
    schema = json.loads((Path(__file__).resolve().parents[2] / "docs/agent.schema.json").read_text())
    kinds = schema["$defs"]["FaultKind"]
    told = [one["const"] for one in kinds["oneOf"]] if "oneOf" in kinds else kinds["enum"]
    assert set(told) == set(KINDS)
    for kind, raised in KINDS.items():
        error = _agent._error({"code": -1, "message": "job.start: links[0].on: no", "data": {"kind": kind, "setting": "links[0].on", "remedy": "wait"}})
        assert type(error) is raised and (error.message, error.setting, error.remedy) == ("no", "links[0].on", "wait")


def test_a_job_that_lacks_rights_says_so_and_what_to_grant(nothing_left, monkeypatch):
    with pytest.raises(nd.PermissionDenied, match="is not permitted; run the agent as root"):
        nd.send("ipv4/udp", on="tx0", rate=1000, count=1, program=program("denied"))
    # Of who is no root and let this package choose the way, the remedy is this package's.
    double = nd.Program(path=sys.executable, sudo=False)
    monkeypatch.setattr(_agent.Agent, "_command", lambda *_: [sys.executable, DOUBLE, "denied"])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(nd.PermissionDenied, match=r"leave out sudo=False, so that `sudo -n` starts it; .*setcap cap_net_raw,.*=ep /"):
        nd.send("ipv4/udp", on="tx0", rate=1000, count=1, program=double)


def test_where_there_is_no_sudo_what_else_to_do_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(nd.PermissionDenied, match="there is no sudo here: run Python as root, or .*setcap"):
        nd.start(JOB, program=nd.Program(path="/bin/true", sudo=True))


def test_a_generator_that_raises_raises_that_and_starts_nothing(nothing_left):
    class Mine(Exception):
        pass

    def packets():
        yield sc.Ether(**MAC) / sc.IP(src="192.0.2.1", dst="192.0.2.2")
        raise Mine("mine")

    for call in (nd.send, nd.replay):
        with pytest.raises(Mine):
            call(packets(), on="tx0", program=program())
    with pytest.raises(Mine):
        nd.craft(packets())
    with pytest.raises(Mine):
        nd.sr(packets(), on="tx0", program=program())


def test_packets_that_scapy_cannot_build_are_named(nothing_left):
    good, bad = (sc.Ether(**MAC) / sc.IP(src="192.0.2.1", dst="192.0.2.2", ttl=ttl) for ttl in (64, 300))
    for call in (nd.send, nd.replay):
        with pytest.raises(nd.NotTranslatable, match=r"item 2: Scapy cannot build Ether/IP: .*; try bytes\(packet\)"):
            call([good, good, bad], on="tx0", program=program())
    with pytest.raises(nd.NotTranslatable, match="Scapy cannot build Ether/IP"):
        nd.send(bad, on="tx0", program=program())
    with pytest.raises(nd.UsageError, match="item 1 is NoneType: neither bytes nor a packet"):
        nd.send([b"x" * 60, None], on="tx0", program=program())


def test_megabytes_of_notes_are_taken_and_the_last_are_kept(nothing_left):
    with nd.start({**JOB, "duration": "0.3s"}, program=program("shouts")) as run:
        assert run.wait(60).ok
    assert len(run.notes) == 1024 and all(len(note.text) == 8012 for note in run.notes)


@pytest.mark.parametrize("how", ["nested", "garbled"])
def test_lines_that_nobody_can_understand_are_an_error_and_hold_nobody_up(how, nothing_left):
    with pytest.raises(nd.AgentLost, match="said what is no line of netdyno.agent/1"):
        nd.send("ipv4/udp", engine="null", rate=1000, duration=1, program=program(how))


def test_an_agent_that_is_not_to_be_believed_writes_no_file_but_those_of_the_job(nothing_left, tmp_path, monkeypatch):
    monkeypatch.setenv("NETDYNO_DOUBLE_FILE", str(tmp_path / "authorized_keys"))
    for how, said in (("elsewhere", "authorized_keys`, which the job does not write"), ("changed", "another SHA-256")):
        with pytest.raises(nd.AgentLost, match=said):
            nd.replay(nd.craft("ipv4/udp"), write=tmp_path / "out.pcap", program=program(how), duration="0.1s")
        assert list(tmp_path.iterdir()) == []
    # A file that begins anew has other names, beside its own.
    own = ["a/flows.csv"]
    assert is_written("a/flows.csv", own) and is_written("a/flows-20261124T013000Z.csv", own)
    for name in ("a/other.csv", "a/flows/a.csv", "a/flows.csv.sh", "flows.csv", "a/flows-/../x.csv", "/a/flows.csv", ""):
        assert not is_written(name, own), name


def test_who_looks_on_and_stops_looking_holds_nothing_up_and_gets_the_newest_later(nothing_left):
    with nd.start({**JOB, "duration": "1.5s"}, program=program("floods")) as run:
        shots = run.snapshots(every=0)
        first = next(shots)
        time.sleep(0.7)
        assert next(shots).elapsed - first.elapsed > 0.5
        time.sleep(1.2)
        # It has ended meanwhile, and did not wait.
        assert run.done and len(list(shots)) <= 2
        assert run.wait(10).ok


def test_a_child_that_reads_no_more_is_left_at_ctrl_c(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import signal, sys
            import netdyno as nd
            signal.signal(signal.SIGINT, signal.default_int_handler)
            print("up", flush=True)
            try:
                nd.send([bytes(1000)] * 10_000, on="tx0", program=nd.Program(command=(sys.executable, {DOUBLE!r}, "deaf")))
            except KeyboardInterrupt:
                with open("/proc/self/task/{{}}/children".format(__import__("os").getpid())) as file:
                    print("left", repr(file.read()), flush=True)
            """
        )
    )
    child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "up\n"
    # The pipe is full when something of ten megabytes waits for it.
    until = time.monotonic() + 30
    while time.monotonic() < until and "pipe_write" not in _where(child.pid):
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "left ''\n"
    assert child.wait(30) == 0


def _where(pid: int) -> str:
    """What the kernel does for a process: waits for room in a pipe, among other things."""
    words = Path(f"/proc/{pid}/syscall").read_text().split()
    state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    # write(2) is 1 on x86-64 and 64 elsewhere.
    write = "1" if os.uname().machine == "x86_64" else "64"
    return "pipe_write" if words[0] == write and state == "S" else ""


def test_ctrl_c_at_any_moment_leaves_nothing(nothing_left):
    """From before the child is there until after its end; an alarm is as good as Ctrl-C, and comes when it was set for."""

    def press(*_: object) -> None:
        raise KeyboardInterrupt

    def send() -> None:
        report = nd.send("ipv4/udp", engine="null", rate=1000, duration=0.05, program=program())
        assert report.ok

    before = signal.signal(signal.SIGALRM, press)
    try:
        began = time.monotonic()
        send()
        whole, pressed = time.monotonic() - began, 0
        for number in range(60):
            try:
                signal.setitimer(signal.ITIMER_REAL, max(whole * 1.1 * number / 60, 1e-6))
                send()
                # What comes now is of no run any more.
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt as interrupt:
                pressed += 1
                kept = getattr(interrupt, "report", None)
                assert kept is None or kept.tx.frames >= 0
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        assert pressed > 20
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_ctrl_c_while_pipes_are_made_leaves_none_of_them(step, nothing_left, monkeypatch):
    """Exactly when one has been made and nobody has it yet: the alarm above comes there once in thousands of times."""
    pipe, made = os.pipe, 0

    def interrupted() -> tuple[int, int]:
        nonlocal made
        ends, made = pipe(), made + 1
        if made == step:
            signal.raise_signal(signal.SIGINT)
        return ends

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(os, "pipe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            nd.send("ipv4/udp", engine="null", rate=1000, duration=0.05, program=program())
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_start_that_is_interrupted_in_a_lab_leaves_no_run_in_it(nothing_left):
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    agent = _agent.Agent(program("slow"), (), privileged=False)
    before = signal.signal(signal.SIGALRM, press)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            nd.Run(nd.job(JOB), program(), agent)
        # What was started was ended, since nobody else could: this is answered behind that.
        until = time.monotonic() + 30
        while time.monotonic() < until and any(name == "netdyno-ends" for name in threads()) or agent._waiting:
            time.sleep(0.01)
        with pytest.raises(nd.Aborted):
            agent.ask("job.wait", {"run": "r1"}, 10)
    finally:
        signal.signal(signal.SIGALRM, before)
        agent.close()


def test_a_run_is_waited_for_and_stopped_by_several_threads(nothing_left):
    with nd.start(JOB, program=program()) as run:
        reports: list[nd.Report] = []
        waiting = [threading.Thread(target=lambda: reports.append(run.wait(30))) for _ in range(4)]
        for thread in waiting:
            thread.start()
        stopping = [threading.Thread(target=run.stop) for _ in range(4)]
        for thread in stopping:
            thread.start()
        for thread in waiting + stopping:
            thread.join(30)
    assert len(reports) == 4 and all(report is run.report for report in reports)


POOL = f"""
import multiprocessing, pickle, sys
import netdyno as nd

PROGRAM = nd.Program(command=(sys.executable, {DOUBLE!r}))

def sends(_):
    return nd.send("ipv4/udp", engine="null", rate=1000, duration=0.1, program=PROGRAM).tx.frames

if __name__ == "__main__":
    with nd.start({JOB!r}, program=PROGRAM) as run:
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            assert all(frames >= 100 for frames in pool.map(sends, range(4)))
            try:
                pool.map(id, [run])
            except TypeError as error:
                assert "a run is a process" in str(error)
            else:
                raise AssertionError("a run was pickled")
        assert not run.done
        run.set_rate("2kpps")
    assert run.report.ok
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing_have_runs_of_their_own(how, tmp_path):
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    done = subprocess.run([sys.executable, str(script), how], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
