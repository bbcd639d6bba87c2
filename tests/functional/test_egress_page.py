"""Deciding about a sandboxed agent's hosts in a real browser, by keyboard alone."""

import socket

from twisted.internet.threads import deferToThread

from tests.functional.browsed import PagesTestCase
from tests.functional.operated import kinds

_TICKET_LINE = "AILERON-EGRESS {ticket}\r\nCONNECT {host} HTTP/1.1\r\n\r\n"


class EgressPageTests(PagesTestCase):
    """A session that tries hosts, and the operator who sees them come."""

    async def tried(self, host: str) -> str:
        """The first line of the proxy's answer to a session that wants to connect to a host."""
        found = self.home.discovery()
        url = f"{found['url']}/v1/sessions/{self.agent.id}/egress"
        opened = (await self.web.ask("POST", url, found["launch_key"], {"allow": ["project"]})).body

        def connect() -> bytes:
            with socket.create_connection(("127.0.0.1", opened["port"]), 20) as each:
                each.sendall(_TICKET_LINE.format(ticket=opened["ticket"], host=host).encode())
                return each.recv(4096)

        return (await deferToThread(connect)).split(b"\r\n")[0].decode()

    async def test_decide(self) -> None:
        """A refused host appears at once, and each of the three answers does what it says; a lasting one asks twice."""
        page = await self.entered("/approvals")
        await page.shows("No pending approvals")
        for host in ("a.example:443", "b.example:443", "c.example:443"):
            self.assertIn(" 403 ", await self.tried(host))
            await page.shows(host)
        await self.keep(page, "hosts")
        deny, always, session = ("c", "deny", self.use), ("b", "always", self.confirm), ("a", "session", self.use)
        for name, answer, decide in (deny, always, session):
            self.assertIn(f"{name}.example:443", await page.text("#egress li:first-child"))
            await decide(page, f"#egress li:first-child button[id^={answer}-]")
            await page.until(f"!document.body.textContent.includes('{name}.example:443')", 20)
        await page.shows("No pending approvals")
        answers = [(await self.tried(f"{each}.example:443")).split()[1] for each in "abc"]
        self.assertEqual(answers, ["502", "502", "403"])
        self.assertIn("b.example:443", (self.state.root / "egress.toml").read_text())
        found = kinds(await self.audit())
        self.assertEqual((found.count("egress.allowed"), found.count("egress.denied")), (2, 1))
        await self.use(page, 'nav a[href="/sessions"]')
        await self.use(page, f'main a[href="/sessions/{self.agent.id}"]')
        row = "[...document.querySelectorAll('main tr')].find((each) => each.innerText.includes('a.example:443'))"
        button = await page.until(f"{row}?.querySelector('button[id^=deny-]')?.id")
        await self.use(page, f"#{button}")
        await page.until(f"{row}?.querySelector('.chip.bad') !== null")
        self.assertIn(" 403 ", await self.tried("a.example:443"))
        self.assertEqual(page.problems, [])
