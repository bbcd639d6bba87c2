"""Renders what the operator is shown of the service's side, and digests it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import field, frozen

from aileron.errors import ConnectorRuntimeError
from aileron.manifests import look_up
from aileron.values import JSON, Fault, Outcome, PreviewRule, canonical, digest, digest_of_bytes, plain

FETCHING, SHOWN, UNAVAILABLE = "fetching", "shown", "unavailable"
_STATUSES = frozenset((FETCHING, SHOWN, UNAVAILABLE))
MOST_BYTES, MOST_BYTES_IN_ALL = 64 * 1024, 256 * 1024
MOST_CARRIED = 4096  # characters; it goes into a request


@frozen
class Preview:
    """Holds one look at the service's side, or why there is none.

    :ivar fields: C{label}, C{value} (a text; L{None}: C{missing}), C{multiline}, and of a value that was cut C{cut}:
        how many C{bytes} it has and the C{digest} of the whole.
    :ivar fault: C{class} and C{message}, where it is unavailable.
    :ivar carried: what steps take from it, by path; what is not there they cannot take.
    """

    status: str
    fields: tuple[Mapping[str, JSON], ...] = ()
    fault: Mapping[str, JSON] | None = None
    carried: Mapping[str, JSON] = field(factory=dict)

    def digest(self) -> str:
        """Binds all that is shown and carried; of why there is nothing to show only the class: words change."""
        failure = None if self.fault is None else self.fault["class"]
        return digest({"status": self.status, "fields": self.fields, "carried": self.carried, "failure": failure})

    def as_json(self) -> dict[str, JSON]:
        """As it is shown and kept."""
        return {"status": self.status, "fields": list(self.fields), "fault": self.fault, "carried": self.carried}


NOT_YET = Preview(FETCHING)


def make_unavailable(fault: Fault) -> Preview:
    """Make a preview that could not be had."""
    return Preview(UNAVAILABLE, fault={"class": fault.kind, "message": fault.message})


def render_preview(rule: PreviewRule, outcome: Outcome, carried: Collection[str]) -> Preview:
    """Render what C{rule} shows of an answer.

    :param carried: the paths that steps refer to.
    """
    if outcome.fault is not None:
        return make_unavailable(outcome.fault)
    found = {path: look_up(outcome.output, path) for path in carried}
    ties = {path: value for path, value in found.items() if _ties(value)}
    try:
        return Preview(SHOWN, tuple(_fields(rule, outcome.output)), None, ties)
    except (TypeError, ValueError, RecursionError):
        return make_unavailable(ConnectorRuntimeError("The answer is none that could be shown.").fault())


def parse_preview(review: Mapping[str, JSON]) -> Preview:
    """Read the preview that a review on record tells of, to compare its digest; L{NOT_YET}: it tells of none."""
    kept = review.get("preview")
    if not isinstance(kept, Mapping) or kept.get("status") not in _STATUSES:
        return NOT_YET
    fields, fault, carried = (kept.get(name) for name in ("fields", "fault", "carried"))
    known = fault if isinstance(fault, Mapping) and _holds_texts(fault, "class", "message") else None
    try:
        shown = tuple(_fields_of(fields))
        found = Preview(str(kept["status"]), shown, known, carried if isinstance(carried, Mapping) else {})
        found.digest()
    except (TypeError, ValueError, RecursionError):
        return NOT_YET
    return found


def _fields_of(kept: JSON) -> Iterator[Mapping[str, JSON]]:
    """Yield the fields of a preview kept on record.

    :raises TypeError: one of them is not a field that L{render_preview} makes.
    """
    for each in kept if isinstance(kept, Sequence) and not isinstance(kept, str) else ():
        if not isinstance(each, Mapping) or not _holds_texts(each, "label") or not {"value", "missing"} <= set(each):
            raise TypeError("no field of a preview")
        yield each


def _holds_texts(value: Mapping[str, JSON], *names: str) -> bool:
    return all(isinstance(value.get(name), str) for name in names)


def _fields(rule: PreviewRule, output: JSON) -> Iterator[Mapping[str, JSON]]:
    left = MOST_BYTES_IN_ALL
    for label, path in rule.render:
        value = look_up(output, path)
        shown: dict[str, JSON] = {"label": label, "value": None, "missing": value is None, "multiline": False}
        if value is not None:
            shown |= _text(value, min(left, MOST_BYTES))
            shown["multiline"] = label in rule.multiline or not isinstance(value, (str, bool, int, float))
            left -= len(str(shown["value"]).encode("utf-8"))
        yield shown


def _text(value: JSON, room: int) -> dict[str, JSON]:
    """C{value} in words, cut to C{room} bytes."""
    text = value if isinstance(value, str) else json.dumps(plain(value), indent=2, ensure_ascii=False)
    data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
    if len(data) <= room:
        return {"value": data.decode("utf-8")}
    cut: JSON = {"bytes": len(data), "digest": digest_of_bytes(data)}
    return {"value": data[:room].decode("utf-8", "ignore"), "cut": cut}


def _ties(value: JSON) -> bool:
    """Tell whether a request can be tied to C{value}: a text or a number that means something and can be carried."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    try:
        return 2 < len(canonical(value)) <= MOST_CARRIED if isinstance(value, str) else bool(canonical(value))
    except ValueError:
        return False
