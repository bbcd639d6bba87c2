"""The registry of connectors by name: shipped, from plugin packages, and from the user's directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import define, field, frozen
from zope.interface import implementer

from aileron.base.json import digest_of_bytes
from aileron.base.load_error import LoadError
from aileron.model.connectors import ConnectorDescription
from aileron.model.interfaces.connectors import IConnector, IConnectors
from aileron.model.trust import Candidate, TrustKind

from ._files import BOUNDARY, LOCAL, ConnectorFile, all_files, of_directory, one_file, shipped
from ._foreign import LoadedKinds, load_kinds
from ._plugins import FoundPlugin, of_package
from ._schema import read_connector
from .kind import NotMade, Workshop
from .kinds import KindTable

_SHIPPED = KindTable()


def check(path: Path, note: Callable[[str], None] = lambda _: None, kinds: KindTable = _SHIPPED) -> list[LoadError]:
    """Return all faults of a connector file of the user's, or an empty list if it can be loaded.

    :param note: called with each check that could not be made.
    """
    found = one_file(str(path))
    reading = read_connector(found, kinds)
    if reading.kind is None:
        return [*reading.problems]
    need = reading.spec.description.credential
    if need and need.readers:
        note(f"Credential: {need.readers}")
    return [*reading.kind.check(found, reading.spec, note)]


def read_descriptions(
    directory: Path, kinds: KindTable = _SHIPPED
) -> Iterator[tuple[ConnectorDescription, Mapping[str, Sequence[str]]]]:
    """Yield the description of each valid connector file, shipped or in C{directory}, with the inputs by operation."""
    for file in all_files(directory):
        spec = read_connector(file, kinds).spec
        if spec is not None:
            yield spec.description, {name: sorted(each.inputs) for name, each in spec.operations.items()}


@frozen
class _Loaded:
    """The connectors and errors that one load of the registry found."""

    connectors: Mapping[str, IConnector]
    candidates: Mapping[str, Candidate]
    problems: tuple[LoadError, ...]


@implementer(IConnectors)
@define
class Registry:
    """The connectors of all sources.

    If two sources have a connector of one name, the earlier source wins. If one source has a name twice, neither is
    loaded.

    :ivar directory: the directory of the user's connector files, or None.
    :ivar workshop: the parts from which kinds build connectors.
    :ivar plugin_packages: the only packages that are searched, once, for Python connectors and kinds.
    """

    directory: Path | None
    workshop: Workshop
    plugin_packages: tuple[str, ...] = ()
    _kinds: LoadedKinds = field(init=False)
    _fixed: tuple[tuple[FoundPlugin, ...], ...] = field(init=False)
    _files: dict[tuple[str, str], FoundPlugin] = field(init=False, factory=dict)
    _loaded: _Loaded = field(init=False)
    _generation: int = field(init=False, default=1)

    def __attrs_post_init__(self) -> None:
        self._kinds = load_kinds(self.plugin_packages)
        plugins = tuple(found for name in self.plugin_packages for found in of_package(name))
        self._fixed = (tuple(map(self._make, shipped())), plugins)
        self._loaded = self._load()

    def get(self, fqn: str) -> IConnector | None:
        return self._loaded.connectors.get(fqn)

    def descriptions(self) -> tuple[ConnectorDescription, ...]:
        return tuple(each.describe() for _, each in sorted(self._loaded.connectors.items()))

    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(each for _, each in sorted(self._loaded.candidates.items()))

    def problems(self) -> tuple[LoadError, ...]:
        return *self._kinds.problems, *self._loaded.problems

    def generation(self) -> int:
        return self._generation

    def refresh(self) -> None:
        loaded = self._load()
        if loaded != self._loaded:
            self._loaded = loaded
            self._generation += 1

    def _load(self) -> _Loaded:
        own = () if self.directory is None else tuple(map(self._make_once, of_directory(self.directory)))
        present = {each.file for each in own}
        self._files = {key: found for key, found in self._files.items() if key[0] in present}
        return _merge((*self._fixed, own))

    def _make_once(self, file: ConnectorFile) -> FoundPlugin:
        """Return the connector of a file.

        If the file has the same name and bytes as at the last load, reuse its connector.
        """
        if file.data is None:
            return self._make(file)
        key = file.name, digest_of_bytes(file.data)
        if key not in self._files:
            self._files[key] = self._make(file)
        return self._files[key]

    def _make(self, file: ConnectorFile) -> FoundPlugin:
        reading = read_connector(file, self._kinds.kinds)
        if reading.kind is None:
            return FoundPlugin(file.name, None, reading.problems)
        try:
            made = reading.kind.make(reading.spec, self.workshop)
        except NotMade as error:
            broken = LoadError("malformed", f"its kind {reading.kind.name} {error}", file.name, None, BOUNDARY)
            return FoundPlugin(file.name, None, (broken,))
        return FoundPlugin(file.name, made, candidate=_candidate(file, reading.spec.description))


def _candidate(file: ConnectorFile, about: ConnectorDescription) -> Candidate | None:
    if file.scheme != LOCAL or file.data is None:
        return None
    return Candidate(TrustKind.CONNECTOR, about.name, about.content_hash, file.name, file.data.decode("utf-8"))


def _merge(sources: Iterable[Iterable[FoundPlugin]]) -> _Loaded:
    loaded: dict[str, FoundPlugin] = {}
    problems: list[LoadError] = []
    for source in sources:
        found = list(source)
        problems += [problem for each in found for problem in each.problems]
        problems += _add(loaded, found)
    return _Loaded(
        {fqn: each.connector for fqn, each in loaded.items() if each.connector is not None},
        {fqn: each.candidate for fqn, each in loaded.items() if each.candidate is not None},
        tuple(problems),
    )


def _add(loaded: dict[str, FoundPlugin], found: list[FoundPlugin]) -> Iterator[LoadError]:
    """Add to C{loaded} the connectors of one source, by name.

    If a name is already in C{loaded}, or occurs twice in C{found}, yield a fault instead for each connector with it.
    """
    named = [(each.connector.describe().name, each) for each in found if each.connector is not None]
    names = Counter(fqn for fqn, _ in named)
    taken = set(loaded)
    for fqn, each in named:
        if names[fqn] > 1 or fqn in taken:
            yield LoadError("duplicate", f"another connector is named {fqn} as well", each.file, None, BOUNDARY)
        else:
            loaded[fqn] = each
