"""The catalogue holds what its directory does: good files load, bad ones are told, changes are seen."""

from __future__ import annotations

import os
import pathlib
from typing import NoReturn

from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import DirectoryCatalogue, _parse, check, parse
from aileron.base.tables import FileTable
from aileron.model.interfaces.connectors import ICatalogue
from aileron.testing import CatalogueContract, MemoryCatalogue

from .files import manifest


def named(name: str, body: str = "words") -> bytes:
    """A file of an action of that name."""
    return manifest(head=f'+++\nname = "{name}"\nversion = "1.0.0"\n', end=f"\n+++\n{body}\n")


class DirectoryTests(SynchronousTestCase):
    """What every test of a directory needs."""

    def setUp(self) -> None:
        self.directory = pathlib.Path(self.mktemp())
        self.directory.mkdir(mode=0o700)
        self.catalogue = DirectoryCatalogue(str(self.directory), 1000)

    def write(self, file: str, data: bytes) -> pathlib.Path:
        path = self.directory / file
        path.write_bytes(data)
        return path

    def names(self) -> list[str]:
        """Names of the actions after a look at the directory."""
        return list(self.catalogue.refresh().actions)

    def errors(self) -> list[tuple[str, str]]:
        """Kind and file name of each load error after a look at the directory."""
        return [(one.kind, os.path.basename(one.file)) for one in self.catalogue.refresh().load_errors]


class ReadingTests(DirectoryTests):
    """What is read."""

    def test_good_and_bad(self) -> None:
        """Good files load beside a bad one, which is told with its line; other files and folders do not count."""
        self.write("b.md", named("b"))
        self.write("a.md", named("a"))
        self.write("bad.md", b"+++\nname = 3\n+++\n")
        self.write("notes.txt", b"hello")
        self.write(".b.md.swp", b"hello")
        self.write(".c.md", b"hello")
        (self.directory / "deeper").mkdir()
        (self.directory / "deeper" / "c.md").write_bytes(named("c"))
        self.assertEqual(self.names(), ["a", "b"])
        found = self.catalogue.current()
        self.assertEqual({os.path.basename(error.file) for error in found.load_errors}, {"bad.md"})
        self.assertIn((2, "`name` must be a string"), [(error.line, error.message) for error in found.load_errors])
        self.assertEqual(found.actions["a"].path, str(self.directory / "a.md"))

    def test_broken_reader(self) -> None:
        """A file of which reading makes an exception of ours is told as unreadable and logged; the others load."""

        def read_limits(table: FileTable, names: object) -> NoReturn:
            raise TypeError("\x1b" * 9000)

        self.write("a.md", named("a"))
        self.names()
        self.patch(_parse, "read_limits", read_limits)
        path = self.write("bad.md", named("bad"))
        self.assertEqual(self.names(), ["a"])
        (error,) = self.catalogue.current().load_errors
        self.assertIn("the file cannot be read: TypeError", error.message)
        self.assertEqual((error.kind, error.file, len(error.message) < 450), ("unreadable", str(path), True))
        self.assertEqual(check(str(path)), [error])
        self.assertEqual(len(self.flushLoggedErrors(TypeError)), 2)

    def test_missing_directory(self) -> None:
        """No directory is an empty catalogue, and it is noticed when it appears."""
        self.directory.rmdir()
        self.assertEqual((self.names(), self.errors()), ([], []))
        self.directory.mkdir()
        self.write("a.md", named("a"))
        self.assertEqual(self.names(), ["a"])

    def test_unreadable_directory(self) -> None:
        """A directory that cannot be read, or is a link, is an error and offers nothing, nor what was there before."""
        self.write("a.md", named("a"))
        self.assertEqual(self.names(), ["a"])
        link = self.directory.with_name(self.directory.name + "-link")
        link.symlink_to(self.directory.absolute())
        found = DirectoryCatalogue(str(link), 1).refresh()
        self.assertEqual((found.actions, [error.kind for error in found.load_errors]), ({}, ["unreadable"]))
        (self.directory / "a.md").unlink()
        self.directory.rmdir()
        self.directory.write_bytes(b"")
        self.assertEqual(self.names(), [])
        self.assertEqual(self.errors(), [("unreadable", self.directory.name)])

    def test_only_plain_files(self) -> None:
        """Neither links, nor pipes (which would block), nor folders are read, and no descriptor stays open for one."""
        before = len(os.listdir("/dev/fd"))
        target = self.write("target", named("a"))
        (self.directory / "link.md").symlink_to(target.name)
        os.mkfifo(self.directory / "pipe.md")
        (self.directory / "folder.md").mkdir()
        self.assertEqual(self.names(), [])
        self.assertEqual(self.errors(), [("unreadable", f"{name}.md") for name in ("folder", "link", "pipe")])
        self.assertEqual(len(os.listdir("/dev/fd")), before)

    def test_only_our_own(self) -> None:
        """A file of another user, or that everybody may write to, is not read, and is once that is put right."""
        path = self.write("a.md", named("a"))
        path.chmod(0o666)
        self.assertEqual(self.errors(), [("unreadable", "a.md")])
        path.chmod(0o664)
        self.assertEqual((self.names(), self.errors()), (["a"], []))
        other = pathlib.Path("/etc/passwd")
        if os.geteuid() == 0:
            other = self.write("b.md", named("b"))
            os.chown(other, 1, 1)
        self.assertEqual([error.message for error in check(str(other))], ["the file belongs to another user"])

    def test_check(self) -> None:
        """A file that would load has no faults; those of others, or of one that is gone, are the daemon's."""
        self.assertEqual(check(str(self.write("a.md", named("a")))), [])
        path = self.write("bad.md", b"+++\nname = 3\n+++\n")
        self.assertEqual(tuple(check(str(path))), self.catalogue.refresh().load_errors)
        (error,) = check(str(self.directory / "none.md"))
        self.assertEqual(
            (error.kind, error.message), ("unreadable", "the file cannot be opened: No such file or directory")
        )

    def test_only_a_heading(self) -> None:
        """A file whose body is only a heading loads, and has a fault for who checks it: a model would read nothing."""
        path = self.write("a.md", named("a", "# A title"))
        (fault,) = check(str(path))
        self.assertIn("only a heading", fault.message)
        self.assertEqual((self.names(), self.errors()), (["a"], []))
        self.assertEqual(check(str(self.write("a.md", named("a", "# A title\n\nFinds things.")))), [])

    def test_name_that_is_no_text(self) -> None:
        """A file name that is no UTF-8 is told in a form that can be sent."""
        (pathlib.Path(os.fsdecode(os.fsencode(self.directory) + b"/\xff.md"))).write_bytes(b"")
        (error,) = self.catalogue.refresh().load_errors
        self.assertTrue(error.file.endswith("\\xff.md"))
        error.file.encode()


class ClashTests(DirectoryTests):
    """Actions that cannot be told apart."""

    def test_same_names(self) -> None:
        """Of two files with one name the later is left out, and told; actions of one tool name get marks of their own.

        A mark is given up when there is one of them again.
        """
        self.write("1.md", named("a-b"))
        self.write("2.md", named("a_b"))
        self.write("3.md", named("a.b"))
        self.write("4.md", named("other", "first"))
        self.write("5.md", named("other", "second"))
        first = self.tools()
        self.assertEqual(len(set(first.values())), 4)
        self.assertNotIn("a_b", first.values())
        self.assertEqual((first["other"], self.catalogue.current().actions["other"].description), ("other", "first\n"))
        self.assertEqual(self.errors(), [("duplicate", "5.md")])
        (self.directory / "1.md").unlink()
        self.assertEqual(self.tools(), {name: tool for name, tool in first.items() if name != "a-b"})
        (self.directory / "2.md").unlink()
        self.assertEqual(self.tools(), {"a.b": "a_b", "other": "other"})

    def tools(self) -> dict[str, str]:
        """The tool name of each action that is there now."""
        return {name: action.tool_name for name, action in self.catalogue.refresh().actions.items()}


class ChangeTests(DirectoryTests):
    """What is noticed."""

    def test_generation(self) -> None:
        """The generation goes on from the one given, by one a change; an unchanged file keeps its very action."""
        self.assertEqual(self.catalogue.refresh().generation, 1000)
        self.write("a.md", named("a"))
        first = self.catalogue.refresh()
        self.assertEqual(first.generation, 1001)
        self.assertEqual(self.catalogue.refresh().generation, 1001)
        self.write("bad.md", b"")
        self.assertEqual(self.catalogue.refresh().generation, 1002)
        (self.directory / "bad.md").touch()
        self.assertEqual(self.catalogue.refresh().generation, 1002)
        self.assertIs(self.catalogue.current().actions["a"], first.actions["a"])

    def test_same_size_and_time(self) -> None:
        """Another file of the same size, put in its place with the same time, is noticed."""
        path = self.write("a.md", named("a", "one"))
        self.catalogue.refresh()
        status = path.stat()
        other = self.write("new", named("a", "two"))
        os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
        other.rename(path)
        self.assertEqual(self.catalogue.refresh().actions["a"].description, "two\n")


class DirectoryContractTests(CatalogueContract, SynchronousTestCase):
    """L{DirectoryCatalogue} keeps the contract."""

    def make(self) -> ICatalogue:
        self.directory = pathlib.Path(self.mktemp())
        self.directory.mkdir()
        return DirectoryCatalogue(str(self.directory), 5)

    def change(self, number: int) -> None:
        (self.directory / f"{number}.md").write_bytes(named(f"action-{number}"))


class MemoryContractTests(CatalogueContract, SynchronousTestCase):
    """L{MemoryCatalogue} keeps the contract."""

    def make(self) -> ICatalogue:
        self.memory = MemoryCatalogue()
        return self.memory

    def change(self, number: int) -> None:
        self.memory.put(parse(named(f"action-{number}"), "a.md"))
