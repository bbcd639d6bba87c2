"""A first load of the inbox is few requests and few bytes."""

from tests.functional.traffic import TrafficTestCase

_REQUESTS, _KILOBYTES = 12, 58


class FirstLoadTests(TrafficTestCase):
    """With nothing in the browser's cache."""

    async def test_first_load(self) -> None:
        """The list with twelve pending approvals takes at most twelve requests and 58 KB."""
        page, found = await self.first_load()
        self.assertLessEqual(len(found["requests"]), _REQUESTS, found)
        self.assertLessEqual(found["kilobytes"], _KILOBYTES, found)
        self.assertEqual(page.problems, [])
