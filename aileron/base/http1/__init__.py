"""Parses HTTP/1.1 in bytes: the boundaries of messages and the contents of their heads.  No transport, no clock.

Input that two parsers could read differently raises L{Malformed} (RFC 9112, sections 5 and 6).
"""

from ._bodies import Body, Chunked, ChunkedContent, Fixed, Tee, UntilClose, announced, unchunked
from ._fields import CHUNKED, Malformed, end_to_end
from ._heads import UNTIL_CLOSE, RequestHead, ResponseHead, parse_request, parse_response, read_response_prefix
from ._relay import FirstHandler, HeadCache, RelayClient, RelayedExchange, RelayHandler, RelayRoutes, Route

__all__ = [
    "CHUNKED",
    "UNTIL_CLOSE",
    "Body",
    "Chunked",
    "ChunkedContent",
    "FirstHandler",
    "Fixed",
    "HeadCache",
    "Malformed",
    "RelayClient",
    "RelayHandler",
    "RelayRoutes",
    "RelayedExchange",
    "RequestHead",
    "ResponseHead",
    "Route",
    "Tee",
    "UntilClose",
    "announced",
    "end_to_end",
    "parse_request",
    "parse_response",
    "read_response_prefix",
    "unchunked",
]
