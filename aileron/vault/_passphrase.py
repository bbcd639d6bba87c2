"""Rejects weak passphrases, and generates passphrases of six words."""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from itertools import pairwise

from aileron.model.errors import WeakPassphrase

from ._cipher import Randomness
from ._proofs import same

MIN_LENGTH = 12
MAX_LENGTH = 1024
_MIN_DIFFERENT = 6
_CHOICE_BYTES = 8

# Long enough for the length rule, and among the first guesses of an attacker.
_COMMON = """
    password1234 passwordpassword password12345 passw0rd1234 administrator 123456789012 1234567890123 12345678901234
    123123123123 qwertyuiop12 qwertyuiop123 qwertyuiopasdf qwerty123456 1q2w3e4r5t6y 1qaz2wsx3edc zaq12wsxcde3
    iloveyou1234 letmein12345 welcome12345 abcdefghijkl abcdefghijklmnop abc123abc123 changemechangeme
    correcthorsebatterystaple aileronaileron
"""


def check_passphrase(passphrase: str) -> None:
    """Raise if a new passphrase is too weak.

    The rule: 12 to 1024 characters, 6 different ones, no control characters, none of the best known ones, no repeated
    short piece, no run of neighbours such as C{abcdefghijkl}.  The rule excludes only the worst. Six generated words
    have 66 bits and always pass.

    :raises WeakPassphrase: if the passphrase breaks the rule. The message does not contain the passphrase.
    """
    text = unicodedata.normalize("NFC", passphrase)
    if not MIN_LENGTH <= len(text) <= MAX_LENGTH:
        raise WeakPassphrase(f"The passphrase must have {MIN_LENGTH} to {MAX_LENGTH} characters.")
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in text):
        raise WeakPassphrase("The passphrase must have no control characters.")
    if len(set(text)) < _MIN_DIFFERENT:
        raise WeakPassphrase(f"The passphrase must have at least {_MIN_DIFFERENT} different characters.")
    bare = "".join(character for character in text.casefold() if character.isalnum())
    if bare in _COMMON.split() or _repeats(bare) or _is_run(bare):
        raise WeakPassphrase("This passphrase is among the first that anybody would try.")


def _repeats(text: str) -> bool:
    """Return True if the text consists of repetitions of one piece."""
    return text in (text + text)[1:-1]


def _is_run(text: str) -> bool:
    steps = {ord(after) - ord(before) for before, after in pairwise(text)}
    return steps in ({1}, {-1})


@cache
def words() -> tuple[str, ...]:
    """Return the 2048 words for passphrases (see ADR 5 for their origin)."""
    return tuple(files(__package__).joinpath("words.txt").read_text("ascii").split())


def generate_two_words(randomness: Randomness) -> str:
    """Return the two words that a page shows and a person types in a terminal."""
    return generate_words(2, lambda below: int.from_bytes(randomness(_CHOICE_BYTES), "big") % below)


def are_same_words(shown: str, typed: str) -> bool:
    """Return True if the typed words are those shown, in constant time, ignoring case and extra spaces."""
    return same(shown, " ".join(typed.casefold().split()))


def generate_words(count: int = 6, choose: Callable[[int], int] = secrets.randbelow) -> str:
    """Return a passphrase of random words, 11 bits each.

    :param choose: returns a uniformly random number below its argument.
    """
    known = words()
    return " ".join(known[choose(len(known))] for _ in range(count))
