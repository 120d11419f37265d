"""Against the real child, in labs: by root, or by whom sudo -n makes root."""

from __future__ import annotations

import asyncio
import json
import logging
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

logging.getLogger("scapy").setLevel(logging.CRITICAL)
HERE = Path(__file__).parent
MAC = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
TEMPLATE = sc.Ether(**MAC) / sc.IP(src="192.0.2.1", dst="198.18.0.0/29") / sc.UDP(dport=(1, 5)) / b"twenty bytes of load"


@pytest.fixture(scope="module")
def lab():
    with nd.lab(addresses=True) as made:
        yield made


def test_what_arrives_is_what_scapy_would_have_sent(lab, tmp_path):
    file = tmp_path / "got.pcapng"
    report = nd.send(TEMPLATE, on=lab.tx, measure=lab.rx, count=40, rate=10_000, sign="never", capture=file)
    assert (report.tx.frames, report.rx.frames, report.loss.frames) == (40, 40, 0)
    assert [bytes(packet) for packet in nd.read_packets(file)] == [bytes(packet) for packet in TEMPLATE]


def test_the_meter_stands_before_the_first_frame_by_each_engine(lab):
    for number in range(4):
        for engine in ("xdp", "afxdp", "packet", "auto"):
            report = nd.send("ipv4/udp", on=lab.tx, measure=lab.rx, engine=engine, rate="top", count=1 + 63 * number)
            assert report.tx.frames == report.rx.frames == 1 + 63 * number, (engine, report.verdict)


def test_a_signed_template_keeps_its_lengths_and_checksums_right(lab, tmp_path):
    file = tmp_path / "got.pcapng"
    report = nd.send(TEMPLATE, on=lab.tx, measure=lab.rx, count=40, rate=10_000, capture=file)
    assert report.rx.frames == report.latency.count == 40
    for packet in nd.read_packets(file):
        # What Scapy computes of the frame that arrived is what stands in it.
        again = packet.copy()
        del again[sc.IP].len, again[sc.IP].chksum, again[sc.UDP].len, again[sc.UDP].chksum
        assert bytes(again) == bytes(packet) and len(packet) == 62 + 18


def test_lists_of_packets_and_bytes_are_sent(lab, tmp_path):
    packets = list(TEMPLATE)
    for what in (packets, [bytes(packet) for packet in packets], sc.PacketList(packets), iter(packets)):
        file = tmp_path / "got.pcapng"
        report = nd.send(what, on=lab.tx, measure=lab.rx, rate=10_000, capture=file)
        assert report.tx.frames == report.rx.frames == 40
        assert [frame for _, frame in nd.read_frames(file)] == [bytes(packet) for packet in packets]
        file.unlink()


def test_what_the_kernel_drops_is_counted_while_a_block_goes_on(lab):
    # Nobody listens at that port of the far host.
    frame = f"ether(dst=ff:ff:ff:ff:ff:ff)/ipv4(src={lab.tx_address}, dst={lab.rx_address})/udp(sport=1, dport=47123)"
    with nd.drops(filter="udp and port 47123") as counted:
        assert nd.send(frame, on=lab.tx, sign="never", rate="1kpps", count=100).tx.frames == 100
    assert counted.seen is counted.stop() and counted.seen.frames == 100 == sum(cause.frames for cause in counted.seen.drops)
    assert {(cause.reason, cause.protocol, cause.port) for cause in counted.seen.drops} == {("NO_SOCKET", "udp", 47123)}
    with pytest.raises(ZeroDivisionError), nd.drops() as counted:
        1 / 0  # noqa: B018
    assert counted.seen is not None and counted._child.returncode == 0
    with pytest.raises(nd.EngineError, match="nothere0"):
        nd.drops(on="nothere0")


def test_answers_are_paired_with_what_was_asked(lab):
    asked = sc.Ether(dst="ff:ff:ff:ff:ff:ff") / sc.IP(src=str(lab.tx_address), dst=str(lab.rx_address)) / sc.ICMP(id=7, seq=(1, 20))
    answered, silent = nd.sr(asked, on=lab.tx)
    assert len(answered) == 20 and len(silent) == 0
    for sent, answer in answered:
        assert answer[sc.ICMP].type == 0 and answer[sc.ICMP].seq == sent[sc.ICMP].seq and answer.answers(sent)
    nobody = sc.Ether(src="02:00:00:00:00:09", dst="ff:ff:ff:ff:ff:ff") / sc.ARP(hwsrc="02:00:00:00:00:09", psrc="198.18.0.1", pdst="198.18.0.0/30")
    answered, silent = nd.sr(nobody, on=lab.tx)
    assert [answer.psrc for _, answer in answered] == ["198.18.0.2"]
    assert [packet.pdst for packet in silent] == ["198.18.0.0", "198.18.0.1", "198.18.0.3"]


def test_a_run_is_watched_and_steered(lab):
    with nd.start(nd.send, "ipv4/udp", on=lab.tx, measure=lab.rx, engine="packet", rate="1kpps", duration="30s") as run:
        shots = run.snapshots(every=0.1)
        next(shots)
        run.set_rate("2kpps")
        run.pause()
        # What is on its way when it pauses has left soon after.
        before = after = next(shots).tx.frames
        for _ in range(20):
            before, after = after, next(shots).tx.frames
            if before == after:
                break
        assert before == after
        run.resume()
        assert any(now.tx.frames > after for now in shots)
        run.stop()
        report = run.wait(30)
    assert not report.ok and "stopped after" in report.verdict.reasons[0] and report.tx.frames > 0


def test_what_an_engine_cannot_do_is_said_in_words_of_arguments(lab):
    with nd.start(nd.send, "ipv4/udp", on=lab.tx, measure=lab.rx, engine="xdp", rate="1kpps", duration="30s") as run:
        next(run.snapshots())
        with pytest.raises(nd.EngineError, match="`engine=`"):
            run.set_rate("2kpps")


def test_the_clock_of_the_same_host_is_never_further_off_than_is_said(lab):
    for _ in range(20):
        clock = nd.Program(sudo=False).clock()
        assert abs(clock.ahead_ns) <= clock.error_ns <= clock.round_trip_ns, clock
        assert clock.exchanges >= 8
    with nd.start(nd.send, "ipv4/udp", on=lab.tx, rate="1kpps", duration="30s") as run:
        for _ in range(20):
            clock = run.clock()
            assert abs(clock.ahead_ns) <= clock.error_ns, clock
        run.stop()
        assert run.wait(30).tx.frames > 0


def test_two_runs_do_not_share_an_interface(lab):
    with nd.start(nd.send, "ipv4/udp", on=lab.tx, rate="1kpps", duration="30s"), pytest.raises(nd.Refused, match="tx0"):
        nd.send("ipv4/udp", on=lab.tx, count=1, rate="top")
    assert nd.send("ipv4/udp", on=lab.tx, count=1, rate="top").tx.frames == 1


def test_bad_jobs_are_errors_that_name_the_argument(lab):
    with pytest.raises(nd.UsageError, match="what: .*did you mean `udp`"):
        nd.send("ipv4/upd", on=lab.tx, count=1, rate="top")
    with pytest.raises(nd.NetdynoError, match="nothere0"):
        nd.send("ipv4/udp", on=lab.interface("nothere0"), count=1, rate="top")


def test_runs_are_awaited_and_a_cancelled_task_ends_its_run(lab):
    async def both():
        report = await nd.start(nd.send, "ipv4/udp", on=lab.tx, count=10, rate=1000)
        assert report.tx.frames == 10
        run = nd.start(nd.send, "ipv4/udp", on=lab.tx, rate=1000, duration=30)
        task = asyncio.ensure_future(run._await())
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert run.wait(30).tx.frames > 0

    asyncio.run(both())


def started_by(process: int) -> list[int]:
    """Processes that it has started, and that these have; the nearest first."""
    own: list[int] = []
    for task in Path(f"/proc/{process}/task").iterdir():
        own += [int(child) for child in (task / "children").read_text().split()]
    return own + [further for child in own for further in started_by(child)]


def kill(process: int) -> None:
    """SIGKILL, to one that may be root's: then it is root who kills it."""
    subprocess.run([*([] if os.geteuid() == 0 else ["sudo", "-n"]), "kill", "-9", str(process)], check=True)


def test_a_child_that_is_killed_is_an_error_and_leaves_nothing():
    with nd.lab() as lab:
        run = nd.start(nd.send, "ipv4/udp", on=lab.tx, rate=1000, duration=30)
        # (The lab's child is what answers: its last word is the lab's end. Before it there may be sudo.)
        all_of_it = [lab._agent._child.pid, *started_by(lab._agent._child.pid)]
        kill(next(one for one in all_of_it if Path(f"/proc/{one}/comm").read_text().startswith("netdyno")))
        with pytest.raises(nd.AgentLost):
            run.wait(30)
    until = time.monotonic() + 30
    while any(Path(f"/proc/{one}").exists() for one in all_of_it) and time.monotonic() < until:
        time.sleep(0.01)
    assert not [one for one in all_of_it if Path(f"/proc/{one}").exists()]
    with nd.lab() as lab:
        assert nd.send("ipv4/udp", on=lab.tx, count=1, rate="top").tx.frames == 1


def works(lab: nd.Lab) -> None:
    """The lab is as it was: no run has its interfaces, and no program is at them, because none is ever replaced."""
    report = nd.send("ipv4/udp", on=lab.tx, measure=lab.rx, engine="xdp", meter="xdp", count=100, rate="10kpps")
    assert (report.tx.frames, report.rx.frames) == (100, 100)


def all_ended(lab: nd.Lab) -> None:
    """What nobody has any more is ended without anybody who waits for it."""
    until = time.monotonic() + 30
    while lab._agent._waiting or any(thread.name == "netdyno-ends" for thread in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_run_that_nobody_has_any_more_is_ended_in_its_lab(lab):
    run = nd.start(nd.send, "ipv4/udp", on=lab.tx, measure=lab.rx, rate="10kpps", duration="60s")
    next(run.snapshots())
    del run
    all_ended(lab)
    works(lab)


def test_an_exception_in_a_block_ends_the_run_and_its_programs_are_gone(lab):
    for raised in (ZeroDivisionError, KeyboardInterrupt, SystemExit):
        with pytest.raises(raised), nd.start(nd.send, "ipv4/udp", on=lab.tx, measure=lab.rx, rate="10kpps", duration="30s") as run:
            next(run.snapshots())
            raise raised
        assert run.report is not None
        works(lab)


def test_ctrl_c_at_any_moment_of_a_real_run_leaves_the_lab_as_it_was(lab):
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, press)
    pressed = 0
    try:
        for number in range(12):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.04 * number)
                nd.send("ipv4/udp", on=lab.tx, measure=lab.rx, rate="10kpps", duration="30s")
            except KeyboardInterrupt:
                pressed += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            all_ended(lab)
            works(lab)
        assert pressed == 12
    finally:
        signal.signal(signal.SIGALRM, before)


def test_ctrl_c_ends_a_run_in_order_and_keeps_its_report(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import time
            import signal
            import netdyno as nd
            # Behind a shell's & it is ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with nd.lab() as lab:
                run = nd.start(nd.send, "ipv4/udp", on=lab.tx, rate=1000, duration=30)
                next(now for now in run.snapshots() if now.tx is not None and now.tx.frames)
                print("started", flush=True)
                try:
                    run.wait()
                except KeyboardInterrupt as interrupt:
                    print(interrupt.report.tx.frames, flush=True)
                assert nd.send("ipv4/udp", on=lab.tx, count=1, rate="top").tx.frames == 1
            """
        )
    )
    child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "started\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    assert int(child.stdout.readline()) > 0
    assert child.wait(30) == 0


def in_a_lab(script: str, folder: Path) -> dict:
    """What a script prints that runs in a lab, by root."""
    program = nd.Program().find()
    # (By sudo the environment is another.)
    known = [f"{name}={os.environ[name]}" for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE") if name in os.environ]
    command = [program, "lab", "--", "env", *known, f"NETDYNO_BINARY={program}", sys.executable, str(HERE / script)]
    if os.geteuid() != 0:
        command = ["sudo", "-n", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_one_job_is_carried_out_by_several_agents(tmp_path):
    found = in_a_lab("joint.py", tmp_path)
    assert found["send"] == [1000, 1000, 0, ["far", "near"]]
    assert found["frames"] == [10, 10]
    assert "nobody" in found["refused"] and "\n" not in found["refused"]
    done, frames = found["interrupted"]
    assert not done and frames > 0


def test_sendpfast_sends_through_netdyno_in_all_its_forms(tmp_path):
    found = in_a_lab("sendpfast.py", tmp_path)
    for form, result in found.items():
        if form == "until Ctrl-C":
            assert result["packets"] > 20
        else:
            assert result["packets"] == result["successful"] == (60 if form == "count" else 20), (form, result)
        assert result["failed"] == result["truncated"] == 0 and result["pps"] > 0, (form, result)
    # Frames 10 ms apart take so long at least, or half of it.
    assert min(found[form]["time"] for form in ("default", "as captured")) >= 0.19 > found["twice as fast"]["time"] >= 0.095
    assert found["packets a second"]["time"] >= 0.018
