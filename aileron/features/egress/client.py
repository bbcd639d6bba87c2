"""The client of the proxy: asks the daemon for one connection of a session."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import asdict

from aileron.client import AnswerNotUnderstood, Daemon
from aileron.model.tool_claims import NO_CALLER, ToolCaller

from .values import EGRESS_LINE

_OK = 200


async def open_connection(
    daemon: Daemon, session_id: str, allow: Sequence[str], caller: ToolCaller = NO_CALLER
) -> tuple[int, bytes]:
    """Open network access for a session, and return the proxy's port and the first bytes of one connection to it.

    The bytes hold a ticket, which the proxy accepts once, within seconds.

    :param daemon: a client with the launch key.
    :param allow: the presets and hosts to allow.
    :param caller: the process that opened the connection.
    :raises AnswerNotUnderstood: if the daemon named no proxy.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    known = {"caller": asdict(caller)} if caller.process else {}
    answer = await daemon.post("sessions", session_id, "egress", body={"allow": list(allow), **known})
    try:
        port, ticket = int(answer["port"]), str(answer["ticket"]).encode("ascii")
    except (KeyError, ValueError):
        raise AnswerNotUnderstood("The daemon's response names no proxy.", _OK) from None
    return port, EGRESS_LINE + ticket + b"\r\n"
