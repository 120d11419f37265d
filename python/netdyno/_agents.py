"""One job at several agents: what leaves at one is measured at another (docs/many-machines.md)."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ._agent import Program
from ._child import started
from ._job import Job
from .errors import AgentError, AgentMissing, EngineError, UsageError
from .report import Report

__all__ = ["at_agents"]

# How long an orderly end may take, in seconds.
_ORDERLY = 30.0


def at_agents(
    job: Job | Mapping[str, Any],
    agents: Mapping[str, str | Sequence[str]] | str | os.PathLike[str],
    *,
    at: str | None = None,
    copy: bool = False,
    timeout: float | None = None,
    program: Program | None = None,
) -> Report:
    """Carries out one job at agents on other machines, and returns its one report when it is over.

    ::

        job = nd.job(nd.send, "ipv4/udp", on="eth1@lab1", measure="eth2@lab2", rate="10kpps", duration="5s")
        r = nd.at_agents(job, {"lab1": "ssh lab1 netdyno agent --stdio --allow-interface eth1", "lab2": "ssh lab2 ..."})

    Interfaces are at agents, ``eth1@lab1``; all begin at one time by their own clocks. Nothing here needs rights: what the agents may do
    is said in their commands. Ctrl-C ends all in an orderly way, and the report is in the KeyboardInterrupt's ``report``.

    agents: for each name the command that reaches it, a shell's or a list of words; or the name of an inventory (docs/many-machines.md).
    at: the agent where a job without interfaces begins.
    copy: copies this netdyno to hosts that have not got it.
    timeout: how long an agent may take to answer, in seconds.
    """
    made = job if isinstance(job, Job) else Job(dict(job))
    made.data.setdefault("schema", "netdyno.job/1")
    asks = made.asks()
    words = [(program or Program()).find(), "run", "-", "--json-lines", "--quiet"]
    if isinstance(agents, (str, os.PathLike)):
        words.append(f"--inventory={os.fspath(agents)}")
    else:
        if not agents:
            raise UsageError("no agents are named: {'lab1': 'ssh lab1 netdyno agent --stdio ...'}", setting="agents")
        for name, command in agents.items():
            words.append(f"--agent={name}={command if isinstance(command, str) else shlex.join(command)}")
    words += [f"--at={at}"] if at is not None else []
    words += ["--agents-copy"] if copy else []
    words += [f"--agents-timeout={timeout}s"] if timeout is not None else []
    words += _consents(asks)
    with tempfile.TemporaryDirectory(prefix="netdyno-agents-") as folder:
        return _run(words, json.dumps(_in_files(made, Path(folder))))


def _consents(asks: Mapping[str, Any]) -> list[str]:
    """The job is this user's own: what it asks for, he wants."""
    words = [f"--command={asks['command']}"] if asks["command"] else []
    options = {
        "yes_disrupt": "--yes-disrupt",
        "write": "--write",
        "read": "--allow-read",
        "addresses": "--allow-address",
        "public_targets": "--allow-public-target",
        "own_prefixes": "--allow-source-prefix",
    }
    return words + [f"{option}={one}" for of, option in options.items() for one in asks[of]]


def _in_files(job: Job, folder: Path) -> Any:
    """The job with the contents that it has no files for in files of the folder."""
    places = {}
    for number, (name, content) in enumerate(job.contents.items()):
        place = folder / f"{number}-{os.path.basename(name)}"
        place.write_bytes(content)
        places[name] = str(place)

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: put(one) for name, one in value.items()}
        if isinstance(value, list):
            return [put(one) for one in value]
        return places.get(value, value) if isinstance(value, str) else value

    return put(job.data) if places else job.data


def _run(words: list[str], job: str) -> Report:
    try:
        # Ctrl-C is for Python, which hands it on once.
        child = started(words)
    except OSError as error:
        raise AgentMissing(f"{words[0]} cannot be started: {error.strerror}") from error
    try:
        said, errors = child.communicate(job.encode())
    except KeyboardInterrupt as interrupt:
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired, AgentError, EngineError, UsageError):
            said, errors = child.communicate(timeout=_ORDERLY)
            interrupt.report = _report(child.returncode, said, errors)  # type: ignore[attr-defined]
        raise
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            assert pipe
            with contextlib.suppress(OSError):
                pipe.close()
    return _report(child.returncode, said, errors)


def _report(status: int, said: bytes, errors: bytes) -> Report:
    lines = said.splitlines()
    if status in (0, 1) and lines:
        return Report(json.loads(lines[-1]))
    text = errors.decode(errors="replace").strip()
    what = text.splitlines()[0].removeprefix("netdyno: ").removeprefix("error: ") if text else f"netdyno ended with status {status}"
    raise EngineError(what)
