"""The listings of the page on writing connectors are what they say."""

from __future__ import annotations

import json
import pathlib
import re
from textwrap import dedent

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import parse
from aileron.connectors import CommandConnector, CommandSpec, GitSpec, HttpConnector, check, replay
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.http._when import condition
from tests.connectors.service import Service, spec_of

PAGE = pathlib.Path(__file__).parents[2] / "doc" / "writing-a-connector.md"
LISTING = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OTHER = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEYS = """
    name version description base_url default bindable hosts private_network kind header format method path query
    headers json form text mail effect idempotent answer result error refused redirect max_response_bytes
    timeout_seconds xml slashes lists scopes
    precondition answer_headers media_type file host title pattern example [hosts] [variables.<name>]
    graphql variables multipart file filename base64 parts
    pages items cursor parameter until size first most_pages most_items more more_answers
    repository branches tags directory environment inherit sandbox network program arguments dashes stdin success
    failure
    max_output_bytes variable
    error.when error.message error.class reconcile op inputs items match absent after_seconds complete absent_statuses
"""


class PageTests(SynchronousTestCase):
    """C{doc/writing-a-connector.md}."""

    def setUp(self) -> None:
        self.page = PAGE.read_text("utf-8")

    def connector(self) -> HttpConnector:
        (listing,) = LISTING.findall(self.page)
        return Service().connector(spec_of(listing))

    def test_listing(self) -> None:
        """The connector of the page loads, and makes the request that its reader expects."""
        connector = self.connector()
        self.assertEqual("local://me/tracker", connector.describe().name)
        inputs = {"project": "a/b", "title": "It breaks", "labels": ["bug"]}
        request = connector.prepare("create_issue", inputs, "https://tracker.example", "k1")
        self.assertEqual("https://tracker.example/api/projects/a%2Fb/issues", request.url)
        self.assertEqual(["bug"], json.loads(request.body or b"")["labels"])
        self.assertEqual("k1", dict(request.headers)["Idempotency-Key"])

    def test_recorded_answers(self) -> None:
        """The recorded answers of the page are what its connector makes of them."""
        (recorded,) = [each for each in OTHER.findall(self.page) if each.startswith("[[operations.")]
        file = pathlib.Path(self.mktemp()).with_suffix(".toml").absolute()
        file.write_text(LISTING.findall(self.page)[0])
        file.with_suffix(".fixtures.toml").write_text(recorded)
        replayed = replay(str(file), file.parent)
        assert replayed is not None
        self.assertEqual(replayed.problems, ())
        self.assertEqual(replayed.seen["create_issue"], ["done", "reconcile", "refused"])

    def test_omitted_inputs(self) -> None:
        """An input that was not given is left out of the query."""
        request = self.connector().prepare("find_issues", {"project": "p"}, "https://tracker.example", "k1")
        self.assertTrue(request.url.endswith("/api/projects/p/issues?state=open"))

    def test_attachments(self) -> None:
        """The operations that answer with attachments are ones."""
        (listing,) = [each for each in OTHER.findall(self.page) if "b64_json" in each]
        operations = spec_of(LISTING.findall(self.page)[0] + listing).operations
        self.assertEqual("file", operations["chart"].answer)
        drawing = (operations["draw"].result or {})["drawing"]
        self.assertEqual(("image/png", True), (drawing.media_type, drawing.encoded))

    def test_variables(self) -> None:
        """The connector with variables loads, and its upload goes to its other host."""
        (listing,) = [each for each in OTHER.findall(self.page) if each.startswith("[connector]") and "{site}" in each]
        request = (
            Service().connector(spec_of(listing)).prepare("upload", {"text": "x"}, "https://a.chat.example/api", "k")
        )
        self.assertEqual("https://upload-a.chat.example/files", request.url)

    def test_graphql(self) -> None:
        """The operation in GraphQL is one."""
        (listing,) = [each for each in OTHER.findall(self.page) if ".graphql]" in each]
        spec = spec_of(LISTING.findall(self.page)[0] + listing)
        self.assertEqual({"id"}, spec.operations["close_issue"].inputs)

    def test_uploads(self) -> None:
        """The uploads are ones, and carry what they are given."""
        (listing,) = [each for each in OTHER.findall(self.page) if ".multipart]" in each]
        connector = Service().connector(spec_of(LISTING.findall(self.page)[0] + listing))
        form = connector.prepare("upload", {"name": "a.csv", "report": "1"}, "https://tracker.example", "k")
        file = connector.prepare("replace", {"id": 1, "type": "a/b", "content": "AA"}, "https://tracker.example", "k")
        self.assertEqual([[each.content for each in made.parts] for made in (form, file)], [[b"1"], [b"\0"]])

    def test_program(self) -> None:
        """The local program of the page loads, and is run as its reader expects."""
        (listing,) = [each for each in OTHER.findall(self.page) if 'kind = "command"' in each]
        spec = read_file(listing.encode(), "deploy.toml").spec
        assert isinstance(spec, CommandSpec)
        connector = CommandConnector(spec, Clock(), {})
        inputs = {"server": "one", "version": "1.2", "notes": "New."}
        request = connector.prepare("deploy", inputs, "file:///home/me/site", "k1")
        shown = json.loads(request.body or b"")
        self.assertEqual(shown["argv"], ["/usr/local/bin/deploy", "--to", "one", "--", "1.2"])
        self.assertEqual((shown["stdin"], shown["directory"]), ("New.", "/home/me/site"))

    def test_git(self) -> None:
        """The connector and the action of the page on git load, and fit each other."""
        page = PAGE.with_name("git.md").read_text("utf-8")
        texts = [dedent(each) for each in re.findall(r"^ *```text\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL)]
        spec, action = read_file(texts[0].encode(), "site.toml").spec, parse(texts[1].encode(), "push-site.md")
        assert isinstance(spec, GitSpec)
        self.assertTrue(spec.may_update("refs/heads/agent/x") and not spec.may_update("refs/heads/release"))
        (step,), rule = action.steps, action.approval.preview
        assert rule is not None
        operations = spec.operations
        self.assertEqual(set(step.inputs), operations[step.operation].inputs)
        self.assertLessEqual(set(rule.args), operations[rule.operation].inputs)
        listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]+) \| [^|]* \| ", page, re.MULTILINE)))
        self.assertEqual(sorted(listed), sorted(operations))

    def test_git_host(self) -> None:
        """The connector of the page on own tools is one of a git host, as the page on connectors says."""
        page = PAGE.with_name("own-tools.md").read_text("utf-8")
        texts = [dedent(each) for each in re.findall(r"^ *```text\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL)]
        spec = read_file(next(each for each in texts if "[own_tools]" in each).encode(), "git-hub.toml").spec
        assert isinstance(spec, GitSpec)
        tools = spec.description.own_tools
        assert tools is not None
        self.assertEqual((True, ("github.com",), "git-hub"), (tools.is_git, tools.hosts, tools.service))

    def test_comparisons(self) -> None:
        """Every comparison of the table is one."""
        for text in ("ok == false", 'status != "done"', "issue.number missing"):
            self.assertIn(f"| `{text}` |", self.page)
            condition(text)

    def test_every_key_is_there(self) -> None:
        """No key is left unexplained."""
        for word in KEYS.split():
            self.assertTrue(re.search(rf"[` ]{re.escape(word)}`", self.page), word)


class CookbookTests(SynchronousTestCase):
    """C{doc/connector-cookbook.md}."""

    def setUp(self) -> None:
        page = PAGE.with_name("connector-cookbook.md").read_text("utf-8")
        _, *parts = re.split(r"^## (.*)$", page, flags=re.MULTILINE)
        self.recipes = dict(zip(parts[::2], parts[1::2], strict=True))
        self.listed = re.findall(r"^\| [^|]+ \| \[([^]]+)\]\(#[a-z0-9-]+\) \|$", page, re.MULTILINE)

    def test_index(self) -> None:
        """The table at the top lists every recipe, in order."""
        self.assertEqual(self.listed, list(self.recipes))

    def test_recipes(self) -> None:
        """Each recipe loads; its recorded answers, where it has any, show every operation, and come out as they say."""
        for title, recipe in self.recipes.items():
            (listing,) = LISTING.findall(recipe)
            recorded = [each for each in OTHER.findall(recipe) if "[[operations." in each]
            file = pathlib.Path(self.mktemp()).with_suffix(".toml").absolute()
            file.write_text(listing)
            self.assertEqual(check(file), [], title)
            if 'kind = "command"' in listing:
                self.assertEqual(recorded, [], title)
                continue
            file.with_suffix(".fixtures.toml").write_text(*recorded)
            replayed = replay(str(file), file.parent)
            assert replayed is not None
            self.assertEqual(replayed.problems, (), title)
            self.assertNotIn([], [*replayed.seen.values()], title)

    def test_preview(self) -> None:
        """The action of a recipe fills the write's precondition from its preview."""
        recipe = self.recipes["Change only what you saw"]
        (steps,) = [each for each in OTHER.findall(recipe) if each.startswith("[[execute]]")]
        inputs = "".join(
            f'[[inputs]]\nname = "{name}"\ntype = "string"\ndescription = "It."\n' for name in ("id", "text")
        )
        needs = '[[requires.connectors]]\nname = "local://me/wiki"\nversion = "1.0.0"\n'
        needs += 'capabilities = ["get_page", "update_page"]\n'
        text = f'+++\nname = "update-page"\nversion = "1.0.0"\n{needs}{inputs}{steps}+++\n# Update\n\nUpdates.\n'
        (step,), rule = (action := parse(text.encode(), "update-page.md")).steps, action.approval.preview
        assert rule is not None
        self.assertEqual((step.operation, rule.operation), ("update_page", "get_page"))
