"""An agent in the sandbox whose project is what links of the user's, outside of it, lead to, as one of dotfiles is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import attrs

from tests.attacks.sandboxed import ProjectTestCase

_MONITOR = 'git config --file {0} core.fsmonitor "touch $MARKER; false" || true'
_PROGRAM = "mkdir -p $(dirname {0}); printf '#!/bin/sh\\ntouch '$MARKER'\\ncat\\n' >{0} && chmod +x {0} || true"


class LinkTests(ProjectTestCase):
    """Whoever writes what such a link leads to writes what runs outside."""

    timeout = 240

    async def tried(self, before: str, script: str, after: str, path: str = "", refused: str = "") -> Path:
        """Nothing of the attacker's runs outside, with C{path} beside the project in C{PATH}; the project.

        :param refused: what is said where the agent is not started at all.
        """
        project = self.project("dotfiles", before)
        command = self.agent(f"MARKER='{self.marker}'\n{script}", "--sandbox", project=project)
        if path:
            whole = f"{command.environment['PATH']}:{project.parent / path}"
            command = attrs.evolve(command, environment={**command.environment, "PATH": whole})
        finished = await self.run_command(command, 60)
        self.assertEqual(finished.exit_code, 1 if refused else 0, finished)
        self.assertIn(refused.format(project), " ".join(finished.stderr.split()))
        self.outside(project, f"PATH=$PATH:{project.parent / (path or 'none')}\n{after}")
        self.assertFalse(self.marker.exists(), finished.stderr)
        return project

    async def test_configuration(self) -> None:
        """The user's configuration of git is not changed behind a link, though it holds no setting."""
        await self.tried(
            "echo '[user]' >gitconfig; ln -s $PWD/gitconfig ~/.gitconfig", _MONITOR.format("gitconfig"), "git status"
        )

    async def test_configuration_missing(self) -> None:
        """Nor made, where the link leads to nothing yet."""
        before = "ln -s $PWD/gitconfig ~/.gitconfig"
        await self.tried(before, _MONITOR.format("gitconfig"), "git status", refused="gitconfig, which does not exist")

    async def test_configuration_in_a_linked_directory(self) -> None:
        """Nor behind a link to a directory above it."""
        before = "mkdir -p config/git; touch config/git/config; rm -rf ~/.config; ln -s $PWD/config ~/.config"
        await self.tried(before, _MONITOR.format("config/git/config"), "git status")

    async def test_without_a_repository(self) -> None:
        """Nor where the project is no repository, but others are."""
        before = "rm -rf .git; touch gitconfig; ln -s $PWD/gitconfig ~/.gitconfig; git init -q ../other"
        await self.tried(before, _MONITOR.format("gitconfig"), "git -C ../other status")

    async def test_included(self) -> None:
        """A file that is included by a link stays as it is."""
        before = "touch more; ln -s $PWD/more ~/.more; git config --global include.path '~/.more'"
        await self.tried(before, _MONITOR.format("more"), "git status")

    async def test_hooks(self) -> None:
        """Hooks stay as they are where a link leads to their directory, the user's or the repository's."""
        after = "echo two >file; git add file; git status"
        before = "mkdir hooks; ln -s $PWD/hooks ~/.hooks; git config --global core.hooksPath '~/.hooks'"
        await self.tried(before, _PROGRAM.format("hooks/post-index-change"), after)

    async def test_hooks_of_the_repository(self) -> None:
        """So they do where the repository's own directory of hooks is a link."""
        before = "mkdir hooks; rm -rf .git/hooks; ln -s ../hooks .git/hooks"
        after = "echo two >file; git add file; git status"
        await self.tried(before, _PROGRAM.format("hooks/post-index-change"), after)

    async def test_template(self) -> None:
        """What new repositories get their hooks from stays as it is."""
        before = "mkdir -p template/hooks; git config --global init.templateDir $PWD/template"
        await self.tried(before, _PROGRAM.format("template/hooks/post-checkout"), "git clone -q . ../clone")

    async def test_filter(self) -> None:
        """A program that git is told to run by a link stays as it is."""
        before = """
            mkdir bin; printf '#!/bin/sh\\ncat\\n' >bin/clean; chmod +x bin/clean; ln -s $PWD/bin/clean ~/.clean
            git config filter.x.clean '~/.clean'; echo 'file filter=x' >.gitattributes
        """
        await self.tried(before, _PROGRAM.format("bin/clean") + "; echo two >file", "git diff")

    async def test_program_missing(self) -> None:
        """A program that is named by its whole path, and is not there yet, cannot be made."""
        before, refused = "git config core.fsmonitor $PWD/tools/monitor", "tools/monitor, which does not exist"
        await self.tried(before, _PROGRAM.format("tools/monitor"), "git status", refused=refused)

    async def test_path(self) -> None:
        """No agent is started where it could replace a link in the project by way of which C{PATH} leads elsewhere."""
        before = "mkdir ../tools; ln -s ../tools current; ln -s $PWD/current ../bin"
        script = "rm current; " + _PROGRAM.format("current/tool")
        refused = "could replace {}/current, which programs outside the sandbox use"
        await self.tried(before, script, "tool </dev/null || true", path="bin", refused=refused)

    async def test_settings_of_the_agent(self) -> None:
        """Nor are the agent's own settings, beside a repository, by moving away a directory that they lie in."""
        before = """
            mkdir -p a/config/opencode a/config/git; echo good >a/config/opencode/note; touch a/config/git/config
            git init -q a/other; rm -rf ~/.config; ln -s $PWD/a/config ~/.config
        """
        script = """
            echo evil >a/config/opencode/note || true
            mv a b || true; mkdir -p a/config/opencode; echo evil >a/config/opencode/note || true
        """
        project = await self.tried(before, script, "true")
        self.assertEqual((project / "a/config/opencode/note").read_text(), "good\n")

    async def test_settings_behind_a_link(self) -> None:
        """Nor where only the directory of those settings is such a link: what is written there is thrown away."""
        before = """
            mkdir -p a/opencode ~/.config; echo good >a/opencode/note; git init -q a/other
            rm -rf ~/.config/opencode; ln -s $PWD/a/opencode ~/.config/opencode
        """
        script = """
            echo evil >a/opencode/note || true; echo evil >a/opencode/new || true
            mv a b || true; mkdir -p a/opencode; echo evil >a/opencode/note || true
        """
        project = await self.tried(before, script, "true")
        self.assertEqual(self.outside(project, "ls a/opencode; cat a/opencode/note"), "note\ngood\n")

    async def test_start_file(self) -> None:
        """What the user's shell starts with stays as it is behind a link."""
        project = await self.tried("touch bashrc; ln -sf $PWD/bashrc ~/.bashrc", "echo evil >bashrc || true", "true")
        self.assertEqual((project / "bashrc").read_text(), "")

    async def test_start_file_missing(self) -> None:
        """Nor is it made, where the link leads to nothing yet."""
        await self.refuses("ln -sf $PWD/bashrc ~/.bashrc", "echo evil >bashrc", "/bashrc at startup. It does not exist")

    async def test_start_file_by_variable(self) -> None:
        """The file in the project that C{BASH_ENV} has every script of bash's start with stays as it is."""
        project = self.project("dotfiles", "echo echo good >bash-env")
        script = "echo echo evil >bash-env || echo not written; mv bash-env old || echo not moved"
        command = self.agent(script, "--sandbox", project=project)
        environment = {**command.environment, "BASH_ENV": f"{project}/bash-env"}
        finished = await self.run_command(attrs.evolve(command, environment=environment), 60)
        self.assertEqual(finished.exit_code, 0, finished)
        self.assertIn("not written\nnot moved\n", finished.stdout)
        self.assertEqual(self.outside(project, "cat bash-env"), "echo good\n")

    async def refuses(self, before: str, script: str, words: str) -> None:
        """The agent is not started there, with the reason."""
        command = self.agent(script, "--sandbox", project=self.project("dotfiles", before))
        self.assertIn(words, await self.refused(command))

    async def test_at_the_last_moment(self) -> None:
        """A link that another agent puts in the place of a directory, while the sandbox is made, is not followed."""
        private = self.home.user / "private"
        (private / "inner/.git").mkdir(parents=True)
        project = self.project("raced", "mkdir lib && git init -q lib/inner")
        real = shutil.which("bwrap") or "bwrap"
        swap = f"mv {project}/lib {project}/moved; ln -s {os.path.relpath(private, project)} {project}/lib"
        wrapper = self.programs / "bwrap"
        wrapper.write_text(f'#!/bin/bash\n[[ " $* " == *" --seccomp "* ]] && {{ {swap}; }}\nexec {real} "$@"\n')
        wrapper.chmod(0o700)
        await self.run_command(self.agent("touch lib/evil", "--sandbox", project=project), 60)
        self.assertTrue((project / "lib").is_symlink(), "it was not played")
        self.assertEqual([path.name for path in private.iterdir()], ["inner"])
