"""Processes that this package starts."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Sequence

# How long a child may take to end when its pipes are closed, in seconds.
_END = 5.0


class _Start:
    """A child on its way from the thread that starts it to whom it is for, or to its end if he wants it no more."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._unwanted = False
        self._child: subprocess.Popen[bytes] | None = None
        self._error: BaseException | None = None

    def start(self) -> None:
        child = None
        try:
            child = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # What stood in a buffer would be waited for when the pipe is closed, by a child that reads no more.
                bufsize=0,
                # Ctrl-C in a terminal is for Python, which then ends the child in an orderly way.
                start_new_session=True,
            )
        except BaseException as error:
            self._error = error
        with self._lock:
            self._child = child
            unwanted = self._unwanted
        self._done.set()
        if unwanted:
            self.leave()

    def wait(self) -> subprocess.Popen[bytes]:
        self._done.wait()
        if self._error is not None:
            raise self._error
        assert self._child
        return self._child

    def leave(self) -> None:
        """Ends it, now or as soon as it is there."""
        with self._lock:
            self._unwanted = True
            child, self._child = self._child, None
        if child is None:
            return
        end(child, _END)


def end(child: subprocess.Popen[bytes], patience: float) -> None:
    """Closes its pipes, which ends it, also where it is root's; and kills it if it has not ended within so many seconds, or Ctrl-C comes."""
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience)
    finally:
        if child.poll() is None:
            # What is root's cannot be killed from here, and is not waited for without end.
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                child.kill()
                child.wait(1)


def started(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts a process in a session of its own, with three pipes, in a thread of its own. Raises `OSError`.

    Ctrl-C comes to the main thread, between any two of its steps. Between those by which `subprocess` makes pipes and forks, it would
    leave pipes that nobody closes, and a child that nobody knows.
    """
    start = _Start(words)
    thread = threading.Thread(target=start.start, name="netdyno-starts", daemon=True)
    try:
        thread.start()
        return start.wait()
    except BaseException:
        start.leave()
        raise
