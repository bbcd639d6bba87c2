"""Resumes an agent that has ended, when the operator has decided an action that it left pending."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from attrs import frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from aileron.base.text import visible
from aileron.client import Daemon, DaemonError, DaemonUnreachable
from aileron.model.errors import InvalidRequest

WAIT_SECONDS = 300.0
GRACE_SECONDS = 60.0
_PAUSE_SECONDS = 2.0

_GOES_ON = (
    "aileron: {agent} has ended, and a request of it is pending. It is resumed with the outcome; Ctrl-C ends this."
)
_USED_UP = "aileron: {agent} is not resumed again: wake.most_resumes in config.yaml is reached."
_UNKNOWN = "aileron: {agent} cannot be resumed, as it did not say which conversation it had."


@frozen(kw_only=True)
class Resumption:
    """The way in which an agent resumes a conversation without a screen.

    Only options that are listed here are understood, so that no resumed agent may do more than the one before.

    :ivar flags: options without a value that a resumed agent gets too.
    :ivar options: options with a value that it gets too, in either notation.
    :ivar joined: options that it gets too if the value is joined by C{=}, as otherwise they may have several.
    :ivar flags_replaced: options without a value that it does not get.
    :ivar options_replaced: options that it does not get, with their value if there is one.
    :ivar arguments: returns the agent's arguments, from the kept options, the conversation's ID and the message.
    """

    flags: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    joined: frozenset[str] = frozenset()
    flags_replaced: frozenset[str] = frozenset()
    options_replaced: frozenset[str] = frozenset()
    arguments: Callable[[tuple[str, ...], str, str], tuple[str, ...]]

    def keep(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Return the options that a resumed agent gets too. The prompt is left out.

        :raises InvalidRequest: if an option is not known.
        """
        return tuple(self._keep(arguments))

    def _keep(self, arguments: tuple[str, ...]) -> Iterator[str]:
        rest = list(arguments)
        while rest and rest[0] != "--":
            word = rest.pop(0)
            name, equals, _ = word.partition("=")
            has_value = bool(rest) and not rest[0].startswith("-")
            # guard of waking: an option that is not known may restrict the agent, so nothing is resumed without it
            #    -> launch.test_resuming.ResumptionTests.test_unknown, instead is_known = True
            is_known = self._is_known(word, name, bool(equals))
            if not is_known:
                raise InvalidRequest(
                    f"An agent with the option {visible(name)} cannot be resumed, so nothing was started. "
                    "Leave out --wake, or the option."
                )
            if word in self.flags or (equals and name in self.options | self.joined):
                yield word
            elif word in self.options and has_value:
                yield from (word, rest.pop(0))
            elif word in self.options_replaced and has_value:
                rest.pop(0)

    def _is_known(self, word: str, name: str, joined: bool) -> bool:
        if not word.startswith("-") or word in self.flags | self.flags_replaced:
            return True
        return name in self.options | self.options_replaced or (joined and name in self.joined)


@frozen
class Resumer:
    """Waits for outcomes after an agent has ended, and resumes the agent with each.

    :ivar agent: the agent's name, for messages.
    :ivar kept: the options that a resumed agent gets too.
    :ivar run: runs the agent with these arguments to its end; returns whether to go on.
    """

    agent: str
    resumption: Resumption
    kept: tuple[str, ...]
    run: Callable[[tuple[str, ...]], Awaitable[bool]]
    say: Callable[[str], object]
    clock: IReactorTime

    async def resume(self, daemon: Daemon) -> None:
        """Resume the agent until none of its requests is pending, or the daemon says that it is enough.

        :param daemon: the agent site, with the session's token.
        :raises OSError: if the agent cannot be started.
        """
        is_told, seconds = False, 0.0
        while (reply := await self._ask(daemon, seconds)) is not None:
            outcome, conversation = reply.get("outcome"), str(reply.get("conversation", ""))
            if outcome is None and not reply.get("waiting"):
                if not reply.get("resumes_left"):
                    self.say(_USED_UP.format(agent=self.agent))
                return
            if outcome is None:
                if not is_told:
                    self.say(_GOES_ON.format(agent=self.agent))
                is_told, seconds = True, WAIT_SECONDS
                continue
            message = visible(str(outcome["message"]))
            if not conversation:
                self.say(message)
                self.say(_UNKNOWN.format(agent=self.agent))
                return
            self.say(f"aileron: {self.agent} is resumed by the outcome of {outcome['run_id']}.")
            if not await self.run(self.resumption.arguments(self.kept, conversation, message)):
                return

    async def _ask(self, daemon: Daemon, seconds: float) -> Mapping[str, Any] | None:
        """Ask the daemon for an outcome.

        Return its reply, or None if the session has ended or the daemon does not respond.

        :param seconds: how long to wait for an outcome.
        """
        until = self.clock.seconds() + GRACE_SECONDS + seconds
        while True:
            try:
                return await daemon.post("wake", body={"resume": True, "wait": seconds}, wait_seconds=seconds)
            except DaemonUnreachable:
                if self.clock.seconds() > until:
                    return None
            except DaemonError:
                return None
            await deferLater(self.clock, _PAUSE_SECONDS)
