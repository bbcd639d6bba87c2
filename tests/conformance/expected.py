"""What fails of what is scored, and why: each asks for what the SDK deprecates.

It says so of sampling, roots and logging, and warns whoever uses one of them.  Nothing new is built on what goes.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcp.server.session import ServerSession


def _sdk_says(method: str) -> str:
    """Why the SDK would not have a method of its sessions used.

    :raises AttributeError: it does not say so any more.
    """
    return str(getattr(ServerSession, method).__deprecated__)


_SAMPLING, _ROOTS, _LOGGING = map(_sdk_says, ("create_message", "list_roots", "send_log_message"))

EXPECTED: Mapping[str, Mapping[str, str]] = {
    "2025-11-25": {
        "logging-set-level:logging-set-level": _LOGGING,
        "tools-call-with-logging:tools-call-with-logging": _LOGGING,
        "tools-call-sampling:tools-call-sampling": _SAMPLING,
    },
    "2026-07-28": {
        "input-required-result-basic-sampling:sep-2322-sampling-incomplete": _SAMPLING,
        "input-required-result-basic-list-roots:sep-2322-list-roots-incomplete": _ROOTS,
        "input-required-result-multiple-input-requests:sep-2322-multiple-inputs-incomplete": f"{_SAMPLING}; {_ROOTS}",
        # A client that declares sampling alone must be asked for a sample.
        "input-required-result-capability-check:sep-2322-respect-client-capabilities": _SAMPLING,
        # A tool that needs sampling must refuse a client that does not declare it.
        "server-stateless:sep-2575-server-rejects-undeclared-capability": _SAMPLING,
        "server-stateless:sep-2575-missing-capability-http-400": _SAMPLING,
    },
}
"""By revision, then by scenario and check."""

_NOT_AGAIN = "A call whose stream ended is never asked for again: its outcome is unknown, and a person decides."
_REFUSED = "What a server asks for during an approved call was not approved, and is refused."

EXPECTED_OF_CLIENT: Mapping[str, str] = {
    "sse-retry:client-sse-graceful-reconnect": _NOT_AGAIN,
    "sep-2322-client-request-state:sep-2322-client-request-state-echoed": _REFUSED,
    "sep-2322-client-request-state:sep-2322-client-jsonrpc-id-different": _REFUSED,
    "sep-2322-client-request-state:sep-2322-client-no-state-omitted": _REFUSED,
}
"""What fails of our connector as a client, by scenario and check, and why."""
