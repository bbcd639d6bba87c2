"""Setup: each step in order, what is there already kept, and nothing half done that could act."""

from __future__ import annotations

import attrs

from aileron.cli._context import CliContext
from aileron.cli.actions.services import find_services, read_service
from aileron.connectors import check as connector_faults
from aileron.manifests import check as action_faults
from tests.cli.daemon import PASSPHRASE
from tests.cli.test_binding import binding
from tests.cli.test_trust import TrustCase, item, word

SERVICES = list(find_services())
NUMBER = str(SERVICES.index("slack") + 1)
SLACK = [each.name for each in read_service("slack").actions if each.name in read_service("slack").chosen]
OTHER = str(len(SERVICES) + 1)
REST = (OTHER, "https://tracker.example/api/issues", "", "Opens an issue.", "title, text", "")


class SetupTests(TrustCase):
    """C{aileron setup} at a terminal."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.site.answer("GET", "/v1/bindings", {"items": []})
        scope = {
            "hosts": ["slack.com:443"],
            "base_url": "https://slack.com",
            "header": "Authorization",
            "format": "{key}",
        }
        self.site.answer("POST", "/v1/bindings/target", {"scope": scope})
        self.site.answer("POST", "/v1/bindings/setup", lambda body: binding(connector=body["connector"]))
        checked = {"status": "completed", "run_id": "R", "result": {"output": {"user": "bot", "team": "Example"}}}
        self.site.answer("POST", "/v1/actions/check-slack/run", checked)
        self.secret = lambda prompt, _descriptor: self._asked(prompt)

    def cli_context(self) -> CliContext:
        """A context that finds one agent."""
        programs = self.home.root / "bin"
        programs.mkdir(exist_ok=True)
        (programs / "goose").write_text("#!/bin/sh\n")
        (programs / "goose").chmod(0o700)
        return attrs.evolve(super().cli_context(), environ={**self.environ, "PATH": str(programs)})

    def played(self, *answers: str) -> tuple[int, str, str]:
        """Run it with these answers; the vault is there."""
        self.home.secrets.write_text("{}")
        self.typed = [*answers]
        return self.command("setup")

    def listed(self, *names: str, needs: tuple[str, ...] = ()) -> None:
        """Have the daemon list the actions, and what they need, as new."""
        actions = [item(name, path=str(self.home.actions / f"{name}.md"), needs=needs) for name in names]
        self.lying(*(item(each, "connector") for each in needs), *actions)

    def test_slack(self) -> None:
        """A service that ships is chosen by its number: its usual actions are trusted, and its credential bound."""
        self.listed(*SLACK)
        code, out, err = self.played(NUMBER, PASSPHRASE, "y", "xoxb-canary")
        self.assertEqual((code, self.typed, self.sent()), (0, [], [[word(name) for name in SLACK]]), err)
        (bound,) = self.site.bodies("POST", "/v1/bindings/setup")
        self.assertEqual((bound["connector"], bound["service"]), ("builtin://slack", "slack"))
        self.assertEqual((bound["secret"], "canary" in out), ("xoxb-canary", False))
        for part in ("Slack (chat", "chat:write", "post-message", "check-slack", "aileron launch goose\n"):
            self.assertIn(part, out)
        self.assertIn("aileron connect slack", err)
        self.assertNotIn("aileron launch codex", out)

    def test_rest(self) -> None:
        """For a service of one's own a sound connector and a sound action are written, and trusted at once."""
        self.listed("tracker-create", needs=("local://me/tracker",))
        code, _, _ = self.played(*REST, PASSPHRASE, "y", "canary")
        self.assertEqual((code, self.typed), (0, []))
        self.assertEqual(self.sent(), [[word("local://me/tracker", "connector"), word("tracker-create")]])
        connector = (self.home.connectors / "tracker.toml").read_text()
        self.assertIn('json = { title = "${in.title}", text = "${in.text}" }', connector)
        self.assertIn('format = "Bearer {key}"', connector)
        self.assertNotIn("private_network", connector)
        self.assertIn("\nOpens an issue.\n", (self.home.actions / "tracker-create.md").read_text())
        self.assertEqual(connector_faults(self.home.connectors / "tracker.toml"), [])
        self.assertEqual(action_faults(str(self.home.actions / "tracker-create.md")), [])

    def test_asked_again(self) -> None:
        """An answer that cannot be is asked for again, and why; nothing is written before all are good."""
        self.home.connectors.mkdir(exist_ok=True)
        (self.home.connectors / "tracker.toml").write_text("")
        self.listed("mine-create", needs=("local://me/mine",))
        wrong = {
            "Number": ("0", "four", "\u0663"),
            "URL": ("http://tracker.example/x", "https://tracker.example", "https://a:b@tracker.example/x"),
            "Name": ("tracker", "../x", "A"),
            "What": ("", "# x", "a\u202eb"),
            "Fields": ("a,a", "a b", ","),
            "Header": ("X Y", "X\n"),
        }
        good = (OTHER, "http://127.0.0.1:8080/x", "mine", "Does it.", "title", "X-Key")
        answers = [answer for bad, each in zip(wrong.values(), good, strict=True) for answer in (*bad, each)]
        answers.remove("X\n")  # the terminal's own end of a line
        code, _, err = self.played(*answers, PASSPHRASE, "y", "canary")
        self.assertEqual((code, self.typed), (0, []))
        self.assertEqual(err.count("The answer "), len(answers) - len(good))
        connector = (self.home.connectors / "mine.toml").read_text()
        self.assertIn('header = "X-Key"\nformat = "{key}"', connector)
        self.assertIn("private_network = true", connector)
        self.assertEqual(connector_faults(self.home.connectors / "mine.toml"), [])

    def test_again(self) -> None:
        """What is there is kept: a changed file of that name, trust, and a binding; one that does not fit is told."""
        self.listed(*SLACK)
        self.played(NUMBER, PASSPHRASE, "y", "xoxb-canary")
        path = self.home.actions / "post-message.md"
        path.write_text(path.read_text().replace("The message", "The text"))
        self.lying(*(item(name, state="trusted", path=str(path.with_name(f"{name}.md"))) for name in SLACK))
        self.site.answer("GET", "/v1/bindings", {"items": [binding(connector="builtin://slack", fits=False)]})
        code, out, err = self.played(NUMBER, PASSPHRASE)
        self.assertEqual((code, self.typed, len(self.sent())), (0, [], 1))
        self.assertIn("The text", path.read_text())
        self.assertIn("is already there", out)
        self.assertIn("aileron binding rebind", err)
        self.assertEqual(len(self.site.bodies("POST", "/v1/bindings/setup")), 1)

    def test_refused(self) -> None:
        """Without a yes nothing is trusted and no credential is asked for; a file with errors ends it before that."""
        self.listed(*SLACK)
        code, _, err = self.played(NUMBER, PASSPHRASE, "n")
        self.assertEqual((code, "Nothing was trusted" in err), (1, True))
        (self.home.actions / "post-message.md").write_text("+++\n")
        code, _, err = self.played(NUMBER)
        self.assertEqual((code, "post-message.md has errors" in err, self.sent()), (1, True, []))
        self.assertEqual(self.site.bodies("POST", "/v1/bindings/setup"), [])

    def test_nobody(self) -> None:
        """Where nobody can be asked nothing is made."""
        code, _, err = self.command("setup")
        self.assertEqual((code, "no terminal" in err, self.home.secrets.exists()), (1, True, False))
