"""One more agent is one more module, and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from aileron.features.launch import agents
from aileron.features.launch.agents import find_agents
from tests.cli.daemon import CommandCase

TOY = """
from aileron.features.launch.agent import SERVER_NAME, Agent
from aileron.features.launch.layers import Location, SettingsSource, files
from aileron.features.launch.registration import Registration


def _register(settings, server, providers, directory):
    colour = settings.find("colour")
    return Registration(dict(server.environment), (f"toy is {colour[1]}",), ("--tools", server.command))


AGENT = Agent(
    name="toy",
    sources=(SettingsSource(files(Location("$TOY_HOME", "~/.toy"), "toy.json")),),
    unique="servers",
    own=(Location("~/.toy/sessions"),),
    settings=(Location("~/.toy"),),
    draws=lambda arguments: not arguments,
    register=_register,
    route=lambda settings, gateway: Registration(variables={"TOY_URL": gateway.url_with_key}),
)
"""


class SixthAgentTests(CommandCase):
    """A toy that is nothing but a module among the agents."""

    def setUp(self) -> None:
        """Its module, its program, and its user's settings."""
        super().setUp()
        directory = Path(self.mktemp()).absolute()
        directory.mkdir()
        (directory / "toy.py").write_text(TOY)
        (directory / "toy.json").write_text('{"colour": "red"} // of course')
        program = directory / "toy"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        self.toy = directory
        self.environ |= {"PATH": str(directory), "HOME": str(directory), "TOY_HOME": str(directory)}
        agents.__path__.append(str(directory))
        self.addCleanup(sys.modules.pop, f"{agents.__name__}.toy", None)
        self.addCleanup(agents.__path__.remove, str(directory))

    def test_planned(self) -> None:
        """The command line launches it, with the session's tools and by its user's settings."""
        code, out, _ = self.command("launch", "--print", "--json", "toy", "play")
        plan = json.loads(out)
        self.assertEqual((code, plan["agent"]), (0, "toy"))
        program, option, _tools, *words = plan["argv"]
        self.assertEqual((program, option, words), (str(self.toy / "toy"), "--tools", ["play"]))
        self.assertEqual(plan["added"]["AILERON_TOKEN"], "<the session's token>")
        self.assertEqual(plan["notes"], ["toy is red"])

    def test_known(self) -> None:
        """It is named to who misspells it, its sandbox knows what it may write, and a namesake of ours is refused."""
        self.assertIn("toy", self.command("launch", "nobody")[2])
        self.assertEqual(find_agents()["toy"].own_directories({"HOME": "/h"}), ("/h/.toy/sessions",))
        (self.toy / "toy.json").write_text('{"servers": {"aileron": {}}}')
        code, _, err = self.command("launch", "--print", "toy")
        self.assertEqual((code != 0, str(self.toy / "toy.json") in err.replace("\n", "")), (True, True), err)
