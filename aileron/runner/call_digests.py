"""Compares calls: arguments in the normal form in which two calls are identical."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from aileron.actions import inputs_given
from aileron.base.comparison import normalize_text, strip_invisible
from aileron.base.json import JSON, compact, digest_of_bytes
from aileron.model.actions import Action
from aileron.model.connectors import FORWARD
from aileron.model.interfaces.connectors import ICatalogue, IConnectors, IInputNormalizer
from aileron.model.tool_claims import CLAIMED_COMMAND


@frozen
class ArgumentNormalizer:
    """Normalizes arguments as the connectors of their actions do, to compare calls."""

    _catalogue: ICatalogue
    _connectors: IConnectors

    def normalize(self, action: Action, name: str, value: JSON) -> JSON:
        """Return the value of the argument C{name} in the form that the connectors of the action's steps compare."""
        found = normalize(value)
        for step in action.steps:
            given = tuple(inputs_given(step, name))
            # guard of own tools: a denied request is not asked for again because its command is worded otherwise
            #    -> features.own_tools.test_door.EndTests.test_denied_again
            if step.operation == FORWARD and "recognised" in given and isinstance(found, Mapping):
                found = {key: each for key, each in found.items() if key != CLAIMED_COMMAND}
            connector = IInputNormalizer(self._connectors.get(step.connector), None)
            if connector is not None:
                for each in given:
                    found = connector.normalize_input(step.operation, each, found)
        return found

    def digests(self, action_name: str, arguments: JSON) -> frozenset[str]:
        """Return the digests of a call. Two calls are identical if they have a digest in common.

        The first digest is L{request_digest} of the arguments. If the action is loaded, a second one covers the
        arguments in the forms that L{normalize} returns.
        """
        action = self._catalogue.current().actions.get(action_name)
        found = {request_digest(arguments)}
        if action is not None and isinstance(arguments, Mapping):
            forms = {name: self.normalize(action, name, value) for name, value in arguments.items()}
            found.add(request_digest(forms))
        return frozenset(found)


def request_digest(arguments: JSON) -> str:
    """Return the digest of a call's arguments. Two requests for one action are identical if their digests are equal.

    Texts are compared in NFKC, without case, without invisible characters, and with each run of whitespace as one
    blank. Everything else is compared unchanged: numbers, the order of lists, words and punctuation. The names of
    object members are compared with their case.
    """
    return digest_of_bytes(compact(normalize(arguments)).encode("ascii"))


def normalize(value: JSON) -> JSON:
    """Return the value with all texts and names in the normal form that L{request_digest} compares."""
    if isinstance(value, str):
        return normalize_text(value)
    if isinstance(value, Mapping):
        return _normalize_table(value)
    if isinstance(value, Sequence):
        return [normalize(item) for item in value]
    return value


def _normalize_table(table: Mapping[str, JSON]) -> JSON:
    """Return the table with normalized names and values. If two names would become equal, the second stays as it is."""
    found: dict[str, JSON] = {}
    for key, item in sorted(table.items()):
        name = strip_invisible(key)
        found[key if name in found else name] = normalize(item)
    return found
