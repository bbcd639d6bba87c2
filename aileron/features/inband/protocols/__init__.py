"""The three protocols of language models.

Each has a class of requests, which adds tools to a request and reads replies.
"""

from .chat import ChatRequest
from .exchange import Exchange
from .messages import MessagesRequest
from .prepared import Piece
from .requests import ClientRequest
from .responses import ResponsesRequest
from .weight import MOST_VALUES, ValueCounter

__all__ = [
    "MOST_VALUES",
    "ChatRequest",
    "ClientRequest",
    "Exchange",
    "MessagesRequest",
    "Piece",
    "ResponsesRequest",
    "ValueCounter",
]
