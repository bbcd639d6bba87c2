"""The LLM gateway: carries what an agent and its provider say to each other, as the bytes that it is.

L{build} makes it; the agent site's channel asks it about each request; L{Tally} counts, and L{ToolNotes}
tools.  L{published} tells what it
takes.
"""

from ._completions import CompletionRecorder
from ._gateway import Gateway, build
from ._routes import published
from ._tally import Tally
from ._tool_notes import ToolNotes

__all__ = ["CompletionRecorder", "Gateway", "Tally", "ToolNotes", "build", "published"]
