"""A local MCP server as a connector's file declares it, and the session that runs share."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from aileron.base.json import JSON
from aileron.base.tables import FileTable, quote
from aileron.connectors.programs import Enclose, ProgramEnvironment
from aileron.connectors.programs.environment import (
    PATH,
    READABLE_BY,
    READERS,
    VARIABLE,
    check_arguments,
    read_environment,
    reveal,
)
from aileron.model.connectors import ConnectorDescription, CredentialNeed, Request
from aileron.model.errors import CapabilityDenied
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization

from ._api import API, API_URL, Api, read_api
from ._api_relay import ApiRelay
from ._package import LOADING_VARIABLES, PACKAGE, InstalledPackage, read_package
from ._session import McpSession
from ._shared import SharedServer, Start

_EXPOSED = f"{READERS} can read the credential, and its file does not say so in `{READABLE_BY}`"

_SEEN = (
    f"Other users of this machine could read what {API_URL} stands for in an argument, and use the API. "
    "Put it in a variable, or have the program run in a sandbox without a network."
)


@frozen
class LocalServer:
    """A program that is an MCP server on its standard input and output.

    :ivar argv: the program and its arguments; all are literal, except that L{API_URL} is replaced.
    :ivar api: the API to which the relay adds the credential, or None if the server gets the credential itself or needs
        none.
    :ivar package: the package that the server runs from, checked before each start, or None if the program is not part
        of an installed package.
    """

    argv: tuple[str, ...]
    environment: ProgramEnvironment
    api: Api | None = None
    package: InstalledPackage | None = None

    @property
    def url(self) -> str:
        """The URL that stands for the local server in requests that are shown and recorded."""
        return f"file://{''.join(self.argv[:1])}"


def read_local(table: FileTable, need: CredentialNeed | None, *, private_network: bool) -> LocalServer:
    """Return the local server read from the keys of C{[mcp]}. Faults are recorded in the table."""
    argv = table.texts("command")
    for each in argv[:1]:
        if not PATH.holds(each):
            table.fault("command", f"has {quote(each)}, which {PATH.phrase}: it is the program")
    for each in argv:
        if "\0" in each:
            table.fault("command", "must not hold a null character")
    inside, environment = table.optional_table("api"), read_environment(table)
    check_arguments(table, "command", argv[1:], environment.public)
    is_told = any(API_URL in each for each in (*argv[1:], *environment.variables.values()))
    if is_told != (inside is not None):
        table.fault("api", f"must be there if {API_URL} stands in `command` or `environment`, and only then")
    api = None if inside is None else read_api(inside, need, private_network=private_network)
    packed = table.optional_table(PACKAGE)
    package = None if packed is None else read_package(packed, argv)
    if package is not None and not package.find_entry():
        where = quote(package.directory)
        table.fault("command", f"must run a program of the package, below {where}: itself, or as the first after node")
    for name in sorted(LOADING_VARIABLES & {*environment.variables, *environment.inherited}) if package else ():
        key = "environment" if name in environment.variables else "inherit"
        table.fault(key, f"must not have {name}: it loads code that is not part of the package")
    return LocalServer(argv, environment, api, package)


@frozen
class LocalSessions:
    """L{aileron.connectors.kinds.mcp._session.McpSessions} of a local server: all runs share one session.

    :ivar shared: keeps the process.
    :ivar daemon: the daemon's environment variables, of which only a few are passed on.
    :ivar enclose: creates sandboxes, or None if this machine has no sandbox.
    :ivar relay: passes the server's requests on to its API, or None if the server has no API.
    """

    about: ConnectorDescription
    local: LocalServer
    shared: SharedServer
    daemon: Mapping[str, str] = field(repr=False)
    enclose: Enclose | None = field(repr=False)
    most_bytes: int
    relay: ApiRelay | None = None

    @property
    def why_approval(self) -> str:
        """The reason why every call needs an approval, or an empty text.

        A reason is a missing sandbox, or a file that does not state who can read the credential.
        """
        need = self.about.credential
        exposed = _EXPOSED if need is not None and not {READABLE_BY, API} & need.settings.keys() else ""
        return self.local.environment.why_approval(self.enclose) or exposed

    def review(self) -> Mapping[str, JSON]:
        """Return what the approval shows of the program. This must be unchanged when the call is made.

        :raises CapabilityDenied: if the program cannot be started as the file declares.
        """
        environment, argv = self.local.environment, self.local.argv
        enclosure = environment.enclosure(self.enclose)
        if not (enclosure and enclosure.listen) and any(API_URL in each for each in argv):
            raise CapabilityDenied(_SEEN)
        shown: dict[str, JSON] = {"argv": list(argv), **environment.review(enclosure)}
        if self.local.package is not None:
            shown[PACKAGE] = self.local.package.review()
        need, api = self.about.credential, self.local.api
        if api is not None:
            shown["credential"] = f"added by Aileron to requests to {api.base.url}; the program cannot read it"
        elif need is not None:
            shown["credential"] = f"in the variable {need.settings[VARIABLE]}: {READERS} can read it"
        return shown

    async def authorize(self, request: Request, credential: ICredential | None, seconds: float) -> Authorization:
        """Open the credential for the program, and return it, or an empty authorization if there is none.

        With a relay, only check that it can be opened: the program does not get it, so the authorization is empty.

        :raises AileronError: if the credential is missing or cannot be opened.
        """
        if self.relay is not None and credential is not None:
            await credential.make_ready()
            return Authorization()
        secret = await reveal(self.about, credential)
        return Authorization(secrets=(secret.decode("utf-8"),)) if secret else Authorization()

    async def open(self, sent: Authorization, credential: ICredential | None) -> McpSession:
        """Return the session with the process. Start or replace the process if necessary.

        :raises NetworkError: if the process does not run; no request was sent.
        :raises CapabilityDenied: if the process needs a sandbox, and there is none.
        """
        environment, need = self.local.environment, self.about.credential
        more = {need.settings[VARIABLE]: "".join(sent.secrets)} if need and self.relay is None else {}
        enclosure = environment.enclosure(self.enclose)
        entry, listen = (enclosure.entry, enclosure.listen) if enclosure and self.relay else ((), None)
        launch = environment.launch((*entry, *self.local.argv), self.daemon, enclosure, more=more)
        its = credential if self.relay else None
        package = self.local.package
        return await self.shared.open(Start(launch, self.most_bytes, sent.secrets, self.relay, listen, its, package))

    def done(self, session: McpSession) -> None:
        """Release the session of one run."""
        self.shared.done(session)
