"""One attempt at something with a mail server, and what it came to: every failure says truly what happened."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from aileron.connectors._answer import Flight
from aileron.connectors._conversation import HungUp, NotUnderstood, Rejected
from aileron.connectors._sending import FAILURES, describe_failure
from aileron.connectors.http._decode import show_safely
from aileron.errors import ExternalApiError
from aileron.redaction import Redactor
from aileron.values import JSON, Fault, Outcome

from .smtp import LoginRefused, MailLogin


@define
class MailAttempt:
    """The attempt.

    :ivar name: of the connector, for messages.
    :ivar echo: takes what is secret out of what a server said.
    :ivar flight: whether the message, or the question, has left.
    :ivar login_refused: whether the server did not accept the credential.
    """

    name: str
    clock: IReactorTime
    echo: Redactor
    flight: Flight = field(factory=Flight)
    login_refused: bool = False

    async def outcome(self, work: Deferred[JSON], seconds: float, late_seconds: float) -> Outcome:
        """Wait for C{work}, and say what came of it.

        :param seconds: what has not left by then never does.
        :param late_seconds: how much longer the answer to what has left is waited for.
        """
        soon = self.clock.callLater(seconds, self._give_up, work)
        try:
            return self.echo.outcome(Outcome(await work.addTimeout(seconds + late_seconds, self.clock)))
        except Rejected as error:
            return self._rejected(error)
        except NotUnderstood:
            odd = f"{self.name} answered in a form that the connector does not understand."
            return self._fail(ExternalApiError(odd).fault())
        except (*FAILURES, HungUp) as error:
            return self._fail(describe_failure(self.name, error, self.flight, seconds=seconds, most_bytes=0))
        finally:
            if soon.active():
                soon.cancel()

    def _rejected(self, error: Rejected) -> Outcome:
        """Something was refused, and so nothing was done: no server says that of what it has taken."""
        self.login_refused = isinstance(error, LoginRefused)
        said = " ".join(each for each in (str(error.code or ""), show_safely(self.echo.text(error.text))) if each)
        refused = ExternalApiError(f"{self.name} refused {error.step}{f': {said}' if said else ''}.")
        fault = evolve(refused.fault(), retriable=error.may_pass)
        return self.echo.outcome(Outcome(fault=fault, sent=self.flight.sent))

    def _fail(self, fault: Fault) -> Outcome:
        return self.echo.outcome(Outcome(fault=fault, sent=self.flight.sent, classified=False))

    def _give_up(self, work: Deferred[JSON]) -> None:
        if not self.flight.sent:
            self.flight.overdue = True
            work.cancel()


Work = Callable[[MailLogin | None, MailAttempt], Coroutine[Deferred[Any], Any, JSON]]
"""What is attempted, given what it logs in with."""
