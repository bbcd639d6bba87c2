"""Judges by length and mix of characters whether a text is or contains a secret.

No list of the services' prefixes is complete, so prefixes only help with short texts.  Paths, packages, versions,
numbers, names made of words and plain URLs are not secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_MOST = 64 * 1024
"""The maximum number of characters to inspect.  A longer text counts as one that contains a secret."""

REDACTED = "[redacted]"

_OWN = re.compile(r"ail_[a-z]_[\w-]+")
_ULID = re.compile(r"(?<![A-Za-z0-9])[0-7][0-9A-HJKMNP-TV-Z]{25}(?![A-Za-z0-9])")
_CHUNK = re.compile(r"[A-Za-z0-9_+=~-]+")
_RUN = re.compile(r"[A-Za-z0-9]+")
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{5}")
_SHORT_RUN, _LONG_RUN, _LONG_CHUNK = 12, 16, 20
_MOST_DIGITS, _MANY_DIGITS, _LONG_WORD = 4, 10, 3.5
_IRREGULAR = 2.7
"""The mean length of a run of one character class below which a text is random.

Joined words, as in C{iPhoneXSMax}, have longer runs.
"""

_HEX = re.compile("[0-9a-f]{24,}|[0-9A-F]{24,}").fullmatch
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TIME = re.compile(r"(?:19|20)[0-9]{6}T?[0-9]{4,6}Z?")
_DIGEST = re.compile(r"sha(?:1|256|384|512)[:-][A-Za-z0-9+/=_-]{20,128}")
_PREFIXED = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk-|[rs]k_|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|xapp-|lin_api_|ntn_|npm_|hf_)[\w.-]{8,}"
    r"|(?:AKIA|ASIA|AIza|eyJ)[\w.-]{12,})"
)
_USER_INFO = re.compile(
    r"(?<![\w.@-])(?!(?:acct|file|git|github|jsr|mailto|npm|pypi|sip|xmpp):)(?:[a-z][a-z0-9+.-]{0,20}://)?"
    r"[^\s:/@'\"]{0,100}:[^\s@/'\"]{1,300}@(?!sha[0-9]{1,3}:)[\w.\[(%-]",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?<![\w.-])([A-Za-z][\w-]{0,60})[\"']?[ \t]{0,9}[:=](?!//)[ \t]{0,9}[\"']?([^\"',;&\s][^\"',;&\n]{0,999})"
)
_VAGUE = frozenset({"auth", "key", "keys", "pass", "sig", "token"})
"""Names that programs use for other things too: the value counts as a secret only if it is not a word."""
_BEARER = re.compile(
    r"(?:^|[\s\"':=])(?:bearer[ \t]{1,9}[^\s\"']|(?:basic|token)[ \t]{1,9}[A-Za-z]{0,200}[^A-Za-z\s\"'])[^\s\"']{7}",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"(?:apikey|basic|bearer|bot|token)[ \t]+", re.IGNORECASE)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset(
    "apikey auth authentication authorization bearer cookie credential credentials jwt key keys pass passcode "
    "passphrase passwd password passwords pat pwd secret secrets sig signature token tokens".split()
)
_SECRET_ENDINGS = (
    "accesskey",
    "apikey",
    "authkey",
    "licensekey",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "secretkey",
    "token",
)
_ABOUT = frozenset(
    "algorithm audience cache class column count dir directory domain email enabled endpoint env expires expiry file "
    "format header helper host hostname id ids issuer kind length level limit lifetime max method methods mode name "
    "names parallelism path policy port prefix provider proxy realm region required retries role scope scopes server "
    "size sock socket store strategy timeout ttl type uri url urls user username validity version".split()
)
"""Last words of names that describe a secret, such as C{AUTH_METHOD}.  Their values are judged by shape alone."""

_AMOUNTS = frozenset("budget count limit max min num number per total".split())
_SETTINGS = frozenset(
    "0 1 auto basic bearer cli default disabled dummy enabled false header keychain keyring keystore login no none "
    "null oauth oauth2 off on optional placeholder plain required saml session token true unused yes".split()
)
_NUMBER = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?")
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@ +-]{1,255}){2,40}[/\\]?")
_PLAIN_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://[^\s?#@]{1,2000}")


def is_secret(name: str, value: str) -> bool:
    """Return True if C{value} is a secret, judged by its name and its shape.

    :param name: the name of the value's variable, header, parameter or option, which may be empty.
    """
    if not value.strip():
        return False
    if _UUID.fullmatch(value) and _last_word(name) in ("id", "ids", "uuid", "guid"):
        return False
    return (names_secret(name) and not _is_plain(name, value)) or holds_secret(value)


def names_secret(name: str) -> bool:
    """Return True if C{name} names a secret. Complete words count, so C{AUTHOR} does not match C{AUTH}."""
    words = [each.lower() for each in _WORD.findall(name[:_MOST])]
    if not words or words[-1] in _ABOUT:
        return False
    return any(each in _SECRET_WORDS or each.endswith(_SECRET_ENDINGS) for each in words)


def holds_secret(text: str) -> bool:
    """Return True if C{text} is or contains a secret, judged by its shape, or is too long to be judged."""
    if len(text) > _MOST:
        return True
    text = _DIGEST.sub("", text)
    if _PREFIXED.search(text) or _UUID.search(text) or _USER_INFO.search(text) or _BEARER.search(text):
        return True
    if any(map(_is_random, _CHUNK.findall(text))):
        return True
    pairs = ((name, _SCHEME.sub("", value.strip(), 1)) for name, value in _NAMED.findall(text))
    return any(names_secret(name) and not _is_plain(name, value, vague=True) for name, value in pairs)


def cut_secrets(text: str) -> str:
    """Return C{text} with each part replaced that is a secret, judged by its shape. IDs of runs and sessions stay.

    A text that is too long to be judged is replaced as a whole.
    """
    if len(text) > _MOST:
        return REDACTED
    pieces, done = list[str](), 0
    for start, end in sorted(_find_spans(text)):
        if end > done:
            pieces += (text[done : max(done, start)], REDACTED if start >= done else "")
            done = end
    return "".join((*pieces, text[done:]))


def _find_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each part of a text that is a secret, judged by its shape. They may overlap."""
    plain = [match.span() for each in (_DIGEST, _ULID) for match in each.finditer(text)]
    for pattern in (_OWN, _PREFIXED, _UUID, _USER_INFO, _BEARER):
        yield from (match.span() for match in pattern.finditer(text))
    for match in _CHUNK.finditer(text):
        start, end = match.span()
        if not any(first <= start and end <= last for first, last in plain) and _is_random(match[0]):
            yield start, end
    for match in _NAMED.finditer(text):
        value = _SCHEME.sub("", match[2].strip(), 1)
        if _ULID.fullmatch(value) is None and names_secret(match[1]) and not _is_plain(match[1], value, vague=True):
            yield match.span(2)


def _last_word(name: str) -> str:
    words: list[str] = _WORD.findall(name[:_MOST])
    return words[-1].lower() if words else ""


def _is_plain(name: str, value: str, *, vague: bool = False) -> bool:
    """Return True if a value under the name of a secret is harmless: a setting, an amount, a path or a plain URL.

    :param vague: whether the name was found in a text, where it may name something else.
    """
    value = value.strip()
    if vague and name.lower() in _VAGUE and (value.isalpha() or len(value) < 8):
        return True
    words = {each.lower() for each in _WORD.findall(name[:_MOST])}
    if value.lower() in _SETTINGS:
        return True
    if _NUMBER.fullmatch(value):
        return bool(words & _AMOUNTS) or "tokens" in words
    is_place = _PATH.fullmatch(value) or _PLAIN_URL.fullmatch(value)
    return bool(is_place) and not any(map(_is_random, _CHUNK.findall(value)))


def _is_random(chunk: str) -> bool:
    """Return True if C{chunk}, a text of letters, digits and joints, looks random."""
    if _TIME.fullmatch(chunk):
        return False
    runs = _RUN.findall(chunk)
    numbers = [len(each) for each in runs if each.isdigit()]
    if len(chunk) >= _LONG_RUN and len(numbers) < len(runs) and max(numbers, default=0) >= _MANY_DIGITS:
        return True
    if any(map(_is_random_run, runs)):
        return True
    plain = "".join(runs)
    return len(plain) >= _LONG_CHUNK and _has_three_classes(plain) and _mean_length(plain) < _IRREGULAR


def _is_random_run(run: str) -> bool:
    digits = sum(map(str.isdigit, run))
    if len(run) < _SHORT_RUN or digits == len(run) or _TIME.fullmatch(run):
        return False
    if _mean_length(run) < _IRREGULAR and (digits > 1 or not (run.isupper() or run.islower())):
        return True
    if not digits:
        tokens = (each for each in _TOKEN.findall(run) if not each.isupper())
        return len(run) >= _LONG_CHUNK and any(_CONSONANTS.search(each.lower()) for each in tokens)
    if len(run) < _LONG_RUN:
        return False
    return not _is_words(run) or (digits > _MOST_DIGITS and (_HEX(run) is not None or _mean_length(run) < _LONG_WORD))


def _is_words(run: str) -> bool:
    """Return True if most of the letters belong to words."""
    letters = [each for each in _TOKEN.findall(run) if each.isalpha()]
    words = [each for each in letters if len(each) > 3 and _is_word(each.lower())]
    return sum(map(len, words)) * 2 > sum(map(len, letters))


def _is_word(text: str) -> bool:
    vowels = sum(each in "aeiouy" for each in text)
    return vowels * 5 >= len(text) and _CONSONANTS.search(text) is None


def _has_three_classes(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isupper, text)) and any(map(str.islower, text))


def _mean_length(text: str) -> float:
    return len(text) / max(1, len(_TOKEN.findall(text)))
