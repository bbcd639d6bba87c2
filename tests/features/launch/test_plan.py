"""What will be run."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import SessionEnvironment
from aileron.features.launch.agent import ATTENDED_WAIT_SECONDS, CALL_TIMEOUT_SECONDS, UNATTENDED_WAIT_SECONDS
from aileron.features.launch.agents import find_agents
from aileron.features.launch.plan import LaunchPlan, Preparation, Programs, find_programs, write_files
from aileron.features.launch.registration import (
    GatewayAccess,
    Invocation,
    McpServer,
    PromptAccess,
    Registration,
    WakeAccess,
)
from aileron.model.errors import NotFound

SESSION = SessionEnvironment("http://127.0.0.1:9", "ail_a_secret", 45, "opencode", attended=True)
GATEWAY = GatewayAccess("http://127.0.0.1:9", "ail_g_secret")
PARENT = {"PATH": "/bin", "HOME": "/h", "AILERON_HOME": "/old", "AILERON_TOKEN": "old", "AILERONX": "kept"}


def planned(*arguments: str, **more: str) -> LaunchPlan:
    """A plan for a plain agent, in an environment with these variables, too."""

    def register(
        server: McpServer,
        gateway: GatewayAccess | None,
        directory: str,
        prompts: PromptAccess | None = None,
        wake: WakeAccess | None = None,
    ) -> Registration:
        assert gateway == GATEWAY
        assert prompts is None
        assert wake is None
        variables = {"SERVER": server.command, **server.environment, "KEY": GATEWAY.key}
        return Registration(variables, ("a note",), (f"--file={directory}/a",), {"a": "text"})

    programs, invocation = (
        Programs("/bin/agent", "/bin/aileron-mcp"),
        Invocation(arguments or ("--x",), {**PARENT, **more}, "/project"),
    )
    prepared = Preparation(find_agents()["opencode"], invocation, programs, register)
    return prepared.plan(SESSION.url, SESSION.token, GATEWAY, "/private")


class PlanTests(SynchronousTestCase):
    """The process of the agent."""

    def test_files(self) -> None:
        """Its files lie in a directory of its own."""
        directory = self.mktemp()
        Path(directory).mkdir()
        write_files(evolve(planned(), directory=directory))
        self.assertEqual({path.name: path.read_text() for path in Path(directory).iterdir()}, {"a": "text"})
        self.assertEqual(planned().directory, "/private")

    def test_process(self) -> None:
        """The user's arguments follow ours, without a secret; of the parent's environment ours is made anew."""
        expected = {
            "PATH": "/bin",
            "HOME": "/h",
            "AILERONX": "kept",
            "SERVER": "/bin/aileron-mcp",
            "AILERON_URL": "http://127.0.0.1:9",
            "AILERON_TOKEN": "ail_a_secret",
            "AILERON_WAIT_SECONDS": "45",
            "AILERON_CLIENT": "opencode",
            "AILERON_ATTENDED": "yes",
            "KEY": "ail_g_secret",
        }
        self.assertEqual(planned().argv, ("/bin/agent", "--file=/private/a", "--x"))
        self.assertEqual(planned().environment, expected)

    def test_wait(self) -> None:
        """Before a person a call soon tells that it is pending; without one it waits as long as the agent does.

        What the user said counts for both, as far as the agent waits.
        """
        for arguments, said, seconds in (
            ((), {}, ATTENDED_WAIT_SECONDS),
            (("run", "hi"), {}, UNATTENDED_WAIT_SECONDS),
            ((), {"AILERON_WAIT_SECONDS": "600"}, 600),
            (("run", "hi"), {"AILERON_WAIT_SECONDS": "0"}, 0),
            (("run", "hi"), {"AILERON_WAIT_SECONDS": "3600"}, UNATTENDED_WAIT_SECONDS),
            (("run", "hi"), {"AILERON_WAIT_SECONDS": "nonsense"}, UNATTENDED_WAIT_SECONDS),
        ):
            told = planned(*arguments, **said).environment["AILERON_WAIT_SECONDS"]
            self.assertEqual(told, str(seconds), (arguments, said))
        self.assertLess(UNATTENDED_WAIT_SECONDS, CALL_TIMEOUT_SECONDS)

    def test_secrets_hidden(self) -> None:
        """No repr shows the token, the gateway key or the user's environment."""
        shown = repr([planned(), SESSION, GATEWAY, Registration({"a": "ail_a_secret"}), Invocation((), PARENT, "/")])
        for secret in ("ail_a_secret", "ail_g_secret", "old"):
            self.assertNotIn(secret, shown)


class ProgramsTests(SynchronousTestCase):
    """Where the programs lie."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp()).absolute()
        self.venv = Path(self.mktemp()).absolute()
        for directory in (self.path, self.venv):
            directory.mkdir()

    def install(self, directory: Path, name: str) -> str:
        """Put an executable there."""
        program = directory / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        return str(program)

    def find(self) -> Programs:
        """Look for both."""
        return find_programs(find_agents()["opencode"], {"PATH": str(self.path)}, str(self.venv / "python"))

    def test_found(self) -> None:
        """The aileron-mcp of this installation comes before one on PATH."""
        agent, on_path = (self.install(self.path, name) for name in ("opencode", "aileron-mcp"))
        self.assertEqual(self.find(), Programs(agent, on_path))
        beside = self.install(self.venv, "aileron-mcp")
        self.assertEqual(self.find(), Programs(agent, beside))

    def test_missing(self) -> None:
        """Whichever is missing is named."""
        self.assertIn("opencode", str(self.assertRaises(NotFound, self.find)))
        self.install(self.path, "opencode")
        self.assertIn("aileron-mcp", str(self.assertRaises(NotFound, self.find)))


class SessionEnvironmentTests(SynchronousTestCase):
    """What the launcher says, aileron-mcp hears."""

    def test_in_the_clear(self) -> None:
        """A token may go by plain HTTP to loopback, and to the one host that is named; to nobody else."""
        for url, host, exposed in [
            ("http://127.0.0.1:9", "", ""),
            ("http://127.8.8.8", "", ""),
            ("http://[::1]:9", "", ""),
            ("http://LOCALHOST:9", "", ""),
            ("https://aileron.internal", "", ""),
            ("http://aileron.internal:9", "", "aileron.internal"),
            ("HTTP://Aileron.Internal:9", "", "aileron.internal"),
            ("http://aileron.internal:9", "aileron.INTERNAL", ""),
            ("http://aileron.internal:9", "elsewhere.internal", "aileron.internal"),
            ("http://localhost.evil.test", "", "localhost.evil.test"),
            ("http://a.localhost", "", "a.localhost"),
            ("http://0.0.0.0:9", "", "0.0.0.0"),
            ("http://127.0.0.1.evil.test", "", "127.0.0.1.evil.test"),
            ("http://[::ffff:10.0.0.1]:9", "", "::ffff:a00:1"),
            ("http://[::ffff:10.0.0.1]:9", "::ffff:10.0.0.1", ""),
            ("http://[2001:DB8:0::1]:9", "2001:db8::1", ""),
            ("http://127.1:9", "", ""),
            ("http://[", "", ""),
        ]:
            session = SessionEnvironment.of({"AILERON_URL": url, "AILERON_PLAIN_HOST": host})
            self.assertEqual(session.exposed_to, exposed, url)
            self.assertEqual(session.on_this_machine().exposed_to, "", url)

    def test_round_trip(self) -> None:
        """The variables mean what they were made from; who knows that the daemon is on this machine says so in them."""
        far = SessionEnvironment("http://192.0.2.1:9", "t").on_this_machine()
        self.assertEqual(far.variables()["AILERON_PLAIN_HOST"], "192.0.2.1")
        for session in (SESSION, far):
            self.assertEqual(SessionEnvironment.of(session.variables()), session)
        self.assertEqual(SESSION.on_this_machine(), SESSION)

    def test_nonsense(self) -> None:
        """A wait that is no number counts as not set, and a long one is cut."""
        for said, meant in [
            ("", None),
            ("x", None),
            ("-1", None),
            ("0", 0),
            ("7", 7),
            ("99999", 3600),
            ("9" * 99, None),
        ]:
            self.assertEqual(SessionEnvironment.of({"AILERON_WAIT_SECONDS": said}).wait_seconds, meant)

    def test_nobody_said(self) -> None:
        """Who was not launched is no known agent, and nobody sits before it."""
        found = SessionEnvironment.of({"AILERON_URL": "http://127.0.0.1:9", "AILERON_TOKEN": "t"})
        self.assertEqual((found.client, found.attended, found.wait_seconds), ("", False, None))
        self.assertFalse(SessionEnvironment.of({"AILERON_ATTENDED": "true?"}).attended)
        self.assertEqual(set(found.variables()), {"AILERON_URL", "AILERON_TOKEN"})
