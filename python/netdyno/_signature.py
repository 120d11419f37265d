"""Arguments of the verbs, from the table of settings: signatures, documentation, and ``_verbs.pyi``."""

from __future__ import annotations

import functools
import inspect
import textwrap

from . import _table

# What is sent, besides an expression: `nd.send` and its like take it.
_WHAT = "_What"
# The parts of a job that links and plugins are given in.
_LINKED = ("send", "replay", "trial", "search")
_ABOUT = {
    "send": "Sends frames of an expression, a scenario, packets of Scapy or bytes, and measures them where they arrive.",
    "replay": "Sends captures.",
    "measure": "Counts what arrives on an interface.",
    "reflect": "Sends back what arrives on an interface.",
    "bridge": "Makes one cable of two interfaces.",
    "impair": "Makes a device with known faults of two interfaces.",
    "probe": "Counts what arrives by flows, and exports their records.",
    "collect": "Receives records of flows, checks and writes them.",
    "clone": "Says to another server what clients say to one.",
    "clone-capture": "Captures a server's clients, for a clone on another host.",
    "clone-return": "Sends answers to a clone's copies back to it, at its target.",
    "live": "Plays the clients of captured TCP connections against a real server.",
    "endpoint": "Streams and transactions over this host's TCP and UDP, against a netdyno server.",
    "endpoint-server": "The far end of endpoint tests.",
    "endpoint-search": "Finds the smallest socket buffer, or the highest rate of transactions, between two endpoints.",
    "sessions": "Makes TCP connections by the million, as clients of a server, without the host's TCP.",
    "sessions-search": "Finds the highest rate of new TCP connections that a device carries, or how many it holds at once.",
    "sessions-server": "A server of TCP connections that keeps no state, without the host's TCP.",
    "iperf3": "Tests with a server of iperf3's protocol.",
    "iperf3-server": "A server of iperf3's protocol.",
    "netperf": "Tests with a server of netperf's protocol.",
    "netserver": "A server of netperf's protocol.",
    "trial": "Tries one load, and whether the device keeps to a goal.",
    "search": "Finds what a device can do.",
}


def finds(kind: str) -> tuple[str, ...]:
    """What a kind of job may look for."""
    return _table.finds(kind)


@functools.lru_cache(maxsize=None)
def arguments(kind: str) -> tuple[tuple[str, str, bool, str], ...]:
    """Each argument of a verb: its name, its type, whether it stands by its place, and what it does."""
    found: dict[str, tuple[str, str, bool, str]] = {}
    looked_for = finds(kind)
    if looked_for:
        words = ", ".join(repr(find) for find in looked_for)
        found["find"] = ("find", f"Literal[{words}]", True, "What is looked for.")
    if kind in _LINKED:
        found["on"] = ("on", "_Names", False, "Frames leave by this interface (IFACE, or IFACE@NAMESPACE), or by several.")
        found["measure"] = ("measure", "_Names", False, "They are measured where they arrive on this one, or on several, each for the `on` at its place.")
        found["links"] = ("links", "Sequence[Mapping[str, str]]", False, "The same as pairs: [{'on': ..., 'measure': ...}, ...].")
        if kind != "replay":
            found["plugin"] = ("plugin", "str | Mapping[str, Any]", False, "Instead of `what`: a plugin says what the frames are.")
    parts: dict[str, None] = {}
    for find in looked_for or (None,):
        for setting in _table.settings(kind, find):
            text = _table.worded(kind, find, setting.text)
            place = setting.by_place and not kind.endswith("-search")
            of = "bool | Mapping[str, Any]" if setting.path.split(".")[-1] == "lab" else _type(setting)
            found.setdefault(setting.argument, (setting.argument, of, place, text))
            if "." in setting.path:
                parts[setting.path.split(".", 1)[0]] = None
    for part in parts:
        if part not in found and part.isidentifier():
            about = "In a lab of its own; True, or what stands in it." if part == "lab" else f"The members of `{part}` at once, as in a job."
            found[part] = (part, "bool | Mapping[str, Any]", False, about)
    return tuple(found.values())


def _type(setting: _table.Setting) -> str:
    if setting.path.split(".")[-1] == "what":
        return _WHAT
    if setting.shape == "flag" or setting.switch:
        return "bool"
    if setting.words:
        words = [*setting.words, *setting.other_words]
        one = f"Literal[{', '.join(repr(word) for word in dict.fromkeys(words))}]"
    elif setting.is_path:
        one = "_Path"
    elif setting.unit == "s":
        one = "_Time"
    elif setting.unit == "pps" or setting.number or setting.value in ("SIZE", "SIZES", "SHARE", "PERCENT"):
        one = "str | float"
    else:
        one = "str"
    if setting.shape == "many":
        return f"{one} | Sequence[{one}]"
    return "tuple[str, str] | str" if setting.shape == "pair" else one


def signature(kind: str) -> inspect.Signature:
    """As `help` shows it."""
    made = []
    for place in (True, False):
        for name, type_, by_place, _ in arguments(kind):
            if by_place == place:
                how = inspect.Parameter.POSITIONAL_OR_KEYWORD if place else inspect.Parameter.KEYWORD_ONLY
                made.append(inspect.Parameter(name, how, default=None, annotation=f"{type_} | None"))
    made.append(inspect.Parameter("program", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Program | None"))
    return inspect.Signature(made, return_annotation="Report")


def documentation(kind: str) -> str:
    """What `help` says."""
    lines = [_ABOUT.get(kind, f"A job of the kind `{kind}` (docs/jobs.md)."), ""]
    lines += ["Returns the report when it is over. `nd.start` takes the same arguments behind the function, and returns at once.", ""]
    for name, _, _, text in arguments(kind):
        lines += textwrap.wrap(f"{name}: {text}", 120, subsequent_indent="    ")
    return "\n".join(lines)


STUB = '''"""The verbs, with an argument for each setting.

Made by ``python -m netdyno._generate``: do not edit.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import Any, Literal

from ._agent import Program
from ._job import Job
from .report import Report

_Path = str | PathLike[str]
_Time = str | float | timedelta
_Names = str | Sequence[str]
_What = str | bytes | PathLike[str] | Mapping[str, Any] | Iterable[Any] | object

__all__: list[str]

VERBS: dict[str, str]

def made(kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job: ...
'''


def stub() -> str:
    """The text of ``_verbs.pyi``."""
    parts = [STUB]
    for kind in _table.kinds():
        lines = [f"def {kind.replace('-', '_')}("]
        star = False
        for parameter in signature(kind).parameters.values():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
                lines.append("    *,")
                star = True
            lines.append(f"    {parameter.name}: {parameter.annotation} = None,")
        lines.append(") -> Report: ...")
        parts.append("\n".join(lines) + "\n")
    return "".join(parts)
