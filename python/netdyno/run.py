"""A job that runs: watched, steered, ended."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import snapshot as at
from ._agent import Agent, ClockOffset, Program
from ._job import Job
from .errors import AgentLost, NetdynoError, UsageError
from .report import Report

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Note", "Run"]

LOG = logging.getLogger("netdyno")
# How long a run may take to end after it was asked to, before it is aborted, in seconds: what is on its way is waited for.
_ORDERLY = 30.0
# How long an end without order may take before it is left to itself, in seconds.
_PATIENCE = 5.0
# Notes that are kept.
_NOTES = 1024

# Kinds of jobs that need no rights by themselves.
_UNPRIVILEGED = ("endpoint", "endpoint-server", "endpoint-search", "collect", "iperf3", "iperf3-server", "netperf", "netserver")


class Note(dict):  # type: ignore[type-arg]
    """What a run says while it lasts: ``text``, ``code`` and ``severity`` (docs/notes.md), ``remedy`` and ``setting`` where known."""

    @property
    def text(self) -> str:
        """The sentence."""
        return str(self.get("text", ""))

    @property
    def code(self) -> str:
        """What it is about, for programs."""
        return str(self.get("code", ""))

    @property
    def severity(self) -> str:
        """``info``, ``warning``, ``shortfall`` or ``failure``."""
        return str(self.get("severity", "info"))

    def __str__(self) -> str:
        return self.text


class Run:
    """A job that runs, in a process of its own. `nd.start` makes one.

    In a ``with`` block it is stopped, in an orderly way, when the block is left, and its report is in ``report``. Without one, call
    ``wait()``. In ``async with`` and with ``await run`` the same is done without blocking the loop; cancelling the task stops the run.

    It belongs to the process that started it: in one that was forked, its methods raise `AgentLost`.
    """

    def __init__(self, job: Job, program: Program | None = None, agent: Agent | None = None, *, start_at: int | None = None) -> None:
        self.job = job
        """The job, as it is carried out."""
        self.report: Report | None = None
        """Its result, as soon as there is one."""
        self._own = agent is None
        self._snapshot: dict[str, Any] | None = None
        self._before: dict[str, Any] | None = None
        self._sequence = 0
        self._changed = threading.Condition()
        self._over = False
        self._watchers: list[Callable[[], None]] = []
        self._notes: deque[Note] = deque(maxlen=_NOTES)
        self._logged = 0
        self._error: BaseException | None = None
        self._collecting = threading.Lock()
        asks = job.asks()
        self._writes = [str(path) for path in asks["write"]]
        program = program or Program()
        self._agent_pid = os.getpid()
        asked: Future[Any] = Future()
        try:
            self._agent = Agent(program, _grants(asks), privileged=_privileged(job.data)) if agent is None else agent
            contents = {path: self._agent.send(path, content) for path, content in job.contents.items()}
            params: dict[str, Any] = {"job": job.data, "snapshots_every_ns": 100_000_000}
            if contents:
                params["contents"] = contents
            if start_at is not None:
                params["start_at"] = start_at
            self._agent.request("job.start", params, asked)
            try:
                answer = asked.result()
            except NetdynoError as error:
                raise self._worded(error) from None
            self.id: str = answer["run"]
            self.job = Job(answer["job"], job.contents, job.find)
            # Who tells it does not hold it: a run that nobody has is ended.
            itself = weakref.ref(self)
            self._agent.listen(self.id, lambda method, params: _of(itself, lambda run: run._told(method, params)))
            self._result: Future[Any] = self._agent.request("job.wait", {"run": self.id})
            self._result.add_done_callback(lambda _: _of(itself, Run._ended))
        except BaseException:
            # Ctrl-C among them. Without a child there is nothing to end.
            if "_agent" in self.__dict__:
                if not self._own and "id" not in self.__dict__:
                    self._start_unwanted(asked)
                self._close()
            raise

    # Steering.

    def pause(self) -> None:
        """Sends nothing until `resume`."""
        self._asked("job.pause", {"run": self.id})

    def resume(self) -> None:
        """Goes on."""
        self._asked("job.resume", {"run": self.id})

    def set_rate(self, rate: str | float) -> None:
        """Changes the rate, in the unit of the job's own (``"2mpps"``); a number is in frames per second."""
        text = rate if isinstance(rate, str) else f"{rate:.9f}".rstrip("0").rstrip(".") + "pps"
        self._asked("job.rate", {"run": self.id, "rate": text})

    def set_percent(self, percent: int) -> None:
        """Changes the rate, to so many percent of the job's own."""
        self._asked("job.rate", {"run": self.id, "percent": percent})

    def stop(self) -> None:
        """Ends it in an orderly way, and returns at once: its report (`wait`) is of what was done until then."""
        if not self._over:
            with contextlib.suppress(UsageError):
                # It may have ended by itself.
                self._agent.ask("job.stop", {"run": self.id})

    def abort(self) -> None:
        """Ends it; there is no report."""
        if not self._over:
            with contextlib.suppress(UsageError):
                self._agent.ask("job.abort", {"run": self.id})

    @property
    def done(self) -> bool:
        """Has it ended?"""
        return self._over

    @property
    def notes(self) -> tuple[Note, ...]:
        """What it has said so far, the last 1,024."""
        return tuple(self._notes)

    def clock(self) -> ClockOffset:
        """How far the clock of the host that carries it out is ahead of this one's, by exchanges that take 40 to 300 ms."""
        return self._agent.clock()

    # Waiting.

    def wait(self, timeout: float | None = None) -> Report:
        """Waits until it ends, and returns its report.

        Raises `TimeoutError` if it has not ended after ``timeout`` seconds; it goes on then. On Ctrl-C the run is stopped in an orderly
        way and its report kept in ``report``, and KeyboardInterrupt goes on its way, with the same in its ``report``.
        """
        self._agent._here()
        if self.report is not None:
            return self.report
        try:
            return self._collect(timeout)
        except FutureTimeout:
            raise TimeoutError(f"the run has not ended after {timeout} s; it goes on") from None
        except KeyboardInterrupt as interrupt:
            self._interrupted(interrupt)
            raise

    def _interrupted(self, interrupt: KeyboardInterrupt) -> None:
        """Ctrl-C: an orderly end, and if it is pressed again, an end."""
        try:
            self.stop()
            interrupt.report = self._collect(_ORDERLY)  # type: ignore[attr-defined]
        except KeyboardInterrupt:
            self._close(0.5)
            raise
        except (NetdynoError, FutureTimeout):
            self._close(0.5)

    def _collect(self, timeout: float | None) -> Report:
        """Waits for the report; fetches what the run wrote; lets the child go."""
        answer = None
        try:
            answer = self._result.result(timeout)
        except FutureTimeout:
            raise
        except NetdynoError as error:
            self._log()
            self._close()
            raise self._worded(error) from None
        with self._collecting:
            if self.report is None:
                self._log()
                report = Report(answer["report"])
                try:
                    self._fetch()
                finally:
                    self.report = report
                    self._close()
        return self.report

    def _fetch(self) -> None:
        """Puts the files that it wrote where the job says: by this user's rights, and whole or not at all."""
        written = self._agent.ask("job.files", {"run": self.id})["files"]
        for name in (str(file["name"]) for file in written):
            if not _is_written(name, self._writes):
                raise AgentLost(f"{self._agent.name} has a file `{name[:200]}`, which the job does not write; nothing was written")
        for file in written:
            place = Path(file["name"])
            try:
                descriptor, partial = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
                try:
                    digest = hashlib.sha256()
                    with os.fdopen(descriptor, "wb") as out:
                        for piece in self._agent.read(self.id, file["name"]):
                            digest.update(piece)
                            out.write(piece)
                    if digest.hexdigest() != file["sha256"]:
                        raise AgentLost(f"{place} came with another SHA-256 than it was said to have; nothing was written")
                    umask = os.umask(0)
                    os.umask(umask)
                    os.chmod(partial, 0o666 & ~umask)
                    os.replace(partial, place)
                except BaseException:
                    with contextlib.suppress(OSError):
                        os.unlink(partial)
                    raise
            except OSError as error:
                raise NetdynoError(f"{place} cannot be written: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._agent._here()
        if self.report is not None or self._error is not None:
            self._close()
            return
        try:
            if not self._result.done():
                self.stop()
            if kind is None:
                self.wait()
            else:
                # What was raised in the block matters more than how the run ended.
                with contextlib.suppress(NetdynoError, FutureTimeout):
                    self._collect(_ORDERLY)
        finally:
            self._close()

    # Watching.

    def snapshot(self) -> at.Snapshot | None:
        """How it stands; None before there is anything to tell."""
        with self._changed:
            return at.of(self._snapshot, self._before) if self._snapshot is not None else None

    def snapshots(self, every: float = 0.1) -> Iterator[at.Snapshot]:
        """How it stands, every so many seconds until it ends. Who comes late gets the newest; nothing waits for him."""
        seen, due, before = 0, time.monotonic(), None
        try:
            while True:
                with self._changed:
                    while not self._over and (self._sequence == seen or time.monotonic() < due):
                        left = due - time.monotonic()
                        self._changed.wait(left if left > 0 else None)
                    raw, number, over = self._snapshot, self._sequence, self._over
                self._log()
                if raw is not None and number != seen:
                    yield at.of(raw, before)
                    seen, before, due = number, raw, time.monotonic() + every
                if over:
                    return
        except KeyboardInterrupt as interrupt:
            self._interrupted(interrupt)
            raise

    def live(self, every: float = 0.5) -> Report:
        """Shows how it stands until it ends, then the report: in a notebook in one place, else as lines on standard error."""
        display = _display()
        for now in self.snapshots(every):
            line = _line(now)
            if display is not None:
                display.update({"text/plain": line}, raw=True)
            else:
                print(line, file=sys.stderr, flush=True)
        report = self.wait()
        if display is not None:
            display.update(report)
        return report

    # Asynchronously.

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # Not cut short by another cancellation: what was started is ended.
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self.__exit__, kind, error, trace))

    def __await__(self) -> Generator[Any, None, Report]:
        return self._await().__await__()

    async def _await(self) -> Report:
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def tell() -> None:
            if not over.done():
                over.set_result(None)

        def ended(_: object) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(tell)

        self._result.add_done_callback(ended)
        try:
            await over
        except asyncio.CancelledError:
            await asyncio.shield(loop.run_in_executor(None, self.stop))
            raise
        return await loop.run_in_executor(None, self.wait)

    def __aiter__(self) -> AsyncIterator[at.Snapshot]:
        return self._asnapshots()

    async def _asnapshots(self) -> AsyncIterator[at.Snapshot]:
        loop = asyncio.get_running_loop()
        news = asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(news.set)

        with self._changed:
            self._watchers.append(tell)
        try:
            seen, before = 0, None
            while True:
                with self._changed:
                    raw, number, over = self._snapshot, self._sequence, self._over
                if raw is not None and number != seen:
                    yield at.of(raw, before)
                    seen, before = number, raw
                    continue
                if over:
                    return
                await news.wait()
                news.clear()
        finally:
            with self._changed:
                self._watchers.remove(tell)

    # Within.

    def _asked(self, method: str, params: dict[str, Any]) -> Any:
        try:
            return self._agent.ask(method, params)
        except NetdynoError as error:
            raise self._worded(error) from None

    def _worded(self, error: NetdynoError) -> NetdynoError:
        return self.job.worded(error)

    def _told(self, method: str, params: dict[str, Any]) -> None:
        """What the child tells, in its thread."""
        with self._changed:
            if method == "run.snapshot":
                self._before, self._snapshot = self._snapshot, params.get("snapshot")
                self._sequence = int(params.get("sequence", 0)) + 1
            elif method == "run.note":
                self._notes.append(Note(params))
            elif method in ("run.ended", "lost"):
                self._over = True
            self._changed.notify_all()
            watchers = list(self._watchers)
        for watcher in watchers:
            watcher()

    def _ended(self) -> None:
        """There is a report, or an error instead."""
        self._error = self._result.exception()
        self._told("run.ended", {})

    def _log(self) -> None:
        """Hands notes to Python's own logging, in the thread of whoever waits."""
        levels = {"info": logging.INFO, "warning": logging.WARNING, "shortfall": logging.WARNING, "failure": logging.ERROR}
        notes = self.notes
        for note in notes[min(self._logged, len(notes)) :]:
            LOG.log(levels.get(note.severity, logging.INFO), "%s", note.text, extra={"code": note.code})
        self._logged = len(notes)

    def _close(self, patience: float = _PATIENCE) -> None:
        if self._own:
            self._agent.close(patience)
        elif hasattr(self, "id") and self._agent.alive:
            self._agent.forget(self.id)
            with contextlib.suppress(NetdynoError):
                if not self._over:
                    over = self.__dict__.get("_result") or self._agent.request("job.wait", {"run": self.id})
                    self._agent.request("job.abort", {"run": self.id})
                    # Its interfaces are free when it has ended.
                    with contextlib.suppress(FutureTimeout):
                        over.exception(patience)
                self._agent.request("job.forget", {"run": self.id})

    def _start_unwanted(self, asked: Future[Any]) -> None:
        """Who asked for it does not want it any more, and it may be started yet: its name is waited for, and without it whoever hears it ends it."""
        try:
            with contextlib.suppress(NetdynoError):
                # (What was not asked is neither.)
                if asked.running() or asked.done():
                    self.id = asked.result(_PATIENCE)["run"]
        except BaseException:
            # Late, or Ctrl-C was pressed again.
            agent = self._agent
            asked.add_done_callback(lambda started: _unwanted(agent, started))

    def __del__(self) -> None:
        # A run that nobody has any more ends by itself: its child sees that its client is gone, or that of a lab is asked. Nothing is waited for
        # here, and no lock is taken, because another of this thread's may be held.
        agent = self.__dict__.get("_agent")
        if agent is None or self._agent_pid != os.getpid() or self._over or agent._closing:
            return
        with contextlib.suppress(Exception):
            if self._own:
                agent._closing = True
                agent._to.close()
            elif "id" in self.__dict__:
                _end(agent, self.id)

    def __repr__(self) -> str:
        state = "ended" if self._over else "running"
        return f"<netdyno.Run {self.__dict__.get('id', '')} {self.job.kind}: {state}>"

    def __reduce__(self) -> Any:
        raise TypeError("a run is a process, and cannot be pickled: pickle its report")


def _of(run: weakref.ref[Run], do: Callable[[Run], None]) -> None:
    """Does something with a run that somebody has."""
    alive = run()
    if alive is not None:
        do(alive)


def _unwanted(agent: Agent, started: Future[Any]) -> None:
    """A run is ended whose start nobody waits for any more."""
    if started.exception() is None and agent.alive:
        _end(agent, started.result()["run"])


def _end(agent: Agent, name: str) -> None:
    """Ends a run that nobody has, in a thread of its own: the one that reads cannot wait for others to write."""

    def end() -> None:
        run = {"run": name}
        with contextlib.suppress(NetdynoError):
            agent.forget(name)
            over = agent.request("job.wait", run)
            agent.request("job.abort", run)
            over.exception()
            agent.request("job.forget", run)

    threading.Thread(target=end, name="netdyno-ends", daemon=True).start()


def _is_written(name: str, writes: list[str]) -> bool:
    """An agent on another host is not believed: only files that the job names are written, and those that stand beside one because it
    begins anew (`records-20261128T230000Z.csv` of `records.csv`).
    """
    for own in writes:
        begins, ends = os.path.splitext(own)
        beside = os.path.dirname(name) == os.path.dirname(own) and name.startswith(begins) and name.endswith(ends)
        if name == own or beside:
            return True
    return False


def _privileged(job: dict[str, Any]) -> bool:
    """Does it need rights that ordinary users have not?"""
    kind = job["kind"]
    if job.get("lab") is not None or (job.get("bench") or {}).get("lab") is not None:
        return True
    if kind == "replay":
        return job.get("write") is None
    if kind == "probe":
        return job.get("on") is not None
    if kind == "send":
        return job.get("engine") != "null" or any(link.get("measure") for link in job.get("links", ()))
    return kind not in _UNPRIVILEGED


def _grants(asks: dict[str, Any]) -> list[str]:
    """What the child may do: this user started it, and the job is his own."""
    grants = ["--allow-interface", "*", "--allow-interface", "*@*", "--folder", "/"]
    grants += ["--allow-address", "*", "--allow-listen", "*"]
    for interface in asks["yes_disrupt"]:
        grants += ["--yes-disrupt", interface]
    if asks["command"]:
        grants += ["--allow-command", asks["command"]]
    for option, of in (("--allow-read", "read"), ("--allow-public-target", "public_targets"), ("--allow-source-prefix", "own_prefixes")):
        for one in asks[of]:
            grants += [option, one]
    return grants


def _display() -> Any:
    """A place in a notebook, if this is one."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython  # type: ignore[import-not-found,unused-ignore]

    shell = get_ipython()
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

    return display({"text/plain": "netdyno begins ..."}, raw=True, display_id=True)


def _line(now: at.Snapshot) -> str:
    """How a run stands, in a line."""
    parts = [f"{now.elapsed:7.1f} s"]
    if now.tx is not None:
        rate = "" if now.tx.rate is None else f" ({now.tx.rate:,.0f}/s)"
        parts.append(f"sent {now.tx.frames:,}{rate}")
    if now.rx is not None:
        rate = "" if now.rx.rate is None else f" ({now.rx.rate:,.0f}/s)"
        parts.append(f"received {now.rx.frames:,}{rate}")
    if now.lost_frames is not None:
        parts.append(f"lost {now.lost_frames:,}")
    return ", ".join(parts)


