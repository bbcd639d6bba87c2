"""A daemon whose gateway sends both providers' traffic to a scripted model, kept running from test to test."""

import atexit
import json
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import attrs
from twisted.internet.error import CannotListenError

from aileron.home.lock import running_pid
from aileron.home.paths import Home as State
from tests.functional import opencode
from tests.functional.home import Home
from tests.functional.llm import ScriptedLLM
from tests.functional.operated import OperatedTestCase
from tests.functional.script import Turn
from tests.functional.sdks import KEY_HEADER, Sdk

Turns = Mapping[str, Sequence[Turn]] | Sequence[Turn]


@attrs.frozen
class Kept:
    """A daemon that outlives a test.

    :ivar port: where its upstream is looked for.
    """

    home: Home
    port: int
    url: str
    gateway_key: str = attrs.field(repr=False)

    def end(self) -> None:
        """Kill it."""
        if pid := running_pid(State(self.home.aileron)):
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(pid, signal.SIGKILL)


class GatewayedTestCase(OperatedTestCase):
    """A test of clients of the gateway; it begins with `gateway`.

    :cvar provider: whose SDK is used.
    """

    provider = "openai"
    _running: ClassVar[list[Kept]] = []

    def upstream_at(self, url: str) -> Mapping[str, str]:
        """The variables that make a daemon relay to a model there."""
        return {"AILERON_OPENAI_BASE_URL": url, "AILERON_ANTHROPIC_BASE_URL": url}

    async def gateway(self, turns: Turns) -> tuple[Kept, ScriptedLLM]:
        """The kept daemon, and its upstream with this script, of the model C{m} unless it says others."""
        script = turns if isinstance(turns, Mapping) else {"m": turns}
        for kept in self._running:
            with suppress(CannotListenError):
                return kept, self.llm(script, kept.port)
        llm, mine = self.llm(script), self.home
        self.home = Home.make()
        atexit.register(shutil.rmtree, self.home.root)
        try:
            kept = await self.own_gateway(llm)
        finally:
            self.home = mine
        atexit.register(kept.end)
        self._running.append(kept)
        return kept, llm

    async def own_gateway(self, llm: ScriptedLLM) -> Kept:
        """A daemon of this test's own home, with an open vault and nothing in it, and a session."""
        self.use_upstream(llm)
        await self.operator("vault", "init")
        session = await self.session()
        return Kept(self.home, llm.port, self.home.discovery()["url"], session.gateway_key)

    def through(self, kept: Kept, *, whole: bool = False, key: str = "path") -> Sdk:
        """The provider's SDK, talking to the gateway.

        :param whole: under the provider's own prefix.
        :param key: where the session's key stands: ``path``, ``header`` or nowhere.
        """
        before, under = f"/s/{kept.gateway_key}" if key == "path" else "", f"/{self.provider}" if whole else ""
        headers = {KEY_HEADER: kept.gateway_key} if key == "header" else {}
        return Sdk(self.provider, kept.url + before + under, headers)

    def direct(self, llm: ScriptedLLM) -> Sdk:
        """The provider's SDK, talking to the provider."""
        return Sdk(self.provider, llm.url)

    def use_upstream(self, llm: ScriptedLLM) -> None:
        """Have every command of this home's user, and the agents, say where the upstream is."""
        self.home = attrs.evolve(self.home, variables=self.upstream_at(llm.url))

    def configure_agent(self, model: str, **servers: Mapping[str, Any]) -> Path:
        """The user's own configuration of the agent, in this file: which model, and nothing of where it is.

        :param servers: tool servers of the user's own.
        """
        return opencode.configure_user(self.home, json.dumps({"model": model, "mcp": servers}))
