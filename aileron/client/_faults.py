"""What can go wrong between us and the daemon, for the caller's decision."""

from __future__ import annotations

from attrs import define

from aileron.values import Fault


@define(eq=False)
class DaemonError(Exception):
    """The daemon could not be asked, or it said no.

    :ivar message: fit for the user's eyes: no secret, no stack.
    """

    message: str

    def __str__(self) -> str:
        """The message, for logs."""
        return self.message


@define(eq=False)
class DaemonUnreachable(DaemonError):
    """No answer came: refused, cut off, or too late.

    :ivar sent: whether the daemon may have received the request.
    :ivar misdirected: whether what we were told of it leads to nobody whom we may ask, so that no start of it helps.
    """

    sent: bool = False
    misdirected: bool = False


@define(eq=False)
class AnswerNotUnderstood(DaemonError):
    """Something answered, but not as the daemon does.

    :ivar status: the HTTP status that came.
    """

    status: int


@define(eq=False)
class DaemonFault(DaemonError):
    """The daemon answered with its error envelope.

    :ivar status: the HTTP status.
    :ivar fault: the envelope's inside.
    :ivar run_id: of the run that failed, if there is one.
    :ivar audit_id: of the event that recorded it, if there is one.
    """

    status: int
    fault: Fault
    run_id: str | None = None
    audit_id: str | None = None
