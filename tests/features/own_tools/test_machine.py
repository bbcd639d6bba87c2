"""What a machine lacks for own tools, and the tools that it has."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools.machine import KNOWN_TOOLS, find_tools, list_lacking, list_ways
from aileron.model.own_tools import ToolDeclaration
from tests.features.gateway.certificates import Authority

GITHUB = ToolDeclaration(
    service="github",
    hosts=("api.github.com",),
    variables=dict.fromkeys(("GH_TOKEN", "GITHUB_TOKEN"), "aileron-placeholder"),
    headers=frozenset(("authorization",)),
    graphql=frozenset(("/graphql",)),
)


class MachineTests(SynchronousTestCase):
    """A machine with a few programs."""

    def setUp(self) -> None:
        self.programs = Path(self.mktemp()).absolute()
        self.programs.mkdir()
        self.environment = {"PATH": str(self.programs)}
        self.bundle = self.programs / "bundle.pem"
        self.bundle.write_text(Authority.made().pem)

    def install(self, *names: str) -> None:
        """Install programs of these names."""
        for name in names:
            (self.programs / name).write_text("#!/bin/sh\n")
            (self.programs / name).chmod(0o755)

    def lacking(self, declared: ToolDeclaration) -> str:
        """Return what is lacking."""
        found = list_lacking(declared, self.environment, [str(self.bundle)])
        return " ".join(word for pair in found for word in pair)

    def test_tools(self) -> None:
        """Each tool is there or not; gh is named only with a service that has a placeholder for it."""
        self.install("gh")
        found = {each.tool: each for each in find_tools(GITHUB, self.environment)}
        self.assertEqual((found["gh"].path, found["gh"].credential), (f"{self.programs}/gh", "GH_TOKEN"))
        self.assertEqual((found["curl"].path, found["curl"].credential), ("", ""))
        other = evolve(GITHUB, service="x", variables={"X_TOKEN": "placeholder"})
        self.assertEqual([each.tool for each in find_tools(other, self.environment)], ["curl", "wget"])
        gitlab = evolve(GITHUB, variables={"GITLAB_TOKEN": "aileron-placeholder"})
        self.assertEqual([each.tool for each in find_tools(gitlab, self.environment)], ["glab", "curl", "wget"])
        host = evolve(other, variables={}, is_git=True)
        self.assertEqual([each.tool for each in find_tools(host, self.environment)], ["git"])

    def test_lacking(self) -> None:
        """Without bubblewrap or authorities no tool works; each is told with what to install."""
        self.assertIn("bubblewrap is not installed", self.lacking(GITHUB))
        self.install("bwrap")
        self.assertEqual(self.lacking(GITHUB), "")
        self.bundle.write_text("")
        self.assertIn("Install the package: ca-certificates", self.lacking(GITHUB))

    def test_ways(self) -> None:
        """Without bubblewrap there is no way; a program that ends well stands for one that works."""
        self.assertEqual(list_ways(self.environment), [])
        self.assertIn("bubblewrap is not installed", self.lacking(GITHUB))
        (self.programs / "bwrap").write_text("#!/bin/sh\nexit 1\n")
        (self.programs / "bwrap").chmod(0o755)
        self.assertEqual(list_ways(self.environment), [])
        self.assertIn("does not allow sandboxes", self.lacking(GITHUB))


class TableTests(SynchronousTestCase):
    """The table of tools in the documentation."""

    def test_rows(self) -> None:
        """The page has a row for each tool that was tried, in their order, with what holds for it."""
        page = Path(__file__).parents[3] / "doc" / "own-tools.md"
        rows = [
            f"| {each.name} | {_name(each.trusts_by)} | {'yes' if each.uses_system else 'no'} "
            f"| {_name(each.reaches_by)} | {'yes' if each.trusts_by and each.reaches_by else 'no'} |"
            for each in KNOWN_TOOLS
        ]
        self.assertIn("\n".join(rows), page.read_text("utf-8"))


def _name(variable: str) -> str:
    return f"`{variable}`" if variable else "no"
