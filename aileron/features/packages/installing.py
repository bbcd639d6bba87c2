"""The commands C{aileron package install}, C{update}, C{uninstall} and C{sync}."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import field, frozen

from aileron.base.json import digest_of_bytes
from aileron.cli.actions.copying import replace_files
from aileron.cli.actions.trust_display import Item
from aileron.cli.actions.trusting import TrustRequest, as_values, confirm, refuse_unasked, trust
from aileron.cli.errors import FAILED, CommandError
from aileron.cli.output import block, heading, note, say, say_json, values
from aileron.cli.session import OperatorCommand, operator_command
from aileron.home.paths import prepare
from aileron.home.private_files import read_private
from aileron.model.errors import AileronError

from .fetching import PackageFetcher, refuse_missing

if TYPE_CHECKING:
    from aileron.client import Operator

    from ._compare import PackageChange
    from ._lock import Installed, Lock
    from ._source import Fetched

T = TypeVar("T")

_MOST_BYTES = 1024 * 1024
_LOCK = "packages.json"


@frozen
class _Packages:
    """Changes the packages of one home for the logged-in operator.

    :ivar lock: the trusted contents of C{packages.json}.
    :ivar yes: whether to skip the question for confirmation.
    :ivar force: whether to ignore objections.
    :ivar left_out: the names of packages that could not be fetched while others were updated.
    """

    command: OperatorCommand
    operator: Operator
    lock: Lock
    yes: bool
    force: bool = False
    fetcher: PackageFetcher = field(kw_only=True)
    left_out: list[str] = field(factory=list, init=False)

    async def install(self, sources: Sequence[str]) -> Sequence[Installed]:
        """Fetch and install packages and the members of suites. Return the installed packages.

        :raises CommandError: if a package cannot be fetched, comes from two sources, or the operator declines.
        :raises AileronError: if a package is missing or invalid.
        """
        return await self._install(await self.fetcher.fetch_all(sources))

    async def _install(self, packages: Iterable[Fetched]) -> Sequence[Installed]:
        """Show the changes, ask for confirmation, then write and trust the files. Return the installed packages.

        :raises CommandError: if the operator declines, there are objections, or another program has changed a file.
        :raises InvalidRequest: if a package has errors, or a name in it is taken.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        from ._compare import compare

        items = (await self.operator.get("trust"))["items"]
        taken = {
            (each["kind"], each["name"]): "/".join(Path(each["path"]).parts[-2:]) for each in items if each["path"]
        }
        lock, changes = self.lock, []
        seen, files = dict[str, bytes](), dict[str, bytes | None]()
        for fetched in packages:
            before = self.lock.find(fetched.package.name)
            there = self._there({*fetched.package.files, *(before.files if before else ())})
            change = compare(
                lock,
                fetched,
                there,
                host_key=self.fetcher.known_host_key(fetched.source),
                taken=taken,
                kinds=self.command.cli.kinds,
            )
            changes.append(change)
            lock = lock.replace(change.after.name, change.after)
            taken |= change.names
            seen |= there
            files |= change.files
        self._agree(changes)
        await self._write_and_trust(
            files, seen, lock, frozenset[tuple[str, str]]().union(*(each.names for each in changes))
        )
        return [each.after for each in changes]

    async def update(self, names: Sequence[str]) -> Sequence[Installed]:
        """Install the newest versions of the named packages, or of all if C{names} is empty. Return these packages.

        C{NAME@VERSION} installs that version. A package that cannot be fetched is skipped with a note, except a suite,
        which determines the versions of its members.

        :raises AileronError: if no package, or a suite, cannot be fetched.
        :raises CommandError: if a named package is not installed, or the operator declines.
        """
        parts = [each.partition("@") for each in names or [each.name for each in self.lock.packages]]
        if not parts:
            note("No packages are installed.")
            return ()
        sources = {_find(self.lock, name).source + at + version: name for name, at, version in parts}
        failed: dict[str, AileronError | CommandError] = {}
        packages = await self.fetcher.fetch_all(list(sources), failed)
        fetched = {each.package.name for each in packages}
        for source, error in failed.items():
            before = _find(self.lock, sources[source])
            if not packages or not before.files:
                raise error
            if before.name in fetched:  # fetched at the version that a suite names
                continue
            _tell_left_out(before, error)
            self.left_out.append(before.name)
        return await self._install(packages)

    async def uninstall(self, names: Sequence[str]) -> Sequence[Installed]:
        """Delete the unchanged files of packages and revoke trust in them. Return the uninstalled packages.

        :raises CommandError: if a package is not installed, or the operator declines.
        """
        found, lock, gone = [_find(self.lock, name) for name in names], self.lock, dict[str, bytes]()
        for each in found:
            lock, there = lock.replace(each.name, None), self._there(each.files)
            unchanged = each.find_unchanged(there)
            gone |= {place: there[place] for place in unchanged}
            for place in sorted(there.keys() - unchanged):
                note("{place} was changed since it was installed, and is left as it is.", place=place)
        if not self.yes:
            files = ", ".join(sorted(gone)) or "none"
            confirm(self.command.cli, f"Files to remove: {files}. Uninstall? [y/N] ", "removed")
        await self._write_and_trust(dict.fromkeys(gone), gone, lock)
        return found

    async def sync(self) -> Sequence[str]:
        """Restore missing files of packages whose source is unchanged. Return the remaining problems as sentences.

        :raises CommandError: if there is a token and the sources have several origins, or a file cannot be written.
        :raises InvalidRequest: if a source is malformed.
        """
        missing, wrong = dict[str, bytes | None](), list[str]()
        packages = [(each, self._there(each.files)) for each in self.lock.packages]
        incomplete = [each.source for each, there in packages if not each.files.keys() <= there.keys()]
        origins = self.fetcher.find_token_origins(incomplete)
        for each, there in packages:
            wrong += [f"{place} was changed." for place in sorted(there.keys() - each.find_unchanged(there))]
            if each.files.keys() <= there.keys():
                continue
            try:
                fetched = await self.fetcher.fetch(each.source + f"@{each.version}" * bool(each.commit), origins)
            except (AileronError, CommandError) as error:
                wrong.append(f"{each.name} {each.version} cannot be fetched. {error.message}")
                continue
            if fetched.commit != each.commit:
                note("The tag {tag} of {name} was moved since it was installed.", tag=each.version, name=each.name)
            if fetched.package.digest == each.digest:
                missing |= {place: data for place, data in fetched.package.files.items() if place not in there}
            else:
                wrong.append(f"{each.name} {each.version} has other contents now than when it was installed.")
        if missing:
            await self._write_and_trust(missing, {}, self.lock)
        return wrong

    def _there(self, places: Iterable[str]) -> Mapping[str, bytes]:
        found = {place: read_private(self.command.cli.home.root / place, _MOST_BYTES) for place in places}
        return {place: data for place, data in found.items() if data is not None}

    def _agree(self, changes: Sequence[PackageChange]) -> None:
        """Show the changes and ask the operator for confirmation.

        :raises CommandError: if the operator declines, there are objections without C{--force}, or C{--yes} was given
            and a publisher's key is new.
        """
        for each in () if self.command.as_json else changes:
            _show(each, self.fetcher.publisher_key)
        objections = [objection for each in changes for objection in each.objections]
        if objections and not self.force:
            raise CommandError(f"Nothing was installed. {objections[0]}", "If this is what you want, add --force.")
        if self.yes and any(each.new_key not in ("", self.fetcher.publisher_key) for each in changes):
            raise CommandError("Nothing was installed: the publisher's key is new. Pass it with --publisher-key.")
        if not self.yes:
            confirm(self.command.cli, "Install this? [y/N] ", "installed")

    async def _write_and_trust(
        self,
        files: Mapping[str, bytes | None],
        seen: Mapping[str, bytes],
        lock: Lock,
        names: Collection[tuple[str, str]] = (),
    ) -> None:
        """Write or remove files, write the lock, and trust the written files. On failure, restore files and trust.

        Trust in removed files is revoked first, so that no trust remains for a removed file if the process is killed.

        :param seen: the existing files when the operator was asked, by path.
        :param names: the kinds and names of the actions and connectors to write. Trust in these replaces earlier trust.
        :raises CommandError: if another program has changed a file since, or a directory is a symbolic link.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        from ._lock import read_lock

        home, data = self.command.cli.home, lock.encode()
        if linked := [each for each in (home.actions, home.connectors) if each.is_symlink()]:
            raise CommandError(f"{linked[0]} is a symbolic link. Nothing was changed.")
        prepare(home)
        before = self._there({*files, _LOCK})
        changed = [place for place in files if before.get(place) != seen.get(place)]
        if read_lock(before.get(_LOCK)) != self.lock:
            changed.append(_LOCK)
        if changed:
            raise CommandError(f"{changed[0]} was changed by another program meanwhile. Nothing was changed.")
        written = {home.root / place: each for place, each in files.items() if each is not None}
        request = TrustRequest(
            "action",
            paths=tuple(written),
            digests=frozenset(map(digest_of_bytes, written.values())),
            unshown=({"kind": "config", "name": _LOCK, "digest": digest_of_bytes(data)},),
            sure=self.yes,
            as_json=self.command.as_json,
        )
        after, gone = {**files, _LOCK: data}, await self._find_gone(lock, names)
        try:
            for item in gone:
                await self.operator.delete("trust", body={"kind": item["kind"], "name": item["name"]})
            replace_files(home.root, before, after)
            await trust(self.command.cli, self.operator, request)
        except BaseException:
            replace_files(home.root, after, {place: before.get(place) for place in after})
            if there := [item for item in gone if item["state"] == "trusted"]:
                await self.operator.post("trust", body={"items": as_values(there)})
            raise

    async def _find_gone(self, lock: Lock, names: Collection[tuple[str, str]]) -> Sequence[Item]:
        """Return the trusted files that belong to installed packages now, but to no package of C{lock} any more.

        The files need not exist.

        :param names: kinds and names of actions and connectors to skip.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        gone, items = self.lock.digests - lock.digests, (await self.operator.get("trust"))["items"]
        trusted = [item for item in items if item["trusted"] and item["trusted"]["digest"] in gone]
        return [item for item in trusted if (item["kind"], item["name"]) not in names]


def _tell_left_out(package: Installed, error: AileronError | CommandError) -> None:
    why = error.message.removesuffix(" Nothing was installed.")
    note("{name} stays at version {version}. {why}", name=package.name, version=package.version, why=why)
    if isinstance(error, CommandError) and error.hint:
        note("  {hint}", hint=error.hint)


def _show(change: PackageChange, given_key: str) -> None:
    after = change.after
    heading("{name} {version}", name=after.name, version=after.version)
    facts = {
        "description": change.fetched.package.description,
        "installed": change.before.version if change.before else "no",
        "uninstalled": change.removed.version if change.removed else "",
        "highest": after.highest and f"{after.highest} was installed before; this version is older",
        "source": after.source,
        "commit": after.commit,
        "digest": after.digest,
        "signed by": after.publisher or "nobody",
    }
    values({name: fact for name, fact in facts.items() if fact}, "  ")
    if change.new_key:
        say("  This key is new for this source. Compare it with the key that the publisher shows somewhere else.")
    if change.new_key not in ("", given_key):
        say("  It comes with the package. It proves only that later versions are from the same publisher.")
    for objection in change.objections:
        say("  Warning: {objection}", objection=objection)
    block("\n".join(change.capabilities) or "No change in what it can do.", "  ")


async def _trusted_lock(command: OperatorCommand, operator: Operator) -> Lock:
    """Return the contents of C{packages.json}, which must be trusted.

    :raises CommandError: if the file is not trusted, or was trusted and is missing.
    :raises InvalidRequest: if the file has errors.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    from ._lock import read_lock

    data = read_private(command.cli.home.root / _LOCK, _MOST_BYTES)
    lock = read_lock(data)
    words = [each["trusted"] for each in (await operator.get("trust"))["items"] if each["name"] == _LOCK]
    if data is None and words:
        raise CommandError(
            f"{_LOCK} is missing, although you trusted it. Nothing was changed. Restore the file.",
            f"To start without it: aileron config distrust {_LOCK}",
        )
    if data is not None and [word and word["digest"] for word in words] != [digest_of_bytes(data)]:
        raise CommandError(f"{_LOCK} is not trusted as it is now.", "Review it: aileron config trust")
    return lock


def _find(lock: Lock, name: str) -> Installed:
    """Return the installed package of a name.

    :raises CommandError: if the package is not installed.
    """
    found = lock.find(name)
    if found is None:
        names = ", ".join(each.name for each in lock.packages) or "none"
        raise CommandError(f"The package {name} is not installed. Nothing was changed.", f"Installed packages: {names}")
    return found


def _run(
    command: OperatorCommand,
    work: Callable[[_Packages], Awaitable[T]],
    given: Mapping[str, Any],
    installed: Sequence[str] = (),
    sources: Sequence[str] = (),
) -> T:
    """Log in, call C{work} with the packages of the home, and return its result.

    :param given: the values of the command's options.
    :param installed: the names of packages that must be installed.
    :param sources: sources that must be well-formed, and exist if local.
    :raises CommandError: if C{packages.json} is not trusted, a package is not installed, or a local source is missing.
    :raises InvalidRequest: if the publisher's key or a source is malformed.
    :raises UsageError: if JSON is asked for without C{--yes}.
    :raises VaultLocked: if the daemon's vault is not unlocked.
    :raises WrongPassphrase: if the passphrase is wrong.
    """
    from ._minisign import read_key

    refuse_unasked(command.as_json, given["yes"])
    own = {name: given[name] for name in ("yes", "force") if name in given}
    more = {name: value for name, value in given.items() if name not in ("yes", "force", "secret_fd")}
    if more.get("publisher_key"):
        more["publisher_key"] = read_key(more["publisher_key"])

    async def with_lock(operator: Operator) -> T:
        lock, descriptor = await _trusted_lock(command, operator), given.get("secret_fd")
        secret = "" if descriptor is None else command.cli.secret("Token", descriptor)
        fetcher = PackageFetcher(command.cli, lock, secret=secret, **more)
        return await work(_Packages(command, operator, lock, **own, fetcher=fetcher))

    async def look(operator: Operator) -> None:
        lock = await _trusted_lock(command, operator)
        for name in installed:
            _find(lock, name)
        refuse_missing(lock, sources)

    return command.ask(with_lock, look)


_YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation. What is shown is trusted.")
_FETCHING = (
    click.option("--identity", type=click.Path(exists=True, path_type=Path), help="A private key file, for `ssh://`."),
    click.option(
        "--host-key",
        default="",
        help="The server's public key, for `ssh://`, as `ssh-keyscan` prints it. It is remembered.",
    ),
    click.option(
        "--secret-fd",
        type=click.IntRange(min=0),
        metavar="N",
        help="Read a token, or USER:PASSWORD, for https:// from this inherited file descriptor.",
    ),
    click.option("--publisher-key", default="", help="Require a signature by this minisign public key."),
)
_FORCE = click.option("--force", is_flag=True, help="Overrule warnings, such as that a version is older.")
_INSTALLING = (*_FETCHING, _FORCE, _YES)
_Decorator = Callable[[Callable[..., None]], Callable[..., None]]
_Work = Callable[[_Packages, Sequence[str]], "Awaitable[Sequence[Installed]]"]


def _options(*options: _Decorator) -> _Decorator:
    return lambda command: reduce(lambda made, option: option(made), options, command)


def _make_command(work: _Work, *options: _Decorator, metavar: str, done: str, about: str) -> click.Command:
    @click.command(work.__name__, help=about)
    @click.argument("names", nargs=-1, required=not metavar.startswith("["), metavar=metavar)
    @_options(*options)
    @operator_command
    def run(command: OperatorCommand, /, names: tuple[str, ...], **given: Any) -> None:
        async def do(packages: _Packages) -> tuple[Sequence[Installed], Sequence[str]]:
            return await work(packages, names), packages.left_out

        installs = work is _Packages.install
        installed = () if installs else [name.partition("@")[0] for name in names]
        found, left_out = _run(command, do, given, installed, names if installs else ())
        if command.as_json:
            say_json({"packages": [{"name": each.name, "version": each.version} for each in found]})
        for each in () if command.as_json else found:
            say("{name} {version} {done}.", name=each.name, version=each.version, done=done)
        if left_out:
            hint = f"The reasons are above. To try again: aileron package update {' '.join(left_out)}"
            raise CommandError(f"Not updated: {', '.join(left_out)}.", hint)

    return run


install = _make_command(
    _Packages.install,
    *_INSTALLING,
    metavar="SOURCE...",
    done="is installed",
    about="""Install packages of connectors and actions, and ask you to trust them.

    SOURCE is a directory, an archive (.zip, .tar or .tar.gz), or in Git: github://OWNER/REPO[/PATH][@VERSION] at
    GitHub, https://HOST/REPO.git[//PATH][@VERSION] elsewhere, or the same with ssh://USER@HOST. The default is the
    newest version.
    """,
)
update = _make_command(
    _Packages.update,
    *_INSTALLING,
    metavar="[NAME[@VERSION]]...",
    done="is installed",
    about="Update the named packages, or all, and show what each new version can do that the old one could not.",
)
uninstall = _make_command(
    _Packages.uninstall,
    _YES,
    metavar="NAME...",
    done="is no longer installed",
    about="Remove the unchanged files of packages, and revoke trust in them.",
)


@click.command()
@_options(*_FETCHING, _YES)
@operator_command
def sync(command: OperatorCommand, /, **given: Any) -> None:
    """Fetch missing files of the packages in packages.json, and report files that were changed."""
    wrong = _run(command, lambda packages: packages.sync(), given)
    for each in wrong:
        note("{problem}", problem=each)
    command.say(
        {"problems": list(wrong)},
        "Some packages do not match packages.json." if wrong else "All packages match packages.json.",
    )
    if wrong:
        click.get_current_context().exit(FAILED)
