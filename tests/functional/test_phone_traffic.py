"""A first load of the inbox on a phone is few bytes."""

from typing import Any

from twisted.internet.defer import Deferred

from tests.functional.phone_traffic import PhoneTrafficTestCase

_REQUESTS, _KILOBYTES = 12, 100


class PhoneLoadTests(PhoneTrafficTestCase):
    """With nothing in the browser's cache, and a new connection."""

    def setUp(self) -> Any:
        """Start it."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())

    async def test_first_load(self) -> None:
        """The list with twelve pending approvals takes at most twelve requests and 100 KB, TLS included."""
        page = await self.signed_in()
        found = await self.first_load(page)
        self.assertLessEqual(len(found["requests"]), _REQUESTS, found)
        self.assertLessEqual(found["kilobytes"], _KILOBYTES, found)
        self.assertGreater(found["kilobytes"], 10, "nothing was counted")
        self.assertEqual(page.problems, [])
