"""Packages on the command line: what is shown before anything is written, what is refused, and what is put back."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from errno import ENOSPC
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from aileron.base.json import digest_of_bytes
from aileron.cli.actions import copying
from aileron.cli.context import CliContext
from aileron.connectors import KindTable, ServiceAnswer
from aileron.connectors._answer import Flight, OutgoingRequest
from aileron.connectors.kinds import BUILT_IN
from aileron.features.packages import installing as packages
from aileron.features.packages._lock import Lock
from aileron.home.private_files import atomic_write
from aileron.model.errors import Conflict
from tests.cli.daemon import CommandCase
from tests.cli.test_trust import item
from tests.connectors.foreign.install import FILE
from tests.connectors.foreign.json_rpc import KIND
from tests.connectors.kinds.git.test_git_fetch import Entry, Remote, commit, pack, sent, tree
from tests.connectors.repository import listed
from tests.features.packages.kit import ACTION, CONNECTOR, FILES, Publisher, manifest, package, write

BLOB, TREE, COMMIT = 3, 2, 1
_MORE = """
[credential]
kind = "api_key"
header = "X-Key"
format = "{key}"

[operations.drop]
method = "DELETE"
path = "/"
effect = "write"
idempotent = true
"""


@attrs.define
class Hub:
    """A transport to repositories, by their paths.

    :ivar asked: the host and whether it may be in a private network, of each request.
    :ivar authorized: the host and what it was sent as a credential.
    """

    repositories: dict[str, Remote] = attrs.field(factory=dict)
    asked: list[tuple[str | None, bool]] = attrs.field(factory=list)
    authorized: set[tuple[str | None, str]] = attrs.field(factory=set)

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Have the repository answer."""
        url = urlsplit(message.url)
        self.asked.append((url.hostname, message.private_network))
        self.authorized |= {(url.hostname, value) for name, value in message.headers if name == "Authorization"}
        path = url.path.removesuffix("/info/refs").removesuffix("/git-upload-pack")
        if path not in self.repositories:
            flight.sent = True
            return succeed(ServiceAnswer(404, {}, b""))
        return self.repositories[path].send(message, flight)

    def publish(
        self, path: str, files: Mapping[str, bytes], tag: str = "1.0.0", more: Sequence[tuple[str, Any]] = ()
    ) -> None:
        """Have a repository with these files at a tag, and others at more tags, and nothing else."""
        from aileron.connectors.kinds.git._objects import name_object

        entries, names = list[Entry](), dict[str, str]()
        for each, content in ((tag, files), *more):
            top = tree(*((b"100644", name.encode(), name_object(BLOB, content[name])) for name in sorted(content)))
            whole = commit(name_object(TREE, top))
            entries += [*((BLOB, data) for data in content.values()), (TREE, top), (COMMIT, whole)]
            names[f"refs/tags/{each}"] = name_object(COMMIT, whole)
        listing = listed(names, "git-upload-pack", "side-band-64k shallow")
        self.repositories[path] = Remote(next(iter(names.values())), sent(pack(*entries)), listing=listing)


class PackageCase(CommandCase):
    """A daemon that knows which files of the home are trusted.

    :ivar trusted: the digests, by kind and name.
    :ivar before_trust: called each time before the daemon tells of files.
    :ivar at_prompt: called with each question, before it is answered.
    :ivar needs: what each action needs.
    """

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.prompts: list[str] = []
        self.hub = Hub()
        self.trusted: dict[tuple[str, str], str] = {}
        self.before_trust: Callable[[], object] = lambda: None
        self.at_prompt: Callable[[str], object] = lambda _: None
        self.needs: list[str] = []
        self.site.answer("GET", "/v1/trust", lambda _: self._items())
        self.site.answer("GET", "/v1/actions", {"generation": 1, "items": [], "load_errors": []})
        self.site.answer("POST", "/v1/trust", self._trust)
        self.site.answer("DELETE", "/v1/trust", lambda body: {"name": self.trusted.pop((body["kind"], body["name"]))})
        self.directory = write(Path(self.mktemp()).absolute() / "kit", package())

    def cli_context(self) -> CliContext:
        """A context that notes each question, and reaches the hub."""
        return attrs.evolve(
            super().cli_context(), ask=self._asked, transport=self._reach, reactor=Clock, interactive=lambda: True
        )

    def _reach(self, _ports: Collection[int]) -> Any:
        return self.hub

    def _asked(self, prompt: str) -> str:
        self.prompts.append(prompt)
        self.at_prompt(prompt)
        return self.typed.pop(0)

    def _files(self) -> Mapping[tuple[str, str], Path]:
        actions = {("action", path.stem): path for path in self.home.actions.iterdir()}
        connectors = {("connector", f"local://kit/{path.stem}"): path for path in self.home.connectors.iterdir()}
        lock = (
            {("config", "packages.json"): (self.home.root / "packages.json")}
            if (self.home.root / "packages.json").exists()
            else {}
        )
        return {**actions, **connectors, **lock}

    def _items(self) -> Mapping[str, Any]:
        self.before_trust()
        files, items = self._files(), []
        for key in sorted({*files, *self.trusted}):
            digest = digest_of_bytes(files[key].read_bytes()) if key in files else None
            word = self.trusted.get(key)
            state = "gone" if digest is None else "new" if word is None else "trusted" if word == digest else "changed"
            path = str(files[key]) if key in files else None
            trusted = None if word is None else {"digest": word, "changed_at": "2026-01-02T03:04:05Z"}
            needs = self.needs if key[0] == "action" else []
            items.append(item(key[1], key[0], state, path=path, digest=digest, trusted=trusted, needs=needs))
        return {"items": items}

    def _trust(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        files = self._files()
        words = {(each["kind"], each["name"]): each["digest"] for each in body["items"]}
        if any(digest != digest_of_bytes(files[key].read_bytes()) for key, digest in words.items()):
            raise Conflict("A file was changed.")
        self.trusted |= words
        return {"items": body["items"]}

    def run_command(self, *arguments: str, answers: Sequence[str] = ()) -> tuple[int, str, str]:
        """Run one as the operator."""
        self.prompts = []
        found = self.as_operator(*arguments, answers=answers)
        self.assertEqual(self.typed, [], f"not all was asked: {found}")
        return found

    def done(self, *arguments: str, answers: Sequence[str] = ()) -> str:
        """What one prints that works."""
        code, out, err = self.run_command(*arguments, answers=answers)
        self.assertEqual(code, 0, err)
        return out

    def refused(self, *arguments: str, answers: Sequence[str] = ()) -> str:
        """What one says that does not; nothing of the home has changed."""
        before = self.kept()
        code, _, err = self.run_command(*arguments, answers=answers)
        self.assertEqual((code, self.kept()), (1, before), err)
        return err

    def kept(self) -> Mapping[Path, bytes]:
        """The files of the home that packages are about."""
        return {path: path.read_bytes() for path in self._files().values()}

    def lock(self) -> Any:
        """What packages.json says."""
        return json.loads((self.home.root / "packages.json").read_text())

    def put(self, files: Mapping[str, bytes]) -> None:
        """Have the package of the directory be this."""
        for path in self.directory.iterdir():
            path.unlink()
        write(self.directory, files)


class InstallTests(PackageCase):
    """``install`` and ``update``."""

    def test_directory(self) -> None:
        """What it can do is shown before anything is written; then its files are read and trusted, and remembered."""
        seen: list[tuple[str, bool]] = []
        self.at_prompt = lambda prompt: seen.append((prompt, (self.home.root / "packages.json").exists()))
        out = self.done("connector", "install", str(self.directory), answers=["y", "y"])
        self.assertEqual(seen[0], ("Install this? [y/N] ", False))
        self.assertEqual(seen[1], ("Trust all 2, exactly as shown? [y/N] ", True))
        for part in (
            "tracker 1.0.0\n",
            "description  A tracker",
            "signed by    nobody",
            "+ action file-ticket: asks for your approval",
            "+ action file-ticket: may use file of local://kit/tracker",
            "+ local://kit/tracker: connects to tracker.example:443",
            "+ local://kit/tracker: file, write, destructive",
            "connector local://kit/tracker: new",
            "tracker 1.0.0 is installed.",
        ):
            self.assertIn(part, out)
        self.assertEqual((self.home.actions / "file-ticket.md").read_bytes(), FILES["file-ticket.md"])
        self.assertEqual({kind for kind, _ in self.trusted}, {"action", "config", "connector"})
        files = {f"{'actions' if name.endswith('.md') else 'connectors'}/{name}" for name in FILES}
        self.assertEqual(self.lock()["packages"][0]["files"].keys(), files)
        again = self.done("action", "update", "--yes", "--json")
        self.assertEqual(json.loads(again), {"packages": [{"name": "tracker", "version": "1.0.0"}]})

    def test_no(self) -> None:
        """After a no to either question the home is as it was."""
        self.refused("action", "install", str(self.directory), answers=["n"])
        self.refused("action", "install", str(self.directory), answers=["y", "n"])
        self.done("action", "install", str(self.directory), "--yes")
        before = dict(self.trusted)
        self.put(package({"tracker.toml": FILES["tracker.toml"], "other.md": ACTION.replace("file-t", "a-t").encode()}))
        self.refused("action", "install", str(self.directory), answers=["y", "n"])
        self.assertEqual(self.trusted, before)

    def test_difference(self) -> None:
        """An update shows what is more and what is less; a file that is no longer part is removed with its trust."""
        other = ACTION.replace("file-ticket", "other")
        self.put(package({**FILES, "other.md": other.encode()}))
        self.done("action", "install", str(self.directory), "--yes")
        wider = CONNECTOR.replace('["tracker.example:443"]', '["tracker.example:443", "b.example:443"]')
        wider += _MORE
        ungated = ACTION.replace("required = true", "required = false") + "more\n"
        self.put(package({"tracker.toml": wider.encode(), "file-ticket.md": ungated.encode()}, "1.1.0"))
        out = self.done("action", "update", "tracker", answers=["y", "y"])
        for line in (
            "+ action file-ticket: runs without your approval",
            "- action file-ticket: asks for your approval",
            "- action other: asks for your approval",
            "+ local://kit/tracker: connects to b.example:443",
            "+ local://kit/tracker: needs a credential, api_key, in header X-Key",
            "+ local://kit/tracker: drop, write, destructive",
        ):
            self.assertIn(f"  │ {line}\n", out)
        self.assertNotIn("connects to tracker.example:443", out)
        self.assertFalse((self.home.actions / "other.md").exists())
        self.assertNotIn(("action", "other"), self.trusted)

    def test_objections(self) -> None:
        """What an earlier agreement does not cover is done only by force: an older version, a changed file, a move."""
        self.done("action", "install", str(self.directory), "--yes")
        (self.home.actions / "file-ticket.md").write_text("mine")
        self.put(package(version="0.9.0"))
        self.assertIn(
            "older than the installed version 1.0.0", self.refused("action", "install", str(self.directory), "--yes")
        )
        self.put(package(version="1.0.1"))
        said = self.refused("action", "install", str(self.directory), "--yes")
        self.assertIn("actions/file-ticket.md exists with other contents", said)
        copy = write(self.directory.parent / "copy", package(version="1.0.1"))
        said = self.refused("action", "install", str(copy), "--yes")
        self.assertIn(f"tracker is installed from {self.directory}, not from {copy}", said)
        self.assertIn("--force", said)
        self.done("action", "install", str(copy), "--yes", "--force")
        self.assertEqual((self.home.actions / "file-ticket.md").read_bytes(), FILES["file-ticket.md"])

    def test_files_of_others(self) -> None:
        """A file that lies there already, or is part of another package, is not replaced."""
        (self.home.connectors / "tracker.toml").write_text("mine")
        said = self.refused("action", "install", str(self.directory), answers=[])
        self.assertIn("connectors/tracker.toml exists with other contents", said)
        (self.home.connectors / "tracker.toml").unlink()
        self.done("action", "install", str(self.directory), "--yes")
        files = {**FILES, "aileron-package.toml": manifest(name="thief")}
        thief = write(self.directory.parent / "thief", files)
        said = self.refused("action", "install", str(thief), "--yes", "--force")
        self.assertIn("is part of the package tracker", said)

    def test_interrupted(self) -> None:
        """Files that a command wrote before it was killed are taken for what they are, and the rest follows."""
        self.done("action", "install", str(self.directory), "--yes")
        newer = {"tracker.toml": FILES["tracker.toml"] + b"# new\n", "file-ticket.md": FILES["file-ticket.md"]}
        self.put(package(newer, "1.1.0"))
        (self.home.connectors / "tracker.toml").write_bytes(newer["tracker.toml"])
        self.done("action", "update", "--yes")
        self.assertEqual(self.lock()["packages"][0]["version"], "1.1.0")

    def test_replaced_meanwhile(self) -> None:
        """A file that another program replaces between its writing and the trust in it is not trusted."""
        path = self.home.actions / "file-ticket.md"
        self.before_trust = lambda: path.exists() and path.write_bytes(ACTION.replace("true", "false").encode())
        code, _, err = self.run_command("action", "install", str(self.directory), "--yes")
        self.assertEqual((code, self.trusted), (1, {}))
        self.assertIn("action file-ticket was changed by another program meanwhile", err)

    def test_changed_meanwhile(self) -> None:
        """What another program writes while the operator reads the question is neither overwritten nor removed."""
        path = self.home.actions / "file-ticket.md"
        self.at_prompt = lambda prompt: path.write_text("mine") if prompt.startswith(("Install", "Files")) else None
        said = self.run_command("action", "install", str(self.directory), answers=["y"])[2]
        self.assertIn("actions/file-ticket.md was changed by another program meanwhile", said)
        self.assertEqual(self.kept(), {path: b"mine"})
        path.unlink()
        self.done("action", "install", str(self.directory), "--yes")
        said = self.run_command("action", "uninstall", "tracker", answers=["y"])[2]
        self.assertIn("was changed by another program meanwhile. Nothing was changed.", said)
        self.assertEqual((path.read_bytes(), ("action", "file-ticket") in self.trusted), (b"mine", True))
        self.at_prompt = lambda _: None
        self.done("action", "uninstall", "tracker", "--yes")

        def edit(prompt: str) -> None:
            if prompt.startswith("Trust"):
                path.write_text("edited")

        path.unlink()
        self.at_prompt = edit
        self.run_command("action", "install", str(self.directory), answers=["y", "n"])
        self.assertEqual((path.read_text(), self.trusted.keys()), ("edited", {("config", "packages.json")}))

    def test_two_commands(self) -> None:
        """A command does not undo what another one did while it asked."""
        changed = Lock(publishers=("another",)).encode()
        self.at_prompt = lambda _: (self.home.root / "packages.json").write_bytes(changed)
        said = self.run_command("action", "install", str(self.directory), answers=["y"])[2]
        self.assertIn("packages.json was changed by another program meanwhile", said)
        self.assertEqual(self.kept(), {(self.home.root / "packages.json"): changed})

    def test_one_step(self) -> None:
        """Files are trusted together with packages.json, or not at all."""

        def replace(prompt: str) -> None:
            if prompt.startswith("Trust"):
                (self.home.root / "packages.json").write_bytes(Lock(publishers=("another",)).encode())

        self.at_prompt = replace
        self.run_command("action", "install", str(self.directory), answers=["y", "y"])
        self.assertEqual(self.trusted, {})
        self.assertEqual([*self.home.actions.iterdir(), *self.home.connectors.iterdir()], [])

    def test_full_disk(self) -> None:
        """Where a file cannot be written, those that were are put back."""
        self.done("action", "install", str(self.directory), "--yes")
        newer = {name: data + b"\n" for name, data in FILES.items()}
        self.put(package(newer, "1.1.0"))

        def write_some(path: Path, data: bytes) -> None:
            if path == (self.home.root / "packages.json"):
                raise OSError(ENOSPC, "No space left on device")
            atomic_write(path, data)

        self.patch(copying, "atomic_write", write_some)
        self.assertIn("No space left", self.refused("action", "update", "--yes"))

    def test_needed(self) -> None:
        """A connector that an action needs and another program put into the home is not trusted with the package."""
        (self.home.connectors / "stranger.toml").write_text("of an agent")
        self.needs = ["local://kit/stranger"]
        self.done("action", "install", str(self.directory), "--yes")
        self.assertNotIn(("connector", "local://kit/stranger"), self.trusted)

    def test_taken(self) -> None:
        """An action or connector of the user's is not replaced by one of the same name in another file."""
        (self.home.actions / "zz.md").write_text("mine")
        (self.home.connectors / "zz.toml").write_text("mine")
        action = ACTION.replace('name = "file-ticket"', 'name = "zz"').encode()
        for name, data, why in (
            ("aa.md", action, "The action zz is in actions/zz.md already"),
            ("aa.toml", CONNECTOR.replace("kit/tracker", "kit/zz").encode(), "local://kit/zz is in connectors/zz.toml"),
        ):
            self.put(package({name: data}))
            self.assertIn(why, self.refused("action", "install", str(self.directory), "--yes", "--force"))
        (self.home.actions / "zz.md").unlink()
        self.put(package({"zz.md": action}))
        self.done("action", "install", str(self.directory), "--yes")
        self.put(package({"aa.md": action}, "1.1.0"))
        self.run_command("action", "update", "--yes")
        self.assertEqual([path.name for path in self.home.actions.iterdir()], ["aa.md"])

    def test_one_name_twice(self) -> None:
        """One name in two files, of a package or of two of a suite, is refused: which one is meant nobody can tell."""
        lax = ACTION.replace("required = true", "required = false").encode()
        self.put(package({**FILES, "another.md": lax}))
        why = "The action file-ticket is in actions/another.md and actions/file-ticket.md"
        self.assertIn(why, self.refused("action", "install", str(self.directory), "--yes", "--force"))
        other = write(Path(self.mktemp()).absolute() / "other", {"second.toml": CONNECTOR.encode()})
        self.put(package())
        why = "The connector local://kit/tracker is in connectors/tracker.toml already"
        both = str(self.directory), str(other)
        self.assertIn(why, self.refused("action", "install", *both, "--yes", "--force"))

    def test_trust_taken_back(self) -> None:
        """No trust is left in what a package no longer has, also where the file is gone or has another name."""
        other = {"other.md": ACTION.replace("file-ticket", "other").encode()}
        self.put(package({**FILES, **other}))
        self.done("action", "install", str(self.directory), "--yes")
        (self.home.actions / "other.md").unlink()
        (self.home.actions / "file-ticket.md").rename(self.home.actions / "moved.md")
        self.trusted["action", "moved"] = self.trusted.pop(("action", "file-ticket"))
        self.put(package({"tracker.toml": FILES["tracker.toml"]}, "1.1.0"))
        self.done("action", "update", "--yes")
        self.assertEqual(self.trusted.keys(), {("config", "packages.json"), ("connector", "local://kit/tracker")})

    def test_killed(self) -> None:
        """Wherever an update is killed, no trust is left in what it removed, and another one does the rest."""
        other = {"other.md": ACTION.replace("file-ticket", "other").encode()}
        self.put(package({**FILES, **other}))
        self.done("action", "install", str(self.directory), "--yes")
        path, seen = self.home.actions / "other.md", list[bool]()
        del self.trusted["action", "other"]  # as after a kill behind the first request
        self.put(package(version="1.1.0"))
        self.done("action", "update", "--yes")
        self.assertFalse(path.exists())
        self.put(package({**FILES, **other}, "1.2.0"))
        self.done("action", "update", "--yes")

        def look() -> None:
            seen.append(path.exists() or ("action", "other") not in self.trusted)

        def trust(body: Mapping[str, Any]) -> Mapping[str, Any]:
            look()
            return self._trust(body)

        self.before_trust = look
        self.site.answer("POST", "/v1/trust", trust)
        self.put(package(version="1.3.0"))
        self.done("action", "update", "--yes")
        self.assertEqual((all(seen), path.exists()), (True, False))

    def test_other_faults(self) -> None:
        """A fault of config.yaml does not keep anybody from installing a package."""
        fault = {"file": "/home/config.yaml", "kind": "validation_error", "message": "bad", "line": 1}
        self.site.answer("GET", "/v1/actions", {"generation": 1, "items": [], "load_errors": [fault]})
        for _ in range(2):
            self.done("action", "install", str(self.directory), answers=["y"] if self.trusted else ["y", "y"])

    def test_gone_meanwhile(self) -> None:
        """A file that the daemon does not list is named as what it is, and nothing is trusted."""
        path = self.home.connectors / "tracker.toml"
        self.before_trust = lambda: path.unlink(missing_ok=True)
        said = self.refused("action", "install", str(self.directory), "--yes")
        self.assertIn("There is no valid connector tracker.toml", said)

    def test_linked_directory(self) -> None:
        """Nothing is written or removed through a directory of the home that is a link."""
        elsewhere = Path(self.mktemp()).absolute()
        elsewhere.mkdir()
        self.home.actions.rmdir()
        self.home.actions.symlink_to(elsewhere)
        said = self.refused("action", "install", str(self.directory), "--yes")
        self.assertIn(f"{self.home.actions} is a symbolic link", said)
        self.assertEqual(list(elsewhere.iterdir()), [])

    def test_nothing_to_update(self) -> None:
        """Without packages an update asks nothing and writes nothing."""
        code, _, err = self.run_command("action", "update")
        self.assertEqual((code, "No packages are installed." in err, self.kept()), (0, True, {}))

    def test_errors(self) -> None:
        """A file that would not load, and a source that is none, are told, and nothing is written."""
        self.put(package({**FILES, "file-ticket.md": b"+++\nname = 1\n+++\n"}))
        self.assertIn("actions/file-ticket.md:1: `version`", self.refused("action", "install", str(self.directory)))
        self.put(package({"tracker.toml": b"[connector]\n"}))
        self.assertIn("connectors/tracker.toml:", self.refused("action", "install", str(self.directory)))
        for source, why in (
            ("ftp://x/y", "is not a source"),
            ("http://example.com/a.git", "must begin with https://"),
            ("https://me:x@example.com/a.git", "no user name"),
            ("/nowhere/a.rar", "is not a directory"),
            ("/nowhere/a.zip", "cannot be opened"),
        ):
            self.assertIn(why, self.refused("action", "install", source))
        self.assertIn("is not installed", self.refused("action", "update", "nothing"))


class KindTests(PackageCase):
    """Connectors of kinds that other packages add."""

    def test_installed(self) -> None:
        """What the daemon has loaded is installed, shown and compared like a kind that ships; another is refused."""
        notes = FILE.format(port=1).encode()
        self.put({"notes.toml": notes, "aileron-package.toml": manifest({"notes.toml": notes})})
        self.assertIn("`kind` must be one of", self.refused("package", "install", str(self.directory), "--yes"))
        self.patch(CliContext, "kinds", KindTable((*BUILT_IN, KIND)))
        out = self.done("package", "install", str(self.directory), answers=["y", "y"])
        self.assertIn("+ local://me/notes: add_note, write", out)
        more = notes.replace(b'effect = "read"', b'effect = "write"')
        self.put({"notes.toml": more, "aileron-package.toml": manifest({"notes.toml": more}, version="1.1.0")})
        out = self.done("package", "update", answers=["y", "y"])
        for line in ("+ local://me/notes: list_notes, write", "- local://me/notes: list_notes, read"):
            self.assertIn(line, out)
        self.assertNotIn("add_note", out)


class PublisherTests(PackageCase):
    """Signatures."""

    def setUp(self) -> None:
        super().setUp()
        self.publisher = Publisher()

    def test_consent(self) -> None:
        """A key is agreed to once; one that comes with the package is no proof, which is said, and never by --yes."""
        self.put(self.publisher.package())
        self.assertIn("key is new", self.refused("action", "install", str(self.directory), "--yes"))
        out = self.done("action", "install", str(self.directory), answers=["y", "y"])
        self.assertIn(f"signed by    {self.publisher.key}", out)
        self.assertIn("This key is new", out)
        self.assertIn("It comes with the package", out)
        self.put(self.publisher.package(version="1.1.0", with_key=False))
        out = self.done("action", "update", "--yes")
        self.assertNotIn("This key is new", out)

    def test_consent_of_one_repository(self) -> None:
        """A key that was agreed to for one repository is shown and asked about again for another."""
        self.hub.publish("/me/kit.git", self.publisher.package())
        self.done("action", "install", "github://me/kit", answers=["y", "y"])
        other = CONNECTOR.replace("kit/tracker", "kit/other").encode()
        signed = {"aileron-package.toml": manifest({"other.toml": other}, name="other"), "other.toml": other}
        signed["aileron-package.toml.minisig"] = self.publisher.sign(signed["aileron-package.toml"])
        self.hub.publish("/me/other.git", signed)
        self.assertIn("key is new", self.refused("action", "install", "github://me/other", "--yes"))
        out = self.done("action", "install", "github://me/other", answers=["y", "y"])
        self.assertIn(f"signed by    {self.publisher.key}\n  This key is new for this source", out)
        for name in ("kit", "other"):
            self.assertNotIn("is new", self.done("action", "install", f"github://me/{name}", answers=["y"]))

    def test_given(self) -> None:
        """A key that the operator gives need not come with the package."""
        self.put(self.publisher.package(with_key=False))
        said = self.refused("action", "install", str(self.directory))
        self.assertIn("signed by an unknown key with the ID 0807060504030201", said)
        self.refused("action", "install", str(self.directory), "--publisher-key", Publisher().key)
        out = self.done("action", "install", str(self.directory), "--yes", "--publisher-key", self.publisher.key)
        self.assertNotIn("It comes with the package", out)
        self.assertEqual(self.lock()["publishers"], [f"{self.publisher.key} tracker"])

    def test_given_is_required(self) -> None:
        """What is not signed by the key that the operator gives is not installed, whoever else signed it."""
        self.put(self.publisher.package())
        self.done("action", "install", str(self.directory), "--yes", "--publisher-key", f" {self.publisher.key}\n")
        self.done("action", "uninstall", "tracker", "--yes")
        given = "--publisher-key", Publisher(b"another!").key
        self.assertIn("not signed by the key", self.refused("action", "install", str(self.directory), "--yes", *given))
        self.put(package())
        given = "--publisher-key", self.publisher.key
        self.assertIn("not signed by the key", self.refused("action", "install", str(self.directory), "--yes", *given))

    def test_renamed(self) -> None:
        """What was signed is not replaced by what is not under another name."""
        self.put(self.publisher.package())
        self.done("action", "install", str(self.directory), answers=["y", "y"])
        other = {"other.toml": CONNECTOR.replace("kit/tracker", "kit/other").encode()}
        self.put({**other, "aileron-package.toml": manifest(other, name="other")})
        self.assertIn("had the package tracker before", self.refused("action", "update", "--yes"))

    def test_moved(self) -> None:
        """A package goes on in another place without force only if the same publisher signed it."""
        self.put(self.publisher.package())
        self.done("action", "install", str(self.directory), answers=["y", "y"])
        copy = write(self.directory.parent / "copy", self.publisher.package(version="1.1.0"))
        self.done("action", "install", str(copy), "--yes")
        write(self.directory, Publisher(b"another!").package(version="1.2.0"))
        self.assertIn("installed from", self.refused("action", "install", str(self.directory), "--yes"))

    def test_another_key(self) -> None:
        """What was signed is not replaced by what is not, or by another's, and a wrong signature by nobody's word."""
        self.put(self.publisher.package())
        self.done("action", "install", str(self.directory), answers=["y", "y"])
        self.put(package(version="1.1.0"))
        self.assertIn(
            "tracker 1.1.0 is not signed. The installed version is", self.refused("action", "update", "--yes")
        )
        other = Publisher(b"another!")
        self.put(other.package(version="1.1.0"))
        self.assertIn("not signed by the key of the installed version", self.refused("action", "update", "--yes"))
        forged = self.publisher.package(version="1.1.0")
        forged["aileron-package.toml"] = manifest(version="1.2.0")
        self.put(forged)
        self.assertIn("The signature is wrong", self.refused("action", "update", "--yes", "--force"))
        swapped = self.publisher.package(version="1.1.0")
        swapped["file-ticket.md"] = ACTION.replace("true", "false").encode()
        self.put(swapped)
        self.assertIn("must be sha256:", self.refused("action", "update", "--yes", "--force"))
        self.put(other.package(version="1.1.0"))
        self.done("action", "update", "--force", answers=["y"])
        self.assertEqual(self.lock()["packages"][0]["publisher"], other.key)

    def test_replaced_key(self) -> None:
        """A key that another one has replaced is no longer agreed to, also once the package was uninstalled."""
        self.put(self.publisher.package())
        self.done("action", "install", str(self.directory), answers=["y", "y"])
        other = Publisher(b"another!")
        self.put(other.package(version="1.1.0"))
        self.done("action", "update", "--force", answers=["y"])
        self.assertEqual(self.lock()["publishers"], [f"{other.key} tracker"])
        self.done("action", "uninstall", "tracker", "--yes")
        self.put(self.publisher.package(version="1.2.0"))
        said = self.refused("action", "install", str(self.directory), "--yes")
        self.assertIn(f"not signed by the key of version 1.1.0 that was uninstalled, {other.key}", said)
        self.assertIn("key is new", self.refused("action", "install", str(self.directory), "--yes", "--force"))

    def test_uninstalled(self) -> None:
        """What was uninstalled is remembered: an older or unsigned version, or one from elsewhere, needs force."""
        self.put(self.publisher.package(version="1.1.0"))
        self.done("action", "install", str(self.directory), answers=["y", "y"])
        self.done("action", "uninstall", "tracker", "--yes")
        self.assertEqual(self.lock()["packages"], [])
        older, unsigned = self.publisher.package(version="1.0.0"), package(version="1.2.0")
        elsewhere = write(self.directory.parent / "copy", unsigned)
        signed = f"Version 1.1.0, which was uninstalled, was signed by {self.publisher.key}"
        for files, source, why in (
            (older, self.directory, "Version 1.0.0 is older than the version 1.1.0 that was uninstalled."),
            (unsigned, self.directory, f"tracker 1.2.0 is not signed. {signed}"),
            (unsigned, elsewhere, f"tracker was installed from {self.directory}, not from {elsewhere}."),
        ):
            self.put(files)
            self.assertIn(why, self.refused("action", "install", str(source), "--yes"))
            self.assertEqual(self.lock()["packages"], [])
        self.put(older)
        code, out, _ = self.run_command("action", "install", str(self.directory), "--force", answers=["y", "y"])
        self.assertEqual(code, 0)
        self.assertIn("uninstalled  1.1.0", out)
        self.assertIn("Warning: Version 1.0.0 is older than the version 1.1.0 that was uninstalled.", out)
        self.assertNotIn("uninstalled", self.lock())
        self.put(self.publisher.package(version="1.0.1"))
        self.done("action", "update", "--yes")

    def test_highest(self) -> None:
        """Each review of an older version names the highest that was ever installed, also after an uninstall."""
        self.put(self.publisher.package(version="1.10.0"))
        self.done("package", "install", str(self.directory), answers=["y", "y"])
        install = ("install", str(self.directory))
        for command, version, highest in (
            (("update", "--force"), "1.2.0", "1.10.0"),
            (("uninstall", "tracker"), "", ""),
            (install, "1.3.0", "1.10.0"),
            (("update",), "1.4.0", "1.10.0"),
            (("update",), "1.10.0", ""),
            (("update",), "1.11.0", ""),
        ):
            self.put(self.publisher.package(version=version or "1.2.0"))
            out = self.done("package", *command, answers=["y", "y"] if command == install else ["y"])
            told = f"  highest      {highest} was installed before; this version is older\n" if highest else ""
            self.assertEqual((told in out, "this version is older" in out), (True, bool(highest)), out)

    def test_uninstalled_under_another_name(self) -> None:
        """A source whose package was uninstalled does not come back unnoticed under another name."""
        self.put(self.publisher.package())
        self.done("action", "install", str(self.directory), answers=["y", "y"])
        self.done("action", "uninstall", "tracker", "--yes")
        self.put({**FILES, "aileron-package.toml": manifest(name="other")})
        said = self.refused("action", "install", str(self.directory), "--yes")
        self.assertIn(f"{self.directory} had the package tracker before. Now it has other.", said)
        self.done("action", "install", str(self.directory), "--yes", "--force")
        self.done("action", "update", "--yes")


class LockTests(PackageCase):
    """``packages.json``, which an agent can write."""

    def setUp(self) -> None:
        super().setUp()
        self.done("action", "install", str(self.directory), "--yes")

    def test_changed(self) -> None:
        """One that was changed counts for nothing before the operator has read it; one that is damaged never."""
        changed = {**self.lock(), "publishers": [Publisher().key]}
        (self.home.root / "packages.json").write_text(json.dumps(changed))
        for command in (("update",), ("uninstall", "tracker"), ("install", str(self.directory))):
            self.assertIn("not trusted as it is now", self.refused("action", *command, "--yes"))
        self.assertIn("Review it:\n    aileron config trust", self.refused("sync"))
        self.trusted["config", "packages.json"] = digest_of_bytes((self.home.root / "packages.json").read_bytes())
        self.done("sync")
        (self.home.root / "packages.json").write_text("{}")
        self.assertIn("packages.json has an error", self.refused("sync", "--yes"))

    def test_missing(self) -> None:
        """One that is missing, although it was trusted, is not taken for a home without packages."""
        (self.home.root / "packages.json").unlink()
        self.assertIn("is missing, although you trusted it", self.refused("action", "install", str(self.directory)))

    def test_uninstall(self) -> None:
        """What was installed and is unchanged is removed, with the trust in it; what is not stays."""
        (self.home.connectors / "tracker.toml").write_text("mine")
        self.refused("action", "uninstall", "tracker", answers=["n"])
        code, out, err = self.run_command("action", "uninstall", "tracker", answers=["y"])
        self.assertEqual((code, self.prompts[-1]), (0, "Files to remove: actions/file-ticket.md. Uninstall? [y/N] "))
        self.assertIn("connectors/tracker.toml was changed since it was installed", err)
        self.assertIn("tracker 1.0.0 is no longer installed.", out)
        self.assertEqual([path.name for path in self.kept()], ["tracker.toml", "packages.json"])
        self.assertEqual(self.trusted.keys(), {("config", "packages.json")})
        self.assertEqual(self.lock()["packages"], [])

    def test_options(self) -> None:
        """No command offers an option that means nothing to it."""
        for command, absent in ((packages.uninstall, {"identity", "force"}), (packages.sync, {"force"})):
            offered = {each.name for each in command.params}
            self.assertEqual(("yes" in offered, offered & absent), (True, set()), command.name)
        self.assertLess({"identity", "force", "publisher_key"}, {each.name for each in packages.install.params})

    def test_uninstall_cut_off(self) -> None:
        """A command that ends before it is done leaves no trust in what it removes."""

        def fail(*_: object) -> None:
            raise OSError(ENOSPC, "No space left on device")

        self.patch(copying, "atomic_write", fail)
        code, _, err = self.run_command("action", "uninstall", "tracker", "--yes")
        self.assertEqual((code, self.trusted.keys()), (1, {("config", "packages.json")}), err)

    def test_sync(self) -> None:
        """A missing file is fetched if the package is what it was; what was changed is told, and left."""
        (self.home.actions / "file-ticket.md").unlink()
        self.assertIn("All packages match packages.json.", self.done("sync", "--yes"))
        (self.home.actions / "file-ticket.md").unlink()
        (self.home.connectors / "tracker.toml").write_text("mine")
        self.put(package({**FILES, "more.toml": CONNECTOR.replace("kit/tr", "kit/st").encode()}))
        said = self.refused("sync", "--yes")
        self.assertIn("connectors/tracker.toml was changed.", said)
        self.assertIn("has other contents now", said)
        self.put({})
        self.assertIn("tracker 1.0.0 cannot be fetched. The package has no connector", self.refused("sync", "--yes"))


class GitTests(PackageCase):
    """Packages from Git."""

    def test_tags(self) -> None:
        """The newest release is taken unless one is named; C{github://} is where packages.json says."""
        self.hub.publish("/me/kit.git", package(), "v1.0.0")
        self.done("action", "install", "github://me/kit", "--yes")
        self.assertEqual(self.hub.asked[0], ("github.com", True))
        kept = self.lock()["packages"][0]
        self.assertEqual(
            (kept["source"], kept["commit"]), ("github://me/kit", self.hub.repositories["/me/kit.git"].name)
        )
        self.hub.publish("/me/kit.git", package(version="1.1.0"), "1.1.0")
        self.done("action", "update", "tracker@1.1.0", "--yes")
        self.assertEqual(self.lock()["packages"][0]["version"], "1.1.0")
        self.assertIn("has no tag of version 2.0.0", self.refused("action", "update", "tracker@2.0.0"))
        self.hub.publish("/me/kit.git", package(version="1.2.0"), "1.1.9")
        self.assertIn("tag of version 1.1.9 has version 1.2.0", self.refused("action", "update"))
        self.hub.publish("/me/kit.git", package(version="1.2.0-rc.1"), "1.2.0-rc.1")
        self.assertIn("has no tag with a version", self.refused("action", "update"))

    def test_missing(self) -> None:
        """A repository that is not there, or private, is told with what to do."""
        said = self.refused("action", "install", "github://me/none", "--yes")
        self.assertIn("status 404. Nothing was installed.", said)
        self.assertIn("ssh://", said)

    def test_left_out(self) -> None:
        """A package that cannot be fetched is told and stays, and the others are updated; but not without a suite."""
        self.hub.publish("/me/kit.git", package())
        other = CONNECTOR.replace("kit/tracker", "kit/other").encode()
        files = {"other.toml": other, "aileron-package.toml": manifest({"other.toml": other}, name="other")}
        self.hub.publish("/me/other.git", files)
        self.done("action", "install", "github://me/kit", "github://me/other", "--yes")
        self.hub.publish("/me/kit.git", package(version="1.1.0"), "1.1.0")
        del self.hub.repositories["/me/other.git"]
        code, out, err = self.run_command("action", "update", "--yes")
        self.assertEqual((code, [each["version"] for each in self.lock()["packages"]]), (1, ["1.0.0", "1.1.0"]))
        self.assertIn("tracker 1.1.0 is installed.", out)
        why = "other stays at version 1.0.0. https://github.com/me/other.git answered with status 404.\n  Check the"
        self.assertIn(why, err)
        self.assertIn(
            "Not updated: other.\n  The reasons are above. To try again:\n    aileron package update other\n", err
        )
        (self.home.connectors / "other.toml").unlink()
        (self.home.actions / "file-ticket.md").unlink()
        self.assertIn("other 1.0.0 cannot be fetched. https://github.com", self.run_command("sync", "--yes")[2])
        self.assertTrue((self.home.actions / "file-ticket.md").exists())
        del self.hub.repositories["/me/kit.git"]
        self.assertIn("status 404. Nothing was installed.", self.refused("action", "update", "--yes"))

    def test_without_suite(self) -> None:
        """Without a suite, which says at which versions others stay, nothing is updated."""
        self.hub.publish("/me/kit.git", package())
        names = 'packages = ["github://me/kit@1.0.0"]'
        self.hub.publish("/me/all.git", {"aileron-package.toml": manifest({}, name="all", more=names)})
        self.done("action", "install", "github://me/all", "--yes")
        self.hub.publish("/me/kit.git", package(), more=[("1.1.0", package(version="1.1.0"))])
        del self.hub.repositories["/me/all.git"]
        self.assertIn("status 404. Nothing was installed.", self.refused("action", "update", "--yes"))

    def test_by_suite(self) -> None:
        """A package whose newest version is not read, but which a suite names at another, is updated to that."""
        self.hub.publish("/me/kit.git", package())
        self.hub.publish("/me/all.git", self._suite("1.0.0"))
        self.done("action", "install", "github://me/all", "--yes")
        broken = {"aileron-package.toml": b"="}
        self.hub.publish("/me/kit.git", broken, "1.2.0", more=[("1.1.0", package(version="1.1.0"))])
        self.hub.publish("/me/all.git", self._suite("1.1.0"), "1.1.0")
        code, out, err = self.run_command("action", "update", "--yes")
        self.assertEqual((code, "tracker 1.1.0 is installed." in out, "stays at" in err), (0, True, False), err)

    def _suite(self, version: str) -> Mapping[str, bytes]:
        more = f'packages = ["github://me/kit@{version}"]'
        return {"aileron-package.toml": manifest({}, version=version, name="all", more=more)}

    def test_moved(self) -> None:
        """A tag that was moved is told, and followed only by force."""
        self.hub.publish("/me/kit.git", package())
        self.done("action", "install", "https://git.example/me/kit.git@1.0.0", "--yes")
        self.hub.publish("/me/kit.git", package({**FILES, "tracker.toml": FILES["tracker.toml"] + b"#\n"}))
        self.assertIn("The tag 1.0.0 was moved from commit", self.refused("action", "update", "--yes"))
        (self.home.actions / "file-ticket.md").unlink()
        said = self.refused("sync", "--yes")
        self.assertIn("tag 1.0.0 of tracker was moved", said)
        self.done("action", "update", "--yes", "--force")

    def test_suite(self) -> None:
        """A suite brings what it names, each judged by itself; none names a suite, this machine, or its networks."""
        self.hub.publish("/me/kit.git", package())
        other = CONNECTOR.replace("kit/tracker", "kit/other").encode()
        files = {"other.toml": other, "aileron-package.toml": manifest({"other.toml": other}, name="other")}
        self.hub.publish("/me/other.git", files)
        names = '"github://me/kit@1.0.0", "https://inside.example/me/other.git"'
        suite = {"aileron-package.toml": manifest({}, name="all", more=f"packages = [{names}]")}
        self.hub.publish("/me/all.git", suite)
        out = self.done("action", "install", "github://me/all", "--yes")
        for name in ("all", "tracker", "other"):
            self.assertIn(f"{name} 1.0.0 is installed.", out)
        self.assertEqual(self.hub.asked[2], ("github.com", True))
        self.assertEqual(self.hub.asked[-1], ("inside.example", False))
        twice = self.refused("action", "install", "github://me/kit", "https://git.example/me/kit.git", "--yes")
        self.assertIn("tracker comes from two sources", twice)
        self.hub.publish("/me/kit.git", package(), more=[("1.1.0", package(version="1.1.0"))])
        self.done("action", "update", "--yes")
        versions = [each["version"] for each in self.lock()["packages"]]
        self.assertEqual(versions, ["1.0.0", "1.0.0", "1.0.0"])
        both = "github://me/kit@1.0.0", "github://me/kit@1.1.0"
        self.assertIn("two sources or versions", self.refused("action", "install", *both, "--yes"))
        for member, why in (("github://me/all", "a suite too"), ("/etc", "not in Git")):
            more = f'packages = ["{member}"]'
            self.hub.publish("/me/bad.git", {"aileron-package.toml": manifest({}, name="bad", more=more)})
            self.assertIn(why, self.refused("action", "install", "github://me/bad", "--yes"))

    def test_token(self) -> None:
        """A token is sent to the one host that was named, over HTTPS, and to none that a suite names."""
        self.hub.publish("/me/kit.git", package())
        names = '"https://git.example/me/kit.git@1.0.0"'
        self.hub.publish(
            "/me/all.git", {"aileron-package.toml": manifest({}, name="all", more=f"packages = [{names}]")}
        )
        answers = ("canary-token",)
        said = self.done("action", "install", "github://me/all", "--yes", "--secret-fd", "5", answers=answers)
        sent = "Basic eC1hY2Nlc3MtdG9rZW46Y2FuYXJ5LXRva2Vu"
        self.assertEqual(self.hub.authorized, {("github.com", sent)})
        self.assertIn(("git.example", False), self.hub.asked)
        self.assertNotIn("canary", said + (self.home.root / "packages.json").read_text())
        self.hub.authorized.clear()
        both = "github://me/kit", "https://git.example/me/kit.git"
        said = self.refused("action", "install", *both, "--yes", "--secret-fd", "5", answers=answers)
        self.assertIn("would be sent to https://git.example and https://github.com.", said)
        self.done("sync", "--yes", "--secret-fd", "5", answers=answers)
        plain = "http://git.example/me/other.git"
        self.refused("action", "install", plain, "--yes", "--secret-fd", "5", answers=answers)
        self.assertEqual(self.hub.authorized, set())
        self.refused("action", "install", "https://git.example/me/no.git", "--secret-fd", "5", answers=("me:canary",))
        self.assertEqual(self.hub.authorized, {("git.example", "Basic bWU6Y2FuYXJ5")})

    def test_ssh(self) -> None:
        """Over SSH nothing is sent before the server's key is known."""
        said = self.refused("action", "install", "ssh://git@git.example/me/kit.git")
        self.assertIn("ssh-keyscan -t ed25519 HOST", said)
        code, _, said = self.command("action", "install", "ssh://git@git.example/me/kit.git", "--identity", "/nowhere")
        self.assertEqual((code, "does not exist" in said), (2, True))
        self.assertEqual(self.hub.asked, [])
