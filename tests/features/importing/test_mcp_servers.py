"""Of C{aileron connector import} for MCP servers: how one begins, what is pinned, what is shown of changes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import attrs

from aileron.base.json import digest
from aileron.connectors import check
from aileron.features.importing.tools import word_difference
from aileron.home.discovery import live_discovery, write_discovery
from aileron.model.errors import NotFound
from tests.cli.daemon import RUN, CommandCase

NAME, URL = "local://me/tracker", "https://mcp.example.com/mcp"
CREATE: dict[str, Any] = {
    "name": "createIssue",
    "description": "Creates an issue in one team.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "What it is about"},
            "teamId": {"$ref": "#/$defs/id"},
            "more": {"$ref": "https://evil.example/schema"},
        },
        "required": ["title"],
        "$defs": {"id": {"type": "integer"}},
    },
    "annotations": {"readOnlyHint": True},
}
SEARCH: dict[str, Any] = {"name": "search", "description": "Searches.", "inputSchema": {"type": "object"}}


def listed(*tools: dict[str, Any]) -> dict[str, Any]:
    """The answer to the action that lists them."""
    output = {"tools": [{**each, "pin": digest(each)} for each in tools]}
    return {"run_id": RUN, "result": {"output": output, "steps": {}}}


class ToolsCase(CommandCase):
    """A directory for what is written, and a daemon that lists tools."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.directory = Path(self.mktemp()).absolute()
        self.file = self.home.connectors / "tracker.toml"
        self.listing(CREATE, SEARCH)

    def listing(self, *tools: dict[str, Any]) -> None:
        """Have the server have these tools."""
        self.site.answer("POST", "/v1/actions/tracker-list-tools/run", listed(*tools))

    def import_(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command."""
        return self.command("connector", "import", *arguments, "--output", str(self.directory))

    def begin(self) -> None:
        """Have a connector without operations in the home."""
        self.import_(URL, "--mcp", "--name", NAME)
        self.add()

    def add(self) -> None:
        """Put what was written into the home, as C{aileron connector add} does."""
        self.file.write_text((self.directory / "tracker.toml").read_text())
        self.file.chmod(0o600)

    def written(self) -> dict[str, Any]:
        """The connector file that was written."""
        path = self.directory / "tracker.toml"
        self.assertEqual(check(path), [])
        return tomllib.loads(path.read_text())


class BeginTests(ToolsCase):
    """A connector to a server of which only the URL is known."""

    def test_files(self) -> None:
        """It writes a connector file without operations and an action that lists the tools, and says what to run."""
        code, out, _ = self.import_(URL, "--mcp", "--name", NAME)
        self.assertEqual(code, 0, out)
        written = self.written()
        self.assertEqual(("mcp", {"url": URL}), (written["connector"]["kind"], written["mcp"]))
        self.assertNotIn("operations", written)
        action = (self.directory / "tracker-list-tools.md").read_text()
        self.assertIn('op = "list_tools"', action)
        self.assertIn(f"aileron connector import {NAME}", out)

    def test_name(self) -> None:
        """Without a name it is called after the host; a server in a private network is declared to be there."""
        for url in ("http://127.0.0.1:8000/mcp", "https://10.0.0.7/mcp"):
            self.import_(url, "--mcp", "--name", NAME)
            self.assertTrue(self.written()["connector"]["private_network"], url)
            for each in self.directory.iterdir():
                each.unlink()
        _, out, _ = self.import_(URL, "--mcp")
        self.assertIn("mcp-example-com.toml", out)

    def test_refused(self) -> None:
        """What is no URL makes no file, and no file is replaced."""
        code, _, err = self.import_("not a url", "--mcp")
        self.assertEqual(code, 1)
        self.assertIn("The server's URL", err)
        self.assertFalse(self.directory.exists())
        self.import_(URL, "--mcp", "--name", NAME)
        self.assertEqual(self.import_(URL, "--mcp", "--name", NAME)[0], 0)
        file = self.directory / "tracker.toml"
        file.write_text("# Ours")
        code, _, err = self.import_(URL, "--mcp", "--name", NAME)
        self.assertEqual((code, "different contents" in err, file.read_text()), (1, True, "# Ours"))
        self.assertEqual(self.import_(URL, "--mcp", "--name", NAME, "--force")[0], 0)
        self.assertIn("kind", self.written()["connector"])


class ImportTests(ToolsCase):
    """Tools that are pinned."""

    def setUp(self) -> None:
        super().setUp()
        self.begin()

    def test_list(self) -> None:
        """Without a choice the tools are listed, and nothing is written: hints of the server make none a read."""
        code, out, err = self.import_(NAME)
        self.assertEqual(code, 0, err)
        self.assertIn("new: Creates an issue in one team.", out)
        self.assertIn("write", out)
        self.assertNotIn("operations", self.written())
        self.assertEqual(1, len(self.site.bodies("POST", "/v1/actions/tracker-list-tools/run")))

    def test_pinned(self) -> None:
        """A chosen tool becomes a pinned, gated and destructive operation, and an action with its arguments."""
        code, out, err = self.import_(NAME, "--op", "createIssue")
        self.assertEqual(code, 0, err)
        [(name, operation)] = self.written()["operations"].items()
        self.assertEqual("create_issue", name)
        expected = {"tool": "createIssue", "pin": digest(CREATE), "effect": "write", "destructive": True}
        self.assertEqual(expected, {key: operation[key] for key in expected})
        action = (self.directory / "tracker-create-issue.md").read_text()
        self.assertIn('teamId = "${args.team_id}"', action)
        self.assertIn("required = true", action)
        self.assertIn("left out, because it refers to another document: more", out)
        self.assertIn("--force", out)

    def test_kept(self) -> None:
        """A file that is there, and is not the connector's as it is in the home, is replaced by force only."""
        file = self.directory / "tracker.toml"
        file.write_text("# Ours")
        code, _, err = self.import_(NAME, "--op", "search")
        self.assertEqual((code, "different contents" in err, file.read_text()), (1, True, "# Ours"))
        self.assertEqual(self.import_(NAME, "--op", "search", "--force")[0], 0)
        self.assertIn("search", self.written()["operations"])

    def test_second(self) -> None:
        """A second import adds to the file that the first one wrote, which need not be in the home yet."""
        self.assertEqual(self.import_(NAME, "--op", "search", "--read", "search")[0], 0)
        code, _, err = self.import_(NAME, "--op", "createIssue")
        self.assertEqual((code, sorted(self.written()["operations"])), (0, ["create_issue", "search"]), err)
        self.assertEqual("read", self.written()["operations"]["search"]["effect"])

    def test_second_beside_another(self) -> None:
        """It adds to no file in which anything else was changed than that operations were added."""
        self.import_(NAME, "--op", "search")
        file = self.directory / "tracker.toml"
        file.write_text(file.read_text().replace(URL, "https://elsewhere.example/mcp"))
        code, _, err = self.import_(NAME, "--op", "createIssue")
        self.assertEqual((code, "different contents" in err), (1, True))
        self.assertIn("elsewhere", file.read_text())

    def test_read(self) -> None:
        """A tool is a read only by the operator's word, and then its action needs no approval."""
        self.import_(NAME, "--op", "search", "--read", "search")
        self.assertEqual("read", self.written()["operations"]["search"]["effect"])
        self.assertIn("required = false", (self.directory / "tracker-search.md").read_text())

    def test_changed(self) -> None:
        """A changed tool is shown word by word, and its pin stays until the operator names it."""
        self.import_(NAME, "--op", "search", "--read", "search")
        self.add()
        changed = {**SEARCH, "description": "Searches and deletes.\u202e"}
        self.listing(CREATE, changed)
        code, out, err = self.import_(NAME)
        self.assertEqual(code, 0, err)
        self.assertIn("Changed since it was reviewed: search", out)
        self.assertIn("description: Searches{+ and deletes+}.{+\\u202e+}", out)
        self.assertIn("changed: Searches and deletes", out)
        self.assertEqual(digest(SEARCH), self.written()["operations"]["search"]["pin"])
        self.import_(NAME, "--op", "search", "--force")
        self.assertEqual(digest(changed), self.written()["operations"]["search"]["pin"])

    def test_said_again(self) -> None:
        """What the operator said of a tool is asked again once it changed: until then it is a destructive write."""
        self.import_(NAME, "--op", "search", "--op", "createIssue", "--read", "search")
        file = self.directory / "tracker.toml"
        file.write_text(file.read_text().replace("destructive = true", "destructive = false"))
        self.add()
        self.import_(NAME, "--op", "search", "--op", "createIssue", "--force")
        kept = self.written()["operations"]
        self.assertEqual(("read", False), (kept["search"]["effect"], kept["create_issue"]["destructive"]))
        self.listing({**CREATE, "title": "Other"}, {**SEARCH, "description": "Deletes."})
        _, out, _ = self.import_(NAME, "--op", "search", "--op", "createIssue", "--force")
        self.assertIn("effect: [-read-]{+write+}. If it still only reads, add --read search", out)
        self.assertIn("destructive: [-false-]{+true+}.", out)
        changed = self.written()["operations"]
        self.assertEqual(("write", True), (changed["search"]["effect"], changed["create_issue"]["destructive"]))
        self.assertIn("required = true", (self.directory / "tracker-search.md").read_text())
        _, out, _ = self.import_(NAME, "--op", "search", "--read", "search", "--force")
        self.assertNotIn("effect:", out)
        self.assertEqual("read", self.written()["operations"]["search"]["effect"])

    def test_missing(self) -> None:
        """A pinned tool that the server no longer has is told of."""
        self.import_(NAME, "--op", "search")
        self.add()
        self.listing(CREATE)
        _, out, _ = self.import_(NAME)
        self.assertIn("No longer offered by the server: search", out)

    def test_more(self) -> None:
        """A server with too many tools to list is told of, and nothing is said of those that are not there."""
        self.import_(NAME, "--op", "search")
        self.add()
        answer = listed(CREATE)
        answer["result"]["output"]["more"] = True
        self.site.answer("POST", "/v1/actions/tracker-list-tools/run", answer)
        _, out, err = self.import_(NAME)
        self.assertIn("Only the first 1 were read", err)
        self.assertNotIn("No longer offered", out)

    def test_forged_review(self) -> None:
        """A kept description that does not have the pin is not believed: all of the new one is shown."""
        self.import_(NAME, "--op", "search")
        self.add()
        changed = {**SEARCH, "description": "Deletes."}
        (kept,) = self.home.connectors.glob("*.tools.json")
        kept.write_text(json.dumps({digest(SEARCH): changed}))
        self.listing(CREATE, changed)
        _, out, _ = self.import_(NAME)
        self.assertIn("{+Deletes.+}", out)
        self.assertIn("not kept here", out)

    def test_long_difference(self) -> None:
        """A difference between very long texts is shown as one text behind the other, at once."""
        self.import_(NAME, "--op", "search")
        self.add()
        self.listing(CREATE, {**SEARCH, "description": "a b " * 20_000})
        _, out, _ = self.import_(NAME)
        self.assertIn("description: [-Searches.-]{+a b a b", out)

    def test_difference(self) -> None:
        """Words that were added to a long text are shown alone; no two texts take long to compare."""
        long = "Searches. " * 20_000
        self.assertEqual(f"{long}{{+Deletes.+}}", word_difference(long, f"{long}Deletes."))
        self.assertEqual(f"{long}{{+No. +}}{long}", word_difference(long * 2, f"{long}No. {long}"))
        regular, other = "a b " * 500, "a a b b " * 250
        self.assertEqual(f"[-c {regular}-]{{+{other}d+}}", word_difference(f"c {regular}", f"{other}d"))

    def test_no_action(self) -> None:
        """Without the action that lists the tools, one is written, and the command says how to go on."""
        self.site.answer("POST", "/v1/actions/tracker-list-tools/run", NotFound("There is no such action."))
        self.directory = self.directory / "new"
        path = self.directory / "tracker-list-tools.md"
        code, out, err = self.import_(NAME)
        self.assertEqual((code, err, path.exists()), (0, "", True))
        steps = f"  aileron action add {path}\n  aileron connector import {NAME}\n"
        self.assertEqual(out, f"Written: {path}\nAdd this action and trust it, then list the tools\n{steps}")
        path.unlink()
        code, out, _ = self.import_(NAME, "--json")
        self.assertEqual((code, json.loads(out)), (0, {"written": [str(path)]}))

    def test_no_action_still(self) -> None:
        """It is an error where that action was written before, or a tool was to be imported."""
        self.site.answer("POST", "/v1/actions/tracker-list-tools/run", NotFound("There is no such action."))
        path = self.directory / "tracker-list-tools.md"
        for more in ((), ("--json",), ("--op", "create_issue", "--force")):
            code, out, err = self.import_(NAME, *more)
            self.assertEqual((code, out), (1, ""))
            self.assertIn(
                "has not been added yet; nothing was imported.\n  Add it, then run this command again:\n", err
            )
            self.assertIn(f"    aileron action add {path}\n", err)

    def test_listing_is_kept(self) -> None:
        """An action that lists the tools and was changed by hand is not written anew."""
        self.site.answer("POST", "/v1/actions/tracker-list-tools/run", NotFound("There is no such action."))
        path = self.directory / "tracker-list-tools.md"
        path.write_text("mine")
        self.import_(NAME)
        self.assertEqual("mine", path.read_text())

    def test_listing_is_approved(self) -> None:
        """Where the daemon starts the server only after an approval, the action that lists its tools asks for one."""
        self.site.answer("POST", "/v1/actions/tracker-list-tools/run", NotFound("There is no such action."))
        self.environ["PATH"] = ""  # so that no bubblewrap is found
        local = '[connector]\nname = "local://me/tracker"\nversion = "1.0.0"\nkind = "mcp"\n[mcp]\n'
        local += 'command = ["/usr/bin/env"]\ndirectory = "/srv"\n'
        free, key = 'sandbox = "none"\n', '[credential]\nkind = "api_key"\nvariable = "KEY"\n'
        consent = 'readable_by = "the program and everything that it starts"\n'
        for more, required in (("", True), (free, False), (free + key, True), (free + key + consent, False)):
            (self.directory / "tracker-list-tools.md").unlink()
            self.file.write_text(local + more)
            self.assertEqual([], check(self.file))
            _, _, err = self.import_(NAME)
            self.assertEqual(required, "approve tracker-list-tools within 2 minutes" in err, more)
            action = (self.directory / "tracker-list-tools.md").read_text()
            self.assertIn(f"required = {'true' if required else 'false'}", action, more)

    def test_listing_without_sandboxes(self) -> None:
        """Where the feature that makes sandboxes is off, the action that lists a program's tools asks for approval."""
        self.site.answer("POST", "/v1/actions/tracker-list-tools/run", NotFound("There is no such action."))
        found = live_discovery(self.home)
        assert found is not None
        local = '[connector]\nname = "local://me/tracker"\nversion = "1.0.0"\nkind = "mcp"\n[mcp]\n'
        self.file.write_text(f'{local}command = ["/usr/bin/env"]\ndirectory = "/srv"\n')
        write_discovery(self.home, attrs.evolve(found, features_off=("sandbox",)))
        (self.directory / "tracker-list-tools.md").unlink()
        self.import_(NAME)
        self.assertIn("required = true", (self.directory / "tracker-list-tools.md").read_text())

    def test_unknown_read(self) -> None:
        """A tool that is named as a read and is not there is told of: another would be gated against expectation."""
        code, _, err = self.import_(NAME, "--op", "create_issue", "--read", "create_issue")
        self.assertEqual(code, 1)
        self.assertIn("has no tool create_issue", err)
        self.assertNotIn("operations", self.written())

    def test_alike(self) -> None:
        """A tool whose name becomes that of another tool gets another; one that is listed twice is not imported."""
        self.listing({**SEARCH, "name": "Search", "description": "Deletes."}, SEARCH)
        self.import_(NAME, "--op", "search")
        self.assertEqual("search", self.written()["operations"]["search"]["tool"])
        self.add()
        twice = {**SEARCH, "description": "Deletes."}
        for tools in ((SEARCH, twice), (twice, SEARCH)):
            self.listing(*tools)
            code, out, err = self.import_(NAME, "--op", "search", "--force")
            self.assertIn("Changed since it was reviewed: search", out)
            self.assertIn("several tools of this name", err)
            self.assertEqual((1, digest(SEARCH)), (code, self.written()["operations"]["search"]["pin"]))

    def test_foreign_files(self) -> None:
        """Files beside it that no reader takes, such as one that is nested too deeply, are passed over."""
        self.begin()
        for name, text in (("a", f"x = {'[' * 5000}"), ("b", "x"), ("c", ".".join("x" * 5000) + " = 1")):
            path = self.home.connectors / f"{name}.toml"
            path.write_text(text)
            path.chmod(0o600)
        code, out, _ = self.import_(NAME)
        self.assertEqual(code, 0)
        self.assertIn("createIssue", out)

    def test_no_connector(self) -> None:
        """A connector that is not there, or is of another kind, is told of, and nothing is asked."""
        code, _, err = self.import_("local://me/other")
        self.assertEqual(code, 1)
        self.assertIn("--mcp", err)
        self.assertEqual([], self.site.bodies("POST", "/v1/actions/other-list-tools/run"))

    def test_waits(self) -> None:
        """A listing that waits for approval is told of, and nothing is written."""
        waits = {"status": "pending_approval", "run_id": RUN, "message": "waits"}
        self.site.answer("POST", "/v1/actions/tracker-list-tools/run", waits)
        code, _, err = self.import_(NAME)
        self.assertEqual(code, 1)
        self.assertIn(f"aileron run show {RUN}", err)

    def test_json(self) -> None:
        """For programs the tools are listed as JSON."""
        _, out, _ = self.import_(NAME, "--json")
        self.assertEqual(["create_issue", "search"], [each["name"] for each in json.loads(out)["operations"]])
