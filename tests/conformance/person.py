"""A person who signs in for our connector before the suite: as ``aileron credential setup`` does, in a browser."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from zope.interface import implementer

from aileron.cli.context import CliContext
from aileron.cli.vault.signing_in import SignInChoice, sign_in
from aileron.connectors import HttpExchange, system_transport
from aileron.credentials import KINDS, CredentialUse, NeedsYou, TokenExchange
from aileron.home.discovery import Discovery
from aileron.model.connectors import ConnectorDescription, Request
from aileron.model.errors import CredentialNeedsYou
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization, Scope
from tests.conformance import browser

_KIND = KINDS["oauth2"]


@frozen
class _Context(CliContext):
    """The surroundings of a command, beside a daemon that need not run for a sign-in."""

    def running(self) -> Discovery:
        """A daemon at ports that nobody listens on."""
        url = "http://127.0.0.1:1"
        return Discovery(url, url, os.getpid(), "conformance", "0", "", "")


@define
class Person:
    """Signs in, says yes to all that is asked, and knows what the suite's context says of a client.

    :ivar directory: for the browser's file, and the program that is the browser.
    """

    reactor: Any
    directory: Path
    context: dict[str, str] = field(factory=lambda: json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"))

    def settings(self) -> str:
        """The keys of the connector's file for the client that the operator registered, if there is one."""
        registered = f'client_id = "{self.context["client_id"]}"' if "client_id" in self.context else ""
        return f'client_metadata_url = "https://conformance-test.local/client-metadata.json"\n{registered}'

    async def sign_in(self, about: ConnectorDescription, wanted: Collection[str] = ()) -> Kept:
        """Sign in for a connector; what is kept of it.

        :param wanted: the scopes that a refusal has named.
        :raises CommandError: it came to nothing.
        """
        need = about.credential
        assert need is not None
        scope = Scope(about.hosts, about.base_url or "", need.header, need.format, dict(need.settings))
        target = {"scope": {"settings": dict(need.settings)}, "state": {"wanted": list(wanted)}}
        signed = await sign_in(self._cli(), target, SignInChoice())
        return Kept(signed.secret.encode(), scope, self._exchange(()))

    def _exchange(self, own_ports: Collection[int]) -> TokenExchange:
        return HttpExchange(system_transport(self.reactor, lambda: own_ports), self.reactor)

    def _cli(self) -> CliContext:
        program = self.directory / "browser"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {browser.__file__} "$@"\n')
        program.chmod(stat.S_IRWXU)
        (self.directory / "home").mkdir(exist_ok=True)
        return _Context(
            {**os.environ, "BROWSER": str(program), "AILERON_HOME": str(self.directory / "home")},
            ask=lambda _: "y",
            secret=lambda _prompt, _descriptor: self.context.get("client_secret", ""),
            reactor=lambda: self.reactor,
            exchange=self._exchange,
        )


@implementer(ICredential)
@define
class Kept:
    """A credential as the vault keeps it, in memory.

    :ivar wanted: the scopes to sign in for once more; L{None}: it is good as it is.
    """

    kept: bytes
    scope: Scope
    exchange: TokenExchange
    wanted: tuple[str, ...] | None = None

    async def authorize(self, request: Request) -> Authorization:
        """What is sent."""
        try:
            return await _KIND.authorize(self._use(), request)
        except NeedsYou as needs:
            self._note()
            raise CredentialNeedsYou(needs.reason) from None

    async def reveal(self) -> bytes:
        """What stands in the header."""
        return await _KIND.reveal(self._use())

    async def make_ready(self) -> None:
        """Renew it."""
        await _KIND.make_ready(self._use())

    def accepted(self, sent: Authorization) -> None:
        """That is as it should be."""

    async def refused(self, sent: Authorization, challenge: str = "", operation: str = "") -> bool:
        """Note it."""
        try:
            return _KIND.refused(self._use(), sent, challenge)
        except NeedsYou:
            self._note()
            return False

    def _note(self) -> None:
        self.wanted = _KIND.state(self.kept, datetime.now(UTC)).wanted

    def _use(self) -> CredentialUse:
        def keep(renewed: bytes) -> None:
            self.kept = renewed

        return CredentialUse(self.scope, self.kept, keep, lambda: datetime.now(UTC), self.exchange)
