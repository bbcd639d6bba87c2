"""Connecting a service: in order, only what was chosen, one passphrase, and a read at the end that proves it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aileron.cli.vault.signing_in import SignedIn, SignInChoice
from aileron.credentials import OAuth2Document
from aileron.features.setup import connect
from aileron.features.setup.services import DESTRUCTIVE, READ, find_services, read_service
from aileron.model.errors import ExternalApiError
from tests.cli.daemon import PASSPHRASE
from tests.cli.test_binding import binding
from tests.cli.test_trust import TrustCase, item, word

CHECK = "/v1/actions/check-slack/run"
CHOSEN = ("check-slack", "slack-list-channels", "slack-read-channel", "slack-read-thread", "post-message")


class ConnectTests(TrustCase):
    """C{aileron connect} at a terminal."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.home.secrets.write_text("{}")
        self.site.answer("GET", "/v1/bindings", {"items": []})
        scope = {
            "hosts": ["slack.com:443"],
            "base_url": "https://slack.com",
            "header": "Authorization",
            "format": "{key}",
        }
        self.site.answer("POST", "/v1/bindings/target", {"scope": scope})
        self.site.answer("POST", "/v1/bindings/setup", lambda body: binding(connector=body["connector"]))
        output = {"user": "aileron-bot", "team": "Example", "more": {"a": 1}}
        self.site.answer("POST", CHECK, {"status": "completed", "run_id": "R", "result": {"output": output}})

    def connected(
        self, *answers: str, service: str = "slack", actions: tuple[str, ...] = CHOSEN
    ) -> tuple[int, str, str]:
        """Run it with these answers; the daemon finds these actions new."""
        self.lying(*(item(name, path=str(self.home.actions / f"{name}.md")) for name in actions))
        self.typed = [*answers]
        return self.command("setup", "--choose", service)

    def test_usual(self) -> None:
        """Who only confirms gets all reads and the first write, trusted; the account is shown, the secret nowhere."""
        code, out, err = self.connected("", PASSPHRASE, "y", "xoxb-canary")
        self.assertEqual((code, self.typed), (0, []), err)
        self.assertEqual({path.stem for path in self.home.actions.iterdir()}, set(CHOSEN))
        self.assertEqual(self.sent(), [[word(name) for name in CHOSEN]])
        (bound,) = self.site.bodies("POST", "/v1/bindings/setup")
        given = {"connector": "builtin://slack", "service": "slack", "secret": "xoxb-canary"}
        self.assertEqual(bound, given)
        self.assertEqual(len(self.site.bodies("POST", CHECK)), 1)
        self.assertLess(out.index('"bot": ["chat:write", '), out.index("Trusted: "))
        for part in ("slack.com:443", "Connected to Slack", "aileron-bot", "Ask the agent to use post-message"):
            self.assertIn(part, out)
        self.assertNotIn("canary", out + err)
        self.assertEqual((self.site.logins, self.site.sessions), ([], []))

    def test_signed_in(self) -> None:
        """For a service with OAuth 2 one signs in, for what the daemon says is needed, and no browser is started."""
        asked: list[object] = []

        async def sign_in(_cli: object, target: Mapping[str, object], choice: SignInChoice) -> SignedIn:
            asked.extend((target["scopes"], choice.opens_browser))
            return SignedIn(document, "ada@example.org")

        document = OAuth2Document(
            grant="authorization_code", client_id="me", token_url="https://x.example", access_token="canary-token"
        )
        self.patch(connect, "sign_in", sign_in)
        target = {"scope": {"hosts": ["gmail.googleapis.com:443"]}, "scopes": ["read"]}
        self.site.answer("POST", "/v1/bindings/target", target)
        self.site.answer("POST", "/v1/actions/check-gmail/run", {"result": {"output": {"address": "ada@example.org"}}})
        chosen = tuple(read_service("gmail").chosen)
        code, out, err = self.connected("", PASSPHRASE, "y", service="gmail", actions=chosen)
        self.assertEqual((code, self.typed, asked), (0, [], [["read"], False]), err)
        (bound,) = self.site.bodies("POST", "/v1/bindings/setup")
        self.assertEqual((bound["connector"], bound["account"]), ("builtin://gmail", "ada@example.org"))
        self.assertIn("canary-token", bound["secret"])
        self.assertIn("ada@example.org", out)
        self.assertNotIn("canary", out + err)

    def test_chosen(self) -> None:
        """Actions are chosen by their numbers, or all; an answer that names none is asked for again."""
        every = tuple(each.name for each in read_service("slack").actions)
        for answers, chosen in ((("0", "99", "x", "2-3", "2,3, 6"), (every[1], every[2], every[5])), (("all",), every)):
            code, _, err = self.connected(*answers, PASSPHRASE, "y", "xoxb-canary", actions=chosen)
            self.assertEqual((code, self.typed), (0, []), err)
            self.assertEqual({path.stem for path in self.home.actions.iterdir()}, set(chosen))
            self.assertEqual(err.count("The answer must be"), len(answers) - 1)
        self.assertEqual(len(self.site.bodies("POST", CHECK)), 1, "without its action nothing is checked")

    def test_address(self) -> None:
        """For a service that may be elsewhere its address is asked for, until it can be one; the usual is not kept."""
        self.site.answer("POST", "/v1/actions/check-gitlab/run", {"result": {"output": {"username": "ada"}}})
        answers = ("1", PASSPHRASE, "y")
        code, _, err = self.connected(*answers, "", "glpat-canary", service="gitlab", actions=("check-gitlab",))
        self.assertEqual((code, self.typed), (0, []), err)
        more = ("git.example", "http://git.example", "https://git.example", "glpat-canary")
        code, _, err = self.connected(*answers, *more, service="gitlab", actions=("check-gitlab",))
        self.assertEqual((code, self.typed, err.count("The answer must")), (0, [], 2), err)
        usual, other = self.site.bodies("POST", "/v1/bindings/setup")
        self.assertEqual(("base_url" in usual, other["base_url"]), (False, "https://git.example"))
        asked = [each.get("base_url") for each in self.site.bodies("POST", "/v1/bindings/target")]
        self.assertEqual(asked, [None, "https://git.example"])

    def test_variables(self) -> None:
        """For a service whose base URL has variables these are asked for, until they can be some."""
        self.site.answer("POST", "/v1/actions/check-jira/run", {"result": {"output": {"name": "Ada"}}})
        more = ("acme.evil.example/", "Acme", "acme", "ada@example.com:canary")
        code, _, err = self.connected("1", PASSPHRASE, "y", *more, service="jira", actions=("check-jira",))
        self.assertEqual((code, self.typed, err.count("must match [a-z0-9-]+")), (0, [], 2), err)
        (bound,) = self.site.bodies("POST", "/v1/bindings/setup")
        self.assertEqual(bound["base_url"], "https://acme.atlassian.net")

    def test_without_check(self) -> None:
        """A service that has no harmless read is bound all the same, and nothing is run."""
        more = ("", "https://hooks.example", "canary")
        code, out, err = self.connected(PASSPHRASE, "y", *more, service="webhook", actions=("webhook-send",))
        self.assertEqual((code, self.typed), (0, []), err)
        self.assertEqual((self.site.sessions, "Connected to" in out), ([], False))

    def test_again(self) -> None:
        """A credential that is bound is not asked for again, and one that does not fit is told."""
        self.site.answer("GET", "/v1/bindings", {"items": [binding(connector="builtin://slack", fits=False)]})
        code, out, err = self.connected("1", PASSPHRASE, "y", actions=CHOSEN[:1])
        self.assertEqual((code, self.typed, self.site.bodies("POST", "/v1/bindings/setup")), (0, [], []))
        self.assertIn("is already bound", out)
        self.assertIn("aileron credential rebind", err)

    def test_not_accepted(self) -> None:
        """If the service refuses the check, that is an error with what to do; what was added stays."""
        self.site.answer("POST", CHECK, ExternalApiError("builtin://slack refused: invalid_auth."))
        code, out, err = self.connected("1", PASSPHRASE, "y", "xoxb-wrong", actions=CHOSEN[:1])
        self.assertEqual((code, "Connected" in out), (1, False))
        for part in ("invalid_auth", "are kept", "aileron credential replace"):
            self.assertIn(part, err)

    def test_not_yet(self) -> None:
        """If the check cannot run now, the command to run it later is shown."""
        self.site.answer("POST", CHECK, {"status": "queued", "run_id": "R", "message": "Everything is paused."})
        code, out, err = self.connected("1", PASSPHRASE, "y", "xoxb-canary", actions=CHOSEN[:1])
        self.assertEqual((code, "Connected" in out), (0, False))
        self.assertIn("aileron action run check-slack", err)

    def test_refused(self) -> None:
        """Without a yes nothing is trusted, no secret is asked for, and nothing is checked."""
        code, _, err = self.connected("1", PASSPHRASE, "n", actions=CHOSEN[:1])
        self.assertEqual((code, "Nothing was trusted" in err), (1, True))
        self.assertEqual(self.site.bodies("POST", "/v1/bindings/setup") + self.site.bodies("POST", CHECK), [])

    def test_nobody(self) -> None:
        """Where nobody can be asked nothing is written, and the single commands are named."""
        self.typed = []
        code, _, err = self.command("setup", "--choose", "slack")
        self.assertEqual((code, list(self.home.actions.iterdir())), (1, []))
        for part in ("no terminal", "aileron credential setup builtin://slack --secret-fd", "aileron action trust"):
            self.assertIn(part, err)

    def test_old_name(self) -> None:
        """The command of earlier versions does the same."""
        for old, new in (
            (("connect",), ("setup", "--list")),
            (("connect", "slack", "--dry-run"), ("setup", "--dry-run", "slack")),
        ):
            self.assertEqual(self.command(*old), self.command(*new))

    def test_dry_run(self) -> None:
        """A dry run shows the steps and the whole files, asks nothing, and changes nothing."""
        code, out, _ = self.command("setup", "--dry-run", "slack")
        self.assertEqual((code, list(self.home.actions.iterdir()), self.site.asked), (0, [], []))
        for part in (
            "OAuth & Permissions",
            "post-message.md",
            'capabilities = ["post_message"]',
            "Nothing was changed",
        ):
            self.assertIn(part, out)

    def test_list(self) -> None:
        """Services are listed, all or those that match every word; for an unknown one, how to search is shown."""
        for arguments, names in (
            ((), set(find_services())),
            (("post", "REPLY"), {"slack"}),
            (("merge-pull",), {"github"}),
        ):
            code, out, _ = self.command("setup", "--list", *arguments)
            found = {line.split()[0] for line in out.splitlines()[1:]}
            self.assertEqual((code, found), (0, names))
        code, _, err = self.command("setup", "--list", "no-such-thing")
        self.assertEqual((code, "No service matches" in err), (1, True))
        code, _, err = self.command("setup", "--choose", "slak")
        self.assertEqual((code, "aileron setup --list" in err), (1, True))


class ServiceTests(TrustCase):
    """The data of the services."""

    def test_complete(self) -> None:
        """Each has steps, every action file of its directory, and a check that only reads and needs no argument."""
        for name in find_services():
            service = read_service(name)
            kinds = {each.name: each.kind for each in service.actions}
            texts = {each.name: each.text for each in service.actions}
            self.assertTrue(service.steps and service.secret and service.chosen, name)
            self.assertLessEqual(set(service.chosen), set(kinds), name)
            if service.check:
                self.assertEqual(kinds[service.check], READ, name)
                self.assertNotIn("[[inputs]]", texts[service.check], name)
                self.assertIn(service.check, service.chosen)
            if len(service.actions) > 1:
                self.assertNotIn(DESTRUCTIVE, [kinds[each] for each in service.chosen], name)
            self.assertTrue(all(each.about and each.text.endswith("\n") for each in service.actions), name)


class CopyTests(TrustCase):
    """C{aileron connector copy}."""

    def test_copied(self) -> None:
        """A connector that comes with Aileron becomes one of the user's own, without faults; no file is replaced."""
        path = self.home.root / "mine.toml"
        code, out, _ = self.command("connector", "copy", "builtin://sentry", str(path))
        self.assertEqual(code, 0, out)
        self.assertIn(f"aileron connector add {path}", out)
        self.assertIn('name = "local://me/mine"', path.read_text())
        self.assertEqual(self.command("connector", "check", str(path))[0], 0)
        code, _, err = self.command("connector", "copy", "builtin://sentry", str(path))
        self.assertEqual((code, "already exists; nothing was written" in err), (1, True))
        self.assertEqual(self.command("connector", "copy", "builtin://none", str(path) + "2")[0], 1)


class ReplayTests(TrustCase):
    """C{aileron connector test} and what else needs no daemon."""

    def test_schema(self) -> None:
        """The schema of the format is printed whole, as it is published."""
        code, out, _ = self.command("connector", "schema")
        page = Path(__file__).parents[3] / "aileron" / "connectors" / "connector.schema.json"
        self.assertEqual((code, out), (0, page.read_text("utf-8")))

    def test_replayed(self) -> None:
        """Recorded answers of built-in connectors and of files are replayed; a difference is told with its line."""
        code, out, err = self.command("connector", "test", "builtin://slack")
        self.assertEqual((code, out, err), (0, "builtin://slack: OK, 26 recorded answers\n", ""))
        file = self.home.root / "mine.toml"
        file.write_text(
            '[connector]\nname = "local://me/mine"\nversion = "1.0.0"\nhosts = ["mine.example:443"]\n'
            'base_url = { default = "https://mine.example" }\n'
            '[operations.read]\nmethod = "GET"\npath = "/"\neffect = "read"\n'
            '[operations.other]\nmethod = "GET"\npath = "/"\neffect = "read"\n'
        )
        recorded = file.with_suffix(".fixtures.toml")
        recorded.write_text("[[operations.read]]\nanswer = { status = 200, json = 1 }\noutput = 2\n")
        code, out, err = self.command("connector", "test", "builtin://slack", str(file))
        self.assertEqual(code, 1)
        self.assertIn(f"{recorded}:3: `output` is expected to be 2, and is 1\n", out)
        self.assertIn("Without a recorded answer: other", err)
        code, _, err = self.command("connector", "test", "local://me/none")
        self.assertEqual((code, "There is no valid connector local://me/none" in err), (1, True))


class ProveTests(TrustCase):
    """C{aileron connector prove}, before anything is proved."""

    def test_unknown(self) -> None:
        """A connector that is not installed, and a file of another connector, are refused; nothing is run."""
        code, out, err = self.command("prove", "none")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("There is no valid connector builtin://none", err)
        file = self.home.root / "mine.toml"
        self.assertEqual(self.command("connector", "copy", "builtin://sentry", str(file))[0], 0)
        code, out, err = self.command("prove", "local://me/other", "--file", str(file))
        self.assertEqual((code, out), (1, ""))
        self.assertIn("There is no valid connector local://me/other", err)
