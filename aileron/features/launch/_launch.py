"""Runs an agent: checks the launch, opens a session, runs the agent, and always ends the session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from tempfile import TemporaryDirectory
from typing import Any

from attrs import evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.client import Daemon, DaemonError, DaemonUnreachable, Lease, OpenedSession
from aileron.model.errors import InvalidRequest

from ._bell import Bell, format_waiting, watch_claims, watch_waiting
from ._process import (
    FORWARDED,
    FROM_THE_TERMINAL,
    AgentProcess,
    CatchSignals,
    Foreground,
    catch_signals,
    exit_status,
)
from .agent import Agent
from .plan import DaemonFacts, LaunchPlan, Preparation, prepare, write_files
from .registration import GatewayAccess, Invocation, PromptAccess, WakeAccess
from .resuming import Resumer

Enclosed = Callable[[LaunchPlan, str], AbstractContextManager[LaunchPlan]]
"""Puts a launch into a sandbox: a context manager from a plan and the agent site's URL to the plan that is run
instead."""

Enclose = Callable[[str], Awaitable[Enclosed]]
"""Opens for a session, by its ID, what its sandboxes may reach."""

_WITHOUT = "Leave out --wake."
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
class Restriction:
    """A restriction of the actions that a session may use.

    :ivar profile: the name of a profile, or None for the one that the operator configured.
    :ivar selection: the project's choice of actions C{{allow, deny}}, or None.
    :ivar path: the file that has the selection, or an empty text.
    """

    profile: str | None = None
    selection: Mapping[str, JSON] | None = None
    path: str = ""

    def claims(self) -> Mapping[str, JSON]:
        """Return the members that this restriction adds to a request to open a session."""
        said: Mapping[str, JSON] = {"profile": self.profile, "selection": self.selection}
        return {name: value for name, value in said.items() if value is not None}


@frozen
class _SessionPlans:
    """Makes the plans of one session's runs: the first, and those that resume the agent.

    :ivar enclosed: puts a run into a sandbox, or None to run it without one.
    """

    url: str
    token: str = field(repr=False)
    gateway: GatewayAccess | None
    prompts: PromptAccess | None
    wake: WakeAccess | None
    enclosed: Enclosed | None

    @contextmanager
    def provide(self, ready: Preparation) -> Iterator[LaunchPlan]:
        """Provide the plan of one run within the context."""
        with TemporaryDirectory(prefix="aileron-agent-") as directory:
            plan = ready.plan(self.url, self.token, self.gateway, directory, self.prompts, self.wake)
            write_files(plan)
            with nullcontext(plan) if self.enclosed is None else self.enclosed(plan, self.url) as runs:
                yield runs


@frozen
class Launcher:
    """Launches agents.

    :ivar reactor: the reactor, for processes and timers.
    :ivar ensure_daemon: finds or starts the daemon, with a vault; raises an error with a message for the user.
    :ivar connect: makes a client of the agent site, from its URL and a launch key or agent token.
    :ivar say: prints a line for the user between the agent's output.
    :ivar interpreter: the path of the Python interpreter, C{sys.executable}.
    :ivar bell: announces pending calls, or None to announce nothing.
    :ivar lease: keeps the session alive, so that it ends if this process is killed; None for a session without lease.
    :ivar catch: a context manager that handles signals while the agent runs.
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
        restriction: Restriction | None = None,
        prompts: bool | None = None,
        wake: bool | None = None,
    ) -> int:
        """Run the agent in a session until the agent ends.

        :param through_gateway: whether the agent's LLM traffic may be sent through the gateway.
        :param enclose: opens what the agent's sandbox may reach; None to run the agent without a sandbox.
        :param restriction: what restricts the session's actions; None for the operator's configuration alone.
        :param prompts: whether the agent's own permission prompts are listed in the inbox; None for its usual way.
        :param wake: whether the agent is resumed with outcomes after it has ended; False to leave it alone altogether;
            None for the operator's configuration.
        :return: the agent's exit code, or 128 + n if signal n ended the agent or came before the agent was started.
        :raises Forbidden: if the vault's passphrase is in the environment.
        :raises NotFound: if a program is not installed.
        :raises InvalidRequest: if the user's own settings cannot be extended.
        :raises DaemonError: if no session can be opened, or not what the sandbox is to reach.
        :raises OSError: if the agent cannot be started.
        """
        prepared = prepare(agent, invocation, self.interpreter)
        facts = await self.ensure_daemon()
        notes_tools = enclose is not None and through_gateway and facts.upstreams is not None
        access = facts.wake(wake)
        kept = self._find_kept(agent, invocation, access, wanted=wake is True)

        # A starting reactor would replace the handlers installed below.
        await deferLater(self.reactor, 0)
        front = Foreground()
        with self.catch(self.reactor, (*FORWARDED, *FROM_THE_TERMINAL), front.signal):
            daemon = self.connect(facts.url, facts.launch_key)
            session = await daemon.open_session(
                agent.claim or agent.name,
                invocation.directory,
                leased=self.lease is not None,
                in_band=agent.in_band,
                notes_tools=notes_tools,
                restriction=None if restriction is None else restriction.claims(),
            )
            code: int | None = None
            try:
                self._greet(agent, session, facts)
                enclosed = None if enclose is None else await enclose(session.id)
                key = session.in_band_key if agent.in_band else session.gateway_key
                gateway = facts.gateway(key, notes_tools=notes_tools) if through_gateway else None
                plans = _SessionPlans(facts.url, session.token, gateway, facts.prompts(prompts), access, enclosed)
                watched = self.connect(facts.url, session.token)
                with self._watching(watched, session, agent, invocation):
                    code = await self._run_once(front, plans.provide(prepared))
                    if kept is not None and code < exit_status(0):
                        await self._resume(front, watched, prepared, kept, plans.provide)
            finally:
                await self._end(self.connect(facts.url, session.token), session, code)
        return code

    def _find_kept(
        self, agent: Agent, invocation: Invocation, wake: WakeAccess | None, *, wanted: bool
    ) -> tuple[str, ...] | None:
        """Return the options that the agent gets when it is resumed, or None if it is not to be resumed.

        :param wanted: whether the user asked to have it resumed.
        :raises InvalidRequest: if the user asked for it, and it is not possible.
        """
        if wake is None and wanted:
            raise InvalidRequest(f"The running daemon resumes no agents, so nothing was started. {_WITHOUT}")
        if wake is None or not wake.resumes:
            return None
        try:
            return _keep_options(agent, invocation.arguments)
        except InvalidRequest:
            if wanted:
                raise
            return None

    @contextmanager
    def _watching(
        self, watched: Daemon, session: OpenedSession, agent: Agent, invocation: Invocation
    ) -> Iterator[None]:
        """Hold the session's lease, and announce its pending calls and claims, within the context."""
        draws = agent.full_screen(invocation.arguments)
        with ExitStack() as meanwhile:
            if self.lease is not None:
                meanwhile.enter_context(_running(self.lease.hold(session.id)))
            if self.bell is not None:
                ringing = self._ring(self.bell, watched, agent.claim or agent.name, full_screen=draws)
                meanwhile.enter_context(_running(ringing))
                claims = self._ring_claims(self.bell, watched, session.id, full_screen=draws)
                meanwhile.enter_context(_running(claims))
            yield

    async def _run_once(self, front: Foreground, planned: AbstractContextManager[LaunchPlan]) -> int:
        with planned as runs:
            return await self._run(front.begin(), runs)

    async def _resume(
        self,
        front: Foreground,
        daemon: Daemon,
        prepared: Preparation,
        kept: tuple[str, ...],
        planned: Callable[[Preparation], AbstractContextManager[LaunchPlan]],
    ) -> None:
        """Resume the agent with each outcome, as long as outcomes may come, or until a signal."""
        agent = prepared.agent
        if agent.resumption is None:
            return

        async def run(arguments: tuple[str, ...]) -> bool:
            ready = prepare(agent, evolve(prepared.invocation, arguments=arguments), self.interpreter)
            code = await self._run_once(front, planned(ready))
            return code < exit_status(0)

        resumer = Resumer(agent.name, agent.resumption, kept, run, self.say, self.reactor)
        await front.until_signal(Deferred.fromCoroutine(resumer.resume(daemon)))

    async def _run(self, child: AgentProcess, planned: LaunchPlan) -> int:
        if child.stopped_by is not None:
            return exit_status(child.stopped_by)
        for line in planned.notes:
            self.say(line)
        child.start(self.reactor, planned)
        return await child.ended

    async def _ring(self, bell: Bell, daemon: Daemon, agent: str, *, full_screen: bool) -> None:
        """Announce the agent's pending calls until cancelled."""

        async def count() -> int:
            return int((await daemon.status()).get("counts", {}).get("pending_approvals", 0))

        def tell(number: int) -> None:
            bell.ring(format_waiting(number, bell.find_pages()), full_screen=full_screen)

        def show(number: int, before: int) -> None:
            bell.show_title(number, before, agent, full_screen=full_screen)

        await watch_waiting(count, tell, self.reactor, show)

    async def _ring_claims(self, bell: Bell, daemon: Daemon, session_id: str, *, full_screen: bool) -> None:
        """Announce the agent's claims of effects that no run had, until cancelled."""

        async def find() -> Sequence[str]:
            return [visible(str(each)) for each in (await daemon.get("sessions", session_id)).get("claims", ())]

        await watch_claims(find, lambda claim: bell.ring(claim, full_screen=full_screen), self.reactor)

    def _greet(self, agent: Agent, session: OpenedSession, facts: DaemonFacts) -> None:
        runs = f"aileron: {agent.claim or agent.name} runs in session {session.id}."
        self.say(f"{runs} Approvals: {facts.operator_url} (aileron open)")

    async def _end(self, daemon: Daemon, session: OpenedSession, code: int | None) -> None:
        """End the session, retrying for some seconds if the daemon is unreachable.

        Print a summary or the failure, and raise nothing.
        """
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


def _keep_options(agent: Agent, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options that the agent gets when it is resumed.

    :raises InvalidRequest: if it cannot be resumed.
    """
    if agent.resumption is None or agent.commands.intersection(arguments[:1]):
        raise InvalidRequest(f"{agent.name} cannot be resumed with these arguments, so nothing was started. {_WITHOUT}")
    return agent.resumption.keep(arguments)


@contextmanager
def _running(coroutine: Coroutine[Deferred[Any], Any, None]) -> Iterator[None]:
    """Run a coroutine while the context is entered, and cancel it on exit."""
    running = Deferred.fromCoroutine(coroutine)
    running.addErrback(lambda failure: failure.trap(CancelledError))
    try:
        yield
    finally:
        running.cancel()


def _summarize(session: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a summary of an ended session; none if the daemon's answer has no summary."""
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
    for claim in session.get("claims", ()):
        yield visible(str(claim))
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
