"""An agent in the sandbox, while the user outside replaces what the agent must not write."""

from __future__ import annotations

from tests.attacks.sandboxed import ProjectTestCase
from tests.functional.reactor import until

_FILTERED = """
mkdir tools; printf '#!/bin/sh\\ncat\\n' >tools/clean; chmod +x tools/clean
git config filter.x.clean tools/clean; echo 'file filter=x' >.gitattributes
"""


class ReplacedTests(ProjectTestCase):
    """A file that is mounted read-only can be written in the sandbox once another has taken its place outside."""

    timeout = 240

    async def test_program(self) -> None:
        """Its commits are not imported by a git that would run what it wrote there, and the user is told of that."""
        project = self.project("replaced", _FILTERED)
        script = f"""
            echo two >file; echo new >new; git add new; git commit -qm inside; git add -N file
            touch done; while test ! -e go; do sleep 0.05; done
            printf '#!/bin/sh\\ntouch {self.marker}\\ncat\\n' >tools/clean; echo three >file
        """
        agent = self.start(self.agent(script, "--sandbox", project=project))
        await until(self.reactor, (project / "done").exists, 60, "the work inside")
        self.outside(project, "cp -p tools/clean tools/new; mv tools/new tools/clean; touch go")
        told = " ".join((await agent.finish(60)).stderr.split())
        self.assertFalse(self.marker.exists(), told)
        self.assertIn("Nothing was imported yet", told)
        self.assertIn(f"{project}/tools/clean", told.partition("Review them first")[2])
        self.outside(project, "printf '#!/bin/sh\\ncat\\n' >tools/clean")
        await self.inside(project, "true")
        self.assertEqual(self.outside(project, "git log -1 --format=%s"), "inside\n")
