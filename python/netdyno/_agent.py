"""The child that carries out jobs: `netdyno agent --stdio`, and the lines of JSON that are spoken with it (docs/agent.md).

Nothing of a run happens in the interpreter. The child is started for a run (or for a lab), in a session of its own, so that Ctrl-C in a terminal
reaches Python alone; by ``sudo -n`` where the job needs rights that this user has not. It ends when its standard input does: a
crash of Python, or SIGKILL, leaves nothing behind.
"""

from __future__ import annotations

import atexit
import base64
import collections
import contextlib
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from . import _core
from ._child import started
from .errors import (
    Aborted,
    AgentLost,
    AgentMismatch,
    AgentMissing,
    EngineError,
    NetdynoError,
    PermissionDenied,
    Refused,
    UsageError,
)

PROTOCOL = "netdyno.agent/1"
# Bytes of standard error that are kept for a message.
_SAID = 4096
# How long a child may take to say hello, and to end when it was asked to, in seconds.
_HELLO = 20.0
_END = 5.0

# What a job may need of root's rights; no job needs more.
_CAPABILITIES = "cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon,cap_sys_admin=ep"

_KINDS: dict[str, type[NetdynoError]] = {
    "usage": UsageError,
    "unknown": UsageError,
    "refused": Refused,
    "limit": Refused,
    "permission": PermissionDenied,
    "aborted": Aborted,
}


@dataclass(frozen=True)
class ClockOffset:
    """How far the clock of the netdyno that carries out jobs is ahead of this host's; both are CLOCK_TAI, in nanoseconds.

    ``ahead_ns`` is off by ``error_ns`` at most at the time ``at_ns`` of this host's clock: an answer cannot come before its request. It is
    half of ``round_trip_ns``, the least of ``exchanges``. What the clocks drift apart afterwards is not in it.
    """

    ahead_ns: int
    error_ns: int
    round_trip_ns: int
    exchanges: int
    at_ns: int


# What is told of a run before somebody listens to it: as much as a run keeps of its notes, and what else there is.
_UNHEARD = 1100

# No process is forked while times are exchanged: it would have an end of the pipe that nobody knows of.
_EXCHANGING = threading.Lock()


@dataclass(frozen=True)
class Program:
    """Which program carries out jobs, and how it gets its rights.

    ``path``: the program netdyno. Default: what NETDYNO_BINARY names, else the one that was installed with this package, else that of PATH.
    ``sudo``: True, False, or None: by ``sudo -n`` if the job needs rights that this user has not.
    ``command``: instead of both, the whole command, which must end up in ``netdyno agent --stdio``; what jobs are allowed
    is said there: ``("ssh", "root@tester", "netdyno", "agent", "--stdio", "--allow-interface", "eth1")``.
    """

    path: str | os.PathLike[str] | None = None
    sudo: bool | None = None
    command: Sequence[str] | None = None

    def clock(self) -> ClockOffset:
        """How far the clock of the host that it runs on is ahead of this one's: what ``start_at`` of `nd.start` needs for another host."""
        agent = Agent(self, (), privileged=False)
        try:
            return agent.clock()
        finally:
            agent.close()

    def find(self) -> str:
        """Where the program is. Raises `AgentMissing`."""
        if self.path is not None:
            return _executable(os.fspath(self.path), "path=")
        named = os.environ.get("NETDYNO_BINARY")
        if named:
            return _executable(named, "NETDYNO_BINARY")
        for folder in (sysconfig.get_path("scripts"), os.path.dirname(sys.executable)):
            beside = os.path.join(folder, "netdyno")
            if os.access(beside, os.X_OK) and _is_program(beside):
                return beside
        found = shutil.which("netdyno")
        if found is None:
            raise AgentMissing(
                "the program netdyno is not there",
                remedy="install it with this package (pip install netdyno), or name it: NETDYNO_BINARY=/usr/bin/netdyno",
            )
        return found


def _executable(path: str, named: str) -> str:
    if not os.path.exists(path):
        raise AgentMissing(f"there is no {path}, which {named} names", remedy="name the program netdyno there")
    if not os.access(path, os.X_OK) or os.path.isdir(path):
        raise AgentMissing(f"{path}, which {named} names, cannot be executed", remedy="name the program netdyno there")
    return os.path.abspath(path)


def _is_program(path: str) -> bool:
    """Is it no script of the same name?"""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _has_rights(path: str) -> bool:
    """Does the program have rights by itself, or this user?"""
    if os.geteuid() == 0:
        return True
    try:
        os.getxattr(path, "security.capability")
    except OSError:
        return False
    return True


class Agent:
    """A child that speaks the protocol. Its methods may be called by any thread."""

    def __init__(self, program: Program, grants: Sequence[str], *, privileged: bool, around: Sequence[str] = ()) -> None:
        """Starts it; ``around`` are arguments of `netdyno` before the agent (``lab --``)."""
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._ids = itertools.count(1)
        self._listeners: dict[str, Callable[[str, dict[str, Any]], None]] = {}
        self._unheard: dict[str, collections.deque[tuple[str, dict[str, Any]]]] = {}
        # Runs that nobody listens to any more.
        self._forgotten: set[str] = set()
        self._said = b""
        self._ended = threading.Event()
        # Read and not yet looked at: a part of a line, or more.
        self._rest = bytearray()
        # What of its lines could not be understood.
        self._nonsense: str | None = None
        self._clock: tuple[int, Future[ClockOffset]] | None = None
        self._closing = False
        self._pid = os.getpid()
        self._sudo = False
        self._program = program
        self._threads: list[threading.Thread] = []
        self._child: subprocess.Popen[bytes]
        command = self._command(program, list(grants), privileged, list(around))
        self.name = command[0] if not self._sudo else command[3]
        try:
            # Ctrl-C may come anywhere in here.
            self._begin(command)
            self._hello()
        except BaseException:
            self.close()
            raise

    def _begin(self, command: list[str]) -> None:
        try:
            self._child = started(command)
        except OSError as error:
            raise AgentMissing(f"{command[0]} cannot be started: {error.strerror}") from error
        _AGENTS.add(self)
        assert self._child.stdin and self._child.stdout and self._child.stderr
        self._to: IO[bytes] = self._child.stdin
        for of, what in ((self._read, "reads"), (self._listen, "hears")):
            self._threads.append(threading.Thread(target=of, name=f"netdyno-{what}-{self._child.pid}", daemon=True))
            self._threads[-1].start()

    def _command(self, program: Program, grants: list[str], privileged: bool, around: list[str]) -> list[str]:
        if program.command is not None:
            return list(program.command)
        path = program.find()
        agent = [path, "agent", "--stdio", *grants]
        command = [path, *around, *agent] if around else agent
        sudo = program.sudo
        if sudo is None:
            sudo = privileged and not _has_rights(path)
        if not sudo:
            return command
        found = shutil.which("sudo")
        if found is None:
            raise PermissionDenied(
                f"sending and measuring need root, and user {_user()} is not",
                remedy=f"there is no sudo here: run Python as root, or give the program what it needs: setcap {_CAPABILITIES} {path}",
            )
        self._sudo = True
        return [found, "-n", "--", *command]

    def _hello(self) -> None:
        params = {"client": {"name": "netdyno-python", "version": _core.VERSION}, "protocol": [PROTOCOL]}
        try:
            answer = self.request("hello", params).result(_HELLO)
        except (TimeoutError, _FutureTimeout):
            raise AgentLost(
                f"{self.name} did not answer within {_HELLO:.0f} s",
                remedy="is it the program netdyno? NETDYNO_BINARY and program= name it",
            ) from None
        except AgentLost as error:
            raise self._no_hello(error) from None
        except UsageError as error:
            raise AgentMismatch(
                f"{self.name} does not speak {PROTOCOL}: {error.message}", remedy="install netdyno and this package of one version"
            ) from None
        theirs = (answer.get("protocol"), answer.get("job"), answer.get("report"))
        if theirs != (PROTOCOL, _core.JOB, _core.REPORT):
            raise AgentMismatch(
                f"{self.name} is netdyno {answer.get('version')} and speaks {', '.join(map(str, theirs))};"
                f" this package is {_core.VERSION} and speaks {PROTOCOL}, {_core.JOB}, {_core.REPORT}",
                remedy="install netdyno and this package of one version",
            )
        self.limits: dict[str, int] = answer["limits"]
        self.hello: dict[str, Any] = answer

    def _no_hello(self, error: AgentLost) -> NetdynoError:
        """Why it ended before it said hello."""
        # Its last words may still be on their way.
        self._threads[-1].join(1)
        said = self._words()
        status = self._child.poll()
        if self._sudo and "sudo" in said:
            return PermissionDenied(
                f"sudo refused: {said.splitlines()[0]}",
                remedy=f"run Python as root, allow it (visudo: `{_user()} ALL=(root) NOPASSWD: {self.name}`), or give the program"
                f" what it needs: sudo setcap {_CAPABILITIES} {self.name}",
            )
        if not self._sudo and "CAP_SYS_ADMIN" in said:
            return self._permitted(PermissionDenied(said.splitlines()[-1].removeprefix("netdyno: ")))
        if status == 2 and "agent" in said:
            return AgentMismatch(
                f"{self.name} has no `agent --stdio`: it is of an earlier version",
                remedy="install netdyno and this package of one version, or name another with NETDYNO_BINARY or program=",
            )
        if said and status is not None and status > 0:
            return AgentMissing(f"{self.name} ended with status {status}: {said.splitlines()[0].removeprefix('netdyno: ')}")
        return error

    def _permitted(self, error: NetdynoError) -> NetdynoError:
        """An error that says that rights are missing, with what to do about it here."""
        if not isinstance(error, PermissionDenied) or self._sudo or self._program.command is not None or os.geteuid() == 0:
            return error
        by_sudo = "leave out sudo=False" if self._program.sudo is False else "give program=nd.Program(sudo=True)"
        error.remedy = (
            f"{by_sudo}, so that `sudo -n` starts it; or run Python as root, or give the program what it needs: sudo setcap {_CAPABILITIES} {self.name}"
        )
        return error

    # What is asked and answered.

    def request(self, method: str, params: dict[str, Any], answer: Future[Any] | None = None) -> Future[Any]:
        """Sends a request; its answer comes in the future, which may be the caller's: then he has it if Ctrl-C comes in here, too."""
        self._here()
        answer = Future() if answer is None else answer
        number = next(self._ids)
        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
        written: list[int] = []
        try:
            with self._lock:
                if self._ended.is_set() or self._closing:
                    raise self._lost()
                self._waiting[number] = answer
                # Nobody takes it back: what was asked is answered.
                answer.set_running_or_notify_cancel()
            with self._writing:
                self._put(line, written)
        except (OSError, ValueError):
            # It is gone; why, its last words tell.
            self._ended.wait(_END)
            # Unless the thread that reads has taken it, and says the same.
            if self._unasked(number):
                answer.set_exception(self._lost())
        except BaseException as error:
            # Ctrl-C: what was not asked is not answered.
            if not written and self._unasked(number):
                answer.set_exception(error)
            raise
        return answer

    def _unasked(self, number: int) -> bool:
        """Takes a request from those that wait for an answer; False if it is none of them."""
        with self._lock:
            return self._waiting.pop(number, None) is not None

    def _put(self, line: bytes, written: list[int]) -> None:
        """Writes a line, and tells in `written` what was. If it is cut short, nothing can be said behind it, and the child is let go."""
        try:
            while sum(written) < len(line):
                # Ctrl-C comes between steps of Python. This is one, so that what was written is never taken for what was not.
                written.extend(map(self._to.write, [memoryview(line)[sum(written) :]]))
        except BaseException:
            if 0 < sum(written) < len(line):
                with contextlib.suppress(OSError):
                    self._to.close()
            raise

    def ask(self, method: str, params: dict[str, Any], timeout: float | None = None) -> Any:
        """Sends a request and waits for its answer."""
        return self.request(method, params).result(timeout)

    def clock(self) -> ClockOffset:
        """Exchanges times with it, for 40 ms, or 300 on a busy machine. Whatever else is asked meanwhile waits; what it tells comes a little later.

        The thread that reads does it, without the interpreter in between: to wake a thread would be half of the error.
        """
        self._here()
        told: Future[ClockOffset] = Future()
        told.set_running_or_notify_cancel()
        line = {"jsonrpc": "2.0", "id": next(self._ids), "method": "clock", "params": {"t1": 0}}
        with self._writing:
            with self._lock:
                if self._ended.is_set() or self._closing:
                    raise self._lost()
                self._clock = (line["id"], told)  # type: ignore[assignment]
            try:
                # Its answer wakes the thread that reads, which then goes on by itself.
                self._put(json.dumps(line).encode() + b"\n", [])
                return told.result(_HELLO)
            except (TimeoutError, _FutureTimeout):
                # An answer that comes later starts no exchange beside what others write by then.
                with self._lock:
                    self._clock = None
                raise AgentLost(f"{self.name} did not tell the time within {_HELLO:.0f} s") from None
            except (OSError, ValueError):
                raise self._lost() from None
            except KeyboardInterrupt:
                # Nobody else writes before that thread has done.
                with contextlib.suppress(BaseException):
                    told.result(_END)
                raise

    def _exchange(self, told: Future[ClockOffset]) -> None:
        """In the thread that reads."""
        assert self._child.stdout
        try:
            with _EXCHANGING:
                name = f"clock{next(self._ids)}"
                ends = self._child.stdout.fileno(), self._to.fileno()
                (at, ahead, trip, exchanges), rest = _core.exchange_clocks(*ends, bytes(self._rest), name)
                self._rest[:] = rest
            if exchanges == 0:
                raise AgentLost(f"{self.name} did not tell the time")
            told.set_result(ClockOffset(ahead, (trip + 1) // 2 + 1, trip, exchanges, at))
        except BaseException as error:
            told.set_exception(error)

    def listen(self, run: str, listener: Callable[[str, dict[str, Any]], None]) -> None:
        """Calls ``listener`` with what is told of a run, from the first on, in the thread that reads."""
        with self._lock:
            self._listeners[run] = listener
            for method, params in self._unheard.pop(run, ()):
                listener(method, params)

    def forget(self, run: str) -> None:
        """Nobody listens to that run any more."""
        with self._lock:
            self._listeners.pop(run, None)
            self._forgotten.add(run)

    def send(self, name: str, content: bytes | Path) -> str:
        """Sends a file by its content; what it is called there."""
        data = content.read_bytes() if isinstance(content, Path) else content
        whole = {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        began = self.ask("content.begin", whole)
        id_, piece = began["content"], int(self.limits["chunk_bytes"])
        answers = []
        for offset in range(int(began["offset"]), len(data), piece):
            text = base64.b64encode(data[offset : offset + piece]).decode()
            answers.append(self.request("content.chunk", {"content": id_, "offset": offset, "base64": text}))
            # A few on their way keep the pipe full; more would only be kept.
            if len(answers) > 8:
                answers.pop(0).result()
        for answer in answers:
            answer.result()
        if began["offset"] < len(data) or not data:
            self.ask("content.end", {"content": id_})
        return str(id_)

    def read(self, run: str, name: str) -> Iterator[bytes]:
        """A file that a run wrote, in pieces."""
        offset, end = 0, False
        while not end:
            length = int(self.limits["chunk_bytes"])
            piece = self.ask("file.read", {"run": run, "name": name, "offset": offset, "length": length})
            offset, end = int(piece["offset"]), bool(piece["end"])
            yield base64.b64decode(piece["base64"])

    # Its end.

    @property
    def alive(self) -> bool:
        """Is it there, and is it this process's?"""
        return os.getpid() == self._pid and not self._ended.is_set() and not self._closing

    def close(self, patience: float = _END) -> None:
        """Ends it: its runs are stopped in an orderly way, and what they changed is put back."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closing = True
        if "_child" not in self.__dict__:
            return
        assert self._child.stdin
        with contextlib.suppress(OSError, ValueError):
            self._child.stdin.close()
        try:
            self._child.wait(patience)
        except subprocess.TimeoutExpired:
            # (By sudo it is root's, and only its standard input ends it.)
            with contextlib.suppress(OSError):
                self._child.terminate()
            try:
                self._child.wait(patience)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(OSError):
                    self._child.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(1)
        except KeyboardInterrupt:
            with contextlib.suppress(OSError):
                self._child.kill()
            raise
        _AGENTS.discard(self)

    def _after_fork(self) -> None:
        """In a process that was forked: it holds the pipe open, by which the child knows that its client lives."""
        self._closing = True
        nowhere = os.open(os.devnull, os.O_RDWR)
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe is not None:
                # Not closed: the objects that have these numbers would close somebody else's later.
                with contextlib.suppress(OSError, ValueError):
                    os.dup2(nowhere, pipe.fileno(), inheritable=False)
        os.close(nowhere)
        # It is no child of this process.
        self._child.returncode = 0

    def _here(self) -> None:
        if os.getpid() != self._pid:
            raise AgentLost(
                f"this run belongs to process {self._pid}, of which this one ({os.getpid()}) was forked",
                remedy="start runs in the process that uses them, or have multiprocessing start processes by `spawn`",
            )

    def _words(self) -> str:
        return self._said.decode(errors="replace").strip()

    def _lost(self) -> AgentLost:
        self._here()
        if self._closing and not self._ended.is_set():
            return AgentLost("this run's netdyno was closed")
        try:
            status = self._child.wait(1)
        except subprocess.TimeoutExpired:
            status = None
        if status is not None and status < 0:
            how = f"was killed by signal {-status}"
        else:
            how = f"ended with status {status}"
        said = self._words()
        last = f": {said.splitlines()[-1]}" if said else ""
        if self._nonsense is not None:
            return AgentLost(
                f"{self.name} said what is no line of {PROTOCOL} ({self._nonsense})",
                remedy="is it the program netdyno? NETDYNO_BINARY and program= name it",
            )
        return AgentLost(
            f"{self.name} {how} while it was needed{last}",
            remedy="what it had attached to interfaces is gone with it; start the job again",
        )

    # The threads.

    def _listen(self) -> None:
        stream = self._child.stderr
        assert stream
        with contextlib.suppress(OSError, ValueError):
            for line in iter(lambda: os.read(stream.fileno(), 4096), b""):
                self._said = (self._said + line)[-_SAID:]

    def _read(self) -> None:
        try:
            with contextlib.suppress(OSError):
                self._read_lines()
        except Exception as error:
            # Another program, or an agent that is not to be believed: nothing that it says later counts, and nobody waits for it.
            self._nonsense = f"{type(error).__name__}: {error}"[:200]
            with contextlib.suppress(OSError):
                self._to.close()
        with self._lock:
            self._ended.set()
            waiting, self._waiting = self._waiting, {}
            if self._clock is not None:
                waiting[self._clock[0]] = self._clock[1]
                self._clock = None
            listeners, self._listeners = self._listeners, {}
        if waiting or listeners:
            lost = self._lost()
            for answer in waiting.values():
                answer.set_exception(lost)
            for listener in listeners.values():
                listener("lost", {"error": lost})

    def _read_lines(self) -> None:
        stream = self._child.stdout
        assert stream
        while piece := os.read(stream.fileno(), 1 << 16):
            looked = len(self._rest)
            self._rest += piece
            # What was read during an exchange of times may be whole lines, too.
            while (end := self._rest.find(b"\n", looked)) >= 0:
                line, looked = bytes(self._rest[:end]), 0
                del self._rest[: end + 1]
                try:
                    told = json.loads(line)
                except ValueError:
                    # Some shells' profiles have a word to say first.
                    continue
                if isinstance(told, dict):
                    self._take(told)

    def _take(self, told: dict[str, Any]) -> None:
        number = told.get("id")
        if "method" not in told:
            with self._lock:
                answer = self._waiting.pop(number, None) if isinstance(number, int) else None
                clock = self._clock if self._clock is not None and self._clock[0] == number else None
                if clock is not None:
                    self._clock = None
            if clock is not None:
                if "error" in told:
                    clock[1].set_exception(self._permitted(_error(told["error"])))
                else:
                    self._exchange(clock[1])
                return
            if answer is None:
                return
            if "error" in told:
                answer.set_exception(self._permitted(_error(told["error"])))
            else:
                answer.set_result(told.get("result"))
            return
        params = told.get("params") or {}
        run = str(params.get("run"))
        with self._lock:
            listener = self._listeners.get(run)
            if run in self._forgotten:
                return
            if listener is None:
                # It began before its answer was looked at. The last are kept, which say that it has ended.
                kept = self._unheard.setdefault(run, collections.deque(maxlen=_UNHEARD))
                kept.append((str(told["method"]), params))
                return
            listener(str(told["method"]), params)


def _error(error: dict[str, Any]) -> NetdynoError:
    """An error of the protocol as one of Python's."""
    data = error.get("data") or {}
    kind = _KINDS.get(str(data.get("kind")), EngineError)
    message = str(error.get("message", "the agent refused, and did not say why"))
    setting = data.get("setting")
    # The setting stands before the message, too, by its path.
    for method in ("job.start: ", "job.rate: "):
        message = message.removeprefix(method)
    if setting and message.startswith(f"{setting}: "):
        message = message[len(setting) + 2 :]
    return kind(message, setting=setting, remedy=data.get("remedy"))


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


_AGENTS: weakref.WeakSet[Agent] = weakref.WeakSet()


def _end_all() -> None:
    for agent in list(_AGENTS):
        with contextlib.suppress(Exception):
            agent.close(2.0)


def _forked() -> None:
    for agent in list(_AGENTS):
        agent._after_fork()
    _AGENTS.clear()


atexit.register(_end_all)
os.register_at_fork(before=_EXCHANGING.acquire, after_in_parent=_EXCHANGING.release, after_in_child=_EXCHANGING.release)
os.register_at_fork(after_in_child=_forked)

# Before Python 3.11 futures had a class of their own.
from concurrent.futures import TimeoutError as _FutureTimeout  # noqa: E402
