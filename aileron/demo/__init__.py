"""The main job as a play: private daemon, real MCP client, gated action, an approval, its effect and its record."""

from ._play import play

__all__ = ["play"]
