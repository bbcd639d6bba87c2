"""Replays the recorded answers of a service through the kind of its connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from aileron.base.files import Unreadable
from aileron.base.load_error import LoadError
from aileron.base.tables import FileFaults, FileTable
from aileron.base.toml import NotToml, read_toml

from ._files import ConnectorFile, all_files, name_fixtures, one_file, read_fixtures
from ._schema import read_connector
from .kinds import KindTable

BOUNDARY = "connector_fixtures"

_SHIPPED = KindTable()


@frozen
class Replayed:
    """The result of replaying a connector's fixtures, which are recorded requests and responses.

    :ivar seen: for each operation, the outcomes in its fixtures. C{reconcile} stands for a fixture of the search for
        the operation's effect.
    """

    seen: Mapping[str, Sequence[str]] = field(factory=dict)
    problems: tuple[LoadError, ...] = ()


def replay(target: str, directory: Path, kinds: KindTable = _SHIPPED) -> Replayed | None:
    """Replay every fixture of a connector, and report differences from the recorded results.

    :param target: the path of the connector's file, or its name.
    :param directory: the directory of the user's connectors, in which a name is searched.
    :return: the result, or None if there is no connector of that name.
    """
    if "://" not in target:
        return replay_file(one_file(target), kinds)
    for file in all_files(directory):
        spec = read_connector(file, kinds).spec
        if spec is not None and spec.description.name == target:
            return replay_file(file, kinds)
    return None


def replay_file(file: ConnectorFile, kinds: KindTable) -> Replayed:
    """Replay the fixtures of one connector file. All errors are in the result: also those of reading either file."""
    reading, name = read_connector(file, kinds), name_fixtures(file)
    if reading.kind is None:
        return Replayed(problems=reading.problems)
    if reading.kind.recorded is None:
        kind = LoadError("validation_error", "only a connector of kind http has recorded answers", name, None, BOUNDARY)
        return Replayed(problems=(kind,))
    try:
        toml = read_toml(read_fixtures(file))
    except Unreadable as fault:
        return Replayed(problems=(LoadError("unreadable", fault.problem, name, None, BOUNDARY),))
    except NotToml as fault:
        return Replayed(problems=(LoadError("parse_error", fault.problem, name, fault.line, BOUNDARY),))
    faults = FileFaults(name, toml, BOUNDARY)
    return Replayed(reading.kind.recorded.replay(reading.spec, FileTable(toml.values, (), faults)), faults.in_order())
