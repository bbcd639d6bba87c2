"""Of the files that are written of an API."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import parse
from aileron.base.json import JSON
from aileron.connectors._schema import read_file
from aileron.features.importing.description import (
    BODY,
    GIVEN,
    PATH,
    QUERY,
    ApiCredential,
    ApiDescription,
    ApiOperation,
    ApiParameter,
    NotImported,
)
from aileron.features.importing.files import one_line, write_connector
from aileron.model.actions import Action, Input

TEXT = {"type": "string"}
ISSUE = ApiOperation(
    name="tracker_open_issue",
    title="Open an issue",
    description="Opens one.\n+++\n<b>Bold</b>",
    destructive=False,
    method="POST",
    path="/projects/{project}/issues",
    parameters=(
        ApiParameter("project", TEXT, PATH, ("project",)),
        ApiParameter("title", {**TEXT, "minLength": 1}, BODY, ("issue", "title"), description="What it says"),
        ApiParameter(
            "state", {**TEXT, "enum": ["open", "new"]}, BODY, ("issue", "state"), required=False, marks=("half",)
        ),
    ),
    body="json",
    constant=((("issue", "kind"), "bug"),),
    marks=("one\nline",),
)
API = ApiDescription("local://me/tracker", "Tracker", "https://tracker.example", (ISSUE,))


def action(api: ApiDescription = API) -> Action:
    """The action of its only operation."""
    (written,) = write_connector(api).actions
    return parse(written.text.encode(), written.name)


def described(parameter: ApiParameter) -> Input:
    """The input that a parameter becomes."""
    operation = ApiOperation("find", method="GET", path="/", effect="read", parameters=(parameter,))
    (found,) = action(ApiDescription("local://me/x", "X", "https://x.example", (operation,))).inputs
    return found


class FileTests(SynchronousTestCase):
    def check(self, text: str) -> None:
        """It is a connector file without fault."""
        self.assertEqual(read_file(text.encode(), "x.toml").problems, ())

    def test_connector(self) -> None:
        """The connector file has each parameter where it goes, constants beside them, and the marks as comments."""
        text = write_connector(API).connector.text
        self.check(text)
        self.assertIn("# TODO(import): one line\n", text)
        self.assertIn('path = "/projects/${in.project}/issues"\n', text)
        self.assertIn('json = {issue = {kind = "bug", title = "${in.title}", state = "${in.state}"}}\n', text)
        self.assertIn("destructive = false\n", text)

    def test_action(self) -> None:
        """The action has an input for each parameter, asks for approval, and says what it does in one line."""
        found = action()
        self.assertEqual(found.name, "tracker-open-issue")
        self.assertEqual([(each.name, each.required) for each in found.inputs][1:], [("title", True), ("state", False)])
        self.assertTrue(found.approval.gated)
        self.assertEqual(found.description.strip(), "# Open an issue\n\nOpens one. +++ Bold")
        self.assertIn("# TODO(import): half\n", found.text)

    def test_existing(self) -> None:
        """In a file that exists an operation is put in or replaced; all else in it stays, comments among it."""
        text = write_connector(API).connector.text.replace("[connector]", "# mine\n[connector]")
        self.assertEqual(write_connector(API, existing=text).connector.text, text)
        other = ApiOperation("ping", method="GET", path="/ping", effect="read")
        more = write_connector(ApiDescription(API.name, "T", "", (other,)), existing=text).connector.text
        self.check(more)
        self.assertTrue(more.startswith(text.rstrip("\n")))
        self.assertIn("[operations.ping]", more)

    def test_more_hosts(self) -> None:
        """The hosts and scopes that further operations need are put into a file that exists."""
        oauth = {"kind": "oauth2", "token_url": "https://x.example/token", "scopes": ["r"]}
        one = ApiOperation("one", method="GET", path="/", effect="read", scopes=("r",))
        two = evolve(one, name="two", scopes=("r", "w"), host="other")
        api = ApiDescription("local://me/x", "X", "https://x.example", (one,), ApiCredential(oauth))
        more = evolve(api, operations=(two,), hosts={"other": "https://other.example"})
        text = write_connector(more, existing=write_connector(api).connector.text).connector.text
        self.check(text)
        self.assertIn('scopes = ["r", "w"]\n', text)
        self.assertIn('[hosts]\nother = "https://other.example"\n', text)

    def test_other_hosts(self) -> None:
        """What is in a file that exists never becomes another connector's, and never goes to another place."""
        one = ApiOperation("one", method="GET", path="/", effect="read", host="other")
        api = ApiDescription("local://me/x", "X", "https://x.example", (one,), hosts={"other": "https://o.example"})
        text = write_connector(api).connector.text
        self.assertEqual(write_connector(api, existing=text).connector.text, text)
        for changed in (
            evolve(api, hosts={"other": "https://evil.example"}),
            evolve(api, base_url="https://y.example"),
            evolve(api, name="local://you/x"),
        ):
            with self.assertRaises(NotImported):
                write_connector(changed, existing=text)

    def test_names(self) -> None:
        """No two actions have one name, however alike those of their operations are."""
        names = ("x_find", "find", "a" * 80, "a" * 81)
        operations = tuple(ApiOperation(name, method="GET", path="/", effect="read") for name in names)
        written = write_connector(ApiDescription("local://me/x", "X", "https://x.example", operations))
        self.assertEqual(len({each.name for each in written.actions}), 4)
        for each in written.actions:
            parse(each.text.encode(), each.name)

    def test_other_kind(self) -> None:
        """An operation without a request has the keys of its kind, and its arguments only in the action."""
        parameters = (ApiParameter("title", TEXT, GIVEN, ("title",)),)
        tool = ApiOperation("open", parameters=parameters, extra={"tool": "open", "pin": "sha256:0"})
        api = ApiDescription("local://me/x", "X", "", (tool,), kind="mcp", extra={"mcp": {"url": "https://x.example"}})
        written = write_connector(api)
        self.assertIn('kind = "mcp"\n\n[mcp]\nurl = "https://x.example"\n', written.connector.text)
        self.assertIn('tool = "open"\npin = "sha256:0"\neffect = "write"\n', written.connector.text)
        self.assertNotIn("method", written.connector.text)
        self.assertIn('inputs = {title = "${args.title}"}', written.actions[0].text)

    def test_headline(self) -> None:
        """A write is worded by its summary, what its path names, and the argument that names its object."""
        removing = evolve(ISSUE, name="branches_remove", title="", method="DELETE", destructive=True)
        for operation, kind, titles in (
            (ISSUE, "request", ("Open an issue: ${in.project}: ${in.title}", "Open an issue: ${in.project}")),
            (removing, "delete", ("Branches remove: ${in.project}: ${in.title}", "Branches remove: ${in.project}")),
            (
                evolve(ISSUE, title="x" * 90, parameters=ISSUE.parameters[:1]),
                "request",
                ("Tracker open issue: ${in.project}",),
            ),
            (evolve(ISSUE, title="Do ${in.x}", parameters=(), path="/"), "request", ("Tracker open issue",)),
            (evolve(ISSUE, effect="read"), "", ()),
        ):
            text = write_connector(evolve(API, operations=(operation,))).connector.text
            spec = read_file(text.encode(), "tracker.toml").spec
            assert spec is not None
            found = spec.description.operations[operation.name].presentation
            self.assertEqual((found.kind, found.titles) if found else ("", ()), (kind, titles))

    def test_no_actions(self) -> None:
        """Without actions the marks of parameters are in the connector file."""
        written = write_connector(API, with_actions=False)
        self.assertEqual(written.actions, ())
        self.assertIn("# TODO(import): state: half", written.connector.text)

    def test_many(self) -> None:
        """Of more inputs than an action can have the deepest are left out and told; too many required are refused."""
        deep = [ApiParameter(f"d{i}", TEXT, QUERY, (f"d[{i}]",), required=False) for i in range(40)]
        flat = [ApiParameter(f"f{i}", TEXT, QUERY, (f"f{i}",), required=False) for i in range(40)]
        many = ApiOperation("many", method="GET", path="/", effect="read", parameters=(*deep, *flat))
        written = write_connector(ApiDescription("local://me/x", "X", "https://x.example", (many,)))
        self.assertEqual(written.actions[0].text.count("[[inputs]]"), 64)
        self.assertIn("f39", written.actions[0].text)
        self.assertNotIn("d39", written.actions[0].text)
        self.assertIn("at most 64 inputs: d24", written.marks[0])
        needed = tuple(ApiParameter(f"n{i}", TEXT, QUERY, (f"n{i}",)) for i in range(65))
        refused = ApiOperation("many", method="GET", path="/", parameters=needed)
        self.assertIn("64", write_connector(ApiDescription("local://me/x", "X", "", (refused,))).refused["many"])

    def test_large(self) -> None:
        """Of schemas that are too large together some are left out; if they are required, nothing is written."""
        member: JSON = {"type": "string", "description": "a" * 15_000}
        large: dict[str, JSON] = {"type": "object", "properties": {"member": member}}
        several = [ApiParameter(f"p{i}", large, BODY, (f"p{i}",), required=False) for i in range(8)]
        operation = ApiOperation("many", method="POST", path="/", body="json", parameters=tuple(several))
        written = write_connector(ApiDescription("local://me/x", "X", "https://x.example", (operation,)))
        self.assertLess(len(written.actions[0].text), 128 * 1024)
        self.assertIn("would be too large: p", written.marks[0])
        needed = evolve(operation, parameters=tuple(evolve(each, required=True) for each in several))
        self.assertIn("too large", write_connector(ApiDescription("local://me/x", "X", "", (needed,))).refused["many"])

    def test_plain_inputs(self) -> None:
        """A schema that the plain keys of an input can say is written in these, and any other as it is."""
        plain = described(ApiParameter("a", {"type": "integer", "minimum": 1}, QUERY, ("a",)))
        self.assertEqual((plain.type, plain.minimum, plain.schema), ("integer", 1, None))
        texts = described(ApiParameter("a", {"type": "array", "items": TEXT}, QUERY, ("a",)))
        self.assertEqual((texts.type, texts.items_type), ("array", "string"))
        schema = {"type": "string", "format": "uuid"}
        self.assertEqual(described(ApiParameter("a", schema, QUERY, ("a",))).schema, schema)

    def test_credential(self) -> None:
        """The credential's table is written with its marks."""
        credential = ApiCredential({"kind": "basic"}, ("a guess",))
        text = write_connector(
            ApiDescription("local://me/x", "X", "https://x.example", (ISSUE,), credential)
        ).connector.text
        self.check(text)
        self.assertIn('[credential]\n# TODO(import): a guess\nkind = "basic"\n', text)

    @given(st.text(max_size=400))
    def test_hostile_words(self, words: str) -> None:
        """Whatever a foreign text holds, the files are sound, and it is one line of characters that can be seen."""
        parameter = ApiParameter("a", TEXT, QUERY, ("a",), description=words, marks=(words,))
        operation = ApiOperation(
            "find", words, words, "read", method="GET", path="/", parameters=(parameter,), marks=(words,)
        )
        written = write_connector(
            ApiDescription("local://me/x", words, "https://x.example", (operation,), marks=(words,))
        )
        self.check(written.connector.text)
        found = parse(written.actions[0].text.encode(), written.actions[0].name)
        self.assertEqual((len(found.inputs), found.approval.gated), (1, False))
        line = one_line(words)
        self.assertTrue(line.isprintable() or not line.isascii())
        self.assertNotIn("\n", line)
