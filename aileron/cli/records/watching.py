"""C{aileron sessions watch}: what is put on record of one session, as it happens."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from aileron.cli import _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._output import note, say, say_json
from aileron.cli._session import as_operator

if TYPE_CHECKING:
    from aileron.client import Operator

_AT_ONCE = 200
_PAUSE_SECONDS = 1.0
_ENDED = "session.ended"


@click.command("watch")
@click.argument("session")
@_options.passphrase_fd
@_options.as_json
@pass_cli
def watch_session(cli: CliContext, session: str, passphrase_fd: int | None, as_json: bool) -> None:
    """Follow one session: what was recorded of it, and then whatever happens, until it ends.

    With --json each record is one JSON object.
    """

    async def whole(operator: Operator) -> None:
        found = await operator.session(session)
        if not as_json:
            note("{agent}, session {id}, since {at}", agent=found["agent"], id=session, at=found["started_at"])
        await Watch(cli, operator, session, as_json).run()

    as_operator(cli, passphrase_fd, whole)


class Watch:
    """One session's records, each told once, in order."""

    def __init__(self, cli: CliContext, operator: Operator, session: str, as_json: bool) -> None:
        self._cli, self._operator, self._session, self._as_json = cli, operator, session, as_json
        self._told = 0
        self._ended = False
        self._heard = False

    async def run(self) -> None:
        """Tell them until the session has ended."""
        from twisted.internet.defer import Deferred

        following = Deferred.fromCoroutine(self._follow())
        try:
            while not self._ended:
                self._heard = False
                await self._tell()
                while not self._heard and not self._ended:
                    if following.called:
                        following = Deferred.fromCoroutine(self._follow())
                    await self._cli.pause(_PAUSE_SECONDS)
        finally:
            following.addErrback(lambda _: None)
            following.cancel()

    async def _follow(self) -> None:
        """Hear that there is news, until the stream is cut off; then there may be some."""
        from aileron.client import DaemonError

        with suppress(DaemonError):
            await self._operator.follow(self._hear)
        self._hear()

    def _hear(self) -> None:
        self._heard = True

    async def _tell(self) -> None:
        """Whatever is new."""
        for record in await self._new():
            self._told = record["sequence"]
            self._ended = self._ended or record["type"] == _ENDED
            if self._as_json:
                say_json(record)
            else:
                say("{line}", line=line_of(record))

    async def _new(self) -> list[Mapping[str, Any]]:
        """Oldest first."""
        found: list[Mapping[str, Any]] = []
        cursor = None
        while True:
            answer = await self._operator.audit({"session": self._session, "limit": _AT_ONCE, "cursor": cursor})
            new = [each for each in answer["items"] if each["sequence"] > self._told]
            found += new
            cursor = answer.get("cursor")
            if cursor is None or len(new) < len(answer["items"]):
                return found[::-1]


def line_of(record: Mapping[str, Any]) -> str:
    """One record as a line; the caller shows it visibly."""
    about = (record.get("action"), record.get("run_id"), _more(record))
    return "  ".join(str(each) for each in (record["at"], record["type"], *about) if each)


def _more(record: Mapping[str, Any]) -> str:
    """What of its contents makes a line worth reading."""
    payload = record.get("payload") or {}
    told = ((name.replace("_", " "), payload.get(name)) for name in ("ending", "exit_code", "reason"))
    return ", ".join(f"{name} {each}" for name, each in told if each is not None)
