"""The three protocols of language models, a class of requests for each: read, with tools offered, and answered."""

from .chat import ChatRequest
from .exchange import Exchange
from .messages import MessagesRequest
from .requests import ClientRequest
from .responses import ResponsesRequest

__all__ = ["ChatRequest", "ClientRequest", "Exchange", "MessagesRequest", "ResponsesRequest"]
