"""What needs no rights: frames, jobs as data, captures, reports."""

from __future__ import annotations

import collections.abc
import copy
import datetime
import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

import netdyno as nd
import pytest
from netdyno import _generate, _job, _table, _verbs

ROOT = Path(__file__).resolve().parents[2]
READERS = ROOT / "target/readers/bin/python3"
GOLDEN = ROOT / "crates/report/tests/golden/lossy_replay.json"


def test_frames_are_those_of_the_expression():
    frames = nd.craft("ipv4(src=10.0.0.1, dst=198.18.0.0/16)/udp(dport=[53,80])", count=3, size=64)
    assert [len(frame) for frame in frames] == [60, 60, 60]
    assert [frame[30:34] for frame in frames] == [bytes([198, 18, 0, n]) for n in range(3)]
    assert [int.from_bytes(frame[36:38], "big") for frame in frames] == [53, 80, 53]
    assert nd.craft("ipv4(dst=198.18.0.0/16)/udp", first=2, count=1) == nd.craft("ipv4(dst=198.18.0.0/16)/udp", count=3)[2:]
    assert nd.craft([b"abc", b"d"], count=2) == [b"abc", b"d"]


def test_a_scenario_is_crafted_as_a_dict_and_as_a_file(tmp_path):
    scenario = {"streams": [{"frame": "ipv4/udp(dport=7)", "rate": "1kpps"}]}
    file = tmp_path / "one.yaml"
    file.write_text("streams:\n- frame: ipv4/udp(dport=7)\n  rate: 1kpps\n")
    assert nd.craft(scenario, count=2) == nd.craft(file, count=2) == nd.craft("ipv4/udp(dport=7)", count=2)
    with pytest.raises(nd.UsageError, match="cannot be read"):
        nd.craft("nothing.yaml")


def test_errors_have_their_place_and_survive_pickling():
    with pytest.raises(nd.UsageError) as raised:
        nd.craft("ipv4/upd")
    assert raised.value.column == 6 and "did you mean `udp`" in str(raised.value)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (type(again), again.column, str(again)) == (nd.UsageError, 6, str(raised.value))
    assert isinstance(raised.value, ValueError)


def test_a_wrong_argument_is_named_with_what_was_meant():
    with pytest.raises(nd.UsageError, match="no argument `measures`; did you mean `measure`"):
        nd.job(nd.send, "ipv4/udp", measures="rx0")
    with pytest.raises(nd.UsageError, match="rate: .*write 5pps"):
        nd.job(nd.send, "ipv4/udp", on="tx0", rate="5").check()
    with pytest.raises(nd.UsageError, match="what is looked for"):
        nd.job(nd.search)
    with pytest.raises(nd.UsageError, match="nothing that can be sent"):
        nd.job(nd.send, 5)


def test_numbers_and_times_of_python_are_those_of_the_job():
    made = nd.job(nd.send, "ipv4/udp", on=["tx0", "tx1"], measure=["rx0", "rx1"], rate=1e6, duration=datetime.timedelta(milliseconds=1500))
    job = made.check().data
    assert (job["rate"], job["duration"]) == ("1000000pps", "1500000000ns")
    assert job["links"] == [{"on": "tx0", "measure": "rx0"}, {"on": "tx1", "measure": "rx1"}]
    job = nd.job(nd.search, "throughput", lab={"dut": "router"}, lab_bottleneck="200mbps", goal=["loss=0%"], trial_duration=2).check().data
    assert job["bench"]["lab"]["bottleneck"] == "200mbps" and job["bench"]["lab"]["dut"] == "router"
    assert job["find"]["throughput"]["finding"]["goals"] == ["loss=0%"] and job["trial_duration"] == "2s"


def test_each_setting_of_each_kind_is_an_argument_with_its_text():
    for kind in _table.kinds():
        verb = getattr(nd, kind.replace("-", "_"))
        taken = inspect.signature(verb).parameters
        for find in _table.finds(kind) or (None,):
            for setting in _table.settings(kind, find):
                assert setting.argument in taken, (kind, setting.path)
                assert setting.argument in verb.__doc__
    assert len(_verbs.VERBS) == len(_table.kinds()) >= 15


def test_what_is_made_of_the_declarations_is_up_to_date():
    for name, text in _generate.modules(ROOT / "docs").items():
        stale = (ROOT / "python/netdyno" / name).read_text() != text
        assert not stale, f"{name} is stale: scripts/python python3 -m netdyno._generate python/netdyno docs"


def test_a_report_has_what_everybody_reads_and_says_what_it_has_not():
    report = nd.read(GOLDEN)
    assert (report.tx.frames, report.rx.frames, report.loss.frames) == (9_600_000, 9_420_000, 180_000)
    assert report.loss.ratio == 0.01875 and report.latency.p99 == 49_151 == report.latency.percentile(99)
    assert not report.ok and report.exit_status == 1 and "did not arrive" in report.verdict.reasons[0]
    with pytest.raises(nd.NotMeasured, match="throughput was not measured"):
        report.throughput  # noqa: B018
    assert not hasattr(report, "throughput") and hasattr(report, "rx")
    with pytest.raises(nd.Short) as short:
        report.raise_for_status()
    assert short.value.report is report
    assert report.figure("loss_ratio") == 0.01875
    with pytest.raises(nd.NotMeasured, match="has no figure `nonsense`"):
        report.figure("nonsense")


def test_a_report_is_frozen_and_equal_to_its_copies():
    report = nd.read(GOLDEN)
    with pytest.raises(AttributeError, match="cannot be changed"):
        report.command = "x"  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot be changed"):
        report.rx.frames = 1
    report.raw["command"] = "x"
    report.requested and report.requested.clear()
    assert report.command == "replay" and report == nd.read(GOLDEN)
    for again in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report), nd.Report.from_json(report.to_json())):
        assert again == report and hash(again) == hash(report)
    unknown = nd.Report({**report.raw, "of_a_later_version": 1})
    assert unknown.raw["of_a_later_version"] == 1 and unknown != report


def test_a_notebook_shows_plots_without_a_script():
    shown = nd.read(GOLDEN)._repr_html_()
    assert shown.count("<svg") >= 3 and "<script" not in shown and "9,420,000" in shown
    assert shown.count("<div") == shown.count("</div>")


def test_a_report_is_shown_saved_and_read_again(tmp_path):
    report = nd.read(GOLDEN)
    assert "did not arrive" in report.to_text() and str(report) == report.to_text()
    written = report.save(tmp_path / "r")
    assert {os.path.basename(name) for name in written} == {"result.json", "figures.csv", "intervals.csv", "report.html"}
    assert nd.read(tmp_path / "r") == report
    assert nd.compare(report, tmp_path / "r").outcome in ("same", "not_judged")
    columns = report.intervals.columns()
    assert len(columns["tx_frames"]) == len(report.intervals) and columns["tx_frames"][0] == report.intervals[0].tx_frames


def test_rows_are_tables_for_whatever_reads_tables():
    rows = nd.read(GOLDEN).intervals
    assert (rows[0], rows[:1], list(reversed(rows))) == (next(iter(rows)), type(rows)([rows[0]]), [rows[0]])
    assert rows[0] in rows and rows.index(rows[0]) == 0 and rows.count(rows[0]) == 1
    assert rows == (rows[0],) == tuple(rows) and hash(rows) == hash(type(rows)(rows))
    assert pickle.loads(pickle.dumps(rows)) == copy.deepcopy(rows) == rows
    # These are taken for columns, or for rows of scalars, before anybody asks for Arrow's interface.
    assert not isinstance(rows, (tuple, list, collections.abc.Sequence))
    with pytest.raises(AttributeError, match="cannot be changed"):
        rows.more = 1
    # What a result has not is an empty table.
    assert nd.read(GOLDEN).trials.columns() == {} and len(nd.read(GOLDEN).trials) == 0


@pytest.mark.skipif(not READERS.exists(), reason="scripts/setup test puts pyarrow and DuckDB into target/readers")
def test_tables_are_read_by_arrow_and_duckdb():
    code = f"""
import duckdb, netdyno as nd, pyarrow as pa
report = nd.read({str(GOLDEN)!r})
rows, streams = report.intervals, report.streams
table = pa.table(rows)
assert table.column_names == list(rows.columns()) and table["tx_frames"][0].as_py() == rows[0].tx_frames
assert table.schema.field("tx_frames").type == pa.int64()
assert pa.table(streams)["latency_ns"][0].as_py()["p99"] == streams[0].latency_ns.p99
assert pa.RecordBatchReader.from_stream(report.figures).read_all().num_rows == len(report.figures)
assert duckdb.sql("select sum(tx_frames) from rows").fetchall() == [(sum(row.tx_frames for row in rows),)]
try:
    rows.to_pandas()
except ModuleNotFoundError as error:
    assert "pip install pandas" in str(error), error
"""
    done = subprocess.run([str(READERS), "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_capture_is_described_and_read(tmp_path):
    frames = nd.craft("ipv4(src=10.0.0.1..10.0.0.10)/udp(dport=53)", count=100)
    file = tmp_path / "hundred.pcap"
    file.write_bytes(_job.capture(frames))
    found = nd.info(file)
    assert (found.frames, found.flows, found.duration_ns) == (100, 10, 99_000)
    assert [frame for _, frame in nd.read_frames(file)] == frames
    with pytest.raises(nd.UsageError):
        nd.info(tmp_path / "none.pcap")


def test_scapy_and_pandas_are_imported_by_nobody_who_has_no_use_for_them():
    code = "import sys, netdyno as nd; nd.craft('ipv4/udp'); nd.job(nd.send, [b'x' * 60]); print([m for m in ('scapy', 'pandas', 'IPython') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_folder_of_results_tells_what_became_worse(tmp_path):
    raw = nd.read(GOLDEN).raw
    # Ten alike, and from the seventh on half of it arrives.
    for day in range(1, 11):
        raw["environment"]["started"] = f"2026-10-{day:02d}T00:00:00Z"
        rx = 9_600_000 - day % 3 if day < 7 else 4_800_000 + day
        raw["result"]["rx"]["frames"], raw["result"]["loss"] = rx, {"frames": 9_600_000 - rx, "ratio": 1 - rx / 9_600_000}
        nd.Report(raw).save(tmp_path / f"{day:02d}")
    found = nd.trend(tmp_path)
    assert not found.ok and found.outcome == "worse" and found.results == 10 and len(found.series) == 1
    lost = next(figure for figure in found.worse if figure.key == "loss_ratio")
    assert len(lost.values) == 10 and (lost.shift["after"], lost.shift["since"]) == (5, 6)
    with pytest.raises(nd.NetdynoError, match="worse than before: .*lost"):
        found.raise_for_status()
    assert "WORSE" in str(found) and "<svg" in found.to_html() and "<testsuite" in found.to_junit() and "lost" in found.to_markdown()
    assert pickle.loads(pickle.dumps(found)) == found and found.series[0].figures.columns()["key"]
    assert {figure.key for series in nd.trend(tmp_path, figure="loss_ratio").series for figure in series.figures} == {"loss_ratio"}
    assert nd.trend(tmp_path, since="2026-10-07", least="5%").ok
    for wrong, setting in (({"figure": "nonsense"}, "figure"), ({"since": "then"}, "since"), ({"figure": "throughput"}, "figure")):
        with pytest.raises(nd.UsageError) as raised:
            nd.trend(tmp_path, **wrong)
        assert raised.value.setting == setting
    with pytest.raises(nd.UsageError, match="nowhere"):
        nd.trend(tmp_path / "nowhere")
    # A newest run that was not done has no figure that could be worse.
    better = nd.trend(tmp_path, since="2026-10-07")
    assert better.ok and better.raise_for_status() is better
    raw["environment"]["started"], raw["result"]["verdict"] = "2026-10-11T00:00:00Z", {"outcome": "failed", "reasons": ["no carrier at tx0"]}
    nd.Report(raw).save(tmp_path / "11")
    found = nd.trend(tmp_path, since="2026-10-07")
    assert not found.ok and found.outcome != "worse" and [run.runs for run in found.not_done] == [1]
    with pytest.raises(nd.NetdynoError, match="the newest run was not done: .*no carrier at tx0"):
        found.raise_for_status()


def test_rates_in_percent_are_of_the_links_speed():
    scenario = {"streams": [{"frame": "ipv4/udp(dport=1)", "rate": "1%"}, {"frame": "ipv4/udp(dport=2)", "rate": "1kpps"}]}
    ports = [int.from_bytes(frame[36:38], "big") for frame in nd.craft(scenario, count=2000)]
    slower = [int.from_bytes(frame[36:38], "big") for frame in nd.craft(scenario, count=2000, link_speed="100mbps")]
    assert ports.count(2) < slower.count(2) < 1900
    with pytest.raises(nd.UsageError, match="no link's speed") as raised:
        nd.craft(scenario, link_speed="fast")
    assert raised.value.setting == "link_speed"


def test_each_kind_of_job_says_what_it_does():
    for kind in _table.kinds():
        first = getattr(nd, kind.replace("-", "_")).__doc__.splitlines()[0]
        assert first and not first.startswith("A job of the kind"), kind


def test_each_search_takes_what_it_looks_for_and_its_settings():
    asked = [
        ("search", "throughput", {"what": "ipv4/udp", "on": "tx0", "measure": "rx0", "precision": "1%"}),
        ("endpoint-search", "transactions", {"test": "tcp-rr", "below": "200us", "lab_dut": "router"}),
        ("endpoint-search", "socket-buffer", {"host": "198.18.0.2", "test": "tcp-stream", "enough": "90%"}),
        ("sessions-search", "sessions", {"on": "tx0", "to": "198.18.0.2:80", "duration": "1s", "precision": "1%"}),
        ("sessions-search", "session-capacity", {"on": "tx0", "to": "198.18.0.2:80", "rate": "5kcps", "max": 10_000}),
    ]
    for kind, find, given in asked:
        job = _verbs.made(kind, (find,), given).check()
        assert list(job.data["find"]) == [find], job.data
        with pytest.raises(nd.UsageError, match="can be looked for"):
            _verbs.made(kind, ("nothing",), given)
    of_all = {kind: set(_table.finds(kind)) for kind in _table.kinds()}
    assert {kind: finds for kind, finds in of_all.items() if finds} == {
        "search": of_all["search"],
        "endpoint-search": {"socket-buffer", "transactions"},
        "sessions-search": {"sessions", "session-capacity"},
    }
