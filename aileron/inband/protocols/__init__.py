"""The three protocols of language models, each as the same class: requests read, tools offered, replies spliced."""

from .chat import ChatProtocol
from .exchange import Exchange
from .messages import MessagesProtocol
from .requests import Protocol
from .responses import ResponsesProtocol

__all__ = ["ChatProtocol", "Exchange", "MessagesProtocol", "Protocol", "ResponsesProtocol"]
