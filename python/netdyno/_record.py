"""Frozen records over the JSON of reports and snapshots."""

from __future__ import annotations

import copy
import importlib
import json
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, SupportsIndex, TypeVar, overload

T = TypeVar("T", bound="Record")


class Record:
    """What a JSON object holds, by attributes.

    It cannot be changed. Two are equal if they are of one class and hold the same. Members that this version does not know are kept:
    ``raw`` has all of them, as they were written.
    """

    __slots__ = ("_kept", "_raw")

    # Of each member: what it becomes ("" for itself, "X" for class X, "*X" for a tuple of X), and what it is where it is left out.
    _MEMBERS: ClassVar[dict[str, tuple[str, Any]]] = {}
    _CLASSES: ClassVar[dict[str, type[Record]]] = {}

    _raw: dict[str, Any]
    _kept: dict[str, Any]

    def __init__(self, raw: dict[str, Any]) -> None:
        object.__setattr__(self, "_raw", raw)
        object.__setattr__(self, "_kept", {})

    @property
    def raw(self) -> dict[str, Any]:
        """All members as they were written, those that this version does not know among them. A copy."""
        return copy.deepcopy(self._raw)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists."""
        return self.raw

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            kept = self._kept
            if name in kept:
                return kept[name]
            kind = type(self)
            members = kind._MEMBERS
            if isinstance(getattr(kind, name, None), property):
                # Its error is an AttributeError, for which this is called.
                return getattr(kind, name).fget(self)
            if name not in members:
                near = ", ".join(sorted(members))
                raise AttributeError(f"{kind.__name__} has no member {name!r}; it has {near}")
            becomes, default = members[name]
            value = self._raw.get(name[:-1] if name.endswith("_") else name)
            if value is None:
                value = Rows() if default == () and becomes.removeprefix("*") else default
            elif becomes.startswith("*"):
                of = becomes[1:]
                if of:
                    value = Rows(kind._CLASSES[of](one) for one in value)
                else:
                    value = tuple(_frozen(one) for one in value)
            elif becomes:
                value = kind._CLASSES[becomes](value)
            else:
                value = _frozen(value)
            kept[name] = value
            return value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is what was measured, and cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is what was measured, and cannot be changed")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Record):
            return NotImplemented
        return self._raw == other._raw

    def __hash__(self) -> int:
        return hash((type(self).__name__, json.dumps(self._raw, sort_keys=True)))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._raw,))

    def __copy__(self: T) -> T:
        return self

    def __deepcopy__(self: T, memo: dict[int, Any]) -> T:
        return self

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *type(self)._MEMBERS})

    def __repr__(self) -> str:
        shown = [f"{name}={_shown(value)}" for name, value in self._raw.items()]
        return f"{type(self).__name__}({', '.join(shown)})"


def _frozen(value: Any) -> Any:
    """Lists become tuples; an object without a class of its own stays a dict, of which each reader gets a copy."""
    if isinstance(value, list):
        return tuple(_frozen(one) for one in value)
    return copy.deepcopy(value) if isinstance(value, dict) else value


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{...}"
    if isinstance(value, list):
        return f"[{len(value)}]" if value else "[]"
    return repr(value)


if TYPE_CHECKING:
    from collections.abc import Sequence as _Rows
else:
    # Whatever reads tables (polars, pandas, DuckDB, pyarrow) takes tuples, lists and all that is registered as a Sequence for columns or rows
    # of scalars, and does not look further.
    _Rows = Generic


class Rows(_Rows[T]):
    """Records of one kind: as a tuple, and as a table that whatever speaks Arrow reads."""

    __slots__ = ("_rows",)
    _rows: tuple[T, ...]

    def __init__(self, rows: Iterable[T] = ()) -> None:
        object.__setattr__(self, "_rows", tuple(rows))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("rows are what was measured, and cannot be changed")

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[T]:
        return iter(self._rows)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._rows)

    def __contains__(self, row: object) -> bool:
        return row in self._rows

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> T: ...
    @overload
    def __getitem__(self, index: slice, /) -> Rows[T]: ...
    def __getitem__(self, index: Any, /) -> Any:
        return Rows(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def index(self, row: object, *within: int) -> int:
        """Where that row stands."""
        return self._rows.index(row, *within)

    def count(self, row: object) -> int:
        """How often that row stands there."""
        return self._rows.count(row)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Rows):
            return bool(self._rows == other._rows)
        return self._rows == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Rows, (self._rows,))

    def __copy__(self) -> Rows[T]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Rows[T]:
        return self

    def __repr__(self) -> str:
        return repr(self._rows)

    def columns(self) -> dict[str, list[Any]]:
        """The same by columns: a list for each member that any of the rows has, with None where it is left out."""
        names: dict[str, None] = {}
        for row in self:
            names.update(dict.fromkeys(row._raw))
        return {name: [copy.deepcopy(row._raw.get(name)) for row in self] for name in names}

    def to_dicts(self) -> list[dict[str, Any]]:
        """The same by rows, as plain dicts."""
        return [row.to_dict() for row in self]

    def to_pandas(self) -> Any:
        """The same as a ``pandas.DataFrame``; pandas is imported now, and not before. Members of members are columns: ``latency_ns.p99``."""
        pandas = _imported("pandas")
        return pandas.DataFrame(self._flat())

    def to_arrow(self) -> Any:
        """The same as a ``pyarrow.Table``; pyarrow is imported now, and not before."""
        return _imported("pyarrow").table(self.columns())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """For whatever reads tables by Arrow's PyCapsule interface (polars, DuckDB, pandas); pyarrow makes it."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _flat(self) -> dict[str, list[Any]]:
        """Columns without objects in them: those of an object's members instead."""
        found: dict[str, list[Any]] = {}

        def put(name: str, values: list[Any]) -> None:
            members: dict[str, None] = {}
            for value in values:
                if isinstance(value, dict):
                    members.update(dict.fromkeys(value))
                elif value is not None:
                    found[name] = values
                    return
            if not members:
                found[name] = values
            for member in members:
                put(f"{name}.{member}", [None if value is None else value.get(member) for value in values])

        for name, values in self.columns().items():
            put(name, values)
        return found


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        # What everybody catches who can do without it.
        raise ModuleNotFoundError(f"this table needs {name}: pip install {name}; columns() and to_dicts() need nothing", name=name) from None


class Percentiles(Record):
    """What a distribution has besides its members."""

    __slots__ = ()

    if TYPE_CHECKING:
        count: int
        min: int
        max: int
        histogram: Rows[Any]

    def percentile(self, percent: float) -> int:
        """The least value with at least that share of all values at or below it, 0 to 100.

        Of a histogram it is the upper end of the bucket that it falls in: never better than the truth. Without one, only what the
        distribution's own members say is known, and the next higher of them is taken.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"{percent} is no percentile: 0 to 100 are")
        if percent == 0:
            return self.min
        rank = max(1, math.ceil(self.count * percent / 100))
        passed = 0
        for bucket in self.histogram:
            passed += bucket.count
            if passed >= rank:
                return int(min(bucket.to, self.max))
        known = ((50, "p50"), (90, "p90"), (99, "p99"), (99.9, "p999"), (99.99, "p9999"), (99.999, "p99999"))
        for share, name in known:
            if percent <= share and self._raw.get(name) is not None:
                return int(self._raw[name])
        return self.max
