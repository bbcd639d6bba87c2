"""Finds claims in an answer: sentences with a verb such as "sent" and a service or an action of the session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

VERBS: Mapping[str, str] = {
    "sent": "sent something by {}",
    "emailed": "sent mail by {}",
    "posted": "posted to {}",
    "published": "published in {}",
    "replied": "replied in {}",
    "commented": "commented in {}",
    "merged": "merged in {}",
    "filed": "filed something in {}",
    "created": "created something in {}",
    "opened": "opened something in {}",
    "closed": "closed something in {}",
    "assigned": "assigned something in {}",
    "scheduled": "scheduled something in {}",
    "invited": "invited somebody in {}",
    "uploaded": "uploaded to {}",
    "deleted": "deleted something in {}",
    "deployed": "deployed by {}",
}
"""What each verb claims, with the service in braces."""

_SYNONYMS: Mapping[str, tuple[str, ...]] = {"mail": ("email", "e-mail"), "smtp": ("email", "e-mail", "mail")}
_BEFORE = frozenset(
    ("i", "i've", "i’ve", "have", "has", "been", "was", "were", "and", "successfully", "now", "just", "also", "then")
)
# A sentence with one of these tells of no effect that happened.
_UNSURE = frozenset(
    (
        *("not", "never", "cannot", "can", "could", "will", "would", "should", "may", "might", "must", "unable"),
        *("failed", "if", "once", "when", "until", "unless", "before", "after", "without", "want", "need", "draft"),
        *("pending", "waiting", "waits", "denied", "tried", "try", "earlier", "yesterday", "already"),
    )
)
_list_sentences = re.compile(r"[^.!?\n]{1,2000}[.!?]?").findall
_list_words = re.compile(r"[a-z0-9][a-z0-9'’_-]{0,63}").findall


@frozen
class Claim:
    """An effect that an answer claims.

    :ivar service: the service's name, as its connector has it.
    """

    verb: str
    service: str

    def describe(self) -> str:
        """Return the claim in words."""
        return f"Says it {VERBS[self.verb].format(self.service.capitalize())}; no run did."


def name_services(connectors: Mapping[str, str]) -> Mapping[str, str]:
    """Return the service that each word names.

    :param connectors: the service of each name of a connector or an action.
    """
    found: dict[str, str] = {}
    for name, service in connectors.items():
        for word in (name, *_SYNONYMS.get(name, ())):
            found[word.lower()] = service
    return found


def find_claims(text: str, services: Mapping[str, str]) -> Iterator[Claim]:
    """Yield what a text claims, in time linear to its length.

    :param services: the service of each word that names one.
    """
    for sentence in _list_sentences(text.lower()):
        words = _list_words(sentence)
        if (
            sentence.endswith("?")
            or not _UNSURE.isdisjoint(words)
            or any(each.endswith(("n't", "n’t")) for each in words)
        ):
            continue
        named = next((services[each] for each in words if each in services), None)
        if named is None:
            continue
        for before, word in zip(("and", *words), words, strict=False):
            if word in VERBS and before in _BEFORE:
                yield Claim(word, named)
                break
