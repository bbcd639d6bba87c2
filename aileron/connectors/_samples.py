"""Finds connector files with sample calls, for C{aileron connector prove}."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from aileron.base.files import Unreadable
from aileron.base.tables import FileFaults
from aileron.base.toml import NotToml, read_toml

from ._files import BOUNDARY, ConnectorFile, all_files, one_file, read_fixtures
from ._fixtures import replay_file
from ._schema import read_connector
from ._template import ReferenceScope
from .kind import Specimen
from .kinds import KindTable

_SHIPPED = KindTable()


def find_specimens(place: Path, wanted: Collection[str] = (), kinds: KindTable = _SHIPPED) -> Iterator[Specimen]:
    """Yield connector files: the one at C{place}, or those in this directory and those that ship with Aileron.

    :param wanted: the names of the connectors to yield, or empty for all.
    """
    for file in all_files(place) if place.is_dir() or not place.exists() else (one_file(str(place)),):
        found = _specimen(file, wanted, kinds)
        if found is not None:
            yield found


def _specimen(file: ConnectorFile, wanted: Collection[str], kinds: KindTable) -> Specimen | None:
    reading = read_connector(file, kinds)
    kind = reading.kind
    if kind is None:
        return None if wanted else Specimen(file.name, None, problems=reading.problems)
    about = reading.spec.description
    if wanted and about.name not in wanted:
        return None
    usual = (about.base_url if about.template is None else about.template.example) or "https://service.example"
    if kind.recorded is None:
        return Specimen(about.name, reading.spec, usual, kind=kind)
    toml, has_fixtures = read_toml(""), True
    try:
        toml = read_toml(read_fixtures(file))
    except (Unreadable, NotToml) as fault:  # replaying reports the faults
        has_fixtures = isinstance(fault, NotToml)
    replayed = replay_file(file, kinds) if has_fixtures else None
    if replayed is not None and replayed.problems:
        return Specimen(about.name, reading.spec, problems=replayed.problems, kind=kind)
    base_url = str(toml.values.get("base_url") or usual)
    faults = FileFaults(file.name, toml, BOUNDARY)
    samples, without = kind.recorded.find_samples(reading.spec, base_url, faults)
    return Specimen(about.name, reading.spec, base_url, samples, without, kind=kind)


def keys_of(effect_key: str) -> tuple[str, str]:
    """Return the two forms in which a request may contain an effect key.

    They are the key itself, and the UUID derived from it.
    """
    return effect_key, str(ReferenceScope({}, effect_key).value("effect.uuid"))
