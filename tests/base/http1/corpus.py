"""Messages that two parsers could read differently, by name; each is to be refused.

Every one is whole but for what its name says, and most carry another message where a lenient parser would see the
next one begin.
"""

from __future__ import annotations

from collections.abc import Mapping

SMUGGLED = b"GET /openai/smuggled HTTP/1.1\r\nHost: localhost:7001\r\n\r\n"
_LINE = b"POST /v1/messages HTTP/1.1\r\n"
_HOST = b"Host: localhost:7001\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"


def _fields(*lines: bytes, body: bytes = SMUGGLED) -> bytes:
    return _LINE + _HOST + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def _first(line: bytes, after: bytes = b"") -> bytes:
    return line + b"\r\n" + _HOST + b"\r\n" + after


def _chunks(body: bytes) -> bytes:
    return _LINE + _HOST + _CHUNKED + b"\r\n" + body + SMUGGLED


def _answer(*lines: bytes, body: bytes = b"0\r\n\r\nxx", first: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return b"".join(line + b"\r\n" for line in (first, *lines)) + b"\r\n" + body


_NUMBERS: Mapping[str, bytes] = {
    "empty": b"",
    "negative": b"-1",
    "plus": b"+4",
    "hexadecimal": b"0x4",
    "underscore": b"1_0",
    "fraction": b"4.0",
    "exponent": b"4e0",
    "letters": b"four",
    "space inside": b"1 0",
    "tab inside": b"1\t0",
    "tab before": b"\t4",
    "tab after": b"4\t",
    "list of two": b"4, 5",
    "list of the same": b"4, 4",
    "list with an empty member": b"4,",
    "quoted": b'"4"',
    "parameter": b"4;x",
    "superscript": b"\xb2",
    "Arabic digit in UTF-8": b"\xd9\xa4",
    "beyond any integer": b"9" * 19,
    "five thousand digits": b"9" * 5000,
}

_CODINGS: Mapping[str, bytes] = {
    "empty": b"",
    "identity": b"identity",
    "unknown": b"xchunked",
    "trailing word": b"chunked x",
    "chunked twice": b"chunked, chunked",
    "list ending with nothing": b"chunked,",
    "list beginning with nothing": b", chunked",
    "gzip before": b"gzip, chunked",
    "identity before": b"identity, chunked",
    "chunked not last": b"chunked, gzip",
    "quoted": b'"chunked"',
    "single quotes": b"'chunked'",
    "parameter": b"chunked;q=1",
    "tab before": b"\tchunked",
    "tab after": b"chunked\t",
    "no-break space": b"\xa0chunked",
    "zero-width": b"\xe2\x80\x8bchunked",
    "escape": b"chunked\\",
}

# What stands where a line of framing should, in either kind of message.
_LINES: Mapping[str, bytes] = {
    "both lengths": b"Content-Length: 4\r\nTransfer-Encoding: chunked",
    "both lengths, the other way round": b"Transfer-Encoding: chunked\r\nContent-Length: 4",
    "both lengths, none of it": b"Content-Length: 0\r\nTransfer-Encoding: chunked",
    "two lengths": b"Content-Length: 4\r\nContent-Length: 5",
    "two equal lengths": b"Content-Length: 4\r\ncontent-length: 4",
    "two lengths, one padded": b"Content-Length: 4\r\nContent-Length: 04",
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "two equal codings": b"Transfer-Encoding: chunked\r\ntransfer-encoding: chunked",
    "coding folded": b"Transfer-Encoding:\r\n chunked",
    "coding folded by a tab": b"Transfer-Encoding:\r\n\tchunked",
    "length folded": b"Content-Length:\r\n 4",
    "field folded": b"X: a\r\n b\r\nContent-Length: 4",
    "fold of nothing": b"X: a\r\n \r\nContent-Length: 4",
    "space before the colon of a length": b"Content-Length : 4",
    "space before the colon of a coding": b"Transfer-Encoding : chunked",
    "tab before the colon": b"Transfer-Encoding\t: chunked",
    "line end before the colon": b"Transfer-Encoding\r\n: chunked",
    "space before the name": b" Transfer-Encoding: chunked",
    "vertical tab before the value": b"Transfer-Encoding:\x0bchunked",
    "form feed after the value": b"Transfer-Encoding: chunked\x0c",
    "NUL in a value": b"X: a\x00b\r\nContent-Length: 4",
    "NUL in a name": b"X\x00: a\r\nContent-Length: 4",
    "NUL after a coding": b"Transfer-Encoding: chunked\x00",
    "escape in a value": b"X: a\x1bb\r\nContent-Length: 4",
    "delete in a value": b"X: a\x7fb\r\nContent-Length: 4",
    "bell in a name": b"X\x07: a\r\nContent-Length: 4",
    "empty name": b": a\r\nContent-Length: 4",
    "no colon": b"X-A\r\nContent-Length: 4",
    "no name at all": b"\x20\r\nContent-Length: 4",
    "bare line feed between fields": b"X: a\nTransfer-Encoding: chunked",
    "bare carriage return between fields": b"X: a\rTransfer-Encoding: chunked",
    "carriage return twice": b"X: a\r\r\nContent-Length: 4",
    "line feed at a value's beginning": b"X:\nTransfer-Encoding: chunked",
    "bracket in a name": b"Content[Length]: 4",
    "quote in a name": b'"Content-Length": 4',
    "slash in a name": b"Content/Length: 4",
    "byte beyond ASCII in a name": b"Content-Length\xa0: 4",
    "underscore for the hyphen of a length": b"Content_Length: 4",
    "underscore for the hyphen of a coding": b"Content-Length: 4\r\nTransfer_Encoding: chunked",
    **{f"length: {name}": b"Content-Length: " + value for name, value in _NUMBERS.items()},
    **{f"coding: {name}": b"Transfer-Encoding: " + value for name, value in _CODINGS.items()},
}

_BAD_CHUNKS: Mapping[str, bytes] = {
    "no size": b"\r\nabc\r\n0\r\n\r\n",
    "only an extension": b";a=b\r\n0\r\n\r\n",
    "negative": b"-1\r\n",
    "plus": b"+3\r\nabc\r\n0\r\n\r\n",
    "prefixed": b"0x3\r\nabc\r\n0\r\n\r\n",
    "underscore": b"1_0\r\n0123456789abcdef\r\n0\r\n\r\n",
    "no number": b"g\r\n",
    "space before": b" 3\r\nabc\r\n0\r\n\r\n",
    "space after": b"3 \r\nabc\r\n0\r\n\r\n",
    "tab after": b"3\t\r\nabc\r\n0\r\n\r\n",
    "space before the extension": b"3 ;a\r\nabc\r\n0\r\n\r\n",
    "sixteen digits": b"0" * 15 + b"3\r\nabc\r\n0\r\n\r\n",
    "wraps a 64 bit number": b"10000000000000003\r\nabc\r\n0\r\n\r\n",
    "comma": b"3,3\r\nabc\r\n0\r\n\r\n",
    "bare line feed after the size": b"3\nabc\r\n0\r\n\r\n",
    "bare carriage return after the size": b"3\rabc\r\n0\r\n\r\n",
    "bare line feed after the data": b"3\r\nabc\n0\r\n\r\n",
    "bare carriage return after the data": b"3\r\nabc\r0\r\n\r\n",
    "nothing after the data": b"3\r\nabc0\r\n\r\n",
    "too much data": b"3\r\nabcd\r\n0\r\n\r\n",
    "carriage return in an extension": b"3;a=\rb\r\nabc\r\n0\r\n\r\n",
    "quoted line end in an extension": b'3;a="\r\n"\r\nabc\r\n0\r\n\r\n',
    "bare line feed in an extension": b"3;a\nabc\r\n0\r\n\r\n",
    "NUL in an extension": b"3;a=\x00\r\nabc\r\n0\r\n\r\n",
    "endless extension": b"3;" + b"a" * 5000 + b"\r\nabc\r\n0\r\n\r\n",
    "bare line feed ends it": b"0\r\n\n",
    "bare carriage return ends it": b"0\r\n\rx",
    "trailer without a colon": b"0\r\nX\r\n\r\n",
    "trailer folded": b"0\r\nX: a\r\n b\r\n\r\n",
    "trailer with a space before its colon": b"0\r\nX : a\r\n\r\n",
    "trailer after a bare line feed": b"0\r\nX: a\nY: b\r\n\r\n",
    "trailer with NUL": b"0\r\nX: \x00\r\n\r\n",
    "trailer without a name": b"0\r\n: a\r\n\r\n",
    "endless trailer": b"0\r\n" + b"X: a\r\n" * 2000 + b"\r\n",
}

_REQUEST_LINES: Mapping[str, bytes] = {
    "no version": b"GET /openai/x",
    "HTTP/0.9": b"GET /openai/x HTTP/0.9",
    "HTTP/1.0": b"GET /openai/x HTTP/1.0",
    "HTTP/1.2": b"GET /openai/x HTTP/1.2",
    "HTTP/2.0": b"GET /openai/x HTTP/2.0",
    "HTTP/1.10": b"GET /openai/x HTTP/1.10",
    "HTTP/01.1": b"GET /openai/x HTTP/01.1",
    "HTTP/1,1": b"GET /openai/x HTTP/1,1",
    "lower case": b"GET /openai/x http/1.1",
    "another protocol": b"GET /openai/x ICY/1.1",
    "space after the version": b"GET /openai/x HTTP/1.1 ",
    "tab for a space": b"GET\t/openai/x HTTP/1.1",
    "two spaces": b"GET  /openai/x HTTP/1.1",
    "two spaces before the version": b"GET /openai/x  HTTP/1.1",
    "two targets": b"GET /openai/x /openai/y HTTP/1.1",
    "two versions": b"GET /openai/x HTTP/1.1 HTTP/1.1",
    "space before the method": b" GET /openai/x HTTP/1.1",
    "no method": b" /openai/x HTTP/1.1",
    "bad method": b"GE(T /openai/x HTTP/1.1",
    "no target": b"GET  HTTP/1.1",
    "NUL in the target": b"GET /openai/\x00x HTTP/1.1",
    "control character in the target": b"GET /openai/\x0bx HTTP/1.1",
    "byte beyond ASCII in the target": b"GET /openai/\xc3\xa9 HTTP/1.1",
    "carriage return in the target": b"GET /openai/x\rHTTP/1.1",
    "line feed in the target": b"GET /openai/x\nX: a HTTP/1.1",
    "absolute target": b"GET http://localhost:7001/openai/x HTTP/1.1",
    "absolute target of another": b"GET https://evil.example/openai/x HTTP/1.1",
    "authority": b"CONNECT api.openai.com:443 HTTP/1.1",
    "asterisk": b"OPTIONS * HTTP/1.1",
    "relative target": b"GET openai/x HTTP/1.1",
    "an empty line before it": b"\r\nGET /openai/x HTTP/1.1",
    "a line feed before it": b"\nGET /openai/x HTTP/1.1",
}

REQUESTS: Mapping[str, bytes] = {
    **{f"line: {name}": _first(line) for name, line in _REQUEST_LINES.items()},
    **{f"field: {name}": _fields(line) for name, line in _LINES.items()},
    "field: chunks in an HTTP/1.0 request": _LINE.replace(b"1.1", b"1.0") + _HOST + _CHUNKED + b"\r\n" + SMUGGLED,
    "field: two hosts": _fields(b"host: localhost:7001"),
    "field: two hosts, one foreign": _fields(b"Host: evil.example"),
    "field: no host": _LINE + b"Content-Length: 0\r\n\r\n",
    "field: foreign host": _LINE + b"Host: evil.example\r\n\r\n",
    "field: host folded": _LINE + b"Host:\r\n localhost:7001\r\n\r\n",
    "field: before any": _LINE + b" X: a\r\n" + _HOST + b"\r\n",
    "field: a hundred and one": _fields(*[b"X: a"] * 101, body=b""),
    "line: nothing": b"\r\n\r\n",
    "line: TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "line: HTTP/2's preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}
"""Heads that are refused, with 400, before anything of them goes anywhere."""

CHUNKED_REQUESTS: Mapping[str, bytes] = {name: _chunks(body) for name, body in _BAD_CHUNKS.items()}
"""Bodies that are refused, with 400, where they go wrong."""

_STATUS_LINES: Mapping[str, bytes] = {
    "HTTP/0.9": b"<html>",
    "HTTP/1.2": b"HTTP/1.2 200 OK",
    "HTTP/2": b"HTTP/2 200 OK",
    "lower case": b"http/1.1 200 OK",
    "no code": b"HTTP/1.1 OK",
    "two digits": b"HTTP/1.1 20 OK",
    "four digits": b"HTTP/1.1 2000 OK",
    "plus": b"HTTP/1.1 +20 OK",
    "code below any": b"HTTP/1.1 099 OK",
    "code beyond any": b"HTTP/1.1 600 OK",
    "tab for a space": b"HTTP/1.1\t200 OK",
    "two spaces": b"HTTP/1.1  200 OK",
    "space before it": b" HTTP/1.1 200 OK",
    "an empty line before it": b"\r\nHTTP/1.1 200 OK",
    "NUL in the reason": b"HTTP/1.1 200 O\x00K",
    "carriage return in the reason": b"HTTP/1.1 200 O\rK",
    "line feed in the reason": b"HTTP/1.1 200 OK\nX: a",
    "control character in the reason": b"HTTP/1.1 200 O\x1bK",
    "nothing after the code but a letter": b"HTTP/1.1 200OK",
    "ICY": b"ICY 200 OK",
    "a request": b"GET / HTTP/1.1",
}

ANSWERS: Mapping[str, bytes] = {
    **{f"line: {name}": _answer(b"Content-Length: 4", first=line) for name, line in _STATUS_LINES.items()},
    **{f"field: {name}": _answer(line) for name, line in _LINES.items()},
    "field: chunks in an HTTP/1.0 answer": _answer(b"Transfer-Encoding: chunked", first=b"HTTP/1.0 200 OK"),
    "interim with a length": _answer(b"Content-Length: 4", first=b"HTTP/1.1 100 Continue"),
    "interim with chunks": _answer(b"Transfer-Encoding: chunked", first=b"HTTP/1.1 103 Early Hints"),
    "204 with a length": _answer(b"Content-Length: 4", first=b"HTTP/1.1 204 No Content"),
    "204 with chunks": _answer(b"Transfer-Encoding: chunked", first=b"HTTP/1.1 204 No Content"),
    "101": _answer(b"Upgrade: websocket", b"Connection: upgrade", first=b"HTTP/1.1 101 Switching Protocols"),
    "interim, then garbage": _answer(first=b"HTTP/1.1 100 Continue", body=b"garbage\r\n\r\n"),
    "interim folded": _answer(b"X: a\r\n b", first=b"HTTP/1.1 103 Early Hints"),
}
"""Answers that are refused, with 502, before anything of them goes on."""

CHUNKED_ANSWERS: Mapping[str, bytes] = {
    name: _answer(b"Transfer-Encoding: chunked", body=body) for name, body in _BAD_CHUNKS.items()
}
"""Bodies of answers that are refused where they go wrong."""

_ADDED = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"

FOLLOWED: Mapping[str, tuple[str, bytes, bytes]] = {
    "two final heads": ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", _ADDED),
    "garbage behind": ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"garbage"),
    "an empty line behind": ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"\r\n"),
    "more than its length": ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"more"),
    "more than its chunks": ("GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", _ADDED),
    "body behind HEAD": ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", b"poison"),
    "chunks behind HEAD": ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n"),
    "body behind 304": ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\n", b"poison"),
    "body behind 204": ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", b"poison"),
    "interim behind": ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
}
"""By name: a method, its whole answer, and what follows that and must reach nobody."""
