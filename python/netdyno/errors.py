"""What netdyno raises.

A run that fell short of what was asked is a result, not an error: its report has ``ok == False``, and
``report.raise_for_status()`` makes an error of it for whoever wants one. An error is raised where there is no report.

    NetdynoError
      UsageError            what was asked makes no sense: the setting, the place in it, and what to write instead
        NotTranslatable     a Scapy packet or a TRex profile has something that no program can stand for
      Refused               it would disturb somebody, and nobody consented
      PermissionDenied      this user may not do it: what to grant
      EngineError           the kernel, an interface or a peer did not do it
      Aborted               the run was aborted, and has no report
      AgentError            the child that carries out jobs
        AgentMissing        is not there
        AgentLost           ended, or does not answer
        AgentMismatch       is of another version
      Short                 a report that is not ``ok``, by ``raise_for_status()``
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .report import Report

__all__ = [
    "Aborted",
    "AgentError",
    "AgentLost",
    "AgentMismatch",
    "AgentMissing",
    "EngineError",
    "NetdynoError",
    "NotTranslatable",
    "PermissionDenied",
    "Refused",
    "Short",
    "UsageError",
]


class NetdynoError(Exception):
    """The root of all errors of this package.

    ``message`` is one sentence. ``setting`` is the path of the setting in the job (``links[0].on``), ``column`` counts characters of
    its text from 1, ``hint`` says what may have been meant, ``remedy`` what to do. What is not known is None.
    """

    message: str
    setting: str | None
    column: int | None
    hint: str | None
    remedy: str | None

    def __init__(
        self,
        message: str,
        *,
        setting: str | None = None,
        column: int | None = None,
        hint: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.setting = setting
        self.column = column
        self.hint = hint
        self.remedy = remedy

    def __str__(self) -> str:
        text = self.message
        if self.setting is not None and not text.startswith(self.setting):
            text = f"{self.setting}: {text}"
        for more in (self.hint, self.remedy):
            if more and more not in text:
                text = f"{text}; {more}"
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (type(self), self.args, dict(self.__dict__)))


def _again(kind: type[NetdynoError], args: tuple[Any, ...], members: dict[str, Any]) -> NetdynoError:
    """An error as it was pickled: arguments by keyword are no part of ``args``."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(members)
    return error


class UsageError(NetdynoError, ValueError):
    """What was asked makes no sense. Nothing was sent and nothing was written."""


class NotTranslatable(UsageError):
    """A packet or a profile has something that no packet program can stand for; the message names it."""


class Refused(NetdynoError):
    """It would disturb somebody (an interface in use, a file that exists, a command to be run), and nobody consented."""


class PermissionDenied(NetdynoError):
    """This user may not do it. ``remedy`` says what to grant."""


class EngineError(NetdynoError):
    """The kernel, an interface or a peer did not do what the job needs."""


class Aborted(NetdynoError):
    """The run was aborted by ``run.abort()``: there is no report, and nothing is left of it."""


class AgentError(NetdynoError):
    """The child process that carries out jobs failed, and with it the job."""


class AgentMissing(AgentError):
    """The program netdyno was not found or cannot be started."""


class AgentLost(AgentError):
    """The child ended or does not answer. ``run.report`` is None: the kernel has taken back what the job had attached."""


class AgentMismatch(AgentError):
    """The child speaks another version of the protocol than this package."""


class Short(NetdynoError):
    """A report that is not ``ok``; it is in ``report``."""

    report: Report

    def __init__(self, report: Report) -> None:
        reasons = list(report.verdict.reasons)
        super().__init__("; ".join(reasons) or "the run fell short of what was asked")
        self.report = report
        self.args = (report,)
