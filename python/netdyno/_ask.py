"""Questions and answers, as Scapy's ``srp`` puts them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from typing import Any

from . import _job, _start, _verbs
from ._agent import Program
from .captures import read_packets
from .errors import Short, UsageError

__all__ = ["pairs", "sr"]


def sr(
    packets: Any,
    *,
    on: str,
    rate: str | float | None = None,
    multi: bool = False,
    program: Program | None = None,
) -> tuple[Any, Any]:
    """Sends packets of Scapy once each and pairs what comes back with them, as Scapy's ``srp`` does.

    Returns two of Scapy's lists: of pairs (packet, answer), and of packets without an answer. What is an answer, Scapy's own
    ``answers()`` says. Packets leave and answers arrive by ``on``, and this host's own stack gets all that it would get anyway. Answers
    are waited for until none has come for 200 ms, and for two seconds after the last packet at most. With ``multi``, all answers to a
    packet count, else the first. Answers have the times when they arrived.

    packets: a template, or a list or generator of packets.
    on: the interface (IFACE, or IFACE@NAMESPACE).
    rate: frames per second, or text such as "10kpps". Default: 10,000 a second.
    """
    scapy = _job._scapy()
    if scapy is None or not (scapy.is_packet(packets) or isinstance(packets, Iterable)):
        raise UsageError(f"{type(packets).__name__} is no packet of Scapy: nd.sr pairs by what Scapy's packets say of each other", setting="packets")
    asked = scapy.each(packets)
    with tempfile.TemporaryDirectory(prefix="netdyno-sr-") as folder:
        file = os.path.join(folder, "answers.pcapng")
        what = packets if scapy.is_packet(packets) else asked
        # A signature would be no part of what was asked.
        given = {"on": on, "measure": on, "capture": file, "sign": "never", "pass_": True, "rate": 10_000 if rate is None else rate}
        job = _verbs.made("send", (what,), {**given, "count": len(asked)})
        with _start.begin(job, program, ((on,), {})) as run:
            report = run.wait()
        if report.tx.frames < len(asked):
            raise Short(report)
        answers = read_packets(file)
    return pairs(asked, answers, multi=multi)


def pairs(asked: Iterable[Any], answers: Iterable[Any], *, multi: bool = False) -> tuple[Any, Any]:
    """Pairs packets with their answers by Scapy's ``hashret()`` and ``answers()``: lists of pairs, and of what has no answer."""
    from scapy.plist import PacketList, SndRcvList  # type: ignore[import-not-found,import-untyped,unused-ignore]

    waiting: dict[bytes, list[Any]] = {}
    asked = list(asked)
    for packet in asked:
        waiting.setdefault(packet.hashret(), []).append(packet)
    answered: list[Any] = []
    done = set()
    for answer in answers:
        of = waiting.get(answer.hashret(), [])
        for place, packet in enumerate(of):
            if answer.answers(packet):
                answered.append((packet, answer))
                done.add(id(packet))
                if not multi:
                    del of[place]
                break
    return SndRcvList(answered), PacketList([packet for packet in asked if id(packet) not in done], "Unanswered")
