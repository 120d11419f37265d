"""Jobs made, and started."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, overload

from . import _core, _verbs
from ._agent import Agent, Program
from ._job import Job, build, translated
from .errors import UsageError
from .report import Report
from .run import Run

try:
    from typing import ParamSpec
except ImportError:  # Python 3.9

    class ParamSpec:  # type: ignore[no-redef]
        """Stands in for that of later versions, which type checkers know."""

        def __init__(self, name: str) -> None:
            self.args = self.kwargs = None


P = ParamSpec("P")


def begin(job: Job, program: Program | None, given: tuple[tuple[Any, ...], Mapping[str, Any]] = ((), {}), start_at: int | None = None) -> Run:
    """Starts a job: in the lab that one of its arguments is an interface of, else by itself."""
    from .lab import agent_of

    agent: Agent | None = agent_of([*given[0], *given[1].values()])
    return Run(job, program, agent, start_at=start_at)


@overload
def job(verb: Callable[P, Report], /, *args: P.args, **kwargs: P.kwargs) -> Job: ...
@overload
def job(verb: Mapping[str, Any], /) -> Job: ...
def job(verb: Any, /, *args: Any, **kwargs: Any) -> Job:
    """A job as data, not started: ``nd.job(nd.send, "ipv4/udp", on="tx0")``, or of a dict as docs/jobs.md describes it."""
    if isinstance(verb, Mapping):
        return Job({"schema": _core.JOB, **verb})
    name = getattr(verb, "__name__", "")
    if _verbs.VERBS.get(name) is None or getattr(_verbs, name) is not verb:
        raise UsageError(f"{verb!r} is none of the functions that are jobs: {', '.join(sorted(_verbs.VERBS))}")
    return _verbs.made(_verbs.VERBS[name], args, kwargs)


@overload
def start(verb: Callable[P, Report], /, *args: P.args, **kwargs: P.kwargs) -> Run: ...
@overload
def start(verb: Job | Mapping[str, Any], /, *, program: Program | None = None, start_at: int | None = None) -> Run: ...
def start(verb: Any, /, *args: Any, **kwargs: Any) -> Run:
    """Starts a job and returns at once: ``with nd.start(nd.send, "ipv4/udp", on="tx0") as run: ...``.

    What is started is one of the functions that are jobs, with its arguments behind it; or a job of `nd.job`, or a dict of one. Of the
    latter, ``start_at`` is the time (CLOCK_TAI, in nanoseconds) when its first frame is due.
    """
    if isinstance(verb, (Job, Mapping)):
        made = verb if isinstance(verb, Job) else job(verb)
        links = list(made.data.get("links", ())) + list((made.data.get("bench") or {}).get("links", ()))
        given = [end for link in links for end in link.values()] + list(made.data.values())
        return begin(made, kwargs.get("program"), (tuple(given), {}), kwargs.get("start_at"))
    return begin(job(verb, *args, **kwargs), kwargs.get("program"), (args, kwargs))


def craft(
    what: Any,
    *,
    count: int = 1,
    first: int = 0,
    size: str | int | None = None,
    seed: int = 0,
    sign: bool = False,
    link_speed: str = "10gbps",
) -> list[bytes]:
    """The frames that `send` would send, without FCS: ``count`` of them from number ``first`` on, or fewer where they end.

    Needs no rights, and runs nothing. ``what``: an expression, a scenario (the name of its file, or a dict), a packet of Scapy.
    ``link_speed`` is what a scenario's rates in percent are percent of; in which order frames of several streams come depends on it.
    """
    if count < 0 or first < 0:
        raise UsageError("frames are counted from 0 on", setting="count" if count < 0 else "first")
    shaped = None if size is None else str(size)
    if isinstance(what, os.PathLike) or (isinstance(what, str) and what.lower().endswith((".yaml", ".yml"))):
        name = os.fspath(what)
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise UsageError(f"{name} cannot be read: {error.strerror}", setting="what") from error
        return _core.craft_scenario(text, str(name), first, count, shaped, seed, sign, link_speed)
    if isinstance(what, str):
        return _core.craft_expression(what, first, count, shaped, seed, sign)
    stand_in = what if isinstance(what, Mapping) else translated(what)
    if isinstance(stand_in, Mapping):
        return _core.craft_scenario(json.dumps(dict(stand_in)), "the scenario", first, count, shaped, seed, sign, link_speed)
    return stand_in[first : first + count]


def edit(captures: Any, write: str | os.PathLike[str], *, program: Program | None = None, **edits: Any) -> Report:
    """Writes edited captures into a file: ``nd.edit("in.pcap", "out.pcap", map_ip="10.0.0.0/8=192.0.2.0/24")``.

    Takes the arguments of `replay`, the edits among them. Needs no rights.
    """
    with Run(build("replay", None, {"captures": captures, "write": write, **edits}), program) as run:
        return run.wait()
