"""Of a push as git sends it: it is read in one way or refused, and git is told in its form that nothing was updated."""

from __future__ import annotations

import zlib
from hashlib import sha1

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors.kinds.git._objects import BLOB, Damaged, name_object
from aileron.connectors.kinds.git._pack_stream import PackReading
from aileron.connectors.kinds.git._push import GitPush, RefUpdate, read_push, read_reports, write_report
from aileron.connectors.kinds.git._remote import NotGit
from aileron.connectors.kinds.git._spec import NOTHING
from tests.connectors.kinds.git.test_git_fetch import NAMED, number, pack
from tests.connectors.repository import packets

A, B, C = "a" * 40, "b" * 40, "c" * 40
CAPABILITIES = "report-status-v2 side-band-64k object-format=sha1 agent=git/2.39.5"
OFFSET = 6
EMPTY = pack()


def body(
    *lines: str, capabilities: str = CAPABILITIES, rest: bytes = EMPTY, options: tuple[str, ...] | None = None
) -> bytes:
    """The body of a push with these lines, as git writes it."""
    first = next((at for at, line in enumerate(lines) if not line.startswith("shallow ")), len(lines))
    written = [f"{line}\0 {capabilities}" if at == first else line for at, line in enumerate(lines)]
    more = b"" if options is None else packets(*(each.encode() for each in options), None)
    return packets(*(line.encode() for line in written), None) + more + rest


def line(old: str = A, new: str = B, ref: str = "refs/heads/main") -> str:
    """The line of one update."""
    return f"{old} {new} {ref}"


class ReadTests(SynchronousTestCase):
    """Reading the body."""

    def test_read(self) -> None:
        """All that is before the pack is read, in its order."""
        written = body(
            f"shallow {C}",
            line(),
            line(NOTHING, C, "refs/tags/v1"),
            line(C, NOTHING, "refs/heads/agent/ä"),
            capabilities=f"{CAPABILITIES} atomic push-options",
            options=("ci.skip", "a=b"),
        )
        push = read_push(written)
        self.assertEqual([line(), line(NOTHING, C, "refs/tags/v1")], [str(each) for each in push.updates[:2]])
        self.assertEqual(((C,), ("ci.skip", "a=b")), (push.shallow, push.options))
        self.assertEqual(EMPTY, written[push.pack_at :])
        self.assertEqual("update main, create tags/v1, delete agent/ä", push.summarize())

    def test_many(self) -> None:
        """Of many updates the first ones are named."""
        push = read_push(body(*(line(ref=f"refs/heads/{each}") for each in range(5))))
        self.assertEqual("update 0, update 1, update 2 and 2 more", push.summarize())

    def test_deletes_only(self) -> None:
        """A push that deletes has no pack."""
        self.assertEqual(1, len(read_push(body(line(A, NOTHING), rest=b"")).updates))
        self.assertRaises(NotGit, read_push, body(line(A, NOTHING)))

    def test_refused(self) -> None:
        """What is no line of an update, or what is not supported, is refused whole."""
        for lines in (
            (line(ref="HEAD"),),
            (line(ref="refs/heads/a b"),),
            (line(ref="refs/heads/../main"),),
            (line(ref="refs/heads/a\x1b[2J"),),
            (line(ref="refs/heads/a\u202eb"),),
            (line("A" * 40),),
            (line("a" * 64),),
            (line(A, A),),
            ("push-cert",),
            (f"shallow {C}",),
            ("shallow x", line()),
            (line(), f"shallow {C}"),
            (),
            tuple(line(ref=f"refs/heads/{each}") for each in range(101)),
        ):
            self.assertRaises(NotGit, read_push, body(*lines))
        for capabilities in ("", "agent=git/2", f"{CAPABILITIES} push-cert=x", f"{CAPABILITIES} object-format=sha256"):
            self.assertRaises(NotGit, read_push, body(line(), capabilities=capabilities))

    def test_twice(self) -> None:
        """A ref that is updated twice is refused, as is a second list of capabilities."""
        self.assertRaises(NotGit, read_push, body(line(), line(B, C)))
        self.assertRaises(NotGit, read_push, body(line(), f"{line(ref='refs/heads/x')}\0 atomic"))

    def test_after_flush(self) -> None:
        """Updates after the end of the list, a second list, and anything else than a pack are refused."""
        smuggled = packets(line(ref="refs/heads/other").encode(), None)
        for rest in (smuggled + EMPTY, smuggled, b"", b"0000" + EMPTY, b"PACK", b"x" * 40, EMPTY[1:]):
            self.assertRaises(NotGit, read_push, body(line(), rest=rest))

    def test_options(self) -> None:
        """Options that were not announced are no pack; too many or strange ones are refused."""
        self.assertRaises(NotGit, read_push, body(line(), options=("x",)))
        for options in (("x",) * 21, ("x" * 1001,), ("a\x1b",)):
            announced = f"{CAPABILITIES} push-options"
            self.assertRaises(NotGit, read_push, body(line(), capabilities=announced, options=options))

    def test_cut(self) -> None:
        """A body that is cut off anywhere before its pack's end is refused or is no other push."""
        written = body(line(), line(B, C, "refs/heads/x"))
        whole = read_push(written).to_json()
        for end in range(len(written)):
            try:
                self.assertEqual(whole, read_push(written[:end]).to_json())
            except NotGit:
                continue

    @given(st.binary(max_size=300))
    def test_any_bytes(self, data: bytes) -> None:
        """Whatever is sent is refused with a sentence, or is a push."""
        for sent in (data, body(line())[:90] + data):
            try:
                read_push(sent)
            except NotGit as error:
                self.assertTrue(str(error))

    @given(
        st.lists(
            st.tuples(
                st.sampled_from((A, NOTHING)),
                st.sampled_from((B, C)),
                st.from_regex(r"refs/[a-z]{1,8}/[a-z]{1,8}", fullmatch=True),
            ),
            min_size=1,
            max_size=20,
            unique_by=lambda each: each[2],
        )
    )
    def test_any_updates(self, updates: list[tuple[str, str, str]]) -> None:
        """The updates that are written are those that are read."""
        push = read_push(body(*(line(*each) for each in updates)))
        self.assertEqual(updates, [(each.old, each.new, each.ref) for each in push.updates])


class ReportTests(SynchronousTestCase):
    """The report of the server, and that of Aileron in its place."""

    push = GitPush((RefUpdate(A, B, "refs/heads/main"), RefUpdate(NOTHING, C, "refs/tags/v1")), ("side-band-64k",))

    def test_refusal(self) -> None:
        """Aileron's report says of each ref that it was not updated, with a text beside it if git can show one."""
        for push in (self.push, GitPush(self.push.updates, ("report-status",))):
            written = write_report(push, "waits\nfor approval", "See http://x .")
            refused = dict.fromkeys(("refs/heads/main", "refs/tags/v1"), "waits for approval")
            self.assertEqual(refused, read_reports(written, push))
            self.assertEqual(push.has_sideband, b"See http://x ." in written)

    def test_long(self) -> None:
        """A report on many refs with a long text is made of whole packets."""
        updates = tuple(RefUpdate(A, B, f"refs/heads/{'x' * 180}{each}") for each in range(100))
        push = GitPush(updates, ("side-band-64k",))
        written = write_report(push, "no " * 300, "text " * 50_000)
        self.assertEqual(100, len(read_reports(written, push)))

    def test_mixed(self) -> None:
        """A report of the server says of each ref what became of it; options of refs are passed over."""
        lines = (
            b"unpack ok\n",
            b"ok refs/heads/main\n",
            b"option refname refs/heads/x\n",
            b"ng refs/tags/v1 declined\n",
        )
        found = read_reports(packets(b"\2remote: hi\n", b"\1" + packets(*lines, None), None), self.push)
        self.assertEqual({"refs/heads/main": "ok", "refs/tags/v1": "declined"}, found)

    def test_unclear(self) -> None:
        """A report that is cut, is on other refs or contradicts itself is none."""
        both = (b"ok refs/heads/main\n", b"ok refs/tags/v1\n")
        for lines in (
            (b"unpack ok\n", both[0]),
            (b"unpack ok\n", *both, b"ok refs/heads/other\n"),
            (b"unpack ok\n", *both, both[0]),
            (b"unpack eof\n", *both),
            both,
            (),
        ):
            self.assertRaises(NotGit, read_reports, packets(b"\1" + packets(*lines, None), None), self.push)
        whole = packets(b"\1" + packets(b"unpack ok\n", *both, None), None)
        for end in range(len(whole)):
            self.assertRaises(NotGit, read_reports, whole[:end], self.push)
        self.assertRaises(NotGit, read_reports, packets(b"\3fatal\n", None), self.push)
        self.assertRaises(NotGit, read_reports, whole + whole, self.push)


def packed(*entries: bytes) -> bytes:
    """A pack of entries as they are given."""
    whole = b"PACK\0\0\0\2" + len(entries).to_bytes(4, "big") + b"".join(entries)
    return whole + sha1(whole, usedforsecurity=False).digest()


def entry(kind: int, content: bytes, base: bytes = b"") -> bytes:
    """An entry of a pack with a content of less than 16 bytes, and what is before it."""
    return bytes((kind << 4 | len(content),)) + base + zlib.compress(content)


class PackTests(SynchronousTestCase):
    """The packs of pushes, whose deltas may be of objects that the remote has."""

    def read(self, data: bytes) -> PackReading:
        """Read a pack."""
        return PackReading.of(data, lambda: None)

    def test_offsets(self) -> None:
        """A delta by offset is made of the entry before it, and one of a delta of the remote's object."""
        base, far = entry(BLOB, b"abc"), name_object(BLOB, b"xyz")
        delta = number(3) + number(4) + b"\x90\x03" + b"\x01d"
        near = entry(OFFSET, delta, bytes((len(base),)))
        thin = entry(NAMED, delta, bytes.fromhex(far))
        chained = entry(OFFSET, number(4) + number(5) + b"\x90\x04" + b"\x01e", bytes((len(thin),)))
        reading = self.read(packed(base, near, thin, chained))
        self.assertEqual(frozenset({far}), reading.bases)
        self.assertFalse(reading.is_whole)
        reading.add({far: (BLOB, b"xyz"), name_object(BLOB, b"other"): (BLOB, b"other")})
        self.assertTrue(reading.is_whole)
        contents = {content for _, content in reading.found.values()}
        self.assertEqual({b"abc", b"abcd", b"xyzd", b"xyzde"}, contents)

    def test_damaged(self) -> None:
        """A pack with more after its end, with fewer objects, or with a delta of nothing is refused."""
        base = entry(BLOB, b"abc")
        nowhere = entry(OFFSET, number(3) + number(3) + b"\x90\x03", b"\x02")
        for data in (packed(base) + b"x", packed(base)[:-1], packed(base, nowhere)):
            self.assertRaises(Damaged, self.read, data)
        whole = b"PACK\0\0\0\2" + (1).to_bytes(4, "big") + base + b"more"
        self.assertRaises(Damaged, self.read, whole + sha1(whole, usedforsecurity=False).digest())

    def test_bomb(self) -> None:
        """A small pack whose objects would be large is refused before memory is allocated for them."""
        large = b"\0" * (30 * 1024 * 1024)
        copies = b"\xb0\xff\xff" * (len(large) // 0xFFFF)
        size = 0xFFFF * (len(large) // 0xFFFF)
        delta = number(len(large)) + number(size) + copies
        base = name_object(BLOB, large)
        self.assertRaises(Damaged, self.read, pack((BLOB, large), *[(NAMED, delta, base)] * 3))
        claims = number(3) + number(1 << 40) + b"\x90\x03"
        self.assertRaises(
            Damaged,
            self.read,
            packed(entry(BLOB, b"abc"), entry(NAMED, claims, bytes.fromhex(name_object(BLOB, b"abc")))),
        )
