"""What the kernel drops, where and why, while a block of Python goes on (docs/why-lost.md)."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from types import TracebackType
from typing import TYPE_CHECKING

from . import _model
from ._agent import Program, _has_rights
from ._child import end, started
from ._record import Record, Rows
from .errors import AgentMissing, EngineError, PermissionDenied

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Drops", "DropsSeen", "drops"]

# Runs while it counts: says that it does, and ends with this end of the pipe, however that comes.
_COUNTS = b"netdyno counts"
_UNTIL = ("sh", "-c", f"echo {_COUNTS.decode()} >&2; exec cat >/dev/null")
# How long its end may take, in seconds.
_PATIENCE = 30.0


class DropsSeen(Record):
    """What was dropped: ``netdyno.drops/1``, by attributes."""

    schema: str
    drops: Rows[_model.Dropped]
    """Each with its ``function``, ``reason`` and ``frames``; a table for pandas, polars and the like."""
    frames: int
    """In all."""
    duration_ns: int

    _MEMBERS = {**{name: ("", None) for name in ("schema", "frames", "duration_ns")}, "drops": ("*Dropped", ())}
    _CLASSES = _model._CLASSES


class Drops:
    """Counts what the kernel drops from its making until the ``with`` block is left, or ``stop()``. `nd.drops` makes one."""

    def __init__(self, on: str | None, filter: str | None, program: Program | None) -> None:
        self.seen: DropsSeen | None = None
        """What was dropped, as soon as it has ended."""
        program = program or Program()
        path = program.find()
        words = [path, "drops", "--json"]
        words += [f"--on={on}"] if on is not None else []
        words += [f"--filter={filter}"] if filter is not None else []
        words += ["--", *_UNTIL]
        sudo: list[str] = []
        if program.sudo if program.sudo is not None else not _has_rights(path):
            found = shutil.which("sudo")
            if found is None:
                raise PermissionDenied("looking at what the kernel drops needs root", remedy="there is no sudo here: run Python as root")
            sudo = [found, "-n", "--"]
        try:
            self._child = started([*sudo, *words])
        except OSError as error:
            raise AgentMissing(f"{path} cannot be started: {error.strerror}") from error
        try:
            self._begin(path, bool(sudo))
        except BaseException:
            self._leave()
            raise

    def _begin(self, path: str, by_sudo: bool) -> None:
        """Waits until it counts."""
        assert self._child.stderr
        said = b""
        for line in self._child.stderr:
            if line.rstrip() == _COUNTS:
                return
            said += line
        text = said.decode(errors="replace").strip()
        first = text.splitlines()[0].removeprefix("netdyno: ") if text else f"it ended with status {self._child.wait()}"
        if by_sudo and "sudo" in first:
            raise PermissionDenied(f"sudo refused: {first}", remedy=f"run Python as root, or allow it (visudo): {path}")
        if "permitted" in first or "root" in first:
            raise PermissionDenied(first)
        raise EngineError(first)

    def stop(self) -> DropsSeen:
        """Ends it: what was dropped since it began."""
        if self.seen is None:
            if self._child.returncode is not None:
                raise EngineError("it has ended, and did not tell what was dropped")
            try:
                said, errors = self._child.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                raise EngineError(f"it did not tell what was dropped within {_PATIENCE:.0f} s") from None
            finally:
                self._leave()
            if not said:
                raise EngineError(errors.decode(errors="replace").strip() or "it did not tell what was dropped")
            self.seen = DropsSeen(json.loads(said))
        return self.seen

    def _leave(self) -> None:
        end(self._child, _PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.stop()
        else:
            # What was raised in the block matters more.
            with contextlib.suppress(EngineError):
                self.stop()


def drops(*, on: str | None = None, filter: str | None = None, program: Program | None = None) -> Drops:
    """Counts what the kernel drops, in which of its functions and for what reason, in all its network namespaces::

        with nd.drops(filter="udp and port 53") as counted:
            time.sleep(2)
        for cause in counted.seen.drops:
            print(cause.function, cause.reason, cause.frames)

    on: only what is dropped at this interface (IFACE, or IFACE@NAMESPACE).
    filter: only what all these words are true of: udp, tcp, icmp, arp, port N, reason NAME, function NAME.

    Needs root, or ``sudo -n``. Of a run's own frames ``trace_drops=True`` of `nd.send` and its like tells it, in ``report.result.drops``.
    """
    return Drops(on, filter, program)
