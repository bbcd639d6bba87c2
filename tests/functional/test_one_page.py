"""One page for each request, whatever its address, and the way back to the row of a list."""

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import UNGATED

_ROW = "document.querySelector('main a[href=\"/runs/%s\"]')"
_HEIGHT = f"Math.round({_ROW}.getBoundingClientRect().top)"
# Where a fragment never comes, only what the page remembers is shown.
_SILENT = "window.fetch = () => new Promise(() => {}); void 0"


class OnePageTests(PagesTestCase):
    """A request while it is decided."""

    async def test_decided_elsewhere(self) -> None:
        """What one looks at while it is decided elsewhere shows the outcome by itself, beside what waits."""
        run_id = await self.ask("Dark mode")
        page = await self.entered(f"/runs/{run_id}")
        await page.until(f"location.pathname === '/approvals/{run_id}'")
        await self.ready(page)
        await self.approve(run_id)
        await self.stands(page, "completed")
        self.assertEqual(await page.evaluate("location.pathname"), f"/approvals/{run_id}")
        shown = await page.text(".detail")
        for words in ("Dark mode", "Opened in the browser", "Approved by you after", "post_message", "Details"):
            self.assertIn(words, shown)
        beside = "document.querySelector('.detail-body').innerHTML"
        before = await page.evaluate(beside)
        await page.open(f"{self.url}/runs/{run_id}")
        await self.stands(page, "completed")
        self.assertEqual((await page.text("main h1")).strip(), "Post to #general: Dark mode")
        self.assertEqual(
            await page.evaluate("document.querySelector('article').innerHTML.replace(/^.*?<h1/, '<h1')"), before
        )
        self.assertEqual(page.problems, [])


class BackTests(PagesTestCase):
    """A list that one comes back to."""

    async def run_some(self, count: int) -> list[str]:
        """Let the agent run an action without approval some times; the IDs of the runs."""
        arguments = {"channel": "#general", "summary": "x"}
        return [(await self.run_action(self.agent, UNGATED, arguments)).body["run_id"] for _ in range(count)]

    async def left(self, page: Page, run_id: str) -> int:
        """Scroll to a row, follow it, and return how high it stood."""
        await page.until(f"{_ROW % run_id} !== null")
        await page.evaluate(f"{_ROW % run_id}.scrollIntoView({{ block: 'center' }})")
        height = await page.evaluate(_HEIGHT % run_id)
        await page.click(f'main a[href="/runs/{run_id}"]')
        await page.until(f"document.querySelector('article[data-id=\"{run_id}\"]') !== null")
        self.assertEqual(await page.evaluate("scrollY"), 0)
        return int(height)

    async def test_back(self) -> None:
        """Back returns to the row at once, and to where it stood though others came above it; forward as well."""
        runs = await self.run_some(16)
        page = await self.entered("/runs")
        await page.look(height=600)
        height = await self.left(page, runs[4])
        await self.run_some(2)
        await page.go_back()
        await page.until(f"document.activeElement === {_ROW % runs[4]} && {_HEIGHT % runs[4]} === {height}")
        await page.until("document.querySelectorAll('main tbody tr').length === 18")
        self.assertEqual(await page.evaluate(_HEIGHT % runs[4]), height)
        await page.evaluate("void setTimeout(() => history.forward())")
        await page.until(f"document.querySelector('article[data-id=\"{runs[4]}\"]') !== null")
        await page.evaluate(_SILENT)
        await page.go_back()
        await page.until(f"document.activeElement === {_ROW % runs[4]} && {_HEIGHT % runs[4]} === {height}")
        self.assertEqual(page.problems, [])

    async def test_reload(self) -> None:
        """A list that is loaded anew stands where it stood."""
        runs = await self.run_some(16)
        page = await self.entered("/runs")
        await page.look(height=600)
        await page.until(f"{_ROW % runs[4]} !== null")
        await page.evaluate(f"{_ROW % runs[4]}.scrollIntoView({{ block: 'center' }})")
        top = await page.evaluate("scrollY")
        await page.until(f"history.state.at?.top === {top}")  # kept once the page has come to rest
        await page.reload()
        await page.until(f"scrollY === {top} && {top} > 0")

    async def test_focus(self) -> None:
        """A copy button, a fold and a link keep the focus when the page is drawn again."""
        page = await self.entered(f"/runs/{(await self.run_some(1))[0]}")
        await page.click("#details-of-run summary")
        for element in ("#details-of-run button[data-copy]", "#details-of-run > summary", "main a[href]"):
            await page.until(f"document.querySelector('{element}:not(:disabled)') !== null")
            focused = await page.evaluate(
                f"import('/static/view.js').then(({{ showFragment, main }}) => {{ document.querySelector('{element}')"
                f".focus(); showFragment(main.innerHTML); return document.activeElement.matches('{element}'); }})"
            )
            self.assertTrue(focused, element)
        self.assertEqual(page.problems, [])

    async def test_rows(self) -> None:
        """A row that did not change stays in the page, and its buttons can be pressed while another one changes."""
        await self.session("claude")
        page = await self.entered("/sessions")
        pause = f"document.querySelector('.agent:not(#agent-{self.agent.id}) .buttons button')"
        await page.until(f"{pause} !== null && !{pause}.disabled")
        await page.evaluate(
            f"window.button = {pause}; window.rested = 0; void new MutationObserver(() => {{"
            " window.rested += window.button.disabled; }).observe(window.button, { attributes: true })"
        )
        await self.run_some(1)
        await page.until("document.querySelector('main').textContent.includes('Completed')")
        self.assertEqual(await page.evaluate("[window.button.isConnected, window.rested]"), [True, 0])
        self.assertEqual(page.problems, [])
