"""The programs by which agents' hooks reach the daemon, and the hash by which Codex trusts a hook."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path

_HERE = Path(__file__).parent

OPENCODE_PLUGIN = _HERE / "static" / "opencode.js"
PI_EXTENSION = _HERE / "static" / "pi.ts"
WANTED = "AILERON_PROMPTS"
"""The variable that tells a plugin what to do: C{asks}, C{checks} or both."""


def relay_command(interpreter: str, agent: str, *, block: bool = False) -> str:
    """Return the shell command that relays an agent's command hook.

    :param interpreter: the path of the Python interpreter.
    :param block: whether a call must not run without a reply.
    """
    return shlex.join((interpreter, "-I", str(_HERE / "relay.py"), agent, *(("block",) if block else ())))


def hash_codex_hook(event: str, command: str, seconds: int) -> str:
    """Return the hash by which Codex trusts a command hook without a matcher.

    :param event: the event in snake case.
    """
    handler = {"type": "command", "command": command, "timeout": seconds, "async": False}
    identity = {"event_name": event, "hooks": [handler]}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode('utf-8')).hexdigest()}"
