"""Moving an agent's MCP servers: what is shown, what is written where, and that no secret shows anywhere."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path

from aileron.connectors import check
from aileron.features.moving import tools as moved_tools
from aileron.model.errors import InternalError
from tests.cli.daemon import PASSPHRASE
from tests.cli.test_binding import binding
from tests.cli.test_trust import TrustCase, item
from tests.features.importing.test_mcp_servers import CREATE, SEARCH, listed

REMOTE = {"url": "https://mcp.linear.app/mcp", "headers": {"Authorization": "Bearer canary-linear"}}
LOCAL = {"command": "/usr/bin/env", "args": ["-y"], "env": {"GITHUB_TOKEN": "canary\\github", "REGION": "eu"}}
OLD = {"command": "/usr/bin/env", "args": ["--api-key", "canary-old"]}


class MoveCase(TrustCase):
    """C{aileron import cursor}.

    :ivar actions: that the daemon finds in the home, new.
    :ivar lists: whether the tools of a server can be listed without an approval: there is a sandbox.
    """

    lists = False
    actions: tuple[str, ...] = ()

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.home.secrets.write_text("{}")
        self.user = Path(self.mktemp()).absolute()
        self.environ |= {"HOME": str(self.user), "PATH": "/usr/bin:/bin"}
        self.path = self.user / ".cursor" / "mcp.json"
        self.path.parent.mkdir(parents=True)
        self.path.write_text(
            json.dumps({"mcpServers": {"Linear (work)": REMOTE, "github": LOCAL, "old": OLD}}, indent=2)
        )
        self.path.chmod(0o640)
        self.before = self.path.read_bytes()
        self.site.answer("GET", "/v1/bindings", {"items": []})
        self.site.answer("POST", "/v1/bindings/setup", lambda body: binding(connector=body["connector"]))

        self.patch(moved_tools, "needs_approval", lambda _cli, _server: not self.lists)

    def imported(
        self, *arguments: str, names: tuple[str, ...] = ("linear-work", "github"), answers: tuple[str, ...] = ()
    ) -> tuple[int, str, str]:
        """Run it with these answers; the daemon finds these connectors new."""
        paths = {name: str(self.home.connectors / f"{name}.toml") for name in names}
        items = [item(f"local://me/{name}", "connector", path=path) for name, path in paths.items()]
        items += [item(name, path=str(self.home.actions / f"{name}.md")) for name in self.actions]
        self.lying(*items)
        self.typed = [*answers]
        code, out, err = self.command("import", "cursor", *arguments)
        self.assertEqual(self.typed, [], err)
        self.assertNotIn("canary", out + err)
        return code, out, err

    def connector(self, name: str) -> object:
        """What a connector's file says."""
        return tomllib.loads((self.home.connectors / f"{name}.toml").read_text())

    def bound(self) -> list[tuple[str, str]]:
        """The secrets that went into the vault."""
        return [(body["connector"], body["secret"]) for body in self.site.bodies("POST", "/v1/bindings/setup")]


class MoveTests(MoveCase):
    """What is shown, written and bound."""

    def test_shown(self) -> None:
        """A list shows each server, and which secrets stand in plain text; without a yes nothing is changed."""
        code, out, err = self.imported()
        self.assertEqual((code, list(self.home.connectors.iterdir()), self.path.read_bytes()), (0, [], self.before))
        for part in (
            "https://mcp.linear.app/mcp",
            "Authorization (in plain text)",
            "GITHUB_TOKEN (in plain text)",
            "****",
        ):
            self.assertIn(part, out)
        self.assertIn(
            "If you move github, the program and everything that it starts can read GITHUB_TOKEN, as now.", err
        )
        self.assertIn("old is not moved. It takes a secret as an argument", err)
        self.assertIn("add --yes", err)

    def test_paused(self) -> None:
        """While everything is paused that is said before anything is asked, installed or moved."""
        self.site.answer("GET", "/v1/status", {"pause": {"since": "2026-01-01T00:00:00.000000Z"}})
        for arguments in (("--yes",), ()):
            self.typed = ["all"]
            code, _, err = self.command("import", "cursor", *arguments)
            self.assertEqual((code, self.typed, list(self.home.connectors.iterdir())), (1, ["all"], []), err)
            self.assertIn("Everything is paused. Nothing was moved.", err)
            self.assertIn("aileron resume", err)

    def test_package(self) -> None:
        """A server that npx fetches is installed before anything is moved, and pinned; a container is refused."""
        node = {"command": "npx", "args": ["-y", "my-server@2", "--stdio"]}
        box = {"command": "docker", "args": ["run", "-i", "image"]}
        self.path.write_text(json.dumps({"mcpServers": {"node": node, "box": box}}))
        programs = self.user / "bin"
        programs.mkdir()
        for name, text in (("npx", ""), ("node", ""), ("docker", ""), ("npm", "echo no network; exit 1")):
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        self.environ["PATH"] = f"{programs}:/usr/bin:/bin"
        code, _, err = self.imported("--yes", names=("node",))
        self.assertIn("box is not moved. It runs in a container by docker", err)
        self.assertIn("my-server was not installed: npm failed. Nothing was moved.", err)
        self.assertEqual((code, list(self.home.connectors.iterdir())), (1, []))
        lock = json.dumps({"packages": {"node_modules/my-server": {"version": "2.0.0", "integrity": "sha512-x"}}})
        (programs / "npm").write_text(
            "#!/bin/sh\nmkdir -p node_modules/my-server\ntouch node_modules/my-server/main.js\n"
            f"echo '{lock}' > package-lock.json\n"
            'echo \'{"bin": "main.js"}\' > node_modules/my-server/package.json\n'
        )
        loading = {**node, "env": {"NODE_OPTIONS": "--require /tmp/x.js"}}
        self.path.write_text(json.dumps({"mcpServers": {"node": loading}}))
        code, _, err = self.imported("--yes", names=("node",))
        self.assertIn("its variable NODE_OPTIONS loads code that is not part of it. Nothing was moved.", err)
        self.assertEqual((code, list(self.home.connectors.iterdir())), (1, []))
        self.path.write_text(json.dumps({"mcpServers": {"node": node, "box": box}}))
        code, _, err = self.imported("--yes", names=("node",), answers=(PASSPHRASE,))
        self.assertEqual(code, 0, err)
        server = tomllib.loads((self.home.connectors / "node.toml").read_text())["mcp"]
        package = server["package"]
        self.assertEqual((package["name"], package["version"], package["registry"]), ("my-server", "2.0.0", "npm"))
        program = f"{package['directory']}/node_modules/my-server/main.js"
        self.assertEqual(server["command"], [str(programs / "node"), program, "--stdio"])
        self.assertEqual([*check(self.home.connectors / "node.toml")], [])

    def test_page(self) -> None:
        """The list in the documentation is what is printed."""
        page = (Path(__file__).parents[3] / "doc" / "moving-mcp-servers.md").read_text("utf-8")
        listed = page.partition("```text\n")[2].partition("```")[0]
        servers = {"linear": REMOTE, "github": LOCAL | {"args": ["server"]}}
        self.path.write_text(json.dumps({"mcpServers": servers}))
        _, out, _ = self.imported()
        self.assertEqual(out.replace(str(self.path), "/home/me/.cursor/mcp.json"), listed)

    def test_json(self) -> None:
        """Programs get the same, and nothing is done for them."""
        code, out, _ = self.imported("--json", "--yes", "--write")
        [file] = json.loads(out)["files"]
        self.assertEqual(
            (code, file["path"], self.path.read_bytes(), self.site.asked), (0, str(self.path), self.before, [])
        )
        named = [(each["name"], each["transport"], len(each["problems"])) for each in file["servers"]]
        self.assertEqual(named, [("Linear (work)", "http", 0), ("github", "stdio", 0), ("old", "stdio", 1)])
        self.assertEqual(file["servers"][0]["secrets"], [{"place": "header", "name": "Authorization", "plain": True}])

    def test_moved(self) -> None:
        """Each becomes a connector that is trusted, and its secret a credential; what to take out is printed."""
        code, out, err = self.imported(answers=("all", PASSPHRASE, "y"))
        self.assertEqual(code, 0, err)
        linear = {
            "connector": {"name": "local://me/linear-work", "version": "1.0.0", "kind": "mcp"},
            "mcp": {"url": "https://mcp.linear.app/mcp"},
            "credential": {"kind": "api_key", "header": "Authorization", "format": "Bearer {key}"},
        }
        self.assertEqual(self.connector("linear-work"), linear)
        own = self.user / ".local" / "share" / "aileron-servers" / "github"
        github = {
            "connector": {"name": "local://me/github", "version": "1.0.0", "kind": "mcp"},
            "mcp": {
                "command": ["/usr/bin/env", "-y"],
                "directory": str(own),
                "environment": {"REGION": "eu"},
                "inherit": ["PATH", "HOME"],
                "network": True,
            },
            "credential": {
                "kind": "api_key",
                "variable": "GITHUB_TOKEN",
                "readable_by": "the program and everything that it starts",
            },
        }
        self.assertEqual([], check(self.home.connectors / "github.toml"))
        self.assertEqual((self.connector("github"), stat.S_IMODE(own.stat().st_mode)), (github, 0o700))
        self.assertEqual(
            self.bound(), [("local://me/linear-work", "canary-linear"), ("local://me/github", "canary\\github")]
        )
        self.assertEqual(self.path.read_bytes(), self.before)
        for part in ('-    "github": {', "****", "--write"):
            self.assertIn(part, out)
        self.assertNotIn('"old"', out.partition("Remove this from")[2])
        self.assertIn("aileron connector import local://me/linear-work", err)

    def test_no_variables(self) -> None:
        """A program that needs no variables beside its secret gets a file without a table for them."""
        plain = {**LOCAL, "env": {"GITHUB_TOKEN": "canary\\github"}}
        self.path.write_text(json.dumps({"mcpServers": {"github": plain}}))
        code, _, err = self.imported(names=("github",), answers=("all", PASSPHRASE, "y"))
        self.assertEqual(code, 0, err)
        self.assertNotIn("environment", (self.home.connectors / "github.toml").read_text())

    def test_written(self) -> None:
        """With --write the entries are taken out, the file keeps its mode, and a private copy of it stays."""
        code, out, err = self.imported("--write", names=("github",), answers=("2", PASSPHRASE, "y"))
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(self.path.read_bytes()), {"mcpServers": {"Linear (work)": REMOTE, "old": OLD}})
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o640)
        [backup] = self.path.parent.glob("mcp.json.before-aileron-*")
        self.assertEqual((backup.read_bytes(), stat.S_IMODE(backup.stat().st_mode)), (self.before, 0o600))
        self.assertIn(str(backup), out)
        self.assertEqual([name for name, _ in self.bound()], ["local://me/github"])

    def test_yes(self) -> None:
        """A program can say yes beforehand; the passphrase comes by a descriptor."""
        code, _, err = self.imported("--yes", "--passphrase-fd", "3", answers=(PASSPHRASE,))
        self.assertEqual((code, len(self.bound())), (0, 2), err)

    def test_not_trusted(self) -> None:
        """Without trust no secret goes anywhere, and the settings stay as they are."""
        code, _, err = self.imported("--write", answers=("all", PASSPHRASE, "n"))
        self.assertEqual((code, self.bound(), self.path.read_bytes()), (1, [], self.before))
        self.assertIn("Nothing was trusted", err)

    def test_again(self) -> None:
        """A connector that is there is kept, and so is a credential that is bound to it."""
        self.imported(answers=("all", PASSPHRASE, "y"))
        items = [binding(connector=name) for name in ("local://me/linear-work", "local://me/github")]
        self.site.answer("GET", "/v1/bindings", {"items": items})
        code, out, err = self.imported("--write", answers=("all", PASSPHRASE, "y"))
        self.assertEqual((code, len(self.bound()), "kept as it is" in out), (0, 2, True), err)
        self.assertEqual(list(json.loads(self.path.read_bytes())["mcpServers"]), ["old"])

    def test_other_server(self) -> None:
        """A connector of the same name to another server is not used: its secret would go there."""
        other = '[connector]\nname = "local://me/github"\nversion = "1.0.0"\nkind = "mcp"\n[mcp]\nurl = "https://other.example"\n'
        for there in (other, "no TOML"):
            (self.home.connectors / "github.toml").write_text(there)
            code, _, err = self.imported(names=("github-2",), answers=("2", PASSPHRASE, "y"))
            self.assertEqual((code, (self.home.connectors / "github.toml").read_text()), (0, there), err)
        self.assertEqual({name for name, _ in self.bound()}, {"local://me/github-2"})

    def test_masked(self) -> None:
        """No form in which a secret may be written shows in what is printed."""
        key = 'canary-first-line\ncanary-second "line"'
        servers = {"a": {"url": "https://a.example/mcp?api_key=canary%2Fquery"}, "b": LOCAL | {"env": {"KEY": key}}}
        self.path.write_text(json.dumps({"mcpServers": servers}, indent=2))
        code, out, err = self.imported(names=("a", "b"), answers=("all", PASSPHRASE, "y"))
        self.assertEqual((code, "[redacted]" in out), (0, True), err)
        self.assertEqual([secret for _, secret in self.bound()], ["canary/query", key])

    def test_changed_meanwhile(self) -> None:
        """Settings that changed meanwhile are left as they are."""

        def change(body: dict[str, str]) -> object:
            self.path.write_text('{"mcpServers": {}}')
            return binding(connector=body["connector"])

        self.site.answer("POST", "/v1/bindings/setup", change)
        code, _, err = self.imported("--write", answers=("all", PASSPHRASE, "y"))
        self.assertEqual((code, self.path.read_text()), (1, '{"mcpServers": {}}'))
        self.assertIn("was changed by another program meanwhile", err)

    def test_by_hand(self) -> None:
        """An entry that has no lines of its own is named, to be taken out by hand."""
        self.path.write_text(json.dumps({"mcpServers": {"github": LOCAL, "old": OLD}}))
        before = self.path.read_bytes()
        code, _, err = self.imported("--write", names=("github",), answers=("all", PASSPHRASE, "y"))
        self.assertEqual((code, self.path.read_bytes(), os.listdir(self.path.parent)), (0, before, ["mcp.json"]), err)
        self.assertIn("Remove mcpServers.github from", err)

    def test_no_agent(self) -> None:
        """Without an agent the command names those that there are, on one line."""
        code, _, err = self.command("import")
        self.assertEqual(code, 2)
        self.assertIn("Choose from: claude, codex, cursor, goose, opencode, vscode", err)
        self.assertIn("{claude|codex|cursor|goose|opencode|vscode}", self.command("import", "--help")[1])
        code, _, err = self.command("import", "emacs")
        self.assertEqual(code, 2)
        self.assertIn("'emacs' is not one of claude, codex, cursor, goose, opencode, vscode.", err)

    def test_none(self) -> None:
        """Without servers nothing is asked, and a file with an error is named."""
        self.path.write_text("{")
        code, out, err = self.imported("--yes")
        self.assertEqual((code, self.site.asked), (0, []))
        self.assertIn("There is no server to move.", out)
        self.assertIn("Left alone: it is not valid JSON", err)


class ToolsTests(MoveCase):
    """The tools of a server that was moved, in the same login."""

    lists = True
    actions = ("github-list-tools", "github-create-issue", "github-search")

    def setUp(self) -> None:
        super().setUp()
        self.site.answer("POST", "/v1/actions/github-list-tools/run", listed(CREATE, SEARCH))

    def move(self, *answers: str) -> tuple[int, str, str]:
        """Move one server with these answers after those about the server itself."""
        return self.imported(names=("github",), answers=("2", PASSPHRASE, "y", *answers))

    def trusted(self) -> list[list[str]]:
        """What was trusted, in turn."""
        return [[each["name"] for each in body["items"]] for body in self.site.bodies("POST", "/v1/trust")]

    def test_chosen(self) -> None:
        """One passphrase does: the listing is trusted with the server, and the tools that were chosen after it."""
        code, out, err = self.move("1", "y", "y")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.prompts.count("Passphrase of the vault"), 1)
        first, second = self.trusted()
        self.assertEqual(set(first), {"local://me/github", "github-list-tools"})
        self.assertEqual(set(second), {"local://me/github", "github-create-issue"})
        operations = tomllib.loads((self.home.connectors / "github.toml").read_text())["operations"]
        self.assertEqual([(name, each["effect"]) for name, each in operations.items()], [("create_issue", "read")])
        self.assertIn("required = false", (self.home.actions / "github-create-issue.md").read_text())
        self.assertIn("The server says of these tools that they only read", out)

    def test_all(self) -> None:
        """Without a yes, what the server says of its tools counts for nothing: each needs an approval."""
        self.assertEqual(self.move("all", "", "y")[0], 0)
        for name in ("github-create-issue", "github-search"):
            self.assertIn("required = true", (self.home.actions / f"{name}.md").read_text())

    def test_none(self) -> None:
        """Enter takes none; a number that is not there is asked for again; how to do it later is said."""
        for answers in (("",), ("none",), ("7", "none")):
            code, _, err = self.move(*answers)
            self.assertEqual((code, self.trusted()[-1].count("github-search")), (0, 0))
            self.assertIn("aileron connector import local://me/github", err)
            self.site.answer("GET", "/v1/bindings", {"items": [binding(connector="local://me/github")]})

    def test_refused(self) -> None:
        """A no to the tools leaves the server as it was trusted, and no file of theirs."""
        code, _, err = self.move("all", "", "n")
        self.assertEqual(code, 0, err)
        self.assertNotIn("operations", self.connector("github"))
        self.assertEqual([path.name for path in self.home.actions.iterdir()], ["github-list-tools.md"])
        self.assertEqual(len(self.trusted()), 1)

    def test_silent(self) -> None:
        """A server that does not list its tools stays moved."""
        self.site.answer("POST", "/v1/actions/github-list-tools/run", InternalError("It broke."))
        code, _, err = self.move()
        self.assertEqual((code, len(self.bound())), (0, 1))
        self.assertIn("local://me/github did not list its tools; nothing was written. It broke.", err)
