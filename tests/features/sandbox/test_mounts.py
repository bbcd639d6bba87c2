"""The other paths of a directory, by the kernel's list of mounts.

A symbolic link stands for a mount here: what it leads to has the same device and inode.
"""

from __future__ import annotations

from pathlib import Path

from aileron.features.sandbox._mounts import Mount, find_copies, read_mounts, second_paths
from tests.features.sandbox.test_layout import LayoutCase


class MountsTests(LayoutCase):
    """A home on a file system that is mounted at the root of the test's directories."""

    def mount(self, root: str, place: Path | str, device: str = "8:1", kind: str = "ext4") -> Mount:
        """A mount of a part of that file system."""
        return Mount(device, root, str(self.root / place), kind)

    def seconds(self, *mounts: Mount) -> list[str]:
        """The other paths of Aileron's home, below the test's directories."""
        found = second_paths(str(self.state), (self.mount("/", ""), *mounts))
        return [str(Path(each).relative_to(self.root)) for each in found]

    def stand_in(self, name: str, target: Path) -> Path:
        """Have a path lead to a directory."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        return path

    def test_read(self) -> None:
        """A line says device, root, place and kind; blanks in names are numbers, and fields may be left out."""
        text = (
            "36 35 98:0 /mnt\\0401 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n37 35 0:5 / /proc rw - proc proc rw\n"
        )
        self.assertEqual(
            read_mounts(text), (Mount("98:0", "/mnt 1", "/mnt2", "ext3"), Mount("0:5", "/", "/proc", "proc"))
        )
        self.assertIn("/", {each.place for each in read_mounts()})

    def test_above(self) -> None:
        """A mount of the whole file system, or of what is around the home, shows it again."""
        self.stand_in("all", self.root)
        self.stand_in("users/me", self.home)
        found = self.seconds(self.mount("/", "all"), self.mount("/user", "users/me"), self.mount("/other", "nothing"))
        self.assertEqual(found, ["all/user/.aileron", "users/me/.aileron"])

    def test_below(self) -> None:
        """A mount of a part of the home shows that part, a single file as well."""
        (self.state / "secrets.json").touch()
        self.stand_in("logs", self.made("user/.aileron/log"))
        self.stand_in("key", self.state / "secrets.json")
        mounts = self.mount("/user/.aileron/log", "logs"), self.mount("/user/.aileron/secrets.json", "key")
        self.assertEqual(self.seconds(*mounts), ["logs", "key"])

    def test_another(self) -> None:
        """Another file system, a covered mount and the home itself are no second path."""
        self.made("all/user/.aileron")
        other = self.mount("/", "all", device="8:2")
        self.assertEqual(self.seconds(other, self.mount("/", "all"), self.mount("/user", "user")), [])

    def test_copies(self) -> None:
        """A home in a snapshot, or below another system's root, is found by its vault's file."""
        copies = {
            "other/.aileron",
            ".snapshots/7/snapshot/user/.aileron",
            "user/.zfs/snapshot/daily/.aileron",
            "timeshift/snapshots/2026-01-01_10-00-01/localhost/user/.aileron",
            "timeshift-btrfs/snapshots/2026-01-01_10-00-01/@home/user/.aileron",
        }
        for name in copies:
            (self.made(name) / "secrets.json").touch()
        (self.state / "secrets.json").touch()
        self.made("other/user/.aileron")
        mounts = self.mount("/", "other", device="8:2"), self.mount("/", "")
        found = {
            str(Path(each).relative_to(self.root)) for each in find_copies(str(self.state), "secrets.json", mounts)
        }
        self.assertEqual(found, copies)
