"""The table of settings, as the compiled part has it: what each kind of job can be told."""

from __future__ import annotations

import functools
import json
import keyword
import re
from dataclasses import dataclass
from typing import Any

from . import _core


@dataclass(frozen=True)
class Setting:
    """A setting of a kind of job."""

    path: str
    """Where it stands in the job: ``meter.check_content``."""
    argument: str
    """What it is called as an argument: ``check_content``."""
    text: str
    value: str
    shape: str
    required: bool
    is_path: bool
    consent: bool
    default: str | None
    least: int | None
    most: int | None
    words: tuple[str, ...]
    other_words: dict[str, str]
    switch: bool
    number: bool
    unit: str | None
    by_place: bool


def _setting(row: dict[str, Any], prefix: str) -> Setting:
    argument = row["argument"]
    return Setting(
        path=prefix + row["path"],
        argument=f"{argument}_" if keyword.iskeyword(argument) else argument,
        text=row["text"],
        value=row["value"],
        shape=row["shape"],
        required=row["required"],
        is_path=row["is_path"],
        consent=row["consent"],
        default=row.get("default"),
        least=row.get("least"),
        most=row.get("most"),
        words=tuple(row.get("words", ())),
        other_words=dict(row.get("other_words", ())),
        switch=row["switch"],
        number=row["number"],
        unit=row.get("unit"),
        by_place=row["by_place"],
    )


@functools.lru_cache(maxsize=None)
def _table() -> dict[str, list[dict[str, Any]]]:
    table: dict[str, list[dict[str, Any]]] = json.loads(_core.settings())
    return table


@functools.lru_cache(maxsize=None)
def kinds() -> tuple[str, ...]:
    """The kinds of jobs, as a job names them."""
    return tuple(kind for kind in _table() if " " not in kind)


@functools.lru_cache(maxsize=None)
def finds(kind: str) -> tuple[str, ...]:
    """What a kind of job may look for, of those that look for something."""
    return tuple(name.split(" ", 1)[1] for name in _table() if name.startswith(f"{kind} "))


@functools.lru_cache(maxsize=None)
def settings(kind: str, find: str | None = None) -> tuple[Setting, ...]:
    """The settings of a kind of job; of one that looks for something with those of what it looks for."""
    table = _table()
    if kind == "endpoint-search":
        rows = [_setting(row, "endpoint.") for row in table["endpoint"]]
        rows += [_setting({**row, "required": False}, "") for row in table["endpoint-search"] if row["path"].startswith("lab.")]
        own = [_setting(row, f"find.{find}.") for row in table.get(f"{kind} {find}", ())]
    elif kind == "sessions-search":
        rows = [_setting(row, "sessions.") for row in table["sessions"]]
        own = [_setting(row, f"find.{find}.") for row in table.get(f"{kind} {find}", ())]
    else:
        rows = [_setting(row, "") for row in table[kind]]
        own = [_setting(row, f"find.{find}.") for row in table.get(f"{kind} {find}", ())] if find else []
    # What it looks for has the say: its own `duration` goes before the test's.
    names = {setting.argument for setting in own}
    return tuple([*(setting for setting in rows if setting.argument not in names), *own])


def worded(kind: str, find: str | None, text: str) -> str:
    """A message with settings called as their arguments are: "`.rate`" as "`rate=`", "`.rate: top`" as "`rate='top'`"."""

    def argument(match: re.Match[str]) -> str:
        named = by_path(kind, find, match[1])
        name = named.argument if named else match[1] if match[1] in ("on", "measure", "links") else None
        value = "" if match[2] is None else "True" if match[2] == "true" else repr(match[2])
        return f"`{name}={value}`" if name else match[0]

    return re.sub(r"`\.([a-z][\w.\[\]-]*)(?:: ([^`]+))?`", argument, text)


def by_path(kind: str, find: str | None, path: str) -> Setting | None:
    """The setting of a path in the job, or else of the end of one."""
    try:
        rows = settings(kind, find)
    except KeyError:
        return None
    for setting in rows:
        if setting.path == path:
            return setting
    for setting in rows:
        if setting.path.endswith(f".{path}"):
            return setting
    return None
