"""The list of the daemons that use the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from aileron.model.daemons import ProcessFacts, ServingDaemon
from aileron.model.errors import StoreUnavailable
from aileron.store._migration import shipped
from tests.api.case import ApiCase

_SINCE = datetime(2026, 3, 1, 9, tzinfo=UTC)
_KNOWN = ServingDaemon("a.1", ProcessFacts("a.1", "alpha", 7, "1.0"), 18, _SINCE, 9.876, 2, False)
_UNKNOWN = ServingDaemon("b.1", ProcessFacts("b.1"), 0, _SINCE, -1.0, 0, True)


class _List:
    def __init__(self, *daemons: ServingDaemon) -> None:
        self._daemons = daemons

    async def list(self) -> Sequence[ServingDaemon]:
        if not self._daemons:
            raise StoreUnavailable("The server is away.")
        return self._daemons


class ListTests(ApiCase):
    def test_alone(self) -> None:
        """With a file there is one daemon, which has no lease."""
        heard = self.operator.ask("GET", "/v1/daemons", self.operator_token())
        (item,) = heard.json["items"]
        self.assertEqual((item["own"], item["lease_seconds_left"], item["unfinished_runs"]), (True, None, 0))
        self.assertEqual(item["schema_version"], shipped().version)

    def test_several(self) -> None:
        """Of several, each has its process, lease and runs. What is not known is null."""
        self.build(daemons=_List(_KNOWN, _UNKNOWN))
        first, second = self.operator.ask("GET", "/v1/daemons", self.operator_token()).json["items"]
        self.assertEqual(
            first,
            {
                "id": "a.1",
                "own": False,
                "host": "alpha",
                "pid": 7,
                "version": "1.0",
                "schema_version": 18,
                "started_at": "2026-03-01T09:00:00.000000Z",
                "lease_seconds_left": 9.9,
                "unfinished_runs": 2,
            },
        )
        unknown = {"host": None, "pid": None, "version": None, "schema_version": None, "lease_seconds_left": -1.0}
        self.assertEqual({name: second[name] for name in unknown}, unknown)

    def test_refused(self) -> None:
        """Agents do not see it, and without the database there is no list."""
        self.assertEqual(self.operator.ask("GET", "/v1/daemons", self.agent_token()).status, 401)
        self.assertEqual(self.agents.ask("GET", "/v1/daemons", self.agent_token()).status, 404)
        self.build(daemons=_List())
        heard = self.operator.ask("GET", "/v1/daemons", self.operator_token())
        self.assertEqual((heard.status, heard.kind), (503, "store_unavailable"))
