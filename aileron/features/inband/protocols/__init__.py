"""The three protocols of language models, a class of requests for each: read, with tools offered, and answered."""

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
