"""A person signs in at a service with a real browser, for a credential that the command line then keeps."""

from pathlib import Path

from tests.functional import canary
from tests.functional.chromium import Chromium, Page
from tests.functional.operated import CONNECTOR, GATED, PASSPHRASE
from tests.functional.process import Running
from tests.functional.reactor import until
from tests.functional.test_credentials import NAME, OAuth2TestCase

_HISTORY = "Page.getNavigationHistory"


class SigningInTests(OAuth2TestCase):
    """A client with a secret, at a server that asks the person."""

    def write_connector(self, more: str = "") -> None:
        """Have the connector say where a person signs in."""
        super().write_connector(
            f'authorize_url = "{self.server.authorize_url}"\nscopes = ["read", "write"]\n'
            f'token_endpoint_auth_method = "client_secret_post"\ndevice_url = "{self.server.device_url}"'
        )

    async def prepare(self) -> Page:
        """A home without a credential, and a tab."""
        await self.operator("vault", "init")
        self.write_connector()
        await self.add_actions()
        browser = await Chromium.lend(self.reactor)
        self.finally_(browser.give_back)
        return await browser.page()

    async def signing_in(self, page: Page, *command: str) -> Running:
        """A command that has sent this tab to the server's page."""
        seen, program = self.home.root / "seen", self.home.root / "browser"
        seen.unlink(missing_ok=True)
        program.write_text(f'#!/bin/sh\nprintf "%s" "$*" > {seen}.part && mv {seen}.part {seen}\n')
        program.chmod(0o700)
        running = self.on_terminal(*command, BROWSER=str(program))
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        await running.expect("Client ID: ")
        running.send("aileron")
        await until(self.reactor, seen.exists, 30, f"a page to open: {running!r}")
        (self.file,) = (Path(each) for each in seen.read_text().split())
        await page.open(self.file.as_uri())
        await page.shows("Allow it?")
        return running

    async def confirmed(self, running: Running) -> str:
        """Enter the client's secret and confirm; what was shown before."""
        await running.expect("Client secret .not shown.: ")
        running.send(self.grants.secret)
        await running.expect("Save this credential")
        running.send("y")
        self.assertEqual((await running.finish(60)).exit_code, 0, running.output)
        return running.output

    def assert_told_nobody(self, running: Running) -> None:
        """No code, verifier, state or token is in a file or, but for the printed address, on the terminal."""
        self.assert_nowhere()
        self.assertEqual([each for each in self.file.parent.iterdir() if each.name.startswith("open-")], [])
        for secret in self.grants.spent:
            self.assertEqual(canary.in_files(self.home.aileron, secret), [])
        shown = "".join(line for line in running.output.splitlines(keepends=True) if "/authorize?" not in line)
        for secret in (self.grants.secret, *self.grants.given, *(each for each in self.grants.spent if each)):
            self.assertNotIn(secret, shown)

    async def test_setup(self) -> None:
        """What the browser brings back is exchanged, confirmed, kept and used; the code stays in no history."""
        page = await self.prepare()
        self.grants.scope = "read"
        running = await self.signing_in(page, "binding", "setup", CONNECTOR)
        await page.click("#yes")
        await page.shows("You can close this window")
        shown = await self.confirmed(running)
        self.assertIn("Not given, although the connector asks for them: write.", shown)
        history = await page.call(_HISTORY)
        self.assertNotIn("code=", str([each["url"] for each in history["entries"]]))
        self.assertEqual(await page.evaluate("location.search"), "")
        self.assertFalse(self.file.exists())
        session = await self.session()
        self.assertEqual((await self.post(session)).status, 200)
        (binding,) = (await self.told("binding", "list"))["items"]
        self.assertEqual(binding["state"]["reason"], "It was not given: write.")
        self.assert_told_nobody(running)

    async def test_interrupted(self) -> None:
        """Ctrl-C at the passphrase, which another process asks for, ends the command without a word."""
        await self.prepare()
        running = self.on_terminal("credential", "setup", CONNECTOR)
        await running.expect("Passphrase of the vault: ")
        self.assertEqual((await running.interrupt()).exit_code, 130)
        self.assertEqual(running.output.split("Passphrase of the vault: ")[1].replace("^C", "").strip(), "")

    async def test_renew(self) -> None:
        """When a credential needs the person, signing in again lets the approved run that waits for it go on."""
        page = await self.prepare()
        await self.bind_document()
        session = await self.session()
        self.grants.next = ["gone"]
        asked = (await self.run_action(session, GATED)).body["approval_id"]
        await self.approve(asked)
        await self.run_state(asked, "awaiting_credential")
        running = await self.signing_in(page, "binding", "renew", NAME)
        await page.click("#yes")
        await self.confirmed(running)
        await self.run_state(asked, "completed")
        self.assert_told_nobody(running)

    async def on_device(self, *command: str) -> Running:
        """Sign in on another device, and confirm."""
        running = self.on_terminal("binding", *(command or ("setup", CONNECTOR)), "--device")
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        await running.expect("Client ID: ")
        running.send("aileron")
        await running.expect("Client secret .not shown.: ")
        running.send(self.grants.secret)
        await running.expect("https://login.invalid/device")
        await running.expect("WDJB-MJHT")
        await self.pause(2)
        self.grants.allow_devices()
        await running.expect("Save this credential")
        running.send("y")
        self.assertEqual((await running.finish(60)).exit_code, 0, running.output)
        return running

    async def test_scopes(self) -> None:
        """A person enters a code on another device, and is waited for; what no trusted action needs is not asked for.

        What the server gives all the same is told.
        """
        self.file = self.state.connectors / "none"
        await self.operator("vault", "init")
        self.write_connector()
        path = self.state.connectors / "slack.toml"
        for operation, scope in (("post_message", "write"), ("list_channels", "read")):
            head = f"[operations.{operation}]\n"
            path.write_text(path.read_text().replace(head, f'{head}scopes = ["{scope}"]\n'))
        await self.add_actions()
        self.grants.scope = "read write"
        running = await self.on_device()
        self.assertEqual((await self.post(await self.session())).status, 200)
        self.assert_told_nobody(running)
        self.assertEqual(self.grants.wanted, ["write"])
        (binding,) = (await self.told("binding", "list"))["items"]
        self.assertEqual((binding["scopes"], binding["state"]["reason"]), (["write"], None))
        listed = await self.operator("binding", "list")
        self.assertIn("It was given more than your trusted actions need: read.", listed.stderr)
        self.grants.scope = "read"
        await self.on_device("renew", NAME)
        (binding,) = (await self.told("binding", "list"))["items"]
        self.assertEqual(binding["state"]["reason"], "It was not given: write.")

    async def test_mixed_up(self) -> None:
        """An answer with another state changes nothing; Ctrl-C ends the wait, and nothing is kept or listens."""
        page = await self.prepare()
        self.grants.answer = {"state": "another"}
        running = await self.signing_in(page, "binding", "setup", CONNECTOR)
        await page.click("#yes")
        await page.shows("Aileron does not wait for this")
        self.assertEqual((await running.interrupt()).exit_code, 130)
        self.grants.answer = {"iss": "https://evil.example"}
        running = await self.signing_in(page, "binding", "setup", CONNECTOR)
        await page.click("#yes")
        self.assertEqual((await running.finish(60)).exit_code, 1)
        self.assertIn("another authorization server", running.output)
        self.assertEqual((await self.told("binding", "list"))["items"], [])
        self.assertEqual(len(self.grants.codes), 2, "a code was exchanged")
        self.assert_told_nobody(running)
