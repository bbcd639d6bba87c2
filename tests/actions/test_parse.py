"""Action files are read whole: as the contract says, or refused with every fault and its line."""

from __future__ import annotations

import hashlib

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import ManifestFault, parse, tool_name
from aileron.base.json import JSON
from aileron.base.load_error import LoadError
from aileron.model.actions import ApprovalRule, Cap, ConnectorPin, Input, Step
from tests.extent import examples

from .files import END, HEAD, PIN, STEP, action, manifest, one_input

WHOLE = b"""+++
name = "open-ticket"
version = "0.2.1-rc.1"
source = "hub://example/open-ticket@0.2.1"
timeout_seconds = 90

[[requires.connectors]]
name = "hub://example/tracker"
version = "2.0.0"
hash = "sha256:2222"
capabilities = ["create_issue"]

[match]
intent = "file a bug"

[[inputs]]
name = "team"
type = "string"
label = "Team"
description = "Key of the team"
enum = ["core", "web"]

[[inputs]]
name = "labels"
type = "array"
items_type = "string"
required = false
max_length = 5
description = "Labels"

[[inputs]]
name = "weight"
type = "integer"
minimum = 1
maximum = 9
default = 3
description = "Weight"

[[execute]]
id = "create"
connector = "hub://example/tracker"
op = "create_issue"
idempotent = false

[execute.inputs]
teamKey = "${args.team}"
nested = { labels = ["${args.labels}", "fixed", 1, true] }

[approval]
required = true
expires_after = "24h"
+++
# Open a ticket

Creates one.
"""


def named(name: str, version: str = "1.0.0") -> str:
    """The head of a file."""
    return f'+++\nname = "{name}"\nversion = "{version}"\n'


class Faults(SynchronousTestCase):
    """What every test of faults needs."""

    def faults(self, data: bytes) -> tuple[LoadError, ...]:
        fault: ManifestFault = self.assertRaises(ManifestFault, parse, data, "x.md")
        return fault.errors

    def assert_fault(
        self, data: bytes, part: str, line: int | str | None = None, kind: str = "validation_error"
    ) -> None:
        """The file has exactly one fault, with C{part} in its message, in that line (or the last with that text)."""
        (fault,) = self.faults(data)
        self.assertIn(part, fault.message)
        self.assertEqual((fault.kind, fault.file), (kind, "x.md"))
        if isinstance(line, str):
            line = data[: data.rindex(line.encode())].count(b"\n") + 1
        if line is not None:
            self.assertEqual(fault.line, line)


class WholeFileTests(SynchronousTestCase):
    """A file that uses every key."""

    def test_every_key(self) -> None:
        """Every key ends up where it belongs."""
        found = parse(WHOLE, "open-ticket.md")
        self.assertEqual((found.name, found.version, found.tool_name), ("open-ticket", "0.2.1-rc.1", "open_ticket"))
        self.assertEqual(found.source, "hub://example/open-ticket@0.2.1")
        self.assertEqual(found.intent, "file a bug")
        self.assertEqual(found.timeout_seconds, 90)
        self.assertEqual(
            found.connectors, (ConnectorPin("hub://example/tracker", "2.0.0", ("create_issue",), "sha256:2222"),)
        )
        self.assertEqual(found.approval, ApprovalRule(gated=True, expires_after_seconds=86400))
        self.assertEqual(found.description, "# Open a ticket\n\nCreates one.\n")
        self.assertEqual(found.path, "open-ticket.md")
        inputs: dict[str, JSON] = {
            "teamKey": "${args.team}",
            "nested": {"labels": ["${args.labels}", "fixed", 1, True]},
        }
        self.assertEqual(
            found.steps, (Step("create", "hub://example/tracker", "create_issue", inputs, idempotent=False),)
        )

    def test_inputs(self) -> None:
        """Inputs keep their order, and one with a default is optional."""
        team, labels, weight = parse(WHOLE, "x").inputs
        self.assertEqual(
            team, Input("team", "string", "Key of the team", label="Team", enum=("core", "web"), max_length=65536)
        )
        self.assertEqual(labels, Input("labels", "array", "Labels", items_type="string", required=False, max_length=5))
        self.assertEqual((weight.required, weight.has_default, weight.default), (False, True, 3))

    def test_defaults(self) -> None:
        """What is left out has its default."""
        found = action()
        self.assertEqual(found.source, "local://me/ship-update@1.0.0")
        self.assertEqual((found.timeout_seconds, found.approval, found.inputs), (60, ApprovalRule(), ()))
        self.assertEqual(found.intent, "")
        self.assertIsNone(found.connectors[0].hash)

    def test_line_ends(self) -> None:
        """A byte order mark, blank lines at the top and CRLF change nothing but the body, which is verbatim."""
        data = b"\xef\xbb\xbf\r\n  \r\n" + WHOLE.replace(b"\n", b"\r\n")
        found = parse(data, "x")
        self.assertEqual(found.steps, parse(WHOLE, "x").steps)
        self.assertEqual(found.description, "# Open a ticket\r\n\r\nCreates one.\r\n")
        self.assertEqual(found.digest, "sha256:" + hashlib.sha256(data).hexdigest())
        self.assertEqual(parse(manifest(end="\n+++\n  a\n+++\nb"), "x").description, "  a\n+++\nb")


class ShapeTests(Faults):
    """Files that cannot be taken apart."""

    def test_not_taken_apart(self) -> None:
        """Text before the first fence, a fence never closed, what is no UTF-8 and no TOML: each has the file's line."""
        for data, part, line in (
            (b"\n\nhello\n+++\n", "begin with a line `+++`", 3),
            (b"", "begin with a line `+++`", 1),
            (b'\n+++\nname = "x"\n', "no closing line", 2),
            (b'+++\nname = "\xff"\n+++\n', "not UTF-8", 2),
            (b'\n+++\nname = "x"\nversion = \n+++\nbody', "not TOML", 4),
            (b"+++\na = [\n+++\nbody", "not TOML", 3),
            (b"+++\na = 1\na = 2\n+++\nbody", "not TOML", 3),
        ):
            self.assert_fault(data, part, line, "parse_error")

    def test_hostile_toml(self) -> None:
        """Deep nesting and endless digits are faults like others."""
        self.assert_fault(b"+++\na = " + b"[" * 50_000 + b"\n+++\n", "nested too deeply", 1, "parse_error")
        for deep in (
            b"a." * 40 + b"a = 1",
            b"[" + b"a . " * 40 + b"a]",
            b'a = { b = [{ "a"' + b".''" * 40 + b" = 1 }] }",
        ):
            self.assert_fault(b"+++\n\n" + deep + b"\n+++\n", "a key of too many parts", 3, "parse_error")
        self.assert_fault(b"+++\na = " + b"9" * 5000 + b"\n+++\n", "cannot be read", 1, "parse_error")

    def test_size(self) -> None:
        """256 KiB is the most."""
        room = 256 * 1024 - len(manifest())
        self.assertEqual(parse(manifest(end=END + "x" * room), "x").name, "ship-update")
        self.assert_fault(manifest(end=END + "x" * (room + 1)), "larger than 256 KiB", kind="parse_error")

    @given(st.binary() | st.binary().map(lambda data: b"+++\n" + data + b"\n+++\n"))
    @settings(deadline=None, max_examples=examples(200))
    def test_any_bytes(self, data: bytes) -> None:
        """Whatever the bytes, nothing but a L{ManifestFault} with faults comes out."""
        try:
            parse(data, "x.md")
        except ManifestFault as fault:
            self.assertTrue(fault.errors)

    @given(st.integers(0, len(WHOLE)), st.integers(0, 40), st.binary(max_size=12))
    @example(0, 0, b"")
    @settings(deadline=None, max_examples=examples(300))
    def test_damaged(self, at: int, cut: int, put: bytes) -> None:
        """A good file with a piece replaced loads, or is refused by a L{ManifestFault} whose lines are in the file."""
        data = WHOLE[:at] + put + WHOLE[at + cut :]
        try:
            parse(data, "x.md")
        except ManifestFault as fault:
            for error in fault.errors:
                self.assertLessEqual(error.line or 1, data.count(b"\n") + 1)


class EveryFaultTests(Faults):
    """Faults are collected."""

    def test_all_at_once(self) -> None:
        """Every fault is told, in the order of lines, each with its own; as text, for a terminal to make a link of."""
        data = b"""+++
name = "Bad Name"
version = "v1"
colour = "red"

[[requires.connectors]]
name = "slack"
version = "1.0.0"
capabilities = []

[[inputs]]
name = "a"
type = "text"
description = " "

[[execute]]
id = "post"
connector = "builtin://slack"
op = "post_message"
inputs = { x = "${args.b}" }
+++
"""
        faults = self.faults(data)
        self.assertEqual([fault.line for fault in faults], [1, 2, 3, 4, 6, 7, 9, 13, 14, 18, 20])
        self.assertEqual({fault.kind for fault in faults}, {"validation_error"})
        fault = self.assertRaises(ManifestFault, parse, b"hello", "dir/x.md")
        self.assertTrue(str(fault).startswith("dir/x.md:1: the file must begin"))

    def test_cap(self) -> None:
        """A file with thousands of faults is reported with fifty."""
        head = HEAD + "".join(f"k{n} = 1\n" for n in range(3000))
        self.assertEqual(len(self.faults(manifest(head=head))), 50)


class TopLevelTests(Faults):
    """Keys of the file itself."""

    def test_missing(self) -> None:
        """An empty front matter lacks name, version, connectors, steps, and a body or intent."""
        messages = " ".join(fault.message for fault in self.faults(b"+++\n+++\n"))
        for part in ("`name`", "`version`", "`requires`", "`execute`", "`[match] intent`"):
            self.assertIn(part, messages)

    def test_unknown_keys(self) -> None:
        """An unknown key, anywhere, is a fault with its name and line."""
        for data, key in (
            (manifest(head=HEAD + "retries = 3\n"), "retries"),
            (manifest(tail='\n[match]\nintent = "x"\nwords = 1'), "words"),
            (manifest(pin=PIN + "scope = 1\n"), "scope"),
            (manifest(inputs=one_input("a", "string", "pattern = 'x'")), "pattern"),
            (manifest(step=STEP + "when = 1\n"), "when"),
            (manifest(tail="\n[approval]\nask = true"), "ask"),
        ):
            self.assert_fault(data, f"`{key}` is not a known key", f"{key} =")

    def test_values(self) -> None:
        """Names are lower case, short and not our own tools'; each other key has a form, and a fault its line."""
        versions = ("1", "1.0", "v1.0.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0 ")
        own = "check-action-status check_action.status aileron-diagnostics search-actions run_action describe.action"
        sources = ("github://o/p", "ftp://o/p@1.0.0", "github://o@1.0.0", "github://o/../p@1.0.0")
        for head, part, line in (
            *((named(name), "`name` must match", 2) for name in ("", "Ship", "-a", "a b", "é", "a" * 65, "a\\nb")),
            *((named(name), "Aileron's own", 2) for name in own.split()),
            ('+++\nname = ["a"]\nversion = "1.0.0"\n', "`name` must be a string", 2),
            *((named("a", version), "semantic version", 3) for version in versions),
            *((HEAD + f'source = "{source}"\n', "`source` must look like", 4) for source in sources),
            *((HEAD + f"timeout_seconds = {value}\n", "from 1 to", 4) for value in ("0", "-1", "3601")),
            *(
                (HEAD + f"timeout_seconds = {value}\n", "must be a number", 4)
                for value in ("true", "'6'", "nan", "inf")
            ),
            (HEAD + "inputs = 3\n", "`inputs` must be an array of tables", 4),
            *((HEAD + f"{key} = 3\n", f"`{key}` must be a table", 4) for key in ("approval", "match", "output")),
        ):
            self.assert_fault(manifest(head=head), part, line)
        self.assertEqual(parse(manifest(head=named("a" * 64)), "x").name, "a" * 64)
        for version in ("0.0.0", "1.2.3-rc.1+build.5", "1.0.0-0a", "1.0.0--"):
            self.assertEqual(parse(manifest(head=named("a", version)), "x").version, version)

    def test_intent(self) -> None:
        """Without a body an intent is needed; an intent that is written is not blank."""
        self.assertEqual(parse(manifest(tail='\n[match]\nintent = "x"', end="\n+++\n"), "x").intent, "x")
        self.assert_fault(manifest(end="\n+++\n \n"), "write a body", 1)
        self.assert_fault(manifest(tail='\n[match]\nintent = " "'), "`intent` must not be blank")

    def test_tool_name(self) -> None:
        """Dashes and dots become underscores, and what is too long ends with a mark of its own."""
        self.assertEqual(tool_name("a-b.c_d9"), "a_b_c_d9")
        long = [tool_name("a" * 63 + end) for end in "bc"]
        self.assertEqual([len(name) for name in long], [48, 48])
        self.assertNotEqual(*long)
        self.assertEqual(tool_name("a" * 48), "a" * 48)

    def test_output(self) -> None:
        """The schema of what comes out is taken as it stands; what is no schema, or leads elsewhere, is a fault."""
        tail = '\n[output]\ntype = "object"\nproperties.ts.type = "string"\n'
        found = parse(manifest(tail=tail), "x")
        self.assertEqual(found.output_schema, {"type": "object", "properties": {"ts": {"type": "string"}}})
        self.assertIsNone(parse(manifest(), "x").output_schema)
        self.assert_fault(manifest(tail='\n[output]\ntype = "text"\n'), "must be a JSON Schema")
        self.assert_fault(manifest(tail='\n[output]\n"$ref" = "https://example.org/x"\n'), "must not refer to")

    def test_limits(self) -> None:
        """Limits are whole numbers for an hour or a day, of all, of a session, or of each value of a declared input."""
        written = "per_hour = 3\nper_session_per_day = 9\n[limits.per_argument.a]\nper_day = 2"
        found = parse(manifest(inputs=one_input("a", "string"), tail="\n[limits]\n" + written), "x").limits
        self.assertEqual(found, (Cap(3, 3600.0), Cap(9, 86400.0, per_session=True), Cap(2, 86400.0, "a")))
        for tail, problem in (
            ("per_hour = 0", "`per_hour` must be from 1 to 1000000"),
            ("per_hour = 1.5", "`per_hour` must be an integer"),
            ("per_day = true", "`per_day` must be a number"),
            ("per_minute = 1", "`per_minute` is not a known key"),
            ("per_argument = 3", "`per_argument` must be a table"),
            ("[limits.per_argument.b]\nper_day = 2", "`b` is not a declared input"),
            ("[limits.per_argument.a]\nper_session_per_day = 2", "`per_session_per_day` is not a known key"),
        ):
            text = manifest(inputs=one_input("a", "string"), tail="\n[limits]\n" + tail)
            self.assertIn(problem, " ".join(fault.message for fault in self.faults(text)))


class ApprovalTests(Faults):
    """C{[approval]}."""

    def test_values(self) -> None:
        """Each time is a duration or a number of seconds; what a cancelled call comes to is one of two words."""
        for written, name, value in (
            ('expires_after = "30m"', "expires_after_seconds", 1800),
            ('expires_after = "7d"', "expires_after_seconds", 604800),
            ('expires_after = "45s"', "expires_after_seconds", 45),
            ("expires_after = 90", "expires_after_seconds", 90),
            ("expires_after = 0x10", "expires_after_seconds", 16),
            ("", "cool_down_seconds", 600.0),
            ('cool_down = "0s"', "cool_down_seconds", 0.0),
            ("cool_down = 0", "cool_down_seconds", 0.0),
            ('cool_down = "24h"', "cool_down_seconds", 86400.0),
            ("cool_down = 90", "cool_down_seconds", 90.0),
            ("undo_seconds = 0", "undo_seconds", 0.0),
            ("undo_seconds = 2.5", "undo_seconds", 2.5),
            ("undo_seconds = 3600", "undo_seconds", 3600.0),
            ("", "withdrawn_on_cancel", False),
            ('on_cancel = "withdraw"', "withdrawn_on_cancel", True),
            ('on_cancel = "keep"', "withdrawn_on_cancel", False),
            ("", "by", ()),
            ('by = ["alice", "administrator"]', "by", ("alice", "administrator")),
            ("not_requester = true", "not_requester", True),
        ):
            found = parse(manifest(tail=f"\n[approval]\nrequired = true\n{written}"), "x").approval
            self.assertEqual(getattr(found, name), value, written)

    def test_faults(self) -> None:
        """Every other value is a fault, and so is each key where no approval is required."""
        for written, part in (
            *(
                (f"expires_after = {each}", "a duration")
                for each in ('"0m"', '"1w"', '"m"', '"1.5h"', '"366d"', '"٣m"')
            ),
            ("expires_after = 0", "from 1 to"),
            ('cool_down = "25h"', "at most 24h"),
            ("cool_down = -1", "from 0 to 86400"),
            ('cool_down = "soon"', "a duration"),
            ("undo_seconds = -1", "`undo_seconds` must be from 0 to 3600"),
            ("undo_seconds = 3601", "`undo_seconds` must be from 0 to 3600"),
            ('on_cancel = "drop"', "must be one of: withdraw, keep"),
            ('by = "alice"', "an array of strings"),
            ("by = []", "one or more strings"),
            ('by = ["viewer"]', "no role that decides"),
            ('by = ["Alice"]', "no account"),
            (f"by = {[f'a{at}' for at in range(33)]}", "more than 32 names"),
            ('not_requester = "yes"', "must be true or false"),
        ):
            self.assert_fault(manifest(tail=f"\n[approval]\nrequired = true\n{written}"), part)
        approvers = ('by = ["alice"]', "not_requester = true")
        for written in ("expires_after = 60", 'cool_down = "1m"', "undo_seconds = 5", 'on_cancel = "keep"', *approvers):
            self.assert_fault(manifest(tail=f"\n[approval]\n{written}"), "needs `required = true`")
        self.assert_fault(manifest(tail='\n[approval]\nrequired = "yes"'), "must be true or false")


class ConnectorTests(Faults):
    """C{[[requires.connectors]]}."""

    def pin(self, name: str, extra: str = "") -> bytes:
        pin = f'\n[[requires.connectors]]\nname = "{name}"\nversion = "1.0.0"\ncapabilities = ["o"]\n{extra}\n'
        return manifest(pin=pin, step=f'[[execute]]\nid = "a"\nconnector = "{name}"\nop = "o"\n')

    def test_names(self) -> None:
        """A name has a known scheme and an owner, but for what is built in; what is from elsewhere has a hash."""
        for name in ("builtin://slack", "local://me/tracker"):
            self.assertEqual(parse(self.pin(name), "x").connectors[0].name, name)
        for name in ("builtin://", "builtin://a/b", "local://me", "http://a/b", "local://me/t@1.0.0"):
            self.assertIn("`name` must look like", self.faults(self.pin(name, 'hash = "sha256:a"'))[0].message)
        self.assert_fault(self.pin("github://o/p"), "`hash` is missing")
        self.assert_fault(self.pin("github://o/p", 'hash = "sha256:"'), "must begin with sha256:")
        self.assertEqual(parse(self.pin("github://o/p", 'hash = "sha256:ab"'), "x").connectors[0].hash, "sha256:ab")

    def test_capabilities(self) -> None:
        """Operations are named, by strings that are not blank; a connector is pinned once, and one at least."""
        for written in ("[]", '[" "]', "[1]", '"post_message"'):
            pin = PIN.replace('["post_message", "list_channels"]', written)
            self.assertIn("`capabilities` must be an array", self.faults(manifest(pin=pin))[0].message)
        self.assert_fault(manifest(pin=PIN + PIN), "is required twice", "name =")
        messages = [fault.message for fault in self.faults(manifest(pin="\n[requires]\nconnectors = []\n"))]
        self.assertIn("`connectors` is missing", messages)


class InputTests(Faults):
    """C{[[inputs]]}."""

    def test_names(self) -> None:
        """Names are lower case identifiers, each once, 64 at most; a description is there."""
        for name in ("", "A", "1a", "a-b", "a.b", "a" * 65):
            self.assert_fault(manifest(inputs=one_input(name, "string")), "`name` must match")
        self.assert_fault(manifest(inputs=one_input("a", "string") * 2), "declared twice")
        self.assert_fault(manifest(inputs="".join(one_input(f"a{n}", "string") for n in range(65))), "64 are allowed")
        self.assert_fault(manifest(inputs='[[inputs]]\nname = "a"\ntype = "string"\n'), "`description` is missing")

    def test_faults(self) -> None:
        """Keys fit the type, choices are from a list, bounds are sensible, and defaults and choices obey the rest."""
        misplaced, default = "is for inputs of type", "`default` has a value"
        for kind, part, *lines in (
            ("string", misplaced, 'items_type = "string"'),
            ("string", misplaced, "minimum = 1"),
            ("integer", misplaced, "max_length = 3"),
            ("integer", misplaced, "multiline = true"),
            ("integer", misplaced, 'format = "date"'),
            ("boolean", misplaced, "enum = [true]"),
            ("object", misplaced, "max_length = 3"),
            ("text", "`type` must be one of: string, integer"),
            ("array", "`items_type` must be", 'items_type = "array"'),
            ("string", "`format` must be one of: email", 'format = "ipv4"'),
            ("integer", "is greater than", "minimum = 3", "maximum = 2"),
            ("integer", "must be a number", "minimum = nan"),
            ("string", "from 1 to", "max_length = 0"),
            ("string", "must be an integer", "max_length = 1.5"),
            ("string", default, "default = 3"),
            ("integer", default, "default = true"),
            ("integer", default, "default = 5", "maximum = 4"),
            ("string", default, 'default = "abc"', "max_length = 2"),
            ("string", default, 'default = "c"', 'enum = ["a", "b"]'),
            ("string", default, 'default = "x"', 'format = "email"'),
            ("array", default, 'default = ["a"]', 'items_type = "integer"'),
            ("string", "must be written as a string", "default = 1979-05-27"),
            ("string", "not finite", "default = nan"),
            ("string", "cannot be", 'default = "x"', "required = true"),
            ("string", "`enum` has a value", "enum = [1]"),
            ("integer", "1 to 200 values", "enum = []"),
            ("integer", "1 to 200 values", f"enum = {list(range(201))}"),
            ("string", "a value twice", 'enum = ["x", "x"]'),
            ("string", "`label` must not be blank", 'label = " "'),
        ):
            self.assert_fault(manifest(inputs=one_input("a", kind, *lines)), part)


class StepTests(Faults):
    """C{[[execute]]}."""

    def step(self, inputs: str, tail: str = "") -> bytes:
        return manifest(inputs=one_input("channel", "string"), step=STEP + f"inputs = {inputs}\n", tail=tail)

    def test_pinned(self) -> None:
        """A step calls an operation that its pinned connector names, and has an id of its own; 16 are the most."""
        for step, part, line in (
            (STEP.replace("post_message", "delete_all"), "not among the `capabilities`", "op ="),
            (STEP.replace("slack", "mail"), "not among `[[requires.connectors]]`", "connector ="),
            (STEP + STEP, "stands twice", "id ="),
            (STEP.replace('"post"', '"a.b"'), "`id` must match", None),
            ("".join(STEP.replace('"post"', f'"p{n}"') for n in range(17)), "16 are allowed", None),
        ):
            self.assert_fault(manifest(step=step), part, line)

    def test_references(self) -> None:
        """References name declared inputs and earlier steps, nothing else is one, and a fault has its key's line."""
        for inputs, part in (
            ('{ a = "${args.nobody}" }', "not a declared input"),
            ('{ a = [{ b = "x ${args.nobody} y" }] }', "not a declared input"),
            ('{ a = "${steps.post.ts}" }', "not an earlier step"),
            ('{ a = "${steps.later.ts}" }', "not an earlier step"),
            ('{ a = "${steps.post}" }', "is none of"),
            ('{ a = "${env.HOME}" }', "is none of"),
            ('{ a = "${channel}" }', "is none of"),
            ('{ a = "${args.channel.x}" }', "is none of"),
            ('{ a = "${}" }', "is none of"),
            ('{ a = "${args.channel" }', "not closed"),
            ('{ "${args.channel}" = 1 }', "only values can be"),
        ):
            self.assert_fault(self.step(inputs), part, "inputs =")
        parse(self.step('{ a = "${args.channel}", b = "$${args.nobody}" }'), "x")
        step = STEP + '\n[execute.inputs]\na = "x"\nb = """\n${args.nobody}"""\n'
        self.assert_fault(manifest(step=step), "not a declared input", "b =")

    def test_result_of_a_step(self) -> None:
        """A step may use the result of an earlier one, unless somebody has to approve the action before it runs."""
        second = STEP.replace('"post"', '"again"') + 'inputs = { thread = "${steps.post.ts}" }\n'
        self.assertEqual(len(parse(manifest(step=STEP + second), "x").steps), 2)
        data = manifest(step=STEP + second, tail="\n[approval]\nrequired = true")
        self.assert_fault(data, "what is approved must be known beforehand", "inputs =")

    def test_not_json(self) -> None:
        """Inputs are a table, without dates and numbers that JSON cannot say."""
        self.assert_fault(self.step("3"), "`inputs` must be a table")
        for value in ("1979-05-27", "[07:32:00]", "{ x = 1979-05-27T07:32:00Z }"):
            self.assert_fault(self.step(f"{{ a = {value} }}"), "must be written as a string")
        for value in ("nan", "inf", "9007199254740992"):
            self.assert_fault(self.step(f"{{ a = {value} }}"), "not finite, or beyond")
        self.assert_fault(self.step("{ a = " + "[" * 40 + "]" * 40 + " }"), "nested too deeply")
