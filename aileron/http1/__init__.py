"""HTTP/1.1 as bytes: where messages begin and end, and what their heads say.  No transport, no clock.

Whatever two parsers could read differently raises L{Malformed} (RFC 9112, sections 5 and 6).
"""

from ._bodies import Body, Chunked, Fixed, UntilClose, announced, unchunked
from ._fields import CHUNKED, end_to_end
from ._likeness import Likeness
from ._malformed import Malformed
from ._request import RequestHead, parse_request
from ._response import UNTIL_CLOSE, ResponseHead, parse_response
from ._taking import Client, Taken, Taker, Way

__all__ = [
    "CHUNKED",
    "UNTIL_CLOSE",
    "Body",
    "Chunked",
    "Client",
    "Fixed",
    "Likeness",
    "Malformed",
    "RequestHead",
    "ResponseHead",
    "Taken",
    "Taker",
    "UntilClose",
    "Way",
    "announced",
    "end_to_end",
    "parse_request",
    "parse_response",
    "unchunked",
]
