"""An agent in the sandbox that gets out, damages the repository, or leaves what is not told."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import attrs
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.sandbox._tree import read_tree
from tests.attacks.sandboxed import ProjectTestCase
from tests.functional.reactor import until

# In a mount namespace where none of the sandbox's mounts is left, nothing pins what they protect: C{d} is the project.
_NAMESPACE = """
cat >/tmp/namespace.py <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("empty/old", exist_ok=True)
here = os.fsencode(os.getcwd()) + b"/empty"
d = os.open(".", os.O_RDONLY)
libc.unshare(0x10000000 | 0x20000)
libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None)
libc.mount(here, here, None, 0x1000, None)
os.chdir(here)
libc.syscall({"x86_64": 155, "aarch64": 41}[os.uname().machine], b".", b"old")
libc.umount2(b"/old", 2)
for name in ("tools", ".git"):
    try:
        os.rename(name, "moved" + name, src_dir_fd=d, dst_dir_fd=d)
    except OSError as error:
        print(error)
END
python3 /tmp/namespace.py
"""
# Has the first process of the sandbox outlive the launcher's child (x86-64).
_OUTLIVE = """
cat >/tmp/outlive.py <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
registers = (ctypes.c_ulonglong * 27)()
if libc.ptrace(16, 1, None, None) < 0:  # PTRACE_ATTACH
    raise SystemExit("refused")
os.waitpid(1, 0x40000000)
libc.ptrace(12, 1, None, ctypes.addressof(registers))
saved = (ctypes.c_ulonglong * 27)(*registers)
registers[16] -= 2  # the system call's instruction again: prctl(PR_SET_PDEATHSIG, 0)
registers[10], registers[15], registers[14], registers[13] = 157, 2**64 - 1, 1, 0
libc.ptrace(13, 1, None, ctypes.addressof(registers))
libc.ptrace(9, 1, None, None)
os.waitpid(1, 0x40000000)
saved[16] -= 2
saved[10], saved[15] = saved[15], 2**64 - 1
libc.ptrace(13, 1, None, ctypes.addressof(saved))
libc.ptrace(17, 1, None, None)
END
cat >/tmp/survivor.py <<'END'
import os, time
if os.fork() == 0:
    d = os.open(".git", os.O_RDONLY)
    text = open(".git/config").read() + "[log]\\n showSignature = true\\n[gpg]\\n program = %s/evil.sh\\n" % os.getcwd()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with open("alive", "a") as file:
            file.write("x")
        try:
            file = os.open("config.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=d)
            os.write(file, text.encode())
            os.close(file)
            os.rename("config.new", "config", src_dir_fd=d, dst_dir_fd=d)
        except OSError:
            pass
        time.sleep(0.002)
END
printf '#!/bin/sh\\ntouch '$MARKER'\\n' >evil.sh; chmod +x evil.sh
git cat-file commit HEAD >/tmp/commit
sed -i 's/^committer.*/&\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----/' /tmp/commit
git update-ref --create-reflog -m x refs/stash $(git hash-object -t commit -w /tmp/commit)
python3 /tmp/outlive.py || true
python3 /tmp/survivor.py </dev/null >/dev/null 2>&1
"""

_EVIL_PROGRAM = "printf '#!/bin/sh\\ntouch '$MARKER'\\ncat\\n' >{0} && chmod +x {0} || true"
_PROGRAM = "mkdir -p tools; printf '#!/bin/sh\\ncat\\n' >tools/program; chmod +x tools/program;"


class BreakoutTests(ProjectTestCase):
    """Ways in which an agent's code runs outside."""

    timeout = 240

    async def test_namespace(self) -> None:
        """What is mounted over in the sandbox cannot be moved away by a process in a mount namespace of its own."""
        project = self.project("namespace", "mkdir tools && git config core.hooksPath tools")
        script = r"""
            mkdir -p tools .git && printf '#!/bin/sh\ntouch '$MARKER'\n' >tools/post-index-change || true
            chmod +x tools/post-index-change || true
        """
        told = await self.inside(project, _NAMESPACE + script)
        self.assertEqual(self.outside(project, "ls -A | grep moved || true"), "", told)
        self.outside(project, "echo two >file; git add file; git status")
        self.assertFalse(self.marker.exists(), told)

    async def test_outlived(self) -> None:
        """Nothing of the agent's runs any more when its work is imported, whatever it did to processes there."""
        project = self.project("outlived")
        await self.run_command(self.agent(f"MARKER='{self.marker}'\n{_OUTLIVE}", "--sandbox", project=project), 60)
        before = self.outside(project, "cat alive || true; sleep 1")
        self.assertEqual(self.outside(project, "cat alive || true"), before)
        self.assertFalse(self.marker.exists())

    async def tried(self, name: str, before: str, script: str, after: str) -> None:
        """Nothing of the attacker's runs outside."""
        project = self.project(name, before)
        told = await self.inside(project, script)
        self.outside(project, after)
        self.assertFalse(self.marker.exists(), f"{name}: {told}")

    async def test_hook_behind_a_link(self) -> None:
        """A file of the project's that a hook is a link to stays as it is."""
        there = _PROGRAM + "ln -s ../../tools/program .git/hooks/pre-commit"
        after = "git commit -q --allow-empty -m later </dev/null"
        await self.tried("hook-link", there, _EVIL_PROGRAM.format("tools/program"), after)

    async def test_hook_path_behind_a_link(self) -> None:
        """A file of the project's that a hook in C{core.hooksPath} is a link to stays as it is."""
        there = _PROGRAM + "mkdir hooks; ln -s ../tools/program hooks/pre-commit; git config core.hooksPath hooks"
        after = "git commit -q --allow-empty -m later </dev/null"
        await self.tried("path-link", there, _EVIL_PROGRAM.format("tools/program"), after)

    async def test_hook_path_in_the_environment(self) -> None:
        """A hook is not written where the user's environment says that hooks lie."""
        project = self.project("environment", "mkdir -p tools")
        written = _EVIL_PROGRAM.format("tools/pre-commit")
        script = f"MARKER='{self.marker}'; {written}; rm -rf tools || true; mkdir -p tools; {written}; echo at its end"
        command = self.agent(script, "--sandbox", project=project)
        setting = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": "tools"}
        finished = await self.run_command(attrs.evolve(command, environment={**command.environment, **setting}), 60)
        self.assertEqual((finished.exit_code, finished.stdout), (0, "at its end\n"), finished.stderr)
        self.assertIn("tools/pre-commit: Read-only file system", finished.stderr)
        self.outside(project, "git -c core.hooksPath=tools commit -q --allow-empty -m later </dev/null")
        self.assertFalse(self.marker.exists())

    async def test_program_missing(self) -> None:
        """A program that the settings name, and that is not there yet, cannot be made by the agent."""
        project = self.project("missing", "git config core.fsmonitor tools/monitor")
        script = f"MARKER='{self.marker}'; mkdir -p tools; " + _EVIL_PROGRAM.format("tools/monitor")
        told = await self.refused(self.agent(script, "--sandbox", project=project))
        self.assertIn(f"refers to the program {project}/tools/monitor, which does not exist", told)
        self.outside(project, "git status </dev/null")
        self.assertFalse(self.marker.exists())

    async def test_program_in_a_shell_script(self) -> None:
        """A program that stands in a setting's shell command stays as it is."""
        for name, command in (
            ("script", "sh -c 'tools/program %f'"),
            ("toplevel", '"$(git rev-parse --show-toplevel)/tools/program"'),
        ):
            there = _PROGRAM + f"echo 'file filter=x' >.gitattributes; git config filter.x.clean {_quoted(command)}"
            script = _EVIL_PROGRAM.format("tools/program") + "; echo two >file"
            await self.tried(name, there, script, "git add file")

    async def test_chain_of_links(self) -> None:
        """A link of the project's that a program on C{PATH} is reached by cannot be replaced."""
        project = self.project("chain")
        real, tools = project.parent / "real", project.parent / "tools"
        self.outside(project, "mkdir ../real ../tools; printf '#!/bin/sh\\n:' >../real/tool; chmod +x ../real/tool")
        (project / "link").symlink_to(real / "tool")
        (tools / "tool").symlink_to(project / "link")
        script = f"MARKER='{self.marker}'; rm -f link; " + _EVIL_PROGRAM.format("link")
        command = self.agent(script, "--sandbox", project=project)
        path = f"{command.environment['PATH']}:{tools}"
        command = attrs.evolve(command, environment={**command.environment, "PATH": path})
        told = await self.refused(command)
        self.assertIn(f"sandboxed agent could replace {project}/link, which programs outside the sandbox use", told)
        self.outside(project, f"PATH=$PATH:{tools} tool </dev/null")
        self.assertFalse(self.marker.exists())

    async def test_keyring(self) -> None:
        """The kernel's keys of the user cannot be read."""
        project = self.project("keyring")
        calls = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[os.uname().machine]
        code = f"""
import ctypes
call = ctypes.CDLL(None).syscall
held = ctypes.create_string_buffer(16)
call({calls[2]}, 11, call({calls[1]}, b"user", b"aileron-test", None, 0), held, 16)
print("held", held.value)
"""
        # The launcher's session has a keyring, as pam_keyinit gives each login one.
        login = f"""
import ctypes, os, sys
call = ctypes.CDLL(None).syscall
assert call({calls[2]}, 1, None) > 0 and call({calls[0]}, b"user", b"aileron-test", b"hunter2", 7, -3) > 0
os.execvp(sys.argv[1], sys.argv[1:])
"""
        agent = self.agent(f"python3 -c '{code}'", "--sandbox", project=project)
        finished = await self.run_command(agent.behind(sys.executable, "-c", login), 60)
        self.assertIn("held b''", finished.stdout)


class ToldTests(ProjectTestCase):
    """Ways in which an agent makes what runs later, and the user is not told."""

    timeout = 240

    async def is_told(self, name: str, script: str, *paths: str) -> None:
        """The user is told of each of these."""
        project = self.project(name)
        finished = await self.run_command(self.agent(script, "--sandbox", project=project), 60)
        self.outside(project, "rm -rf d")
        listed = "".join(path.read_text() for path in (self.home.aileron / "sandboxes").glob("changed-*.txt"))
        for path in paths:
            self.assertIn(f"{project}/{path}", finished.stderr + listed)
        self.outside(project, f"rm -rf {self.home.aileron}/sandboxes/*/*")  # too deep for what clears the home

    async def test_root_becomes_a_repository(self) -> None:
        """A bare repository that is made of the project's directory itself is told, or not run."""
        project = self.home.root / "projects" / "plain"
        project.mkdir(parents=True)
        told = await self.inside(
            project,
            """
            git init -q --bare /tmp/x; cp -r /tmp/x/* .; git config --file config core.bare false
            git config --file config core.worktree .; git config --file config core.fsmonitor "touch $MARKER; false"
            """,
        )
        self.outside(project, "git status || true")
        self.assertFalse(self.marker.exists() and "Review them first" not in told, told)

    async def test_new_bare_repository(self) -> None:
        """A bare repository that is made in the project is told."""
        made = "mkdir -p tools/objects tools/refs; echo ref: refs/heads/main > tools/HEAD"
        await self.is_told("made-bare", made, "tools")

    async def test_deep(self) -> None:
        """Directories that are nested deeply keep nothing from being told, in the project or in the repository."""
        dig = 'import os\nfor i in range(1500): os.mkdir("d"); os.chdir("d")'
        await self.is_told("deep", f"git init -q sub; python3 -c '{dig}'", "sub/.git")
        await self.is_told("deep-refs", f"git init -q sub; cd .git/refs; python3 -c '{dig}'", "sub/.git")

    async def test_descriptors(self) -> None:
        """Connections that the agent leaves open at its end keep nothing from being told or imported."""
        project = self.project("descriptors")
        hold = """
import json, os, socket, urllib.parse
server = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])["mcp"]["aileron"]["environment"]
address = urllib.parse.urlsplit(server["AILERON_URL"])
held = []
try:
    for _ in range(900):
        held.append(socket.create_connection((address.hostname, address.port), 2))
except OSError as error:
    print(error)
print(len(held))
"""
        work = "git init -q sub; git commit -q --allow-empty -m inside\n"
        script = f"{work}cat >/tmp/hold.py <<'END'{hold}END\npython3 /tmp/hold.py"
        finished = await self.run_command(self.agent(script, "--sandbox", project=project), 60)
        self.assertIn(f"{project}/sub/.git", finished.stderr, finished.stdout)
        self.assertEqual(self.outside(project, "git log -1 --format=%s"), "inside\n", finished.stderr)

    async def test_many(self) -> None:
        """One repository is told however many harmless ones are made."""
        await self.is_told("many", "for i in $(seq 60); do mkdir -p a$i/.git; done; git init -q z", "z/.git")

    async def test_bare_repository(self) -> None:
        """A bare repository that an agent is launched in runs nothing that the agent wrote there."""
        project = self.home.root / "projects" / "bare.git"
        project.mkdir(parents=True)
        self.outside(
            project, "git init -q --bare .; git init -q ../other; git -C ../other commit -q --allow-empty -m x"
        )
        hook = (
            f"MARKER='{self.marker}'; printf '#!/bin/sh\\ntouch '$MARKER >hooks/reference-transaction; chmod +x hooks/*"
        )
        told = await self.refused(self.agent(hook, "--sandbox", project=project))
        self.assertIn(f"sandboxed agent could change {project}, which runs outside the sandbox", told)
        self.outside(project, "git fetch -q ../other HEAD:refs/heads/x")
        self.assertFalse(self.marker.exists())

    async def test_hard_link(self) -> None:
        """A file of the project's that is also a program on C{PATH} stays as it is, or is told."""
        project = self.project("hard")
        tools = project.parent / "tools"
        self.outside(
            project, "mkdir ../tools; printf '#!/bin/sh\\n:' >../tools/tool; chmod +x ../tools/tool; ln ../tools/tool x"
        )
        script = f"MARKER='{self.marker}'; " + _EVIL_PROGRAM.format("x")
        command = self.agent(script, "--sandbox", project=project)
        path = f"{command.environment['PATH']}:{tools}"
        command = attrs.evolve(command, environment={**command.environment, "PATH": path})
        finished = await self.run_command(command, 60)
        self.assertEqual(finished.exit_code, 0, finished)
        self.outside(project, f"PATH=$PATH:{tools} tool </dev/null")
        self.assertTrue(self.marker.exists(), "the agent could write it")
        self.assertIn(f"  {project}/x\n", finished.stderr.partition("Review them first")[2])


class UnreadableTests(SynchronousTestCase):
    """Directories that can be entered and not listed."""

    def test_unreadable(self) -> None:
        """A directory that cannot be listed is found, since git enters a repository in it by its name."""
        root = Path(tempfile.mkdtemp(dir="/tmp"))
        self.addCleanup(shutil.rmtree, root)
        (root / "sub" / ".git").mkdir(parents=True)
        if os.geteuid() == 0:
            for path in (root, root / "sub", root / "sub" / ".git"):
                os.chown(path, 65534, 65534)
            self.addCleanup(os.seteuid, 0)
            os.seteuid(65534)
        before = read_tree(str(root))
        (root / "sub").chmod(0o311)
        found = before.changes(read_tree(str(root))) + tuple(read_tree(str(root)).repositories)
        (root / "sub").chmod(0o700)
        self.assertTrue(any("sub" in path for path in found))


class LostTests(ProjectTestCase):
    """Ways in which the user's repository, or the agent's work, is damaged."""

    timeout = 240

    async def meanwhile(self, project: Path, script: str, outside: str) -> str:
        """What the user is told when this was done outside behind what was done inside."""
        waiting = f"{script}\ntouch done; while test ! -e go; do sleep 0.05; done"
        agent = self.start(self.agent(waiting, "--sandbox", project=project))
        await until(self.reactor, (project / "done").exists, 60, "the work inside")
        self.outside(project, outside)
        (project / "go").touch()
        return " ".join((await agent.finish(60)).stderr.split())

    async def test_staged_outside(self) -> None:
        """What the agent committed is not undone by the next commit of a user who staged a file meanwhile."""
        project = self.project("staged")
        told = await self.meanwhile(project, "echo two >file; git commit -qam agent", "echo x >mine; git add mine")
        self.outside(project, "git commit -qm user")
        if self.outside(project, "git log --format=%s").split() == ["user", "agent", "one"]:
            self.assertEqual(self.outside(project, "git show HEAD:file"), "two\n", told)

    async def test_merge_without_its_index(self) -> None:
        """A merge is not imported where its index is not: the next commit would lose what was merged."""
        side = "git switch -qc side; echo a >file; echo s >side; git add side; git commit -qam a; git switch -q main;"
        project = self.project("merging", side + "echo m >file; git commit -qam m")
        told = await self.meanwhile(project, "git merge -q side || true", "echo x >mine; git add mine")
        self.outside(project, "git commit -qm user")
        parents, files = self.outside(project, "git show -s --format=%p; git ls-tree --name-only HEAD | xargs").split(
            "\n"
        )[:2]
        self.assertFalse(len(parents.split()) == 2 and "side" not in files.split(), told)

    async def test_locked_index(self) -> None:
        """While the index is locked, the branch that it belongs to does not move."""
        project = self.project("locked")
        await self.meanwhile(project, "echo two >file; git commit -qam agent", "touch .git/index.lock")
        self.outside(project, "rm .git/index.lock; echo x >mine; git add mine; git commit -qm user")
        if "agent" in self.outside(project, "git log --format=%s"):
            self.assertEqual(self.outside(project, "git show HEAD:file"), "two\n")

    async def test_name_of_a_ref(self) -> None:
        """A branch whose name has a line separator (U+2028) in it ends neither this import nor the next launch."""
        project = self.project("separator", "git branch $(printf 'a\\342\\200\\250b')")
        await self.inside(project, "git commit -q --allow-empty -m inside")
        self.assertEqual(self.outside(project, "git log -1 --format=%s"), "inside\n")

    async def test_sparse_checkout(self) -> None:
        """What is outside of a sparse checkout does not become deleted by a merge in the sandbox."""
        before = """
            mkdir a b; echo 1 >a/f; echo 1 >b/f; git add a b; git commit -qm ab; git switch -qc dev
            echo 2 >b/f; git commit -qam dev; git switch -q main; git sparse-checkout set a
        """
        project = self.project("sparse", before)
        await self.inside(project, "git merge -q dev")
        self.assertEqual(self.outside(project, "git status --porcelain"), "")

    async def test_killed_while_deleting(self) -> None:
        """A copy that a killed launcher had half deleted is not imported: nothing is staged as deleted."""
        project = self.project("deleting")
        agent = self.start(self.agent("touch done; sleep 60", "--sandbox", project=project))
        await until(self.reactor, (project / "done").exists, 60, "the work inside")
        os.kill(agent.pid, signal.SIGKILL)
        await agent.finish(60)
        (copy,) = (self.home.aileron / "sandboxes").iterdir()
        (copy / "git" / "index").unlink()  # as C{shutil.rmtree} does in some order
        await self.inside(project, "true")
        self.assertEqual(self.outside(project, "git diff --cached --name-only"), "")

    async def test_killed_while_copying(self) -> None:
        """What a launcher left that was killed before its copy was whole is deleted by the next."""
        half = self.home.aileron / "sandboxes" / "0123456789ab"
        (half / "git").mkdir(parents=True)
        await self.inside(self.project("copying"), "true")
        self.assertFalse(half.exists())

    async def test_killed_after_it_was_reduced(self) -> None:
        """A rebase that is under way is kept, and not taken for finished, by a launch behind one that was killed."""
        project = self.project("rebasing", "echo x >f && git add f && git commit -qm second")
        rebase = "GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i --root || true; touch done; sleep 60"
        agent = self.start(self.agent(rebase, "--sandbox", project=project))
        await until(self.reactor, (project / "done").exists, 60, "the work inside")
        os.kill(agent.pid, signal.SIGKILL)
        await agent.finish(60)
        (copy,) = (self.home.aileron / "sandboxes").iterdir()
        (copy / "discarded").mkdir()  # as C{sanitize} leaves it
        (copy / "git" / "rebase-merge").rename(copy / "discarded" / "rebase-merge")
        told = await self.inside(project, "true")
        self.assertEqual(self.outside(project, "git branch --show-current"), "main\n", told)
        self.assertTrue((copy / "discarded" / "rebase-merge").is_dir(), told)

    async def test_worktree_left(self) -> None:
        """A work tree that the agent added, whose repository is not imported, does not stop the next launch."""
        project = self.project("left")
        await self.inside(project, "git worktree add -q wt -b topic; git -C wt commit -q --allow-empty -m work")
        await self.inside(project, "git commit -q --allow-empty -m next")
        self.assertEqual(self.outside(project, "git log -1 --format=%s"), "next\n")

    async def test_deleted_in_sha256(self) -> None:
        """A file that is staged as deleted comes back in a repository of SHA-256."""
        project = self.home.root / "projects" / "sha256"
        project.mkdir(parents=True)
        self.outside(project, "git init -qb main --object-format=sha256; echo 1 >f; git add f; git commit -qm one")
        await self.inside(project, "git rm -q f")
        self.assertEqual(self.outside(project, "git status --porcelain"), "D  f\n")

    async def test_large_files(self) -> None:
        """What Git LFS keeps of the repository is neither changed nor deleted."""
        project = self.project("lfs", "mkdir -p .git/lfs/objects/aa/bb; echo data >.git/lfs/objects/aa/bb/aabb")
        await self.inside(project, "echo evil >.git/lfs/objects/aa/bb/aabb || true; rm -rf .git/lfs/objects/aa || true")
        self.assertEqual(self.outside(project, "cat .git/lfs/objects/aa/bb/aabb"), "data\n")


def _quoted(command: str) -> str:
    return "'" + command.replace("'", "'\\''") + "'"
