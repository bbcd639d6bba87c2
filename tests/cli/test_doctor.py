"""The doctor finds what is wrong, says what to do, and changes nothing."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

from attrs import asdict
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.disk import free_bytes
from aileron.cli.doctor.authority import Answers, authority, network
from aileron.cli.doctor.daemon import hardening
from aileron.cli.doctor.findings import DoctorFinding, Severity, remark, tell, waits, wrong
from aileron.cli.doctor.machine import disk, files, program, search_path, tracing
from aileron.features import FeatureSet
from aileron.home.lock import acquire_lock, release_lock
from aileron.home.paths import Home, prepare
from aileron.home.ports import Ports, save_ports
from aileron.vault import keys
from tests.cli.daemon import PASSPHRASE, UPSTREAMS, CommandCase
from tests.vault.case import keep_addresses

_UID = os.getuid()
_CONNECTOR = {"name": "local://me/slack", "credential": {"kind": "api_key"}, "hosts": ["slack.test:443"]}
_ACTION = {"name": "ship", "connectors": [{"name": "local://me/slack"}]}
_BINDING = {
    "name": "api_key/slack/default",
    "kind": "api_key",
    "connector": "local://me/slack",
    "scope": {"hosts": []},
    "in_force": {"hosts": []},
    "state": {"status": "ready", "expires_at": None, "reason": None},
    "fits": True,
    "base_url": None,
    "flag": None,
}
_SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def _answers(**items: Sequence[Mapping[str, Any]]) -> Answers:
    """The daemon's answers, empty but for these items."""
    answers: dict[str, dict[str, Any]] = {
        name: {"items": items.get(name, ())}
        for name in ("trust", "actions", "connectors", "bindings", "unknown", "tampered")
    }
    answers["actions"]["load_errors"] = items.get("load_errors", ())
    answers["connectors"]["problems"] = items.get("problems", ())
    return answers


def _told(findings: Iterator[DoctorFinding]) -> list[tuple[Severity, str]]:
    return [(each.severity, f"{each.says} {each.do or ''}") for each in findings]


class FilesTests(SynchronousTestCase):
    """The home and the program."""

    def setUp(self) -> None:
        self.home = Home(Path(self.mktemp()).absolute())
        prepare(self.home)
        self.before = _told(files(self.home, _UID))  # of the directories above, which are not ours

    def found(self) -> str:
        """What is wrong with the home beyond what was before, all in one."""
        new = [
            (severity, text) for severity, text in _told(files(self.home, _UID)) if (severity, text) not in self.before
        ]
        self.assertEqual({severity for severity, _ in new} - {Severity.WRONG}, set(), new)
        return "\n".join(text for _, text in new)

    def test_disk(self) -> None:
        """A full disk is a problem, one that is almost full is noted, and one of unknown size is not spoken of."""
        for free, severities in ((0, [Severity.WRONG]), (50 << 20, [Severity.NOTE]), (1 << 30, []), (None, [])):
            found = _told(disk(self.home, free))
            self.assertEqual([severity for severity, _ in found], severities)
            self.assertTrue(all(str(self.home.root) in text for _, text in found))
        self.assertGreater(free_bytes(self.home.root) or 0, 0)
        self.assertIsNone(free_bytes(self.home.root / "absent"))

    def test_sound(self) -> None:
        """A home as the daemon makes it is in order; one that is not there is no fault."""
        (self.home.actions / "a.md").touch(mode=0o644)
        self.home.config.touch(mode=0o644)
        self.home.secrets.touch(mode=0o600)
        self.assertEqual(self.found(), "")
        self.assertNotIn(str(self.home.root), "".join(text for _, text in self.before))
        ((severity, text),) = _told(files(Home(self.home.root / "none"), _UID))
        self.assertEqual((severity, "aileron vault init" in text), (Severity.NOTE, True))

    def test_unsound(self) -> None:
        """What others may read or write, and a link in the place of a file, is told, and left as it is."""
        self.home.secrets.touch()
        for path, mode in ((self.home.secrets, 0o640), (self.home.root, 0o755), (self.home.connectors, 0o702)):
            path.chmod(mode)
            self.assertIn(f"{path} is accessible to other users", self.found())
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), mode)
        (self.home.root / "elsewhere").touch(mode=0o600)
        self.home.secrets.unlink()
        self.home.secrets.symlink_to("elsewhere")
        (self.home.actions / "a.md").symlink_to("/etc/passwd")
        found = self.found()
        self.assertIn(f"{self.home.secrets} is not a file", found)
        self.assertIn("a.md is a link, belongs to another user, or can be written by everybody", found)

    def test_another_user(self) -> None:
        """What belongs to somebody else is told, also above the home."""
        texts = [text for _, text in _told(files(self.home, _UID + 1))]
        self.assertIn("belongs to another user", texts[0])
        if _UID != 0:
            self.assertTrue([text for text in texts if "above" in text])

    def test_above(self) -> None:
        """A directory above the home that others may write is told, unless it is sticky."""
        outer = Path(self.mktemp()).absolute()
        self.home = Home(outer / "inner" / "home")
        prepare(self.home)
        outer.chmod(0o777)
        self.assertIn(f"Other users can write {outer}, above", self.found())
        outer.chmod(0o1777)
        self.assertNotIn(f"Other users can write {outer}", self.found())

    def test_program(self) -> None:
        """Code that others may write is wrong; code that the user may write is noted, for an agent may then too."""
        package = Path(self.mktemp()).absolute()
        package.mkdir(mode=0o755)
        executable = package / "python"
        executable.touch(mode=0o755)
        of_another = _told(program(package, executable, _UID + 1 if _UID else 1))
        self.assertNotIn("Aileron's", "".join(text for _, text in of_another))
        package.chmod(0o775)
        found = _told(program(package, executable, _UID))
        for what in ("the directory of Aileron's commands", "Aileron's own code"):
            self.assertIn((Severity.WRONG, f"Other users can write {what}: {package} chmod go-w {package}"), found)
        noted = [text for severity, text in found if severity is Severity.NOTE]
        self.assertEqual(len([text for text in noted if "runs as you" in text]), 2 if _UID else 0)


class SearchPathTests(SynchronousTestCase):
    """Where Python looks for modules."""

    def test_noted(self) -> None:
        """An empty or relative part of PYTHONPATH is noted, whole paths are not."""
        for path in (":", ":/x", "/x:", "/x::/y", ".", "src", "/x:src"):
            ((severity, text),) = _told(search_path({"PYTHONPATH": path}))
            self.assertIs(severity, Severity.NOTE)
            self.assertIn("PYTHONPATH has an empty or relative entry", text)
        for environ in ({}, {"PYTHONPATH": ""}, {"PYTHONPATH": "/x"}, {"PYTHONPATH": "/x:/y"}):
            self.assertEqual(list(search_path(environ)), [])


class ProcessTests(SynchronousTestCase):
    """What the kernel says of the daemon."""

    def test_closed(self) -> None:
        """A process that is closed is in order, one that is not is wrong, on each count; an unseen one is noted."""
        closed = "Max cpu time  unlimited\nMax core file size        0                    0                    bytes\n"
        open_ = "Max core file size        0                    unlimited   bytes\n"
        for rights, limits, faults in ((1, closed, 0), (0, closed, 1), (1, open_, 1), (0, open_, 2)):
            proc = Path(self.mktemp())
            (proc / "7").mkdir(parents=True)
            (proc / "7" / "status").write_text(f"Name:\tpython\nNoNewPrivs:\t{rights}\n")
            (proc / "7" / "limits").write_text(limits)
            self.assertEqual(
                [severity for severity, _ in _told(hardening(7, proc, "linux"))], [Severity.WRONG] * faults
            )
        ((severity, _),) = _told(hardening(8, Path(self.mktemp()), "linux"))
        self.assertEqual(severity, Severity.NOTE)
        self.assertEqual(_told(hardening(8, Path(self.mktemp()), "darwin")), [])


class TracingTests(SynchronousTestCase):
    """Who may trace a process of ours while it starts."""

    advice = FeatureSet().doctor_advice("tracing")

    def found(self, scope: str | None, platform: str = "linux") -> DoctorFinding:
        """What is said where Yama has this scope; L{None}: where there is no Yama."""
        proc = Path(self.mktemp())
        setting = proc / "sys" / "kernel" / "yama" / "ptrace_scope"
        if scope is not None:
            setting.parent.mkdir(parents=True)
            setting.write_text(scope)
        (finding,) = tracing(self.advice, proc, platform)
        return finding

    def test_scopes(self) -> None:
        """Each scope of Yama, and a kernel without it, is told in its own words, with what helps."""
        open_ = "may trace a process of Aileron's before it has closed itself"
        for scope, severity, do, parts in (
            ("0\n", Severity.NOTE, "sudo sysctl kernel.yama.ptrace_scope=1", (open_, "ptrace_scope is 0")),
            ("1\n", Severity.FINE, None, ("only what it started itself", "ptrace_scope is 1")),
            ("2\n", Severity.FINE, None, ("Only an administrator's", "ptrace_scope is 2")),
            ("3\n", Severity.FINE, None, ("No program", "ptrace_scope is 3")),
            (None, Severity.NOTE, "aileron launch --sandbox AGENT", (open_, "Yama is not active")),
        ):
            found = self.found(scope)
            self.assertEqual((found.severity, found.do), (severity, do), found.says)
            for part in parts:
                self.assertIn(part, found.says)

    def test_no_sandbox(self) -> None:
        """Where sandboxes are off, or the command that runs agents in them, none is advised."""
        for off in ("sandbox", "launch"):
            self.advice = FeatureSet().without(off).doctor_advice("tracing")
            found = self.found(None)
            self.assertIsNone(found.do)
            self.assertTrue(found.says.endswith("before it has closed itself."), found.says)

    def test_not_known(self) -> None:
        """What cannot be read, or is no scope that is known, is taken for an open one, and each other system told."""
        proc = Path(self.mktemp())
        (proc / "sys" / "kernel" / "yama" / "ptrace_scope").mkdir(parents=True)
        (unread,) = tracing(self.advice, proc, "linux")
        for found in (unread, self.found("7\n"), self.found("")):
            self.assertEqual(found.severity, Severity.NOTE)
            self.assertIn("may trace a process of Aileron's", found.says)
        for platform, part in (("darwin", "untested"), ("freebsd14", "does not close its processes")):
            found = self.found(None, platform)
            self.assertEqual(found.severity, Severity.NOTE)
            self.assertIn(part, found.says)


class AuthorityTests(SynchronousTestCase):
    """What the operator trusts and has bound."""

    def test_findings(self) -> None:
        """Each fault of what is trusted and bound is one finding, with what to do; what is in order is none."""
        action = {"kind": "action", "name": "ship", "path": "/a"}
        config = {"kind": "config", "name": "config.yaml", "path": "/c", "state": "new"}
        error = {"kind": "parse_error", "file": "/c.toml", "line": 3, "message": "no such key"}
        untrusted = {"kind": "untrusted", "file": "/a", "line": None, "message": "from the next start"}
        flag = {"since": "2026-01-01T00:00:00.000000Z", "reason": "An answer held its secret."}
        record = {"audit_id": "A1", "at": "2026-01-01T00:00:00.000000Z"}
        old = {"audit_id": "A0", "at": "2025-12-31T23:59:59.000000Z"}
        needs, limited = {"status": "needs_you", "reason": "Over."}, {"status": "ready", "reason": "Not given."}
        surplus = {"status": "ready", "reason": None, "surplus": "More."}
        signed_in = {**_BINDING, "name": "oauth2/slack/default", "kind": "oauth2"}
        signed_in["scope"] = {"settings": {"token_url": "https://login.example"}}
        waits, wrong = Severity.WAITS, Severity.WRONG
        for given, severity, says in (
            ({"trust": [{**action, "state": "new"}]}, waits, "aileron action trust ship"),
            ({"trust": [{**action, "state": "changed"}]}, waits, "changed since"),
            ({"trust": [{**action, "state": "gone", "path": None}]}, Severity.NOTE, "missing"),
            ({"trust": [{**action, "state": "trusted", "unasked": True}]}, Severity.NOTE, "ship makes changes without"),
            ({"trust": [config]}, waits, "aileron config trust"),
            ({"load_errors": [error], "problems": [error]}, wrong, "/c.toml:3: no such key"),
            ({"trust": [{**action, "state": "new"}], "load_errors": [untrusted]}, waits, "is not trusted"),
            ({"load_errors": [untrusted]}, waits, "next start"),
            ({"actions": [_ACTION], "connectors": [_CONNECTOR]}, waits, "aileron credential setup local://me/slack"),
            ({"bindings": [{**_BINDING, "in_force": None, "fits": False}]}, waits, "not trusted"),
            ({"bindings": [{**_BINDING, "fits": False}]}, wrong, "aileron credential rebind"),
            ({"bindings": [{**_BINDING, "flag": flag}]}, wrong, "An answer held"),
            ({"bindings": [{**_BINDING, "state": needs}]}, waits, "aileron credential replace api_key/slack/default"),
            ({"bindings": [{**signed_in, "state": needs}]}, waits, "aileron credential renew oauth2/slack/default"),
            ({"bindings": [{**signed_in, "state": limited}]}, waits, "is limited: Not given."),
            (
                {"bindings": [{**signed_in, "state": surplus}]},
                Severity.NOTE,
                "aileron credential renew oauth2/slack/default",
            ),
            (
                {"connectors": [{"name": "local://me/x", "credential": {"settings": {"readable_by": "all"}}}]},
                Severity.NOTE,
                "which the program and what it starts can read",
            ),
            ({"tampered": [record, old]}, wrong, "aileron audit show A1"),
            ({"unknown": [{"id": "R1", "action": "ship"}]}, waits, "run settle R1"),
        ):
            ((found, text),) = _told(authority(_answers(**given), _SINCE))
            self.assertEqual((found, says in text), (severity, True), text)
        trusted = {"kind": "action", "name": "ship", "state": "trusted", "path": "/a"}
        odd = {**_BINDING, "base_url": "https://127.1", "fits": False}
        for given in (
            {"trust": [trusted], "actions": [_ACTION], "connectors": [_CONNECTOR], "bindings": [_BINDING]},
            {"actions": [_ACTION], "connectors": [{**_CONNECTOR, "credential": None}]},
            {"bindings": [odd]},
        ):
            self.assertEqual(_told(authority(_answers(**given), _SINCE)), [])

    def test_network(self) -> None:
        """Only what something is bound to is called; what does not answer is told."""
        asked: list[tuple[str, int]] = []

        def connect(host: str, port: int) -> None:
            asked.append((host, port))
            raise ConnectionRefusedError(111, "Connection refused")

        other = {**_CONNECTOR, "name": "local://me/other", "hosts": ["other.test:443"]}
        told = _answers(connectors=[_CONNECTOR, other], bindings=[_BINDING])
        ((severity, text),) = _told(network(told, connect))
        self.assertEqual((severity, asked), (Severity.WRONG, [("slack.test", 443)]))
        self.assertIn("slack.test:443 cannot be reached: Connection refused", text)
        self.assertEqual(_told(network(told, lambda _host, _port: None)), [])


class CommandTests(CommandCase):
    """The command as a whole."""

    def found(self, *arguments: str, answers: tuple[str, ...] = ()) -> tuple[int, list[dict[str, str]]]:
        """The exit code, and the findings that are about this home."""
        self.typed = list(answers)
        code, out, _ = self.command("doctor", "--json", *arguments)
        return code, json.loads(out)["findings"]

    def texts(self, *arguments: str, answers: tuple[str, ...] = ()) -> str:
        """All that it says."""
        return "\n".join(f"{each['severity']} {each['says']}" for each in self.found(*arguments, answers=answers)[1])

    def whole(self) -> None:
        """Have the daemon answer whatever is asked."""
        self.serve()
        self.home.secrets.write_text("{}")
        self.home.secrets.chmod(0o600)
        self.site.answer("GET", "/v1/actions", {"items": [], "load_errors": []})
        self.site.answer("GET", "/v1/connectors", {"items": [], "problems": []})
        for path in ("trust", "bindings", "runs?state=unknown&limit=20"):
            self.site.answer("GET", f"/v1/{path}", {"items": []})
        self.site.answer("GET", "/v1/audit?type=tamper.detected&limit=20", {"items": []})

    def test_empty(self) -> None:
        """Without vault and daemon that is what it says, and nothing is made."""
        before = sorted(self.home.root.rglob("*"))
        said = self.texts()
        self.assertIn("waits for you There is no vault yet", said)
        self.assertIn("waits for you The daemon is not running", said)
        self.assertIn("were not checked", said)
        self.assertEqual(sorted(self.home.root.rglob("*")), before)

    def test_stopped(self) -> None:
        """With a vault and without a daemon one command does it all, and is the only one that is named."""
        self.home.secrets.write_text("{}")
        said = self.texts()
        self.assertIn("waits for you The daemon is not running", said)
        self.assertNotIn("The vault is locked", said)
        self.assertIn("aileron vault unlock", self.command("doctor")[1])

    def test_tracing(self) -> None:
        """How this machine lets processes be traced is said, with or without a daemon, and makes nothing fail."""
        (here,) = tracing(FeatureSet().doctor_advice("tracing"))
        self.assertIn(f"{here.severity.value} {here.says}", self.texts("--offline"))
        self.whole()
        code, findings = self.found("--offline")
        self.assertIn(asdict(here), findings)
        self.assertEqual(code, int(any(each["severity"] == "wrong" for each in findings)))
        self.assertNotEqual(here.severity, Severity.WRONG)

    def test_command_on_its_own_line(self) -> None:
        """The worst comes first, what to do on a line of its own, and at the end the verdict in one line."""
        open_, fine_ = (
            remark("May be traced.", "sudo sysctl kernel.yama.ptrace_scope=1"),
            DoctorFinding(Severity.FINE, "Is closed."),
        )
        for findings, said in (
            (
                [fine_, open_],
                [
                    "note: May be traced.",
                    "    sudo sysctl kernel.yama.ptrace_scope=1",
                    "ok: Is closed.",
                    "No problems found; 1 note: see above.",
                ],
            ),
            ([fine_], ["ok: Is closed.", "Everything is in order."]),
            (
                [wrong("Is broken."), open_, waits("Is locked.")],
                [
                    "problem: Is broken.",
                    "action needed: Is locked.",
                    "note: May be traced.",
                    "    sudo sysctl kernel.yama.ptrace_scope=1",
                    "1 problem, 1 action needed, 1 note: see above.",
                ],
            ),
            (
                [wrong("Is broken."), wrong("Is lost.")],
                ["problem: Is broken.", "problem: Is lost.", "2 problems: see above."],
            ),
        ):
            printed = StringIO()
            with redirect_stdout(printed), redirect_stderr(printed):
                tell(findings)
            self.assertEqual(printed.getvalue().splitlines(), said)
        self.home.root.chmod(0o755)
        code, out, _ = self.command("doctor", "--offline")
        self.assertEqual(code, 1)
        self.assertTrue(out.startswith("problem: "), out)
        self.assertIn("    Start it:\n      aileron daemon start\n", out)

    def test_notifications(self) -> None:
        """A notification that fails is wrong; with the passphrase trust is looked at, and nobody stays logged in."""
        self.whole()
        self.site.answer("GET", "/v1/status", {"notifications": {"channels": 2, "failing": ["phone"]}})
        self.assertIn("wrong Notifications by phone are failing", self.texts("--offline"))
        item = {"kind": "action", "name": "ship", "state": "new", "path": "/a"}
        self.site.answer("GET", "/v1/trust", {"items": [item]})
        self.assertIn("The action ship is not trusted", self.texts(answers=(PASSPHRASE,)))
        self.assertEqual(self.site.logins, [])
        self.assertNotIn("ship", self.texts("--offline"))

    def test_misaddressed(self) -> None:
        """A binding to an address that is refused is told, with what is wrong and what to do, open vault or not."""
        self.whole()
        self.home.secrets.unlink()
        keep_addresses(
            self.home.secrets, keys.create(self.home.secrets, PASSPHRASE), "https://0x7f.1", "https://x.test"
        )
        (found,) = [each for each in self.found("--offline")[1] if "api_key/slack/" in each["says"]]
        self.assertIn("api_key/slack/at-0 cannot be used", found["says"])
        self.assertIn("must have a proper address", found["says"])
        self.assertEqual(found["severity"], "wrong")
        self.assertIn("aileron credential revoke api_key/slack/at-0", found["do"])
        self.assertIn("aileron credential setup", found["do"])

    def test_configuration(self) -> None:
        """A configuration that is not sound is told with its line, though no daemon can start with it."""
        self.assertNotIn("config.yaml:", self.texts("--offline"))
        text = "gateway:\n  providers:\n    groq: {base_url: 'https://canary:x@127.1'}\n"
        self.home.config.write_text(text)
        self.home.config.chmod(0o600)
        (found,) = [each for each in self.found("--offline")[1] if "config.yaml:" in each["says"]]
        self.assertIn("config.yaml:3: gateway.providers.groq.base_url must", found["says"])
        self.assertNotIn("canary", found["says"])
        self.assertIn("aileron config trust", found["do"])

    def test_no_login(self) -> None:
        """Where nobody can log in that is a finding, and the others are told all the same, with fitting advice."""
        self.whole()
        for key, typed, says in (
            (self.site.key, "another passphrase", "This passphrase does not open the vault."),
            (b"x" * 32, PASSPHRASE, "could not prove"),
        ):
            self.site.key = key
            code, findings = self.found(answers=(typed,) * 3)
            said = {each["says"]: each["do"] for each in findings if each["severity"] == "wrong"}
            self.assertEqual((code, self.site.logins, self.site.bodies("GET", "/v1/trust")), (1, [], []))
            self.assertIn(says, "".join(said))
            (damage,) = [do for says, do in said.items() if str(self.home.secrets) in says or "damaged" in says]
            self.assertNotIn("no vault file", damage)
            self.assertIn("aileron vault reset", damage)

    def test_lost(self) -> None:
        """A vault that is gone is wrong, with or without a daemon that knows."""
        self.home.database.touch(mode=0o600)
        self.assertIn("wrong There is a database, but no vault file", self.texts())
        self.serve()
        self.site.state = "lost"
        self.assertIn("wrong The vault is lost", self.texts())

    def test_port_taken(self) -> None:
        """Another program at the daemon's port, and a daemon.json that leads elsewhere, are wrong."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            save_ports(self.home, Ports(agent=port))
            self.assertIn(f"uses its port, {port}", self.texts())
        self.assertNotIn("uses its port", self.texts())
        acquire_lock(self.home)
        self.addCleanup(release_lock, self.home)
        self.assertIn("daemon.json does not point to it", self.texts())

    def test_gateway(self) -> None:
        """Where agents' models are, and by which proxy, is noted if it is not as it comes; no note is a fault."""
        self.whole()
        self.assertNotIn("LLM traffic", self.texts("--offline"))
        moved = {**UPSTREAMS["providers"][0], "base_url": "https://evil.test", "source": "environment"}
        self.site.answer("GET", "/v1/status", {"gateway": {**UPSTREAMS, "providers": [moved]}})
        notes = {each["says"]: each["do"] for each in self.found("--offline")[1] if each["severity"] == "note"}
        says = "LLM traffic to openai goes to https://evil.test (at /openai, set by AILERON_OPENAI_BASE_URL)."
        self.assertIn("unset AILERON_OPENAI_BASE_URL", notes[says])
        self.assertIn("unset it", notes["The gateway uses the proxy http://p.test:1 (HTTPS_PROXY)."])
        self.assertFalse([says for says in notes if "run tools themselves" in says])
        for rules, offered in ((("off", "off"), True), (("off", "note"), False)):
            both = [{**UPSTREAMS["providers"][0], "provider_tools": rule} for rule in rules]
            self.site.answer("GET", "/v1/status", {"gateway": {**UPSTREAMS, "providers": both}})
            self.assertEqual("run tools themselves" in self.texts("--offline"), offered)
        self.site.answer("GET", "/v1/status", {"gateway": UPSTREAMS})
        self.assertIn("LLM traffic to anthropic goes to https://api.anthropic.com", self.texts("--offline"))
