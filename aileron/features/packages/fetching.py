"""Fetches packages from their sources, with the keys and credentials that the operator gave."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from aileron.base.addresses import read_origin
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.home.private_files import read_private
from aileron.model.errors import AileronError, ExternalApiError, InvalidRequest, NetworkError

if TYPE_CHECKING:
    from aileron.connectors import RemoteRepository

    from ._lock import Lock
    from ._source import Fetched, Source

_MOST_KEY_BYTES = 1024 * 1024


@frozen
class PackageFetcher:
    """Fetches packages; everything but the lock is given by the operator.

    :ivar lock: as the operator trusts it.
    :ivar publisher_key: that must have signed the packages.
    :ivar host_key: of an SSH server.
    :ivar identity: a file with a private key for SSH.
    :ivar secret: for one HTTPS server: a token, or a user and a password.
    """

    cli: CliContext
    lock: Lock
    publisher_key: str = ""
    host_key: str = ""
    identity: Path | None = None
    secret: str = field(default="", repr=False)

    async def fetch_all(
        self, sources: Sequence[str], failed: dict[str, AileronError | CommandError] | None = None
    ) -> Collection[Fetched]:
        """Fetch packages and the members of suites; the one that names a version decides which it is.

        :param failed: takes why a source was not read, by the source, where the others are wanted all the same.
        :raises AileronError: one is not read, none is, or they disagree.
        """
        found: dict[str, Fetched] = {}
        origins = self.find_token_origins(sources)
        todo = [(each, False) for each in sources]
        for text, is_member in todo:  # members of suites are added to it
            try:
                fetched = await self.fetch(text, origins, by_suite=is_member)
            except (AileronError, CommandError) as error:
                if failed is None or is_member:
                    raise
                failed[text] = error
                continue
            todo += [(member, True) for member in fetched.package.members]
            name = fetched.package.name
            other = found.setdefault(name, fetched)
            versions = {other.source.version, fetched.source.version} - {""}
            if other.source.text != fetched.source.text or len(versions) > 1:
                raise CommandError(f"The package {name} comes from two sources or versions. Nothing was installed.")
            if fetched.source.version:
                found[name] = fetched
        return found.values()

    async def fetch(self, text: str, origins: Collection[str] = (), *, by_suite: bool = False) -> Fetched:
        """Fetch a package; a suite must not name other suites, or private hosts that the operator did not name.

        :param origins: that are sent the token.
        :raises AileronError: it is not there, is not read, or is not signed by the key that the operator gave.
        """
        from ._source import fetch, read_source

        source = read_source(text, self.lock.github)
        private_network = not by_suite or text.startswith("github://")
        if by_suite and not source.url:
            raise InvalidRequest(f"The suite names {text}, which is not in Git. Nothing was installed.")
        keys = [*self.lock.keys, *filter(None, [self.publisher_key])]
        repository = self._connect(source, origins, private_network=private_network) if source.url else None
        try:
            fetched = await fetch(source, repository, keys)
        except (ExternalApiError, NetworkError) as error:
            raise CommandError(
                f"{error.message} Nothing was installed.",
                "Check the address. Private repositories need --secret-fd, or ssh:// and --identity.",
            ) from None
        if by_suite and fetched.package.members:
            raise InvalidRequest(f"The suite names {text}, which is a suite too. Nothing was installed.")
        if not by_suite and self.publisher_key not in ("", fetched.publisher):
            raise InvalidRequest(f"{text} is not signed by the key of --publisher-key. Nothing was installed.")
        return fetched

    def find_token_origins(self, sources: Iterable[str]) -> Collection[str]:
        """Return the origin that is sent the token, if there is one: that of the sources that the operator named.

        :raises CommandError: the sources have several origins.
        """
        from ._source import read_source

        urls = (read_source(each, self.lock.github).url for each in sources)
        origins = {read_origin(url).url for url in urls if url.startswith("https://")}
        if self.secret and len(origins) > 1:
            hosts = " and ".join(sorted(origins))
            raise CommandError(
                f"The token of --secret-fd would be sent to {hosts}. Nothing was installed.",
                "Name packages of one host.",
            )
        return origins if self.secret else ()

    def _connect(self, source: Source, origins: Collection[str], *, private_network: bool) -> RemoteRepository:
        from aileron.connectors import HostKey, RemoteRepository, SshTransport

        cli, running = self.cli, self.cli.running()
        transport = cli.transport([read_origin(url).port for url in (running.url, running.operator_url)])
        if not source.url.startswith("ssh://"):
            secret = self.secret if read_origin(source.url).url in origins else ""
            return RemoteRepository(source.url, transport, cli.reactor(), private_network, secret=secret)
        try:
            host_key = HostKey.read(self.known_host_key(source))
        except ValueError as error:
            raise CommandError(
                f"The option --host-key {error}. Nothing was installed.",
                "Print the server's key, and compare it with the published one: ssh-keyscan -t ed25519 HOST",
            ) from None
        ssh = SshTransport(transport.opener, host_key)
        key = (read_private(self.identity.absolute(), _MOST_KEY_BYTES) if self.identity else None) or b""
        return RemoteRepository(source.url, ssh, cli.reactor(), private_network, key.decode("utf-8", "replace"))

    def known_host_key(self, source: Source) -> str:
        """Return the host key of an SSH server: the one that the operator gave, or the stored one."""
        every = (*self.lock.packages, *self.lock.uninstalled)
        known = (each.host_key for each in every if each.source == source.text)
        return (self.host_key or next(known, "")) if source.url.startswith("ssh://") else ""


def refuse_missing(lock: Lock, sources: Iterable[str]) -> None:
    """Refuse malformed sources, and sources on this machine that do not exist.

    :raises CommandError: a source does not exist.
    """
    from ._source import read_source

    for text in sources:
        source = read_source(text, lock.github)
        if not source.url and not Path(source.path).exists():
            raise CommandError(f"There is no {source.path}. Nothing was installed.")
