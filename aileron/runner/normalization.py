"""The forms of arguments by which limits count values, and by which a call is compared with what was denied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from aileron.actions import inputs_given
from aileron.base.comparison import normalize_text, strip_invisible
from aileron.base.json import JSON, compact, digest_of_bytes
from aileron.model.actions import Action
from aileron.model.interfaces.connectors import ICatalogue, IConnectors, IInputNormalizer


@frozen
class ArgumentNormalizer:
    """Normalizes the arguments of actions, as the connectors that are given them do."""

    _catalogue: ICatalogue
    _connectors: IConnectors

    def normalize(self, action: Action, name: str, value: JSON) -> JSON:
        """Return the form of one argument."""
        found = normalize(value)
        for step in action.steps:
            connector = IInputNormalizer(self._connectors.get(step.connector), None)
            if connector is not None:
                for each in inputs_given(step, name):
                    found = connector.normalize_input(step.operation, each, found)
        return found

    def digests(self, action_name: str, arguments: JSON) -> frozenset[str]:
        """Return the digests of a call: two calls are identical if they have one in common.

        One is of the arguments alone.  If the action's file is there, another is of the forms that connectors know.
        """
        action = self._catalogue.current().actions.get(action_name)
        found = {request_digest(arguments)}
        if action is not None and isinstance(arguments, Mapping):
            forms = {name: self.normalize(action, name, value) for name, value in arguments.items()}
            found.add(request_digest(forms))
        return frozenset(found)


def request_digest(arguments: JSON) -> str:
    """Compute the digest by which two requests for the same action are told to be the same.

    Texts count in NFKC, without case, without characters that cannot be seen, and with each run of whitespace as one
    blank.  Everything else counts as it is: numbers, the order of lists, every word and every sign.  Names count their
    case as well.
    """
    return digest_of_bytes(compact(normalize(arguments)).encode("ascii"))


def normalize(value: JSON) -> JSON:
    """Return the value with its texts and names in the forms that L{request_digest} counts."""
    if isinstance(value, str):
        return normalize_text(value)
    if isinstance(value, Mapping):
        return _normalize_table(value)
    if isinstance(value, Sequence):
        return [normalize(item) for item in value]
    return value


def _normalize_table(table: Mapping[str, JSON]) -> JSON:
    """Return a table by normalized names; one whose name is another's then keeps its own."""
    found: dict[str, JSON] = {}
    for key, item in sorted(table.items()):
        name = strip_invisible(key)
        found[key if name in found else name] = normalize(item)
    return found
