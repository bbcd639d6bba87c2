"""The guards of the relay to a local MCP server's API, each with the request or the answer that passes without it."""

from __future__ import annotations

from .guard import RELAY, Guard

_API = "connectors/kinds/mcp/_api.py"
_RELAY = "connectors/kinds/mcp/_api_relay.py"

_ELSEWHERE = "RefusedTests.test_elsewhere"


def _guard(what: str, file: str, text: str, instead: str, test: str) -> Guard:
    return Guard(RELAY, what, file, text, instead, test)


GUARDS = (
    _guard(
        "a request of the relay is for its own host",
        _API,
        '        if headers.getRawHeaders(b"Host") != [host.encode("ascii")]:\n',
        "        if False:\n",
        _ELSEWHERE,
    ),
    _guard(
        "a request of the relay stays below the API's path",
        _API,
        '        if not f"{url.path}/".startswith(f"{self.base.path}/") or _climbs(url.path):\n',
        "        if _climbs(url.path):\n",
        _ELSEWHERE,
    ),
    _guard(
        "no dot segment of the relay climbs, however encoded",
        _API,
        " or _climbs(url.path):\n",
        ":\n",
        _ELSEWHERE,
    ),
    _guard(
        "the relay passes a write on for no read",
        _API,
        "        if not self.allows(request.method, request):\n",
        "        if False:\n",
        "RefusedTests.test_read",
    ),
    _guard(
        "a read alone lets no write through the relay",
        _API,
        "        return call.effect != READ or method in _READ_METHODS or",
        "        return True or method in _READ_METHODS or",
        "RefusedTests.test_read",
    ),
    _guard(
        "the relay passes on nothing while no call executes",
        _RELAY,
        "            self._calls.remove(call)\n",
        "            pass\n",
        "RefusedTests.test_ended",
    ),
    _guard(
        "the relay drops what is under way when its call ends",
        _RELAY,
        "                    passing.cancel()\n",
        "                    pass\n",
        "RefusedTests.test_ended",
    ),
    _guard(
        "the relay serves calls with its own credential alone",
        _RELAY,
        "if each.credential == self._credential]",
        "if True]",
        "RefusedTests.test_accounts",
    ),
    _guard(
        "the relay wants the path that only its process knows",
        _RELAY,
        "        if not target.startswith(self._prefix):\n",
        "        if False:\n",
        "UnconfinedTests.test_path",
    ),
    _guard(
        "a server's own credential does not pass the relay",
        _API,
        "not in _DROPPED | own | {",
        "not in {",
        "PassedTests.test_credential",
    ),
    _guard(
        "no body with the credential comes back by the relay",
        _RELAY,
        "                piece = each.body(piece)\n",
        "                pass\n",
        "AnswerTests.test_echo",
    ),
    _guard(
        "no head with the credential comes back by the relay",
        _RELAY,
        "                each.head(head, chunked=False)\n",
        "                pass\n",
        "AnswerTests.test_echo_in_head",
    ),
    _guard(
        "no part of an answer comes back by the relay",
        _RELAY,
        "            _refuse_part(answer.status, head)\n",
        "            pass\n",
        "AnswerTests.test_part",
    ),
    _guard(
        "the relay refuses what overrides a method",
        _API,
        "        if found:\n",
        "        if False:\n",
        "RefusedTests.test_override",
    ),
)
