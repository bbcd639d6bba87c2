"""Random conversations of a client and a provider, and what each must hear of the other, told without our parsers."""

from __future__ import annotations

from random import Random

from attrs import frozen

from tests.features.gateway.case import HOST

_OF_ONE_HOP = frozenset(("connection", "keep-alive", "te", "upgrade", "proxy-connection", "proxy-authenticate"))
_NAMES = ("X-A", "x-a", "X-Stainless-Lang", "anthropic-beta", "ACCEPT", "User-Agent", "Via", "Trailer", "Date", "x-r")
_HOP_LINES = ("Connection: X-A, keep-alive", "connection:x-r", "Keep-Alive: timeout=5", "TE: trailers", "Upgrade: h2c")
_METHODS = ("POST", "POST", "POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS")
_FINAL = (200, 200, 200, 201, 204, 304, 400, 404, 429, 500, 529)
_TEXT = [*range(0x21, 0x7F), *range(0x80, 0x100), 0x20, 0x09]
_BODILESS = frozenset((204, 304))


@frozen
class Said:
    """One message as it is sent, and as it must arrive."""

    sent: bytes
    heard: bytes


@frozen
class Turn:
    """A request and its answer.

    :ivar ends: whether the end of the provider's connection ends the answer.
    """

    request: Said
    answer: Said
    ends: bool


@frozen
class Stream:
    """What happens on one client's connection.

    :ivar closes: whether the client's connection is closed after the last answer.
    """

    turns: tuple[Turn, ...]
    closes: bool


def stream(random: Random) -> Stream:
    """One to four requests with their answers."""
    count = random.choice((1, 1, 2, 3, 4))
    closes = random.random() < 0.3
    turns = [_turn(random, closes=closes and number == count, last=number == count) for number in range(1, count + 1)]
    return Stream(tuple(turns), closes or turns[-1].ends)


def _turn(random: Random, *, closes: bool, last: bool) -> Turn:
    method = random.choice(_METHODS)
    code = random.choice(_FINAL)
    bodiless = method == "HEAD" or code in _BODILESS
    framing = random.choice(("fixed", "chunked", "close") if last and not bodiless else ("fixed", "chunked"))
    old = framing == "fixed" and random.random() < 0.1 and not bodiless
    ends = framing == "close"
    answer = _answer(random, code, framing, bodiless=bodiless, old=old, closes=closes or ends)
    return Turn(_request(random, method, closes=closes), answer, ends)


def _request(random: Random, method: str, *, closes: bool) -> Said:
    words = [random.choice(("a", "b.c", "%24", "~d-e_", "f:g", "")) for _ in range(random.randrange(4))]
    target = "/x" + "/".join(words) + random.choice(("", "?", "?a=/../b", "?q=%2f"))
    lines = _lines(random) + (["Connection: close"] if closes else [])
    framing = random.choice(("none", "fixed", "chunked", "fixed")) if method in {"POST", "PUT", "DELETE"} else "none"
    lines, body = _framed(random, lines, framing, trailers=False)
    place = random.randrange(len(lines) + 1)
    sent = [*lines[:place], f"Host: {HOST}", *lines[place:]]
    heard = [*lines[:place], "Host: 127.0.0.1:9", *lines[place:]]
    return Said(
        _message(f"{method} /local{target} HTTP/1.1", sent, body),
        _message(f"{method} /base/path{target} HTTP/1.1", _onward(heard), body),
    )


def _answer(random: Random, code: int, framing: str, *, bodiless: bool, old: bool, closes: bool) -> Said:
    lines, body = _framed(random, _lines(random), "none" if code == 204 else framing)
    reason = random.choice(("", " ", " OK", " Not quite\t\xe4"))
    interim = [_interim(random) for _ in range(random.choice((0, 0, 0, 1, 2)))]
    body = b"" if bodiless else body
    final = _message(f"HTTP/1.{0 if old else 1} {code}{reason}", lines, body)
    added = ["Connection: close"] if closes else []
    heard = _message(f"HTTP/1.1 {code}{reason}", [*_onward(lines), *added], body)
    return Said(b"".join(each.sent for each in interim) + final, b"".join(each.heard for each in interim) + heard)


def _interim(random: Random) -> Said:
    first = random.choice(("HTTP/1.1 100 Continue", "HTTP/1.1 103 Early Hints", "HTTP/1.1 102"))
    lines = _lines(random)
    return Said(_message(first, lines, b""), _message(first, _onward(lines), b""))


def _framed(random: Random, lines: list[str], framing: str, *, trailers: bool = True) -> tuple[list[str], bytes]:
    """The lines with one that tells the body's framing somewhere among them, and the body."""
    body = random.randbytes(random.choice((0, 1, 7, 100, 3000, 3000, 90_000)))
    place = random.randrange(len(lines) + 1)
    if framing == "fixed":
        name = random.choice(("Content-Length", "content-length"))
        lines = [*lines[:place], f"{name}:{random.choice(('', ' ', '  '))}{len(body)}", *lines[place:]]
    elif framing == "chunked":
        name, word = random.choice((("Transfer-Encoding", "chunked"), ("transfer-encoding", "Chunked")))
        lines, body = [*lines[:place], f"{name}: {word}", *lines[place:]], _chunks(random, body, trailers)
    return lines, b"" if framing == "none" else body


def _chunks(random: Random, body: bytes, trailers: bool) -> bytes:
    framed = b""
    while body:
        size = random.choice((1, 5, 300, 20_000))
        piece, body = body[:size], body[size:]
        length = random.choice(("{:x}", "{:X}", "0{:x}")).format(len(piece))
        extension = random.choice(("", "", "", ";a", ';a="b c";d=\xe4'))
        framed += f"{length}{extension}\r\n".encode("latin-1") + piece + b"\r\n"
    trailer = random.choice(("", "", "X-T: 1\r\nx-t:\r\n", "Digest: \xe4 \r\n")) if trailers else ""
    return framed + f"{random.choice(('0', '000', '0;a'))}\r\n{trailer}\r\n".encode("latin-1")


def _lines(random: Random) -> list[str]:
    lines = [_line(random) for _ in range(random.randrange(6))]
    return lines + random.sample(_HOP_LINES, random.choice((0, 0, 1, 3)))


def _line(random: Random) -> str:
    value = bytes(random.choice(_TEXT) for _ in range(random.randrange(20))).decode("latin-1")
    return f"{random.choice(_NAMES)}:{random.choice(('', ' ', '  '))}{value}"


def _onward(lines: list[str]) -> list[str]:
    """The lines that are not of one hop."""
    values = (line.partition(":")[2] for line in lines if line.lower().startswith("connection:"))
    named = {word.strip().lower() for value in values for word in value.split(",")}
    return [line for line in lines if line.partition(":")[0].lower() not in _OF_ONE_HOP | named]


def _message(first: str, lines: list[str], body: bytes) -> bytes:
    return "\r\n".join([first, *lines, "", ""]).encode("latin-1") + body
