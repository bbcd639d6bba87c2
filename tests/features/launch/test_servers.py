"""The MCP servers in agents' settings, in the words of each agent, and the secrets among them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.launch.agents import find_server_sources
from aileron.features.launch.registration import Invocation
from aileron.features.launch.servers import MASK, ServerEntry, ServerSettings, read_servers

TOKEN = "canary-0123456789"
NODE = "/usr/bin/env"  # a program that is on every machine
REMOTE = {"url": "https://mcp.example/mcp", "headers": {"Authorization": f"Bearer {TOKEN}"}}
LOCAL = {"command": NODE, "args": ["-y", "server"], "env": {"API_TOKEN": TOKEN, "REGION": "eu"}}
LISTED = {"type": "local", "command": [NODE, "-y", "server"], "environment": LOCAL["env"]}
FORMS: dict[str, dict[str, object]] = {
    "claude": {
        ".claude.json": {
            "mcpServers": {"one": REMOTE | {"type": "http"}},
            "projects": {"PROJECT": {"mcpServers": {"two": LOCAL}}},
        },
        "project/.mcp.json": {"mcpServers": {"three": LOCAL}},
    },
    "codex": {
        ".codex/config.toml": f"""
            [mcp_servers.one]
            url = "https://mcp.example/mcp"
            http_headers = {{ Authorization = "Bearer {TOKEN}" }}
            [mcp_servers.two]
            command = "{NODE}"
            args = ["-y", "server"]
            [mcp_servers.two.env]
            API_TOKEN = "{TOKEN}"
            REGION = "eu"
            """,
        "project/.codex/config.toml": f"""
            [mcp_servers.three]
            command = "{NODE}"
            args = ["-y", "server"]
            env = {{ API_TOKEN = "{TOKEN}", REGION = "eu" }}
            """,
    },
    "opencode": {
        ".config/opencode/opencode.jsonc": {"mcp": {"one": REMOTE | {"type": "remote"}, "two": LISTED}},
        "project/.opencode/opencode.json": {"mcp": {"three": LISTED}},
    },
    "goose": {
        ".config/goose/config.yaml": f"""
            extensions:
              developer: {{type: builtin, enabled: true}}
              one:
                type: streamable_http
                uri: https://mcp.example/mcp
                headers: {{Authorization: Bearer {TOKEN}}}
              two:
                cmd: {NODE}
                args: [-y, server]
                envs: {{API_TOKEN: {TOKEN}, REGION: eu}}
              three:
                cmd: {NODE}
                args: [-y, server]
                envs:
                  API_TOKEN: {TOKEN}
                  REGION: eu
            """,
    },
    "cursor": {
        ".cursor/mcp.json": {"mcpServers": {"one": REMOTE, "two": LOCAL}},
        "project/.cursor/mcp.json": {"mcpServers": {"three": LOCAL}},
    },
    "vscode": {
        ".config/Code/User/mcp.json": {"servers": {"one": REMOTE, "two": LOCAL}, "inputs": []},
        "project/.vscode/mcp.json": {"servers": {"three": LOCAL}},
    },
}
"""The same three servers in each agent's files: one remote, one local, and one of the project, where there is such."""


class SettingsCase(SynchronousTestCase):
    """A user's home with a project in it."""

    def setUp(self) -> None:
        directory = TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.home = Path(directory.name).resolve()
        self.project = self.home / "project"
        (self.project / ".git").mkdir(parents=True)

    def write(self, name: str, value: object) -> Path:
        """Have a file say that."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = dedent(value) if isinstance(value, str) else json.dumps(value, indent=1)
        path.write_text(text.replace("PROJECT", str(self.project)))
        return path

    def found(self, agent: str, **environment: str) -> list[ServerSettings]:
        """What is read of an agent's settings."""
        variables = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", **environment}
        return read_servers(find_server_sources()[agent], Invocation((), variables, str(self.project)))

    def one(self, entry: Mapping[str, object], **environment: str) -> ServerEntry:
        """How one server of Cursor's is read."""
        self.write(".cursor/mcp.json", {"mcpServers": {"one": entry}})
        [file] = self.found("cursor", **environment)
        [read] = file.entries
        return read


class AgentsTests(SettingsCase):
    """Each agent in its own words."""

    def test_all(self) -> None:
        """Servers of the user and of the project are found, each with its secret, which its line does not show."""
        self.assertEqual(set(FORMS), set(find_server_sources()))
        for agent, settings in FORMS.items():
            paths = [self.write(*each) for each in settings.items()]
            files = self.found(agent)
            self.assertEqual([file.path for file in files], paths, agent)
            self.assertEqual([file.source.project for file in files], [False, True][: len(paths)])
            entries = {each.keys[-1]: each for file in files for each in file.entries}
            self.assertEqual(set(entries), {"one", "two", "three"}, agent)
            remote, *local = (entries[name] for name in ("one", "two", "three"))
            [secret] = remote.secrets
            self.assertEqual(
                (remote.command, remote.shown, remote.problems), ((), "https://mcp.example/mcp", ()), agent
            )
            self.assertEqual((secret.name, secret.value, secret.form), ("Authorization", TOKEN, "Bearer {key}"))
            for entry in local:
                [secret] = entry.secrets
                self.assertEqual((entry.command, entry.environment), ((NODE, "-y", "server"), {"REGION": "eu"}), agent)
                self.assertEqual((secret.place, secret.name, secret.value), ("environment", "API_TOKEN", TOKEN))
                self.assertTrue(secret.is_plain)
            self.assertNotIn(TOKEN, repr(files))

    def test_removed(self) -> None:
        """Each of these servers can be taken out of the file that it is in."""
        for agent, settings in FORMS.items():
            for each in settings.items():
                self.write(*each)
            for file in self.found(agent):
                for entry in file.entries:
                    text = file.source.syntax.remove(file.data.decode(), entry.keys)
                    file.path.write_text(text)
                    left = [
                        each.keys for again in self.found(agent) for each in again.entries if again.path == file.path
                    ]
                    self.assertEqual(left, [each.keys for each in file.entries if each is not entry], (agent, text))
                    file.path.write_bytes(file.data)

    def test_own(self) -> None:
        """Aileron's own server is none to move, whatever it is called."""
        own = {"aileron": LOCAL, "other": {"command": "/opt/bin/aileron-mcp"}, "none": {"type": "builtin"}, "odd": 7}
        self.write(".cursor/mcp.json", {"mcpServers": own})
        self.assertEqual(self.found("cursor")[0].entries, ())

    def test_left_alone(self) -> None:
        """A file with an error, of another kind, or that everybody could have written is named, and not read."""
        path = self.write(".cursor/mcp.json", '{"mcpServers": {')
        for text, mode, problem in (
            ('{"mcpServers": {', 0o600, "not valid JSON"),
            ("[]", 0o600, "not valid"),
            ("{}", 0o666, "everybody may write"),
        ):
            path.write_text(text)
            path.chmod(mode)
            [file] = self.found("cursor")
            self.assertIn(problem, file.problem)
            self.assertEqual(file.entries, ())
        path.unlink()
        path.symlink_to(self.write("elsewhere.json", {}))
        self.assertTrue(self.found("cursor")[0].problem)


class SecretsTests(SettingsCase):
    """What is a secret, and what stands in the way of a connector."""

    def test_places(self) -> None:
        """A secret is found by its name or its look, in a variable, a header, a query or an argument."""
        for entry, place, name, shown in (
            ({"command": NODE, "env": {"GITLAB": f"glpat-{TOKEN}"}}, "environment", "GITLAB", NODE),
            ({"command": NODE, "env": {"URL": f"postgres://me:{TOKEN}@host/db"}}, "environment", "URL", NODE),
            (
                {"url": "https://mcp.example/mcp/", "headers": {"X-Api-Key": TOKEN}},
                "header",
                "X-Api-Key",
                "https://mcp.example/mcp/",
            ),
            ({"url": f"https://mcp.example/mcp?api_key={TOKEN}"}, "query", "api_key", "https://mcp.example/mcp"),
            (
                {"command": NODE, "args": ["--api-key", TOKEN, "x"]},
                "argument",
                "--api-key",
                f"{NODE} --api-key '{MASK}' x",
            ),
            ({"command": NODE, "args": [f"--token={TOKEN}"]}, "argument", "--token", f"{NODE} '{MASK}'"),
            ({"command": NODE, "args": [f"ghp_{TOKEN}"]}, "argument", "", f"{NODE} '{MASK}'"),
            (
                {"command": NODE, "args": ["-H", f"Authorization: Bearer {TOKEN}"]},
                "argument",
                "-H",
                f"{NODE} -H '{MASK}'",
            ),
            ({"command": NODE, "args": [json.dumps({"apiKey": TOKEN})]}, "argument", "", f"{NODE} '{MASK}'"),
            ({"command": NODE, "args": [f"https://mcp.example/{TOKEN}-abc/mcp"]}, "argument", "", f"{NODE} '{MASK}'"),
            ({"command": NODE, "env": {"SMTP_PASS": TOKEN}}, "environment", "SMTP_PASS", NODE),
            ({"command": NODE, "env": {"JIRA_PAT": TOKEN}}, "environment", "JIRA_PAT", NODE),
            ({"command": NODE, "env": {"HEADERS": f"Cookie: {TOKEN}"}}, "environment", "HEADERS", NODE),
        ):
            read = self.one(entry)
            [secret] = read.secrets
            self.assertEqual((secret.place, secret.name, read.shown), (place, name, shown))
            self.assertIn(TOKEN, secret.value)
            self.assertEqual(bool(read.problems), place == "argument", read.problems)

    def test_shapes(self) -> None:
        """A secret of any service is found by its shape, wherever it stands, and shown nowhere."""
        for value in (
            "sbp_0123456789abcdef0123456789abcdef01234567",
            "figd_AbCdEf0123456789AbCdEf0123456789",
            "tvly-dev-AbCdEf0123456789",
            "shpat_0123456789abcdef0123456789abcdef",
            "SG.AbCdEf0123456789.AbCdEf0123456789",
            "AbCdEf0123456789AbCdEf0123456789",
            "app:s3cret@tcp(db:3306)/x",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        ):
            read = self.one({"command": NODE, "args": ["a.js"], "env": {"VALUE": value}})
            self.assertEqual(([each.value for each in read.secrets], read.environment), ([value], {}))
            read = self.one({"command": NODE, "args": ["a.js", value]})
            self.assertEqual((read.shown, len(read.problems)), (f"{NODE} a.js '{MASK}'", 1), value)
            read = self.one({"url": f"https://mcp.vendor.example/t/{value}/mcp"})
            self.assertEqual((read.shown, len(read.problems)), (MASK, 1), value)
            read = self.one({"command": NODE, "args": [f"--url=https://mcp.vendor.example/t/{value}/mcp"]})
            self.assertEqual((read.shown, len(read.problems)), (f"{NODE} '{MASK}'", 1), value)

    def test_named_alike(self) -> None:
        """A name that only has such a word in it, or says something about a secret, makes none of a plain value."""
        plain = {
            "GIT_AUTHOR_NAME": "Me",
            "MAX_TOKENS": "4096",
            "KEYCLOAK_URL": "https://kc.example",
            "SSH_AUTH_SOCK": "/run/x",
            "AUTH_METHOD": "oauth",
            "PRIMARY_KEY_COLUMN": "id",
            "TOKENIZERS_PARALLELISM": "false",
            "TENANT_ID": "3f6a1b1e-6d0c-4e57-9a0b-0d3a5f6c7e21",
        }
        read = self.one({"command": NODE, "args": ["a.js"], "env": plain})
        self.assertEqual((read.secrets, read.problems, read.environment), ((), (), plain))

    def test_types(self) -> None:
        """Values of JSON become the texts of JSON; null is no value."""
        read = self.one({"command": NODE, "args": [8080, True], "env": {"DEBUG": True, "PORT": 8080, "NONE": None}})
        self.assertEqual((read.command[1:], read.environment), (("8080", "true"), {"DEBUG": "true", "PORT": "8080"}))

    def test_plain(self) -> None:
        """What only resembles a secret is none, and names of variables that are no list are not read."""
        arguments = ["-y", "@scope/server-keyboard@1.2.0", "--path", "/home/me/tokens", "https://mcp.example/a-b/mcp"]
        read = self.one({"command": NODE, "args": arguments, "env": {"PATTERN": "x"}, "env_vars": 5, "env_keys": "A"})
        self.assertEqual((read.secrets, read.problems, read.command), ((), (), (NODE, *arguments)))

    def test_values(self) -> None:
        """A variable that is no text has the value that JSON writes, as the agent itself passes it on."""
        read = self.one({"command": NODE, "args": [8080], "env": {"DEBUG": True, "QUIET": None, "PORT": 80}})
        self.assertEqual(read.environment, {"DEBUG": "true", "PORT": "80"})
        self.assertEqual(read.command, (NODE, "8080"))

    def test_references(self) -> None:
        """A value that a variable has is not in plain text; one that only the agent can fill in stands in the way."""
        for reference in ("${env:MY_TOKEN}", "${MY_TOKEN}", "{env:MY_TOKEN}", "${OTHER:-" + TOKEN + "}"):
            entry = self.one(
                {"url": REMOTE["url"], "headers": {"Authorization": f"Bearer {reference}"}}, MY_TOKEN=TOKEN
            )
            [secret] = entry.secrets
            self.assertEqual((secret.value, secret.is_plain, entry.problems), (TOKEN, False, ()))
        for reference in ("${env:MY_TOKEN}", "${input:token}", "{file:~/token}"):
            [problem] = self.one({"command": NODE, "env": {"REGION": reference}}).problems
            self.assertIn(reference, problem)

    def test_named(self) -> None:
        """Codex and goose name variables that they pass on."""
        self.write(
            ".codex/config.toml", f'[mcp_servers.a]\nurl = "{REMOTE["url"]}"\nbearer_token_env_var = "MY_TOKEN"\n'
        )
        [file] = self.found("codex", MY_TOKEN=TOKEN)
        self.assertEqual(
            [(each.form, each.value, each.is_plain) for each in file.entries[0].secrets],
            [("Bearer {key}", TOKEN, False)],
        )
        self.write(".config/goose/config.yaml", f"extensions:\n  a:\n    cmd: {NODE}\n    env_keys: [MY_TOKEN]\n")
        [file] = self.found("goose")
        self.assertIn("${MY_TOKEN}", file.entries[0].problems[0])

    def test_problems(self) -> None:
        """What a connector cannot be is said."""
        for entry, problem in (
            ({"url": REMOTE["url"], "type": "sse"}, "server-sent events"),
            ({"command": NODE, "envFile": ".env"}, "another file"),
            ({"command": "no-such-program"}, "not found on PATH"),
            ({"command": NODE, "env": {"A_KEY": "x", "B_KEY": "y"}}, "has 2 secrets"),
            ({"url": REMOTE["url"], "headers": {"X-Region": "eu"}}, "sent X-Region"),
            ({"url": "https://mcp.example/mcp?region=eu"}, "sent region"),
            ({"url": "http://mcp.example/mcp"}, "Its URL"),
            ({"url": "https://me:secret@mcp.example/mcp"}, "Its URL"),
            ({"url": "https://mcp.example/s/NmFiY2RlZjAxMjM0NTY3ODk/mcp"}, "secret in its path"),
        ):
            read = self.one(entry)
            self.assertIn(problem, " ".join(read.problems))
            self.assertNotIn("secret@", read.shown)
