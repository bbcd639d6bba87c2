"""Of documents that are almost what they should be: nothing of theirs breaks a reader."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from graphql import build_schema, introspection_from_schema
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import ManifestFault, parse
from aileron.connectors._schema import read_file
from aileron.features.importing.description import NotImported
from aileron.features.importing.files import write_connector
from aileron.features.importing.readers import read_api
from tests.extent import examples
from tests.features.importing import test_aws, test_discovery, test_graphql

_INTROSPECTION: Any = introspection_from_schema(build_schema(test_graphql.SCHEMA))
DOCUMENTS: Mapping[str, Any] = {
    "discovery": test_discovery.NOTES,
    "rpc": test_aws.RPC,
    "rest": test_aws.REST,
    "graphql": _INTROSPECTION,
}
_VALUES = st.one_of(
    st.sampled_from(
        [None, True, 0, -1, 1e300, "", "a", "${in.x}", "{a}", "\r\n", "\x00", [], {}, [[]], [{}], {"a": {}}]
    ),
    st.sampled_from([{"$ref": "Note"}, {"shape": "Item"}, {"type": "object", "properties": {"a": {"$ref": "#"}}}]),
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from _places(each, (*path, key))


_PLACES = {name: [path for path in _places(each) if path] for name, each in DOCUMENTS.items()}


class WildTests(SynchronousTestCase):
    @settings(deadline=None, max_examples=examples(200))
    @given(st.data())
    def test_values(self, data: st.DataObject) -> None:
        """A document with other values in it is refused with a sentence, or what is read of it is written as TOML."""
        name = data.draw(st.sampled_from(sorted(DOCUMENTS)))
        document = copy.deepcopy(DOCUMENTS[name])
        for path in data.draw(st.lists(st.sampled_from(_PLACES[name]), min_size=1, max_size=3)):
            self._put(document, path, copy.deepcopy(data.draw(_VALUES)))
        try:
            reader = read_api(json.dumps(document).encode())
            chosen = data.draw(st.lists(st.sampled_from([*reader.list_operations(), None]), min_size=1, max_size=2))
            written = write_connector(reader.describe("local://me/wild", tuple(dict.fromkeys(filter(None, chosen)))))
        except NotImported:
            return
        for problem in read_file(written.connector.text.encode(), "x.toml").problems:
            self.assertEqual(problem.kind, "validation_error")
        for action in written.actions:
            try:
                parse(action.text.encode(), action.name)
            except ManifestFault as fault:
                self.assertTrue(all(each.kind == "validation_error" for each in fault.errors), fault)

    def _put(self, value: Any, path: tuple[Any, ...], new: Any) -> None:
        for key in path[:-1]:
            if not isinstance(value, dict | list) or (isinstance(value, dict) and key not in value):
                return
            if isinstance(value, list) and not (isinstance(key, int) and key < len(value)):
                return
            value = value[key]
        if isinstance(value, dict) or (isinstance(value, list) and isinstance(path[-1], int) and path[-1] < len(value)):
            value[path[-1]] = new
