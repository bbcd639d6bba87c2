"""Of what a git connector reads of a local repository, which an agent may have written."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import _patch
from aileron.connectors.kinds.git._history import is_ancestor, walk
from aileron.connectors.kinds.git._patch import write_patch
from aileron.connectors.kinds.git._reads import compare, read_local
from aileron.connectors.kinds.git._remote import NotGit, Remote, read_packets, read_report
from aileron.connectors.kinds.git._repository import Deadline, LocalRepository, is_ref_name
from aileron.model.errors import InvalidRequest, ResourceLimitExceeded
from tests.connectors.repository import Pair, git
from tests.growth import seconds

MAIN = "refs/heads/main"


class LocalCase(SynchronousTestCase):
    """A repository whose branch C{main} is two commits before its remote's."""

    def setUp(self) -> None:
        self.pair = Pair.made(Path(self.mktemp()).absolute())
        self.old = git(self.pair.work, "rev-parse", "HEAD")
        self.between = self.pair.commit("src/a.txt", "one\ntwo\nthree\n", "Add a file\n\nWith reasons.")
        self.new = self.pair.commit("src/a.txt", "one\n2\nthree\n", "Change it")

    def open(self, seconds: float = 60) -> LocalRepository:
        """Open it."""
        here = LocalRepository.open(str(self.pair.work), Deadline.after(seconds))
        self.addCleanup(here.close)
        return here

    def compare(self, revision: str = "main", ref: str = MAIN, **refs: str) -> Any:
        """What moving a ref of a remote with these would change."""
        remote = Remote(refs or {MAIN: self.old}, frozenset(), frozenset())
        here = self.open()
        return compare(here, remote, ref, here.resolve(revision))

    def read(self, operation: str, **inputs: Any) -> Any:
        """Do one read."""
        return read_local(self.open(), operation, inputs)

    def object(self, name: str) -> Path:
        """Where a loose object is."""
        return self.pair.work / ".git" / "objects" / name[:2] / name[2:]


class CompareTests(LocalCase):
    """What is shown before an update."""

    def test_forward(self) -> None:
        """It shows both commits with their messages, the lines of each file, and the patch with its digest."""
        found = self.compare()
        self.assertEqual((found["commit"], found["expected"], found["fast_forward"]), (self.new, self.old, True))
        self.assertLess(found["commits"].index(self.new), found["commits"].index(self.between))
        self.assertIn("Add a file\n\nWith reasons.", found["commits"])
        self.assertNotIn("Begin", found["commits"])
        self.assertEqual(found["diffstat"], "src/a.txt | +3 -0\n1 files changed, 3 lines added, 0 lines removed")
        self.assertIn("--- /dev/null\n+++ b/src/a.txt\n@@ -0,0 +1,3 @@\n+one\n+2\n+three\n", found["patch"])
        self.assertEqual(found["patch_digest"], f"sha256:{sha256(found['patch'].encode()).hexdigest()}")

    def test_in_between(self) -> None:
        """What one commit adds and the next removes is sent as well, so it is shown."""
        self.pair.commit("notes.txt", "hunter2\n", "Take notes")
        git(self.pair.work, "rm", "-q", "notes.txt")
        self.pair.commit("src/a.txt", "done\n", "Be done")
        found = self.compare()
        whole, _, each = found["patch"].partition("\ncommit ")
        self.assertNotIn("hunter2", whole)
        self.assertIn("+hunter2", each)
        self.assertEqual(found["patch"].count("\ncommit "), 4)
        self.assertNotIn("notes", found["diffstat"])

    def test_in_a_merge(self) -> None:
        """What a merge itself brings in is shown, and what it takes over from one side is not shown again."""
        git(self.pair.work, "checkout", "-q", "-b", "side", self.old)
        self.pair.commit("side.txt", "from the side\n", "On the side")
        git(self.pair.work, "checkout", "-q", "main")
        git(self.pair.work, "merge", "-q", "--no-ff", "--no-commit", "side")
        (self.pair.work / "README").write_text("Slipped in.\n")
        self.pair.commit("README", "Slipped in.\n", "Merge")
        shown = self.read("show", revision="main")["patch"]
        self.assertIn("+Slipped in.", shown)
        self.assertNotIn("from the side", shown)

    def test_tag_message(self) -> None:
        """The message of a tag is shown with the commits."""
        git(self.pair.work, "tag", "-a", "-m", "The first one", "v1")
        found = self.compare("v1", "refs/tags/v1")
        self.assertIn("The first one", found["commits"])
        self.assertIn("Change it", found["commits"])

    def test_new_branch(self) -> None:
        """A new branch is compared with the newest commit before it that the remote has, or else with nothing."""
        found = self.compare(ref="refs/heads/agent/x")
        self.assertEqual((found["expected"], found["exists"]), ("0" * 40, False))
        self.assertEqual(found["compared_with"], self.old)
        self.assertNotIn("README", found["patch"])
        alone = self.compare(ref="refs/heads/agent/x", **{"refs/heads/other": "b" * 40})
        self.assertIsNone(alone["compared_with"])
        self.assertIn("README", alone["patch"])

    def test_lost(self) -> None:
        """Commits that would no longer be on the branch are named; where they are not known, that is said."""
        found = self.compare(self.old, **{MAIN: self.new})
        self.assertFalse(found["fast_forward"])
        self.assertIn(self.between, found["warning"])
        self.assertIn("-three", found["patch"])
        self.assertIn("does not have", self.compare(**{MAIN: "b" * 40})["warning"])

    def test_long(self) -> None:
        """A patch beyond what is shown is cut and says so; its digest is of all of it."""
        self.pair.commit("long.txt", "".join(f"line {number}\n" for number in range(120_000)), "Add a long file")
        whole = self.compare()
        self.pair.commit("long.txt", "".join(f"line {number}\n" for number in range(119_999)) + "more\n", "Change it")
        other = self.compare()
        self.assertIn("[cut here", whole["patch"])
        self.assertEqual(whole["patch"][1000:9000], other["patch"][1000:9000])
        self.assertNotEqual(whole["patch_digest"], other["patch_digest"])
        self.assertGreater(whole["patch_bytes"], len(whole["patch"]))

    def test_merge(self) -> None:
        """Of a merge all commits that the remote lacks are named."""
        git(self.pair.work, "checkout", "-q", "-b", "side", self.old)
        side = self.pair.commit("side.txt", "x\n", "On the side")
        git(self.pair.work, "checkout", "-q", "main")
        git(self.pair.work, "merge", "-q", "--no-ff", "-m", "Merge it", "side")
        found = self.compare()
        self.assertIn(side, found["commits"])
        self.assertTrue(found["fast_forward"])
        self.assertEqual([each["message"] for each in self.read("merges", count=5)["commits"]], ["Merge it\n"])


class ReadTests(LocalCase):
    """Reads of the local repository alone."""

    def test_log(self) -> None:
        """The log lists commits, newest first, as many as are asked for."""
        commits = self.read("log", count=2)["commits"]
        self.assertEqual([each["commit"] for each in commits], [self.new, self.between])
        self.assertEqual(commits[0]["author"], "Ann <a@b>")
        self.assertEqual(commits[0]["parents"], [self.between])
        self.assertEqual(commits[0]["committed_at"], "2023-11-14T22:16:20Z")
        self.assertEqual(len(self.read("log", revision="main")["commits"]), 3)
        for count in (0, 501, "2", True, None):
            with self.assertRaises(InvalidRequest):
                self.read("log", count=count)

    def test_show(self) -> None:
        """One commit is shown with its patch, the first one too."""
        shown = self.read("show", revision="HEAD")
        self.assertEqual((shown["commit"], shown["message"]), (self.new, "Change it\n"))
        self.assertIn("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n", shown["patch"])
        self.assertIn("+One.", self.read("show", revision=self.old)["patch"])

    def test_diff(self) -> None:
        """Two revisions are compared, named by a branch, a tag or an id in full."""
        git(self.pair.work, "tag", "-a", "-m", "First", "v1", self.old)
        found = self.read("diff", **{"from": "v1", "to": "main"})
        self.assertEqual((found["from"], found["to"]), (self.old, self.new))
        for name in ("nothing", "main~1", "refs/heads/main", "../HEAD", "-x", "", "main:README", self.old[:10]):
            with self.assertRaises(InvalidRequest, msg=name):
                self.read("show", revision=name)

    def test_kinds_of_entries(self) -> None:
        """Modes, links, binary files, submodules and names that are no plain text are shown as what they are."""
        os.symlink("/etc/passwd", self.pair.work / "link")
        (self.pair.work / "README").chmod(0o755)
        git(self.pair.work, "update-index", "--add", "--cacheinfo", f"160000,{self.old},sub")
        (self.pair.work / "sub").mkdir()
        (self.pair.work / 'a"\x1b[31m\n').write_text("no end")
        self.pair.commit("b.bin", b"\0\1\2", "Everything")
        patch = self.read("show", revision="main")["patch"]
        self.assertIn("old mode 100644\nnew mode 100755\n", patch)
        self.assertIn("new file mode 120000\n", patch)
        self.assertIn("+/etc/passwd\n\\ No newline at end of file\n", patch)
        self.assertIn("Binary files differ: 0 bytes before, 3 bytes after\n", patch)
        self.assertIn(f"+Subproject commit {self.old}\n", patch)
        self.assertNotIn("\x1b", patch)


class HostileTests(LocalCase):
    """A repository that somebody has tampered with."""

    def refused(self, work: Callable[[], object], text: str) -> None:
        """It is, with such a message."""
        error = self.assertRaises(InvalidRequest, work)
        self.assertIn(text, error.message)

    def write(self, name: str, content: bytes) -> None:
        """Put a loose object's bytes in the place of what was there."""
        path = self.object(name)
        path.chmod(0o644)
        path.write_bytes(content)

    def test_another_content(self) -> None:
        """An object that is not what its name says is not shown: what is approved by its name is what was seen."""
        blob = git(self.pair.work, "rev-parse", "main:src/a.txt")
        self.write(blob, zlib.compress(b"blob 9\0harmless\n"))
        self.refused(self.compare, "damaged")

    def test_another_content_in_a_pack(self) -> None:
        """So it is in a pack."""
        blob = git(self.pair.work, "rev-parse", "main:README")
        git(self.pair.work, "gc", "-q", "--prune=now")
        (pack,) = (self.pair.work / ".git" / "objects" / "pack").glob("*.pack")
        content, wrong = zlib.compress(b"One.\n"), zlib.compress(b"Two.\n")
        data = pack.read_bytes()
        self.assertIn(content, data)
        pack.chmod(0o644)
        pack.write_bytes(data.replace(content, wrong))
        self.assertRaises(InvalidRequest, self.open().read, blob)

    def test_damaged_packs(self) -> None:
        """Packs that are no packs are told, whatever is asked of them."""
        git(self.pair.work, "gc", "-q", "--prune=now")
        for suffix in ("*.pack", "*.idx"):
            for path in (self.pair.work / ".git" / "objects" / "pack").glob(suffix):
                path.chmod(0o644)
                path.write_bytes(path.read_bytes()[:40])
            self.refused(self.compare, "local repository")

    def test_bomb(self) -> None:
        """An object that grows without end when it is unpacked is given up."""
        blob = git(self.pair.work, "rev-parse", "main:src/a.txt")
        packer = zlib.compressobj(9)
        content = packer.compress(b"blob 99999999\0") + b"".join(packer.compress(bytes(1 << 20)) for _ in range(40))
        self.write(blob, content + packer.flush())
        self.refused(self.compare, "too large")

    def test_pipes_and_links(self) -> None:
        """A pipe, link or directory in the place of a file is not waited for, nor followed."""
        blob = git(self.pair.work, "rev-parse", "main:src/a.txt")
        self.object(blob).unlink()
        os.mkfifo(self.object(blob))
        self.refused(self.compare, "damaged")
        main = self.pair.work / ".git" / "refs" / "heads" / "main"
        main.unlink()
        main.symlink_to("/etc/passwd")
        self.refused(self.compare, "no branch, tag or commit")
        packs = self.pair.work / ".git" / "objects" / "pack"
        os.mkfifo(packs / "pack-x.idx")
        (packs / "pack-x.pack").write_bytes(b"PACK")
        self.refused(self.open, "no plain file of yours")

    def test_elsewhere(self) -> None:
        """A repository that is a link, or whose objects are elsewhere, is not read."""
        place = self.pair.work / ".git"
        other = Pair.made(Path(self.mktemp()).absolute())
        commit = other.commit("private", "x", "Private")
        (place / "objects" / "info").mkdir(exist_ok=True)
        (place / "objects" / "info" / "alternates").write_text(f"{other.work}/.git/objects\n")
        self.refused(lambda: self.compare(commit), "is not in the local repository")
        place.rename(self.pair.work / "real")
        place.symlink_to(self.pair.work / "real")
        self.refused(self.open, "no directory of yours")
        place.unlink()
        place.write_text(f"gitdir: {other.work}/.git\n")
        self.refused(self.open, "no directory of yours")
        place.unlink()
        self.refused(self.open, "no git repository")

    def test_links_inside(self) -> None:
        """Directories inside that are links to another repository are not followed, nor is a HEAD that leads out."""
        other = Pair.made(Path(self.mktemp()).absolute())
        commit, inside, theirs = other.commit("private", "x", "Private"), self.pair.work / ".git", other.work / ".git"
        (inside / "objects" / commit[:2]).symlink_to(theirs / "objects" / commit[:2])
        self.assertFalse(self.open().has(commit))
        self.refused(lambda: self.read("show", revision=commit), "is not in the local repository")
        (inside / "refs" / "heads").rename(inside / "heads")
        (inside / "refs" / "heads").symlink_to(theirs / "refs" / "heads")
        self.refused(lambda: self.open().resolve("main"), "no branch, tag or commit")
        way = os.path.relpath(theirs / "refs" / "heads" / "main", inside / "refs")
        for target in (f"refs/{way}", "refs/heads/main", f"{theirs}/refs/heads/main", "packed-refs", "HEAD"):
            (inside / "HEAD").write_text(f"ref: {target}\n")
            self.refused(lambda: self.open().resolve("HEAD"), "no branch, tag or commit")
        (inside / "objects" / "pack").rmdir()
        (inside / "objects" / "pack").symlink_to(theirs / "objects" / "pack")
        self.refused(self.open, "in no directory of yours")
        link = Path(self.mktemp()).absolute()
        link.symlink_to(other.work)
        self.refused(lambda: LocalRepository.open(str(link), Deadline.after(60)), "no directory of yours")

    def stored(self, kind: str, content: bytes) -> str:
        """Store an object that git would not make; its id."""
        return git(self.pair.work, "hash-object", "-t", kind, "-w", "--stdin", "--literally", content=content)

    def test_other_parents(self) -> None:
        """Only what git takes for parents are some, or else an update would pass for one that loses nothing."""
        tree = git(self.pair.work, "rev-parse", "main^{tree}")
        by = "author Ann <a@b> 1900000000 +0000\ncommitter Ann <a@b> 1900000000 +0000\n"
        for text in (
            f"tree {tree}\nparent {self.between}\n{by}parent {self.new}\n\nx",
            f"tree {tree}\n{by}tree {tree}\n\nx",
            f"tree {tree}\n{by}{by}\nx",
            f"tree {tree}\nencoding x\nparent {self.new}\n{by}\nx",
            f"parent {self.new}\ntree {tree}\n{by}\nx",
            f"tree {tree}\nparent {self.new} \n{by}\nx",
            f"tree {tree}\nparent {self.new}\0\n{by}\nx",
            f"tree {tree}\nparent {self.new}",
            f"tree {tree}",
            "",
        ):
            commit = self.stored("commit", text.encode())
            self.refused(partial(self.compare, commit), "is malformed")
        good = self.stored("commit", f"tree {tree}\nparent {self.new}\n{by}gpgsig a\n parent b\n\nparent c".encode())
        self.assertEqual(self.open().commit(good).parents, (self.new,))

    def test_other_entries(self) -> None:
        """A tree that has a name twice, or that git would not write, is not shown: git may see another file in it."""
        blob = bytes.fromhex(git(self.pair.work, "rev-parse", "main:README"))
        for names in (
            (b"100644 f", b"100644 f"),
            (b"100644 f", b"100644 f.c", b"40000 f"),
            (b"100644 g", b"100644 f"),
            (b"100644 ",),
            (b"40000 ..",),
            (b"40000 .Git",),
            (b"100644 a/b",),
            (b"0o100644 f",),
            (b"+100644 f",),
            (b"100_644 f",),
            (b"040000 f",),
            (b"100666 f",),
        ):
            tree = self.stored("tree", b"".join(name + b"\0" + blob for name in names))
            self.refused(partial(self.open().tree, tree), "is malformed")
        for content in (b"100644 f\0" + blob[:-1], b"100644 f", b"100644", b"\0"):
            tree = self.stored("tree", content)
            self.refused(partial(self.open().tree, tree), "is malformed")
        tree = self.stored("tree", b"".join(name + b"\0" + blob for name in (b"100644 a.c", b"40000 a", b"120000 a0")))
        self.assertEqual(list(self.open().tree(tree)), [b"a.c", b"a", b"a0"])

    def test_large(self) -> None:
        """What is larger than anybody writes is refused, or its beginning shown, before it takes much memory."""
        tree = git(self.pair.work, "rev-parse", "main^{tree}")
        by = "author Ann <a@b> 1900000000 +0000\ncommitter Ann <a@b> 1900000000 +0000\n"
        long = self.stored("commit", f"tree {tree}\nparent {self.new}\n{by}\n{'x' * 100_000}".encode())
        shown = self.read("show", revision=long)["message"]
        self.assertTrue(shown.endswith("x\n[cut here; the whole text has 100000 bytes]\n"))
        self.assertLess(len(shown), 20_000)
        self.assertIn("[cut here", self.compare(long)["commits"])
        longer = self.stored("commit", f"tree {tree}\n{by}\n{'x' * (1 << 20)}".encode())
        self.refused(lambda: self.compare(longer), "A commit of the local repository is too large")
        parents = "".join(f"parent {self.new}\n" for _ in range(65))
        many = self.stored("commit", f"tree {tree}\n{parents}{by}\nx".encode())
        self.refused(lambda: self.compare(many), "more than 64 parents")
        entry, mode = git(self.pair.work, "rev-parse", "main:README"), b"100644"
        for _ in range(5):
            content = mode + b" " + b"n" * 1000 + b"\0" + bytes.fromhex(entry)
            entry, mode = self.stored("tree", content), b"40000"
        self.refused(lambda: write_patch(self.open(), None, entry), "longer than 4096 bytes")

    def test_large_files(self) -> None:
        """A text of more lines than can be compared is named with its size, and its content is in the digest."""
        digests = set()
        for end in ("a", "b"):
            self.pair.commit("lines.txt", "\n" * 300_001 + end, "Add lines")
            shown = self.read("diff", **{"from": self.new, "to": "main"})
            self.assertIn("Too large to be compared: 0 bytes before, 300002 bytes after", shown["patch"])
            self.assertIn("lines.txt | +300001 -0", shown["diffstat"])
            digests.add(shown["patch_digest"])
        self.assertEqual(len(digests), 2)

    def test_many_files(self) -> None:
        """Of very many files the first are named, and all are counted."""
        blob = git(self.pair.work, "rev-parse", "main:README")
        names = "".join(f"100644 blob {blob}\t{number:04}{'n' * 200}\n" for number in range(2000))
        summary = write_patch(self.open(), None, git(self.pair.work, "mktree", content=names.encode())).summary()
        self.assertLess(len(summary), 300_000)
        self.assertRegex(summary, r"\n\[and \d+ more files\]\n2000 files changed, 2000 lines added, 0 lines removed$")

    def test_tag_elsewhere(self) -> None:
        """A tag that leads to no object's id is refused, before a file of that name is looked for."""
        outside = Path(self.mktemp()).absolute()
        for there in (False, True):
            if there:
                outside.write_text("x")
            place = os.path.relpath(outside, self.pair.work / ".git" / "objects" / "..").encode()
            for content in (b"object .." + place.rjust(38, b"/"), b"", b"object " + self.new.encode() + b"x\n"):
                tag = self.stored("tag", content + b"\ntype commit\n")
                for work in (self.open().peel, self.compare):
                    self.refused(partial(work, tag), f"The tag {tag} is malformed")

    def test_configuration(self) -> None:
        """No configuration, attribute, replacement or graph file has a say."""
        inside = self.pair.work / ".git"
        before = self.compare()
        (inside / "config").write_text("[core]\n\trepositoryformatversion = 99\n[include]\n\tpath = /etc/passwd\n")
        (inside / "info" / "attributes").write_text("*.txt -diff\n")
        (inside / "refs" / "replace").mkdir()
        (inside / "refs" / "replace" / self.new).write_text(f"{self.old}\n")
        (inside / "objects" / "info" / "commit-graph").write_bytes(b"nonsense")
        (inside / "shallow").write_text(f"{self.between}\n")
        self.assertEqual(self.compare(), before)

    def test_slow(self) -> None:
        """A look that takes too long is given up."""
        self.assertRaises(ResourceLimitExceeded, walk(self.open(-1), [self.new]).__next__)


class WalkTests(LocalCase):
    """Which commits come before others."""

    def test_hidden(self) -> None:
        """What hidden commits lead to is left out, also where commits lie about when they were made."""
        here = self.open()
        self.assertEqual([each.id for each in walk(here, [self.new], [self.old])], [self.new, self.between])
        self.assertEqual([each.id for each in walk(here, [self.new], [self.new])], [])
        self.assertTrue(is_ancestor(here, self.old, self.new))
        self.assertFalse(is_ancestor(here, self.new, self.old))

    @given(st.data())
    @settings(deadline=None, max_examples=60)
    def test_any_graph(self, data: st.DataObject) -> None:
        """Of any graph whose commits tell the truth about their time, exactly those are left that git leaves."""
        parents = {
            str(at): tuple(str(each) for each in data.draw(st.sets(st.integers(0, at - 1), max_size=3))) if at else ()
            for at in range(data.draw(st.integers(1, 12)))
        }
        tips, hidden = (data.draw(st.sets(st.sampled_from(sorted(parents)))) for _ in range(2))
        found = [each.id for each in walk(_Graph(parents), tips, hidden)]  # type: ignore[arg-type]
        self.assertEqual(set(found), _reached(parents, tips) - _reached(parents, hidden))
        self.assertEqual(len(found), len(set(found)))


class _Commit:
    def __init__(self, name: str, parents: tuple[str, ...]) -> None:
        self.id, self.parents, self.when = name, parents, int(name)


class _Graph:
    """Commits without content."""

    def __init__(self, parents: dict[str, tuple[str, ...]]) -> None:
        self.parents = parents

    def commit(self, name: str) -> _Commit:
        """One of them."""
        return _Commit(name, self.parents[name])


def _reached(parents: dict[str, tuple[str, ...]], tips: set[str]) -> set[str]:
    found: set[str] = set()
    todo = list(tips)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += parents[name]
    return found


class PatchTests(LocalCase):
    """The patch against what git makes of it."""

    def check(self, before: str, after: str) -> None:
        """Git applies the patch between two texts to the first, and the second comes out."""
        trees = []
        for text in (before, after):
            blob = git(self.pair.work, "hash-object", "-w", "--stdin", content=text.encode())
            trees.append(git(self.pair.work, "mktree", content=f"100644 blob {blob}\tf\n".encode()))
        patch = write_patch(self.open(), trees[0], trees[1]).text
        file = self.pair.work / "f"
        file.write_bytes(before.encode())
        if patch:
            git(self.pair.work, "apply", "-", content=patch.encode())
        self.assertEqual(file.read_bytes(), after.encode())

    def test_applies(self) -> None:
        """Whatever changed, the patch is one that git can apply; so it is where a stretch is too large to compare."""
        lines = [f"{number}\n" for number in range(40)]
        changed = [*lines[:3], "x\n", *lines[4:20], *lines[25:39], "no end"]
        for most in (_patch._Matcher.left, 10):
            self.patch(_patch._Matcher, "left", most)
            for before, after in (("".join(lines), "".join(changed)), ("a", "a\n"), ("", "x"), ("x\r\ny\n", "x\ny\n")):
                self.check(before, after)
                self.check(after, before)

    def test_too_different(self) -> None:
        """Lines that repeat in another order do not keep it busy: after a while the stretch is shown as replaced."""
        many = list(range(20_000)), sorted(range(20_000), key=lambda number: sha256(b"%d" % number).digest())
        for texts in (
            tuple("".join(f"{number % modulus}\n" for number in range(9000)) for modulus in (90, 89)),
            tuple("".join(f"{number % 100}\n" for number in numbers) for numbers in many),
        ):
            self.assertLess(seconds(partial(self.check, *texts)), 10)

    @given(*(st.text("ab\n", max_size=12) for _ in range(2)))
    @settings(deadline=None, max_examples=15)
    def test_any(self, before: str, after: str) -> None:
        """So it is for any two texts."""
        self.check(before, after)


class WireTests(SynchronousTestCase):
    """What comes from a server."""

    @given(st.binary(max_size=80))
    def test_any_bytes(self, data: bytes) -> None:
        """Any bytes are packets, or not."""
        try:
            found = list(read_packets(data))
        except NotGit:
            return
        self.assertEqual(
            data.lower(),
            b"".join(b"0000" if each is None else b"%04x%s" % (len(each) + 4, each) for each in found).lower(),
        )

    @given(st.lists(st.sampled_from([b"unpack ok\n", b"ok a\n", b"ng a b\n", b"ng a\n", b"ok b\n", b"x"]), max_size=4))
    def test_any_report(self, lines: list[bytes]) -> None:
        """Only a report that says one thing of the one ref is believed."""
        body = b"".join(b"%04x%s" % (len(each) + 4, each) for each in lines) + b"0000"
        try:
            why = read_report(body, "a")
        except NotGit:
            self.assertNotIn(lines, [[b"unpack ok\n", b"ok a\n"], [b"unpack ok\n", b"ng a b\n"]])
        else:
            self.assertEqual(lines, [b"unpack ok\n", b"ok a\n" if why is None else b"ng a b\n"])

    def test_names(self) -> None:
        """Names of refs are those that git takes, and none that could be another argument or line."""
        for name in ("main", "agent/x", "a.b-c_d", "ä"):
            self.assertTrue(is_ref_name(name), name)
        for name in (
            "",
            "-x",
            "a b",
            "a\n",
            "a..b",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a@{1}",
            "a~1",
            "a^",
            "a:b",
            "a*",
            "a?",
            "a[",
            "a\\b",
            "a\0b",
            "a\u202eb",
            "x" * 300,
        ):
            self.assertFalse(is_ref_name(name), name)
