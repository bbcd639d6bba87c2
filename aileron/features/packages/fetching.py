"""Fetches packages from their sources, with the keys and credentials given by the operator."""

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
    """Fetches packages with the options given by the operator.

    :ivar lock: the trusted contents of C{packages.json}.
    :ivar publisher_key: the key that must have signed the packages; empty to require none.
    :ivar host_key: the host key of an SSH server; empty to use the stored one.
    :ivar identity: a file with a private key for SSH, or None.
    :ivar secret: a token, or a user name and password, for one HTTPS server; empty for none.
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
        """Fetch packages and the members of suites. If a package is named with and without a version, the version wins.

        :param failed: receives the error of each source that cannot be fetched, so that the others are still returned.
            If it is None, the first error is raised. An error of a suite's member is always raised.
        :raises AileronError: if a package cannot be fetched.
        :raises CommandError: if a package cannot be fetched, or comes from two sources or in two versions.
        """
        found: dict[str, Fetched] = {}
        origins = self.find_token_origins(sources)
        todo = [(each, False) for each in sources]
        for text, is_member in todo:  # grows by the members of suites
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
        """Fetch one package.

        :param origins: the origins to which the token may be sent.
        :param by_suite: whether a suite named the package. Then it must come from Git, must not be a suite, and only
            C{github://} may lead to a private network.
        :raises AileronError: if the package is missing or invalid, a suite must not name it, or it is not signed
            by the given publisher's key. That key is not required of a suite's member.
        :raises CommandError: if the repository cannot be reached.
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
        """Return the origin of the operator's HTTPS sources, to which the token may be sent; empty without a token.

        :raises CommandError: if there is a token and the sources have several origins.
        :raises InvalidRequest: if a source is malformed.
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
        """Return the host key of a source's SSH server: the operator's, or else the stored one.

        The key is empty if none is known or the source does not use SSH.
        """
        every = (*self.lock.packages, *self.lock.uninstalled)
        known = (each.host_key for each in every if each.source == source.text)
        return (self.host_key or next(known, "")) if source.url.startswith("ssh://") else ""


def refuse_missing(lock: Lock, sources: Iterable[str]) -> None:
    """Check that sources are well-formed and that local ones exist.

    :raises InvalidRequest: if a source is malformed.
    :raises CommandError: if a local source does not exist.
    """
    from ._source import read_source

    for text in sources:
        source = read_source(text, lock.github)
        if not source.url and not Path(source.path).exists():
            raise CommandError(f"There is no {source.path}. Nothing was installed.")
