"""One launch: everything is checked, a session opened, the agent run, and the session ended whatever happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen
from twisted.internet.task import deferLater

from aileron.client import Daemon, DaemonError, DaemonUnreachable, OpenedSession, SessionEnvironment

from ._child import Child, exit_status
from ._iagent import IAgent
from ._plan import Plan, find_programs, plan, refuse_passphrase
from ._signals import FORWARDED, FROM_THE_TERMINAL, Signals

_GOODBYE_SECONDS = 10.0
_PAUSE_SECONDS = 0.5


@frozen
class DaemonFacts:
    """What a launch must know of the running daemon."""

    url: str
    operator_url: str
    launch_key: str = field(repr=False)


@frozen
class Launcher:
    """Launches agents.

    :ivar reactor: spawns processes and tells the time.
    :ivar ensure_daemon: finds the daemon or starts it, with a vault; raises what the user is to be told.
    :ivar connect: a client of the agent site, from its URL and a launch key or agent token.
    :ivar say: shows one line to the user, beside the agent's own output.
    :ivar interpreter: C{sys.executable}.
    """

    reactor: Any
    signals: Signals
    ensure_daemon: Callable[[], Awaitable[DaemonFacts]]
    connect: Callable[[str, str], Daemon]
    say: Callable[[str], object]
    interpreter: str

    async def launch(self, agent: IAgent, arguments: Sequence[str], parent: Mapping[str, str], directory: str) -> int:
        """Run the agent to its end.

        :param arguments: the user's own, passed on as they are.
        :param parent: the environment that the agent gets, but for C{AILERON_*}.
        :param directory: where it works; a claim.
        :return: its exit code, or 128 + n where signal n ended it or us.
        :raises Forbidden: the vault's passphrase is in the environment.
        :raises NotFound: a program is not installed.
        :raises InvalidRequest: the user's own settings cannot be added to.
        :raises DaemonError: no session could be opened.
        :raises OSError: the agent could not be started.
        """
        refuse_passphrase(parent)
        programs = find_programs(agent, parent, self.interpreter)
        register = agent.prepare(parent)
        facts = await self.ensure_daemon()

        def planned(session: OpenedSession) -> Plan:
            environment = SessionEnvironment(facts.url, session.token, agent.wait_seconds)
            return plan(programs, arguments, parent, register=register, session=environment)

        # A reactor that starts only now would put its own handlers over ours.
        await deferLater(self.reactor, 0)
        child = Child()
        with self.signals.caught((*FORWARDED, *FROM_THE_TERMINAL), child.signal):
            session = await self.connect(facts.url, facts.launch_key).open_session(agent.name, directory)
            code: int | None = None
            try:
                self._greet(agent, session, facts)
                code = await self._run(child, planned(session))
            finally:
                await self._end(self.connect(facts.url, session.token), session, code)
        return code

    async def _run(self, child: Child, planned: Plan) -> int:
        if child.stopped_by is not None:
            return exit_status(child.stopped_by)
        child.start(self.reactor, planned)
        return await child.ended

    def _greet(self, agent: IAgent, session: OpenedSession, facts: DaemonFacts) -> None:
        self.say(f"aileron: {agent.name} runs in session {session.id}; approvals: {facts.operator_url} (aileron open)")

    async def _end(self, daemon: Daemon, session: OpenedSession, code: int | None) -> None:
        """End the session, through a restart of the daemon if need be; what goes wrong is only said."""
        until = self.reactor.seconds() + _GOODBYE_SECONDS
        while True:
            try:
                await daemon.end_session(session.id, code)
            except DaemonUnreachable as error:
                if self.reactor.seconds() + _PAUSE_SECONDS > until:
                    self.say(f"aileron: session {session.id} could not be ended: {error}")
                    return
                await deferLater(self.reactor, _PAUSE_SECONDS)
            except DaemonError as error:
                self.say(f"aileron: session {session.id} could not be ended: {error}")
                return
            else:
                return
