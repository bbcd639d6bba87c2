"""The test case that C{python -m bench phone} runs: it loads the inbox on a phone and writes the figures."""

from bench.browsing import write_figures
from tests.functional.phone_traffic import PhoneTrafficTestCase

_LOADS = 7


class PhoneFigures(PhoneTrafficTestCase):
    """The figures of the inbox at the public name."""

    timeout = 900

    async def test_figures(self) -> None:
        """Load several times, by the slow network and by loopback in turn, and write the figures."""
        await self.begin()
        page = await self.signed_in()
        loads = [(await self.first_load(page, slow=True), await self.first_load(page)) for _ in range(_LOADS)]
        write_figures({"slow": [slow for slow, _ in loads], "quick": [quick for _, quick in loads]})
