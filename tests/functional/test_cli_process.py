"""The installed commands against a real daemon: terminals, inherited descriptors, signals, and what is left behind."""

import json
import os
import re
import signal
import stat
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.threads import deferToThread

from tests.functional import canary
from tests.functional.browser import Browser, come
from tests.functional.case import FunctionalTestCase
from tests.functional.commands import command_line
from tests.functional.process import Command, Finished
from tests.functional.reactor import until
from tests.functional.slack import FakeSlack, refusal

PASSPHRASE = "Canary battery staple 42"
KEY = "xoxb-canary-7f3a"

CONNECTOR = """
[connector]
name = "local://me/chat"
version = "1.0.0"
base_url = {{ default = "{url}", bindable = false }}
hosts = ["{host}"]
private_network = true

[credential]
kind = "api_key"
header = "Authorization"
format = "Bearer {{key}}"

[operations.post_message]
method = "POST"
path = "/api/chat.postMessage"
json = {{ channel = "${{in.channel}}", text = "${{in.text}}", client_msg_id = "${{effect.uuid}}" }}
effect = "write"
error = {{ when = "ok == false", class = "external_api_error", message = "error" }}
result = {{ ts = "ts" }}
"""

ACTION = """+++
name = "ship-update"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/chat"
version = "1.0.0"
capabilities = ["post_message"]

[[inputs]]
name = "summary"
type = "string"
multiline = true
description = "What was shipped"

[[execute]]
id = "post"
connector = "local://me/chat"
op = "post_message"
inputs = { channel = "#engineering", text = "${args.summary}" }

[approval]
required = true
+++
# Ship update

Tells the team that something was shipped.
"""


class CommandLineCase(FunctionalTestCase):
    """Runs `aileron` in the test's home; the daemon is stopped at the end."""

    def setUp(self) -> None:
        """Stop what the test starts."""
        super().setUp()
        self.finally_(self._stop)

    async def aileron(self, *arguments: str, **environment: str) -> Finished:
        """A command without a terminal or a passphrase."""
        return await self.run_command(self.home.script("aileron", *arguments, **environment))

    async def operator(self, *arguments: str) -> Finished:
        """A command that is given the passphrase by a descriptor."""
        return await self.run_command(self.home.with_passphrase(PASSPHRASE, "aileron", *arguments))

    async def prepare(self, *arguments: str, **fed: str) -> None:
        """A command that is not what the test is about, in no process of its own."""
        given = {"--passphrase-fd": PASSPHRASE, **fed}
        done = await command_line(self.reactor).run(arguments, self.home.environment(), given)
        self.assertEqual(done.exit_code, 0, done)

    async def with_action(self) -> FakeSlack:
        """A daemon with an open vault, a gated action, and a bound key for the service that it talks to."""
        slack = self.slack(KEY)
        await self.prepare("vault", "init")
        connector = CONNECTOR.format(url=slack.url, host=slack.url.removeprefix("http://"))
        (self.home.aileron / "connectors" / "chat.toml").write_text(connector)
        file = self.home.project / "ship-update.md"
        file.write_text(ACTION)
        await self.prepare("action", "add", str(file), "--yes")
        setup = self.home.with_passphrase(
            PASSPHRASE, "aileron", "binding", "setup", "local://me/chat", "--secret-fd", "4"
        )
        await self.ok(self.run_command(attrs.evolve(setup, feeds={**setup.feeds, 4: KEY.encode()})))
        await self._until_offered()
        return slack

    async def ok(self, finishing: Any) -> str:
        """Standard output of a command that succeeds."""
        finished = await finishing
        self.assertEqual(finished.exit_code, 0, finished)
        return str(finished.stdout)

    async def asked(self, summary: str) -> str:
        """The id of a run that waits for approval."""
        finished = await self.aileron("action", "run", "ship-update", "--arg", f"summary={summary}", "--json")
        self.assertEqual(finished.exit_code, 75, finished)
        return str(json.loads(finished.stdout)["approval_id"])

    async def _until_offered(self) -> None:
        listed = ""
        while "ship-update" not in listed:
            listed = await self.ok(self.aileron("action", "list"))

    async def _stop(self) -> None:
        await command_line(self.reactor).run(("daemon", "stop"), self.home.environment(), {})


class DaemonTests(CommandLineCase):
    async def test_life(self) -> None:
        """Starting is idempotent, the home is private, and stopping leaves nothing that could mislead."""
        first = json.loads(await self.ok(self.aileron("daemon", "start", "--json")))
        again = json.loads(await self.ok(self.aileron("daemon", "start", "--json")))
        self.assertEqual((again["pid"], again["vault_state"]), (first["pid"], "missing"))
        self.assertEqual(stat.S_IMODE(self.home.aileron.stat().st_mode), 0o700)
        self.assertNotIn(self.home.discovery()["launch_key"], json.dumps([first, again]))
        await self.ok(self.aileron("daemon", "stop"))
        self.assertFalse((self.home.aileron / "daemon.json").exists())
        self.assertEqual((await self.aileron("daemon", "status")).exit_code, 1)

    async def test_environment(self) -> None:
        """The daemon gets nothing of our environment but what is allowed, and works in its home."""
        await self.prepare("vault", "init")
        await self.ok(self.aileron("daemon", "stop"))
        found = await self.aileron(
            "daemon", "start", AILERON_VAULT_PASSPHRASE=PASSPHRASE, PYTHONPATH="/nowhere", SECRET=KEY
        )
        self.assertEqual(found.exit_code, 0, found)
        pid = self.home.discovery()["pid"]
        environ = Path(f"/proc/{pid}/environ").read_bytes()
        self.assertNotIn(PASSPHRASE.encode(), environ + Path(f"/proc/{pid}/cmdline").read_bytes())
        self.assertNotIn(KEY.encode(), environ)
        self.assertNotIn(b"PYTHONPATH", environ)
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), str(self.home.aileron))
        self.assertEqual(await self.ok(self.aileron("vault", "status")), "unlocked\n")

    async def test_cannot_start(self) -> None:
        """A daemon that cannot start says why at once, and the exit code is 1."""
        self.home.aileron.mkdir(mode=0o700)
        (self.home.aileron / "aileron.db").write_bytes(b"this is no database, and never was one" * 20)
        found = await self.aileron("daemon", "start")
        self.assertEqual(found.exit_code, 1, found)
        self.assertIn("The daemon ended at once (status 1)", found.stderr)
        self.assertIn("cannot start", found.stderr)

    async def test_killed(self) -> None:
        """After a kill -9 the file that is left misleads nobody, and the next start works."""
        await self.ok(self.aileron("daemon", "start"))
        os.kill(self.home.discovery()["pid"], signal.SIGKILL)
        found = await self.aileron("status")
        self.assertEqual(found.exit_code, 1, found)
        self.assertIn("No daemon runs", found.stderr)
        await self.ok(self.aileron("daemon", "start"))


class VaultTests(CommandLineCase):
    async def test_words(self) -> None:
        """On a terminal Enter gives six words; they open the vault; the daemon runs unlocked."""
        making = self.start(self.home.on_terminal("aileron", "vault", "init"))
        await making.expect("New passphrase: ")
        making.send("")
        words = (await making.expect(r"\r\n    ([a-z]+(?: [a-z]+){5})\r\n")).group(1)
        await making.expect("The same again: ")
        making.send(words)
        await making.expect("vault unlocked")
        self.assertEqual((await making.finish(30)).exit_code, 0)
        listing = self.start(self.home.on_terminal("aileron", "approval", "list"))
        await listing.expect("Passphrase of the vault: ")
        listing.send(words)
        await listing.expect("Nothing waits for you.")
        self.assertEqual((await listing.finish(30)).exit_code, 0)

    async def test_weak(self) -> None:
        """A weak passphrase makes no vault."""
        weak = self.home.with_passphrase("password1234", "aileron", "vault", "init")
        self.assertEqual((await self.run_command(weak)).exit_code, 1)
        self.assertFalse((self.home.aileron / "secrets.json").exists())

    async def test_unlock(self) -> None:
        """A locked daemon is replaced by an unlocked one at the same addresses; a wrong passphrase replaces nothing."""
        await self.prepare("vault", "init")
        await self.prepare("vault", "lock")
        locked = self.home.discovery()
        wrong = self.home.with_passphrase("not the passphrase 1", "aileron", "vault", "unlock")
        self.assertEqual((await self.run_command(wrong)).exit_code, 1)
        self.assertEqual(self.home.discovery()["pid"], locked["pid"])
        await self.ok(self.operator("vault", "unlock"))
        unlocked = self.home.discovery()
        self.assertNotEqual(unlocked["pid"], locked["pid"])
        self.assertEqual((unlocked["url"], unlocked["operator_url"]), (locked["url"], locked["operator_url"]))

    async def test_unattended(self) -> None:
        """Environment and file unlock, and decide nothing."""
        await self.prepare("vault", "init")
        await self.ok(self.aileron("daemon", "stop"))
        file = self.home.root / "passphrase"
        file.write_text(PASSPHRASE)
        file.chmod(0o600)
        await self.ok(self.aileron("vault", "unlock", "--passphrase-file", str(file)))
        found = await self.aileron("approval", "list", AILERON_VAULT_PASSPHRASE=PASSPHRASE)
        self.assertEqual(found.exit_code, 1, found)
        self.assertIn("--passphrase-fd", found.stderr)

    async def test_interrupted(self) -> None:
        """Ctrl-C at the passphrase ends the command quietly."""
        asking = self.start(self.home.on_terminal("aileron", "vault", "init"))
        await asking.expect("New passphrase: ")
        asking.send("\x03")
        found = await asking.finish(30)
        self.assertEqual(found.exit_code, 130, found)
        self.assertNotIn("Traceback", found.stdout)


class DecisionTests(CommandLineCase):
    async def test_approve_on_terminal(self) -> None:
        """All is shown, one yes sends it with the bound key, and the outcome is told."""
        slack = await self.with_action()
        run = await self.asked("It flies.\nReally\x1b[2J.")
        deciding = self.start(self.home.on_terminal("aileron", "approval", "approve", run))
        await deciding.expect("Passphrase of the vault: ")
        deciding.send(PASSPHRASE)
        await deciding.expect("│ Really␛\\[2J\\.")
        await deciding.expect(re.escape(f"POST {slack.url}/api/chat.postMessage"))
        await deciding.expect(r"\[y/N\] ")
        self.assertEqual(slack.workspace.requests, [])
        deciding.send("y")
        await deciding.expect("Approved, and done:")
        found = await deciding.finish(30)
        self.assertEqual(
            (found.exit_code, [each.text for each in slack.workspace.messages]), (0, ["It flies.\nReally\x1b[2J."])
        )
        self.assertNotIn(PASSPHRASE, found.stdout)
        self.assertNotIn("\x1b[2J", found.stdout)
        self.assertIn("approval.approved", await self.ok(self.operator("audit", "list", "--run", run)))
        self.assertEqual(await self._leaks(), [])

    async def test_interrupted(self) -> None:
        """Ctrl-C at the question decides nothing and logs out."""
        await self.with_action()
        run = await self.asked("It flies.")
        deciding = self.start(self.home.on_terminal("aileron", "approval", "approve", run))
        await deciding.expect("Passphrase of the vault: ")
        deciding.send(PASSPHRASE)
        await deciding.expect(r"\[y/N\] ")
        deciding.send("\x03")
        self.assertEqual((await deciding.finish(30)).exit_code, 130)
        self.assertIn("pending_approval", await self.ok(self.operator("approval", "show", run)))

    async def test_deny_and_fail(self) -> None:
        """A denial sends nothing; a refusal of the service is told as one."""
        slack = await self.with_action()
        denied = await self.asked("No.")
        await self.ok(self.operator("approval", "deny", denied, "--reason", "too loud"))
        self.assertEqual(slack.workspace.requests, [])
        self.assertIn("too loud", await self.ok(self.operator("runs", "show", denied)))
        slack.workspace.next = [refusal("channel_not_found")]
        failed = await self.operator("approval", "approve", await self.asked("Yes."), "--yes")
        self.assertEqual(failed.exit_code, 1, failed)
        self.assertIn("channel_not_found", failed.stderr)

    async def test_changed_meanwhile(self) -> None:
        """An answer to what is no longer there decides nothing and shows the difference."""
        slack = await self.with_action()
        run = await self.asked("It flies.")
        deciding = self.start(self.home.on_terminal("aileron", "approval", "approve", run))
        await deciding.expect("Passphrase of the vault: ")
        deciding.send(PASSPHRASE)
        await deciding.expect(r"\[y/N\] ")
        file = self.home.project / "ship-update.md"
        file.write_text(ACTION.replace("#engineering", "#general"))
        await self.ok(self.operator("action", "add", str(file), "--force", "--yes"))
        deciding.send("y")
        await deciding.expect("It changed while you looked")
        await deciding.expect("general")
        self.assertEqual((await deciding.finish(30)).exit_code, 1)
        self.assertEqual(slack.workspace.requests, [])

    async def _leaks(self) -> list[str]:
        """Where in the home the key or the passphrase stands in clear."""
        found: list[str] = []
        for word in (KEY, PASSPHRASE):
            found += [str(each) for each in await deferToThread(canary.in_files, self.home.aileron, word)]
        return found


class LaunchTests(CommandLineCase):
    """An agent that is a few lines of shell stands for OpenCode."""

    def launched(self, *arguments: str, terminal: bool = True) -> Command:
        """The launch of it."""
        programs = self.home.root / "programs"
        programs.mkdir(exist_ok=True)
        agent = programs / "opencode"
        agent.write_text('#!/bin/sh\necho "agent got $*"\nenv | cut -d= -f1 | grep AILERON\nexit 7\n')
        agent.chmod(0o700)
        path = f"{programs}:{self.home.environment()['PATH']}"
        make = self.home.on_terminal if terminal else self.home.script
        return make("aileron", "launch", "opencode", *arguments, PATH=path)

    async def test_from_nothing(self) -> None:
        """Without a vault the person makes one on the way; the exit code is the agent's; it gets none of ours."""
        launching = self.start(self.launched("--", "-x", "--json"))
        for prompt in ("New passphrase: ", "The same again: "):
            await launching.expect(prompt)
            launching.send(PASSPHRASE)
        await launching.expect("agent got -x --json")
        found = await launching.finish(30)
        self.assertEqual(found.exit_code, 7, found)
        self.assertNotIn("AILERON_HOME", found.stdout)
        self.assertIn("ended", await self.ok(self.operator("sessions", "list")))

    async def test_locked(self) -> None:
        """A locked vault is unlocked on the way; where nobody can be asked the agent starts with a warning."""
        await self.prepare("vault", "init")
        await self.prepare("vault", "lock")
        found = await self.run_command(self.launched(terminal=False))
        self.assertEqual((found.exit_code, "The vault is locked" in found.stderr), (7, True), found)
        launching = self.start(self.launched())
        await launching.expect("Passphrase of the vault: ")
        launching.send(PASSPHRASE)
        await launching.expect("agent got")
        self.assertEqual((await launching.finish(30)).exit_code, 7)
        self.assertEqual(await self.ok(self.aileron("vault", "status")), "unlocked\n")

    async def test_nobody(self) -> None:
        """Without a vault and without a person nothing is started."""
        found = await self.run_command(self.launched(terminal=False))
        self.assertEqual((found.exit_code, "aileron vault init" in found.stderr), (1, True), found)
        self.assertEqual((await self.aileron("daemon", "status")).exit_code, 1)

    async def test_interrupted(self) -> None:
        """Ctrl-C at the passphrase ends all of it, quietly."""
        launching = self.start(self.launched())
        await launching.expect("New passphrase: ")
        launching.send("\x03")
        found = await launching.finish(30)
        self.assertEqual(found.exit_code, 130, found)
        for word in ("Traceback", "Unhandled", "agent got"):
            self.assertNotIn(word, found.stdout)


class OpenTests(CommandLineCase):
    async def opened(self) -> str:
        """The page that a browser was given, while the command waits for it."""
        await self.prepare("vault", "init")
        seen, program = self.home.root / "seen", self.home.root / "browser"
        program.write_text(f'#!/bin/sh\nls -l "$1" > {seen}\ncat "$1" >> {seen}\n')
        program.chmod(0o700)
        self.opening = self.start(self.home.on_terminal("aileron", "open", BROWSER=str(program)))
        await self.opening.expect("Passphrase of the vault: ")
        self.opening.send(PASSPHRASE)
        await until(self.reactor, lambda: seen.exists() and "</html>" in seen.read_text(), 30, "the browser")
        return seen.read_text()

    async def test_browser(self) -> None:
        """The browser is given a private file by its path, is in when its two words were typed, and stays in."""
        page = await self.opened()
        self.assertTrue(page.startswith("-rw-------"), page)
        browser = await deferToThread(come, page)
        assert isinstance(browser, Browser)
        url = f"{self.home.discovery()['operator_url']}/v1/action-approvals"
        self.assertEqual((await deferToThread(browser.ask, url))[0], 401)
        await self.opening.expect("The two words that your page at .* shows: ")
        self.assertEqual(list((self.home.aileron / "run").iterdir()), [])
        self.opening.send((await deferToThread(browser.words)).upper())
        found = await self.opening.finish(30)
        self.assertEqual(found.exit_code, 0, found)
        status, answer = await deferToThread(browser.ask, url)
        self.assertEqual((status, answer["items"]), (200, []))

    async def test_interrupted(self) -> None:
        """Ctrl-C while it waits removes the file."""
        await self.opened()
        found = await self.opening.signal(signal.SIGINT)
        self.assertEqual(found.exit_code, 130, found)
        self.assertEqual(list((self.home.aileron / "run").iterdir()), [])
