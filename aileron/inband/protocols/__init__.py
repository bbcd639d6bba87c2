"""The three protocols of language models, each as the same interface: requests read, tools offered, replies spliced."""

from .chat import ChatProtocol
from .messages import MessagesProtocol
from .responses import ResponsesProtocol

__all__ = ["ChatProtocol", "MessagesProtocol", "ResponsesProtocol"]
