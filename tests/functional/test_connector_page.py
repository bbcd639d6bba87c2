"""One connector's page in a real browser: connected in the terminal, tested, rebound and revoked, without a mouse."""

import json
from typing import Any

from tests.functional import canary
from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import CHECK, CONNECTOR, UNGATED, kinds
from tests.functional.reactor import until
from tests.functional.slack import Behaviour

_REVOKE = 'button[data-act^="DELETE /v1/bindings/"]'
_REBIND = 'button[data-act$="/rebind"]'
_TEST = f"#test-{CHECK}"
_SAYS_ANSWERED = """{ const known = window.fetch;
  window.fetch = async (path, options) => {
    const answer = await known(path, options);
    window.answered ||= options?.method === "POST";
    return answer;
  }; }"""
_COPIES = "navigator.clipboard.writeText = async (text) => { window.copied = text; };0"
_KEPT = """(async () => JSON.stringify([document.documentElement.outerHTML, location.href, {...localStorage},
  {...sessionStorage}, await caches.keys(), (await indexedDB.databases()).map(({ name }) => name)]))()"""


class ConnectorPageTests(PagesTestCase):
    """C{/connectors/…}: the page leads through it, and never holds the secret."""

    seen: list[str]

    async def test_life(self) -> None:
        """A connector is connected by the page's command, tested, rebound to another scope, tested, and revoked.

        The secret is nowhere: in no page, request of the page, storage, file, log or record.
        """
        self.seen = []
        await self.add(self.check_file())
        page = await self.opened_connector()
        await self.connect(page)
        await self.try_it(page, "Completed")
        await self.rebind(page)
        await self.revoke(page)
        self.assert_nowhere(page, await self.audit())
        self.assertEqual([each for each in page.problems if "/v1/actions/check-slack/run" not in each], [])

    async def test_refused(self) -> None:
        """A test that the service refuses says why at once, and stands on the page with a link to its run."""
        await self.add(self.check_file())
        page = await self.opened_connector()
        self.workspace.token, token = "xoxb-another-token", self.workspace.token
        await page.click(_TEST)
        await page.shows("invalid_auth")
        await page.until("document.querySelector('main .chip.bad')?.textContent === 'Failed'")
        self.workspace.token = token
        await page.click("main td + td a, main th a[href^='/runs/']")
        await page.shows("Activity")

    async def test_slow(self) -> None:
        """A test that the service lets wait is shown as running, and the daemon is not said to be silent."""
        await self.add(self.check_file())
        page = await self.opened_connector()
        self.workspace.next = [Behaviour(held=True)]
        await page.evaluate(_SAYS_ANSWERED)
        await page.click(_TEST)
        await page.shows("Running")
        await page.until("window.answered")  # which it is before the page gives up
        self.assertNotIn("did not respond", await page.text("#main"))
        self.workspace.release.callback(None)
        await page.until("document.querySelector('main tbody .chip.good')?.textContent === 'Completed'")
        self.assertEqual(page.problems, [])

    async def opened_connector(self) -> Page:
        """The connector's page, reached as a person does."""
        page = await self.entered()
        await self.use(page, 'nav a[href="/connectors"]')
        await self.use(page, 'main a[href$="me%2Fslack"]')
        await page.shows("What an agent can do")
        return page

    async def connect(self, page: Page) -> None:
        """Revoke what is bound; then the command that the page shows and copies binds it, and the page follows."""
        await self.confirm(page, _REVOKE)
        await page.shows("Needs a credential")
        await self.look_at(page, "connector-connect")
        await page.evaluate(_COPIES)
        await self.use(page, "button[data-copy]")
        await page.until(f"window.copied === 'aileron credential setup {CONNECTOR}'")
        await page.shows("Copied")
        await self.bind()
        await page.shows("Connected")
        await self.look_at(page, "connector-connected")

    async def try_it(self, page: Page, ending: str) -> None:
        """Press the test: it runs as an action does, and its outcome is on the page."""
        before = len(self.asked())
        await self.use(page, _TEST)
        await until(self.reactor, lambda: len(self.asked()) > before, 30, "a test of the connection")
        last = "document.querySelector('main tbody a[href^=\"/runs/\"]').closest('tr').textContent"
        await page.until(f"{last}.includes('{ending}')")
        runs = (await self.told("runs", "list"))["items"]
        self.assertEqual((runs[0]["action"], runs[0]["session_id"]), (CHECK, None))

    def asked(self) -> list[str]:
        """The tests that reached the service."""
        return [each.path for each in self.workspace.requests if each.path == "/api/auth.test"]

    async def rebind(self, page: Page) -> None:
        """The connector asks for one more host: the page shows both scopes, and seals it for that once confirmed."""
        file = self.state.connectors / "slack.toml"
        file.write_text(file.read_text().replace('hosts = ["', 'hosts = ["other.invalid:443", "'))
        await self.operator("connector", "trust", CONNECTOR, "--yes")
        await page.shows("Asked for now")
        await self.look_at(page, "connector-rebind")
        await self.use(page, _TEST)
        await page.until("document.querySelector('main .chip.bad + .answer')?.textContent.includes('rebind')")
        await self.confirm(page, _REBIND)
        await page.shows("Connected")
        await self.try_it(page, "Completed")
        await self.look_at(page, "connector-tested")

    async def revoke(self, page: Page) -> None:
        """Revoke says at first which actions stop working, and then does it."""
        await self.confirm(page, _REVOKE, f"Stops working: {CHECK}, {UNGATED}")
        await page.shows("Needs a credential")
        found = kinds(await self.audit())
        self.assertLess({"binding.created", "binding.rebound", "binding.revoked"}, set(found))

    async def look_at(self, page: Page, name: str) -> None:
        """Keep what the page holds, and look at it."""
        self.seen.append(await page.evaluate(_KEPT))
        await super().look_at(page, name)

    def assert_nowhere(self, page: Page, audit: Any) -> None:
        """Fail if the secret is in anything that was seen, asked or written."""
        self.assertEqual(len(self.seen), 4)
        said = json.dumps([self.seen, page.requests, page.problems, audit], default=str).encode()
        found = [*canary.in_bytes("the page", said, self.workspace.token)]
        found += canary.in_files(self.home.root, self.workspace.token)
        self.assertEqual(found, [])
