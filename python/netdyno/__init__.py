"""netdyno: a dynamometer for networks.

    import netdyno as nd

    with nd.lab() as lab:
        r = nd.send("ipv4(dst=198.18.0.0/16)/udp(dport=9)", on=lab.tx, measure=lab.rx, rate="10kpps", duration="1s")
    print(r.rx.frames, r.loss.ratio, r.latency.p99)

Jobs are functions (`send`, `replay`, `measure`, `search`, ...) that return a `Report` when they are over; `start` starts one and returns a
`Run`, to watch and to steer. They are carried out by a child, the program netdyno, which gets its rights by ``sudo -n`` if this user
has not got them. `craft`, `info`, `read` and `compare` need none. docs/python.md is the tutorial.
"""

from . import errors
from ._agent import ClockOffset, Program
from ._agents import at_agents
from ._ask import sr
from ._core import VERSION as __version__
from ._drops import Drops, DropsSeen, drops
from ._job import Job
from ._start import craft, edit, job, start
from ._trend import Trend, TrendFigure, TrendNotDone, TrendSeries, trend
from ._verbs import (
    bridge,
    clone,
    clone_capture,
    clone_return,
    collect,
    endpoint,
    endpoint_search,
    endpoint_server,
    impair,
    iperf3,
    iperf3_server,
    live,
    measure,
    netperf,
    netserver,
    probe,
    reflect,
    replay,
    search,
    send,
    sessions,
    sessions_search,
    sessions_server,
    trial,
)
from .captures import Info, info, read_frames, read_packets
from .errors import (
    Aborted,
    AgentError,
    AgentLost,
    AgentMismatch,
    AgentMissing,
    EngineError,
    NetdynoError,
    NotTranslatable,
    PermissionDenied,
    Refused,
    Short,
    UsageError,
)
from .lab import Lab, lab
from .report import Comparison, NotMeasured, Report, compare, read
from .run import Note, Run
from .snapshot import Snapshot

__all__ = [
    "Aborted",
    "AgentError",
    "AgentLost",
    "AgentMismatch",
    "AgentMissing",
    "ClockOffset",
    "Comparison",
    "Drops",
    "DropsSeen",
    "EngineError",
    "Info",
    "Job",
    "Lab",
    "NetdynoError",
    "NotMeasured",
    "NotTranslatable",
    "Note",
    "PermissionDenied",
    "Program",
    "Refused",
    "Report",
    "Run",
    "Short",
    "Snapshot",
    "Trend",
    "TrendFigure",
    "TrendNotDone",
    "TrendSeries",
    "UsageError",
    "__version__",
    "at_agents",
    "bridge",
    "clone",
    "clone_capture",
    "clone_return",
    "collect",
    "compare",
    "craft",
    "drops",
    "edit",
    "endpoint",
    "endpoint_search",
    "endpoint_server",
    "errors",
    "impair",
    "info",
    "iperf3",
    "iperf3_server",
    "job",
    "lab",
    "live",
    "measure",
    "netperf",
    "netserver",
    "probe",
    "read",
    "read_frames",
    "read_packets",
    "reflect",
    "replay",
    "search",
    "send",
    "sessions",
    "sessions_search",
    "sessions_server",
    "sr",
    "start",
    "trend",
    "trial",
]
