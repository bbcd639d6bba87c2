"""Trust: one passphrase, one reading of everything, one question, and exactly what was shown."""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import attrs

from aileron.cli.actions.trust_display import is_long, page_text, show_items
from aileron.cli.context import CliContext
from aileron.daemon import config_keys, describe_keys
from aileron.features import FeatureSet
from aileron.model.errors import Conflict, InvalidRequest
from aileron.vault.keys import DataKey
from tests.cli.daemon import KEY, PASSPHRASE, CommandCase, answered
from tests.cli.test_action import ACTION

CONNECTOR = "local://me/chat"


def item(name: str, kind: str = "action", state: str = "new", **changed: Any) -> dict[str, Any]:
    """One as the daemon lists it."""
    lies = {"kind": kind, "name": name, "state": state, "path": f"/home/{kind}s/{name}.md", "digest": f"sha256:{name}"}
    return answered("trust item", **lies, difference=f"of {name}", needs=[], trusted=None) | changed


def word(name: str, kind: str = "action") -> dict[str, str]:
    """What is sent for it."""
    return {"kind": kind, "name": name, "digest": f"sha256:{name}"}


class Screen(io.StringIO):
    """What a terminal shows."""

    def isatty(self) -> bool:
        """It is one."""
        return True


class TrustCase(CommandCase):
    """A daemon that lists what a test puts there.

    :ivar prompts: what the person was asked, in order, passphrases included.
    """

    def setUp(self) -> None:
        super().setUp()
        self.prompts: list[str] = []
        self.site.answer("POST", "/v1/trust", lambda body: {"items": body["items"]})
        self.faulty()

    def lying(self, *items: dict[str, Any]) -> None:
        """Have the daemon list these."""
        self.site.answer("GET", "/v1/trust", {"items": list(items)})

    def faulty(self, *faults: tuple[str, str, int | None, str]) -> None:
        """Have the daemon tell of these: kind, file, line, message."""
        told = [dict(zip(("kind", "file", "line", "message"), each, strict=True)) for each in faults]
        self.site.answer("GET", "/v1/actions", {"generation": 1, "items": [], "load_errors": told})

    def cli_context(self) -> CliContext:
        """A context that notes each question."""
        return attrs.evolve(
            super().cli_context(),
            ask=self._asked,
            passphrase=lambda prompt, _descriptor, _unattended: self._asked(prompt),
            new_passphrase=lambda _descriptor: self._asked("New passphrase"),
        )

    def _asked(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.typed.pop(0)

    def sent(self) -> list[Any]:
        """What was trusted."""
        return [body["items"] for body in self.site.bodies("POST", "/v1/trust")]


class TrustTests(TrustCase):
    """C{trust} of each kind."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()

    def test_paged(self) -> None:
        """What takes more rows than a terminal keeps needs a pager, be it of many lines or of long ones."""
        self.patch(os, "environ", {**os.environ, "COLUMNS": "80"})
        for line, number, is_paged in (("a", 800, False), ("a", 801, True), ("\u6f22" * 40, 800, False)):
            self.assertEqual(is_long([line] * number, 800), is_paged)
        self.assertTrue(is_long(["a" * 80 * 801], 800))
        self.assertTrue(is_long(["\u6f22" * 41] * 401, 800))

    def test_summary(self) -> None:
        """After a long text the person is asked with what it was in view: which file, its state and its digest."""
        self.patch(os, "environ", {**os.environ, "COLUMNS": "80", "LINES": "24"})
        cli = attrs.evolve(self.cli_context(), interactive=lambda: True)
        for lines, times, is_paged in ((5, 1, False), (50, 2, False), (900, 1, True)):
            text = "\n".join(f"line {number}" for number in range(lines))
            paged: list[str] = []
            with redirect_stdout(Screen()) as screen:
                show_items(cli, [item("a", difference=text)], paged.append)
            shown = screen.getvalue()
            self.assertEqual((bool(paged), shown.count("action a: new")), (is_paged, times))
            after = shown[shown.rindex("action a: new") :]
            self.assertIn("digest  sha256:a", after)
            self.assertEqual("line 0" in after, lines == 5)

    def test_pager(self) -> None:
        """The last row of the pager says how to scroll and how to leave it, whatever options of its the person has."""
        given: list[str] = []
        for own in (None, "-R -M", "-Pmine"):
            environment = {name: text for name, text in os.environ.items() if name != "LESS"}
            before = environment if own is None else {**environment, "LESS": own}
            self.patch(os, "environ", dict(before))
            given.clear()
            page_text("a text", lambda _text: given.append(os.environ["LESS"]))
            self.assertIn(r"-PmSpace\: next page   b\: previous page   q\: leave, and go on$", given[0])
            self.assertTrue(given[0].startswith("-R" if own is None else f"{own}$"))
            self.assertEqual(os.environ, before)

    def test_digest_whole(self) -> None:
        """A digest that has no room beside its label is below it, as the terminal would break it."""
        self.patch(os, "environ", {**os.environ, "COLUMNS": "80"})
        digest = f"sha256:{'a1' * 32}"
        with redirect_stdout(Screen()) as screen:
            show_items(self.cli_context(), [{**item("a"), "digest": digest}], lambda _text: None)
        self.assertIn(f"\n  digest\n    {digest}\n", screen.getvalue())

    def test_unasked(self) -> None:
        """A file that will make changes without asking says so first, and is trusted only by its name."""
        for answers, trusted in ((["a", "y"], [[word("a")]]), (["y"], [])):
            before = len(self.sent())
            self.lying(item("a", unasked=True))
            code, out, err = self.as_operator("action", "trust", answers=answers)
            self.assertEqual((code == 0, self.sent()[before:]), (bool(trusted), trusted), err)
            self.assertTrue(out.startswith("a makes changes without asking you.\n"), out)
            self.assertIn("required = true", out)

    def test_lacking(self) -> None:
        """An action that cannot run is refused by name, and left out among all."""
        why = "needs the connector local://me/x, which is not there"
        self.lying(item("a", lacks=[why]), item("b"))
        code, _, err = self.as_operator("action", "trust", "a")
        self.assertEqual((code, self.sent()), (1, []))
        self.assertIn(f"Action a cannot run: it {why}. Nothing was trusted.", err)
        code, out, err = self.as_operator("action", "trust", "--all", answers=["y"])
        self.assertEqual((code, self.sent()), (0, [[word("b")]]))
        self.assertIn("It was left out.", err)
        self.assertNotIn("of a", out)

    def test_several(self) -> None:
        """All that is new or changed is shown and asked about once, after one passphrase."""
        changed = item("b", state="changed", trusted={"digest": "x", "changed_at": "2026-01-02T03:04:05Z"})
        self.lying(item("a"), changed, item("c", state="trusted"), item("d", state="gone", path=None))
        code, out, _ = self.as_operator("action", "trust", answers=["y"])
        self.assertEqual((code, self.sent()), (0, [[word("a"), word("b")]]))
        self.assertEqual(self.prompts, ["Passphrase of the vault", "Trust all 2, exactly as shown? [y/N] "])
        for part in (
            "action a: new",
            "  │ of a",
            "changed since you trusted it on 2026-01-02",
            "  │ of b",
            "Trusted: a, b",
        ):
            self.assertIn(part, out)
        self.assertNotIn("of c", out)

    def test_no(self) -> None:
        """Any other answer than yes, and nobody to ask, trusts nothing."""
        self.lying(item("a"))
        for answer in ("n", "", "sure"):
            code, _, err = self.as_operator("action", "trust", "a", answers=[answer])
            self.assertEqual((code, "Nothing was trusted" in err, self.sent()), (1, True, []))

        def nobody(_prompt: str) -> str:
            raise InvalidRequest("There is no terminal to ask in.")

        self.lying(item("a"))
        self.typed = [PASSPHRASE]
        cli = attrs.evolve(CommandCase.cli_context(self), ask=nobody)
        self.patch(self, "cli_context", lambda: cli)
        code, _, err = self.command("action", "trust", "a")
        self.assertEqual((code, "--yes" in err, self.sent()), (1, True, []))

    def test_multiplexer(self) -> None:
        """In tmux, before the question, it is told once who else can type the answer."""
        self.lying(item("a"))
        self.assertNotIn("type for you", self.as_operator("action", "trust", answers=["y"])[2])
        self.environ["TMUX"] = "/tmp/tmux-0/default,1,0"
        err = self.as_operator("action", "trust", answers=["y"])[2]
        self.assertEqual(
            err.count("In tmux, programs of yours outside a sandbox can read the screen and type here.\nWhere agents"),
            1,
        )

    def test_nothing_acts(self) -> None:
        """Nothing in a file acts on the terminal; an untrusted connector that it needs is in the same question."""
        self.lying(item("a", difference="\x1b[2J\u202eevil\rTrusted: a", path="/x\x1b/a.md"))
        _, out, _ = self.as_operator("action", "trust", "a", answers=["y"])
        self.assertIn("  │ ␛[2J\\u202eevil␍Trusted: a", out)
        self.assertIn("/x␛/a.md", out)
        chat = item(CONNECTOR, "connector")
        self.lying(item("a", needs=[CONNECTOR]), item("b"), chat, item("local://me/other", "connector"))
        self.as_operator("action", "trust", "a", answers=["y"])
        self.assertEqual(self.sent()[1:], [[word(CONNECTOR, "connector"), word("a")]])

    def test_moved(self) -> None:
        """What changes while it is read, or is not there, is not trusted, and is named."""
        self.lying(item("a"))
        self.site.answer("POST", "/v1/trust", Conflict("It changed.", {"items": [word("a")]}))
        code, _, err = self.as_operator("action", "trust", "a", answers=["y"])
        self.assertEqual(code, 1)
        self.assertIn("action a changed while you were reading.", err)
        self.assertIn("Nothing was trusted.", err)
        self.lying(item("a"), item("b", state="gone", path=None))
        for name in ("x", "b"):
            code, _, err = self.as_operator("action", "trust", "a", name)
            self.assertEqual((code, f"no valid action {name}" in err, len(self.sent())), (1, True, 1))

    def test_nothing_new(self) -> None:
        """What is trusted already is not asked about again."""
        self.lying(item("a", state="trusted"))
        self.assertEqual(self.as_operator("action", "trust")[:2], (0, "Nothing new to trust.\n"))
        self.assertEqual(len(self.prompts), 1)

    def test_unsound_configuration(self) -> None:
        """A file with a fault is not called nothing new: the fault is said, and where; so is from when one counts."""
        self.lying(item("a", state="trusted"))
        self.faulty(("validation_error", "/h/config.yaml", 3, "listen is said twice"), ("parse_error", "b.md", 1, "no"))
        code, out, err = self.as_operator("config", "trust")
        self.assertEqual((code, out, self.sent()), (1, "", []))
        self.assertIn("/h/config.yaml:3: listen is said twice", err)
        self.assertNotIn("b.md", err)
        code, _, err = self.as_operator("config", "trust", "config.yaml")
        self.assertEqual((code, "aileron doctor" in err), (1, True))
        self.lying(item("a", state="trusted"))
        self.faulty(("parse_error", "/h/b.md", 1, "no TOML"), ("untrusted", "/h/c.md", None, "new"))
        code, out, err = self.as_operator("action", "trust")
        self.assertEqual((code, out, err), (0, "Nothing new to trust.\n", "Error: /h/b.md:1: no TOML\n"))
        self.lying(item("config.yaml", "config", "trusted"))
        self.faulty(("untrusted", "/h/config.yaml", None, "it takes effect at the next start"))
        self.assertIn("it takes effect at the next start", self.as_operator("config", "trust")[2])

    def test_kinds(self) -> None:
        """Connectors and the configuration are trusted in the same way; trust is taken back by name."""
        self.lying(item("a"), item(CONNECTOR, "connector"), item("config.yaml", "config"))
        self.as_operator("connector", "trust", answers=["y"])
        _, out, err = self.as_operator("config", "trust", answers=["y"])
        self.assertIn("the configuration, config.yaml: new", out)
        self.assertIn("aileron daemon stop, then aileron vault unlock", err)
        self.assertEqual(self.sent(), [[word(CONNECTOR, "connector")], [word("config.yaml", "config")]])
        self.site.answer("DELETE", "/v1/trust", word("a"))
        self.assertEqual(self.as_operator("action", "distrust", "a")[:2], (0, "a is no longer trusted.\n"))
        self.assertEqual(self.site.bodies("DELETE", "/v1/trust"), [{"kind": "action", "name": "a"}])

    def test_for_programs(self) -> None:
        """A script trusts what it names, and is told in JSON; without being asked nothing goes unnamed."""
        self.lying(item("a"), item("b"))
        code, out, _ = self.as_operator("action", "trust", "a", "--yes", "--json")
        self.assertEqual((code, json.loads(out)), (0, {"trusted": [word("a")]}))
        self.assertEqual(self.command("action", "trust", "--json")[0], 2)
        self.assertEqual(self.command("action", "trust", "--yes")[0], 2)
        self.assertEqual(self.sent(), [[word("a")]])

    def test_list(self) -> None:
        """The lists of actions and connectors tell which files are not trusted or not sound, and what to do."""
        self.faulty(("untrusted", "a.md", None, "is new"), ("parse_error", "b.md", 3, "no TOML"))
        self.assertEqual(self.command("action", "list")[2], "Not trusted: a.md: is new\nError: b.md:3: no TOML\n")
        one: dict[str, Any] = {"version": "1.0.0", "hosts": [], "operations": [], "credential": None}
        shipped, own = {**one, "name": "builtin://slack"}, {**one, "name": CONNECTOR}
        self.site.answer("GET", "/v1/connectors", {"items": [shipped, own], "problems": []})
        self.lying(item(CONNECTOR, "connector", "changed"), item("a"))
        _, out, err = self.as_operator("connector", "list")
        self.assertRegex(out, r"builtin://slack +1.0.0 +built in\s")
        self.assertRegex(out, rf"{CONNECTOR} +1.0.0 +changed\s")
        self.assertIn("aileron connector trust", err)


class AddedTests(TrustCase):
    """Files are added and trusted in one go."""

    def file(self) -> str:
        """A sound action file of the user's."""
        directory = Path(self.mktemp())
        directory.mkdir()
        (directory / "hello.md").write_text(ACTION)
        return str(directory / "hello.md")

    def vault(self) -> None:
        """Have a vault's file lie there, and its daemon run."""
        self.home.secrets.write_text("{}")
        self.serve()

    def test_added(self) -> None:
        """What was copied is what is asked about, and nothing else."""
        self.vault()
        self.lying(item("hello", path=str(self.home.actions / "hello.md")), item("other"))
        code, out, _ = self.as_operator("action", "add", self.file(), answers=["y"])
        self.assertEqual((code, self.sent()), (0, [[word("hello")]]))
        self.assertIn("hello.md was added.\n", out)
        self.assertIn("Trusted: hello", out)
        self.assertEqual(len(self.prompts), 2)

    def test_for_programs(self) -> None:
        """A script adds, trusts and is told of both; --no-trust only copies."""
        self.vault()
        self.lying(item("hello", path=str(self.home.actions / "hello.md")))
        _, out, _ = self.as_operator("action", "add", self.file(), "--yes", "--json")
        self.assertEqual(json.loads(out), {"added": ["hello.md"], "trusted": [word("hello")]})
        self.typed = []
        _, out, _ = self.command("action", "add", self.file(), "--no-trust", "--json")
        self.assertEqual(json.loads(out), {"added": ["hello.md"], "trusted": []})
        self.assertEqual(len(self.sent()), 1)

    def test_connector(self) -> None:
        """A connector file is added in the same way."""
        self.vault()
        text = (Path(__file__).parents[2] / "aileron/connectors/builtin/slack.toml").read_text()
        path = Path(self.file()).with_name("chat.toml")
        path.write_text(text.replace("builtin://slack", CONNECTOR))
        self.lying(item(CONNECTOR, "connector", path=str(self.home.connectors / "chat.toml")))
        code, _, err = self.as_operator("connector", "add", str(path), answers=["y"])
        self.assertEqual((code, self.sent()), (0, [[word(CONNECTOR, "connector")]]), err)

    def test_nobody_to_ask(self) -> None:
        """Where nobody can be asked the file is there all the same, and what is missing is said."""
        self.assertIn("there is no vault", self.command("action", "add", self.file())[2])
        self.home.secrets.write_text("{}")
        self.assertIn("the daemon is not running", self.command("action", "add", self.file())[2])
        self.serve()
        self.assertIn("no terminal", self.command("action", "add", self.file())[2])
        self.site.state = "locked"
        code, _, err = self.command("action", "add", self.file())
        self.assertEqual((code, "the vault is locked" in err, self.prompts), (0, True, []))
        self.assertIn("Then trust it: aileron action trust", err)

    def test_first_vault(self) -> None:
        """Without a vault one is made first, and its key serves for the login: no passphrase is asked for again."""
        made: list[int] = []

        def create(cli: CliContext, _descriptor: int | None) -> DataKey:
            cli.new_passphrase(None)
            cli.home.secrets.write_text("{}")
            made.append(1)
            return DataKey(KEY)

        self.patch(__import__("aileron.cli.vault.command", fromlist=["_vault"]), "_create", create)
        self.serve()
        self.lying(item("hello", path=str(self.home.actions / "hello.md")))
        self.typed = [PASSPHRASE, "y"]
        code, out, err = self.command("action", "add", self.file())
        self.assertEqual((code, made, self.sent()), (0, [1], [[word("hello")]]), err)
        self.assertEqual(self.prompts, ["New passphrase", "Trust this, exactly as shown? [y/N] "])
        self.assertIn("Vault created", out)
        self.assertEqual(self.site.logins, [])

    def test_lost_vault(self) -> None:
        """Where the vault is lost no other is made by the way: whoever deleted it would have its history voided."""
        self.home.database.touch()
        self.serve()
        self.site.state = "lost"
        before = self.command("action", "add", self.file())
        self.assertEqual((before[0], "the vault file is missing" in before[2]), (0, True), before)
        self.site.state = "missing"
        never = self.command("action", "add", self.file())
        self.assertEqual((never[0], "there is no vault. Create one: aileron vault init" in never[2]), (0, True), never)
        self.site.state = "lost"
        self.typed = [PASSPHRASE]
        code, _, err = self.command("action", "add", self.file())
        self.assertEqual((code, "aileron vault reset" in err, self.prompts), (1, True, []), err)
        self.assertFalse(self.home.secrets.exists())


class EditTests(TrustCase):
    """The person's editor, then the question."""

    def setUp(self) -> None:
        super().setUp()
        self.home.secrets.write_text("{}")
        self.serve()
        self.path = self.home.actions / "hello.md"
        self.environ |= {"EDITOR": "true", "PATH": "/usr/bin:/bin"}
        self.lying(item("hello", path=str(self.path)))

    def test_edited(self) -> None:
        """What is in the home is edited, then shown and trusted."""
        self.path.write_text(ACTION)
        self.editing(ACTION.replace("# Hello", "# Hi"))
        code, _, err = self.as_operator("action", "edit", "hello", answers=["y"])
        self.assertEqual((code, self.sent()), (0, [[word("hello")]]), err)
        self.assertIn("# Hi", self.path.read_text())

    def test_faulty(self) -> None:
        """A fault is told with its line, and it is edited again; what is left so is not asked about."""
        self.path.write_text(ACTION)
        self.editing(ACTION.replace('version = "1.0.0"', "version = 1", 1), ACTION)
        self.typed = ["", PASSPHRASE, "y"]
        code, _, err = self.command("action", "edit", "hello")
        self.assertEqual((code, len(self.sent())), (0, 1), err)
        self.assertIn("hello.md:3: ", err)
        self.assertIn("Edit it again", self.prompts[0])
        self.path.write_text(ACTION)
        self.editing("nothing")
        self.typed = ["n"]
        code, _, err = self.command("action", "edit", "hello")
        self.assertEqual((code, "is not trusted" in err, len(self.sent())), (1, True, 1))

    def test_new(self) -> None:
        """A new one begins as something that loads; what is there is never begun anew."""
        code, _, err = self.as_operator("action", "edit", "--new", "hello", answers=["y"])
        self.assertEqual((code, len(self.sent())), (0, 1), err)
        self.assertEqual(self.command("action", "check", str(self.path))[0], 0)
        code, _, err = self.command("action", "edit", "--new", "hello")
        self.assertEqual((code, "hello.md already" in err), (1, True))

    def test_other_file_name(self) -> None:
        """An action is found by the name that it says, whatever its file is called and whatever lies beside it."""
        other = self.home.actions / "greeting.md"
        other.write_text(ACTION)
        (self.home.actions / "aaa.md").symlink_to("/nowhere")
        (self.home.actions / ".#greeting.md").symlink_to("me@here.1")  # as an editor's lock may lie there
        self.lying(item("hello", path=str(other)))
        code, _, err = self.as_operator("action", "edit", "hello", answers=["y"])
        self.assertEqual((code, len(self.sent())), (0, 1), err)

    def test_not_there(self) -> None:
        """A name of nothing, or that leads elsewhere, is an error; so is an editor that fails or is no command line."""
        for name in ("nothing", "../hello", "x/y"):
            code, _, err = self.command("action", "edit", name)
            self.assertEqual((code, "There is no action" in err), (1, True), name)
        for name in ("../hello", "x/y", "Hello"):
            self.assertIn("is not a valid name", self.command("action", "edit", "--new", name)[2])
        self.path.write_text(ACTION)
        self.environ["EDITOR"] = "false"
        code, _, err = self.command("action", "edit", "hello")
        self.assertEqual((code, "The editor exited" in err, self.prompts), (1, True, []))
        for editor in ('vi "', "\\", "''", "/nowhere/vi"):
            self.environ["EDITOR"] = editor
            code, _, err = self.command("action", "edit", "hello")
            self.assertEqual(
                (code, "editor" in err.lower(), "Internal error in Aileron" in err), (1, True, False), editor
            )
        elsewhere = Path(self.mktemp())
        elsewhere.write_text(ACTION)
        self.path.unlink()
        self.path.symlink_to(elsewhere.absolute())
        self.assertEqual(self.command("action", "edit", "hello")[0], 1)

    def test_locked(self) -> None:
        """With a locked vault what was edited waits for trust."""
        self.path.write_text(ACTION)
        self.site.state = "locked"
        code, _, err = self.command("action", "edit", "hello")
        self.assertEqual((code, "Not active until you trust it" in err, self.prompts), (0, True, []))


class KeysTests(CommandCase):
    """C{aileron config keys}."""

    def test_listed(self) -> None:
        """Each key is listed with its meaning and default, and no daemon is asked."""
        code, out, _ = self.command("config", "keys")
        rows = [" ".join(line.split()) for line in out.splitlines()]
        self.assertEqual(
            (code, rows[0], len(rows)),
            (0, "KEY MEANING DEFAULT", 1 + len(list(describe_keys(config_keys(FeatureSet()))))),
        )
        self.assertIn("mcp.sessions how many MCP sessions one agent may have there at once, from 1 to 1000 16", rows)
        self.assertEqual(self.site.asked, [])

    def test_for_programs(self) -> None:
        """With C{--json} the same is printed for programs."""
        code, out, _ = self.command("config", "keys", "--json")
        self.assertEqual((code, json.loads(out)["items"]), (0, list(describe_keys(config_keys(FeatureSet())))))
