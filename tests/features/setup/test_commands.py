"""Setup: each step in order, what is there already kept, and nothing half done that could act."""

from __future__ import annotations

import shlex

import attrs

from aileron.actions import check as action_faults
from aileron.cli.context import CliContext
from aileron.connectors import check as connector_faults
from aileron.features.setup import connect
from aileron.features.setup.services import find_services, read_service
from aileron.home.discovery import live_discovery, write_discovery
from aileron.model.errors import ExternalApiError
from tests.cli.daemon import PASSPHRASE
from tests.cli.test_binding import NAME, binding
from tests.cli.test_trust import TrustCase, item, word

SERVICES = list(find_services())
NUMBER = str(SERVICES.index("slack") + 1)
SLACK = [each.name for each in read_service("slack").actions if each.name in read_service("slack").chosen]
URL = "https://tracker.example/api/issues"
INTERRUPTED = "\x03"
REST = (URL, "title, text")
CURL = ("curl", "-X", "POST", URL, "-H", "Authorization: Bearer $KEY", "-d", '{"title": "a", "text": "b"}')


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
        return attrs.evolve(
            super().cli_context(), environ={**self.environ, "PATH": str(programs)}, ask_command=self._asked
        )

    def _asked(self, prompt: str) -> str:
        answer = super()._asked(prompt)
        if answer == INTERRUPTED:
            raise KeyboardInterrupt
        return answer

    def played(self, *answers: str, words: tuple[str, ...] = ()) -> tuple[int, str, str]:
        """Run it with these answers; the vault is there."""
        self.home.secrets.write_text("{}")
        self.typed = [*answers]
        return self.command("setup", *words)

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
        self.assertIn("aileron setup --choose slack", err)
        self.assertNotIn("aileron launch codex", out)

    def test_steps(self) -> None:
        """The steps are numbered without a gap, and the last lines say what comes next, approving among it."""
        self.listed(*SLACK)
        code, out, err = self.played(NUMBER, PASSPHRASE, "y", "xoxb-canary")
        self.assertEqual(code, 0, err)
        titles = ("1. Vault", "2. Service", "3. Trust and credential", "4. Agent")
        lines = out.splitlines()
        self.assertEqual([line for line in lines if line in titles], list(titles))
        after = lines[lines.index("4. Agent") :]
        self.assertEqual(after[1:3], ["Start an agent:", "  aileron launch goose"])
        self.assertEqual(after[-2:], ["  aileron approve", "  aileron open"])

    def test_paused(self) -> None:
        """While everything is paused nothing is asked: the check at the end could not run."""
        self.site.answer("GET", "/v1/status", {"pause": {"since": "2026-01-01T00:00:00.000000Z"}})
        for words in ((), ("slack",), ("--choose", "slack")):
            code, out, err = self.played("unused", words=words)
            self.assertEqual((code, self.typed, "Everything is paused." in err), (1, ["unused"], True), out + err)

    def test_named(self) -> None:
        """A service that ships is named in the arguments, by name or number; an unknown one is told."""
        self.listed(*SLACK)
        for words in (("slack",), (NUMBER,), ("builtin://slack",)):
            code, out, err = self.played(PASSPHRASE, "y", "xoxb-canary", words=words)
            self.assertEqual((code, self.typed, "Amazon S3" in out), (0, [], False), err)
        self.assertEqual(self.prompts[-3:], ["Passphrase of the vault", *self.prompts[-2:]])
        for unknown in (("slak",), ("slack", "github"), ("0",), ("",)):
            code, _, err = self.played("unused", words=unknown)
            self.assertEqual((code, "aileron setup --list" in err, "Nothing was set up" in err), (1, True, True))
        self.assertEqual(len(self.sent()), 3)

    def test_rest(self) -> None:
        """For a service of one's own a sound connector and a sound action are written, and trusted at once."""
        name = "tracker-post-api-issues"
        for at, (answers, words) in enumerate(
            (
                ((*REST, ""), ()),
                ((*REST[1:], "tracker"), (URL,)),
                (("",), CURL),
                (("Not a name", ""), (shlex.join(CURL),)),
                ((shlex.join(CURL), ""), ()),
            ),
            1,
        ):
            self.listed(name, needs=("local://me/tracker",))
            code, out, err = self.played(*answers, PASSPHRASE, "y", "canary", words=words)
            self.assertEqual((code, self.typed, "canary" in out + err), (0, [], False), err)
            self.assertEqual(self.sent()[at - 1 :], [[word("local://me/tracker", "connector"), word(name)]])
            self.assertEqual("was written" in out or "Written" in out, at == 1, "what is there the same is kept")
            self.assertIn(f"aileron action edit {name}", out)
            self.assertIn("in the header Authorization, as: Bearer {key}", out)
            self.assertEqual([each.name for each in self.home.connectors.iterdir()], ["tracker.toml"])
        connector = (self.home.connectors / "tracker.toml").read_text()
        self.assertIn('json = {title = "${in.title}", text = "${in.text}"}', connector)
        self.assertIn('format = "Bearer {key}"', connector)
        self.assertNotIn("private_network", connector)
        action = (self.home.actions / f"{name}.md").read_text()
        self.assertIn("\nSends POST /api/issues to tracker.example.\n", action)
        self.assertEqual(connector_faults(self.home.connectors / "tracker.toml"), [])
        self.assertEqual(action_faults(str(self.home.actions / f"{name}.md")), [])

    def test_asked_again(self) -> None:
        """An answer that cannot be is asked for again, and why; nothing is written before all are good."""
        self.listed("local-post-x", needs=("local://me/local",))
        wrong = {
            "Service": ("0", "four", "\u0663", "", "curl", "curl -k https://a.example", "$ curl 'x"),
            "URL": ("https://tracker.example", "http://tracker.example/x", "https://a:b@tracker.example/x"),
            "Fields": ("a,a", "a b", ","),
        }
        good = ("http://127.0.0.1:8080/x", "title")
        answers = [*wrong["Service"], *wrong["URL"], good[0], *wrong["Fields"], good[1]]
        code, _, err = self.played(*answers, "", PASSPHRASE, "y", "canary")
        self.assertEqual((code, self.typed), (0, []), err)
        self.assertEqual(err.count("The answer "), len(answers) - len(good))
        connector = (self.home.connectors / "local.toml").read_text()
        self.assertIn("private_network = true", connector)
        self.assertEqual(connector_faults(self.home.connectors / "local.toml"), [])

    def test_refused_command(self) -> None:
        """What cannot be expressed is told before anything is made, and no key in it is repeated."""
        key = "sk-live-4f9a8b7c6d5e4f3a2b1c"
        for words, told in (
            (("curl", "-F", f"a={key}", URL), "-F of the curl command is not understood"),
            (("curl", URL, "-d", f'{{"token": "{key}"}}'), "carries no key"),
            (("curl", "https://a.example/send"), "a key in the body is not supported"),
            (("curl", "https://a.example/bot/$TOKEN"), "ends with its key"),
            (("curl", f"{URL}/{key}", "-d", '{"a": 1}'), "hold a key, or a long id"),
            (("wget", f"{URL}?key={key}"), "There is no such service"),
            ((f"$ wget {URL}?key={key}",), "There is no such service"),
            (("curl", URL, "-u", f"{key}:", "-d", "a=1"), "-u with an empty password"),
            (("curl", URL, "-H", f"Authorization: Odd {key} x", "-d", "a=1"), "Use a placeholder such as $KEY"),
            (("curl", f"https://{key}@a.example/x", "-d", "a=1"), "no user name and no password"),
            (("curl", URL, "-H", f"X-API-Key: {key}", "-H", f"Authorization: Bearer {key}"), "several keys"),
            (("curl", URL, "-H", f"X-API-Key: {key}", "-d", '{"each": [], "as": 1}'), "Nothing was written"),
            (("curl", URL, *CURL[4:6], "-d", '{"a": [], "_a": 1, "A-": ""}', "-d", "}"), "is not JSON"),
            (("--name", "A/b", *CURL), "Nothing was written"),
            (("--name", "../b", *CURL), "Nothing was written"),
        ):
            self.typed = ["unused"]
            code, out, err = self.command("setup", *words)
            self.assertIn(told, err)
            self.assertEqual((code != 0, key in out + err, self.home.secrets.exists()), (True, False, False))
        self.assertEqual([*self.home.connectors.iterdir(), *self.home.actions.iterdir()], [])

    def test_real_key(self) -> None:
        """A key in the arguments is not used, kept or repeated; that others could read it is told, where they could."""
        key = "sk-live-4f9a8b7c6d5e4f3a2b1c"
        words = tuple(each.replace("$KEY", key) for each in CURL)
        self.listed("tracker-post-api-issues", needs=("local://me/tracker",))
        for answers, given, told in (((), words, 1), ((shlex.join(words),), (), 0), ((), CURL, 0)):
            code, out, err = self.played(*answers, "", PASSPHRASE, "y", "canary", words=given)
            self.assertEqual((code, err.count("seems to hold a real key"), key in out + err), (0, told, False), err)
        self.assertEqual(self.site.bodies("POST", "/v1/bindings/setup")[0]["secret"], "canary")
        written = [*self.home.connectors.iterdir(), *self.home.actions.iterdir()]
        self.assertEqual([path for path in written if key in path.read_text()], [])

    def test_taken(self) -> None:
        """Another service of that name keeps it: a free one is taken and told, but for a name that was given."""
        self.home.connectors.mkdir(exist_ok=True)
        (self.home.connectors / "tracker.toml").write_text("")
        (self.home.actions / "tracker-2-post-api-issues.md").write_text("")
        self.listed("tracker-3-post-api-issues", needs=("local://me/tracker-3",))
        code, _, err = self.played("", PASSPHRASE, "y", "canary", words=CURL)
        self.assertEqual((code, "this one is named local://me/tracker-3" in err), (0, True), err)
        code, _, err = self.played("unused", words=("--name", "tracker", *CURL))
        self.assertEqual((code, "Choose another name" in err), (1, True))
        self.assertEqual((self.home.connectors / "tracker.toml").read_text(), "")
        self.assertFalse((self.home.connectors / "tracker-2.toml").exists())

    def test_interrupted(self) -> None:
        """Wherever a run is broken off, the next one goes on with the files that are there, and asks for the rest."""
        self.listed("tracker-post-api-issues", needs=("local://me/tracker",))
        answers = (PASSPHRASE, "y", "canary")
        files = "\nInterrupted. Saved: tracker.toml, tracker-post-api-issues.md.\nTo go on, run the same command again."
        told = (files, "\nInterrupted. Nothing was saved.\n", "\nInterrupted. Saved: trust in 2 files.\nTo go on")
        for reached in range(len(answers)):
            code, _, err = self.played("", *answers[:reached], INTERRUPTED, words=CURL)
            trusted = max(0, reached - 1)
            self.assertEqual((code, self.typed, len(self.sent())), (130, [], trusted))
            self.assertIn(told[reached], err)
        self.assertEqual(self.site.bodies("POST", "/v1/bindings/setup"), [])
        code, _, err = self.played("", *answers, words=CURL)
        self.assertEqual((code, self.typed, "another service" in err), (0, [], False), err)
        self.assertEqual([each.name for each in self.home.connectors.iterdir()], ["tracker.toml"])

    def test_interrupted_late(self) -> None:
        """A credential that was bound is told as well, by C{connect} too."""

        async def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        self.patch(connect, "_check", interrupt)
        self.listed(*SLACK)
        for command, answers in (("setup", ()), ("connect", ("",))):
            self.home.secrets.write_text("{}")
            self.typed = [*answers, PASSPHRASE, "y", "xoxb-canary"]
            code, _, err = self.command(command, "slack")
            self.assertEqual((code, self.typed), (130, []))
            self.assertIn(f"trust in {len(SLACK)} files, the credential {NAME}.\nTo go on", err)
            self.assertNotIn("canary", err)

    def test_read(self) -> None:
        """What only reads needs no approval, and the user is not told to give one."""
        self.listed("tracker-get-api-issues", needs=("local://me/tracker",))
        words = ("curl", f"{URL}?state=open", "-u", "ada:$PASSWORD")
        code, out, err = self.played("", PASSPHRASE, "y", "ada:canary", words=words)
        self.assertEqual((code, self.typed, "approval approve" in out, "only reads" in out), (0, [], False, True), err)
        self.assertIn("USER:PASSWORD", out)
        self.assertIn("required = false", (self.home.actions / "tracker-get-api-issues.md").read_text())

    def test_tried(self) -> None:
        """A read of one's own that needs no arguments is tried at the end: its result, or the service's own words."""
        self.listed("issues-get-api-issues", needs=("local://me/issues",))
        path, words = "/v1/actions/issues-get-api-issues/run", ("curl", URL, "-H", "X-Key: $KEY")
        self.site.answer("POST", path, {"run_id": "R", "result": {"output": {"total": 3}}})
        code, out, err = self.played("issues", PASSPHRASE, "y", "canary", words=words)
        self.assertEqual((code, "Connected to tracker.example" in out), (0, True), err)
        self.site.answer("GET", "/v1/bindings", {"items": [binding(connector="local://me/issues")]})
        self.site.answer("POST", path, ExternalApiError("The key is wrong."))
        code, _, err = self.played("issues", PASSPHRASE, "y", words=words)
        self.assertEqual((code, "The key is wrong." in err, "aileron credential replace" in err), (1, True, True), err)

    def _have_desktop(self) -> None:
        programs = self.home.root / "bin"
        programs.mkdir()
        (programs / "notify-send").write_text("#!/bin/sh\n")
        (programs / "notify-send").chmod(0o700)
        self.environ["DISPLAY"] = ":0"

    def test_left_out(self) -> None:
        """Without importing, launch and notices, a service that ships is set up, and nothing else is offered."""
        found = live_discovery(self.home)
        assert found is not None
        write_discovery(self.home, attrs.evolve(found, features_off=("importing", "launch", "notices")))
        self.listed(*SLACK)
        self._have_desktop()
        for answers, words in (((URL,), ()), ((), (URL,)), ((), CURL)):
            code, out, err = self.played(*answers, "unused", words=words)
            self.assertEqual((code, "config.yaml has the feature importing off" in err), (1, True), err)
            self.assertNotIn("service of your own", out)
        self.assertEqual([*self.home.connectors.iterdir(), *self.home.actions.iterdir()], [])
        code, out, err = self.played(NUMBER, PASSPHRASE, "y", "xoxb-canary")
        self.assertEqual((code, self.typed, self.home.config.exists()), (0, [], False), err)
        self.assertIn("Ask the agent to use", out)
        self.assertNotIn("aileron launch", out)

    def test_desktop(self) -> None:
        """Where there is a desktop and no configuration, notifications are offered; a yes writes and trusts it."""
        config = item("config.yaml", "config", path=str(self.home.config))
        paths = {name: str(self.home.actions / f"{name}.md") for name in SLACK}
        self.lying(config, *(item(name, path=path) for name, path in paths.items()))
        self._have_desktop()
        answers = (NUMBER, PASSPHRASE, "y", "xoxb-canary")
        code, _, err = self.played(*answers, "")
        self.assertEqual((code, self.typed, self.home.config.exists()), (0, [], False), err)
        self.site.answer("GET", "/v1/bindings", {"items": [binding(connector="builtin://slack")]})
        code, _, err = self.played(NUMBER, PASSPHRASE, "y", "y")
        self.assertEqual(
            (code, self.typed, self.home.config.read_text()), (0, [], "notifications:\n  desktop: true\n"), err
        )
        self.assertEqual(self.sent()[-1], [word("config.yaml", "config")])
        code, _, err = self.played(NUMBER, PASSPHRASE, "y")
        self.assertEqual((code, self.typed), (0, []), err)

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
        self.assertIn("aileron credential rebind", err)
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
        self.assertIn("  aileron vault init\n", err)

    def test_nobody_with_a_vault(self) -> None:
        """With a vault, the next step is told: for a service in the arguments, for one of the user's, or for none."""
        self.home.secrets.write_text("{}")
        for words, told in (
            ((), "  aileron setup --list\n"),
            (("slack",), "aileron credential setup builtin://slack --secret-fd N, then"),
            ((URL,), "  aileron connector import --help\n"),
            (("slak",), "There is no such service. Nothing was set up."),
        ):
            code, _, err = self.command("setup", *words)
            self.assertEqual((code, told in err, "vault init" in err), (1, True, False), err)
