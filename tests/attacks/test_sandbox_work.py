"""An agent's honest work in git, in the sandbox, and what of it is in the real repository afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from tests.attacks.sandboxed import ProjectTestCase
from tests.functional.reactor import until


class WorkTests(ProjectTestCase):
    """Commits, branches, the index and the stash, with the real git before, inside and after."""

    timeout = 240

    async def test_committed(self) -> None:
        """Commits, tags and new branches are there afterwards, the index agrees with them, and a line tells each."""
        project = self.project("committed")
        told = await self.inside(
            project, "echo two >file; git commit -qam two; git tag v1; git branch other; echo three >new; git add new"
        )
        self.assertEqual(self.outside(project, "git log --format=%s"), "two\none\n")
        self.assertEqual(self.outside(project, "git status --porcelain"), "A  new\n")
        self.assertEqual(
            self.outside(project, "git rev-parse v1 other | sort -u"), self.outside(project, "git rev-parse main")
        )
        self.assertEqual(self.outside(project, "git fsck --strict"), "")
        for words in ("main: 1 new commit, now at ", "other: new, at ", "tags/v1: new, at "):
            self.assertIn(f"Sandbox: {words}", told)
        self.assertEqual(list((self.home.aileron / "sandboxes").iterdir()), [])

    async def test_nothing_done(self) -> None:
        """Where it did nothing in git, nothing is said, and the repository is byte for byte what it was."""
        project = self.project("idle")
        before = self.outside(project, "find .git -type f | sort | xargs sha256sum")
        told = await self.inside(project, "git status; git log")
        self.assertNotIn("Sandbox:", told)
        self.assertEqual(self.outside(project, "find .git -type f | sort | xargs sha256sum"), before)

    async def test_branch(self) -> None:
        """Where it changed the branch, rewrote a commit or detached C{HEAD}, the same is so outside."""
        project = self.project("branch", "git branch old && echo x >f && git add f && git commit -qm second")
        await self.inside(project, "git switch -qc feature; git commit -q --amend -m rewritten; git rm -q file")
        self.assertEqual(
            self.outside(project, "git branch --show-current; git log --format=%s"), "feature\nrewritten\none\n"
        )
        self.assertEqual(self.outside(project, "git status --porcelain"), "D  file\n")
        self.assertEqual(self.outside(project, "git log -1 --format=%s main"), "second\n")
        await self.inside(project, "git commit -qm gone; git checkout -q --detach; git branch -D old")
        self.assertEqual(self.outside(project, "git branch --show-current; git status --porcelain"), "")
        self.assertEqual(self.outside(project, "git log -1 --format=%s"), "gone\n")
        self.assertEqual(self.outside(project, "git rev-parse --verify -q old >/dev/null; echo $?"), "0\n")

    async def test_stash_and_merge(self) -> None:
        """What it stashed, and a merge with a conflict, can be gone on with outside."""
        project = self.project("merge", "git switch -qc side; echo a >file; git commit -qam a; git switch -q main")
        script = (
            "echo s >other; git add other; git stash -q; echo b >file; git commit -qam b; git merge -q side || true"
        )
        told = await self.inside(project, script)
        self.assertIn("Sandbox: stash: ", told)
        self.assertEqual(self.outside(project, "git stash list --format=%gs | wc -l"), "1\n")
        self.assertEqual(self.outside(project, "git status --porcelain"), "UU file\n")
        self.outside(project, "echo both >file; git add file; git commit -qm merged")
        self.assertEqual(self.outside(project, "git show -s --format=%p | wc -w"), "2\n")
        self.outside(project, "git stash pop -q")

    async def test_changed_outside(self) -> None:
        """A branch that moved outside meanwhile stays, and what was committed inside has a name of its own."""
        project = self.project("both")
        agent = self.start(
            self.agent(
                "git commit -q --allow-empty -m inside; touch done; while test ! -e go; do sleep 0.05; done",
                "--sandbox",
                project=project,
            )
        )
        await until(self.reactor, (project / "done").exists, 60, "a commit inside")
        self.outside(project, "git commit -q --allow-empty -m outside")
        (project / "go").touch()
        finished = await agent.finish(60)
        told = " ".join(finished.stderr.split())
        self.assertIn("Not imported: main, because it was changed outside of the sandbox too.", told)
        place = told.partition("Its commits are at ")[2].split(". ")[0].rstrip(".")
        self.assertEqual(self.outside(project, "git log -1 --format=%s"), "outside\n")
        self.assertEqual(self.outside(project, f"git log -1 --format=%s {place}"), "inside\n")

    async def test_killed(self) -> None:
        """What was committed before the launcher was killed is imported by the next launch in that project."""
        project = self.project("killed")
        agent = self.start(
            self.agent("git commit -q --allow-empty -m inside; touch done; sleep 60", "--sandbox", project=project)
        )
        await until(self.reactor, (project / "done").exists, 60, "a commit inside")
        os.kill(agent.pid, signal.SIGKILL)
        await agent.finish(60)
        self.assertEqual(self.outside(project, "git log --format=%s"), "one\n")
        told = await self.inside(project, "git log --format=%s")
        self.assertIn("Sandbox: importing the work of an earlier run.", told)
        self.assertEqual(self.outside(project, "git log --format=%s"), "inside\none\n")
        self.assertEqual(list((self.home.aileron / "sandboxes").iterdir()), [])

    async def test_killed_without_a_repository(self) -> None:
        """What outlives a launcher that was killed is ended by the next launch, where there is no repository, too."""
        project = self.home.root / "projects" / "plain"
        project.mkdir(parents=True)
        agent = self.start(self.agent("touch done; sleep 60", "--sandbox", project=project))
        await until(self.reactor, (project / "done").exists, 60, "the work inside")
        os.kill(agent.pid, signal.SIGKILL)
        await agent.finish(60)
        (record,) = (self.home.aileron / "sandboxes").glob("*/process.json")
        survivor = subprocess.Popen(["sleep", "60"])  # in the place of one that kept the kernel from ending it
        self.addCleanup(survivor.kill)
        began = Path(f"/proc/{survivor.pid}/stat").read_text().rpartition(")")[2].split()[19]
        record.write_text(json.dumps([survivor.pid, began]))
        await self.inside(self.project("another"), "true")
        self.assertEqual(survivor.wait(10), -signal.SIGKILL)
        self.assertEqual(list((self.home.aileron / "sandboxes").iterdir()), [])

    async def test_linked_worktree(self) -> None:
        """It works in a linked worktree of a bare repository, and in a submodule, as in any other repository."""
        project = self.project("main")
        self.outside(project, "git clone -q --bare . ../bare.git; git -C ../bare.git worktree add -q ../tree -b topic")
        tree = project.parent / "tree"
        told = await self.inside(tree, "echo two >file; git commit -qam two")
        self.assertIn("topic: 1 new commit", told)
        self.assertEqual(self.outside(tree, "git log --format=%s; git status --porcelain"), "two\none\n")
        outer = self.project("outer", "git submodule --quiet add ../bare.git sub && git commit -qm sub")
        await self.inside(outer / "sub", "git switch -qc work; echo three >file; git commit -qam three")
        self.assertEqual(self.outside(outer / "sub", "git log -1 --format=%s; git status --porcelain"), "three\n")

    async def test_submodule(self) -> None:
        """Commits to a submodule's own branch are imported, but not to one that another worktree of it has."""
        project = self.project("library")
        outer = self.project("outer", f"git submodule --quiet add {project} sub && git commit -qm sub")
        self.outside(outer / "sub", "git worktree add -q ../../elsewhere -b other")
        told = await self.inside(outer / "sub", "echo two >file; git commit -qam two; git branch -f other")
        self.assertIn("main: 1 new commit, now at", told)
        self.assertIn("Not imported: other, because it is checked out in another worktree", told)
        self.assertEqual(self.outside(outer / "sub", "git log -1 --format=%s main; git status --porcelain"), "two\n")
        self.assertIn("sub", self.outside(outer, "git status --porcelain"))

    async def test_unfinished(self) -> None:
        """An operation that may run commands is not imported; the copy is kept, and its place told."""
        project = self.project("rebase", "echo x >f && git add f && git commit -qm second")
        told = await self.inside(project, "GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i --root || true")
        self.assertIn(
            "Not imported: an unfinished operation (rebase-merge), with HEAD and the index. It is kept in ", told
        )
        (kept,) = (self.home.aileron / "sandboxes").iterdir()
        self.assertTrue((kept / "discarded" / "rebase-merge").is_dir())
        self.assertEqual(self.outside(project, "git branch --show-current; git log -1 --format=%s"), "main\nsecond\n")
