"""Actions: run by the agents' door, files judged and copied without a daemon, and new ones begun."""

from __future__ import annotations

import json
from pathlib import Path

import click
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import check
from aileron.actions.drafting import TYPES, Draft, Wanted, text_of, wanted
from aileron.cli.actions.run import read_complete, read_pairs
from aileron.connectors import read_descriptions
from aileron.model.errors import ApprovalDenied, ExternalApiError, InvalidRequest, NotFound, OutcomeUnknown
from tests.cli.daemon import RUN, CommandCase, ServedCase, approval

SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "sure": {"type": "boolean"},
        "tags": {"type": "array"},
    }
}
ACTION = """+++
name = "hello"
version = "1.0.0"

[[requires.connectors]]
name = "builtin://slack"
version = "1.0.0"
capabilities = ["list_channels"]

[[execute]]
id = "look"
connector = "builtin://slack"
op = "list_channels"
inputs = { limit = "10" }
+++
# Hello

Lists channels.
"""


class PairsTests(SynchronousTestCase):
    def test_types(self) -> None:
        """Text stays text, other types are read as JSON; what is no pair, unknown, twice or no such type is refused."""
        found = read_pairs(["text=1", "count=2", "sure=true", 'tags=["a", 1]'], SCHEMA)
        self.assertEqual(found, {"text": "1", "count": 2, "sure": True, "tags": ["a", 1]})
        self.assertEqual(read_pairs(["text=a=b"], SCHEMA), {"text": "a=b"})
        for pairs, wrong in (
            (["other=1"], "this action has no argument 'other'. Arguments of this action: text, count"),
            (["text"], "expected NAME=TEXT"),
        ):
            self.assertIn(wrong, self.assertRaises(click.UsageError, read_pairs, pairs, SCHEMA).message)
        needed = {**SCHEMA, "required": ["text", "count"]}
        refused = self.assertRaises(click.UsageError, read_complete, ["count=1"], needed)
        self.assertIn("Add: --arg text=…", refused.message)
        self.assertEqual(read_complete(["count=1", "text=x"], needed), read_pairs(["text=x", "count=1"], needed))
        for pairs in (["text"], ["other=1"], ["text=a", "text=b"], ["count=x"], ["sure=yes"], ["tags=[NaN]"]):
            self.assertRaises(click.UsageError, read_pairs, pairs, SCHEMA)


class ShowTests(CommandCase):
    def shown(self, **changed: object) -> str:
        """What is printed of an action of which the daemon tells this."""
        item: dict[str, object] = dict.fromkeys(("tool_name", "source", "digest", "description"), "x")
        item |= {"name": "hello", "version": "1.0.0", "gated": True, "enabled": True, "input_schema": SCHEMA}
        self.site.answer("GET", "/v1/actions/hello", {**item, "connectors": [], **changed})
        return self.as_operator("action", "show", "hello")[1]

    def test_told(self) -> None:
        """What is shown before deciding, left to the person or taken back is told, where it is anything."""
        self.serve()
        preview = {"connector": "builtin://slack", "operation": "read", "shows": ["Topic", "Text"]}
        for name, shown, nothing, told in (
            ("preview", preview, None, "preview  Topic, Text, by read of builtin://slack\n"),
            ("on_cancel", "withdraw", "keep", "when the agent cancels its call"),
            ("by", ["alice", "administrator"], [], "approved by"),
            ("not_requester", True, False, "not approved by"),
            (
                "asks",
                ["text", "co\x1bunt"],
                [],
                "The agent may ask you for these in a form, if its client supports that: text, co␛unt\n",
            ),
        ):
            self.assertIn(" ".join(told.split()), " ".join(self.shown(**{name: shown}).split()))
            self.assertNotIn(told.split("  ")[0][:16], self.shown(**{name: nothing}))


class RunTests(ServedCase):
    def setUp(self) -> None:
        super().setUp()
        self.site.answer("GET", "/v1/actions/hello", {"input_schema": SCHEMA})

    def test_attachments(self) -> None:
        """What is attached is told, and how to have it; a terminal is not filled with it."""
        output = {"caption": "c", "picture": {"media_type": "image/png", "base64": "AAEC"}}
        self.site.answer("POST", "/v1/actions/hello/run", {"run_id": RUN, "result": {"output": output}})
        code, out, err = self.command("action", "run", "hello", "--args", "{}")
        self.assertEqual(
            (code, '"picture": "[attachment 1: image/png, 3 bytes]"' in out, "AAEC" in out), (0, True, False)
        )
        self.assertIn(f"aileron run save {RUN} DIRECTORY", err)

    def test_pending(self) -> None:
        """A run that waits has an exit code of its own, and says to a person what to do; a failure is an error."""
        told = {"run_id": RUN, "approval_id": RUN, "review_url": "http://x/approvals/1", "message": "Ask the user."}
        for status, words in (
            ("awaiting_vault", "aileron vault unlock"),
            ("awaiting_credential", "aileron credential list"),
            ("approved", f"aileron run show {RUN}"),
            ("executing", "hello has not finished."),
            ("pending_approval", f"To review it: aileron approve {RUN}"),
        ):
            waits = {**told, "status": status}
            self.site.answer("POST", "/v1/actions/hello/run", waits)
            code, out, _ = self.command("action", "run", "hello", "--args", "{}")
            self.assertEqual((code == 75, words in out, "the user" in out), ("pending" in status, True, False), out)
        code, out, _ = self.command("action", "run", "hello", "--json")
        self.assertEqual((code, json.loads(out)), (75, waits))
        self.site.answer("POST", "/v1/actions/hello/run", ExternalApiError("Slack said no."))
        code, out, err = self.command("action", "run", "hello")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("Slack said no.", err)

    def test_wait(self) -> None:
        """Who waits is told for what, and by which command to decide; the run that is waited for is the one begun."""
        pending = {"run_id": RUN, "approval_id": RUN, "review_url": "http://x/1", "status": "pending_approval"}
        answers = iter((pending, {"run_id": RUN, "result": {"output": "hi", "steps": {}}}))
        self.site.answer("POST", "/v1/actions/hello/run", lambda _: next(answers))
        code, out, err = self.command("action", "run", "hello", "--wait", "30")
        self.assertEqual((code, out), (0, "hi\n"))
        self.assertIn("hello needs your approval; waiting up to 30 s for it.", err)
        self.assertIn(f"aileron approve {RUN}", err)
        first, second = (each["idempotency_key"] for each in self.site.bodies("POST", "/v1/actions/hello/run"))
        self.assertEqual(first, second)

    def test_for_person(self) -> None:
        """A person is told what happened and what to run, not what an agent is told."""
        unknown = OutcomeUnknown("It may have happened: do not repeat it.", {"cause": {"message": "Slack hung up."}})
        denied = ApprovalDenied("The user denied this. Do not repeat or reword it.", {"reason": "no", "run_id": RUN})
        for error, words in (
            (unknown, ("The outcome of hello is unknown. Slack hung up.", f"aileron run settle {RUN} --happened")),
            (denied, ("You denied this; nothing was sent. Reason: no", f"approval allow-retry {RUN}")),
        ):
            self.site.answer("POST", "/v1/actions/hello/run", error)
            code, _, err = self.command("action", "run", "hello")
            self.assertEqual(code, 1)
            for each in words:
                self.assertIn(each, err)
            self.assertNotIn("repeat", err)

    def test_usage(self) -> None:
        """The result's output is printed; malformed arguments never reach the daemon."""
        for arguments in (("--args", "[]"), ("--args", "{"), ("--args", "{}", "--arg", "count=1")):
            self.assertEqual(self.command("action", "run", "hello", *arguments)[0], 2, arguments)
        self.assertIn("--args: not JSON: ", self.command("action", "run", "hello", "--args", "{")[2])
        self.site.answer("GET", "/v1/actions/helo", NotFound("There is no action of this name."))
        code, _, err = self.command("action", "run", "helo")
        self.assertEqual((code, "There is no action helo." in err, "aileron action list" in err), (1, True, True), err)
        self.assertEqual(self.site.bodies("POST", "/v1/actions/hello/run"), [])
        self.site.answer("POST", "/v1/actions/hello/run", {"run_id": RUN, "result": {"output": "hi", "steps": {}}})
        self.assertEqual(self.command("action", "run", "hello", "--arg", "count=3")[:2], (0, "hi\n"))
        self.assertEqual(self.site.bodies("POST", "/v1/actions/hello/run"), [{"args": {"count": 3}}])


_GREET = """\
+++
name = "greet"
version = "1.0.0"

[[requires.connectors]]
name = "builtin://slack"
version = "1.0.0"
capabilities = ["post_message"]

[[inputs]]
name = "text"
type = "string"
description = "The words."

[[inputs]]
name = "count"
type = "integer"
description = "How often."

[[execute]]
id = "only"
connector = "builtin://slack"
op = "post_message"
inputs = { channel = "#eng", text = "${args.text}" }

[approval]
required = true
+++
# Greet

Says hello.
"""


class TryTests(ServedCase):
    def test_shown(self) -> None:
        """What would be sent is shown, with the arguments that were given; nothing else is asked of the daemon."""
        review = approval()["review"]
        self.site.answer("POST", "/v1/actions/hello/dry-run", {"digest": "sha256:d", "review": review})
        code, out, _ = self.as_operator("action", "try", "hello", "--args", '{"text": "hi"}')
        self.assertEqual(code, 0)
        for part in ("POST https://slack.com/api/chat.postMessage", '{"channel":"#eng"}', "post_message (write)"):
            self.assertIn(part, out)
        self.assertEqual(self.site.bodies("POST", "/v1/actions/hello/dry-run"), [{"args": {"text": "hi"}}])
        self.assertEqual(self.command("action", "try", "hello", "--args", "[]")[0], 2)

    def test_missing(self) -> None:
        """Inputs that were not given are told as the file describes them, with the option; of other faults none is."""
        path = self.home.actions / "greet.md"
        path.write_text(_GREET)
        path.chmod(0o600)
        problems = (("/args/count", "is missing"), ("/args/text", "must be a string"))
        self.site.answer("POST", "/v1/actions/greet/dry-run", InvalidRequest.listing("Two are wrong.", *problems))
        code, _, err = self.as_operator("action", "try", "greet", "--args", '{"text": 1}')
        self.assertEqual(code, 1)
        self.assertIn(
            "Inputs that were not given:\n  count (integer, required): How often.\n"
            "  Give them: --args '{\"count\": INTEGER}'\n",
            err,
        )
        self.assertNotIn("text (string", err)
        self.site.answer("POST", "/v1/actions/greet/dry-run", NotFound("There is no such action."))
        self.assertNotIn("not given", self.as_operator("action", "try", "greet")[2])


class FilesTests(CommandCase):
    def file(self, text: str, name: str = "hello.md") -> Path:
        """A file of the user's."""
        directory = Path(self.mktemp())
        directory.mkdir()
        path = directory / name
        path.write_text(text)
        return path

    def test_check(self) -> None:
        """A sound file is said to be so; a fault is told with file and line, of a connector's file as well."""
        sound, faulty = self.file(ACTION), self.file(ACTION.replace('version = "1.0.0"', "version = 1", 1))
        self.assertEqual(self.command("action", "check", str(sound)), (0, f"{sound}: OK\n", ""))
        code, out, _ = self.command("action", "check", str(faulty))
        self.assertEqual(code, 1)
        self.assertIn(f"{faulty}:3: ", out)
        code, out, _ = self.command("action", "check", "--json", str(faulty))
        self.assertEqual((code, json.loads(out)["faults"][0]["line"]), (1, 3))
        code, out, _ = self.command("connector", "check", str(self.file("[connector]\n", "x.toml")))
        self.assertEqual((code, ".toml:" in out), (1, True))

    def test_add(self) -> None:
        """A sound file is copied, private; the same again is nothing new."""
        path = self.file(ACTION)
        self.assertEqual(self.command("action", "add", str(path))[:2], (0, "hello.md was added.\n"))
        added = self.home.actions / "hello.md"
        self.assertEqual((added.read_text(), added.stat().st_mode & 0o777), (ACTION, 0o600))
        self.assertEqual(self.command("action", "add", str(path))[:2], (0, "hello.md is already there.\n"))

    def test_add_faulty(self) -> None:
        """With one faulty file nothing is added, nor what the daemon would not look at."""
        code, _, err = self.command("action", "add", str(self.file(ACTION)), str(self.file("no", "bad.md")))
        self.assertEqual((code, "Nothing was added" in err), (1, True))
        self.assertEqual(list(self.home.actions.iterdir()), [])
        self.assertEqual(self.command("action", "add", str(self.file(ACTION, "hello.txt")))[0], 1)

    def test_add_different(self) -> None:
        """A different file of that name is left as it is, with the difference shown, unless forced."""
        self.command("action", "add", str(self.file(ACTION)))
        other = self.file(ACTION.replace("# Hello", "# Good bye"))
        code, out, err = self.command("action", "add", str(other))
        self.assertEqual((code, "--force" in err), (1, True))
        self.assertIn("│ +# Good bye", out)
        self.assertEqual((self.home.actions / "hello.md").read_text(), ACTION)
        self.assertEqual(self.command("action", "add", "--force", str(other))[:2], (0, "hello.md was replaced.\n"))
        self.assertIn("Good bye", (self.home.actions / "hello.md").read_text())

    def test_add_another(self) -> None:
        """The file of another action that has this file's name is never replaced, and that is not offered."""
        self.command("action", "add", str(self.file(ACTION)))
        other = self.file(ACTION.replace('name = "hello"', 'name = "bye"'))
        for force in ((), ("--force",)):
            code, _, err = self.command("action", "add", *force, str(other))
            self.assertEqual((code, "is the file of another action, hello" in err), (1, True), err)
            self.assertNotIn("--force", err)
            self.assertEqual((self.home.actions / "hello.md").read_text(), ACTION)


KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
WANTED = st.builds(Wanted, KEYS, st.sampled_from(TYPES), st.booleans())


class DraftTests(CommandCase):
    @settings(max_examples=40, deadline=None)
    @given(
        name=st.from_regex(r"[a-z][a-z0-9._-]{0,20}", fullmatch=True),
        op=KEYS,
        gated=st.booleans(),
        inputs=st.lists(WANTED, max_size=4, unique_by=lambda each: each.name),
        takes=st.lists(KEYS, max_size=3, unique=True),
    )
    def test_sound(self, name: str, op: str, gated: bool, inputs: list[Wanted], takes: list[str]) -> None:
        """Whatever is asked for, our own reader finds no fault with it."""
        draft = Draft(name, "local://me/x", "1.0.0", op, gated, tuple(inputs), tuple(takes))
        path = Path(self.mktemp())
        path.write_text(text_of(draft))
        self.assertEqual(check(str(path)), [], text_of(draft))

    def test_refused(self) -> None:
        """What would be no action, or would break out of its place in the file, is refused."""
        for connector, op in (('builtin://x"\n', "op"), ("nothing", "op"), ("builtin://slack", 'o"p')):
            self.assertRaises(InvalidRequest, Draft, "a", connector, "1.0.0", op)
        for text in ("", "A:string", "a:text", "a:string:never", "a:string:optional:x", 'a"'):
            self.assertRaises(InvalidRequest, wanted, text)
        self.assertEqual(wanted("a"), Wanted("a"))
        self.assertEqual(wanted("a:integer:optional"), Wanted("a", "integer", required=False))


class NewTests(CommandCase):
    def text(self, name: str) -> str:
        """The file, which has no fault."""
        path = self.home.actions / f"{name}.md"
        self.assertEqual(check(str(path)), [])
        return path.read_text()

    def test_every_builtin(self) -> None:
        """Of each connector that comes with the program an action can be begun, with what its operation takes."""
        for known, takes in read_descriptions(self.home.connectors):
            op, taken = max(takes.items(), key=lambda each: len(each[1]))
            name = f"{known.name.removeprefix('builtin://')}-{op}".replace("_", "-")
            code, out, err = self.command("action", "new", name, "--connector", known.name, "--op", op, "--gated")
            self.assertEqual(code, 0, err)
            self.assertIn("Written: ", out)
            self.assertIn("Not active until you trust it", err)
            text = self.text(name)
            for each in taken:
                self.assertIn(f'{each} = "${{args.{each}}}"', text)

    def test_asked(self) -> None:
        """What is not said is asked for; no answer to the gate means that it is asked about."""
        self.typed = ["builtin://slack", "post_message", ""]
        self.assertEqual(self.command("action", "new", "tell")[0], 0)
        self.assertIn("required = true", self.text("tell").partition("[approval]")[2])
        self.typed = ["builtin://slack", "post_message", "n"]
        self.command("action", "new", "tell-all")
        self.assertIn("required = false", self.text("tell-all").partition("[approval]")[2])

    def test_inputs(self) -> None:
        """Inputs that are said take the place of the operation's; each that it takes is given it."""
        words = ("action", "new", "tell", "--connector", "builtin://slack", "--op", "post_message", "--ungated")
        self.assertEqual(self.command(*words, "--input", "text:string", "--input", "count:integer:optional")[0], 0)
        text = self.text("tell")
        self.assertIn('inputs = { text = "${args.text}" }', text)
        self.assertIn("required = false", text.partition("[[execute]]")[0])

    def test_own_connector(self) -> None:
        """A connector of the home is known with its version; one of a plugin is taken at its word."""
        (self.home.connectors / "c.toml").write_text(
            '[connector]\nname = "local://me/c"\nversion = "2.1.0"\nbase_url = { default = "https://c.example" }\n'
            'hosts = ["c.example:443"]\n\n[operations.go]\nmethod = "POST"\npath = "/x/${in.where}"\n'
        )
        self.command("action", "new", "go", "--connector", "local://me/c", "--op", "go", "--gated")
        self.assertIn('version = "2.1.0"', self.text("go"))
        self.assertIn('where = "${args.where}"', self.text("go"))
        self.command(
            "action", "new", "far", "--connector", "local://you/far@3.0.0", "--op", "go", "--input", "x:string"
        )
        self.assertIn('x = "${args.x}"', self.text("far"))

    def test_wrong(self) -> None:
        """What cannot be is refused, told with what there is, and nothing is written, least of all over a file."""
        for words in (
            ("a/b", "--connector", "builtin://slack", "--op", "post_message"),
            ("a", "--connector", "builtin://slack", "--op", "nothing"),
            ("a", "--connector", "builtin://nothing", "--op", "x"),
            ("a",),
            ("a", "--connector", "builtin://slack", "--op", "post_message", "--input", "a:b"),
        ):
            code, _, err = self.command("action", "new", *words, *(() if len(words) == 1 else ("--gated",)))
            self.assertNotEqual(code, 0, words)
            self.assertTrue(err, words)
        self.assertEqual(list(self.home.actions.iterdir()), [])
        path = self.home.actions / "tell.md"
        path.write_text("mine")
        whole = ("action", "new", "tell", "--connector", "builtin://slack", "--op", "post_message", "--gated")
        code, _, err = self.command(*whole)
        self.assertEqual((code, path.read_text()), (1, "mine"))
        self.assertIn("already exists and was left as it is", err)

    def test_edit(self) -> None:
        """With --edit the editor gets it; where no one can be asked for trust the person is told how to go on."""
        self.environ |= {"EDITOR": "sed -i s/Describe/Now,/", "PATH": "/usr/bin:/bin"}
        words = ("action", "new", "tell", "--connector", "builtin://slack", "--op", "post_message", "--gated", "--edit")
        self.command(*words)
        self.assertIn("Now, for the model", self.text("tell"))
