"""Kinds of connector from other packages: found by entry points, in the configured packages only."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from attrs import field, frozen
from zope.interface.exceptions import Invalid
from zope.interface.verify import verifyObject

from aileron.base.json import JSON
from aileron.base.load_error import LoadError
from aileron.base.packages import find_package
from aileron.base.tables import FileTable
from aileron.model.connectors import ConnectorDescription, Request
from aileron.model.interfaces.connectors import IConnector

from ._files import BOUNDARY, ConnectorFile
from ._operations import Identity
from ._screened import Screened
from .kind import ConnectorKind, NotMade, Specimen, Workshop
from .kinds import BUILT_IN, KindTable

ENTRY_POINTS = "aileron.connector_kinds"
"""The group of entry points by which other packages declare kinds of connector."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


@frozen
class LoadedKinds:
    """The kinds that ship with Aileron and those of other packages, with the errors of kinds that were not loaded."""

    kinds: KindTable = field(factory=KindTable)
    problems: tuple[LoadError, ...] = ()


def load_kinds(packages: Collection[str]) -> LoadedKinds:
    """Load the kinds of connector that packages declare.

    :param packages: the only packages whose code may be loaded.
    """
    known, problems = {each.name: each for each in BUILT_IN}, list[LoadError]()
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda each: (each.name, each.value)):
        if not any(f"{point.module}.".startswith(f"{each}.") for each in packages):
            continue
        found = _load(point)
        if isinstance(found, ConnectorKind) and found.name not in known:
            known[found.name] = found
        else:
            why = found if isinstance(found, str) else f"another kind of connector is named {found.name} as well"
            problems.append(LoadError("malformed", why, point.value, None, BOUNDARY))
    return LoadedKinds(KindTable(tuple(known.values())), tuple(problems))


def _load(point: EntryPoint) -> ConnectorKind[Any] | str:
    """Return the kind of an entry point, or the reason why it cannot be loaded."""
    try:
        if find_package(point.module.partition(".")[0]) is None:
            return "there is no such package, or it lies in the working directory"
        found = point.load()
    except Exception as error:  # noqa: BLE001  (foreign code may raise any error; the others still load)
        return f"raises {type(error).__name__}"
    if not isinstance(found, ConnectorKind):
        return "is no ConnectorKind"
    if not isinstance(found.name, str) or not _NAME.fullmatch(found.name) or found.name != point.name:
        return f"must have the name of its entry point, {point.name}, in a-z, 0-9, '-' and '_'"
    return ForeignKind(found)


@frozen(eq=False)
class ForeignKind(ConnectorKind[Any]):
    """A kind of another package. Its exceptions become faults, and its connectors' responses are redacted."""

    kind: ConnectorKind[Any]

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name by which connector files choose this kind."""
        return self.kind.name

    @property
    def recorded(self) -> Any:  # type: ignore[override]
        """The function of the kind that reads recorded responses of a service, or None if it has none."""
        return self.kind.recorded

    def read(self, document: FileTable, head: FileTable, identity: Identity) -> Any:
        """Return the specification read from a connector file, or None if the kind raises an exception.

        An exception, and a description with another name, version or digest than the file's, are added as faults.
        """
        try:
            spec = self.kind.read(document, head, identity)
            about = spec.description
        except Exception as error:  # noqa: BLE001  (foreign code may raise any error; other files still load)
            head.fault("kind", f"cannot be read: {type(error).__name__}")
            return None
        own = isinstance(about, ConnectorDescription) and identity == (about.name, about.version, about.content_hash)
        if not own:
            head.fault("kind", "cannot be read: its description is of another file")
        return spec

    def make(self, spec: Any, workshop: Workshop) -> IConnector:
        """Create the connector of a file, which is checked and redacts secrets.

        :raises NotMade: if the kind raises, or its result provides no L{IConnector}.
        """
        try:
            made = self.kind.make(spec, workshop)
            verifyObject(IConnector, made)
        except Invalid as error:
            raise NotMade(f"makes what does not provide IConnector: {error}") from None
        except Exception as error:  # noqa: BLE001  (foreign code may raise any error; other files still load)
            raise NotMade(f"raises {type(error).__name__}") from None
        return Screened(made)

    def schema(self) -> Mapping[str, JSON]:
        """Return the JSON Schema of connector files of this kind."""
        return self.kind.schema()

    def bench(self, specimen: Specimen, bench: Any) -> Any:
        """Return the double of the service for C{aileron connector prove}, or a clause why there is none."""
        return self.kind.bench(specimen, bench)

    def check(self, file: ConnectorFile, spec: Any, note: Callable[[str], None]) -> Sequence[LoadError]:
        """Return the faults that only C{aileron connector check} searches for."""
        return self.kind.check(file, spec, note)

    def build_request(
        self, spec: Any, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str
    ) -> Request | None:
        """Build a request for C{aileron connector try}. Return None if the kind can build requests only for actions."""
        return self.kind.build_request(spec, operation, inputs, base_url, effect_key)
