"""What a report holds, as docs/report.schema.json says.

Made by ``python -m netdyno._generate``: do not edit.
"""

from __future__ import annotations

from typing import Any

from ._record import Percentiles, Record, Rows

__all__ = [
    "Achieved",
    "Adjustment",
    "AgentClock",
    "AgentPart",
    "Bounds",
    "Bucket",
    "BufferPoint",
    "BurstFound",
    "Capture",
    "CatchUp",
    "Cause",
    "Choice",
    "Cloned",
    "ClonedAnswers",
    "ClonedBytes",
    "ClonedConnections",
    "ClonedDifference",
    "ClonedFrames",
    "ClonedNoise",
    "ClonedPlace",
    "ClonedSent",
    "ClonedSessions",
    "Collection",
    "Collector",
    "Conversation",
    "Core",
    "CounterChange",
    "CounterNote",
    "CountersDifference",
    "Datagrams",
    "DelayVariation",
    "Departures",
    "Difference",
    "Distribution",
    "DropBacklog",
    "DropQueue",
    "DropRule",
    "Dropped",
    "DroppedOfStream",
    "DropsOverTime",
    "DropsTraced",
    "End",
    "Endpoint",
    "EndpointInterval",
    "EndpointMemory",
    "EndpointSearch",
    "EndpointStream",
    "EndpointTrial",
    "Environment",
    "Exchange",
    "Exporter",
    "Floor",
    "FlowKind",
    "FlowProfile",
    "FlowTrial",
    "Flows",
    "FlowsFound",
    "Forwarded",
    "ForwardedSessions",
    "GoalResult",
    "Group",
    "HardwareStamps",
    "HeldSessions",
    "HostCounter",
    "Impaired",
    "Interface",
    "InterfaceCounters",
    "Interval",
    "LatencyAt",
    "LatencyClock",
    "LinkEvent",
    "Loss",
    "LossAt",
    "Mesh",
    "MeshAsymmetry",
    "MeshHost",
    "MeshPair",
    "MeshServed",
    "MeshSlowest",
    "MeshValue",
    "MeshWorst",
    "Metering",
    "NatCounts",
    "NotTaken",
    "Note",
    "Opening",
    "Pacing",
    "Passage",
    "PortResult",
    "QueueCounters",
    "Reflection",
    "Repeated",
    "ReportData",
    "RequestedRate",
    "Resolved",
    "Returned",
    "RoundTrip",
    "Rx",
    "RxInterface",
    "SearchResult",
    "Served",
    "SessionCapacityFound",
    "SessionRateFound",
    "SessionTrial",
    "Sessions",
    "SessionsSearch",
    "SessionsServed",
    "SignedFrames",
    "SizeResult",
    "SocketBufferFound",
    "Source",
    "Spread",
    "Stamp",
    "StampClocks",
    "StampError",
    "StampReflection",
    "StampStrangers",
    "State",
    "Stopped",
    "Stream",
    "Throughput",
    "Totals",
    "Transactions",
    "TransactionsFound",
    "Trial",
    "TrialLatency",
    "Tx",
    "TxInterface",
    "UnderLoad",
    "Unfinished",
    "Verdict",
    "Written",
    "XdpProgram",
    "XdpVerdict",
]


class Achieved(Record):
    """What was achieved. A part that was not measured is left out."""

    adjustments: Rows[Adjustment]
    """What was changed by hand while the run lasted (`--tui`), in order."""
    agents: Rows[AgentPart]
    """What each agent did, where several carried out the job; what stands beside it is of all of them."""
    arrival_gap_ns: Distribution | None
    """Time from one arrival to the next, by receive queue."""
    capture: Capture | None
    """What was captured of what arrived."""
    cloned: Cloned | None
    """What became of sessions that were copied (`netdyno clone`)."""
    collection: Collection | None
    """What a flow collector received (`netdyno collect`)."""
    conversations: Rows[Conversation]
    """TCP connections that were played against a server (`netdyno live`)."""
    counters: Rows[HostCounter]
    """Counters of the hosts and interfaces that rose during the run."""
    delay_variation: DelayVariation | None
    """How delays vary (RFC 3393, RFC 3550)."""
    drops: Rows[Dropped]
    """What this host's kernel dropped meanwhile, where and why: frames of this test and of others, and in a lab those without
    a signature, too (`--trace-drops`). The most frequent first."""
    drops_traced: DropsTraced | None
    """What that comes to; left out where drops were not traced."""
    endpoint: Endpoint | None
    """What came of a test between two endpoints (`netdyno endpoint`)."""
    endpoint_search: EndpointSearch | None
    """What a search between two endpoints found (`netdyno search socket-buffer`, `netdyno search transactions`)."""
    flows: Flows | None
    """5-tuples among the frames that were sent."""
    forwarded: Forwarded | None
    """What became of sessions that were captured for a clone on another host (`netdyno clone capture`)."""
    frame_sizes: Rows[Bucket]
    """Frames by size in bytes, the FCS counted (a 60-byte buffer is a 64-byte frame)."""
    latency_clock: LatencyClock | None
    """The clock that the delays are by, and how far it may be wrong."""
    latency_ns: Distribution | None
    """Delay of signed frames, from departure to the meter: one way, or there and back if `round_trip`."""
    link_events: Rows[LinkEvent]
    """Times without a link while the run lasted, in order."""
    loss: Loss | None
    """What was sent and did not arrive."""
    mesh: Mesh | None
    """What came of endpoint tests between all pairs of some hosts (`netdyno endpoint --mesh`)."""
    metering: Metering | None
    """What a flow probe counted, and what became of its records (`netdyno probe`)."""
    pacing: Pacing | None
    """How the schedule was kept."""
    passages: Rows[Passage]
    """What went in each direction through a bridge (`netdyno bridge`)."""
    ports: Rows[PortResult]
    """What each port sent and what arrived of it, where several sent for themselves; `tx`, `rx` and `loss` are the sums."""
    reflection: Reflection | None
    """What became of the frames that arrived at a reflector (`netdyno reflect`)."""
    returned: Returned | None
    """What the return agent at a clone's target did (`netdyno clone return`)."""
    round_trip: bool
    """The frames were sent back by a reflector and measured where they had left: what arrived, was lost and took how long is
    of the way there and back. Left out when false."""
    rx: Rx | None
    """What arrived."""
    search: SearchResult | None
    """All that a search found."""
    served: Served | None
    """What a server of endpoint tests did (`netdyno endpoint serve`)."""
    sessions: Sessions | None
    """What became of TCP connections that were made without the host's TCP (`netdyno sessions`)."""
    sessions_search: SessionsSearch | None
    """What a search by TCP connections through a device found (`netdyno search sessions`, `netdyno search session-capacity`)."""
    sessions_served: SessionsServed | None
    """What was answered without the host's TCP (`netdyno sessions serve`)."""
    stamp: Stamp | None
    """What came of a session of STAMP (`netdyno endpoint stamp`)."""
    throughput: Throughput | None
    """The throughput that a search found: of the first frame size and goal, where there were several."""
    trials: Rows[Trial]
    """The trials, in the order they were done."""
    tx: Tx | None
    """What was sent."""
    verdict: Verdict
    """Whether it was done as asked."""
    xdp: XdpProgram | None
    """What the XDP program said that is the lab's device (`netdyno lab --dut-xdp`)."""

    _MEMBERS = {
        "adjustments": ("*Adjustment", ()),
        "agents": ("*AgentPart", ()),
        "arrival_gap_ns": ("Distribution", None),
        "capture": ("Capture", None),
        "cloned": ("Cloned", None),
        "collection": ("Collection", None),
        "conversations": ("*Conversation", ()),
        "counters": ("*HostCounter", ()),
        "delay_variation": ("DelayVariation", None),
        "drops": ("*Dropped", ()),
        "drops_traced": ("DropsTraced", None),
        "endpoint": ("Endpoint", None),
        "endpoint_search": ("EndpointSearch", None),
        "flows": ("Flows", None),
        "forwarded": ("Forwarded", None),
        "frame_sizes": ("*Bucket", ()),
        "latency_clock": ("LatencyClock", None),
        "latency_ns": ("Distribution", None),
        "link_events": ("*LinkEvent", ()),
        "loss": ("Loss", None),
        "mesh": ("Mesh", None),
        "metering": ("Metering", None),
        "pacing": ("Pacing", None),
        "passages": ("*Passage", ()),
        "ports": ("*PortResult", ()),
        "reflection": ("Reflection", None),
        "returned": ("Returned", None),
        "round_trip": ("", False),
        "rx": ("Rx", None),
        "search": ("SearchResult", None),
        "served": ("Served", None),
        "sessions": ("Sessions", None),
        "sessions_search": ("SessionsSearch", None),
        "sessions_served": ("SessionsServed", None),
        "stamp": ("Stamp", None),
        "throughput": ("Throughput", None),
        "trials": ("*Trial", ()),
        "tx": ("Tx", None),
        "verdict": ("Verdict", None),
        "xdp": ("XdpProgram", None),
    }


class Adjustment(Record):
    """A change made by hand: the run was paused, resumed, or its rate was changed."""

    at_ns: int
    """Time of the change, from the start of the run."""
    change: str
    """What was done."""
    rate_ratio: float
    """Rate from then on, as a share of the rate that was asked for; 1 is as asked."""

    _MEMBERS = {
        "at_ns": ("", None),
        "change": ("", None),
        "rate_ratio": ("", None),
    }


class AgentClock(Record):
    """How the clock (CLOCK_TAI) of an agent's host stands to that of the host where the job was asked for."""

    error_ns: int
    """The truth is no further from that than this, over the whole job."""
    offset_ns: int
    """How far it is ahead, in nanoseconds; below zero if it is behind."""
    round_trip_ns: int
    """The least round trip of the exchanges of time stamps."""
    same_host: bool
    """It is the same host's, by the number of its boot: then there is no error."""

    _MEMBERS = {
        "error_ns": ("", None),
        "offset_ns": ("", None),
        "round_trip_ns": ("", None),
        "same_host": ("", None),
    }


class AgentPart(Record):
    """What one agent did."""

    began_late_ns: int | None
    """How long after the common start its first frame left, by its own clock. Left out where it sent none, or where that was
    not measured."""
    clock: AgentClock | None
    """How its clock stands to this host's; left out where it was lost before that was known."""
    error: str | None
    """Why it has no report."""
    host: str | None
    """Name of its host."""
    measures_on: tuple[str, ...]
    """Where frames were measured: interfaces there."""
    name: str
    """What it is called."""
    report: ReportData | None
    """Its own report; left out where it was lost."""
    sends_on: tuple[str, ...]
    """Where its frames left: interfaces there."""

    _MEMBERS = {
        "began_late_ns": ("", None),
        "clock": ("AgentClock", None),
        "error": ("", None),
        "host": ("", None),
        "measures_on": ("*", ()),
        "name": ("", None),
        "report": ("ReportData", None),
        "sends_on": ("*", ()),
    }


class Bounds(Record):
    """Between which loads the answer lies."""

    failed: float | None
    """The least load known to fail."""
    passed: float | None
    """The greatest load known to pass."""

    _MEMBERS = {
        "failed": ("", None),
        "passed": ("", None),
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


class BufferPoint(Record):
    """One size of socket buffers."""

    best_ratio: float
    """The mean over the best mean."""
    buffer_bytes: int | None
    """What was asked for; left out for the kernel's own tuning."""
    loss_ratio: float | None
    """Datagrams that were lost, of those sent."""
    per_second: float
    """Mean of the results."""
    receive_buffer_bytes: int | None
    """What the kernel granted the receiver (SO_RCVBUF)."""
    receive_capped: bool
    """The receiver's kernel granted less than it doubles to: net.core.rmem_max is lower."""
    results: tuple[float, ...]
    """The result of each repetition."""
    retransmits: int | None
    """Segments that were sent again, in all repetitions."""
    rtt_ns: int | None
    """TCP's smoothed round-trip time, mean of the repetitions: a buffer that is too large fills queues."""
    send_buffer_bytes: int | None
    """What the kernel granted the sender (SO_SNDBUF, read when the last repetition was over): twice what was asked, unless a
    limit is in the way."""
    send_capped: bool
    """The sender's kernel granted less than it doubles to: net.core.wmem_max is lower."""
    width_ratio: float | None
    """The whole width of its confidence interval (Student's t), as a share of it; left out of a single one."""

    _MEMBERS = {
        "best_ratio": ("", None),
        "buffer_bytes": ("", None),
        "loss_ratio": ("", None),
        "per_second": ("", None),
        "receive_buffer_bytes": ("", None),
        "receive_capped": ("", False),
        "results": ("*", None),
        "retransmits": ("", None),
        "rtt_ns": ("", None),
        "send_buffer_bytes": ("", None),
        "send_capped": ("", False),
        "width_ratio": ("", None),
    }


class BurstFound(Record):
    """Back-to-back frames (RFC 9004)."""

    at_limit: bool
    """A burst of the greatest length passed: the buffer may be larger, and this is no result."""
    burst_frames_per_second: float
    """Bursts were sent at this rate, as measured."""
    corrected_buffer_s: float | None
    """That time less what the device forwarded meanwhile (RFC 9004, 6.2)."""
    frames: Spread
    """Lengths of the longest bursts that were forwarded whole, over all searches."""
    implied_buffer_s: float | None
    """The length of the mean burst in time."""
    longest_tried_frames: int | None
    """The longest burst that was tried (RFC 9004, 6)."""
    step_frames: int | None
    """The least step between lengths (RFC 9004, 6, asks to report it)."""
    throughput_frames_per_second: float | None
    """The throughput that the correction is made with (RFC 9004, 6)."""

    _MEMBERS = {
        "at_limit": ("", None),
        "burst_frames_per_second": ("", None),
        "corrected_buffer_s": ("", None),
        "frames": ("Spread", None),
        "implied_buffer_s": ("", None),
        "longest_tried_frames": ("", None),
        "step_frames": ("", None),
        "throughput_frames_per_second": ("", None),
    }


class Capture(Record):
    """A capture of what arrived."""

    arrived_frames: int
    """Frames that the meter counted."""
    bytes: int
    """Bytes of the frames in the capture."""
    events: int | None
    """Number of events (a lost, reordered or duplicated frame) around which frames were captured, where only these were asked
    for."""
    file: str
    """The file, or what names of several begin with."""
    files: tuple[str, ...]
    """Names of the files that exist, where there are several; the latest is last."""
    files_begun: int
    """Files that were begun."""
    frames: int
    """Frames in the capture."""
    missed_frames: int | None
    """Frames that were to be captured and were not: there was no room for them in memory, or the file could not be written."""
    wanted_frames: int | None
    """Number of frames after which the capture was to end."""

    _MEMBERS = {
        "arrived_frames": ("", None),
        "bytes": ("", None),
        "events": ("", None),
        "file": ("", None),
        "files": ("*", ()),
        "files_begun": ("", None),
        "frames": ("", None),
        "missed_frames": ("", None),
        "wanted_frames": ("", None),
    }


class CatchUp(Record):
    """What happened after the sender was held up (a stall) and had frames overdue."""

    abandoned_ns: int
    """Schedule time given up because it could not be caught up within the bound."""
    frames: int
    """Frames sent above the asked rate to catch up."""
    limit_bits_per_second: int | None
    """The bound by the link, over any millisecond, in bits on the wire (24 bytes more a frame): it holds where it is the
    higher one."""
    limit_burst_frames: int | None
    """Frames of a burst at most, by that bound."""
    longest_stall_ns: int
    """Length of the longest stall."""
    most_in_1ms: int | None
    """The most frames that were handed over within any millisecond of the run; of several sending threads at most so many."""
    most_received_in_1ms: int | None
    """The most frames that arrived within any millisecond, where all arrivals were timed."""
    rate_limit_ratio: float
    """The bound on the rate while catching up, over any millisecond, as a multiple of the rate asked for."""
    stalls: int
    """How often nothing left for more than 100 us although a frame was due and nothing kept it on purpose. How late frames are
    is something else: that adds up."""

    _MEMBERS = {
        "abandoned_ns": ("", None),
        "frames": ("", None),
        "limit_bits_per_second": ("", None),
        "limit_burst_frames": ("", None),
        "longest_stall_ns": ("", None),
        "most_in_1ms": ("", None),
        "most_received_in_1ms": ("", None),
        "rate_limit_ratio": ("", None),
        "stalls": ("", None),
    }


class Cause(Record):
    """A cause with what to do next; both are sentences without their full stop."""

    by: str
    """The kind of cause."""
    counter: HostCounter | None
    """The counter that rose most, where the cause is `counter`."""
    next: str | None
    """The next command to type; left out where nothing is to be done with a command."""
    said: str
    """What is seen, and what follows."""

    _MEMBERS = {
        "by": ("", None),
        "counter": ("HostCounter", None),
        "next": ("", None),
        "said": ("", None),
    }


class Choice(Record):
    """Something netdyno chose, with the reason it gives."""

    name: str
    """What was chosen: `xdp`, `packet`, ..."""
    not_taken: Rows[NotTaken]
    """What would have been taken rather, and why it was not possible; best first."""
    reason: str
    """Why it was chosen, in words."""

    _MEMBERS = {
        "name": ("", None),
        "not_taken": ("*NotTaken", ()),
        "reason": ("", None),
    }


class Cloned(Record):
    """What became of sessions that were copied (`netdyno clone`), stage by stage: the parts of each stage add up to the whole."""

    answers: ClonedAnswers | None
    """The answers of both servers beside each other."""
    bytes: ClonedBytes
    """Bytes that clients said in sessions that were copied."""
    connections: ClonedConnections
    """Connections to the target."""
    contradictions: tuple[str, ...]
    """What does not add up. There must be none."""
    cpu_ns: int | None
    """CPU time of the threads that copied, in nanoseconds."""
    dropped_frames: int
    """Frames that the kernel had no room for, or that never reached us: what was in them is not known."""
    frames: ClonedFrames
    """Frames that were captured."""
    noise: ClonedNoise | None
    """A second target, with what the server has: in what it answers otherwise, differences are noise."""
    not_forwarded_sessions: int | None
    """Of the sessions that were seen, those that captures on other hosts said they did not forward. Left out where there are
    no such captures."""
    sent: ClonedSent
    """Bytes that were to be said to the target."""
    sessions: ClonedSessions
    """Sessions."""
    turned_away: int | None
    """Connections to the port for captures on other hosts that were not let in: they did not show the key within three seconds
    or before too many others came, capture something else, speak another version, or found no room."""

    _MEMBERS = {
        "answers": ("ClonedAnswers", None),
        "bytes": ("ClonedBytes", None),
        "connections": ("ClonedConnections", None),
        "contradictions": ("*", ()),
        "cpu_ns": ("", None),
        "dropped_frames": ("", None),
        "frames": ("ClonedFrames", None),
        "noise": ("ClonedNoise", None),
        "not_forwarded_sessions": ("", None),
        "sent": ("ClonedSent", None),
        "sessions": ("ClonedSessions", None),
        "turned_away": ("", None),
    }


class ClonedAnswers(Record):
    """The answers of the server and of the target beside each other, request by request; of each session's first copy."""

    bodies_differ: int
    """Answers whose bodies have the same size and differ."""
    compared: int
    """Requests that both answered."""
    cut: int | None
    """An answer had not ended when copying did, or when its client or, in the midst of it, its server went away: it is not
    compared."""
    cut_short: int
    """Answers of the target whose bodies are equal to the server's, and less than their heads announce: the target closed or
    reset the connection before they were whole."""
    delay_ns: Distribution | None
    """Time from the capture of a request to when it was sent to the target."""
    differences: Rows[ClonedDifference]
    """What differs in answers, the most frequent first."""
    fields_differ: int
    """Answers whose bodies are equal and whose header fields differ."""
    in_part: int | None
    """Answers of those compared whose body at the server was captured in part: what was captured is compared, and its size."""
    lines_differ: int
    """They begin differently: the first of these six that holds is counted."""
    malformed: int
    """Answers of the target that break the rules by which a client finds their ends (chunk sizes that do not fit, lengths that
    contradict each other, more than was asked for), where the server's do not."""
    online_first_byte_ns: Distribution | None
    """Time from the last byte of a request to the first byte of the answer, at the server."""
    online_last_byte_ns: Distribution | None
    """Time from the last byte of a request to the last byte of the answer, at the server."""
    online_unanswered: int
    """Requests that the server did not answer, as far as the capture shows."""
    other_differences: int | None
    """Differences of kinds that are not listed."""
    requests: int
    """Requests, and greetings of servers that speak first. What became of each is one of: compared, unanswered by the server
    or the target, cut, unsaid, unfollowed."""
    same: int
    """Answers of those compared that are equal: in HTTP/1 the status line, the body and the header fields that do not differ
    by nature; in any other protocol every byte."""
    sizes_differ: int
    """They begin alike, and their bodies' sizes differ."""
    target_first_byte_ns: Distribution | None
    """Time from when a request was sent to the target to the first byte of its answer."""
    target_last_byte_ns: Distribution | None
    """Time from when a request was sent to the target to the last byte of its answer."""
    target_unanswered: int
    """Requests that the target did not answer, though the server did."""
    unfollowed: int | None
    """Requests of sessions that could not be followed to their end, whose answers are not known."""
    unframed_sessions: int
    """Sessions whose requests or answers could not be followed to their end."""
    unread_sessions: int | None
    """Sessions of which nothing is compared, because their messages cannot be separated (HTTP/2)."""
    unsaid: int | None
    """Requests that were never said to the target, because its connection was over."""

    _MEMBERS = {
        "bodies_differ": ("", 0),
        "compared": ("", None),
        "cut": ("", None),
        "cut_short": ("", 0),
        "delay_ns": ("Distribution", None),
        "differences": ("*ClonedDifference", ()),
        "fields_differ": ("", 0),
        "in_part": ("", None),
        "lines_differ": ("", None),
        "malformed": ("", 0),
        "online_first_byte_ns": ("Distribution", None),
        "online_last_byte_ns": ("Distribution", None),
        "online_unanswered": ("", None),
        "other_differences": ("", None),
        "requests": ("", 0),
        "same": ("", None),
        "sizes_differ": ("", None),
        "target_first_byte_ns": ("Distribution", None),
        "target_last_byte_ns": ("Distribution", None),
        "target_unanswered": ("", None),
        "unfollowed": ("", None),
        "unframed_sessions": ("", None),
        "unread_sessions": ("", None),
        "unsaid": ("", None),
    }


class ClonedBytes(Record):
    """Bytes that clients said in sessions that are copied."""

    behind_gaps: int
    """Never in order: behind a gap."""
    captured: int
    """Bytes that were captured, each counted once."""
    delivered: int
    """Bytes that were put in order and handed on to be sent to the target."""
    different: int
    """Captured again, and different."""
    repeated: int
    """Bytes that were captured again (retransmissions)."""
    wild: int
    """Too far ahead to belong to their connection."""

    _MEMBERS = {
        "behind_gaps": ("", None),
        "captured": ("", None),
        "delivered": ("", None),
        "different": ("", None),
        "repeated": ("", None),
        "wild": ("", None),
    }


class ClonedConnections(Record):
    """Connections to the target."""

    closed_early: int
    """Established connections that the target closed while the client still sent."""
    connected: int
    """Connections that were established."""
    failed: int
    """The kernel had another reason."""
    held_ends: int | None
    """Ends (FIN or RST) that were put off until the target had answered as the server had when the client ended."""
    impatient: int
    """Requests that were not held until their answer any more, because it did not come."""
    no_address: int
    """No address and port were free."""
    overfull: int
    """Established connections that were given up, because too many bytes waited for the target."""
    refused: int
    """Connections that the target refused."""
    reset_early: int
    """Established connections that the target reset while the client still sent."""
    timed_out: int
    """The target did not answer in time."""
    unanswered_ends: int | None
    """Ends among those that were put off no longer: the target had not answered after 10 s."""
    unfinished: int
    """The copying ended before."""
    wanted: int
    """Wanted: sessions times copies."""

    _MEMBERS = {
        "closed_early": ("", None),
        "connected": ("", None),
        "failed": ("", None),
        "held_ends": ("", None),
        "impatient": ("", None),
        "no_address": ("", None),
        "overfull": ("", None),
        "refused": ("", None),
        "reset_early": ("", None),
        "timed_out": ("", None),
        "unanswered_ends": ("", None),
        "unfinished": ("", None),
        "wanted": ("", None),
    }


class ClonedDifference(Record):
    """In what answers differ."""

    count: int
    """Number of answers that differ in this way."""
    example: str | None
    """What one of these requests began with; empty where that is not known."""
    first: ClonedPlace | None
    """Where the bodies of the first such pair of answers begin to differ, if that is within what is kept of them."""
    kind: str
    """`first_line`, `malformed`, `size` (of bodies), `body`, `cut_short` or `field` (of heads, trailers among them)."""
    noise: int | None
    """How often the second target's answers differ from the server's in the same respect (first lines, sizes, bodies, or the
    same field) where the server's began like this."""
    online: str
    """What the server's answer has."""
    target: str
    """What the target's answer has."""

    _MEMBERS = {
        "count": ("", None),
        "example": ("", None),
        "first": ("ClonedPlace", None),
        "kind": ("", None),
        "noise": ("", None),
        "online": ("", None),
        "target": ("", None),
    }


class ClonedFrames(Record):
    """Frames, and the segments in them."""

    captured: int
    """Frames that came from the capture."""
    fragments: int
    """Pieces of IP packets that never became whole."""
    from_clients: int
    """TCP segments from a client to the server."""
    from_server: int
    """TCP segments from the server to a client."""
    joined: int | None
    """Frames that held nothing but further pieces of packets that became whole: each packet is counted once, by what it is."""
    malformed: int
    """Frames whose headers cannot be read."""
    other_flows: int
    """TCP segments of other flows."""
    other_protocols: int
    """Frames of other protocols."""
    strays: int
    """Segments of no session: what comes behind its end, or without a beginning that could be one."""
    syn_acks: int
    """SYN segments with ACK among those from the server."""
    syn_acks_alone: int
    """SYN segments with ACK from the server whose SYN was not seen."""
    syns: int
    """SYN segments without ACK among those from clients."""
    truncated: int
    """Segments from clients of which a part was not captured: they are among the segments."""
    urgent: int | None
    """Segments with urgent data of copied sessions, which is sent as ordinary data: they are among those from clients."""

    _MEMBERS = {
        "captured": ("", None),
        "fragments": ("", None),
        "from_clients": ("", None),
        "from_server": ("", None),
        "joined": ("", None),
        "malformed": ("", None),
        "other_flows": ("", None),
        "other_protocols": ("", None),
        "strays": ("", None),
        "syn_acks": ("", None),
        "syn_acks_alone": ("", None),
        "syns": ("", None),
        "truncated": ("", None),
        "urgent": ("", None),
    }


class ClonedNoise(Record):
    """What became of copies to the second target: one of each session."""

    answers: ClonedAnswers
    """Its answers compared with the server's."""
    connections: ClonedConnections
    """Connections to the second target."""
    sent: ClonedSent
    """Bytes that were to be said to it."""
    target: str
    """Address and port of the second target."""

    _MEMBERS = {
        "answers": ("ClonedAnswers", None),
        "connections": ("ClonedConnections", None),
        "sent": ("ClonedSent", None),
        "target": ("", None),
    }


class ClonedPlace(Record):
    """Where two bodies begin to differ."""

    offset: int
    """The byte's number, from 0."""
    online: str
    """What the server's body has there, with some bytes before, escaped."""
    target: str
    """What the target's body has there."""

    _MEMBERS = {
        "offset": ("", None),
        "online": ("", None),
        "target": ("", None),
    }


class ClonedSent(Record):
    """Bytes that were to be said to the target."""

    after_close: int
    """Bytes not sent, because the target closed or reset the connection."""
    due: int
    """Delivered bytes times copies."""
    overfull: int
    """Bytes not sent, because too many bytes waited."""
    received: int
    """Bytes that the target answered."""
    reset: int
    """Bytes not sent, because the client reset its connection."""
    sent: int
    """Bytes that the sockets accepted."""
    unconnected: int
    """Bytes not sent, because the connection was not established."""
    unfinished: int
    """Bytes not sent, because the run ended."""

    _MEMBERS = {
        "after_close": ("", None),
        "due": ("", None),
        "overfull": ("", None),
        "received": ("", None),
        "reset": ("", None),
        "sent": ("", None),
        "unconnected": ("", None),
        "unfinished": ("", None),
    }


class ClonedSessions(Record):
    """Sessions by what became of them."""

    adopted: int
    """Sessions that are copied from somewhere in between."""
    copied: int
    """Sessions that are copied from their beginning."""
    gaps: int
    """Copied sessions that ended with a gap, because a segment was neither captured nor retransmitted."""
    half_open: int
    """SYNs whose connection was never established."""
    idle: int
    """Ended because nothing came for long."""
    midstream: int
    """Open before the start, and never adopted."""
    missed: int
    """Copied sessions that ended, because the server has bytes that the capture does not have."""
    over_ceiling: int | None
    """Sessions not copied, because copying took more of the machine than it may."""
    over_link: int | None
    """The way from a capture on another host had no room, or was not there."""
    over_rate: int
    """Sessions not copied, because there were too many new ones per second."""
    over_sessions: int
    """Sessions not copied, because there were too many at once."""
    own: int
    """Sessions that are our copies come back: from our addresses, or from the target."""
    ramped_out: int
    """Sessions not copied, because the number of copies is raised gradually, as was asked."""
    refused: int
    """Sessions that the server refused."""
    replaced: int
    """Ended by a new one of the same addresses and ports."""
    sampled_out: int
    """Sessions not copied, because the sampling did not choose them."""
    seen: int
    """Sessions that were seen on the wire."""
    shed: int | None
    """Copied sessions that were given up, because copying took far more of the machine than it may."""
    tls: int | None
    """Speaking TLS from their first byte, which the target has other keys for."""
    too_early: int
    """Copied sessions that ended, because more segments were out of order than there is room for."""
    truncated: int
    """Copied sessions that ended, because a segment was captured in part."""
    turned_tls: int | None
    """Copied sessions that ended, because they turned to TLS (STARTTLS)."""
    unforwarded: int | None
    """Copied sessions that were given up by a capture on another host: the connection from it had no room for a segment, or
    broke."""
    waiting: int
    """Open before the start, and waiting for a moment to be adopted."""

    _MEMBERS = {
        "adopted": ("", None),
        "copied": ("", None),
        "gaps": ("", None),
        "half_open": ("", None),
        "idle": ("", None),
        "midstream": ("", None),
        "missed": ("", None),
        "over_ceiling": ("", None),
        "over_link": ("", None),
        "over_rate": ("", None),
        "over_sessions": ("", None),
        "own": ("", None),
        "ramped_out": ("", None),
        "refused": ("", None),
        "replaced": ("", None),
        "sampled_out": ("", None),
        "seen": ("", None),
        "shed": ("", None),
        "tls": ("", None),
        "too_early": ("", None),
        "truncated": ("", None),
        "turned_tls": ("", None),
        "unforwarded": ("", None),
        "waiting": ("", None),
    }


class Collection(Record):
    """What a flow collector received (`netdyno collect`)."""

    by_exporter: Rows[Exporter]
    """Each of them, those with the most records first."""
    closed_connections: int | None
    """TCP connections that were closed here, because a message could not be read or there was no room."""
    connections: int | None
    """TCP connections that exporters made."""
    dropped_messages: int
    """Messages that the kernel had no room for, or that still waited a second after the end, at least (of those that it had
    joined on their way it counts several as one): this collector lost them, no exporter did."""
    dropped_samples: int | None
    """Samples that agents of sFlow say they dropped for lack of resources."""
    duplicate_messages: int
    """Messages whose sequence numbers had arrived before."""
    duplicate_records: int
    """Flow records in duplicate messages: these are in `records` and in what is written, too."""
    exporters: int
    """Exporters; of those that are forgotten each address counts once. `(others)` are none."""
    forgotten_exporters: int | None
    """Exporters (addresses and ports) that were silent for hours, or gave way to others."""
    late_messages: int
    """Messages that came behind later ones; what they hold is not missing."""
    malformed_messages: int
    """Messages that could not be read to their end."""
    message_bytes: int
    """Bytes of the messages."""
    messages: int
    """Messages that were received."""
    miscounted_messages: int | None
    """Messages whose counts or lengths disagree with what was read in them: the header of NetFlow v9 counts other records, a
    datagram of sFlow has more samples or records than it counts, or a set ends with more than padding."""
    missing_messages: int
    """Messages that did not arrive, by the exporters' sequence numbers (NetFlow v9, sFlow)."""
    missing_records: int
    """Records that did not arrive, by the exporters' sequence numbers (NetFlow v5, IPFIX)."""
    missing_samples: int | None
    """Samples that did not arrive, by the numbers that the sources of sFlow give them."""
    octets: int
    """Bytes of IP that the flow records count."""
    options_records: int
    """Options records that were received."""
    packets: int
    """Packets that the flow records count."""
    records: int
    """Flow records that were received."""
    records_per_second: float | None
    """Records a second, from the first message to the last; left out where all came at one moment."""
    refused_templates: int | None
    """Templates and observation domains that had no room, or lost it to others."""
    reserved_sets: int | None
    """Sets of reserved numbers, which were passed over (RFC 7011, 3.3.2)."""
    restarts: int
    """Number of times that an exporter restarted its counting. What was lost around a restart is not known."""
    sinks: Rows[Written]
    """Places where records were written, each with counts of its own."""
    templates: int
    """Templates, each as often as it came."""
    trimmed_records: int | None
    """Records that were written without some of their fields that have no column, because they had no room."""
    uncounted_records: int | None
    """Records that did not arrive, or arrived in sets without a template: which of the two cannot be known (IPFIX)."""
    unknown_sampling_records: int | None
    """Records whose exporter does not say its sampling rate: how many packets they stand for is not known."""
    unmetered_packets: int
    """Packets that exporters report as not metered (`ignoredPacketTotalCount`), since this collector listens."""
    unread_samples: int | None
    """Samples of sFlow that gave no record: not of IP, cut off before the addresses, or of an unknown kind."""
    unread_sets: int
    """Sets of records whose template never came, or came too late."""
    unsent_records: int
    """Records that exporters report as not sent (`notSentFlowTotalCount`), since this collector listens."""
    unwritten_records: int
    """Records for which a writer had no room or no disk: the most of `sinks`."""
    written_records: int
    """Records that were written wherever they were to be written: the least of `sinks`. One of both directions is written as
    two."""

    _MEMBERS = {
        "by_exporter": ("*Exporter", ()),
        "closed_connections": ("", None),
        "connections": ("", None),
        "dropped_messages": ("", None),
        "dropped_samples": ("", None),
        "duplicate_messages": ("", 0),
        "duplicate_records": ("", 0),
        "exporters": ("", None),
        "forgotten_exporters": ("", None),
        "late_messages": ("", None),
        "malformed_messages": ("", None),
        "message_bytes": ("", None),
        "messages": ("", None),
        "miscounted_messages": ("", None),
        "missing_messages": ("", None),
        "missing_records": ("", None),
        "missing_samples": ("", None),
        "octets": ("", None),
        "options_records": ("", None),
        "packets": ("", None),
        "records": ("", None),
        "records_per_second": ("", None),
        "refused_templates": ("", None),
        "reserved_sets": ("", None),
        "restarts": ("", None),
        "sinks": ("*Written", ()),
        "templates": ("", None),
        "trimmed_records": ("", None),
        "uncounted_records": ("", None),
        "unknown_sampling_records": ("", None),
        "unmetered_packets": ("", None),
        "unread_samples": ("", None),
        "unread_sets": ("", None),
        "unsent_records": ("", None),
        "unwritten_records": ("", None),
        "written_records": ("", None),
    }


class Collector(Record):
    """Where records went."""

    connections: int | None
    """Connections that were made to it (TCP)."""
    lost_messages: int | None
    """Messages of records that found no room while it took none, or were on their way when the connection broke (TCP)."""
    messages: int
    """Messages that were sent there, those of templates and of the probe among them, less those that were refused."""
    refused_messages: int
    """Messages that the collector's host answered with an ICMP error, or that could not be sent. A host sends at most about
    one such error per second, so over a network more may have been refused."""
    to: str
    """Address and port of the collector, with `tcp://` before them over TCP."""

    _MEMBERS = {
        "connections": ("", None),
        "lost_messages": ("", None),
        "messages": ("", None),
        "refused_messages": ("", None),
        "to": ("", None),
    }


class Conversation(Record):
    """A played connection."""

    acknowledged_bytes: int
    """Bytes of those sent that the server acknowledged."""
    captured_client: str
    """Address and port of the captured client and server."""
    captured_end: str
    """Who ended it, in the capture and now: `client`, `server`, `reset by client`, `reset by server`, `open`."""
    captured_server: str
    """Address and port of the captured server."""
    client_bytes: int
    """Bytes that the client says, and how many of them the server acknowledged."""
    duplicate_bytes: int
    """Bytes of the server that came again."""
    duration_ns: int
    """Time from the first segment to the last."""
    end: str
    """Who ended the connection in this run."""
    exchanges: Rows[Exchange]
    """Words of the client with the answers to them, in order."""
    expected_bytes: int
    """Bytes that the server said in the capture, and now."""
    flow: int
    """Its number in the capture, from 0, as Wireshark's tcp.stream."""
    from_: str
    """Address and port that it was played from, and to."""
    out_of_order_segments: int
    """Segments of the server that came out of order, or brought bytes again."""
    outcome: str
    """How it went."""
    reason: str | None
    """What stopped it before its end."""
    received_bytes: int
    """Bytes that the server said now."""
    retransmission_timeouts: int
    """Times that nothing was acknowledged in time (RFC 6298)."""
    retransmitted_segments: int
    """Segments of those sent that were retransmissions."""
    rtt_ns: RoundTrip | None
    """Left out where nothing was timed."""
    segments_received: int
    """Segments that came from the server."""
    segments_sent: int
    """Segments that the client sent, retransmissions counted."""
    to: str
    """Address and port that it was played to."""
    window_probes: int
    """Times that a closed window was asked whether it has opened."""

    _MEMBERS = {
        "acknowledged_bytes": ("", None),
        "captured_client": ("", None),
        "captured_end": ("", None),
        "captured_server": ("", None),
        "client_bytes": ("", None),
        "duplicate_bytes": ("", None),
        "duration_ns": ("", None),
        "end": ("", None),
        "exchanges": ("*Exchange", None),
        "expected_bytes": ("", None),
        "flow": ("", None),
        "from_": ("", None),
        "out_of_order_segments": ("", None),
        "outcome": ("", None),
        "reason": ("", None),
        "received_bytes": ("", None),
        "retransmission_timeouts": ("", None),
        "retransmitted_segments": ("", None),
        "rtt_ns": ("RoundTrip", None),
        "segments_received": ("", None),
        "segments_sent": ("", None),
        "to": ("", None),
        "window_probes": ("", None),
    }


class Core(Record):
    """One sending core."""

    bytes: int
    """Bytes of those, layer 2 without FCS."""
    core: int
    """The CPU's number."""
    cpu_ratio: float | None
    """CPU time used over wall time, 0 to 1."""
    frames: int
    """Frames that it sent."""
    others_ratio: float | None
    """The part of the time in which the sending thread was ready to run and others had this CPU, as the kernel counts it."""
    waiting_ratio: float | None
    """The part of that in which it only waited for frames' times, awake; left out at top speed."""

    _MEMBERS = {
        "bytes": ("", None),
        "core": ("", None),
        "cpu_ratio": ("", None),
        "frames": ("", None),
        "others_ratio": ("", None),
        "waiting_ratio": ("", None),
    }


class CounterChange(Record):
    """A counter that moved."""

    after: int | None
    """Left out of a counter that only the first snapshot has."""
    before: int | None
    """Left out of a counter that only the second snapshot has."""
    by: int | None
    """By how much it rose; left out where that cannot be known."""
    irregular: str | None
    """What is not as usual with it."""
    name: str
    """Its name: `Tcp.RetransSegs`."""
    per_second: float | None
    """Rise per second; left out where no time passed."""

    _MEMBERS = {
        "after": ("", None),
        "before": ("", None),
        "by": ("", None),
        "irregular": ("", None),
        "name": ("", None),
        "per_second": ("", None),
    }


class CounterNote(Record):
    """What follows from counters, by a rule."""

    rule: str
    """The rule's code: `udp-receiver-too-slow`."""
    text: str
    """For a person."""
    weight: str
    """How much it matters."""

    _MEMBERS = {
        "rule": ("", None),
        "text": ("", None),
        "weight": ("", None),
    }


class CountersDifference(Record):
    """What changed between two snapshots of one network namespace. Counters that did not move are left out."""

    gauges: Rows[State]
    """Gauges that are different."""
    groups: Rows[Group]
    """Counters that moved, by what they are about."""
    host: str | None
    """The host's name."""
    namespace: str | None
    """The network namespace: `net:[4026531840]`."""
    notes: Rows[CounterNote]
    """What follows from them, by stated rules (docs/counters.md)."""
    retransmitted_share: float | None
    """Segments that TCP sent again, as a share of Tcp.OutSegs; left out where none were sent."""
    seconds: float
    """From the first snapshot to the second, by CLOCK_MONOTONIC."""

    _MEMBERS = {
        "gauges": ("*State", ()),
        "groups": ("*Group", None),
        "host": ("", None),
        "namespace": ("", None),
        "notes": ("*CounterNote", ()),
        "retransmitted_share": ("", None),
        "seconds": ("", None),
    }


class Datagrams(Record):
    """What became of datagrams."""

    dropped_by_receiver: int | None
    """Lost datagrams that reached the receiver's host and found no room in its socket: no loss of the network. Where its
    kernel joins datagrams (UDP_GRO) it counts several as one: there were as many at least. Left out where the end that
    received cannot be asked (a server of iperf3's or netperf's protocol)."""
    duplicated: int | None
    """Datagrams that arrived again. Left out where the result does not tell them apart: there each may hide a datagram that
    was lost."""
    jitter_ns: int | None
    """Interarrival jitter (RFC 3550, 6.4.1). Left out where it is not measured (netperf's protocol)."""
    loss_ratio: float
    """Lost datagrams over those sent (0 to 1)."""
    lost: int
    """Sent and not received: `sent`, less `received`, duplicates not counted."""
    received: int
    """Datagrams that were received, duplicates among them."""
    received_per_second: float | None
    """Datagrams received per second; left out where all came at one moment, which has no rate."""
    refused_by_sender: int | None
    """Refused by the sender's own host (ENOBUFS): not among those sent. Left out where the end that sent cannot be asked."""
    reordered: int | None
    """Arrived after one that was sent later. Left out where the end that received cannot be asked."""
    sent: int
    """Handed to the sender's kernel in the measured time, by the time that each has in it."""
    size_bytes: int
    """Bytes of payload of each."""

    _MEMBERS = {
        "dropped_by_receiver": ("", None),
        "duplicated": ("", None),
        "jitter_ns": ("", None),
        "loss_ratio": ("", None),
        "lost": ("", None),
        "received": ("", None),
        "received_per_second": ("", None),
        "refused_by_sender": ("", None),
        "reordered": ("", None),
        "sent": ("", None),
        "size_bytes": ("", None),
    }


class DelayVariation(Record):
    """How the delay varies from frame to frame."""

    ipdv_ns: Distribution | None
    """Difference between the delays of one frame of a stream and the next that arrived, without sign (RFC 8219, 7.3.2)."""
    jitter_ns: float | None
    """Interarrival jitter (RFC 3550, 6.4.1) at the end: of several streams the greatest."""
    pdv_ns: int
    """The 99.9th percentile of the delay over its minimum (RFC 8219, 7.3.1)."""

    _MEMBERS = {
        "ipdv_ns": ("Distribution", None),
        "jitter_ns": ("", None),
        "pdv_ns": ("", None),
    }


class Departures(Record):
    """When frames left, as the interface stamped them: some of them, one at a time."""

    asked_frames: int
    """Frames whose stamps were asked for."""
    clock_error_ns: int
    """Largest error of these times, because the stamps are of another clock."""
    handing_ns: Distribution | None
    """Time from when a frame was handed to the kernel to when it left."""
    lateness_ns: Distribution | None
    """How long after its time a frame left; one that was early counts as 0. Left out at top speed."""
    stamped_by: str
    """Who stamped them: `hardware`, or `driver` (when it handed a frame to the hardware)."""
    stamped_frames: int
    """Frames of those asked for that were stamped."""

    _MEMBERS = {
        "asked_frames": ("", None),
        "clock_error_ns": ("", None),
        "handing_ns": ("Distribution", None),
        "lateness_ns": ("Distribution", None),
        "stamped_by": ("", None),
        "stamped_frames": ("", None),
    }


class Difference(Record):
    """Where an answer begins to differ, with some bytes of both."""

    captured: str
    """Bytes of the captured answer, in hexadecimal."""
    live: str
    """Bytes of the answer in this run, in hexadecimal."""
    offset: int
    """Offset of the difference in the captured answer, from 0."""
    shown_from: int
    """Offset of the first byte that is shown."""

    _MEMBERS = {
        "captured": ("", None),
        "live": ("", None),
        "offset": ("", None),
        "shown_from": ("", None),
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


class DropBacklog(Record):
    """What a CPU's backlog dropped."""

    cpu: int
    """Its number."""
    dropped: int
    """By so much its counter of drops rose during the run (/proc/net/softnet_stat)."""
    time_squeeze: int
    """So often its time or budget was over meanwhile while frames were left (`time_squeeze` there)."""

    _MEMBERS = {
        "cpu": ("", None),
        "dropped": ("", None),
        "time_squeeze": ("", None),
    }


class DropQueue(Record):
    """What a queueing discipline dropped."""

    dropped: int
    """By so much its counter of drops rose during the run."""
    handle: str
    """Its handle: `8001:`."""
    kind: str
    """`tbf`, `fq_codel`; `clsact` and `ingress`, where filters drop."""
    parent: str
    """`root`, or the class that it is in: `1:10`."""

    _MEMBERS = {
        "dropped": ("", None),
        "handle": ("", None),
        "kind": ("", None),
        "parent": ("", None),
    }


class DropRule(Record):
    """A rule of nftables, or the policy of a chain, that dropped frames or can have."""

    certain: bool
    """It dropped frames of this cause: nothing else can have dropped all of them."""
    chain: str
    """Its chain."""
    counted: int | None
    """By so many packets its own counter rose during the run. Left out of one without a counter."""
    family: str
    """`ip`, `ip6`, `inet`, `arp`, `bridge`, `netdev`."""
    handle: int | None
    """Its handle, as `nft --handle list ruleset` shows it. Left out of a chain's policy."""
    table: str
    """Its table."""
    text: str | None
    """Its words. Left out where nft is not installed."""

    _MEMBERS = {
        "certain": ("", None),
        "chain": ("", None),
        "counted": ("", None),
        "family": ("", None),
        "handle": ("", None),
        "table": ("", None),
        "text": ("", None),
    }


class Dropped(Record):
    """Frames that the kernel dropped at one place for one reason."""

    backlogs: Rows[DropBacklog]
    """Where a CPU's backlog was full: the CPUs that counted drops meanwhile, frames of others included."""
    by_interval: tuple[int, ...]
    """How many in each of the result's `intervals`, by when they were dropped: of the causes that lost the most frames of a
    run. Those of the others are in `drops_traced.over_time`."""
    bytes: int | None
    """Their bytes, as the kernel counts them at that place: perhaps without headers that it had taken off."""
    copies: int | None
    """Copies that were dropped while another one was held, as by a bridge that floods: the frames went on, or are counted
    where their last copy was dropped."""
    first_ns: int
    """When the first one was dropped, to about 10 ms, from the beginning on: of a run with intervals from its first frame on."""
    frames: int
    """How many. A frame of which another copy was held meanwhile is not among them."""
    function: str
    """The function of the kernel that dropped them; `(hidden)` where the kernel does not tell its names. Of `xdp` the
    tracepoint."""
    interface: str | None
    """The interface that they were at, or had come in by."""
    kind: str
    """Whose."""
    last_ns: int
    """When the last one was dropped."""
    measured: bool
    """The meter had counted them before: they arrived, and are no part of the loss."""
    namespace: int | None
    """The number of its network namespace, where that is not the one of the command."""
    namespace_unknown: bool
    """Nothing says in which network namespace they were: they lay in a socket that was closed, or belonged to no interface any
    more."""
    outside_frames: int | None
    """Those dropped before the first interval or after the last one: with them `by_interval` comes to `frames`."""
    port: int | None
    """The destination port of TCP, UDP or SCTP."""
    protocol: str | None
    """`udp`, `tcp`, `arp`, or a number: 0x88cc of EtherTypes, `ip 89` of IP."""
    queues: Rows[DropQueue]
    """Where traffic control dropped them: the queueing disciplines at that interface that counted drops meanwhile, frames of
    others included. One with classes counts what is dropped within it, too."""
    reason: str
    """Why, in the kernel's own word: `NO_SOCKET`, `NETFILTER_DROP`. `NOT_SPECIFIED` where it gives none."""
    refused: bool
    """The kernel refused these frames to their sender, which tried again or gave them up: they are attempts, no frames that
    were sent, and no part of the loss."""
    rules: Rows[DropRule]
    """Where netfilter dropped them: the rules that did, or can have. All of them are possible; which are certain, they say."""
    rules_uncertain: str | None
    """Why it is not certain which rule it was."""
    streams: Rows[DroppedOfStream]
    """Which of the test's frames, by stream."""

    _MEMBERS = {
        "backlogs": ("*DropBacklog", ()),
        "by_interval": ("*", ()),
        "bytes": ("", None),
        "copies": ("", None),
        "first_ns": ("", None),
        "frames": ("", None),
        "function": ("", None),
        "interface": ("", None),
        "kind": ("", None),
        "last_ns": ("", None),
        "measured": ("", False),
        "namespace": ("", None),
        "namespace_unknown": ("", False),
        "outside_frames": ("", None),
        "port": ("", None),
        "protocol": ("", None),
        "queues": ("*DropQueue", ()),
        "reason": ("", None),
        "refused": ("", False),
        "rules": ("*DropRule", ()),
        "rules_uncertain": ("", None),
        "streams": ("*DroppedOfStream", ()),
    }


class DroppedOfStream(Record):
    """Frames of one stream."""

    first_ns: int
    """When the first one was dropped."""
    first_sequence: int
    """The sequence number of the first one, in the order of time."""
    frames: int
    """How many."""
    highest_sequence: int
    """The highest of them."""
    last_ns: int
    """When the last one was dropped."""
    last_sequence: int
    """The sequence number of the last one."""
    lowest_sequence: int
    """The lowest of them."""
    stream: int
    """Its number."""

    _MEMBERS = {
        "first_ns": ("", None),
        "first_sequence": ("", None),
        "frames": ("", None),
        "highest_sequence": ("", None),
        "last_ns": ("", None),
        "last_sequence": ("", None),
        "lowest_sequence": ("", None),
        "stream": ("", None),
    }


class DropsOverTime(Record):
    """The loss over time, beside `by_interval` of the causes that lost most."""

    not_seen_by_interval: tuple[int, ...]
    """Lost frames in each interval that this kernel did not drop, as far as the times of two kinds allow: a loss counts where
    the frame was sent, a drop where it was dropped. They come to `not_seen_frames`."""
    others_by_interval: tuple[int, ...]
    """Frames in each of the result's `intervals` that other causes dropped; left out where there are none."""
    outside_frames: int | None
    """Frames that all causes dropped before the first interval or after the last one."""

    _MEMBERS = {
        "not_seen_by_interval": ("*", ()),
        "others_by_interval": ("*", ()),
        "outside_frames": ("", None),
    }


class DropsTraced(Record):
    """What the drops of a run come to (`--trace-drops`)."""

    named_frames: int
    """Frames of this test that this kernel dropped before they were measured: the part of the loss of which the cause is
    known."""
    not_seen_frames: int | None
    """Lost frames that this kernel did not drop: a NIC, a program of XDP or another machine did."""
    notes: tuple[str, ...]
    """What the reader should know."""
    other_frames: int | None
    """Frames without a signature that were dropped meanwhile in the same network namespaces and are not in `drops`."""
    over_time: DropsOverTime | None
    """What of the loss was when. Left out where nothing was followed: without intervals, and where a note says why."""
    unlisted_frames: int | None
    """Frames of which it is not known whose they were: there were too many different causes, or two drops at once on a CPU, or
    the kernel did not say in which network namespace they were."""

    _MEMBERS = {
        "named_frames": ("", None),
        "not_seen_frames": ("", None),
        "notes": ("*", ()),
        "other_frames": ("", None),
        "over_time": ("DropsOverTime", None),
        "unlisted_frames": ("", None),
    }


class End(Record):
    """One end: its host, its sockets, and what it spent."""

    busy_cores: float | None
    """What of them was in use, by all programs and interrupts, in cores (1.0: one core all the time)."""
    congestion: str | None
    """Congestion control of its connections."""
    cores: int | None
    """Number of the host's processors."""
    counters: CountersDifference | None
    """What the kernel counted there in the measured time."""
    cwnd_bytes: int | None
    """Sum of the congestion windows of its connections at the end of the test."""
    kernel: str | None
    """Release of the kernel."""
    memory: EndpointMemory | None
    """What its connections took of memory."""
    min_rtt_ns: int | None
    """Least round-trip time of its connections."""
    mptcp: bool
    """Whether Multipath TCP was used; left out where it was not asked for."""
    mss_bytes: int | None
    """Largest segment of TCP (MSS)."""
    peak_core_ratio: float | None
    """Use of the busiest processor."""
    process_cores: float | None
    """Used by the process of this end's program alone, in cores: without interrupts."""
    program: str | None
    """Version of netdyno at this end."""
    receive_buffer_bytes: int | None
    """Size of its receive buffer (SO_RCVBUF)."""
    retransmits: int | None
    """Segments that this end retransmitted in the measured time."""
    rtt_ns: int | None
    """Mean smoothed round-trip time of its connections at the end of the test."""
    send_buffer_bytes: int | None
    """Send buffer of the first socket when the test was over, as the kernel has it (SO_SNDBUF): the kernel counts its own use
    in."""
    service_demand_ns_per_kib: float | None
    """CPU time of the whole host for 1,024 bytes of payload, in ns (netperf's service demand): of streams."""
    service_demand_ns_per_transaction: float | None
    """CPU time of the host per transaction."""
    settings: dict[str, Any] | None
    """The host's settings that bear on connections (net.ipv4.tcp_rmem, ...), by name."""
    shared: bool
    """Other clients' tests ran at this end meanwhile."""
    softirq_cores: float | None
    """Processors of the host that were in use for soft interrupts, where the network's work is done."""
    zerocopy_calls: int | None
    """Calls with MSG_ZEROCOPY that completed."""
    zerocopy_copied: int | None
    """Calls with MSG_ZEROCOPY whose data the kernel copied after all."""

    _MEMBERS = {
        "busy_cores": ("", None),
        "congestion": ("", None),
        "cores": ("", None),
        "counters": ("CountersDifference", None),
        "cwnd_bytes": ("", None),
        "kernel": ("", None),
        "memory": ("EndpointMemory", None),
        "min_rtt_ns": ("", None),
        "mptcp": ("", False),
        "mss_bytes": ("", None),
        "peak_core_ratio": ("", None),
        "process_cores": ("", None),
        "program": ("", None),
        "receive_buffer_bytes": ("", None),
        "retransmits": ("", None),
        "rtt_ns": ("", None),
        "send_buffer_bytes": ("", None),
        "service_demand_ns_per_kib": ("", None),
        "service_demand_ns_per_transaction": ("", None),
        "settings": ("", None),
        "shared": ("", False),
        "softirq_cores": ("", None),
        "zerocopy_calls": ("", None),
        "zerocopy_copied": ("", None),
    }


class Endpoint(Record):
    """What came of a test between two endpoints. Bytes and bits are payload: without any headers."""

    client: str | None
    """Own address on the control connection; left out over a Unix socket."""
    confidence: Repeated | None
    """Repetitions, and how sure the result is."""
    connections: int
    """Connections at once in each direction, or flows of datagrams."""
    intervals: Rows[EndpointInterval]
    """The test over time."""
    local: End
    """The end on this host."""
    opening: Opening | None
    """Connections that were to be opened, and what failed of them."""
    remote: End | None
    """The server's; left out where it could not be asked any more."""
    server: str
    """Address of the server."""
    streams: Rows[EndpointStream]
    """Bytes that went, a direction each."""
    test: str
    """The test: `tcp-stream`, `udp-rr`, ..."""
    transactions: Transactions | None
    """Requests that were answered."""
    under_load: UnderLoad | None
    """Transactions by themselves and beside streams."""
    warm_up_ns: int | None
    """What came in so long before was not measured."""
    windows_apart_ns: int | None
    """Largest difference between the measured times of both ends: with a warm-up, each end begins to measure when it is over
    by its own clock."""

    _MEMBERS = {
        "client": ("", None),
        "confidence": ("Repeated", None),
        "connections": ("", None),
        "intervals": ("*EndpointInterval", ()),
        "local": ("End", None),
        "opening": ("Opening", None),
        "remote": ("End", None),
        "server": ("", None),
        "streams": ("*EndpointStream", ()),
        "test": ("", None),
        "transactions": ("Transactions", None),
        "under_load": ("UnderLoad", None),
        "warm_up_ns": ("", None),
        "windows_apart_ns": ("", None),
    }


class EndpointInterval(Record):
    """A stretch of the test. Times count from its start; the warm-up is among them."""

    bytes: int
    """Bytes of payload that this end sent and received, or the bytes of its transactions."""
    count: int | None
    """Transactions that were answered, or datagrams."""
    cwnd_bytes: int | None
    """Sum of congestion windows."""
    delivery_bits_per_second: float | None
    """Rate at which data arrived, as the sender's kernel reckons."""
    end_ns: int
    """When it ends."""
    latency_p50_ns: int | None
    """Median latency of the transactions that were answered in this stretch."""
    latency_p99_ns: int | None
    """The 99th percentile of the same."""
    retransmits: int | None
    """Segments that were sent again in this stretch."""
    rtt_ns: int | None
    """Mean smoothed round-trip time at its end, as the sender's kernel has it."""
    start_ns: int
    """When it begins."""

    _MEMBERS = {
        "bytes": ("", None),
        "count": ("", None),
        "cwnd_bytes": ("", None),
        "delivery_bits_per_second": ("", None),
        "end_ns": ("", None),
        "latency_p50_ns": ("", None),
        "latency_p99_ns": ("", None),
        "retransmits": ("", None),
        "rtt_ns": ("", None),
        "start_ns": ("", None),
    }


class EndpointMemory(Record):
    """What an end's connections took of memory, with all of them open: what was in use then, less what was before them. The
    kernel's is of the whole host: of both ends where they are on one, and of what other programs did."""

    connections: int
    """Connections that were open."""
    kernel_buffer_bytes: int | None
    """Memory of TCP's buffers (mem of TCP in /proc/net/sockstat)."""
    kernel_slab_bytes: int | None
    """The kernel's slab memory: sockets, files, entries of epoll (Slab in /proc/meminfo)."""
    process_bytes: int | None
    """Resident memory of netdyno's process."""

    _MEMBERS = {
        "connections": ("", None),
        "kernel_buffer_bytes": ("", None),
        "kernel_slab_bytes": ("", None),
        "process_bytes": ("", None),
    }


class EndpointSearch(Record):
    """What a search between two endpoints found."""

    complete: bool
    """Whether the search ended by itself; if not, it can be continued."""
    connections: int
    """Connections at once."""
    counts: str
    """What `per_second` counts: `bits` of payload that the receiver got, or `transactions`."""
    elapsed_ns: int
    """Time that it took in all."""
    kind: str
    """`socket-buffer` or `transactions`."""
    local_settings: dict[str, Any] | None
    """Settings of this host that bear on connections (net.core.wmem_max, ...), by name."""
    remote_settings: dict[str, Any] | None
    """Settings of the server's host that bear on connections, by name."""
    server: str
    """Address of the server."""
    socket_buffer: SocketBufferFound | None
    """What was found about socket buffers."""
    test: str
    """The test that was done again and again: `tcp-stream`, `udp-rr`, ..."""
    transactions: TransactionsFound | None
    """The highest rate of transactions that was found."""
    trial_ns: int
    """How long each trial was measured."""
    trials: Rows[EndpointTrial]
    """All trials, in the order they were done."""
    warm_up_ns: int
    """Time before each trial's measured time that is not measured."""

    _MEMBERS = {
        "complete": ("", None),
        "connections": ("", None),
        "counts": ("", None),
        "elapsed_ns": ("", None),
        "kind": ("", None),
        "local_settings": ("", None),
        "remote_settings": ("", None),
        "server": ("", None),
        "socket_buffer": ("SocketBufferFound", None),
        "test": ("", None),
        "transactions": ("TransactionsFound", None),
        "trial_ns": ("", None),
        "trials": ("*EndpointTrial", ()),
        "warm_up_ns": ("", None),
    }


class EndpointStream(Record):
    """Bytes in one direction."""

    datagrams: Datagrams | None
    """Counts of datagrams; left out for streams of TCP, and where an end could not be asked: what was lost is known of both
    together."""
    from_client: bool
    """The client sent, else the server."""
    received_bits_per_second: float | None
    """Bits a second that it got: the throughput. Left out where all came at one moment, of which there is no rate."""
    received_bytes: int | None
    """Bytes that the receiver got in its own measured time; of datagrams of those that `sent_bytes` counts. Left out where it
    could not be asked."""
    received_ns: int | None
    """How long that was: the time that was asked for, or longer if bytes still came, by its clock from the first to the last.
    Until an amount was done, the latter alone."""
    sent_at_least: bool
    """The sender could not be asked: it sent what was received, at least."""
    sent_bits_per_second: float
    """Bits per second that the sender handed to its kernel."""
    sent_bytes: int
    """Bytes that the sender handed to its kernel in the measured time; of datagrams those whose own time lies in it."""
    sent_ns: int
    """Length of the sender's measured time."""

    _MEMBERS = {
        "datagrams": ("Datagrams", None),
        "from_client": ("", None),
        "received_bits_per_second": ("", None),
        "received_bytes": ("", None),
        "received_ns": ("", None),
        "sent_at_least": ("", False),
        "sent_bits_per_second": ("", None),
        "sent_bytes": ("", None),
        "sent_ns": ("", 0),
    }


class EndpointTrial(Record):
    """One trial."""

    at_percentile_ns: int | None
    """Value of the percentile that is bounded."""
    buffer_bytes: int | None
    """Size of the buffers, asked for as SO_SNDBUF and SO_RCVBUF at both ends; left out where the kernel tunes."""
    intended_per_second: float | None
    """The rate that was offered; left out where the test ran as fast as possible."""
    latency_ns: TrialLatency | None
    """How long transactions took: with a rate, from when each was due."""
    lost: int | None
    """Datagrams, or transactions over UDP, that were lost."""
    min_rtt_ns: int | None
    """Least round-trip time of TCP."""
    number: int
    """Number of the trial, from 1."""
    per_second: float
    """What came of it: bits or transactions a second."""
    receive_buffer_bytes: int | None
    """The receiver's buffer when the trial was over, as the kernel has it (SO_RCVBUF)."""
    retransmits: int | None
    """Segments that were retransmitted."""
    rtt_ns: int | None
    """Smoothed round-trip time of TCP at the end of the trial."""
    send_buffer_bytes: int | None
    """The sender's buffer when it was over, as the kernel has it (SO_SNDBUF)."""
    sent: int | None
    """Datagrams that were sent."""
    stage: str
    """`sweep`; or `estimate` (a closed loop), `search`, `confirm`."""
    unsent: int | None
    """Requests that were due and not sent within the trial."""
    verdict: str
    """`done`, or `nothing arrived`; of a rate `passed`, or `latency` (above the bound), `lost`, `not carried` (fewer
    transactions than were due)."""

    _MEMBERS = {
        "at_percentile_ns": ("", None),
        "buffer_bytes": ("", None),
        "intended_per_second": ("", None),
        "latency_ns": ("TrialLatency", None),
        "lost": ("", None),
        "min_rtt_ns": ("", None),
        "number": ("", None),
        "per_second": ("", None),
        "receive_buffer_bytes": ("", None),
        "retransmits": ("", None),
        "rtt_ns": ("", None),
        "send_buffer_bytes": ("", None),
        "sent": ("", None),
        "stage": ("", None),
        "unsent": ("", None),
        "verdict": ("", None),
    }


class Environment(Record):
    """The machine, the software and the choices they led to."""

    clocksource: str | None
    """The kernel's clock source: `tsc`, `kvm-clock`, ..."""
    cpu_model: str | None
    """Model of the CPU, as /proc/cpuinfo has it."""
    cpus: int | None
    """CPUs this process may run on."""
    engine: Choice | None
    """The engine that sent, and why it was chosen."""
    governor: str | None
    """The frequency governor, `performance` when figures are to be trusted."""
    hostname: str | None
    """The machine's name."""
    interfaces: Rows[Interface]
    """The interfaces that took part."""
    kernel: str | None
    """The kernel's release, as of `uname -r`."""
    meter: Choice | None
    """How the receiver measured (`xdp`, `xdp-generic`, `packet`), and why."""
    netdyno_commit: str | None
    """The commit it was built from, where that is known."""
    netdyno_version: str
    """Version of the netdyno that ran."""
    started: str | None
    """When the run began, as RFC 3339 writes it, in UTC."""
    tuning: dict[str, Any] | None
    """Settings of the kernel's network stack that figures depend on, by the names of sysctl(8) (`net.ipv4.tcp_rmem`), as
    netdyno's own network namespace has them. Those that cannot be read are left out."""

    _MEMBERS = {
        "clocksource": ("", None),
        "cpu_model": ("", None),
        "cpus": ("", None),
        "engine": ("Choice", None),
        "governor": ("", None),
        "hostname": ("", None),
        "interfaces": ("*Interface", ()),
        "kernel": ("", None),
        "meter": ("Choice", None),
        "netdyno_commit": ("", None),
        "netdyno_version": ("", None),
        "started": ("", None),
        "tuning": ("", None),
    }


class Exchange(Record):
    """Words of the client, and the server's answer to them."""

    asked_at_ns: int | None
    """When the last byte of the request was sent, from the start of the run. Left out where the server speaks first, or
    nothing was sent."""
    captured_first_byte_ns: int | None
    """Time from the last byte of the request to the first byte of the answer in the capture."""
    captured_last_byte_ns: int | None
    """Time from the last byte of the request to the last byte of the answer in the capture."""
    client_bytes: int
    """Bytes that the client says."""
    difference: Difference | None
    """The first place where the answer is another."""
    expected_bytes: int
    """Bytes of the answer in the capture."""
    first_byte_ns: int | None
    """Time from the last byte of the request to the first byte of the answer in this run."""
    last_byte_ns: int | None
    """Time from the last byte of the request to the last byte of the answer in this run."""
    not_compared_bytes: int
    """Bytes that the capture does not have, and that were taken as they came."""
    received_bytes: int
    """Bytes of the answer in this run."""

    _MEMBERS = {
        "asked_at_ns": ("", None),
        "captured_first_byte_ns": ("", None),
        "captured_last_byte_ns": ("", None),
        "client_bytes": ("", None),
        "difference": ("Difference", None),
        "expected_bytes": ("", None),
        "first_byte_ns": ("", None),
        "last_byte_ns": ("", None),
        "not_compared_bytes": ("", None),
        "received_bytes": ("", None),
    }


class Exporter(Record):
    """An exporter: an address and port, or ADDR:* for ports of an address that are heard no more; over TCP `tcp://` and an
    address, all connections from there together. `(others)`: who had no room here, and datagrams that were no messages."""

    dropped_samples: int | None
    """Samples that agents of sFlow say they dropped for lack of resources."""
    duplicate_messages: int
    """Messages whose sequence numbers had arrived before."""
    duplicate_records: int
    """Flow records in duplicate messages: these are in `records` and in what is written, too."""
    from_: str
    """Address and port that its messages come from."""
    late_messages: int
    """Messages that came behind later ones; what they hold is not missing."""
    malformed_messages: int
    """Messages that could not be read to their end."""
    message_bytes: int
    """Bytes of the messages."""
    messages: int
    """Messages that were received."""
    miscounted_messages: int | None
    """Messages whose counts or lengths disagree with what was read in them: the header of NetFlow v9 counts other records, a
    datagram of sFlow has more samples or records than it counts, or a set ends with more than padding."""
    missing_messages: int
    """Messages that did not arrive, by the exporters' sequence numbers (NetFlow v9, sFlow)."""
    missing_records: int
    """Records that did not arrive, by the exporters' sequence numbers (NetFlow v5, IPFIX)."""
    missing_samples: int | None
    """Samples that did not arrive, by the numbers that the sources of sFlow give them."""
    octets: int
    """Bytes of IP that the flow records count."""
    options_records: int
    """Options records that were received."""
    packets: int
    """Packets that the flow records count."""
    records: int
    """Flow records that were received."""
    refused_templates: int | None
    """Templates and observation domains that had no room, or lost it to others."""
    reserved_sets: int | None
    """Sets of reserved numbers, which were passed over (RFC 7011, 3.3.2)."""
    restarts: int
    """Number of times that an exporter restarted its counting. What was lost around a restart is not known."""
    templates: int
    """Templates, each as often as it came."""
    uncounted_records: int | None
    """Records that did not arrive, or arrived in sets without a template: which of the two cannot be known (IPFIX)."""
    unknown_sampling_records: int | None
    """Records whose exporter does not say its sampling rate: how many packets they stand for is not known."""
    unmetered_packets: int
    """Packets that exporters report as not metered (`ignoredPacketTotalCount`), since this collector listens."""
    unread_samples: int | None
    """Samples of sFlow that gave no record: not of IP, cut off before the addresses, or of an unknown kind."""
    unread_sets: int
    """Sets of records whose template never came, or came too late."""
    unsent_records: int
    """Records that exporters report as not sent (`notSentFlowTotalCount`), since this collector listens."""

    _MEMBERS = {
        "dropped_samples": ("", None),
        "duplicate_messages": ("", 0),
        "duplicate_records": ("", 0),
        "from_": ("", None),
        "late_messages": ("", None),
        "malformed_messages": ("", None),
        "message_bytes": ("", None),
        "messages": ("", None),
        "miscounted_messages": ("", None),
        "missing_messages": ("", None),
        "missing_records": ("", None),
        "missing_samples": ("", None),
        "octets": ("", None),
        "options_records": ("", None),
        "packets": ("", None),
        "records": ("", None),
        "refused_templates": ("", None),
        "reserved_sets": ("", None),
        "restarts": ("", None),
        "templates": ("", None),
        "uncounted_records": ("", None),
        "unknown_sampling_records": ("", None),
        "unmetered_packets": ("", None),
        "unread_samples": ("", None),
        "unread_sets": ("", None),
        "unsent_records": ("", None),
    }


class Floor(Record):
    """What the way takes without the device: the least that can be measured."""

    min_ns: int
    """The shortest delay."""
    of: str
    """Where the floor is from."""
    typical_ns: int
    """The median delay."""

    _MEMBERS = {
        "min_ns": ("", None),
        "of": ("", None),
        "typical_ns": ("", None),
    }


class FlowKind(Record):
    """Flows of a profile that differ in nothing but their keys."""

    duration_ns: int
    """Time from the first packet of a flow to the last."""
    flows: int | None
    """How many; left out without end."""
    packets: int
    """Packets of each."""
    protocol: str
    """Transport protocol: `tcp`, `udp` or `icmp`."""
    share: float
    """Part of the profile's flows, 0 to 1."""

    _MEMBERS = {
        "duration_ns": ("", None),
        "flows": ("", None),
        "packets": ("", None),
        "protocol": ("", None),
        "share": ("", None),
    }


class FlowProfile(Record):
    """What a flow profile of a scenario comes to, by arithmetic."""

    concurrent_flows: float
    """Flows under way at a time while as many begin as end; those of one packet last no time."""
    different_flows: int
    """So many flows have different keys (addresses, ports, protocol); then keys come again."""
    flows: int | None
    """Flows in all; left out without end."""
    flows_per_second: float
    """New flows per second."""
    frames: int | None
    """Frames of all flows; left out without end."""
    frames_per_second: float
    """Frames per second while as many flows begin as end."""
    kinds: Rows[FlowKind]
    """Flows by protocol, packets and duration."""
    name: str
    """Name of the profile."""

    _MEMBERS = {
        "concurrent_flows": ("", None),
        "different_flows": ("", None),
        "flows": ("", None),
        "flows_per_second": ("", None),
        "frames": ("", None),
        "frames_per_second": ("", None),
        "kinds": ("*FlowKind", None),
        "name": ("", None),
    }


class FlowTrial(Record):
    """What a probe's records say of the flows that were sent to it (RFC 6645)."""

    cache_flows: int
    """Flows that are in the cache at once, by the rate and the idle timeout."""
    cache_lost_flows: int
    """Lost inside: flows without a record and without a gap in the records' numbers. Where it is not known what the port lost,
    that is among them."""
    collector_lost_messages: int
    """Messages that arrived and that this collector lost: with any the trial says nothing of the probe."""
    control_records: int
    """Templates and records of options among them."""
    export_lost_records: int
    """Lost on the way out: records that are missing by their numbers, or that the probe says it did not send. Of NetFlow v9
    messages are numbered, and records are by a guess."""
    export_records_per_second: float | None
    """The Flow Export Rate: records that came while the trial was sent, over the measurement interval. Left out where none
    came in that time: what came later is no rate of it."""
    foreign_records: int
    """Records of flows that were not sent."""
    late_records: int
    """Records of flows of earlier trials."""
    measured_ns: int
    """The measurement interval (RFC 6645, 5.2): the time of sending less the idle timeout, or less the time in which the cache
    is filled if that is shorter."""
    message_bytes: int
    """Bytes of the export messages, from the version field on."""
    messages: int
    """Export messages that were received."""
    partial_flows: int
    """Flows of which records have some."""
    port_lost_packets: int | None
    """Lost on the way in: packets that the probe's port or its socket had no room for, where that is known."""
    recorded_flows: int
    """Flows of which records have all packets."""
    recorded_packets: int
    """Packets of flows that were sent, as records have them."""
    records: int
    """Records of these flows."""
    sent_flows: int
    """Flows that were sent."""
    sent_packets: int
    """Packets of the flows that were sent."""
    split_records: int
    """Records beyond a flow's first: it was cut before its time."""
    surplus_packets: int
    """Packets that records have beyond those that were sent."""
    unread_sets: int | None
    """Sets of records whose template did not come: with any, what is in them counts as lost in the cache."""
    wrong_fields_records: int
    """Records with another type of service than was sent."""
    wrong_octets_records: int
    """Records whose number of bytes is not that of the packets' IP (octetDeltaCount)."""
    wrong_times_records: int
    """Records whose times are not the trial's, by more than 2 ms."""

    _MEMBERS = {
        "cache_flows": ("", None),
        "cache_lost_flows": ("", None),
        "collector_lost_messages": ("", None),
        "control_records": ("", None),
        "export_lost_records": ("", None),
        "export_records_per_second": ("", None),
        "foreign_records": ("", None),
        "late_records": ("", None),
        "measured_ns": ("", None),
        "message_bytes": ("", None),
        "messages": ("", None),
        "partial_flows": ("", None),
        "port_lost_packets": ("", None),
        "recorded_flows": ("", None),
        "recorded_packets": ("", None),
        "records": ("", None),
        "sent_flows": ("", None),
        "sent_packets": ("", None),
        "split_records": ("", None),
        "surplus_packets": ("", None),
        "unread_sets": ("", None),
        "wrong_fields_records": ("", None),
        "wrong_octets_records": ("", None),
        "wrong_times_records": ("", None),
    }


class Flows(Record):
    """Flows among the frames sent: distinct directed 5-tuples."""

    expired: int | None
    """Flows among `flows` that had been seen before, and were silent for longer than a flow lives, where flows expire."""
    flow_frames: int
    """Frames that belong to a flow."""
    flows: int
    """Different 5-tuples."""
    flows_per_second: float
    """New flows a second over the whole run."""
    non_flow_frames: int
    """Frames that do not (ARP, other link-layer protocols)."""

    _MEMBERS = {
        "expired": ("", None),
        "flow_frames": ("", None),
        "flows": ("", None),
        "flows_per_second": ("", None),
        "non_flow_frames": ("", None),
    }


class FlowsFound(Record):
    """The highest rate of new flows that a probe recorded without loss, with what RFC 6645, appendix A, asks to report."""

    active_timeout_ns: int
    """Active timeout of the probe, as it was configured or as its user says."""
    bytes_per_record: float
    """Bytes of messages per record."""
    cache_flows: int
    """Flows that were in the cache at once, by the rate and the idle timeout."""
    cache_size_flows: int | None
    """Flows that the probe's cache has room for, as it was configured or as its user says."""
    control_records: int
    """Templates and options records that were received."""
    created_flows: int
    """Flows that the last trial at this rate created."""
    export_records_per_second: float | None
    """The Flow Export Rate: records that came while the trial was sent, over the measurement interval; left out where none
    came in that time."""
    failed_flows_per_second: float | None
    """The least rate that did not pass; left out when the greatest that was tried passed."""
    flows_per_second: float
    """The Flow Monitoring Throughput: each flow had a record, and each record was right in its packets."""
    idle_timeout_ns: int
    """Idle timeout of the probe, as it was configured or as its user says."""
    key_order: str
    """Order of the flows' keys: `random` or `linear`."""
    packets_per_flow: int
    """Packets of each flow."""
    probe: str
    """The probe: `netdyno`, `softflowd`, `pmacct`, a command, or `elsewhere`."""
    reached: bool
    """The bounds came as near as was asked, or the range ends there."""
    records_per_message: float
    """Records in a message, on average."""

    _MEMBERS = {
        "active_timeout_ns": ("", None),
        "bytes_per_record": ("", None),
        "cache_flows": ("", None),
        "cache_size_flows": ("", None),
        "control_records": ("", None),
        "created_flows": ("", None),
        "export_records_per_second": ("", None),
        "failed_flows_per_second": ("", None),
        "flows_per_second": ("", None),
        "idle_timeout_ns": ("", None),
        "key_order": ("", None),
        "packets_per_flow": ("", None),
        "probe": ("", None),
        "reached": ("", None),
        "records_per_message": ("", None),
    }


class Forwarded(Record):
    """What became of sessions that were captured for a clone on another host (`netdyno clone capture`)."""

    arrived_sessions: int | None
    """Forwarded sessions that the clone had of it. Left out where the clone was no part of the same job."""
    connections: int
    """Connections to the clone that were established."""
    cpu_ns: int
    """CPU time in nanoseconds."""
    dropped_frames: int
    """Frames that the kernel had no room for."""
    duration_ns: int
    """How long it ran, in nanoseconds."""
    frames: int
    """Frames that were captured."""
    from_clients: int
    """Segments among the frames that came from clients."""
    from_server: int
    """Segments among the frames that came from the server."""
    lost_bytes: int
    """Bytes of records that were thrown away, because the connection broke."""
    on: str
    """The interface where they were captured."""
    queued_bytes: int
    """Bytes of records, before encryption, that were put in the queue to the clone."""
    seed: int | None
    """The seed by which sessions were chosen; left out where all were."""
    send_to: str
    """The clone that they went to."""
    sent_bytes: int
    """Bytes that the connection took, encrypted."""
    sessions: ForwardedSessions
    """Sessions by what became of them."""

    _MEMBERS = {
        "arrived_sessions": ("", None),
        "connections": ("", None),
        "cpu_ns": ("", None),
        "dropped_frames": ("", None),
        "duration_ns": ("", None),
        "frames": ("", None),
        "from_clients": ("", None),
        "from_server": ("", None),
        "lost_bytes": ("", None),
        "on": ("", None),
        "queued_bytes": ("", None),
        "seed": ("", None),
        "send_to": ("", None),
        "sent_bytes": ("", None),
        "sessions": ("ForwardedSessions", None),
    }


class ForwardedSessions(Record):
    """Captured sessions by what became of them."""

    forwarded: int
    """Sessions that were forwarded from their beginning."""
    half_open: int
    """Not forwarded: SYNs whose connection was never established."""
    lost: int
    """Forwarded sessions that were given up, because the connection to the clone broke."""
    midstream: int
    """Not forwarded: sessions that were open before the start."""
    over_ceiling: int
    """Not forwarded: sessions beyond what may be taken of the machine."""
    over_link: int
    """Not forwarded: sessions for which there was no room on the way to the clone, or no clone."""
    over_rate: int
    """Not forwarded: sessions beyond the rate."""
    over_sessions: int
    """Not forwarded: sessions beyond the number that may be open at once."""
    refused: int
    """Not forwarded: sessions that the server refused."""
    sampled_out: int
    """Not forwarded: sessions that the sampling did not choose."""
    shed: int
    """Forwarded sessions that were given up, because there was no room for a segment, or because they took too much of the
    machine."""

    _MEMBERS = {
        "forwarded": ("", None),
        "half_open": ("", None),
        "lost": ("", None),
        "midstream": ("", None),
        "over_ceiling": ("", None),
        "over_link": ("", None),
        "over_rate": ("", None),
        "over_sessions": ("", None),
        "refused": ("", None),
        "sampled_out": ("", None),
        "shed": ("", None),
    }


class GoalResult(Record):
    """What came of one goal of a search for the throughput."""

    failed_frames_per_second: float | None
    """The least load that is known not to keep it."""
    goal: str
    """The limits that had to be kept: `loss 0 %`, ..."""
    outcome: str
    """`found`; `nothing passed` (not even the least load); `not determined` (trials could not be judged, or the search did not
    converge: only the bounds beside it are known); `unfinished` (the search was ended before its end)."""
    passed_frames_per_second: float | None
    """The greatest load that is known to keep the goal; of a goal that was `found` its throughput. Left out of one that is
    `unfinished`, whose trials say less."""

    _MEMBERS = {
        "failed_frames_per_second": ("", None),
        "goal": ("", None),
        "outcome": ("", None),
        "passed_frames_per_second": ("", None),
    }


class Group(Record):
    """Counters about one thing."""

    changes: Rows[CounterChange]
    """Those that moved, by name."""
    topic: str
    """What they are about."""

    _MEMBERS = {
        "changes": ("*CounterChange", None),
        "topic": ("", None),
    }


class HardwareStamps(Record):
    """Times of arrival that the hardware took."""

    frames: int
    """Frames that it stamped."""
    max_error_ns: int
    """Most by which its clock was off from what comparisons with this host's had led to expect, their own error included."""
    set_ns: int | None
    """Amount by which its clock was set during the run."""
    software_frames: int
    """Frames that came without a stamp and were timed by software."""

    _MEMBERS = {
        "frames": ("", None),
        "max_error_ns": ("", None),
        "set_ns": ("", None),
        "software_frames": ("", None),
    }


class HeldSessions(Record):
    """Connections that were held open."""

    answered_again: int
    """Those of them that had a whole answer."""
    asked: int
    """So many were to be held."""
    closing_ns: int
    """How long it took to close those that were left."""
    from_server: bool
    """They were used again from the other side: those that were answered are those to which a datagram came that the server
    sent to the address and port that it had seen."""
    held: int
    """So many were when all had been opened: answered, and neither side had closed."""
    opening_ns: int
    """How long it took until then."""
    used_again: int
    """Those that were asked once more at the end."""
    using_ns: int
    """How long that took."""

    _MEMBERS = {
        "answered_again": ("", None),
        "asked": ("", None),
        "closing_ns": ("", None),
        "from_server": ("", False),
        "held": ("", None),
        "opening_ns": ("", None),
        "used_again": ("", None),
        "using_ns": ("", None),
    }


class HostCounter(Record):
    """A counter that rose during the run, by frames of this run or of others."""

    explains: str | None
    """Frames that it counts are gone: why, and what helps."""
    name: str
    """Name of the counter at that place."""
    own_frames: int | None
    """Part of the rise that is frames which arrived and were measured: some drivers count as dropped what the meter's program
    drops after counting it."""
    place: str
    """The interface at whose end it was read, or `this machine`."""
    rise: int
    """By how much it rose during the run."""
    source: str
    """Who counts: `interface` (`ip -s link`), `driver` (`ethtool -S`), `stack` (`nstat`), `cores` (`/proc/net/softnet_stat`);
    of a lab's device also `queue` (`tc -s qdisc`), `rule` (nftables) and `impair` (its program)."""

    _MEMBERS = {
        "explains": ("", None),
        "name": ("", None),
        "own_frames": ("", None),
        "place": ("", None),
        "rise": ("", None),
        "source": ("", None),
    }


class Impaired(Record):
    """What a device with known faults did to the frames of one direction, besides what it forwarded."""

    copied_frames: int | None
    """Copies, among the forwarded."""
    corrupted_frames: int | None
    """Frames with a bit that was flipped."""
    flapped_frames: int | None
    """Lost in the times in which it was to lose everything."""
    frozen_frames: int | None
    """Held in the times in which it was to hold everything."""
    full_frames: int | None
    """Lost because too many waited already."""
    inside_frames: int | None
    """Still waiting when the device ended, and lost with it."""
    lateness_ns: Distribution | None
    """How long after the time they were due frames left."""
    lost_frames: int
    """Frames lost, as was asked."""
    reordered_frames: int | None
    """Put back behind others, or by a time."""
    returned_frames: int | None
    """Copies that went back where they came from; not among the forwarded."""

    _MEMBERS = {
        "copied_frames": ("", None),
        "corrupted_frames": ("", None),
        "flapped_frames": ("", None),
        "frozen_frames": ("", None),
        "full_frames": ("", None),
        "inside_frames": ("", None),
        "lateness_ns": ("Distribution", None),
        "lost_frames": ("", None),
        "reordered_frames": ("", None),
        "returned_frames": ("", None),
    }


class Interface(Record):
    """A network interface that took part."""

    carrier_wait_ns: int | None
    """How long its carrier was waited for before the run began, because the driver took the link down when a program was
    attached, or because it was down before; left out where it was always there."""
    driver: str | None
    """Name of the driver, where it is known."""
    mtu: int | None
    """The longest packet that it carries, in bytes without the Ethernet header."""
    name: str
    """Its name, in its network namespace."""
    offloads: tuple[str, ...]
    """Offloads that are on, by ethtool's names."""
    qdisc: str | None
    """Its queueing disciplines, the root first: `fq_codel`, `mq fq_codel`, `noqueue`."""
    role: str | None
    """`send`, `measure`, `reflect`, `send and measure`, ..."""
    rx_queues: int | None
    """Receive queues."""
    speed_bits_per_second: int | None
    """The link's speed; left out where the driver has none (veth)."""
    tx_queues: int | None
    """Transmit queues."""

    _MEMBERS = {
        "carrier_wait_ns": ("", None),
        "driver": ("", None),
        "mtu": ("", None),
        "name": ("", None),
        "offloads": ("*", ()),
        "qdisc": ("", None),
        "role": ("", None),
        "rx_queues": ("", None),
        "speed_bits_per_second": ("", None),
        "tx_queues": ("", None),
    }


class InterfaceCounters(Record):
    """How far an interface's own transmit counters moved during the run."""

    beyond_layer2_bytes: int | None
    """Bytes that the interface counted of each frame beyond those of layer 2 without FCS: 4 where it counts the FCS. Left out
    where it counted other frames, too."""
    confirmed_by: str | None
    """Who saw the frames leave."""
    driver_xdp_frames: int | None
    """Rise of the driver's own counter of frames that XDP programs and AF_XDP sockets sent, where it has one."""
    foreign_frames: int
    """Frames the counter saw that were not ours (`tx_packets` above `sent_frames`)."""
    interface: str
    """The interface."""
    missing_frames: int
    """Frames counted as sent that the interface did not see (`tx_packets` below `sent_frames`)."""
    queue: QueueCounters | None
    """What the root queueing discipline in front of the interface let through and dropped, where frames went by one."""
    sent_buffers: int | None
    """What of `sent_frames` was handed over in one piece counted once (super-frames: GSO, GRO); left out where that is the
    same. The interface counts either."""
    sent_frames: int
    """Frames this program handed to the interface."""
    tx_bytes: int | None
    """Rise of its `tx_bytes`, as the driver counts them."""
    tx_dropped: int | None
    """Rise of its `tx_dropped`."""
    tx_errors: int | None
    """Rise of its `tx_errors`."""
    tx_packets: int
    """Rise of the interface's `tx_packets`."""

    _MEMBERS = {
        "beyond_layer2_bytes": ("", None),
        "confirmed_by": ("", None),
        "driver_xdp_frames": ("", None),
        "foreign_frames": ("", None),
        "interface": ("", None),
        "missing_frames": ("", None),
        "queue": ("QueueCounters", None),
        "sent_buffers": ("", None),
        "sent_frames": ("", None),
        "tx_bytes": ("", None),
        "tx_dropped": ("", None),
        "tx_errors": ("", None),
        "tx_packets": ("", None),
    }


class Interval(Record):
    """A stretch of the run. Times count from the run's start."""

    end_ns: int
    """When it ends."""
    intended_frames: int | None
    """Frames the schedule asked for in this stretch; left out at top speed."""
    late_frames: int | None
    """Frames that left later than the threshold in `pacing`."""
    latency_max_ns: int | None
    """The longest delay."""
    latency_p50_ns: int | None
    """The median delay of the frames that arrived."""
    latency_p999_ns: int | None
    """The 99.9th percentile of the delay."""
    latency_p99_ns: int | None
    """The 99th percentile of the delay."""
    lost_frames: int | None
    """Frames sent in this stretch that never arrived: by their numbers if all are signed, else by counts of both ends. Left
    out where none was sent."""
    rx_bytes: int | None
    """Bytes of those, layer 2 without FCS."""
    rx_frames: int | None
    """Frames that arrived."""
    start_ns: int
    """When it begins."""
    tx_bytes: int | None
    """Bytes of those, layer 2 without FCS."""
    tx_frames: int | None
    """Frames that were sent."""

    _MEMBERS = {
        "end_ns": ("", None),
        "intended_frames": ("", None),
        "late_frames": ("", None),
        "latency_max_ns": ("", None),
        "latency_p50_ns": ("", None),
        "latency_p999_ns": ("", None),
        "latency_p99_ns": ("", None),
        "lost_frames": ("", None),
        "rx_bytes": ("", None),
        "rx_frames": ("", None),
        "start_ns": ("", None),
        "tx_bytes": ("", None),
        "tx_frames": ("", None),
    }


class LatencyAt(Record):
    """Latency at a load, over several trials (RFC 2544, 26.2; RFC 8219, 7.2 and 7.3)."""

    floor: Floor | None
    """What of it is not the device's."""
    frame_to_frame_max_ns: int | None
    """The greatest such difference."""
    frame_to_frame_typical_ns: int | None
    """Median over the trials of the median difference between the delays of a frame and the next (RFC 8219, 7.3.2)."""
    frame_to_frame_worst_ns: int | None
    """Median over the trials of the 99.9th percentile of that difference."""
    frames_per_second: float
    """The load, of each sending port."""
    jitter_ns: int | None
    """Median of the trials' jitters (RFC 3550)."""
    max_ns: int
    """The longest delay of all trials."""
    mean_ns: float
    """The mean of the trials' means."""
    min_ns: int
    """The shortest delay of all trials."""
    repetitions: int
    """Number of trials."""
    typical_ns: int
    """Median of the trials' medians."""
    variation_ns: int
    """Median of the trials' packet delay variations: 99.9th percentile less minimum."""
    worst_case_ns: int
    """Median of the trials' 99.9th percentiles."""

    _MEMBERS = {
        "floor": ("Floor", None),
        "frame_to_frame_max_ns": ("", None),
        "frame_to_frame_typical_ns": ("", None),
        "frame_to_frame_worst_ns": ("", None),
        "frames_per_second": ("", None),
        "jitter_ns": ("", None),
        "max_ns": ("", None),
        "mean_ns": ("", None),
        "min_ns": ("", None),
        "repetitions": ("", None),
        "typical_ns": ("", None),
        "variation_ns": ("", None),
        "worst_case_ns": ("", None),
    }


class LatencyClock(Record):
    """The clock of time stamps."""

    arrivals: str | None
    """Who timed the arrivals: `hardware` or `software`."""
    comparison_error_ns: int | None
    """The most by which delays may be wrong because the clocks of both hosts are compared by exchanges of time stamps, which
    take time; 0: it is one host."""
    estimated_error_ns: int | None
    """Estimated error of the clock (adjtimex(2): esterror)."""
    hardware: HardwareStamps | None
    """What the hardware's time stamps are worth."""
    max_error_ns: int | None
    """The most by which this host's clock may be off, as the kernel knows it (adjtimex(2): maxerror). That of the other host
    comes on top."""
    name: str
    """`monotonic`: one host's own, without error between sender and meter; `tai`: one that hosts share."""
    stepped_ns: int | None
    """Amount by which the clock was set during the run: delays before and after cannot be compared."""
    synchronised: bool
    """Whether a daemon (PTP, NTP) keeps the clock."""

    _MEMBERS = {
        "arrivals": ("", None),
        "comparison_error_ns": ("", None),
        "estimated_error_ns": ("", None),
        "hardware": ("HardwareStamps", None),
        "max_error_ns": ("", None),
        "name": ("", None),
        "stepped_ns": ("", None),
        "synchronised": ("", False),
    }


class LinkEvent(Record):
    """An interface of the run had no link for a time. What was sent meanwhile is lost, and not by the device under test."""

    at_ns: int
    """When it was noticed, from the start of the run: at once, or up to 50 ms late."""
    between_looks: bool
    """The link came and went between two readings, which are at `at_ns` and `duration_ns` later: it was down for less than
    that. Left out when false."""
    duration_ns: int | None
    """Left out where the link had not come back when the run ended."""
    interface: str
    """The interface, as the user named it."""
    role: str
    """Role of the interface in the run: `send`, `measure`, ..."""
    what: str
    """What happened to it."""

    _MEMBERS = {
        "at_ns": ("", None),
        "between_looks": ("", False),
        "duration_ns": ("", None),
        "interface": ("", None),
        "role": ("", None),
        "what": ("", None),
    }


class Loss(Record):
    """Frames sent and never received."""

    by_count_only: bool
    """What arrived was only counted, because not every frame was signed: frames of others may stand in for some that were
    lost. Left out when false."""
    frames: int
    """Number of lost frames."""
    learnt_frames: int | None
    """Lost frames of a capture to addresses that other frames of it came from, sent into the same port. A device that learns
    addresses passes none of those on."""
    ratio: float
    """Lost over sent, 0 to 1; 0 when nothing was sent."""
    unsigned_frames: int | None
    """Number of frames that are counted only, where the others were signed."""

    _MEMBERS = {
        "by_count_only": ("", False),
        "frames": ("", None),
        "learnt_frames": ("", None),
        "ratio": ("", None),
        "unsigned_frames": ("", None),
    }


class LossAt(Record):
    """A point of the loss curve."""

    frames_per_second: float
    """The load, of each sending port."""
    load_ratio: float
    """The load over the greatest load (0 to 1)."""
    loss_ratio: float
    """Lost by the device, of what was sent."""
    shortfall_ratio: float
    """Not sent, of what the load makes: the device was tried with so much less."""
    tester_ratio: float | None
    """Lost by the tester's receiver, or never seen leaving, of what was sent: not the device's loss."""

    _MEMBERS = {
        "frames_per_second": ("", None),
        "load_ratio": ("", None),
        "loss_ratio": ("", None),
        "shortfall_ratio": ("", 0.0),
        "tester_ratio": ("", None),
    }


class Mesh(Record):
    """What came of endpoint tests between all ordered pairs of some hosts. A pair that has no value is counted by why it has
    none, and is in no median."""

    asymmetry: MeshAsymmetry | None
    """The pair of hosts whose two directions differ most; left out where no two hosts have both."""
    at_once: int
    """The most tests that were to be done at the same time."""
    began_within_ns: int | None
    """Of tests all at once: from when the first one was asked for to when the last one's agent had answered, by the clock of
    the host where the mesh was asked for. No test began further from another one."""
    compared_by: str
    """By what pairs are compared."""
    done: int
    """Pairs whose test was done as it was asked for."""
    elapsed_ns: int
    """From the first test's start to when the last one's end was known; servers were ended after that."""
    failed: int
    """Pairs whose test came to no result."""
    hosts: Rows[MeshHost]
    """The hosts, in the order of the matrix's rows and columns."""
    median: MeshValue | None
    """Median of the pairs that have a value."""
    not_begun: int
    """Pairs whose test was not begun when the mesh ended."""
    pairs: Rows[MeshPair]
    """Each pair, in the order of the matrix: row by row. Of a pair's test no more is kept than stands here."""
    rounds: int
    """Rounds of tests, one after the other."""
    schedule: str
    """Which tests were done at the same time."""
    short: int
    """Pairs whose test fell short of what was asked."""
    slowest_host: MeshSlowest | None
    """The host whose pairs have the worst median, of those that have a value for half of their pairs at least; left out with
    fewer than three hosts, and where its median is not worse by a tenth at least than that of the pairs without it."""
    test: str
    """The test of each pair: `tcp-stream`, `udp-rr`, `stamp`, ..."""
    test_duration_ns: int | None
    """For how long each test was to measure; left out where it was to go on until an amount was done."""
    tests: int
    """Pairs to be tested: each agent with each other host."""
    worst: MeshWorst | None
    """The pair with the worst value; left out with fewer than two values."""

    _MEMBERS = {
        "asymmetry": ("MeshAsymmetry", None),
        "at_once": ("", None),
        "began_within_ns": ("", None),
        "compared_by": ("", None),
        "done": ("", None),
        "elapsed_ns": ("", None),
        "failed": ("", None),
        "hosts": ("*MeshHost", None),
        "median": ("MeshValue", None),
        "not_begun": ("", None),
        "pairs": ("*MeshPair", None),
        "rounds": ("", None),
        "schedule": ("", None),
        "short": ("", None),
        "slowest_host": ("MeshSlowest", None),
        "test": ("", None),
        "test_duration_ns": ("", None),
        "tests": ("", None),
        "worst": ("MeshWorst", None),
    }


class MeshAsymmetry(Record):
    """Two hosts whose directions differ."""

    back: MeshValue
    """The value of the other direction."""
    from_: str
    """The client of the worse direction."""
    ratio: float
    """The difference over the greater of both (0 to 1)."""
    to: str
    """Its server."""
    value: MeshValue
    """The value of the worse direction."""

    _MEMBERS = {
        "back": ("MeshValue", None),
        "from_": ("", None),
        "ratio": ("", None),
        "to": ("", None),
        "value": ("MeshValue", None),
    }


class MeshHost(Record):
    """A host of a mesh: a row and a column."""

    address: str
    """The address that its clients connect to."""
    agent: bool
    """Whether it has an agent: then it is a client, too. A host without one is a column only."""
    as_client: MeshValue | None
    """Median of its row: of the pairs in which it is the client."""
    as_server: MeshValue | None
    """Median of its column: of the pairs in which it is the server."""
    error: str | None
    """Why its agent could not be used, or when it was lost."""
    host: str | None
    """Name of the agent's host."""
    name: str
    """What it is called: its agent's name, or the address of a host without an agent."""
    served: MeshServed | None
    """What its own server counted; left out where it has none, or was lost."""

    _MEMBERS = {
        "address": ("", None),
        "agent": ("", None),
        "as_client": ("MeshValue", None),
        "as_server": ("MeshValue", None),
        "error": ("", None),
        "host": ("", None),
        "name": ("", None),
        "served": ("MeshServed", None),
    }


class MeshPair(Record):
    """One ordered pair: a cell of the matrix."""

    began_ns: int | None
    """When its agent was asked to begin its test, from the start of the first; left out where it was not asked, or refused.
    Without an answer of the agent it is not known whether the test began."""
    bits_per_second: float | None
    """Throughput of the client's stream, by what the receiver got."""
    count: int | None
    """Transactions that were answered, datagrams or STAMP packets that were sent."""
    dropped_by_receiver: int | None
    """Lost datagrams that had reached the receiver's host, or of stamp datagrams that had reached the client's, and found no
    room in its socket: no loss of the path. Left out where that is not known."""
    from_: str
    """The client: the row."""
    loss_ratio: float | None
    """Lost ones over those sent (0 to 1)."""
    lost: int | None
    """Datagrams, requests over UDP, or STAMP packets that were lost."""
    outcome: str
    """What became of its test."""
    p50_ns: int | None
    """Median latency of its transactions; of stamp, median round trip."""
    p99_ns: int | None
    """The 99th percentile of the same."""
    reason: str | None
    """Why it is not `done`."""
    retransmits: int | None
    """Segments that the client sent again."""
    round: int
    """In which round it was to be tested, from 1."""
    to: str
    """The server: the column."""
    transactions_per_second: float | None
    """Transactions per second."""

    _MEMBERS = {
        "began_ns": ("", None),
        "bits_per_second": ("", None),
        "count": ("", None),
        "dropped_by_receiver": ("", None),
        "from_": ("", None),
        "loss_ratio": ("", None),
        "lost": ("", None),
        "outcome": ("", None),
        "p50_ns": ("", None),
        "p99_ns": ("", None),
        "reason": ("", None),
        "retransmits": ("", None),
        "round": ("", None),
        "to": ("", None),
        "transactions_per_second": ("", None),
    }


class MeshServed(Record):
    """What the server at an agent counted of all clients."""

    answered: int | None
    """STAMP packets that the reflector answered."""
    broken_tests: int | None
    """Tests of those that broke off."""
    tests: int | None
    """Tests that were over; left out of a STAMP reflector, which knows none."""

    _MEMBERS = {
        "answered": ("", None),
        "broken_tests": ("", None),
        "tests": ("", None),
    }


class MeshSlowest(Record):
    """The host whose pairs have the worst median."""

    host: str
    """What it is called."""
    median: MeshValue
    """Median of its pairs: its row and its column together."""
    others: MeshValue
    """Median of all pairs without it."""

    _MEMBERS = {
        "host": ("", None),
        "median": ("MeshValue", None),
        "others": ("MeshValue", None),
    }


class MeshValue(Record):
    """A value by which pairs are compared: in one of two units."""

    bits_per_second: float | None
    """Throughput, in bits per second."""
    time_ns: int | None
    """Latency or round trip, in nanoseconds."""

    _MEMBERS = {
        "bits_per_second": ("", None),
        "time_ns": ("", None),
    }


class MeshWorst(Record):
    """The pair with the worst value."""

    from_: str
    """The client."""
    to: str
    """The server."""
    value: MeshValue
    """The value."""

    _MEMBERS = {
        "from_": ("", None),
        "to": ("", None),
        "value": ("MeshValue", None),
    }


class Metering(Record):
    """What a flow probe counted, and what became of its records (`netdyno probe`)."""

    active_records: int
    """Records that ended because they lasted longer than the active timeout."""
    arrived_records: int | None
    """Records that arrived, by the counts of collectors that agents ran as parts of the same job. Left out where there were
    none."""
    closed_records: int
    """Records that ended with TCP's FIN or RST."""
    collectors: Rows[Collector]
    """Counts for each collector."""
    displaced_records: int
    """Records that ended early because there was no room for another flow."""
    dropped_frames: int
    """Frames that the kernel lost because the probe was slower."""
    forced_records: int
    """Records that ended with the run."""
    full_records: int | None
    """Records that ended because their counters would not have held more (NetFlow v5: 4,294,967,295 bytes)."""
    idle_records: int
    """Records that ended because no packet came for the idle timeout."""
    joined_frames: int
    """Frames longer than the interface sends: several that the kernel had joined, counted as one packet each."""
    left_frames: int
    """Frames that left by the interface; the others arrived."""
    longest_search: int
    """The longest search in the table of flows, in steps."""
    malformed_frames: int
    """Frames whose headers are cut off or contradict each other."""
    missing_records: int | None
    """Records that were sent and did not arrive there."""
    most_flows: int
    """The most flows at once."""
    octets: int
    """Bytes of IP in those packets: headers and payload, without link headers, padding and FCS (`octetDeltaCount`)."""
    other_frames: int
    """Frames that are not IP."""
    packets: int
    """Packets that were counted for a flow."""
    records_per_second: float
    """New flows a second."""
    sent_bytes: int
    """Bytes of the messages that records were sent in."""
    sent_messages: int
    """Messages that records were sent in, each counted once however many collectors got it, without those of templates and of
    the probe's own options."""
    sent_records: int
    """Records that were sent to a collector and not refused by it, as far as is known."""
    table_bytes: int
    """Memory that flows took, in bytes."""
    unattributed_fragments: int | None
    """Fragments in flows with ports of 0, because the first one of their packet did not come before them, or is no longer
    known."""
    unreadable_frames: int | None
    """Frames of a capture whose link type is not known here, so that nothing is known of what is in them."""
    unsampled_frames: int
    """Frames that sampling passed over."""
    unsayable_records: int
    """Records that the protocol cannot say: IPv6 in NetFlow v5."""
    unsent_records: int
    """Records that were not sent: no room in the queue, or every collector that was to get them refused them."""
    untimely_records: int | None
    """Records whose times the protocol cannot say: NetFlow counts them from the start of the exporter, in 32 bits."""

    _MEMBERS = {
        "active_records": ("", None),
        "arrived_records": ("", None),
        "closed_records": ("", None),
        "collectors": ("*Collector", ()),
        "displaced_records": ("", None),
        "dropped_frames": ("", None),
        "forced_records": ("", None),
        "full_records": ("", None),
        "idle_records": ("", None),
        "joined_frames": ("", None),
        "left_frames": ("", 0),
        "longest_search": ("", None),
        "malformed_frames": ("", None),
        "missing_records": ("", None),
        "most_flows": ("", None),
        "octets": ("", None),
        "other_frames": ("", None),
        "packets": ("", None),
        "records_per_second": ("", None),
        "sent_bytes": ("", None),
        "sent_messages": ("", None),
        "sent_records": ("", None),
        "table_bytes": ("", None),
        "unattributed_fragments": ("", None),
        "unreadable_frames": ("", None),
        "unsampled_frames": ("", None),
        "unsayable_records": ("", None),
        "unsent_records": ("", None),
        "untimely_records": ("", None),
    }


class NatCounts(Record):
    """What the NAT of a lab counted (nftables, and the kernel's connection tracking): the device's own word, beside that of
    the tester."""

    early_dropped: int
    """Entries that the kernel's table gave up for new ones (`early_drop`)."""
    entries: int
    """Entries that its table had at the end, those of closed connections among them, which it keeps for a time."""
    insert_failed: int
    """Connections that found no free place, as where no port is left (`insert_failed`)."""
    invalid: int
    """Packets dropped because they belong to no connection and begin none."""
    over_connections: int
    """Packets dropped because they would have begun one connection more than it holds."""
    over_rate: int
    """Packets dropped because they would have begun more connections a second than it takes."""
    table_full: int
    """Packets dropped because the kernel's table was full (`drop`)."""
    translated: int
    """Connections that were given an address and a port."""

    _MEMBERS = {
        "early_dropped": ("", None),
        "entries": ("", None),
        "insert_failed": ("", None),
        "invalid": ("", None),
        "over_connections": ("", None),
        "over_rate": ("", None),
        "table_full": ("", None),
        "translated": ("", None),
    }


class NotTaken(Record):
    """Something netdyno would have chosen, and why it could not."""

    name: str
    """What would have been chosen."""
    reason: str
    """Why it could not, for people."""

    _MEMBERS = {
        "name": ("", None),
        "reason": ("", None),
    }


class Note(Record):
    """Something to know."""

    code: str
    """What it is about; stable."""
    remedy: str | None
    """What to do about it, where that is known: an imperative without its full stop."""
    severity: str
    """How much the note matters."""
    text: str
    """What is so: one sentence or two, without the code."""

    _MEMBERS = {
        "code": ("", None),
        "remedy": ("", None),
        "severity": ("", None),
        "text": ("", None),
    }


class Opening(Record):
    """What became of connections that were to be opened (`connection-rate`), of the whole test, its warm-up included. How many
    a second, and how long the handshake took, stands in the counts of transactions."""

    attempts: int
    """Connections that were tried."""
    broken: int | None
    """Held connections that broke."""
    error: str | None
    """The first failure, in the kernel's words."""
    failed: int
    """Not opened, or broken while they were used: the sum of the reasons."""
    held: int
    """Connections open at the end."""
    hold: int
    """To be held. 0: each was closed at once."""
    most_open: int
    """Open at the same time, at most."""
    no_file: int | None
    """This process may open no more files (EMFILE)."""
    no_port: int | None
    """This host had no free port (EADDRNOTAVAIL)."""
    opened: int
    """Connections that were opened."""
    other: int | None
    """Connections that failed for another reason."""
    refused: int | None
    """Connections that were refused because nothing listened (ECONNREFUSED)."""
    reset: int | None
    """Connections that were reset (ECONNRESET)."""
    timed_out: int | None
    """Connections that were not open in time."""
    unfinished: int | None
    """Neither open nor failed when the test ended."""
    unreachable: int | None
    """No way there (EHOSTUNREACH, ENETUNREACH)."""

    _MEMBERS = {
        "attempts": ("", None),
        "broken": ("", None),
        "error": ("", None),
        "failed": ("", None),
        "held": ("", None),
        "hold": ("", None),
        "most_open": ("", None),
        "no_file": ("", None),
        "no_port": ("", None),
        "opened": ("", None),
        "other": ("", None),
        "refused": ("", None),
        "reset": ("", None),
        "timed_out": ("", None),
        "unfinished": ("", None),
        "unreachable": ("", None),
    }


class Pacing(Record):
    """How closely frames left, or arrived, at their times."""

    back_to_back_ratio: float | None
    """Frames that left or arrived directly after the one before although the schedule left a gap, over all."""
    catch_up: CatchUp | None
    """What happened after the sender was held up."""
    first_frame_late_ns: int | None
    """How late the first frame was, of several sending threads the latest of their first ones: by then the run really had
    begun."""
    gap_error_ns: Distribution | None
    """How far a gap between two frames was from the scheduled one, without sign."""
    last_frame_late_ns: int | None
    """How late the last frame was: the drift over the whole run. Negative is early."""
    late_frames: int | None
    """Frames later than `late_threshold_ns`."""
    late_threshold_ns: int | None
    """Lateness from which on a frame counts in `late_frames`."""
    lateness_ns: Distribution | None
    """How long after its time a frame left; a frame on time counts as 0."""
    measured_at: str | None
    """Where the gaps were measured: `sender` or `receiver`."""
    priority: str | None
    """What the sending threads had at the end: `ordinary`; `real-time`: they went before all ordinary tasks, because others
    had held them up; or where that is not permitted the best nice value that is: `nice -5`."""
    waiting: str | None
    """Whether an engine that can do both slept in the gaps between frames or kept its core busy: `slept`, `spun`."""
    wake_up_p99_ns: int | None
    """How late the machine woke a sleeping thread in 99 of 100 trials before the run: where gaps are not longer than that by a
    margin, the sender spins."""

    _MEMBERS = {
        "back_to_back_ratio": ("", None),
        "catch_up": ("CatchUp", None),
        "first_frame_late_ns": ("", None),
        "gap_error_ns": ("Distribution", None),
        "last_frame_late_ns": ("", None),
        "late_frames": ("", None),
        "late_threshold_ns": ("", None),
        "lateness_ns": ("Distribution", None),
        "measured_at": ("", None),
        "priority": ("", None),
        "waiting": ("", None),
        "wake_up_p99_ns": ("", None),
    }


class Passage(Record):
    """One direction through a bridge: what arrived, what was sent on, and what became of the rest."""

    completed_checksums: int | None
    """Forwarded frames whose checksum the sender had left to hardware, and which was computed."""
    edited_frames: int | None
    """Forwarded frames that were examined from link to transport layer, and edited where that was asked for. Left out where
    nothing was to be edited."""
    filtered_frames: int | None
    """Frames that the rules did not choose."""
    forwarded: Totals
    """What `to` accepted of it."""
    forwarded_buffers: int | None
    """The forwarded, each super-frame (GSO, GRO) counted once; left out where there were none."""
    from_: str
    """The interface that frames arrived on."""
    impaired: Impaired | None
    """What a device with faults did."""
    left_out_frames: int | None
    """Frames that the edits left out."""
    missed_frames: int | None
    """Arrived when there was no room for them; not among the received."""
    over_limit_frames: int | None
    """Arrived after the last frame that was asked for."""
    received: Totals
    """What arrived on `from`."""
    refused_frames: int | None
    """Not taken by the interface they should have left by."""
    to: str
    """The one they were sent on by."""
    too_long_frames: int | None
    """Longer than the MTU they would have had to leave by."""
    uncut_frames: int | None
    """Super-frames of the host's that could not be cut into frames."""
    unedited_frames: int | None
    """Forwarded frames with headers that no edit can be made in."""

    _MEMBERS = {
        "completed_checksums": ("", None),
        "edited_frames": ("", None),
        "filtered_frames": ("", None),
        "forwarded": ("Totals", None),
        "forwarded_buffers": ("", None),
        "from_": ("", None),
        "impaired": ("Impaired", None),
        "left_out_frames": ("", None),
        "missed_frames": ("", None),
        "over_limit_frames": ("", None),
        "received": ("Totals", None),
        "refused_frames": ("", None),
        "to": ("", None),
        "too_long_frames": ("", None),
        "uncut_frames": ("", None),
        "unedited_frames": ("", None),
    }


class PortResult(Record):
    """What one of several ports sent, and what arrived where its link ends."""

    failed_frames: int
    """Frames given up after retries."""
    interface: str
    """Where it sends."""
    lost_frames: int | None
    """Frames that this port sent and that did not arrive where they were sent to."""
    measured_at: str | None
    """Interface where they were measured: in a mesh the port itself."""
    misdirected_frames: int | None
    """Frames of this run that arrived where this port measures and were sent to another: flooded or misdirected ones, in
    `rx_frames` of no port. Left out where frames have no signatures."""
    rx_bytes: int | None
    """Layer 2 bytes of those, without FCS."""
    rx_frames: int | None
    """Frames that arrived there and were sent there: in a mesh those of all other ports."""
    tx_bytes: int
    """Layer 2 bytes without FCS."""
    tx_frames: int
    """Frames that it sent."""

    _MEMBERS = {
        "failed_frames": ("", 0),
        "interface": ("", None),
        "lost_frames": ("", None),
        "measured_at": ("", None),
        "misdirected_frames": ("", None),
        "rx_bytes": ("", None),
        "rx_frames": ("", None),
        "tx_bytes": ("", None),
        "tx_frames": ("", None),
    }


class QueueCounters(Record):
    """What a queueing discipline counted, frames of this run and of others."""

    dropped: int
    """Dropped, frames or super-frames as it had them."""
    kind: str
    """Kind of the discipline: `tbf`, `fq_codel`, ..."""
    passed_frames: int
    """Let through, each frame of a super-frame by itself."""
    waiting: int | None
    """Waited in it when the run ended."""

    _MEMBERS = {
        "dropped": ("", None),
        "kind": ("", None),
        "passed_frames": ("", None),
        "waiting": ("", None),
    }


class Reflection(Record):
    """Frames that a reflector got, by what it did with them."""

    echo_replies: int
    """Echo requests (ping) among the frames sent back, as replies."""
    group_frames: int
    """Frames to broadcast or multicast addresses, passed to the host."""
    malformed_frames: int
    """Frames that are cut short or have headers that contradict themselves, dropped."""
    reflected_frames: int
    """Frames sent back."""
    resolution_frames: int
    """Frames of ARP and IPv6 neighbour discovery, passed to the host."""
    stamp: StampReflection | None
    """What became of STAMP test packets, if those are answered. Then the frames sent back are answers, and of the other counts
    here there is none."""
    unsigned_frames: int
    """Frames without the signature that was asked for, passed to the host."""

    _MEMBERS = {
        "echo_replies": ("", None),
        "group_frames": ("", None),
        "malformed_frames": ("", None),
        "reflected_frames": ("", None),
        "resolution_frames": ("", None),
        "stamp": ("StampReflection", None),
        "unsigned_frames": ("", None),
    }


class Repeated(Record):
    """A test that was repeated."""

    level: float
    """How sure it was to be: 0.99."""
    reached: bool
    """Whether the interval is as narrow as was asked."""
    results: tuple[float, ...]
    """The result of each repetition that has one: bits or transactions a second. Bytes that all came at one moment have no
    rate."""
    wanted_width_ratio: float
    """The whole width of the confidence interval that was asked for, as a share of the mean."""
    width_ratio: float | None
    """The whole width of the confidence interval that was reached, as a share of the mean; left out of fewer than two results,
    which have none."""

    _MEMBERS = {
        "level": ("", None),
        "reached": ("", None),
        "results": ("*", None),
        "wanted_width_ratio": ("", None),
        "width_ratio": ("", None),
    }


class ReportData(Record):
    """One run: what was asked, where, and what came of it."""

    command: str
    """The verb that ran: `replay`, `send`, `measure`, `reflect`, `demo`, ..."""
    command_line: tuple[str, ...]
    """The command line, one argument an element, the program's name first; empty if another program asked for the job."""
    environment: Environment
    """The machine, the software and the choices they led to."""
    intervals: Rows[Interval]
    """The run over time, in order, without gaps."""
    notes: Rows[Note]
    """The warnings and the verdict's reasons once more, each with a code for programs."""
    requested: dict[str, Any] | None
    """The job (docs/job.schema.json), with what was drawn for it: `netdyno rerun` runs it again. A program that only shows a
    result need not understand it: it may be of a later version."""
    requested_at: str | None
    """The agent at which the job began, as it was said beside the job; left out where it was not said. `netdyno rerun` begins
    it there again."""
    resolved: Resolved | None
    """What the job came to in numbers on this machine."""
    result: Achieved
    """What was achieved."""
    schema: str
    """Name and major version of this layout: `netdyno.report/2`."""
    streams: Rows[Stream]
    """One entry for each stream of signed frames; empty when frames carried no signature."""
    warnings: tuple[str, ...]
    """What the user should know before trusting the figures, one sentence each."""

    _MEMBERS = {
        "command": ("", None),
        "command_line": ("*", ()),
        "environment": ("Environment", None),
        "intervals": ("*Interval", ()),
        "notes": ("*Note", ()),
        "requested": ("", None),
        "requested_at": ("", None),
        "resolved": ("Resolved", None),
        "result": ("Achieved", None),
        "schema": ("", None),
        "streams": ("*Stream", ()),
        "warnings": ("*", ()),
    }


class RequestedRate(Record):
    """A rate as typed and as numbers; the numbers that follow from the request alone are filled in."""

    bits_per_second: float | None
    """Bits per second on layer 2, without FCS."""
    bits_per_second_l1: float | None
    """Bits per second on the wire: with FCS, preamble and inter-frame gap, 24 bytes more per frame."""
    flows_per_second: float | None
    """New flows per second."""
    frames_per_second: float | None
    """Frames per second, where those follow from the request alone."""
    text: str
    """As the user wrote it (`1.6mpps`, `40%`), or `capture`, `capture x2`, `topspeed`."""

    _MEMBERS = {
        "bits_per_second": ("", None),
        "bits_per_second_l1": ("", None),
        "flows_per_second": ("", None),
        "frames_per_second": ("", None),
        "text": ("", None),
    }


class Resolved(Record):
    """What was asked for in numbers: as it came out of the job, with its defaults, on the machine that ran it."""

    count: int | None
    """Frames to send at most."""
    duration_ns: int | None
    """Time to send for at most."""
    engine: str | None
    """The engine as asked for (`auto`, `packet`, ...); `environment.engine` is the one that ran."""
    flow_profiles: Rows[FlowProfile]
    """What the flow profiles of a scenario come to."""
    interfaces: tuple[str, ...]
    """Interfaces named by the user, senders first."""
    loops: int | None
    """Passes over the source; left out when endless."""
    rate: RequestedRate | None
    """How fast they were to leave."""
    seed: int | None
    """The key of every random choice; the same seed gives the same frames."""
    source: Source | None
    """Where the frames came from."""
    unique_ip: bool
    """Whether each pass was to carry addresses of its own."""

    _MEMBERS = {
        "count": ("", None),
        "duration_ns": ("", None),
        "engine": ("", None),
        "flow_profiles": ("*FlowProfile", ()),
        "interfaces": ("*", ()),
        "loops": ("", None),
        "rate": ("RequestedRate", None),
        "seed": ("", None),
        "source": ("Source", None),
        "unique_ip": ("", False),
    }


class Returned(Record):
    """What the return agent at a clone's target did (`netdyno clone return`)."""

    closed_packets: int
    """Packets of the tunnel that came while the agent was not at work, dropped."""
    connections: int
    """Connections of copies that were let in."""
    ended_sockets: int
    """Sockets of copies that were ended at the end."""
    foreign_packets: int
    """Packets with addresses and ports of copies that came by another way, dropped."""
    kept_answers: int
    """Answers to copies that the tunnel did not take and that were kept from clients."""
    kept_fragments: int
    """Fragments of the server's TCP segments that were kept from clients."""
    kept_icmp_errors: int
    """ICMP errors about copies that were kept from clients."""
    malformed_packets: int
    """Packets of the tunnel that are none for the server, dropped."""
    packets: int
    """Packets of copies that were let in."""
    refused_connections: int
    """Connections of copies that were refused, because there was no room for them."""
    removed_filters: int
    """Filters that were taken away at the end."""
    steered_packets: int
    """Answers that were steered back to the clone, in packets."""
    unknown_packets: int
    """Packets of the tunnel of connections that were not let in, dropped."""

    _MEMBERS = {
        "closed_packets": ("", None),
        "connections": ("", None),
        "ended_sockets": ("", None),
        "foreign_packets": ("", None),
        "kept_answers": ("", None),
        "kept_fragments": ("", None),
        "kept_icmp_errors": ("", None),
        "malformed_packets": ("", None),
        "packets": ("", None),
        "refused_connections": ("", None),
        "removed_filters": ("", None),
        "steered_packets": ("", None),
        "unknown_packets": ("", None),
    }


class RoundTrip(Record):
    """Round trips of segments and their acknowledgements."""

    max: int
    """The longest time."""
    mean: int
    """The mean time."""
    min: int
    """The shortest time."""

    _MEMBERS = {
        "max": ("", None),
        "mean": ("", None),
        "min": ("", None),
    }


class Rx(Record):
    """What arrived."""

    arrival_span_ns: int | None
    """Time from the first arrival to the last, and the mean gap after it. Left out where nothing was sent, and where frames of
    others came as well."""
    background_frames: int | None
    """Foreign frames that are known by their kind (ARP, IPv6 neighbour and listener discovery, IGMP, LLDP, spanning tree and
    the like), beyond those of such kinds that the run sent. Left out where frames are recognised by their signatures."""
    bits_per_second: float
    """Layer 2 without FCS, as tcpreplay counts."""
    bits_per_second_l1: float
    """On the wire: plus FCS, preamble and inter-frame gap, 24 bytes a frame."""
    blind_because: str | None
    """Why nothing follows from frames that are missing here: the meter was detached, or others take frames before it."""
    bytes: int
    """Layer 2 bytes without FCS."""
    corrupted_frames: int | None
    """Frames whose bytes are not those that were sent."""
    dropped_frames: int | None
    """Frames the receiving machine dropped before the meter saw them (ring full, no buffer)."""
    duplicated_frames: int | None
    """Frames that arrived more than once, counted from the second time on."""
    duration_ns: int
    """The time that the rates are over."""
    foreign_frames: int | None
    """Frames that are none of ours: those that cannot be, where loss is known by count only."""
    frames: int
    """How many frames."""
    frames_per_second: float
    """0 when `duration_ns` is 0: no rate can be given."""
    interfaces: Rows[RxInterface]
    """What arrived at each interface, where two were measured."""
    reordered_frames: int | None
    """Frames that arrived after a later one of their stream (RFC 4737, 3)."""
    trailed_frames: int | None
    """Signed frames that had bytes behind the signature: a device has padded them, or added a trailer."""

    _MEMBERS = {
        "arrival_span_ns": ("", None),
        "background_frames": ("", None),
        "bits_per_second": ("", None),
        "bits_per_second_l1": ("", None),
        "blind_because": ("", None),
        "bytes": ("", None),
        "corrupted_frames": ("", None),
        "dropped_frames": ("", None),
        "duplicated_frames": ("", None),
        "duration_ns": ("", None),
        "foreign_frames": ("", None),
        "frames": ("", None),
        "frames_per_second": ("", None),
        "interfaces": ("*RxInterface", ()),
        "reordered_frames": ("", None),
        "trailed_frames": ("", None),
    }


class RxInterface(Record):
    """What arrived at one of two interfaces."""

    bytes: int
    """Layer 2 bytes without FCS."""
    frames: int
    """Frames that arrived."""
    from_: str
    """The interface whose frames were to arrive here."""
    interface: str
    """Where it arrived."""

    _MEMBERS = {
        "bytes": ("", None),
        "frames": ("", None),
        "from_": ("", None),
        "interface": ("", None),
    }


class SearchResult(Record):
    """What was searched for, how, and all that was found."""

    axis: str
    """What `load` counts: `frames_per_second`, `frame_size`, `flows`, `burst_frames` (bursts at the greatest rate),
    `flows_per_second`."""
    complete: bool
    """Whether the search ended by itself; if not, it can be continued."""
    elapsed_ns: int
    """Time that it took in all."""
    kind: str
    """`throughput`, `latency`, `loss`, `burst`, `recovery`, `reset`, `soak`, `flows`."""
    method: str | None
    """`mlrsearch` or `bisect`, where something was searched."""
    sending_ns: int
    """Time that trials sent for."""
    sizes: Rows[SizeResult]
    """One entry for each frame size, in the order they were tested."""
    untried_sizes: tuple[str, ...]
    """Frame sizes that were not begun, because it did not."""

    _MEMBERS = {
        "axis": ("", None),
        "complete": ("", None),
        "elapsed_ns": ("", None),
        "kind": ("", None),
        "method": ("", None),
        "sending_ns": ("", None),
        "sizes": ("*SizeResult", ()),
        "untried_sizes": ("*", ()),
    }


class Served(Record):
    """What a server of endpoint tests did."""

    broken_tests: int
    """Tests of those that broke off."""
    bytes: int
    """Bytes of payload, both ways."""
    refused_connections: int
    """Connections that were refused, or meant nothing."""
    tests: int
    """Tests that are over."""

    _MEMBERS = {
        "broken_tests": ("", None),
        "bytes": ("", None),
        "refused_connections": ("", None),
        "tests": ("", None),
    }


class SessionCapacityFound(Record):
    """The most connections that are held at once and answered when they are used again."""

    connections: int | None
    """The most that passed all their trials; left out where none did."""
    failed_connections: int | None
    """The fewest that did not pass; left out where the most that were to be tried passed."""
    passed_trials: int
    """Trials that passed with the number that was found."""
    precision_ratio: float | None
    """How near the bounds were to come, relative to the number; left out for to the connection."""
    undecided_trials: int | None
    """Trials that could not be decided."""

    _MEMBERS = {
        "connections": ("", None),
        "failed_connections": ("", None),
        "passed_trials": ("", None),
        "precision_ratio": ("", None),
        "undecided_trials": ("", None),
    }


class SessionRateFound(Record):
    """The highest rate of new connections without failures."""

    closed_loop_per_second: float | None
    """Connections finished per second as fast as it went, which the search began with."""
    failed_per_second: float | None
    """The lowest rate that did not pass; left out where the greatest that was to be tried passed."""
    max_failed_ratio: float
    """Share of a trial's connections that could fail or need a segment sent again."""
    passed_trials: int
    """Trials that passed at the rate that was found."""
    per_second: float | None
    """The highest rate that passed all its trials; left out where none did."""
    precision_ratio: float
    """How near the bounds were to come, relative to the rate."""
    undecided_trials: int | None
    """Trials that could not be decided."""

    _MEMBERS = {
        "closed_loop_per_second": ("", None),
        "failed_per_second": ("", None),
        "max_failed_ratio": ("", None),
        "passed_trials": ("", None),
        "per_second": ("", None),
        "precision_ratio": ("", None),
        "undecided_trials": ("", None),
    }


class SessionTrial(Record):
    """One trial."""

    answered_again: int | None
    """Held connections that were answered when they were used again."""
    duplicates: int | None
    """Segments that came twice: what was sent again although nothing was lost."""
    failed: int
    """Connections that did not finish, or were answered with a status of 4xx, 5xx or none."""
    finished: int
    """Connections that were answered whole, with no error of HTTP, and closed."""
    finished_per_second: float
    """Connections that finished, per second in which connections were opened."""
    held: int | None
    """Connections that were established and held when all had been opened."""
    intended_connections: int | None
    """Connections that were to be held at once."""
    intended_per_second: float | None
    """New connections a second that were to be opened; left out where it went as fast as possible."""
    late: int | None
    """Connections that were opened more than a millisecond after they were due."""
    machine_waited_ns: int | None
    """Nanoseconds that the kernel threads which carry on the frames of a veth interface waited for a processor while the trial
    lasted, all together, and no more than connections were opened for: those due then may have come to the device in a
    burst. Left out of other interfaces, and where the kernel does not tell."""
    nat: NatCounts | None
    """What the lab's NAT counted in the trial. The search empties the table of a NAT of its own lab before each."""
    number: int
    """Number of the trial, from 1."""
    opened: int
    """Connections of which a SYN was sent."""
    opened_per_second: float
    """Connections opened per second."""
    retransmitted: int | None
    """Segments that were sent again."""
    retransmitted_syns: int | None
    """SYNs that were sent again."""
    stage: str
    """`estimate` (as fast as it goes), `search`, `confirm`."""
    undecided_before: int | None
    """Times that the trial was done before and could not be decided."""
    verdict: str
    """`done`; of a rate `passed`, `failed`, or `undecided` (the tester may be the cause)."""

    _MEMBERS = {
        "answered_again": ("", None),
        "duplicates": ("", None),
        "failed": ("", None),
        "finished": ("", None),
        "finished_per_second": ("", None),
        "held": ("", None),
        "intended_connections": ("", None),
        "intended_per_second": ("", None),
        "late": ("", None),
        "machine_waited_ns": ("", None),
        "nat": ("NatCounts", None),
        "number": ("", None),
        "opened": ("", None),
        "opened_per_second": ("", None),
        "retransmitted": ("", None),
        "retransmitted_syns": ("", None),
        "stage": ("", None),
        "undecided_before": ("", None),
        "verdict": ("", None),
    }


class Sessions(Record):
    """What became of TCP connections, or of UDP sessions, which are called connections here, too. `opened` is the sum of
    `finished`, `failed` and `open`, and `failed` that of `reset`, `timed_out`, `unanswered`, `closed_early`, `refused` and
    `abandoned`."""

    abandoned: int
    """Connections that were ended by a RST from here, because the run was ended before its time."""
    answer_bytes: int
    """Bytes of answers, with their headers of HTTP."""
    answer_ns: Distribution | None
    """From the first sending of the request to the end of its answer."""
    answers: int
    """Whole answers: the sum of the next eight. An answer is whole when as many bytes came as its head announces, and, where
    the server is to close, it has closed; of `answers_to_the_close` the close alone tells."""
    answers_to_the_close: int
    """Whole answers whose length their first segment does not say, and which the close of the server ended: one that was cut
    short looks the same."""
    application: str
    """What was spoken: http (over TCP) or udp."""
    arp_replies: int
    """ARP requests for addresses of clients that were answered."""
    client_addresses: int
    """Number of addresses of clients."""
    closed_early: int
    """Connections that the server closed after a whole answer, though more was to be asked or they were to be held."""
    cpu_ns: int
    """CPU time of the thread that sent; frames that arrived on its core are answered in it."""
    deferred_requests: int
    """Requests that had no room in the frame that asked for them, and left by the next frame of the sending thread."""
    duplicates: int
    """Segments of the server that came again; of UDP answers to requests that had been answered."""
    duration_ns: int
    """Time until all were over."""
    established: int
    """Connections that the server accepted (SYN-ACK); of UDP sessions that had a first answer."""
    failed: int
    """Connections that did not."""
    finished: int
    """Connections that went to their end: each request had a whole answer, whatever its status, and either side closed and had
    that acknowledged; or the client ended it by a RST, where that was asked for. A session of UDP is over when all is
    answered and it is not held any more."""
    finished_per_second: float
    """Connections that were finished, a second of that time, or of `opening_ns` where that is longer."""
    first_client: str
    """The first address of the clients, and how many there are."""
    handshake_ns: Distribution | None
    """From the first SYN to the SYN-ACK; a SYN that was lost is part of it. Left out of UDP, which has none."""
    held: HeldSessions | None
    """Of connections that were held open."""
    intended_per_second: float | None
    """New connections a second that were asked for. Left out where none were."""
    interim_answers: int
    """Answers with a status of 100 to 199 that announced another one. They are no answers of their own, and not in `answers`."""
    late: int
    """Connections that were opened more than a millisecond after they were due."""
    malformed: int
    """Segments whose lengths contradict themselves."""
    misframed_answers: int
    """Answers whose Content-Length is no number or contradicts another one (RFC 9112, section 6.3): where they end is not
    known, and those that the close ended are among `answers`."""
    nat: NatCounts | None
    """What the lab's NAT counted meanwhile."""
    neighbour_advertisements: int
    """Neighbour solicitations for addresses of clients that were answered."""
    not_http: int
    """Whole answers that do not begin with a status of HTTP/1.1."""
    numbered_answers: int
    """Answers over UDP: datagrams with the number of the request that was to be answered."""
    open: int
    """Connections that were still open at the end, as their slots say: none, unless the run broke off."""
    opened: int
    """Connections of which a SYN was sent; of UDP sessions of which a request was sent."""
    opened_per_second: float
    """New connections a second in that time."""
    opening_ns: int
    """Time in which connections were opened; by a rate no less than it has for as many."""
    out_of_order: int
    """Segments of the server that came before their turn."""
    overlong_answers: int
    """Answers with more bytes behind them than their heads announce. The further bytes are no answer."""
    refused: int
    """Connections that were ended by a RST from here, because the server takes no segment as long as the request (its MSS)."""
    relays_refused: int
    """Datagrams that the server refused to send to other sessions: it was not started to do so, or it is another one than gave
    their cookies."""
    requests: int
    """Requests, without those that were sent again."""
    reset: int
    """Connections that a RST ended."""
    resets_sent: int
    """RSTs that were sent."""
    retransmitted: int
    """Segments that were sent again, because nothing came back in time: the sum of the next four."""
    retransmitted_acks: int
    """Acknowledgements that were sent again within an answer that did not go on."""
    retransmitted_fins: int
    """FINs that were sent again."""
    retransmitted_requests: int
    """Requests that were sent again."""
    retransmitted_syns: int
    """SYNs that were sent again."""
    server: str
    """Address and port of the server."""
    status_1xx: int
    """Whole answers with a status of 100 to 199 after which no other answer came, or whose end was not found."""
    status_2xx: int
    """Whole answers with a status of 200 to 299."""
    status_3xx: int
    """Whole answers with a status of 300 to 399."""
    status_4xx: int
    """Whole answers with a status of 400 to 499."""
    status_5xx: int
    """Whole answers with a status of 500 to 599."""
    status_unread: int
    """Whole answers whose status was not read: their first segment ends within it. Whether they are errors is not known."""
    timed_out: int
    """Connections that were not over in time."""
    tuples: int
    """Tuples of address and port that were there to be used."""
    tuples_in_use: int
    """Times that a tuple was passed over because its last connection was not over."""
    tuples_used: int
    """Tuples from which a connection was opened, or several one after the other."""
    unanswered: int
    """Connections that the server closed before the answer at hand was whole."""
    undeferred_requests: int
    """Those of them for which there was no place to wait in: they were sent when their time was over."""
    unexpected: int
    """Segments that no connection in that state expects."""
    unframed_answers: int
    """Answers whose length their first segment does not say, where the client needs it: it waits for the server to close."""
    without_room: int
    """Segments that had no room in the frame that asked for them, and were not sent."""

    _MEMBERS = {
        "abandoned": ("", None),
        "answer_bytes": ("", None),
        "answer_ns": ("Distribution", None),
        "answers": ("", 0),
        "answers_to_the_close": ("", 0),
        "application": ("", 'http'),
        "arp_replies": ("", None),
        "client_addresses": ("", None),
        "closed_early": ("", 0),
        "cpu_ns": ("", None),
        "deferred_requests": ("", None),
        "duplicates": ("", None),
        "duration_ns": ("", None),
        "established": ("", None),
        "failed": ("", None),
        "finished": ("", None),
        "finished_per_second": ("", None),
        "first_client": ("", None),
        "handshake_ns": ("Distribution", None),
        "held": ("HeldSessions", None),
        "intended_per_second": ("", None),
        "interim_answers": ("", 0),
        "late": ("", None),
        "malformed": ("", None),
        "misframed_answers": ("", 0),
        "nat": ("NatCounts", None),
        "neighbour_advertisements": ("", 0),
        "not_http": ("", 0),
        "numbered_answers": ("", 0),
        "open": ("", 0),
        "opened": ("", None),
        "opened_per_second": ("", None),
        "opening_ns": ("", None),
        "out_of_order": ("", None),
        "overlong_answers": ("", 0),
        "refused": ("", 0),
        "relays_refused": ("", 0),
        "requests": ("", 0),
        "reset": ("", None),
        "resets_sent": ("", None),
        "retransmitted": ("", None),
        "retransmitted_acks": ("", None),
        "retransmitted_fins": ("", None),
        "retransmitted_requests": ("", None),
        "retransmitted_syns": ("", None),
        "server": ("", None),
        "status_1xx": ("", 0),
        "status_2xx": ("", 0),
        "status_3xx": ("", 0),
        "status_4xx": ("", 0),
        "status_5xx": ("", 0),
        "status_unread": ("", 0),
        "timed_out": ("", None),
        "tuples": ("", None),
        "tuples_in_use": ("", None),
        "tuples_used": ("", 0),
        "unanswered": ("", None),
        "undeferred_requests": ("", 0),
        "unexpected": ("", None),
        "unframed_answers": ("", 0),
        "without_room": ("", None),
    }


class SessionsSearch(Record):
    """What a search by TCP connections through a device found."""

    capacity: SessionCapacityFound | None
    """What was found about connections that are held."""
    client_addresses: int
    """How many addresses the clients have."""
    complete: bool
    """Whether the search ended by itself; if not, it can be continued."""
    elapsed_ns: int
    """Time that it took in all."""
    first_client: str
    """First address of the clients."""
    kind: str
    """`sessions` or `session-capacity`."""
    rate: SessionRateFound | None
    """What was found about rates."""
    server: str
    """Address and port of the server."""
    settle_ns: int
    """Time between two trials."""
    trial_ns: int | None
    """How long connections were opened in each trial; left out where a trial ended when all were held."""
    trials: Rows[SessionTrial]
    """All trials, in order."""

    _MEMBERS = {
        "capacity": ("SessionCapacityFound", None),
        "client_addresses": ("", None),
        "complete": ("", None),
        "elapsed_ns": ("", None),
        "first_client": ("", None),
        "kind": ("", None),
        "rate": ("SessionRateFound", None),
        "server": ("", None),
        "settle_ns": ("", None),
        "trial_ns": ("", None),
        "trials": ("*SessionTrial", None),
    }


class SessionsServed(Record):
    """TCP connections or UDP sessions that a server without state answered: it knows segments, and not which of them are of
    one connection."""

    answer_bytes: int
    """Bytes of answers."""
    answer_segments: int
    """Segments of answers that were sent."""
    arp_replies: int
    """ARP requests for its address that were answered."""
    bad_cookies: int
    """Segments that acknowledge what was never said; each was answered by a RST."""
    finished: int
    """FINs of clients that had the whole answer, those that came again among them."""
    listen: str
    """Address and port that it listened at."""
    malformed: int
    """Segments whose lengths contradict themselves."""
    neighbour_advertisements: int
    """Neighbour solicitations for its address that were answered."""
    relayed: int
    """Of UDP: datagrams that were sent to the address and port of an earlier request, because a client asked for that through
    another session."""
    request_bytes: int
    """Bytes of requests."""
    requests: int
    """Requests that were answered, those that came again among them."""
    resets: int
    """RSTs that came."""
    syns: int
    """SYNs that were answered, those that came again among them."""
    unexpected: int
    """Segments that no client of this server sends."""
    without_room: int
    """Segments that had no room in the frame that asked for them, and were not sent."""

    _MEMBERS = {
        "answer_bytes": ("", None),
        "answer_segments": ("", None),
        "arp_replies": ("", None),
        "bad_cookies": ("", None),
        "finished": ("", None),
        "listen": ("", None),
        "malformed": ("", None),
        "neighbour_advertisements": ("", 0),
        "relayed": ("", 0),
        "request_bytes": ("", None),
        "requests": ("", None),
        "resets": ("", None),
        "syns": ("", None),
        "unexpected": ("", None),
        "without_room": ("", None),
    }


class SignedFrames(Record):
    """What was sent under one number of signatures."""

    frames: int | None
    """How many; left out where frames were refused, because it is not known of which stream these were."""
    name: str | None
    """What the scenario calls that."""
    number: int
    """The number."""
    stream: int
    """The stream that it is of, or the part of a stream that one core sent."""

    _MEMBERS = {
        "frames": ("", None),
        "name": ("", None),
        "number": ("", None),
        "stream": ("", None),
    }


class SizeResult(Record):
    """What was found with one frame size."""

    bottleneck_frames_per_second: float | None
    """What the bottleneck of a lab lets through in the long run: the truth that a search there can be held to."""
    burst: BurstFound | None
    """The longest burst that was forwarded whole (RFC 9004)."""
    burst_frames_per_second: float | None
    """On the axis `burst_frames`: the rate within the bursts that were tried. Another rate has another longest burst."""
    flows: FlowsFound | None
    """The highest rate of new flows that a probe recorded without loss (RFC 6645)."""
    found: float | None
    """The value found on another axis than the rate."""
    frame_size: str
    """The FCS counted: `64`, `imix`, ..."""
    goals: Rows[GoalResult]
    """One entry for each goal of a search for the throughput, in the order in which they were asked for: what came of it, and
    between which loads it is. Results of earlier versions have none."""
    greatest: float
    """The greatest load that was tried, on the search's axis."""
    latency: Rows[LatencyAt]
    """One entry for each load."""
    least: float
    """The least load that was tried, on the search's axis."""
    loss_curve: Rows[LossAt]
    """One entry for each load, the greatest first."""
    mean_frame_bytes: float
    """Bytes of a frame on average, the FCS counted."""
    outage_ns: Spread | None
    """The longest time without an arrival."""
    recovery_ns: Spread | None
    """Time from the change to half the load until the last loss."""
    stopped: Stopped | None
    """What kept it from more; as long as anything is `unfinished`, what ends the loads that can be tried."""
    theoretical_frames_per_second: float | None
    """What the link carries at most; left out where it has no speed of its own."""
    throughput: Rows[Throughput]
    """The throughput of each goal that has one, in the order of the goals; `null` for a goal of which not even the least load
    passed. A goal of which that is not known has no entry here: `goals` has one for each."""
    unfinished: Rows[Unfinished]
    """What was begun and did not come to its end: how far it came, which is no result."""

    _MEMBERS = {
        "bottleneck_frames_per_second": ("", None),
        "burst": ("BurstFound", None),
        "burst_frames_per_second": ("", None),
        "flows": ("FlowsFound", None),
        "found": ("", None),
        "frame_size": ("", None),
        "goals": ("*GoalResult", ()),
        "greatest": ("", None),
        "latency": ("*LatencyAt", ()),
        "least": ("", None),
        "loss_curve": ("*LossAt", ()),
        "mean_frame_bytes": ("", None),
        "outage_ns": ("Spread", None),
        "recovery_ns": ("Spread", None),
        "stopped": ("Stopped", None),
        "theoretical_frames_per_second": ("", None),
        "throughput": ("*Throughput", ()),
        "unfinished": ("*Unfinished", ()),
    }


class SocketBufferFound(Record):
    """How results depend on socket buffers."""

    bandwidth_delay_product_bytes: int | None
    """Best throughput times least round-trip time: what is under way when the path is full and its queues are empty (TCP)."""
    best_buffer_bytes: int | None
    """Size of the buffers with the best mean; left out for the kernel's own tuning."""
    best_per_second: float
    """The best mean, of all sizes and of the kernel's own tuning."""
    enough_ratio: float
    """This share of the best result is enough."""
    found_bytes: int | None
    """The smallest size whose mean is enough; left out where none is."""
    level: float
    """Intervals are at this confidence."""
    min_rtt_ns: int | None
    """Least round-trip time of all trials (TCP_INFO)."""
    points: Rows[BufferPoint]
    """Each size, from the smallest; the kernel's own tuning first."""
    tuned_is_enough: bool
    """The kernel's own tuning is enough."""

    _MEMBERS = {
        "bandwidth_delay_product_bytes": ("", None),
        "best_buffer_bytes": ("", None),
        "best_per_second": ("", None),
        "enough_ratio": ("", None),
        "found_bytes": ("", None),
        "level": ("", None),
        "min_rtt_ns": ("", None),
        "points": ("*BufferPoint", None),
        "tuned_is_enough": ("", None),
    }


class Source(Record):
    """Where the frames came from."""

    expression: str | None
    """As it was written."""
    kind: str
    file: str | None
    """Where it was read."""
    name: str | None
    """What it calls itself."""
    place: str | None
    """Where it was found: a path, or `built in`."""
    sha256: str | None
    """SHA-256 of its module; those built in have none."""
    version: str | None
    """Its own version."""
    files: tuple[str, ...]
    """Their paths."""
    description: str | None
    """What it looks like."""

    _MEMBERS = {
        "expression": ("", None),
        "kind": ("", None),
        "file": ("", None),
        "name": ("", None),
        "place": ("", None),
        "sha256": ("", None),
        "version": ("", None),
        "files": ("*", ()),
        "description": ("", None),
    }


class Spread(Record):
    """Several values of one quantity."""

    count: int
    """Number of values."""
    max: float
    """The greatest value."""
    mean: float
    """Mean of the values."""
    min: float
    """The least value."""
    stddev: float
    """Standard deviation of the values."""

    _MEMBERS = {
        "count": ("", None),
        "max": ("", None),
        "mean": ("", None),
        "min": ("", None),
        "stddev": ("", None),
    }


class Stamp(Record):
    """What came of a session of STAMP (RFC 8762). T1 is when this host sent a packet, T2 and T3 when the reflector received it
    and sent its answer, T4 when this host received that."""

    answered: int
    """Packets that were answered in time."""
    client: str
    """Own address and port."""
    clocks: StampClocks
    """How T1 and T4 were taken, and what is known of the clocks."""
    dropped_by_receiver: int | None
    """Datagrams that the socket had no room for."""
    duplicates: int
    """Further answers to packets that were answered already."""
    errors: Rows[StampError]
    """Errors that came back for packets (ICMP)."""
    forward_delay_ns: Distribution | None
    """Delay to the reflector, T2 - T1; left out where the clocks do not tell it (`forward_withheld`)."""
    forward_hops: int | None
    """Routers on the way to the reflector, by the TTL that the reflector reports; left out where that is not known."""
    forward_lost: int | None
    """Packets that were lost on the way to the reflector. Left out where that cannot be known."""
    forward_variation_ns: Distribution | None
    """Variation of the delay to the reflector, likewise: the clocks need not agree for that."""
    forward_withheld: str | None
    """Why the delay to the reflector is withheld."""
    implausible_times: int
    """Answers whose time stamps cannot be: none, or longer at the reflector than the whole way. Their packets are answered,
    and have no delay."""
    late: int
    """Lost packets whose answer came after all, but later than answers are waited for."""
    latest_departure_ns: int
    """Longest time by which a packet left after it was due."""
    least_ttl: int | None
    """Least TTL or hop limit with which the reflector received packets, as it says; they leave with 255."""
    loss_ratio: float | None
    """Lost packets over those sent (0 to 1); left out where none was sent."""
    lost: int
    """Packets that were not: `sent`, less `answered`."""
    no_direction: str | None
    """Why losses have no direction; left out where they have one."""
    one_way_error_ns: int | None
    """By how much delays of one way may be off: the errors of both clocks."""
    other_length: int | None
    """Answers that were not as long as the packet."""
    padding_recognised: bool
    """Whether the reflector recognised the Extra Padding TLV (RFC 8972); left out where none came back."""
    reflector: str
    """Address and port of the reflector."""
    refused: int | None
    """Packets that this host's kernel refused: not among those sent."""
    reordered: int
    """Answers that came after one to a packet that was sent later."""
    residence_ns: Distribution | None
    """How long packets were at the reflector: T3 - T2."""
    return_delay_ns: Distribution | None
    """Delay back, T4 - T3; left out where the clocks do not tell it (`return_withheld`)."""
    return_lost: int | None
    """Packets whose answer was lost on the way back. Left out where that cannot be known."""
    return_variation_ns: Distribution | None
    """Variation of the delay back, likewise."""
    return_withheld: str | None
    """Why the delay back is withheld."""
    round_trip_ns: Distribution | None
    """Round-trip delay: (T4 - T1) - (T3 - T2)."""
    round_trip_variation_ns: Distribution | None
    """Difference between the round trips of two packets that were sent one after the other, without sign (RFC 3393)."""
    sent: int
    """Packets that were sent."""
    size_bytes: int
    """Octets of a packet: the payload of UDP."""
    ssid: int
    """Session identifier of the packets (SSID, RFC 8972)."""
    ssid_returned: bool
    """Whether answers carried the session identifier (RFC 8972); left out where some did."""
    stateful: bool
    """Whether the reflector is stateful: its own sequence numbers are its count of this session. Left out where that cannot be
    known, which is so of each stateless one."""
    strangers: StampStrangers
    """Datagrams that arrived and are no answers of this session."""
    unknown_direction_lost: int | None
    """Packets that were lost after the last one that was answered: in which direction is not known. Left out where that is so
    of all."""
    unsent: int | None
    """Packets that were due and not sent."""
    wait_ns: int
    """How long an answer is waited for, from its packet on."""

    _MEMBERS = {
        "answered": ("", None),
        "client": ("", None),
        "clocks": ("StampClocks", None),
        "dropped_by_receiver": ("", None),
        "duplicates": ("", None),
        "errors": ("*StampError", ()),
        "forward_delay_ns": ("Distribution", None),
        "forward_hops": ("", None),
        "forward_lost": ("", None),
        "forward_variation_ns": ("Distribution", None),
        "forward_withheld": ("", None),
        "implausible_times": ("", None),
        "late": ("", None),
        "latest_departure_ns": ("", None),
        "least_ttl": ("", None),
        "loss_ratio": ("", None),
        "lost": ("", None),
        "no_direction": ("", None),
        "one_way_error_ns": ("", None),
        "other_length": ("", None),
        "padding_recognised": ("", False),
        "reflector": ("", None),
        "refused": ("", None),
        "reordered": ("", None),
        "residence_ns": ("Distribution", None),
        "return_delay_ns": ("Distribution", None),
        "return_lost": ("", None),
        "return_variation_ns": ("Distribution", None),
        "return_withheld": ("", None),
        "round_trip_ns": ("Distribution", None),
        "round_trip_variation_ns": ("Distribution", None),
        "sent": ("", None),
        "size_bytes": ("", None),
        "ssid": ("", None),
        "ssid_returned": ("", False),
        "stateful": ("", False),
        "strangers": ("StampStrangers", None),
        "unknown_direction_lost": ("", None),
        "unsent": ("", None),
        "wait_ns": ("", None),
    }


class StampClocks(Record):
    """How times were taken."""

    own_error_ns: int | None
    """By how much this host's clock may be off UTC, as who keeps it says (adjtimex(2)). Left out where no daemon keeps it."""
    reflector_error_ns: int | None
    """By how much the reflector's may be, as it says; the most of all answers."""
    reflector_format: str | None
    """How it writes times: `ntp`, or `ptp` (the Z bit)."""
    reflector_synchronised: bool
    """Whether the reflector says that its clock is kept to UTC (the S bit), in all answers."""
    stepped_ns: int | None
    """By how much this host's clock was set while it lasted."""
    t1: str
    """How T1 was taken: `program`, by CLOCK_REALTIME right before the packet was handed to the kernel."""
    t4: str
    """How T4 was taken: `kernel`, by CLOCK_REALTIME when its stack received the answer (SO_TIMESTAMPNS)."""
    t4_by_program: int | None
    """Answers whose T4 the program took after all, because the kernel gave none."""
    tai_offset_ns: int | None
    """By how much the reflector's times were set back, because PTP counts TAI."""

    _MEMBERS = {
        "own_error_ns": ("", None),
        "reflector_error_ns": ("", None),
        "reflector_format": ("", None),
        "reflector_synchronised": ("", False),
        "stepped_ns": ("", None),
        "t1": ("", None),
        "t4": ("", None),
        "t4_by_program": ("", None),
        "tai_offset_ns": ("", None),
    }


class StampError(Record):
    """An error that came back for packets."""

    by: str | None
    """Who sent it."""
    count: int
    """How often it came."""
    what: str
    """What it says: `port unreachable`."""

    _MEMBERS = {
        "by": ("", None),
        "count": ("", None),
        "what": ("", None),
    }


class StampReflection(Record):
    """STAMP test packets that a reflector answered or did not. The sum of all packets here but those without room, and of
    answers, is that of the frames that arrived."""

    answers_of_others: int
    """Packets that are answers of other reflectors, passed to the host."""
    fragments: int
    """First fragments of packets, passed to the host."""
    limited_packets: int
    """Packets above the rate, dropped."""
    malformed_packets: int
    """Packets with lengths, addresses or ports that contradict themselves, passed to the host."""
    not_allowed_packets: int
    """Packets from addresses that are not allowed, passed to the host."""
    other_frames: int
    """Frames that are no test packets to this reflector, passed to the host."""
    sessions: int
    """Sessions that began: packets of one source address and port, destination address, session identifier and VLAN."""
    too_short_packets: int
    """Packets shorter than an answer, passed to the host."""
    without_room_packets: int
    """Packets answered with the sender's number, because there was no room for another session."""

    _MEMBERS = {
        "answers_of_others": ("", None),
        "fragments": ("", None),
        "limited_packets": ("", None),
        "malformed_packets": ("", None),
        "not_allowed_packets": ("", None),
        "other_frames": ("", None),
        "sessions": ("", None),
        "too_short_packets": ("", None),
        "without_room_packets": ("", None),
    }


class StampStrangers(Record):
    """Counts of datagrams that arrived and are no answers of the session."""

    all: int
    """All of them."""
    first_source: str | None
    """The first such address."""
    other_session: int | None
    """With another session identifier."""
    other_source: int | None
    """From another address or port than the reflector's."""
    other_time: int | None
    """To packets that were sent at another time than they say."""
    too_short: int | None
    """Shorter than the 38 octets that an answer has at least: up to the error estimate of the packet."""
    unknown_number: int | None
    """To packets that were never sent."""

    _MEMBERS = {
        "all": ("", None),
        "first_source": ("", None),
        "other_session": ("", None),
        "other_source": ("", None),
        "other_time": ("", None),
        "too_short": ("", None),
        "unknown_number": ("", None),
    }


class State(Record):
    """A gauge that is different."""

    after: int | None
    """Left out of a gauge that only the first snapshot has."""
    before: int | None
    """Left out of a gauge that only the second snapshot has."""
    name: str
    """Its name: `Tcp.CurrEstab`."""

    _MEMBERS = {
        "after": ("", None),
        "before": ("", None),
        "name": ("", None),
    }


class Stopped(Record):
    """What kept a search from more."""

    alike_trials: int | None
    """Number of trials that failed by the same cause."""
    at: str
    """Where the loads ended that passed."""
    cause: Cause | None
    """What made that trial fail, or limits the sender."""
    failed_trials: int | None
    """Number of trials that failed."""
    trial: int | None
    """Number of the trial that failed nearest to what passed, where the loads ended at a `trial`."""

    _MEMBERS = {
        "alike_trials": ("", None),
        "at": ("", None),
        "cause": ("Cause", None),
        "failed_trials": ("", None),
        "trial": ("", None),
    }


class Stream(Record):
    """One stream of signed frames."""

    corrupted_frames: int | None
    """Frames whose bytes before the signature were not those that were sent, where that was asked for."""
    duplicated_frames: int
    """Frames that arrived again."""
    gap_max_ns: int | None
    """The longest time between two arrivals."""
    gap_mean_ns: int | None
    """Mean time between two arrivals."""
    inter_arrival_ns: Distribution | None
    """Times from one arrival to the next, whatever their numbers: one over frames that were lost is one long time, and a copy
    of a frame is an arrival, too. Where that was asked for; kept for the first streams only."""
    jitter_ns: float | None
    """Interarrival jitter (RFC 3550, 6.4.1) at the end."""
    latency_max_ns: int | None
    """The longest delay."""
    latency_mean_ns: float | None
    """The mean delay."""
    latency_min_ns: int | None
    """The shortest delay."""
    latency_ns: Distribution | None
    """Delays of its frames; kept for the first streams only."""
    lost_at_end_frames: int | None
    """Lost frames that were sent after the last that arrived."""
    lost_frames: int
    """Frames that were sent and never arrived."""
    name: str | None
    """What the scenario or the mesh calls it."""
    reorder_extent_max: int | None
    """Greatest extent of reordering (RFC 4737, 4.2.2): number of frames from the first with a higher number on."""
    reorder_extent_mean: float | None
    """Mean extent of reordering (RFC 4737, 4.2.2)."""
    reordered_frames: int
    """Frames that arrived after a later one (RFC 4737, 3)."""
    restarted: bool
    """A sender restarted its numbers while it was measured: how many of its frames were lost, came again or out of order is
    not known, and the counts of those say only what was seen."""
    rx_bytes: int
    """Bytes of those, layer 2 without FCS."""
    rx_frames: int
    """Frames that arrived, each time counted."""
    stream: int
    """The number in its signatures."""
    tx_frames: int | None
    """Frames that were sent, where they were sent here."""

    _MEMBERS = {
        "corrupted_frames": ("", None),
        "duplicated_frames": ("", None),
        "gap_max_ns": ("", None),
        "gap_mean_ns": ("", None),
        "inter_arrival_ns": ("Distribution", None),
        "jitter_ns": ("", None),
        "latency_max_ns": ("", None),
        "latency_mean_ns": ("", None),
        "latency_min_ns": ("", None),
        "latency_ns": ("Distribution", None),
        "lost_at_end_frames": ("", None),
        "lost_frames": ("", None),
        "name": ("", None),
        "reorder_extent_max": ("", None),
        "reorder_extent_mean": ("", None),
        "reordered_frames": ("", None),
        "restarted": ("", False),
        "rx_bytes": ("", None),
        "rx_frames": ("", None),
        "stream": ("", None),
        "tx_frames": ("", None),
    }


class Throughput(Record):
    """A rate without loss, or within whatever limits were asked for."""

    bits_per_second: float
    """Bits per second on layer 2, without FCS."""
    bits_per_second_l1: float
    """Bits per second on the wire: with FCS, preamble and inter-frame gap, 24 bytes more per frame."""
    conditional_frames_per_second: float | None
    """What was forwarded at `frames_per_second`, in the worst time that the goal counts (MLRsearch)."""
    failed_frames_per_second: float | None
    """The least load that did not pass; left out when the greatest that was tried passed."""
    frame_size: str
    """Size of the frames, the FCS counted: `512`, `imix`, ..."""
    frames_per_second: float
    """The greatest load that passed, of each sending port."""
    goal: str
    """The limits that had to be kept: `loss 0 %`, ..."""
    reached: bool
    """The bounds came as near as was asked, or the range ends there."""
    trials: Rows[Trial]
    """The trials that led there."""

    _MEMBERS = {
        "bits_per_second": ("", None),
        "bits_per_second_l1": ("", None),
        "conditional_frames_per_second": ("", None),
        "failed_frames_per_second": ("", None),
        "frame_size": ("", None),
        "frames_per_second": ("", None),
        "goal": ("", None),
        "reached": ("", None),
        "trials": ("*Trial", ()),
    }


class Totals(Record):
    """Frames and bytes over a time, and the rates that follow. Made by [`Totals::over`], the one place that computes per-
    second figures."""

    bits_per_second: float
    """Layer 2 without FCS, as tcpreplay counts."""
    bits_per_second_l1: float
    """On the wire: plus FCS, preamble and inter-frame gap, 24 bytes a frame."""
    bytes: int
    """Layer 2 bytes without FCS."""
    duration_ns: int
    """The time that the rates are over."""
    frames: int
    """How many frames."""
    frames_per_second: float
    """0 when `duration_ns` is 0: no rate can be given."""

    _MEMBERS = {
        "bits_per_second": ("", None),
        "bits_per_second_l1": ("", None),
        "bytes": ("", None),
        "duration_ns": ("", None),
        "frames": ("", None),
        "frames_per_second": ("", None),
    }


class Transactions(Record):
    """Requests that were answered; or connections that were made, if both sizes are 0."""

    count: int
    """Number of transactions."""
    in_flight: int
    """Under way over each connection at once, at most."""
    intended_per_second: float | None
    """The load that was asked for (open loop): latency counts from when a request was due. Left out in a closed loop, where a
    request leaves when the one before was answered."""
    latency_ns: Distribution | None
    """Time that transactions took. One that was not answered when the test ended counts as it stands if it had waited longer
    than all others took, or in an open loop than 99 % of them."""
    lost: int | None
    """Requests that were not answered within a second (UDP). Up to `in_flight` over each connection, which were sent later,
    are neither answered nor lost when the test ends."""
    measured_ns: int | None
    """How long that was: the time that was asked for, or longer if the last one was answered later; until an amount was done;
    or, of connections that are opened to be held and no more, until the last one was open. Of repetitions the sum."""
    per_second: float
    """Transactions per second of the measured time."""
    request_bytes: int
    """Bytes of a request."""
    response_bytes: int
    """Bytes of a response."""
    unsent: int | None
    """Requests that were due and not sent: the load was not offered."""

    _MEMBERS = {
        "count": ("", None),
        "in_flight": ("", None),
        "intended_per_second": ("", None),
        "latency_ns": ("Distribution", None),
        "lost": ("", None),
        "measured_ns": ("", None),
        "per_second": ("", None),
        "request_bytes": ("", None),
        "response_bytes": ("", None),
        "unsent": ("", None),
    }


class TransactionsFound(Record):
    """The highest rate of transactions that stays in time."""

    at_percentile_ns: int | None
    """The bounded percentile at the rate that was found: the worst of these trials."""
    below_ns: int
    """Bound of the percentile."""
    closed_loop_in_flight: int
    """Requests in flight over each connection in that closed loop."""
    closed_loop_per_second: float | None
    """Rate that a closed loop reached, which the search began with."""
    failed_per_second: float | None
    """The lowest rate that did not pass; left out where the greatest that was to be tried passed."""
    failed_reason: str | None
    """Why that rate did not pass: the verdict of the last trial there."""
    passed_trials: int
    """Trials that passed at the rate that was found."""
    per_second: float | None
    """The highest rate that passed all its trials; left out where none did."""
    percentile: float
    """The percentile that is bounded: 99."""
    precision_ratio: float
    """How near the bounds were to come, relative to the rate."""

    _MEMBERS = {
        "at_percentile_ns": ("", None),
        "below_ns": ("", None),
        "closed_loop_in_flight": ("", None),
        "closed_loop_per_second": ("", None),
        "failed_per_second": ("", None),
        "failed_reason": ("", None),
        "passed_trials": ("", None),
        "per_second": ("", None),
        "percentile": ("", None),
        "precision_ratio": ("", None),
    }


class Trial(Record):
    """One trial: the intended load, and what came of it."""

    bounds: Rows[Bounds]
    """What was known after it, one entry for each goal that is searched for."""
    cause: Cause | None
    """What most likely lost its frames or kept the sender from its load; left out where it did neither, and where the verdict
    says it all."""
    duplicated_frames: int
    """Frames that arrived again."""
    duration_ns: int
    """0 for a burst, which ends with its last frame."""
    excused_frames: int | None
    """Lost frames that are not held against the device: they were lost in parts of the trial in which this machine, which the
    device shares, was held up, as its scheduler says."""
    floor: Floor | None
    """What of the latency is not the device's."""
    flows: FlowTrial | None
    """What a probe's records say of the flows that were sent. The frames above are packets of flows, and those received are
    the packets that records have."""
    frame_size: str
    """Size of the frames, the FCS counted."""
    intended_frames: int
    """Frames that the load makes in the duration."""
    intended_frames_per_second: float | None
    """Frames per second of each sending port; left out for bursts at top speed."""
    last_loss_ns: int | None
    """When the last lost frame was noticed, from the trial's start."""
    latency_ns: TrialLatency | None
    """Left out where none arrived whose delay could be taken."""
    load: float
    """The value on the search's axis: frames per second of each sending port, or what `search.axis` says."""
    loss_ratio: float
    """Lost and unsent, over all that was intended (0 to 1): what the goals look at."""
    lost_at_end_frames: int | None
    """Lost frames that were sent after the last that arrived, in trials that look for the end of losses. With any, the losses
    were not over when the trial was."""
    lost_frames: int
    """Sent and not received: the device's loss, but for `missed_frames` and `unconfirmed_frames`."""
    missed_frames: int | None
    """Frames that the tester's receiving side may have lost itself: so many of those that are missing are not the device's
    loss."""
    number: int
    """Number of the trial, from 1, in the order they were done."""
    outage_ns: int | None
    """The longest time without an arrival while frames were due."""
    part: str
    """The part of the search that wanted it: `throughput`, `latency`, ..."""
    received_frames: int
    """Frames that arrived, each counted once."""
    reordered_frames: int
    """Frames that arrived after a later one of their stream."""
    repeated: int
    """Number of times the trial was done before, because the sender was held up and nothing could be said of the device."""
    sent_frames: int
    """Frames that the interface transmitted."""
    shortfall_ratio: float
    """Intended and not sent: the sender's own shortfall, over all that was intended (0 to 1)."""
    stage: str
    """`search`, `confirm`, `measure` or `warm_up`."""
    steady_lost_frames: int | None
    """Lost frames that are the device's: they were lost again and again in parts of the trial in which this machine, which the
    device shares, was in time."""
    then_duration_ns: int | None
    """How long that load lasted."""
    then_load: float | None
    """A load that was changed to without a pause, and for how long."""
    unconfirmed_frames: int | None
    """Frames that no counter saw leave the tester: so many of those that are missing are not the device's loss."""
    uneven_frames: int | None
    """Frames that the sender sent too close together after it had been held up: so many losses may be due to that."""
    verdict: str
    """`passed`, or what was not kept: `loss`, `latency`, `variation`, `order`; or why nothing is known of the device: `sender
    short`, `sender uneven`, `receiver lost` (the tester's own receiver lost frames), `unconfirmed` (no counter saw the
    missing frames leave), `latency unknown`, `port lost` (a port of the tester had no link)."""

    _MEMBERS = {
        "bounds": ("*Bounds", ()),
        "cause": ("Cause", None),
        "duplicated_frames": ("", None),
        "duration_ns": ("", None),
        "excused_frames": ("", None),
        "floor": ("Floor", None),
        "flows": ("FlowTrial", None),
        "frame_size": ("", None),
        "intended_frames": ("", None),
        "intended_frames_per_second": ("", None),
        "last_loss_ns": ("", None),
        "latency_ns": ("TrialLatency", None),
        "load": ("", None),
        "loss_ratio": ("", None),
        "lost_at_end_frames": ("", None),
        "lost_frames": ("", None),
        "missed_frames": ("", None),
        "number": ("", None),
        "outage_ns": ("", None),
        "part": ("", None),
        "received_frames": ("", None),
        "reordered_frames": ("", None),
        "repeated": ("", 0),
        "sent_frames": ("", None),
        "shortfall_ratio": ("", None),
        "stage": ("", None),
        "steady_lost_frames": ("", None),
        "then_duration_ns": ("", None),
        "then_load": ("", None),
        "unconfirmed_frames": ("", None),
        "uneven_frames": ("", None),
        "verdict": ("", None),
    }


class TrialLatency(Record):
    """Delays of a trial's frames."""

    count: int
    """Number of delays that were taken."""
    frame_to_frame_max: int | None
    """The greatest such difference."""
    frame_to_frame_p50: int | None
    """Median difference between the delays of a frame and of the one before it in its stream, without sign (RFC 8219, 7.3.2)."""
    frame_to_frame_p999: int | None
    """The 99.9th percentile of that difference."""
    jitter: int | None
    """Smoothed mean of that difference (RFC 3550, 6.4.1): of several streams the greatest."""
    max: int
    """The longest delay."""
    mean: float
    """The mean delay."""
    min: int
    """The shortest, in nanoseconds."""
    p50: int
    """The median delay."""
    p90: int
    """The 90th percentile of the delay."""
    p99: int
    """The 99th percentile of the delay."""
    p999: int
    """The 99.9th percentile of the delay."""

    _MEMBERS = {
        "count": ("", None),
        "frame_to_frame_max": ("", None),
        "frame_to_frame_p50": ("", None),
        "frame_to_frame_p999": ("", None),
        "jitter": ("", None),
        "max": ("", None),
        "mean": ("", None),
        "min": ("", None),
        "p50": ("", None),
        "p90": ("", None),
        "p99": ("", None),
        "p999": ("", None),
    }


class Tx(Record):
    """What was sent: frames the kernel has completed."""

    bits_per_second: float
    """Layer 2 without FCS, as tcpreplay counts."""
    bits_per_second_l1: float
    """On the wire: plus FCS, preamble and inter-frame gap, 24 bytes a frame."""
    bytes: int
    """Layer 2 bytes without FCS."""
    cores: Rows[Core]
    """The work by core: one entry for each worker."""
    departures: Departures | None
    """When some of the frames left, by the interface's time stamps, where that was asked for."""
    due_not_sent_frames: int | None
    """Frames that were due and neither left within 20 ms of grace nor were refused: due in the duration that was asked for,
    and where the run was ended before, 20 ms before that. Left out at top speed. Of a streamed capture at its own times or
    at a rate in bits at least so many from 20,000,000 on."""
    duration_ns: int
    """The time that the rates are over."""
    engine: str
    """The engine that sent them: `packet`, `null`, `file`, ..."""
    failed: int
    """Frames given up after retries."""
    frames: int
    """How many frames."""
    frames_per_second: float
    """0 when `duration_ns` is 0: no rate can be given."""
    intended_frames: int | None
    """Frames the schedule asked for within the run; left out at top speed, which asks for no number."""
    intended_frames_per_second: float | None
    """The rate the schedule asked for."""
    interface_counters: Rows[InterfaceCounters]
    """The interfaces' own counters over the run, against what this program counted."""
    interfaces: Rows[TxInterface]
    """What left by each interface, where there are two: first that of `--on`, then that of `--on2`."""
    retried_eagain: int
    """Sends repeated because the socket's buffer was full."""
    retried_enobufs: int
    """Sends repeated because the device's queue was full."""
    signed: Rows[SignedFrames]
    """Frames that were sent of each number in signatures, where others measure them (a part of a job on several hosts)."""
    stamped_together: int | None
    """The number of frames that carry one time stamp, taken when the first of them is made, because the kernel hands them to
    the driver together (top speed by XDP live frames); left out where each has its own."""
    truncated: int
    """Frames sent shorter than they should have been (snap length below the frame's length)."""
    unconfirmed_frames: int | None
    """Frames that were handed over and that no counter saw leave; left out where all were seen."""

    _MEMBERS = {
        "bits_per_second": ("", None),
        "bits_per_second_l1": ("", None),
        "bytes": ("", None),
        "cores": ("*Core", ()),
        "departures": ("Departures", None),
        "due_not_sent_frames": ("", None),
        "duration_ns": ("", None),
        "engine": ("", None),
        "failed": ("", 0),
        "frames": ("", None),
        "frames_per_second": ("", None),
        "intended_frames": ("", None),
        "intended_frames_per_second": ("", None),
        "interface_counters": ("*InterfaceCounters", ()),
        "interfaces": ("*TxInterface", ()),
        "retried_eagain": ("", 0),
        "retried_enobufs": ("", 0),
        "signed": ("*SignedFrames", ()),
        "stamped_together": ("", None),
        "truncated": ("", 0),
        "unconfirmed_frames": ("", None),
    }


class TxInterface(Record):
    """What left by one of two interfaces."""

    bytes: int
    """Layer 2 bytes without FCS."""
    failed: int
    """Frames given up after retries."""
    flow_frames: int | None
    """Frames that belong to a flow."""
    flows: int | None
    """Flows first seen here; a flow that leaves by both counts once."""
    frames: int
    """Frames that were sent."""
    interface: str
    """Where they left."""
    retried_eagain: int
    """Tries that the kernel refused with EAGAIN, and that were repeated."""
    retried_enobufs: int
    """Tries that the kernel refused with ENOBUFS, and that were repeated."""
    truncated: int
    """Frames sent shorter than they should have been."""

    _MEMBERS = {
        "bytes": ("", None),
        "failed": ("", None),
        "flow_frames": ("", None),
        "flows": ("", None),
        "frames": ("", None),
        "interface": ("", None),
        "retried_eagain": ("", None),
        "retried_enobufs": ("", None),
        "truncated": ("", None),
    }


class UnderLoad(Record):
    """Latency of transactions by themselves and beside streams that fill the path."""

    grade: str | None
    """A+ to F; left out where latency was lower beside streams than without them, because that does not show how much they
    add."""
    idle_ns: Distribution
    """Latency without other traffic."""
    increase_ns: int
    """Rise of the median latency; 0 if it fell."""
    loaded_ns: Distribution
    """Latency beside streams in both directions."""
    round_trips_per_minute: float
    """Transactions a minute beside streams, from the mean latency: RPM, as the responsiveness drafts (draft-ietf-ippm-
    responsiveness) call it."""
    rule: str
    """The rule that the grade follows."""

    _MEMBERS = {
        "grade": ("", None),
        "idle_ns": ("Distribution", None),
        "increase_ns": ("", None),
        "loaded_ns": ("Distribution", None),
        "round_trips_per_minute": ("", None),
        "rule": ("", None),
    }


class Unfinished(Record):
    """A part of a search that was ended before its end, because it was interrupted, a port was lost, or it did not converge."""

    axis: str
    """What the values count: `frames_per_second`, `burst_frames`, ..."""
    failed: float | None
    """The least hard value that the device failed."""
    failed_duration_ns: int | None
    """Length of that trial."""
    goal: str | None
    """The limits that had to be kept, where a bound was searched for; there is an entry for each goal."""
    part: str
    """`throughput`, `latency`, ..."""
    passed: float | None
    """The hardest value that passed a trial, among those that are easier than all that failed one."""
    passed_duration_ns: int | None
    """Length of that trial: a search decides by trials of full length."""
    passed_trials: int
    """Number of trials that passed."""
    trials: int
    """Number of trials that were done."""
    wanted_trials: int | None
    """Trials that there were to be, where that is known."""

    _MEMBERS = {
        "axis": ("", None),
        "failed": ("", None),
        "failed_duration_ns": ("", None),
        "goal": ("", None),
        "part": ("", None),
        "passed": ("", None),
        "passed_duration_ns": ("", None),
        "passed_trials": ("", None),
        "trials": ("", None),
        "wanted_trials": ("", None),
    }


class Verdict(Record):
    """Whether the run did what was asked. Decides the exit status."""

    outcome: str
    codes: tuple[str, ...]
    """What each of the reasons is about: loss is `frames-lost`, a rate not reached `rate-not-reached`."""
    reasons: tuple[str, ...]
    """What was not as asked, in the order in which it was found."""

    _MEMBERS = {
        "outcome": ("", None),
        "codes": ("*", ()),
        "reasons": ("*", ()),
    }


class Written(Record):
    """A file, database or cluster that records were written to: all that came are written or unwritten."""

    fault: str | None
    """What went wrong first, if records were lost by it."""
    faults: int | None
    """How often something went wrong, although it may have been overcome."""
    to: str
    """The file, database or cluster."""
    unwritten_records: int
    """Records that were not written."""
    written_records: int
    """Records that were written and, where that can be had, confirmed. Of a pipe, those that went into it."""

    _MEMBERS = {
        "fault": ("", None),
        "faults": ("", None),
        "to": ("", None),
        "unwritten_records": ("", None),
        "written_records": ("", None),
    }


class XdpProgram(Record):
    """The XDP program that is the lab's device, while this run lasted."""

    counting_ns_per_frame: float | None
    """Nanoseconds for each frame that counting its verdicts took."""
    frames: int
    """Frames that it was run on, by the kernel's statistics, in both directions."""
    notes: tuple[str, ...]
    """What the reader should know."""
    ns_per_frame: float | None
    """Nanoseconds for each of them, less what counting its verdicts took. What is left of that are some ten nanoseconds, the
    same with every program."""
    object: str
    """The object's file."""
    program: str
    """The name of its function."""
    unlisted_frames: int | None
    """Frames that stand in no row of `verdicts`: there were too many streams."""
    verdicts: Rows[XdpVerdict]
    """What it said of them, by interface and stream. Left out where verdicts could not be counted."""

    _MEMBERS = {
        "counting_ns_per_frame": ("", None),
        "frames": ("", None),
        "notes": ("*", ()),
        "ns_per_frame": ("", None),
        "object": ("", None),
        "program": ("", None),
        "unlisted_frames": ("", None),
        "verdicts": ("*XdpVerdict", ()),
    }


class XdpVerdict(Record):
    """Frames that an XDP program said the same of."""

    frames: int
    """How many."""
    in_several_buffers: bool
    """They lay in several buffers, whose end is not looked at: of which stream they are is not known."""
    interface: str | None
    """The device's interface that they came in by; a number where it has no name any more."""
    stream: int | None
    """The stream, of frames that bear a signature when the program is done."""
    verdict: str
    """`pass`, `drop`, `tx`, `redirect`, `aborted`; `(verdict N)` of what is none."""

    _MEMBERS = {
        "frames": ("", None),
        "in_several_buffers": ("", False),
        "interface": ("", None),
        "stream": ("", None),
        "verdict": ("", None),
    }


_CLASSES: dict[str, type[Record]] = {
    "Achieved": Achieved,
    "Adjustment": Adjustment,
    "AgentClock": AgentClock,
    "AgentPart": AgentPart,
    "Bounds": Bounds,
    "Bucket": Bucket,
    "BufferPoint": BufferPoint,
    "BurstFound": BurstFound,
    "Capture": Capture,
    "CatchUp": CatchUp,
    "Cause": Cause,
    "Choice": Choice,
    "Cloned": Cloned,
    "ClonedAnswers": ClonedAnswers,
    "ClonedBytes": ClonedBytes,
    "ClonedConnections": ClonedConnections,
    "ClonedDifference": ClonedDifference,
    "ClonedFrames": ClonedFrames,
    "ClonedNoise": ClonedNoise,
    "ClonedPlace": ClonedPlace,
    "ClonedSent": ClonedSent,
    "ClonedSessions": ClonedSessions,
    "Collection": Collection,
    "Collector": Collector,
    "Conversation": Conversation,
    "Core": Core,
    "CounterChange": CounterChange,
    "CounterNote": CounterNote,
    "CountersDifference": CountersDifference,
    "Datagrams": Datagrams,
    "DelayVariation": DelayVariation,
    "Departures": Departures,
    "Difference": Difference,
    "Distribution": Distribution,
    "DropBacklog": DropBacklog,
    "DropQueue": DropQueue,
    "DropRule": DropRule,
    "Dropped": Dropped,
    "DroppedOfStream": DroppedOfStream,
    "DropsOverTime": DropsOverTime,
    "DropsTraced": DropsTraced,
    "End": End,
    "Endpoint": Endpoint,
    "EndpointInterval": EndpointInterval,
    "EndpointMemory": EndpointMemory,
    "EndpointSearch": EndpointSearch,
    "EndpointStream": EndpointStream,
    "EndpointTrial": EndpointTrial,
    "Environment": Environment,
    "Exchange": Exchange,
    "Exporter": Exporter,
    "Floor": Floor,
    "FlowKind": FlowKind,
    "FlowProfile": FlowProfile,
    "FlowTrial": FlowTrial,
    "Flows": Flows,
    "FlowsFound": FlowsFound,
    "Forwarded": Forwarded,
    "ForwardedSessions": ForwardedSessions,
    "GoalResult": GoalResult,
    "Group": Group,
    "HardwareStamps": HardwareStamps,
    "HeldSessions": HeldSessions,
    "HostCounter": HostCounter,
    "Impaired": Impaired,
    "Interface": Interface,
    "InterfaceCounters": InterfaceCounters,
    "Interval": Interval,
    "LatencyAt": LatencyAt,
    "LatencyClock": LatencyClock,
    "LinkEvent": LinkEvent,
    "Loss": Loss,
    "LossAt": LossAt,
    "Mesh": Mesh,
    "MeshAsymmetry": MeshAsymmetry,
    "MeshHost": MeshHost,
    "MeshPair": MeshPair,
    "MeshServed": MeshServed,
    "MeshSlowest": MeshSlowest,
    "MeshValue": MeshValue,
    "MeshWorst": MeshWorst,
    "Metering": Metering,
    "NatCounts": NatCounts,
    "NotTaken": NotTaken,
    "Note": Note,
    "Opening": Opening,
    "Pacing": Pacing,
    "Passage": Passage,
    "PortResult": PortResult,
    "QueueCounters": QueueCounters,
    "Reflection": Reflection,
    "Repeated": Repeated,
    "ReportData": ReportData,
    "RequestedRate": RequestedRate,
    "Resolved": Resolved,
    "Returned": Returned,
    "RoundTrip": RoundTrip,
    "Rx": Rx,
    "RxInterface": RxInterface,
    "SearchResult": SearchResult,
    "Served": Served,
    "SessionCapacityFound": SessionCapacityFound,
    "SessionRateFound": SessionRateFound,
    "SessionTrial": SessionTrial,
    "Sessions": Sessions,
    "SessionsSearch": SessionsSearch,
    "SessionsServed": SessionsServed,
    "SignedFrames": SignedFrames,
    "SizeResult": SizeResult,
    "SocketBufferFound": SocketBufferFound,
    "Source": Source,
    "Spread": Spread,
    "Stamp": Stamp,
    "StampClocks": StampClocks,
    "StampError": StampError,
    "StampReflection": StampReflection,
    "StampStrangers": StampStrangers,
    "State": State,
    "Stopped": Stopped,
    "Stream": Stream,
    "Throughput": Throughput,
    "Totals": Totals,
    "Transactions": Transactions,
    "TransactionsFound": TransactionsFound,
    "Trial": Trial,
    "TrialLatency": TrialLatency,
    "Tx": Tx,
    "TxInterface": TxInterface,
    "UnderLoad": UnderLoad,
    "Unfinished": Unfinished,
    "Verdict": Verdict,
    "Written": Written,
    "XdpProgram": XdpProgram,
    "XdpVerdict": XdpVerdict,
}
for _class in _CLASSES.values():
    _class._CLASSES = _CLASSES
