"""A home on a file system that is really full."""

from pathlib import Path

from tests.functional.case import FunctionalTestCase
from tests.functional.home import installed
from tests.functional.install import install_sandbox
from tests.functional.operated import PASSPHRASE
from tests.functional.process import Command, Finished

_SIZE_BYTES = 8 * 1024 * 1024
_FILL = """
fill() { for size in 65536 1024 1; do
    dd if=/dev/zero bs=$size 2>/dev/null >> "$AILERON_HOME/fill" || true; done; }
free() { rm "$AILERON_HOME/fill"; }
"""


class FullDiskTests(FunctionalTestCase):
    """The home is a small file system of its own, in a mount namespace.

    They fail, and are not skipped, where there is no bubblewrap, or where it can make no namespace.
    """

    async def play(self, script: str) -> Finished:
        """Run a shell script whose home has a vault, unlocked, and a file system of eight megabytes."""
        self.home.aileron.mkdir(mode=0o700)
        start = f"""
            printf %s '{PASSPHRASE}' > "$TMPDIR/passphrase"
            aileron vault init --passphrase-fd 3 3< "$TMPDIR/passphrase" >/dev/null || exit 90
        """
        end = "free; aileron daemon stop >/dev/null"
        arguments = ("--dev-bind", "/", "/", "--perms", "0700", "--size", str(_SIZE_BYTES))
        command = Command(
            arguments=(
                *(str(install_sandbox()), *arguments, "--tmpfs", str(self.home.aileron)),
                *("sh", "-c", "\n".join((_FILL, start, script, end))),
            ),
            environment=self.home.environment(),
            directory=self.home.project,
        )
        self.assertTrue(Path(installed("aileron")).exists())
        return await self.run_command(command)

    async def test_running(self) -> None:
        """A pause holds, the vault is locked, and the doctor names the disk; with room again the pause is saved."""
        finished = await self.play("""
            fill
            aileron pause; echo "pause: $?"
            aileron doctor --offline; echo "doctor: $?"
            aileron vault lock; echo "lock: $?"
            aileron status
            free; sleep 5; fill
            aileron audit list --type pause.begun
        """)
        said = finished.stdout + finished.stderr
        for words in (
            "pause: 0",
            "is not saved yet",
            f"The disk that holds {self.home.aileron} is full",
            "doctor: 1",
            "lock: 0",
            "The vault is locked",
            "pause.begun",
        ):
            self.assertIn(words, said)

    async def test_starting(self) -> None:
        """A daemon that cannot start says so at once and leaves neither a process nor a lock behind."""
        finished = await self.play("""
            aileron daemon stop >/dev/null
            fill
            before=$(date +%s)
            aileron daemon start; echo "start: $?"
            echo "seconds: $(($(date +%s) - before))"
            free
            aileron daemon start >/dev/null; echo "again: $?"
        """)
        said = finished.stdout + finished.stderr
        self.assertIn(f"The disk that holds {self.home.aileron} is full, so the daemon cannot start.", said)
        self.assertIn("start: 1", said)
        self.assertIn("again: 0", said)
        seconds = int(said.partition("seconds: ")[2].split()[0])
        self.assertLess(seconds, 30, said)
