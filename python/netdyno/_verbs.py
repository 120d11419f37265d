"""The verbs: a function for each kind of job, whose arguments are made from the table of settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _job, _signature, _table
from ._agent import Program
from .errors import UsageError
from .report import Report

# Of each function the kind of job.
VERBS: dict[str, str] = {}
__all__ = [kind.replace("-", "_") for kind in _table.kinds()]


def made(kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _job.Job:
    """The job of a verb's arguments."""
    called = kind.replace("-", "_")
    given = dict(kwargs)
    given.pop("program", None)
    places = [name for name, _, by_place, _ in _signature.arguments(kind) if by_place]
    if len(args) > len(places):
        raise UsageError(f"nd.{called} takes {len(places)} arguments by their places ({', '.join(places)}), and {len(args)} were given")
    for name, value in zip(places, args):
        if name in given:
            raise UsageError(f"nd.{called} got `{name}` twice", setting=name)
        given[name] = value
    find = given.pop("find", None)
    looked_for = _signature.finds(kind)
    if looked_for:
        if find is None:
            raise UsageError(f"what is looked for? nd.{called}({looked_for[0]!r}, ...); there are {', '.join(looked_for)}", setting="find")
        if find not in looked_for:
            raise UsageError(f"`{find}` is nothing that can be looked for; there are {', '.join(looked_for)}", setting="find")
    if kind == "send":
        given = _frames(given)
        if "captures" in given:
            return _job.build("replay", None, given)
    return _job.build(kind, find, given)


def _frames(given: dict[str, Any]) -> dict[str, Any]:
    """Frames as bytes are a capture, which is replayed: at its own rate if none is said, which is a microsecond apart."""
    what = given.get("what")
    if what is None or isinstance(what, (str, dict)) or hasattr(what, "__fspath__"):
        return given
    stand_in = _job.translated(what)
    if not isinstance(stand_in, list):
        return {**given, "what": stand_in}
    rest = {name: value for name, value in given.items() if name != "what"}
    return {"rate": "top", **rest, "captures": _job.Frames(stand_in)}


def _verb(kind: str) -> Callable[..., Report]:
    def verb(*args: Any, **kwargs: Any) -> Report:
        from . import _start

        program: Program | None = kwargs.get("program")
        with _start.begin(made(kind, args, kwargs), program, (args, kwargs)) as run:
            return run.wait()

    name = kind.replace("-", "_")
    verb.__name__ = verb.__qualname__ = name
    verb.__module__ = "netdyno"
    verb.__doc__ = _signature.documentation(kind)
    verb.__signature__ = _signature.signature(kind)  # type: ignore[attr-defined]
    VERBS[name] = kind
    return verb


for _kind in _table.kinds():
    globals()[_kind.replace("-", "_")] = _verb(_kind)
