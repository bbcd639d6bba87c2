"""An agent in the sandbox that plants what a later C{git status} of the user's would run, outside."""

from __future__ import annotations

from tests.attacks.sandboxed import ProjectTestCase

_EVIL_REPOSITORY = """
git init -q "$1"
git -C "$1" -c user.name=x -c user.email=x@y commit -q --allow-empty -m x
git -C "$1" config core.fsmonitor "touch $MARKER; false"
"""
# Makes a stash whose signature whoever lists it has looked at by C{evil.sh}, where git's settings say so.
_SIGNED_STASH = """
printf '#!/bin/sh\\ntouch '$MARKER'\\n' >evil.sh; chmod +x evil.sh
git commit -q --allow-empty -m signed; git cat-file commit HEAD >/tmp/commit
sed -i 's/^committer.*/&\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----/' /tmp/commit
git update-ref --create-reflog -m x refs/stash $(git hash-object -t commit -w /tmp/commit)
git config log.showSignature true; git config gpg.program $PWD/evil.sh
"""
_SUBMODULE = """
git init -q ../{0} && git -C ../{0} commit -q --allow-empty -m inner
git submodule --quiet add --name a/b/c ../{0} deep/sub && git commit -qm submodule
"""


class GitTests(ProjectTestCase):
    """Each way that was found, with the real git before, inside and after."""

    timeout = 240

    async def tried(self, name: str, before: str, script: str, after: str = "git status") -> str:
        """Nothing of the attacker's runs outside; what the user is told at the end."""
        project = self.project(name, before)
        evil = f"evil() {{\n{_EVIL_REPOSITORY}\n}}\n"
        told = await self.inside(project, evil + script)
        self.outside(project, after)
        self.assertFalse(self.marker.exists(), name)
        return told

    async def test_commondir(self) -> None:
        """The repository's own directory leads nowhere else."""
        script = "evil ../evil || evil ./evil; echo ../evil/.git >.git/commondir || true"
        await self.tried("commondir", "", script)
        script = f"evil ./evil; cd evil\n{_SIGNED_STASH}\necho $PWD/.git >../.git/commondir"
        await self.tried("commondir-imported", "", script)

    async def test_configuration(self) -> None:
        """What is set inside, in the repository's own files, is not obeyed outside or at the import, and is told."""
        told = await self.tried(
            "config",
            "git config extensions.worktreeConfig true",
            'for f in config config.worktree; do git config --file .git/$f core.fsmonitor "touch $MARKER; false"; done',
        )
        self.assertIn("config", told)
        told = await self.tried("config-imported", "", _SIGNED_STASH)
        self.assertIn("Sandbox: stash: ", told)

    async def test_objects(self) -> None:
        """The repository's own objects are read there, and neither changed nor deleted."""
        script = """
            git cat-file -p HEAD:file
            objects=.git/aileron-objects; ls $objects
            chmod -R u+w $objects || true; rm -rf $objects/?? $objects/pack || true
            mkdir -p $objects/info || true; echo $PWD/evil/.git/objects >$objects/info/alternates || true
            mv $objects old || true
        """
        await self.tried("objects", "", script, "git fsck --strict && ! test -e .git/objects/info/alternates")

    async def test_hooks(self) -> None:
        """A hook that is written inside does not run outside, in the repository or where C{core.hooksPath} says."""
        hook = 'printf "#!/bin/sh\\ntouch $MARKER\\n" >{0}/post-index-change && chmod +x {0}/post-index-change || true'
        after = "echo two >file; git add file; git status"
        await self.tried("hooks", "", hook.format(".git/hooks"), after)
        there = "mkdir -p tools/hooks && git config core.hooksPath tools/hooks"
        await self.tried("hookspath", there, hook.format("tools/hooks"), after)
        moved = "mv tools tools.old || true; mkdir -p tools/hooks; " + hook.format("tools/hooks")
        await self.tried("hookspath-moved", there, moved, after)
        await self.tried(
            "hookspath-missing", "git config core.hooksPath hooks", "mkdir -p hooks; " + hook.format("hooks"), after
        )

    async def test_included(self) -> None:
        """A file of the project's that the configuration includes or names as a program stays as it is."""
        there = "touch .gitconfig && git config include.path ../.gitconfig"
        setting = 'git config --file .gitconfig core.fsmonitor "touch $MARKER; false" || true'
        await self.tried("included", there, setting)
        there = """
            mkdir tools && printf '#!/bin/sh\\ncat' >tools/clean && chmod +x tools/clean
            git config filter.x.clean ./tools/clean && echo 'file filter=x' >.gitattributes
        """
        written = "printf '#!/bin/sh\\ntouch '$MARKER'\\ncat' >tools/clean || true; sleep 1; echo two >file"
        await self.tried("filter", there, written)

    async def test_module(self) -> None:
        """A module that Python looks for in the project first is not run by a filter (C{python -m})."""
        project = self.project(
            "module", "git config filter.x.clean 'python3 -m base64'; echo 'file filter=x' >.gitattributes"
        )
        script = f"""echo 'open("{self.marker}", "w")' >struct.py; echo two >file"""
        finished = await self.run_command(self.agent(script, "--sandbox", project=project), 60)
        self.outside(project, "git diff")
        self.assertFalse(self.marker.exists())
        self.assertIn("filter.x.clean", finished.stderr)

    async def test_embedded(self) -> None:
        """A repository that is made in the project, and put into the index, is not run by the outer one's status."""
        told = await self.tried("embedded", "", "evil sub; git add sub; git status >&2 || true")
        self.assertIn("sub/.git", told)
        fetched = "evil sub; git add sub; git fetch -q ./sub HEAD"  # so that the object is there that the index names
        told = await self.tried("embedded-fetched", "", fetched)
        self.assertIn("sub in the index, because it is a repository of its own", told)
        committed = "evil sub; git add sub; git commit -qm sub"
        told = await self.tried("embedded-commit", "", committed, "git reset -q --hard; git status")
        self.assertIn("sub/.git", told)
        told = await self.tried("bare", "", "evil sub; mv sub/.git docs; rm -r sub")
        self.assertIn("docs", told)

    async def test_worktrees(self) -> None:
        """A linked worktree keeps the repository that it had, whether it lies in the project or beside it."""
        script = "evil evil; for d in .git/worktrees/*; do echo $PWD/evil/.git >$d/commondir; done || true"
        await self.tried("worktree", "git worktree add -q ../beside", script, "git -C ../beside status")
        script = "evil evil; rm -f tree/.git || mv tree tree.old || true; cp -rT evil/.git tree/.git || true"
        await self.tried("worktree-in", "git worktree add -q tree", script, "git -C tree status")

    async def test_submodules(self) -> None:
        """A submodule keeps its repository and configuration, however its name and its place are nested."""
        config = 'git config --file .git/modules/a/b/c/config core.fsmonitor "touch $MARKER; false" || true'
        await self.tried("modules", _SUBMODULE.format("one"), config)
        replaced = "evil evil; rm -f deep/sub/.git || true; cp -rT evil/.git deep/sub/.git || true"
        await self.tried("gitfile", _SUBMODULE.format("two"), replaced)
        moved = "evil evil; mv deep shallow || true; mkdir -p deep/sub; cp -rT evil/.git deep/sub/.git || true"
        await self.tried("moved", _SUBMODULE.format("three"), moved)
        empty = _SUBMODULE.format("four") + "git submodule --quiet deinit -f deep/sub"
        await self.tried("uninitialised", empty, "evil evil; cp -rT evil/.git deep/sub/.git || true")
        gone = empty.replace("four", "five") + "; rm -r deep"
        await self.tried("gone", gone, "evil evil; mkdir -p deep/sub; cp -rT evil/.git deep/sub/.git || true")

    async def test_nested(self) -> None:
        """A repository that lay in the project before is not changed."""
        there = "git init -q inner && git -C inner commit -q --allow-empty -m x && git add inner && git commit -qm x"
        script = 'git -C inner config core.fsmonitor "touch $MARKER; false" || true'
        await self.tried("nested", there, script)

    async def test_no_repository(self) -> None:
        """Where there was none, one that is made is told."""
        project = self.home.root / "projects" / "plain"
        project.mkdir(parents=True)
        self.assertIn("plain/.git", await self.inside(project, "git init -q"))
