"""Compares a fetched package with the installed version: files, capabilities and signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from attrs import frozen

from aileron.actions import ManifestFault, parse
from aileron.base.json import digest_of_bytes
from aileron.base.load_error import LoadError
from aileron.base.text import visible
from aileron.connectors import KindTable, Spec
from aileron.connectors import read_file as read_connector
from aileron.model.actions import Action
from aileron.model.connectors import READ
from aileron.model.errors import InvalidRequest

from ._lock import Installed, Lock
from ._source import Fetched, version_key

_SETTINGS = tuple(
    "private_network network sandbox directory environment inherited repository branches tags url command".split()
)
"""Settings with which a connector can do more."""


@frozen
class PackageChange:
    """The change from the installed version of a package to a fetched one.

    :ivar before: the installed version, or None if the package is not installed.
    :ivar removed: the version that was uninstalled, or None if the package is installed or never was.
    :ivar after: the version to install.
    :ivar files: the contents to write, by path in the home; None for a file to remove.
    :ivar names: the paths of the files to write, by kind and name of the action or connector in each file.
    :ivar capabilities: the added and removed capabilities, as lines that begin with a plus or a minus.
    :ivar objections: sentences with the reasons why C{--force} is needed.
    :ivar new_key: the publisher's key if the operator has not accepted it for this source yet; empty otherwise.
    """

    before: Installed | None
    removed: Installed | None
    after: Installed
    fetched: Fetched
    files: Mapping[str, bytes | None]
    names: Mapping[tuple[str, str], str]
    capabilities: tuple[str, ...]
    objections: tuple[str, ...]
    new_key: str


def compare(
    lock: Lock,
    fetched: Fetched,
    there: Mapping[str, bytes],
    *,
    host_key: str,
    taken: Mapping[tuple[str, str], str],
    kinds: KindTable,
) -> PackageChange:
    """Compare a fetched package with the installed version. Nothing is written.

    :param there: the existing files of the home that would be replaced, by path in the home.
    :param host_key: the host key of the source's SSH server; empty if there is none.
    :param taken: the paths of the home's files, by kind and name of the action or connector in each file.
    :param kinds: the known kinds of connector.
    :raises InvalidRequest: if a file has errors or belongs to another package, or an action or connector has the name
        of another one.
    """
    package = fetched.package
    before, removed = lock.find(package.name), lock.find_uninstalled(package.name)
    files = {place: digest_of_bytes(data) for place, data in package.files.items()}
    for other in lock.packages:
        if shared := sorted(files.keys() & other.files.keys()) if other.name != package.name else []:
            raise InvalidRequest(f"{shared[0]} is part of the package {other.name}. Nothing was installed.")
    after = Installed(
        name=package.name,
        version=package.version,
        source=fetched.source.text,
        commit=fetched.commit,
        digest=package.digest,
        publisher=fetched.publisher,
        host_key=host_key,
        files=files,
        highest=_find_highest(before or removed, package.version),
    )
    old = {} if before is None else {place: there[place] for place in before.find_unchanged(there)}
    names = _names(package.files, kinds)
    for kind, name in names:
        if (other_place := taken.get((kind, name))) not in {None, *package.files, *old}:
            raise InvalidRequest(f"The {kind} {name} is in {other_place} already. Nothing was installed.")
    return PackageChange(
        before,
        removed,
        after,
        fetched,
        {**dict.fromkeys(old), **package.files},
        names,
        tuple(_difference(old, package.files, kinds)),
        (
            *_renamings(lock, after),
            *_objections(before or removed, before is None, after),
            *_conflicts(there, old, package.files),
        ),
        "" if after.consent in {"", *lock.publishers} else after.publisher,
    )


def _find_highest(before: Installed | None, version: str) -> str:
    """Return the highest version that was ever installed if it is higher than C{version}, else an empty text.

    :param before: the installed or uninstalled version, or None if there is none.
    """
    known = () if before is None else (before.version, before.highest or before.version)
    highest = max((*known, version), key=version_key)
    return highest if version_key(version) < version_key(highest) else ""


def _names(files: Mapping[str, bytes], kinds: KindTable) -> Mapping[tuple[str, str], str]:
    """Return the paths of files, by kind and name of the action or connector in each file.

    :raises InvalidRequest: if a file has errors, or two files define the same name.
    """
    found: dict[tuple[str, str], str] = {}
    for place in sorted(files):
        kind, name = named = _name_of(_read(place, files[place], kinds))
        if named in found:
            raise InvalidRequest(f"The {kind} {name} is in {found[named]} and {place}. Nothing was installed.")
        found[named] = place
    return found


def _renamings(lock: Lock, after: Installed) -> Iterator[str]:
    """Yield an objection for each package that came from the same source under another name.

    An objection is a reason why C{--force} is needed. Uninstalled packages are ignored if the new name is already
    installed from that source.
    """
    here = lock.find(after.name)
    is_agreed = here is not None and here.source == after.source
    for other in lock.packages if is_agreed else (*lock.packages, *lock.uninstalled):
        if other.source == after.source and other.name != after.name:
            yield f"{other.source} had the package {other.name} before. Now it has {after.name}."


def _objections(before: Installed | None, is_removed: bool, after: Installed) -> Iterator[str]:
    """Yield an objection (a reason why C{--force} is needed) for each change that an earlier approval does not cover.

    :param before: the installed or uninstalled version, or None if there is none.
    :param is_removed: whether the earlier version was uninstalled.
    """
    if before is None:
        return
    is_installed, version = "is installed", f"installed version {before.version}"
    signed, key = "The installed version is signed", "key of the installed version"
    if is_removed:
        is_installed, version = "was installed", f"version {before.version} that was uninstalled"
        signed, key = f"Version {before.version}, which was uninstalled, was signed", f"key of {version}"
    if before.source != after.source and (not after.publisher or before.publisher != after.publisher):
        yield f"{before.name} {is_installed} from {before.source}, not from {after.source}."
    if version_key(after.version) < version_key(before.version):
        yield f"Version {after.version} is older than the {version}."
    if before.commit and before.version == after.version and before.commit != after.commit:
        yield f"The tag {after.version} was moved from commit {before.commit} to {after.commit}."
    if before.publisher and not after.publisher:
        yield f"{after.name} {after.version} is not signed. {signed} by {before.publisher}."
    elif before.publisher != after.publisher and before.publisher:
        yield f"{after.name} {after.version} is not signed by the {key}, {before.publisher}."


def _conflicts(there: Mapping[str, bytes], old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[str]:
    for place in sorted(new.keys() & there.keys() - old.keys()):
        if there[place] != new[place]:
            yield f"{place} exists with other contents. They would be lost."


def _difference(old: Mapping[str, bytes], new: Mapping[str, bytes], kinds: KindTable) -> Iterator[str]:
    before = set[str]()
    for place, data in old.items():
        with suppress(InvalidRequest):  # a file that only an earlier release could read
            before.update(_capabilities(place, data, kinds))
    after = {line for each in new.items() for line in _capabilities(*each, kinds)}
    yield from (f"+ {visible(line)}" for line in sorted(after - before))
    yield from (f"- {visible(line)}" for line in sorted(before - after))


def _capabilities(place: str, data: bytes, kinds: KindTable) -> Iterator[str]:
    """Yield the capabilities that a file gives to agents, such as its operations and hosts, one per line.

    :raises InvalidRequest: if the file has errors.
    """
    found = _read(place, data, kinds)
    yield from _of_action(found) if isinstance(found, Action) else _of_connector(found)


def _read(place: str, data: bytes, kinds: KindTable) -> Action | Spec:
    if place.startswith("actions/"):
        try:
            return parse(data, place)
        except ManifestFault as fault:
            raise _faulty(fault.errors) from None
    reading = read_connector(data, place, "local", kinds)
    if reading.spec is None:
        raise _faulty(reading.problems)
    spec: Spec = reading.spec
    return spec


def _name_of(found: Action | Spec) -> tuple[str, str]:
    return ("action", found.name) if isinstance(found, Action) else ("connector", found.description.name)


def _of_connector(spec: Spec) -> Iterator[str]:
    about, operations = spec.description, dict[str, object](spec.operations)
    for name in _SETTINGS:
        if value := getattr(spec, name, None):
            yield f"{about.name}: {name.replace('_', ' ')}: {value}"
    yield from (f"{about.name}: connects to {host}" for host in about.hosts)
    if about.bindable:
        yield f"{about.name}: a binding can choose where it connects to"
    if need := about.credential:
        yield f"{about.name}: needs a credential, {need.kind}, in {need.place}"
        yield from (f"{about.name}: credential setting {name}: {value}" for name, value in need.settings.items())
    for each in about.operations.values():
        kind = f"{each.effect}, destructive" if each.destructive and each.effect != READ else each.effect
        scopes = f", with {', '.join(each.scopes)}" if each.scopes else ""
        program = getattr(operations.get(each.name), "program", "")
        yield f"{about.name}: {each.name}, {kind}{scopes}{program and f', runs {program}'}"


def _of_action(action: Action) -> Iterator[str]:
    yield f"action {action.name}: {'asks for' if action.approval.gated else 'runs without'} your approval"
    yield from (
        f"action {action.name}: may use {name} of {pin.name}" for pin in action.connectors for name in pin.capabilities
    )
    for cap in action.limits:
        scope = f" for each {cap.argument}" if cap.argument else " in each session" if cap.per_session else ""
        yield f"action {action.name}: at most {cap.most} in {cap.seconds:g} seconds{scope}"


def _faulty(faults: tuple[LoadError, ...]) -> InvalidRequest:
    first = faults[0]
    return InvalidRequest(f"{first.file}:{first.line or 1}: {first.message}. Nothing was installed.")
