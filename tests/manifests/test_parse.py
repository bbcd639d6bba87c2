"""Action files are read whole: as the contract says, or refused with every fault and its line."""

from __future__ import annotations

import hashlib

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.manifests import ManifestFault, parse, tool_name
from aileron.values import JSON, ApprovalRule, Cap, ConnectorPin, Input, LoadError, Step

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
            found.requires, (ConnectorPin("hub://example/tracker", "2.0.0", ("create_issue",), "sha256:2222"),)
        )
        self.assertEqual(found.approval, ApprovalRule(required=True, expires_after_seconds=86400))
        self.assertEqual(found.body, "# Open a ticket\n\nCreates one.\n")
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

    def test_digest(self) -> None:
        """The digest is that of the very bytes."""
        self.assertEqual(parse(WHOLE, "x").digest, "sha256:" + hashlib.sha256(WHOLE).hexdigest())

    def test_defaults(self) -> None:
        """What is left out has its default."""
        found = action()
        self.assertEqual(found.source, "local://me/ship-update@1.0.0")
        self.assertEqual((found.timeout_seconds, found.approval, found.inputs), (60, ApprovalRule(), ()))
        self.assertEqual(found.intent, "")
        self.assertIsNone(found.requires[0].hash)

    def test_line_ends(self) -> None:
        """A byte order mark, blank lines at the top and CRLF change nothing but the body's own line ends."""
        data = b"\xef\xbb\xbf\r\n  \r\n" + WHOLE.replace(b"\n", b"\r\n")
        found = parse(data, "x")
        self.assertEqual(found.steps, parse(WHOLE, "x").steps)
        self.assertEqual(found.body, "# Open a ticket\r\n\r\nCreates one.\r\n")

    def test_body_is_verbatim(self) -> None:
        """Everything after the second fence is the body, more fences too."""
        self.assertEqual(parse(manifest(end="\n+++\n  a\n+++\nb"), "x").body, "  a\n+++\nb")


class ShapeTests(Faults):
    """Files that cannot be taken apart."""

    def test_no_fence(self) -> None:
        """Text before the first fence is told with its line; so is a fence that is never closed."""
        self.assert_fault(b"\n\nhello\n+++\n", "begin with a line `+++`", 3, "parse_error")
        self.assert_fault(b"", "begin with a line `+++`", 1, "parse_error")
        self.assert_fault(b'\n+++\nname = "x"\n', "no closing line", 2, "parse_error")

    def test_not_utf8(self) -> None:
        """The line of the first byte that is no UTF-8 is told."""
        self.assert_fault(b'+++\nname = "\xff"\n+++\n', "not UTF-8", 2, "parse_error")

    def test_toml_syntax(self) -> None:
        """A TOML error has the line of the file, not of the front matter."""
        self.assert_fault(b'\n+++\nname = "x"\nversion = \n+++\nbody', "not TOML", 4, "parse_error")
        self.assert_fault(b"+++\na = [\n+++\nbody", "not TOML", 3, "parse_error")
        self.assert_fault(b"+++\na = 1\na = 2\n+++\nbody", "not TOML", 3, "parse_error")

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
    @settings(deadline=None, max_examples=200)
    def test_any_bytes(self, data: bytes) -> None:
        """Whatever the bytes, nothing but a L{ManifestFault} with faults comes out."""
        try:
            parse(data, "x.md")
        except ManifestFault as fault:
            self.assertTrue(fault.errors)

    @given(st.integers(0, len(WHOLE)), st.integers(0, 40), st.binary(max_size=12))
    @example(0, 0, b"")
    @settings(deadline=None, max_examples=300)
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
        """Every fault is told, in the order of lines, each with its own."""
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
        lines = [(fault.line, fault.kind) for fault in self.faults(data)]
        self.assertEqual(
            lines,
            [
                (1, "validation_error"),
                (2, "validation_error"),
                (3, "validation_error"),
                (4, "validation_error"),
                (6, "validation_error"),
                (7, "validation_error"),
                (9, "validation_error"),
                (13, "validation_error"),
                (14, "validation_error"),
                (18, "validation_error"),
                (20, "validation_error"),
            ],
        )

    def test_text(self) -> None:
        """As text a fault is what a terminal makes a link of: file, line, message."""
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

    def test_name(self) -> None:
        """Names are lower case, and no longer than a tool's name may be."""
        for name in ("", "Ship", "-a", "a b", "é", "a" * 65, "a\\nb"):
            self.assert_fault(manifest(head=f'+++\nname = "{name}"\nversion = "1.0.0"\n'), "`name` must match", 2)
        self.assertEqual(parse(manifest(head=f'+++\nname = "{"a" * 64}"\nversion = "1.0.0"\n'), "x").name, "a" * 64)

    def test_reserved(self) -> None:
        """An action cannot take the name of one of our own tools, however it is written."""
        for name in (
            "check-action-status",
            "check_action.status",
            "aileron-diagnostics",
            "search-actions",
            "run_action",
            "describe.action",
        ):
            self.assert_fault(manifest(head=f'+++\nname = "{name}"\nversion = "1.0.0"\n'), "Aileron's own", 2)

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
        self.assert_fault(manifest(head=HEAD + "output = 1\n"), "`output` must be a table", 4)

    def test_version(self) -> None:
        """Versions are strict SemVer."""
        for version in ("1", "1.0", "v1.0.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0 "):
            self.assert_fault(manifest(head=f'+++\nname = "a"\nversion = "{version}"\n'), "semantic version", 3)
        for version in ("0.0.0", "1.2.3-rc.1+build.5", "1.0.0-0a", "1.0.0--"):
            parse(manifest(head=f'+++\nname = "a"\nversion = "{version}"\n'), "x")

    def test_source(self) -> None:
        """A source names scheme, owner, path and version."""
        for source in ("github://o/p", "ftp://o/p@1.0.0", "github://o@1.0.0", "github://o/../p@1.0.0"):
            self.assert_fault(manifest(head=HEAD + f'source = "{source}"\n'), "`source` must look like", 4)

    def test_timeout(self) -> None:
        """The time limit is from one second to an hour."""
        for value in ("0", "-1", "3601"):
            self.assert_fault(manifest(head=HEAD + f"timeout_seconds = {value}\n"), "from 1 to", 4)
        for value in ("true", "'60'", "nan", "inf"):
            self.assert_fault(manifest(head=HEAD + f"timeout_seconds = {value}\n"), "must be a number", 4)

    def test_wrong_shapes(self) -> None:
        """A value where a table belongs, and the reverse, are faults."""
        self.assert_fault(manifest(head=HEAD + "inputs = 3\n"), "`inputs` must be an array of tables", 4)
        self.assert_fault(manifest(head=HEAD + "approval = 3\n"), "`approval` must be a table", 4)
        self.assert_fault(manifest(head=HEAD + "match = 3\n"), "`match` must be a table", 4)
        self.assert_fault(manifest(head='+++\nname = ["a"]\nversion = "1.0.0"\n'), "`name` must be a string", 2)

    def test_intent(self) -> None:
        """Without a body an intent is needed; an intent that is written is not blank."""
        self.assertEqual(parse(manifest(tail='\n[match]\nintent = "x"', end="\n+++\n"), "x").intent, "x")
        self.assert_fault(manifest(end="\n+++\n \n"), "write a body", 1)
        self.assert_fault(manifest(tail='\n[match]\nintent = " "'), "`intent` must not be blank")

    def test_approval(self) -> None:
        """An expiry is a duration or seconds, and needs an approval."""
        for written, seconds in (('"30m"', 1800), ('"7d"', 604800), ('"45s"', 45), ("90", 90), ("0x10", 16)):
            tail = f"\n[approval]\nrequired = true\nexpires_after = {written}"
            self.assertEqual(parse(manifest(tail=tail), "x").approval.expires_after_seconds, seconds)
        for written in ('"0m"', '"1w"', '"m"', '"1.5h"', '"366d"', '"٣m"'):
            tail = f"\n[approval]\nrequired = true\nexpires_after = {written}"
            self.assert_fault(manifest(tail=tail), "must be a duration")
        self.assert_fault(manifest(tail="\n[approval]\nrequired = true\nexpires_after = 0"), "from 1 to")
        self.assert_fault(manifest(tail="\n[approval]\nexpires_after = 60"), "needs `required = true`")
        self.assert_fault(manifest(tail='\n[approval]\nrequired = "yes"'), "must be true or false")

    def test_limits(self) -> None:
        """Limits are whole numbers for an hour or a day, of all, of a session, or of each value of a declared input."""
        written = "per_hour = 3\nper_session_per_day = 9\n[limits.per_argument.a]\nper_day = 2"
        found = parse(manifest(inputs=one_input("a", "string"), tail="\n[limits]\n" + written), "x").caps
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

    def test_on_cancel(self) -> None:
        """What a cancelled call comes to is one of two words; unsaid, it waits on."""
        self.assertFalse(parse(manifest(), "x").approval.withdrawn_on_cancel)
        for written, withdrawn in [("withdraw", True), ("keep", False)]:
            tail = f'\n[approval]\nrequired = true\non_cancel = "{written}"'
            self.assertEqual(parse(manifest(tail=tail), "x").approval.withdrawn_on_cancel, withdrawn)
        self.assert_fault(
            manifest(tail='\n[approval]\nrequired = true\non_cancel = "drop"'), "must be one of: withdraw, keep"
        )
        self.assert_fault(manifest(tail='\n[approval]\non_cancel = "keep"'), "needs `required = true`")

    def test_cool_down(self) -> None:
        """A cool-down is at most a day, may be nothing, and is ten minutes unless it is written."""
        for written, seconds in (('"0s"', 0.0), ("0", 0.0), ('"24h"', 86400.0), ("90", 90.0)):
            tail = f"\n[approval]\nrequired = true\ncool_down = {written}"
            self.assertEqual(parse(manifest(tail=tail), "x").approval.cool_down_seconds, seconds)
        self.assertEqual(parse(manifest(), "x").approval.cool_down_seconds, 600.0)
        for written, problem in (('"25h"', "at most 24h"), ("-1", "from 0 to 86400"), ('"soon"', "a duration")):
            self.assert_fault(manifest(tail=f"\n[approval]\nrequired = true\ncool_down = {written}"), problem)
        self.assert_fault(manifest(tail='\n[approval]\ncool_down = "1m"'), "needs `required = true`")

    def test_undo(self) -> None:
        """An undo window is at most an hour, and needs an approval."""
        for written, seconds in (("0", 0.0), ("2.5", 2.5), ("3600", 3600.0)):
            tail = f"\n[approval]\nrequired = true\nundo_seconds = {written}"
            self.assertEqual(parse(manifest(tail=tail), "x").approval.undo_seconds, seconds)
        for written in ("-1", "3601"):
            tail = f"\n[approval]\nrequired = true\nundo_seconds = {written}"
            self.assert_fault(manifest(tail=tail), "`undo_seconds` must be from 0 to 3600")
        self.assert_fault(manifest(tail="\n[approval]\nundo_seconds = 5"), "needs `required = true`")


class ConnectorTests(Faults):
    """C{[[requires.connectors]]}."""

    def pin(self, name: str, extra: str = "") -> bytes:
        pin = f'\n[[requires.connectors]]\nname = "{name}"\nversion = "1.0.0"\ncapabilities = ["o"]\n{extra}\n'
        return manifest(pin=pin, step=f'[[execute]]\nid = "a"\nconnector = "{name}"\nop = "o"\n')

    def test_names(self) -> None:
        """A connector's name has a known scheme and an owner, but for those that are built in."""
        for name in ("builtin://slack", "local://me/tracker"):
            self.assertEqual(parse(self.pin(name), "x").requires[0].name, name)
        for name in ("builtin://", "builtin://a/b", "local://me", "http://a/b", "local://me/t@1.0.0"):
            self.assertIn("`name` must look like", self.faults(self.pin(name, 'hash = "sha256:a"'))[0].message)

    def test_hash(self) -> None:
        """What comes from elsewhere is pinned by content."""
        self.assert_fault(self.pin("github://o/p"), "`hash` is missing")
        self.assert_fault(self.pin("github://o/p", 'hash = "sha256:"'), "must begin with sha256:")
        self.assertEqual(parse(self.pin("github://o/p", 'hash = "sha256:ab"'), "x").requires[0].hash, "sha256:ab")

    def test_capabilities(self) -> None:
        """The operations are named, each by a string that is not blank."""
        for written in ("[]", '[" "]', "[1]", '"post_message"'):
            pin = PIN.replace('["post_message", "list_channels"]', written)
            self.assertIn("`capabilities` must be an array", self.faults(manifest(pin=pin))[0].message)

    def test_twice(self) -> None:
        """One connector is pinned once."""
        self.assert_fault(manifest(pin=PIN + PIN), "is required twice", "name =")

    def test_wrong_shape(self) -> None:
        """Nothing but connectors can be required, and at least one is."""
        messages = [fault.message for fault in self.faults(manifest(pin="\n[requires]\nconnectors = []\n"))]
        self.assertIn("`connectors` is missing", messages)


class InputTests(Faults):
    """C{[[inputs]]}."""

    def test_names(self) -> None:
        """Names are lower case identifiers, each once."""
        for name in ("", "A", "1a", "a-b", "a.b", "a" * 65):
            self.assert_fault(manifest(inputs=one_input(name, "string")), "`name` must match")
        self.assert_fault(manifest(inputs=one_input("a", "string") * 2), "declared twice")

    def test_keys_fit_the_type(self) -> None:
        """A key that means nothing for the type is a fault."""
        for kind, line in (
            ("string", 'items_type = "string"'),
            ("string", "minimum = 1"),
            ("integer", "max_length = 3"),
            ("integer", "multiline = true"),
            ("integer", 'format = "date"'),
            ("boolean", "enum = [true]"),
            ("object", "max_length = 3"),
        ):
            self.assert_fault(manifest(inputs=one_input("a", kind, line)), "is for inputs of type")

    def test_choices(self) -> None:
        """Types and formats are from a list."""
        self.assert_fault(manifest(inputs=one_input("a", "text")), "`type` must be one of: string, integer")
        self.assert_fault(manifest(inputs=one_input("a", "array", 'items_type = "array"')), "`items_type` must be")
        self.assert_fault(
            manifest(inputs=one_input("a", "string", 'format = "ipv4"')), "`format` must be one of: email"
        )

    def test_bounds(self) -> None:
        """Bounds are sensible numbers."""
        self.assert_fault(manifest(inputs=one_input("a", "integer", "minimum = 3", "maximum = 2")), "is greater than")
        self.assert_fault(manifest(inputs=one_input("a", "integer", "minimum = nan")), "must be a number")
        self.assert_fault(manifest(inputs=one_input("a", "string", "max_length = 0")), "from 1 to")
        self.assert_fault(manifest(inputs=one_input("a", "string", "max_length = 1.5")), "must be an integer")

    def test_default_obeys(self) -> None:
        """A default must be a value that the input would take."""
        for kind, lines in (
            ("string", ["default = 3"]),
            ("integer", ["default = true"]),
            ("integer", ["default = 5", "maximum = 4"]),
            ("string", ['default = "abc"', "max_length = 2"]),
            ("string", ['default = "c"', 'enum = ["a", "b"]']),
            ("string", ['default = "x"', 'format = "email"']),
            ("array", ['default = ["a"]', 'items_type = "integer"']),
        ):
            self.assert_fault(manifest(inputs=one_input("a", kind, *lines)), "`default` has a value")
        for value, part in (("1979-05-27", "must be written as a string"), ("nan", "not finite")):
            self.assert_fault(manifest(inputs=one_input("a", "string", f"default = {value}")), part, "default =")
        self.assert_fault(manifest(inputs=one_input("a", "string", 'default = "x"', "required = true")), "cannot be")

    def test_enum_obeys(self) -> None:
        """The values of an enum are of the input's type, at least one, each once."""
        self.assert_fault(manifest(inputs=one_input("a", "string", "enum = [1]")), "`enum` has a value")
        for values in ([], list(range(201))):
            self.assert_fault(manifest(inputs=one_input("a", "integer", f"enum = {values}")), "1 to 200 values")
        self.assert_fault(manifest(inputs=one_input("a", "string", 'enum = ["x", "x"]')), "a value twice")

    def test_texts(self) -> None:
        """A description is there; a label, if written, is not blank."""
        self.assert_fault(manifest(inputs='[[inputs]]\nname = "a"\ntype = "string"\n'), "`description` is missing")
        self.assert_fault(manifest(inputs=one_input("a", "string", 'label = " "')), "`label` must not be blank")

    def test_most(self) -> None:
        """64 inputs and no more."""
        tables = "".join(one_input(f"a{n}", "string") for n in range(65))
        self.assert_fault(manifest(inputs=tables), "64 are allowed")


class StepTests(Faults):
    """C{[[execute]]}."""

    def step(self, inputs: str, tail: str = "") -> bytes:
        return manifest(inputs=one_input("channel", "string"), step=STEP + f"inputs = {inputs}\n", tail=tail)

    def test_pinned(self) -> None:
        """A step calls an operation that its pinned connector names."""
        self.assert_fault(
            manifest(step=STEP.replace("post_message", "delete_all")), "not among the `capabilities`", "op ="
        )
        self.assert_fault(
            manifest(step=STEP.replace("slack", "mail")), "not among `[[requires.connectors]]`", "connector ="
        )

    def test_ids(self) -> None:
        """Each step has an id of its own that a reference can name."""
        self.assert_fault(manifest(step=STEP + STEP), "stands twice", "id =")
        self.assert_fault(manifest(step=STEP.replace('"post"', '"a.b"')), "`id` must match")

    def test_references(self) -> None:
        """References name declared inputs and earlier steps, and nothing else is a reference."""
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

    def test_line_of_a_reference(self) -> None:
        """In a table of its own, a bad reference has the line of its key."""
        step = STEP + '\n[execute.inputs]\na = "x"\nb = """\n${args.nobody}"""\n'
        self.assert_fault(manifest(step=step), "not a declared input", "b =")

    def test_result_of_a_step(self) -> None:
        """A step may use the result of an earlier one, unless somebody has to approve the action before it runs."""
        second = STEP.replace('"post"', '"again"') + 'inputs = { thread = "${steps.post.ts}" }\n'
        self.assertEqual(len(parse(manifest(step=STEP + second), "x").steps), 2)
        data = manifest(step=STEP + second, tail="\n[approval]\nrequired = true")
        self.assert_fault(data, "what is approved must be known beforehand", "inputs =")

    def test_not_json(self) -> None:
        """Dates and numbers that JSON cannot say are faults."""
        for value in ("1979-05-27", "[07:32:00]", "{ x = 1979-05-27T07:32:00Z }"):
            self.assert_fault(self.step(f"{{ a = {value} }}"), "must be written as a string")
        for value in ("nan", "inf", "9007199254740992"):
            self.assert_fault(self.step(f"{{ a = {value} }}"), "not finite, or beyond")
        self.assert_fault(self.step("{ a = " + "[" * 40 + "]" * 40 + " }"), "nested too deeply")

    def test_most(self) -> None:
        """16 steps and no more."""
        steps = "".join(STEP.replace('"post"', f'"p{n}"') for n in range(17))
        self.assert_fault(manifest(step=steps), "16 are allowed")

    def test_wrong_shape(self) -> None:
        """Inputs are a table."""
        self.assert_fault(self.step("3"), "`inputs` must be a table")
