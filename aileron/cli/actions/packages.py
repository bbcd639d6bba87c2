"""C{install}, C{update} and C{uninstall} of connectors and actions, and C{aileron sync}: packages of both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import frozen

from aileron.addresses import read_origin
from aileron.cli._errors import FAILED, CommandError
from aileron.cli._output import block, heading, note, say, say_json, values
from aileron.cli._session import OperatorCommand, operator_command
from aileron.cli.actions.trusting import TrustRequest, confirm, refuse_unasked, trust
from aileron.errors import AileronError, InvalidRequest
from aileron.home import atomic_write, prepare, read_private
from aileron.values import digest_of_bytes

if TYPE_CHECKING:
    from aileron.client import Operator
    from aileron.connectors import RemoteRepository
    from aileron.packages import Fetched, Installed, Lock, Plan, Source

T = TypeVar("T")

_MOST_BYTES = 1024 * 1024
_LOCK = "packages.json"
_Files = Mapping[str, bytes | None]


@frozen
class _Packages:
    """The packages of one home, as the operator who has logged in changes them.

    :ivar lock: as the operator trusts it.
    :ivar force: whether objections are overruled.
    :ivar sure: do not ask.
    :ivar key: a publisher's, given by the operator; empty: none was.
    """

    command: OperatorCommand
    operator: Operator
    lock: Lock
    force: bool
    sure: bool
    key: str
    host_key: str
    identity: str

    async def install(self, sources: Sequence[str]) -> Sequence[Installed]:
        """Fetch packages, and what suites among them name, show what they change, ask, and write and trust them."""
        from aileron.packages import plan

        plans: list[Plan] = []
        todo = [(each, False) for each in sources]
        for text, is_member in todo:  # members of suites are added to it
            fetched = await self._fetch(text, by_suite=is_member)
            todo += [(member, True) for member in fetched.package.members]
            there, host_key = self._there(fetched.package.files), self._host_key(fetched.source)
            plans.append(plan(self.lock, fetched, there, self.key, host_key))
        self._agree(plans)
        gone = {place for each in plans for place in self._unchanged(each.before) if place not in each.after.files}
        files = {place: data for each in plans for place, data in each.fetched.package.files.items()}
        lock = self.lock
        for each in plans:
            lock = lock.replace(each.after.name, each.after)
        await self._put(files | dict.fromkeys(gone), lock)
        return [each.after for each in plans]

    async def update(self, names: Sequence[str]) -> Sequence[Installed]:
        """Install newer versions of packages, of all if none is named; C{NAME@VERSION} is that version."""
        sources = []
        for text in names or [each.name for each in self.lock.packages]:
            name, at, version = text.partition("@")
            sources.append(self._find(name).source + at + version)
        return await self.install(sources)

    async def uninstall(self, names: Sequence[str]) -> Sequence[Installed]:
        """Remove the files of packages that nobody has changed since, and take their trust back."""
        found = [self._find(name) for name in names]
        lock, gone = self.lock, {place for each in found for place in self._unchanged(each)}
        for each in found:
            lock = lock.replace(each.name, None)
            for place in sorted(each.files.keys() - gone):
                note("{place} was changed since it was installed, or is missing, and is left as it is.", place=place)
        if not self.sure:
            confirm(self.command.cli, f"Remove {', '.join(sorted(gone)) or 'no file'}? [y/N] ", "removed")
        await self._put(dict.fromkeys(gone), lock)
        return found

    async def sync(self) -> Collection[str]:
        """Fetch the files that are missing of packages, if they are what was installed; return what is still wrong."""
        missing: dict[str, bytes] = {}
        wrong = []
        for each in self.lock.packages:
            there = self._there(each.files)
            wrong += [f"{p} was changed." for p, data in there.items() if digest_of_bytes(data) != each.files[p]]
            if not (lacking := each.files.keys() - there.keys()):
                continue
            try:
                fetched = await self._fetch(each.source + f"@{each.version}" * bool(each.commit))
            except AileronError as error:
                wrong.append(f"{each.name} {each.version} cannot be fetched. {error.message}")
                continue
            if fetched.commit != each.commit:
                note("The tag {tag} of {name} was moved since it was installed.", tag=each.version, name=each.name)
            if fetched.package.digest != each.digest:
                wrong.append(f"{each.name} {each.version} has other contents now than when it was installed.")
                continue
            missing |= {place: fetched.package.files[place] for place in lacking}
        if missing:
            await self._put(missing, self.lock)
        return wrong

    async def _fetch(self, text: str, *, by_suite: bool = False) -> Fetched:
        """Fetch a package; what a suite names is no suite, and is in no private network that the operator did not name.

        :raises AileronError: it is not there, or is not read.
        """
        from aileron.packages import fetch, read_source

        source = read_source(text, self.lock.github)
        if by_suite and not source.url:
            raise InvalidRequest(f"The suite names {text}, which is not in Git. Nothing was installed.")
        private_network = not by_suite or text.startswith("github://")
        fetched = await fetch(source, lambda each: self._connect(each, private_network=private_network))
        if by_suite and fetched.package.members:
            raise InvalidRequest(f"The suite names {text}, which is a suite too. Nothing was installed.")
        return fetched

    def _find(self, name: str) -> Installed:
        found = self.lock.find(name)
        if found is None:
            names = ", ".join(each.name for each in self.lock.packages) or "none"
            raise CommandError(f"The package {name} is not installed. Installed: {names}.")
        return found

    def _there(self, places: Iterable[str]) -> Mapping[str, bytes]:
        found = {place: read_private(self.command.cli.home.root / place, _MOST_BYTES) for place in places}
        return {place: data for place, data in found.items() if data is not None}

    def _unchanged(self, package: Installed | None) -> Collection[str]:
        files = {} if package is None else package.files
        return [place for place, data in self._there(files).items() if digest_of_bytes(data) == files[place]]

    def _host_key(self, source: Source) -> str:
        known = (each.host_key for each in self.lock.packages if each.source == source.text)
        return (self.host_key or next(known, "")) if source.url.startswith("ssh://") else ""

    def _connect(self, source: Source, *, private_network: bool) -> RemoteRepository:
        from aileron.connectors import HostKey, RemoteRepository, SshTransport

        cli, running = self.command.cli, self.command.cli.running()
        transport = cli.transport([read_origin(url).port for url in (running.url, running.operator_url)])
        if not source.url.startswith("ssh://"):
            return RemoteRepository(source.url, transport, cli.reactor(), private_network)
        try:
            host_key = HostKey.read(self._host_key(source))
        except ValueError as error:
            raise CommandError(f"The key in --host-key {error}. Print it: ssh-keyscan -t ed25519 HOST") from None
        ssh = SshTransport(transport.opener, host_key)
        return RemoteRepository(source.url, ssh, cli.reactor(), private_network, self.identity)

    def _agree(self, plans: Sequence[Plan]) -> None:
        """Show what would change, and ask."""
        objections = [objection for each in plans for objection in each.objections]
        if not self.command.as_json:
            for each in plans:
                _show(each)
        if objections and not self.force:
            raise CommandError(f"Nothing was installed. {objections[0]}", "If this is what you want, add --force.")
        if self.sure and any(each.new_key and not each.given for each in plans):
            raise CommandError("Nothing was installed: the publisher's key is new. Pass it with --publisher-key.")
        if not self.sure:
            confirm(self.command.cli, "Install this? [y/N] ", "installed")

    async def _put(self, files: _Files, lock: Lock) -> None:
        """Write or remove files, and have exactly these trusted; where that is refused, all is put back."""
        cli = self.command.cli
        prepare(cli.home)
        items = (await self.operator.get("trust"))["items"]
        data = lock.encode()
        before = _write(cli.home.root, {**files, _LOCK: data})
        digests = frozenset(digest_of_bytes(each) for each in files.values() if each is not None)
        paths = tuple(cli.home.root / place for place, each in files.items() if each is not None)
        try:
            request = TrustRequest("action", paths=paths, digests=digests, sure=self.sure, as_json=self.command.as_json)
            await trust(cli, self.operator, request)
        except (CommandError, click.Abort):
            _write(cli.home.root, before)
            raise
        gone = {"/".join(Path(place).parts[-2:]) for place, each in files.items() if each is None}
        for item in items:
            if item["path"] and "/".join(Path(item["path"]).parts[-2:]) in gone and item["trusted"]:
                await self.operator.delete("trust", body={"kind": item["kind"], "name": item["name"]})
        word = {"kind": "config", "name": _LOCK, "digest": digest_of_bytes(data)}
        await self.operator.post("trust", body={"items": [word]})


def _write(root: Path, files: _Files) -> _Files:
    """Write each file whole, or remove it; what was there before."""
    before = {place: read_private(root / place, _MOST_BYTES) for place in files}
    for place, data in files.items():
        if data is None:
            (root / place).unlink(missing_ok=True)
        elif data != before[place]:
            atomic_write(root / place, data)
    return before


def _show(plan: Plan) -> None:
    package, after = plan.fetched.package, plan.after
    heading("{name} {version}", name=after.name, version=after.version)
    values(
        {
            "description": package.description,
            "installed": plan.before.version if plan.before else "no",
            "source": after.source,
            "commit": after.commit,
            "digest": after.digest,
            "signed by": after.publisher or "nobody",
        },
        "  ",
    )
    if plan.new_key:
        say("  You have not agreed to this key before. Compare it with the one that the publisher shows elsewhere.")
    if plan.new_key and not plan.given:
        say("  It comes with the package itself. It proves only that later versions are from the same publisher.")
    for objection in plan.objections:
        say("  Warning: {objection}", objection=objection)
    block("\n".join(plan.capabilities) or "What it can do does not change.", "  ")


async def _trusted_lock(command: OperatorCommand, operator: Operator, *, sure: bool) -> Lock:
    """Read C{packages.json}, and have the operator read it first where it is not trusted.

    :raises CommandError: it is not trusted, or was trusted and is missing.
    """
    from aileron.packages import read_lock

    cli = command.cli
    data = read_private(cli.home.packages, _MOST_BYTES)
    lock = read_lock(data)
    if data is not None and not sure:
        await trust(cli, operator, TrustRequest("config", (_LOCK,), as_json=command.as_json))
    items = (await operator.get("trust"))["items"]
    item = next((each for each in items if (each["kind"], each["name"]) == ("config", _LOCK)), None)
    if data is None and item is not None:
        raise CommandError(
            f"{_LOCK} is missing, although you trusted it. Restore it.",
            f"To begin without it: aileron config distrust {_LOCK}",
        )
    if data is not None and (item is None or item["state"] != "trusted" or item["digest"] != digest_of_bytes(data)):
        raise CommandError(f"{_LOCK} is not trusted as it is now.", "Review it: aileron config trust")
    return lock


def _run(command: OperatorCommand, work: Callable[[_Packages], Awaitable[T]], options: Mapping[str, Any]) -> T:
    """Log in, and do C{work} with the packages of the home."""
    sure = options["yes"]
    refuse_unasked(command.as_json, sure)
    identity = read_private(options["identity"].absolute(), _MOST_BYTES) if options["identity"] else None

    async def with_lock(operator: Operator) -> T:
        from aileron.packages import read_key

        key = read_key(options["publisher_key"]) if options["publisher_key"] else ""
        host_key, private_key = options["host_key"] or "", (identity or b"").decode("utf-8", "replace")
        lock = await _trusted_lock(command, operator, sure=sure)
        return await work(_Packages(command, operator, lock, options["force"], sure, key, host_key, private_key))

    return command.ask(with_lock)


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--identity", type=click.Path(path_type=Path), help="A private key file, for ssh://."),
        click.option(
            "--host-key", metavar="KEY", help="The server's public key, for ssh://, as ssh-keyscan prints it."
        ),
        click.option(
            "--publisher-key", metavar="KEY", help="The publisher's minisign public key, if it is new to you."
        ),
        click.option("--force", is_flag=True, help="Overrule warnings, such as that a version is older."),
        click.option("--yes", is_flag=True, help="Install and trust what is shown, without asking."),
    ):
        command = option(command)
    return command


def _tell(command: OperatorCommand, packages: Sequence[Installed], done: str) -> None:
    if command.as_json:
        say_json({"packages": [{"name": each.name, "version": each.version} for each in packages]})
    for each in () if command.as_json else packages:
        say("{name} {version} {done}.", name=each.name, version=each.version, done=done)


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@_options
@operator_command
def install(command: OperatorCommand, /, sources: tuple[str, ...], **options: Any) -> None:
    """Install packages of connectors and actions, and ask you to trust them.

    SOURCE is a directory, an archive (.zip, .tar, .tar.gz), github://OWNER/REPO[/PATH][@VERSION],
    https://HOST/REPO.git[//PATH][@VERSION], or the same with ssh://USER@HOST. The default is the newest version.
    """
    _tell(command, _run(command, lambda packages: packages.install(sources), options), "is installed")


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME[@VERSION]]...")
@_options
@operator_command
def update(command: OperatorCommand, /, names: tuple[str, ...], **options: Any) -> None:
    """Update installed packages, all if no name is given, and show what they can do that they could not before."""
    _tell(command, _run(command, lambda packages: packages.update(names), options), "is installed")


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@_options
@operator_command
def uninstall(command: OperatorCommand, /, names: tuple[str, ...], **options: Any) -> None:
    """Remove the unchanged files of packages, and take back trust in them."""
    _tell(command, _run(command, lambda packages: packages.uninstall(names), options), "is no longer installed")


@click.command()
@_options
@operator_command
@click.pass_context
def sync(context: click.Context, /, command: OperatorCommand, **options: Any) -> None:
    """Fetch files of installed packages that are missing, and report those that were changed."""
    wrong = _run(command, lambda packages: packages.sync(), options)
    for each in wrong:
        note("{problem}", problem=each)
    command.say({"problems": list(wrong)}, "Packages are as packages.json says." if not wrong else "Not all are.")
    if wrong:
        context.exit(FAILED)
