"""New actions: right as they stand, inert, and written over nothing."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from aileron.cli.actions.drafting import TYPES, Draft, Wanted, text_of, wanted
from aileron.connectors import read_descriptions
from aileron.errors import InvalidRequest
from aileron.manifests import check
from tests.cli.daemon import CommandCase

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
        """Of every operation that comes with the program an action can be begun, with what the operation takes."""
        for known, takes in read_descriptions(self.home.connectors):
            for op, taken in takes.items():
                name = op.replace("_", "-")
                code, out, err = self.command("action", "new", name, "--connector", known.fqn, "--op", op, "--gated")
                self.assertEqual(code, 0, err)
                self.assertIn("Written: ", out)
                self.assertIn("does nothing before you trust it", err)
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

    def test_never_over(self) -> None:
        """A file that is there is left as it is."""
        path = self.home.actions / "tell.md"
        path.write_text("mine")
        words = ("action", "new", "tell", "--connector", "builtin://slack", "--op", "post_message", "--gated")
        code, _, err = self.command(*words)
        self.assertEqual((code, path.read_text()), (1, "mine"))
        self.assertIn("it was left as it is", err)

    def test_wrong(self) -> None:
        """What cannot be is refused, told with what there is, and nothing is written."""
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

    def test_edit(self) -> None:
        """With --edit the editor gets it; where no one can be asked for trust the person is told how to go on."""
        self.environ |= {"EDITOR": "sed -i s/Say.here/Now/", "PATH": "/usr/bin:/bin"}
        words = ("action", "new", "tell", "--connector", "builtin://slack", "--op", "post_message", "--gated", "--edit")
        self.command(*words)
        self.assertIn("Now, for the model", self.text("tell"))
