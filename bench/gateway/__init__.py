"""The LLM gateway beside Go's reverse proxy, nginx and aiohttp: C{python -m bench gateway}.

Load and upstream are tools of our own in C.  What is measured has one core to itself, the tools have another.
"""

from __future__ import annotations

from ._comparison import report
from ._endurance import endure
from ._pace import Slower, check
from ._pace import report as report_pace

__all__ = ["Slower", "check", "endure", "report", "report_pace"]
