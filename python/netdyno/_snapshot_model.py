"""How a run stands, as docs/snapshot.schema.json says.

Made by ``python -m netdyno._generate``: do not edit.
"""

from __future__ import annotations

from typing import Any

from ._record import Percentiles, Record, Rows

__all__ = [
    "Bound",
    "Bucket",
    "Cloned",
    "Collected",
    "Connections",
    "Core",
    "Count",
    "Counter",
    "Distribution",
    "Endpoint",
    "Flows",
    "Passage",
    "Queue",
    "Search",
    "SnapshotData",
    "Stream",
    "Title",
    "Trial",
    "Worker",
]


class Bound(Record):
    """Between which loads the answer lies."""

    goal: str
    """What has to be kept: `loss 0 %`, ..."""
    lower: float | None
    """The highest that passed."""
    upper: float | None
    """The lowest above it that failed."""

    _MEMBERS = {
        "goal": ("", None),
        "lower": ("", None),
        "upper": ("", None),
    }


class Bucket(Record):
    """Values from `from` to `to`, both included."""

    count: int
    """How many values are in it."""
    from_: int
    """The least value that counts in this bucket."""
    to: int
    """The greatest value that counts in this bucket."""

    _MEMBERS = {
        "count": ("", None),
        "from_": ("", None),
        "to": ("", None),
    }


class Cloned(Record):
    """A clone of sessions."""

    compared: int
    """Answers of both servers that were compared."""
    connected: int
    """Connections to the target that were established."""
    copied_sessions: int
    """Sessions that were copied."""
    cut_sessions: int
    """Copied sessions that ended with a gap."""
    different: int
    """Answers that differ."""
    dropped_frames: int
    """Frames that were lost before they could be looked at."""
    due_bytes: int
    """Bytes that were to be sent to the target."""
    frames: int
    """Frames that were captured."""
    open_sessions: int
    """Sessions that are copied at this moment."""
    sent_bytes: int
    """Bytes that were sent to the target."""
    sessions: int
    """Sessions that were seen."""
    unconnected: int
    """Connections to the target that were not."""

    _MEMBERS = {
        "compared": ("", None),
        "connected": ("", None),
        "copied_sessions": ("", None),
        "cut_sessions": ("", None),
        "different": ("", None),
        "dropped_frames": ("", None),
        "due_bytes": ("", None),
        "frames": ("", None),
        "open_sessions": ("", None),
        "sent_bytes": ("", None),
        "sessions": ("", None),
        "unconnected": ("", None),
    }


class Collected(Record):
    """What a flow collector received."""

    dropped_messages: int
    """Messages that this collector lost."""
    exporters: int
    """Exporters."""
    messages: int
    """Messages that they came in."""
    missing_messages: int
    """Messages that did not arrive, by their numbers."""
    missing_records: int
    """Records that did not arrive, by the exporters' numbers."""
    records: int
    """Flow records."""
    unwritten_records: int
    """Records that were not written."""

    _MEMBERS = {
        "dropped_messages": ("", None),
        "exporters": ("", None),
        "messages": ("", None),
        "missing_messages": ("", None),
        "missing_records": ("", None),
        "records": ("", None),
        "unwritten_records": ("", None),
    }


class Connections(Record):
    """Connections that are played."""

    broken: int
    """Of those that are over: not to their end."""
    heard: int
    """Bytes that the servers have said."""
    open: int
    """Connections under way."""
    over: int
    """Connections that are over."""
    retransmitted: int
    """Segments that were sent again."""
    said: int
    """Bytes that the servers have acknowledged, and that they have said."""
    waiting: int
    """Connections that have not begun."""

    _MEMBERS = {
        "broken": ("", None),
        "heard": ("", None),
        "open": ("", None),
        "over": ("", None),
        "retransmitted": ("", None),
        "said": ("", None),
        "waiting": ("", None),
    }


class Core(Record):
    """What a core did since the machine was started."""

    idle_ticks: int
    """Of this, idle."""
    interrupt_ticks: int
    """In interrupts, where frames arrive."""
    number: int
    """Number of the core, from 0."""
    total_ticks: int
    """Time in the kernel's ticks."""

    _MEMBERS = {
        "idle_ticks": ("", None),
        "interrupt_ticks": ("", None),
        "number": ("", None),
        "total_ticks": ("", None),
    }


class Count(Record):
    """Frames and their bytes."""

    bytes: int
    """Layer 2 without FCS."""
    frames: int
    """Frames."""

    _MEMBERS = {
        "bytes": ("", None),
        "frames": ("", None),
    }


class Counter(Record):
    """A counter that rose and tells where frames went."""

    explains: str
    """What that says of frames."""
    name: str
    """Name of the counter, as its source has it."""
    place: str
    """Where it is counted: an interface, or the host."""
    rise: int
    """By how much it rose since the run's start."""
    source: str
    """What counts: the driver, the stack, ..."""

    _MEMBERS = {
        "explains": ("", None),
        "name": ("", None),
        "place": ("", None),
        "rise": ("", None),
        "source": ("", None),
    }


class Distribution(Percentiles):
    """A summary of many values; the unit stands in the name of the member that holds it."""

    count: int
    """How many values were taken."""
    histogram: Rows[Bucket]
    """Ascending, empty buckets left out; for plotting."""
    max: int
    """The greatest value."""
    mean: float
    """The mean of the values."""
    min: int
    """The least value."""
    p50: int
    """The median of the values."""
    p90: int
    """The 90th percentile of the values."""
    p99: int
    """The 99th percentile of the values."""
    p999: int
    """The 99.9th percentile of the values."""
    p9999: int
    """The 99.99th percentile of the values; of fewer than 10,000 values the greatest."""
    p99999: int
    """The 99.999th percentile of the values; of fewer than 100,000 values the greatest."""

    _MEMBERS = {
        "count": ("", None),
        "histogram": ("*Bucket", ()),
        "max": ("", None),
        "mean": ("", None),
        "min": ("", None),
        "p50": ("", None),
        "p90": ("", None),
        "p99": ("", None),
        "p999": ("", None),
        "p9999": ("", 0),
        "p99999": ("", 0),
    }


class Endpoint(Record):
    """An endpoint test, or a server of such."""

    all_tests: int | None
    """Of a mesh: all of its tests."""
    clients: int | None
    """Of a server: clients now."""
    cwnd_bytes: int | None
    """Sum of their congestion windows."""
    latency_p50_ns: int | None
    """Latency that half of the transactions since the snapshot before had at most, in nanoseconds."""
    latency_p99_ns: int | None
    """Latency that 99 of 100 of them had at most."""
    received_bytes: int
    """Bytes of payload that arrived in streams; of a server those of tests that are over, both ways."""
    retransmits: int | None
    """Segments that they sent again."""
    round: int | None
    """Of a mesh: the round that goes on, from 1."""
    rounds: int | None
    """Of a mesh: all of its rounds."""
    rtt_ns: int | None
    """Mean smoothed round-trip time of the connections that send."""
    sent_bytes: int
    """Bytes of payload that left this host in streams."""
    tests: int | None
    """Of a server and of a mesh: tests that are over."""
    transactions: int | None
    """Transactions that were answered."""

    _MEMBERS = {
        "all_tests": ("", None),
        "clients": ("", None),
        "cwnd_bytes": ("", None),
        "latency_p50_ns": ("", None),
        "latency_p99_ns": ("", None),
        "received_bytes": ("", None),
        "retransmits": ("", None),
        "round": ("", None),
        "rounds": ("", None),
        "rtt_ns": ("", None),
        "sent_bytes": ("", None),
        "tests": ("", None),
        "transactions": ("", None),
    }


class Flows(Record):
    """Flows of a probe."""

    active: int
    """Flows under way."""
    dropped: int
    """Frames that the kernel lost because the probe was slower."""
    ended: int
    """Records that ended."""
    sent: int
    """Records that were sent to a collector."""
    unsent: int
    """Records that ended and were not sent."""

    _MEMBERS = {
        "active": ("", None),
        "dropped": ("", None),
        "ended": ("", None),
        "sent": ("", None),
        "unsent": ("", None),
    }


class Passage(Record):
    """Frames taken from one interface to another."""

    forwarded: Count
    """Of these, frames that left."""
    from_: str
    """The interface by which they came."""
    received: Count
    """Frames that came."""
    to: str
    """The interface by which they left."""

    _MEMBERS = {
        "forwarded": ("Count", None),
        "from_": ("", None),
        "received": ("Count", None),
        "to": ("", None),
    }


class Queue(Record):
    """What an interface's driver has put through one of its queues since the run's start."""

    interface: str
    """The interface."""
    number: int
    """Number of the queue, from 0."""
    packets: int
    """Packets."""
    receives: bool
    """Of those that receive; else of those that send."""

    _MEMBERS = {
        "interface": ("", None),
        "number": ("", None),
        "packets": ("", None),
        "receives": ("", None),
    }


class Search(Record):
    """How far a search has come."""

    bounds: Rows[Bound]
    """One for each goal."""
    frame_size: str
    """Frame size that is tested now, the FCS counted: `64`, `imix`, ..."""
    known: str
    """What else is known, for a person."""
    load: float
    """What is tried now, for how long, and since when (from the start of all)."""
    of_rate: bool
    """A load is frames per second, else a count of something."""
    part: str
    """What is searched for now: `throughput`, `latency`, ..."""
    passed: int
    """Of these, trials that passed."""
    rows: Rows[Trial]
    """The latest trials, the newest first."""
    size: tuple[Any, ...]
    """Which of the frame sizes, from 1, and how many there are; (0, 0) if nobody knows."""
    trial_began_ns: int
    """When it began, in nanoseconds from the start of all."""
    trial_ns: int
    """Length of the trial under way, in nanoseconds."""
    trials: int
    """Trials that are over, and how many of these passed."""

    _MEMBERS = {
        "bounds": ("*Bound", None),
        "frame_size": ("", None),
        "known": ("", None),
        "load": ("", None),
        "of_rate": ("", None),
        "part": ("", None),
        "passed": ("", None),
        "rows": ("*Trial", None),
        "size": ("*", None),
        "trial_began_ns": ("", None),
        "trial_ns": ("", None),
        "trials": ("", None),
    }


class SnapshotData(Record):
    """How a job stands at one moment."""

    cloned: Cloned | None
    """Of a clone of sessions."""
    collected: Collected | None
    """Of a flow collector."""
    connections: Connections | None
    """Of a job that plays connections."""
    cores: Rows[Core]
    """What the cores of this host did."""
    counters: Rows[Counter]
    """Counters that rose, where frames may have gone."""
    counters_elapsed_ns: int
    """When counters and queues were looked at, which is done seldom."""
    duplicated_frames: int | None
    """Only of signed frames."""
    elapsed_ns: int
    """Since the start."""
    endpoint: Endpoint | None
    """Of an endpoint test, or of a server of such."""
    flows: Flows | None
    """Of a flow probe."""
    forwarding: Rows[Passage]
    """Of a bridge and a reflector."""
    intended_frames: int | None
    """Frames that the schedule had due; `None` at top speed."""
    late_frames: int | None
    """Frames that left more than 100 us after their time."""
    latency_ns: Distribution | None
    """Latencies of signed frames, in nanoseconds."""
    lateness_ns: Distribution | None
    """How late frames left."""
    lost_by_count_only: bool
    """Not every frame was signed, so that frames of others may stand in for some that were lost. Left out when false."""
    lost_frames: int | None
    """Frames that have not arrived although they had time to; fewer, if they still do."""
    phase: str
    """Where it is between start and end."""
    queues: Rows[Queue]
    """The queues of the interfaces."""
    rate_percent: int
    """How fast the schedule passes, in percent of what was asked for."""
    remaining_at_most: bool
    """That is the most that it may be, and nobody knows how much less."""
    remaining_ns: int | None
    """Nanoseconds until it ends, where that is known."""
    reordered_frames: int | None
    """Frames that arrived behind later ones; only of signed frames."""
    run: Title
    """What does not change."""
    rx: Count | None
    """Frames that arrived."""
    schema: str
    """`netdyno.snapshot/1`. The last line is the report, which has another."""
    search: Search | None
    """Of a search or a trial."""
    streams: Rows[Stream]
    """The first of the streams that arrived."""
    streams_beyond: int
    """Streams that were not looked at, because there are too many."""
    streams_elapsed_ns: int
    """When the streams were looked at, which is done less often."""
    trailed_frames: int | None
    """Frames whose signature stood behind bytes that a device added."""
    tx: Count | None
    """Frames that were sent."""
    warnings: tuple[str, ...]
    """What the result will warn of, as far as it is known."""
    workers: Rows[Worker]
    """The sending threads."""

    _MEMBERS = {
        "cloned": ("Cloned", None),
        "collected": ("Collected", None),
        "connections": ("Connections", None),
        "cores": ("*Core", ()),
        "counters": ("*Counter", ()),
        "counters_elapsed_ns": ("", None),
        "duplicated_frames": ("", None),
        "elapsed_ns": ("", None),
        "endpoint": ("Endpoint", None),
        "flows": ("Flows", None),
        "forwarding": ("*Passage", ()),
        "intended_frames": ("", None),
        "late_frames": ("", None),
        "latency_ns": ("Distribution", None),
        "lateness_ns": ("Distribution", None),
        "lost_by_count_only": ("", False),
        "lost_frames": ("", None),
        "phase": ("", None),
        "queues": ("*Queue", ()),
        "rate_percent": ("", None),
        "remaining_at_most": ("", False),
        "remaining_ns": ("", None),
        "reordered_frames": ("", None),
        "run": ("Title", None),
        "rx": ("Count", None),
        "schema": ("", None),
        "search": ("Search", None),
        "streams": ("*Stream", ()),
        "streams_beyond": ("", None),
        "streams_elapsed_ns": ("", None),
        "trailed_frames": ("", None),
        "tx": ("Count", None),
        "warnings": ("*", ()),
        "workers": ("*Worker", ()),
    }


class Stream(Record):
    """What arrived of one stream."""

    duplicated_frames: int
    """Frames that arrived again."""
    first_arrival_ns: int | None
    """The first arrival, in nanoseconds of Unix time."""
    last_arrival_ns: int | None
    """The last one."""
    latency_max_ns: int | None
    """Greatest latency, in nanoseconds."""
    latency_mean_ns: float | None
    """Mean latency, in nanoseconds."""
    latency_min_ns: int | None
    """Least latency, in nanoseconds."""
    lost_frames: int
    """Frames that are missing though later ones arrived."""
    name: str | None
    """The stream's name, if it has one."""
    received: Count
    """Frames that arrived, copies included."""
    reordered_frames: int
    """Frames that arrived behind later ones."""
    stream: int
    """Number in its signatures."""

    _MEMBERS = {
        "duplicated_frames": ("", None),
        "first_arrival_ns": ("", None),
        "last_arrival_ns": ("", None),
        "latency_max_ns": ("", None),
        "latency_mean_ns": ("", None),
        "latency_min_ns": ("", None),
        "lost_frames": ("", None),
        "name": ("", None),
        "received": ("Count", None),
        "reordered_frames": ("", None),
        "stream": ("", None),
    }


class Title(Record):
    """What does not change while a run goes on."""

    command: str
    """The verb: `send`, `replay`, ..."""
    engine: str | None
    """How frames leave: `xdp`, `afxdp`, `packet`, ..."""
    measures_on: str | None
    """Where they are measured."""
    meter: str | None
    """How they are measured: `xdp`, `xdp-generic`, `packet`."""
    netdyno_version: str
    """Version of netdyno."""
    sends_on: str | None
    """Where frames leave."""

    _MEMBERS = {
        "command": ("", None),
        "engine": ("", None),
        "measures_on": ("", None),
        "meter": ("", None),
        "netdyno_version": ("", None),
        "sends_on": ("", None),
    }


class Trial(Record):
    """A trial that is over."""

    duration_ns: int
    """How long it lasted, in nanoseconds."""
    latency_p99_ns: int | None
    """Latency that 99 of 100 frames kept, in nanoseconds."""
    load: float
    """Frames per second of each sending port, or a count of what is varied."""
    loss_ratio: float
    """Share of the frames that was lost: 0 to 1."""
    number: int
    """From 1, in the order they were done."""
    verdict: str
    """What it came to: `passed`, `loss`, ..."""

    _MEMBERS = {
        "duration_ns": ("", None),
        "latency_p99_ns": ("", None),
        "load": ("", None),
        "loss_ratio": ("", None),
        "number": ("", None),
        "verdict": ("", None),
    }


class Worker(Record):
    """A sending thread."""

    bytes: int
    """Layer 2 without FCS."""
    cpu: int | None
    """CPU that it runs on, if it is bound to one."""
    cpu_ns: int | None
    """CPU time of its thread, where the kernel says."""
    frames: int
    """Frames."""

    _MEMBERS = {
        "bytes": ("", None),
        "cpu": ("", None),
        "cpu_ns": ("", None),
        "frames": ("", None),
    }


_CLASSES: dict[str, type[Record]] = {
    "Bound": Bound,
    "Bucket": Bucket,
    "Cloned": Cloned,
    "Collected": Collected,
    "Connections": Connections,
    "Core": Core,
    "Count": Count,
    "Counter": Counter,
    "Distribution": Distribution,
    "Endpoint": Endpoint,
    "Flows": Flows,
    "Passage": Passage,
    "Queue": Queue,
    "Search": Search,
    "SnapshotData": SnapshotData,
    "Stream": Stream,
    "Title": Title,
    "Trial": Trial,
    "Worker": Worker,
}
for _class in _CLASSES.values():
    _class._CLASSES = _CLASSES
