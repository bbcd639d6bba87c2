"""Runs an agent: checks everything, opens a session, runs the agent, and ends the session in any case."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from tempfile import TemporaryDirectory
from typing import Any

from attrs import frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from aileron.client import Daemon, DaemonError, DaemonUnreachable, Lease, OpenedSession

from ._bell import Bell, format_waiting, watch_waiting
from ._process import FORWARDED, FROM_THE_TERMINAL, AgentProcess, CatchSignals, catch_signals, exit_status
from .agent import Agent
from .plan import DaemonFacts, LaunchPlan, prepare, write_files
from .registration import Invocation

Enclose = Callable[[LaunchPlan, str, str], AbstractContextManager[LaunchPlan]]
"""From what would be run, the agent site's URL and the session's ID, to what is run in its place, in a sandbox."""

_GOODBYE_SECONDS = 10.0
_PAUSE_SECONDS = 0.5
_MINUTE, _HOUR = 60, 3600
_COUNTS = (
    ("approvals", "approved"),
    ("denials", "denied"),
    ("effects", "completed"),
    ("in_doubt", "with unknown outcome"),
    ("waiting", "pending"),
)


@frozen
class Launcher:
    """Launches agents.

    :ivar reactor: spawns processes and tells the time.
    :ivar ensure_daemon: finds the daemon or starts it, with a vault; raises what the user is to be told.
    :ivar connect: a client of the agent site, from its URL and a launch key or agent token.
    :ivar say: shows one line to the user, beside the agent's own output.
    :ivar interpreter: C{sys.executable}.
    :ivar bell: by which the person is told that a call waits; L{None}: they are not.
    :ivar lease: holds the session, so that it ends if we are killed; L{None}: nobody holds it.
    :ivar catch: catches the signals that come while the agent runs.
    """

    reactor: Any
    ensure_daemon: Callable[[], Awaitable[DaemonFacts]]
    connect: Callable[[str, str], Daemon]
    say: Callable[[str], object]
    interpreter: str
    bell: Bell | None = None
    lease: Lease | None = None
    catch: CatchSignals = catch_signals

    async def launch(
        self,
        agent: Agent,
        invocation: Invocation,
        *,
        through_gateway: bool = True,
        enclose: Enclose | None = None,
    ) -> int:
        """Run the agent to its end.

        :param through_gateway: whether its LLM traffic may be sent through the gateway.
        :param enclose: puts it into a sandbox; L{None}: it runs as any program of the user's.
        :return: its exit code, or 128 + n where signal n ended it or us.
        :raises Forbidden: as L{prepare}, like NotFound and InvalidRequest.
        :raises DaemonError: no session could be opened.
        :raises OSError: the agent could not be started.
        """
        prepared = prepare(agent, invocation, self.interpreter)
        facts = await self.ensure_daemon()
        notes_tools = enclose is not None and through_gateway and facts.upstreams is not None

        @contextmanager
        def planned(session: OpenedSession) -> Iterator[LaunchPlan]:
            key = session.in_band_key if agent.in_band else session.gateway_key
            gateway = facts.gateway(key, notes_tools=notes_tools) if through_gateway else None
            with TemporaryDirectory(prefix="aileron-agent-") as directory:
                plan = prepared.plan(facts.url, session.token, gateway, directory)
                write_files(plan)
                with nullcontext(plan) if enclose is None else enclose(plan, facts.url, session.id) as runs:
                    yield runs

        # A reactor that starts only now would put its own handlers over ours.
        await deferLater(self.reactor, 0)
        child = AgentProcess()
        with self.catch(self.reactor, (*FORWARDED, *FROM_THE_TERMINAL), child.signal):
            daemon = self.connect(facts.url, facts.launch_key)
            session = await daemon.open_session(
                agent.claim or agent.name,
                invocation.directory,
                leased=self.lease is not None,
                in_band=agent.in_band,
                notes_tools=notes_tools,
            )
            code: int | None = None
            try:
                self._greet(agent, session, facts)
                watched, draws = self.connect(facts.url, session.token), agent.full_screen(invocation.arguments)
                with ExitStack() as meanwhile:
                    if self.lease is not None:
                        meanwhile.enter_context(_running(self.lease.hold(session.id)))
                    runs = meanwhile.enter_context(planned(session))
                    if self.bell is not None:
                        ringing = self._ring(self.bell, watched, agent.claim or agent.name, full_screen=draws)
                        meanwhile.enter_context(_running(ringing))
                    code = await self._run(child, runs)
            finally:
                await self._end(self.connect(facts.url, session.token), session, code)
        return code

    async def _run(self, child: AgentProcess, planned: LaunchPlan) -> int:
        if child.stopped_by is not None:
            return exit_status(child.stopped_by)
        for line in planned.notes:
            self.say(line)
        child.start(self.reactor, planned)
        return await child.ended

    async def _ring(self, bell: Bell, daemon: Daemon, agent: str, *, full_screen: bool) -> None:
        """Ring for the agent's pending calls until this is cancelled."""

        async def count() -> int:
            return int((await daemon.status()).get("counts", {}).get("pending_approvals", 0))

        def tell(number: int) -> None:
            bell.ring(format_waiting(number, bell.find_pages()), full_screen=full_screen)

        def show(number: int, before: int) -> None:
            bell.show_title(number, before, agent, full_screen=full_screen)

        await watch_waiting(count, tell, self.reactor, show)

    def _greet(self, agent: Agent, session: OpenedSession, facts: DaemonFacts) -> None:
        runs = f"aileron: {agent.claim or agent.name} runs in session {session.id}."
        self.say(f"{runs} Approvals: {facts.operator_url} (aileron open)")

    async def _end(self, daemon: Daemon, session: OpenedSession, code: int | None) -> None:
        """End the session, also if the daemon restarts meanwhile. Report a failure, and raise nothing."""
        until = self.reactor.seconds() + _GOODBYE_SECONDS
        while True:
            try:
                ended = await daemon.end_session(session.id, code)
            except DaemonUnreachable as error:
                if self.reactor.seconds() + _PAUSE_SECONDS > until:
                    self.say(f"aileron: session {session.id} could not be ended: {error}")
                    return
                await deferLater(self.reactor, _PAUSE_SECONDS)
            except DaemonError as error:
                self.say(f"aileron: session {session.id} could not be ended: {error}")
                return
            else:
                for line in _summarize(ended):
                    self.say(f"aileron: {line}")
                return


@contextmanager
def _running(coroutine: Coroutine[Deferred[Any], Any, None]) -> Iterator[None]:
    """Run a coroutine beside the agent, and cancel it when the agent has ended."""
    running = Deferred.fromCoroutine(coroutine)
    running.addErrback(lambda failure: failure.trap(CancelledError))
    try:
        yield
    finally:
        running.cancel()


def _summarize(session: Mapping[str, Any]) -> Iterator[str]:
    """Return a summary of an ended session from the daemon's answer, or nothing if the answer has no numbers."""
    summary = session.get("summary")
    if not isinstance(summary, Mapping):
        return
    calls = _count_things(summary["calls"], "call")
    told = [f"{summary[name]} {words}" for name, words in _COUNTS if summary[name]]
    yield f"session {session.get('id')} ended after {_format_duration(summary['seconds'])}: {', '.join([calls, *told])}"
    traffic = session.get("gateway")
    if isinstance(traffic, Mapping):
        requests = _count_things(traffic["requests"], "request")
        yield f"LLM traffic: {requests}, {traffic['input_tokens']} tokens in, {traffic['output_tokens']} out"
    if summary["waiting"]:
        yield "pending approvals can still be decided: aileron approval list"
    if summary["in_doubt"]:
        yield "runs with unknown outcome may have happened: aileron run list --state unknown"


def _count_things(number: int, thing: str) -> str:
    return f"{number or 'no'} {thing}{'' if number == 1 else 's'}"


def _format_duration(seconds: int) -> str:
    if seconds < _MINUTE:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, _MINUTE)
    if seconds < _HOUR:
        return f"{minutes} min {rest} s"
    return f"{minutes // _MINUTE} h {minutes % _MINUTE} min"
