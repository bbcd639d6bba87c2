"""The daemon's process: what it gets, and what is said of it."""

from __future__ import annotations

import errno
import io
import json
import os
import site
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.cli._entry import _Sources
from aileron.cli.daemon.process import (
    _start_detached,
    child_environment,
    command,
    last_words,
    output_of,
    private_pair,
)
from aileron.cli.errors import CommandError, report
from aileron.features import FeatureSet
from aileron.home.paths import Home
from tests.cli.daemon import LAUNCH_KEY, OPERATOR_URL, UPSTREAMS, URL, CommandCase

_TELL = """
import json, os, sys
def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
print(json.dumps([list(os.environ), os.getcwd(), [is_open(int(each)) for each in sys.argv[1:]], os.getsid(0)]))
"""


class ProcessTests(SynchronousTestCase):
    def test_environment(self) -> None:
        """The daemon gets what is allowed by name, and nothing secret; what moves a provider is told."""
        proxies = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
        given = ("PATH", "LC_ALL", "AILERON_HOME", "AILERON_OPENAI_BASE_URL", "AILERON_ANTHROPIC_BASE_URL")
        allowed = dict.fromkeys((*given, *proxies, *map(str.lower, proxies)), "x")
        others = "AILERON_VAULT_PASSPHRASE PYTHONPATH LD_PRELOAD OPENAI_API_KEY XDG_DATA_HOME AILERON_GROQ_BASE_URL"
        more = "OPENAI_BASE_URL ANTHROPIC_API_KEY SSL_CERT_FILE FTP_PROXY"
        self.assertEqual(
            child_environment(
                {**allowed, **dict.fromkeys((*others.split(), *more.split()), "x")}, FeatureSet().variables()
            ),
            allowed,
        )
        for environ, word in (
            ({"AILERON_OPENAI_BASE_URL": "https://canary.test"}, "AILERON_OPENAI_BASE_URL"),
            ({"AILERON_OPENAI_BASE_URL": "", "HTTPS_PROXY": "http://p"}, ""),
        ):
            told = "\n".join(FeatureSet().announce_environment(environ))
            self.assertEqual((word in told, bool(word)), (True, bool(told)))
            self.assertNotIn("canary", told)

    def test_command(self) -> None:
        """The daemon is isolated; from the user's own site directory as far as it can be."""
        for package, deaf in (
            (Path("/usr/lib/aileron"), ("-I",)),
            (Path(site.getusersitepackages()) / "aileron", ("-E", "-P")),
        ):
            serve = command("serve", executable="py", package=package)
            self.assertEqual(serve, ("py", *deaf, "-m", "aileron", "serve"))
        self.assertEqual(command("vault", "init")[0], sys.executable)

    def test_alone(self) -> None:
        """The daemon's process loads nothing of the command line but its beginning."""
        tell = (
            "import sys, aileron.cli._entry, aileron.daemon, aileron.api, aileron.web\n"
            "print(*[name for name in sys.modules if name == 'click' or name.startswith('aileron.cli.')])"
        )
        told = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True).stdout
        self.assertEqual(told.split(), ["aileron.cli._entry"])

    def test_sources(self) -> None:
        """Of lines of source it keeps those of files, and none that a library made up."""
        sources = _Sources({"kept.py": (1, None, ["a"], "kept.py")})
        self.assertEqual(sources.setdefault("<made up>", (1, None, ["b"], "<made up>"))[2], ["b"])
        sources["read.py"] = (1, None, ["c"], "read.py")
        self.assertEqual(list(sources), ["kept.py", "read.py"])

    def test_cannot_begin(self) -> None:
        """A daemon that cannot even read its options says so in a sentence, and fails."""
        done = subprocess.run(
            [sys.executable, "-m", "aileron", "serve", "-x"], capture_output=True, text=True, check=False
        )
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertTrue(done.stderr.startswith("aileron: "))
        self.assertNotIn("Traceback", done.stderr)

    def test_started(self) -> None:
        """What is started is alone: with that environment, in the home, without our descriptors or our session."""
        home = Home(Path(self.mktemp()).absolute())
        home.log.mkdir(parents=True)
        ours, named = os.pipe()
        for descriptor in (ours, named):
            self.addCleanup(os.close, descriptor)
            os.set_inheritable(descriptor, True)
        tell = (sys.executable, "-I", "-c", _TELL, str(ours), str(named))
        for passed in ((), (named,)):
            child = _start_detached(tell, home, {"PATH": "p", "PYTHONPATH": "x", "KEY": "k"}, passed)
            self.assertEqual(child.wait(60), 0)
            names, directory, is_open, session = json.loads(output_of(home).read_text())
            self.assertEqual((directory, is_open, session), (str(home.root), [False, bool(passed)], child.pid))
            self.assertFalse({"PYTHONPATH", "KEY"} & {*names})

    def test_private_pair(self) -> None:
        """What is handed to a child comes whole, ends, and cannot be opened anew by way of C{/proc}."""
        reading, writing = private_pair()
        self.addCleanup(os.close, reading)
        if Path("/proc/self/fd").exists():
            for descriptor in (reading, writing):
                error = self.assertRaises(OSError, os.open, f"/proc/self/fd/{descriptor}", os.O_RDONLY)
                self.assertEqual(error.errno, errno.ENXIO)
        os.write(writing, b"key")
        os.close(writing)
        self.assertEqual([os.read(reading, 9), os.read(reading, 9)], [b"key", b""])

    def test_pair_without_standard_input(self) -> None:
        """With standard input closed the pair leaves its place free: a child's own standard input goes there."""
        script = "import os; os.close(0); from aileron.cli.daemon.process import private_pair; print(*private_pair())"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual([descriptor for descriptor in map(int, done.stdout.split()) if descriptor < 3], [])

    def test_last_words(self) -> None:
        """The last lines of its output are told, if it left any."""
        home = Home(Path(self.mktemp()).absolute())
        home.log.mkdir(parents=True)
        self.assertEqual(last_words(home), ())
        output_of(home).write_text("".join(f"line {number}\n" for number in range(40)))
        self.assertEqual(list(last_words(home))[-2:], ["line 38", "line 39"])
        self.assertNotIn("line 20", last_words(home))
        with redirect_stderr(io.StringIO()) as told:
            report(CommandError("It ended.", "See the log.", ["one\x1b", "two"]))
        self.assertEqual(told.getvalue(), "aileron: It ended.\n  │ one␛\n  │ two\n  See the log.\n")


class TellTests(CommandCase):
    def test_not_running(self) -> None:
        """Without a daemon: a sentence and 1, or JSON; stopping is no error."""
        code, out, _ = self.command("daemon", "status")
        self.assertEqual((code, out), (1, f"The daemon is not running for {self.home.root}.\n"))
        code, out, _ = self.command("daemon", "status", "--json")
        self.assertEqual((code, json.loads(out)["running"]), (1, False))
        self.assertEqual(self.command("daemon", "stop"), (0, "The daemon is not running.\n", ""))
        self.assertEqual(self.command("vault", "status")[1], "missing (the daemon is not running)\n")

    def test_running(self) -> None:
        """Starting twice is safe: it says where the daemon is, never its key, and hints at what is to do."""
        self.serve()
        for arguments in (("daemon", "start"), ("daemon", "status"), ("daemon", "start", "--json")):
            code, out, err = self.command(*arguments)
            self.assertEqual((code, URL in out, OPERATOR_URL in out), (0, True, True))
            self.assertNotIn(LAUNCH_KEY, out + err)
        self.assertIn(f"PID {os.getpid()}", self.command("daemon", "start")[1])
        for state, hint in (("locked", "aileron vault unlock"), ("missing", "aileron vault init")):
            self.site.state = state
            self.assertIn(hint, self.command("daemon", "status")[2])
            self.assertEqual(self.command("vault", "status")[1], f"{state}\n")
        found = json.loads(self.home.discovery.read_text())
        self.home.discovery.write_text(json.dumps({**found, "version": "9.9.9"}))
        self.assertIn("The daemon is version 9.9.9", self.command("daemon", "start")[2])

    def test_list(self) -> None:
        """Each daemon of the database has a row: where it runs, the rest of its lease, and the runs that it holds."""
        self.serve()
        unknown = dict.fromkeys(("host", "pid", "version", "schema_version"))
        first = {"id": "a.1", "own": False, "host": "alpha", "pid": 7, "version": "1.0", "schema_version": 18}
        more = {"started_at": "2026-03-01T09:00:00.000Z", "lease_seconds_left": 9.9, "unfinished_runs": 2}
        others = [
            {**unknown, **more, "id": f"b.{left}", "own": True, "lease_seconds_left": left} for left in (-1, None)
        ]
        self.site.answer("GET", "/v1/daemons", {"items": [{**first, **more}, *others]})
        code, out, _ = self.as_operator("daemon", "list", "--utc")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"a\.1 +alpha +7 +1\.0 +18 +2026-03-01T09:00:00.000Z +9\.9 s +2\n")
        self.assertRegex(out, r"b\.-1 \(this one\) .* has ended +2\n")
        self.assertRegex(out, r"b\.None \(this one\) .* (-|–|—) +2\n")
        self.assertEqual(len(json.loads(self.as_operator("daemon", "list", "--json")[1])["items"]), 3)

    def test_status(self) -> None:
        """The status counts what waits, says where to look, and has one line of what agents asked their models."""
        self.serve()
        counts = {"pending_approvals": 2, "sessions": 1, "actions": 3, "load_errors": 2, "unknown_outcomes": 1}
        answer = {"version": "0.1.0", "uptime_seconds": 3700, "vault_state": "unlocked", "counts": counts}
        self.site.answer("GET", "/v1/status", answer)
        code, out, err = self.command("status")
        self.assertEqual(code, 0)
        self.assertIn("running for 1 h 1 min.", out)
        self.assertRegex(out, r"pending approvals +2\n")
        self.assertIn("aileron watch", err)
        self.assertIn("Runs that may have happened or not: 1\n", err)
        self.assertIn("aileron run list --state unknown", err)
        self.assertRegex(out, r"files not active +2\n")
        self.assertIn("See which files are not trusted, or have errors: aileron doctor", err)
        self.assertLessEqual(answer.items(), json.loads(self.command("status", "--json")[1]).items())
        answer = {"version": "0.1.0", "uptime_seconds": 1, "vault_state": "unlocked", "counts": {}}
        for requests, shown in ((0, False), (1234, True)):
            totals = {"requests": requests, "input_tokens": 1234567, "output_tokens": 89, "providers": []}
            self.site.answer("GET", "/v1/status", {**answer, "gateway": {"totals": totals}})
            line = "  LLM calls          1 234 (tokens: 1 234 567 in, 89 out)\n"
            self.assertEqual(line in self.command("status")[1], shown)
        self.site.answer("GET", "/v1/status", answer)
        self.assertNotIn("LLM calls", self.command("status")[1])

    def test_status_upstreams(self) -> None:
        """The status shows the providers that are not as they come, and proxies; a provider's name hides nothing."""
        self.serve()
        answer = {"version": "0.1.0", "uptime_seconds": 1, "vault_state": "unlocked", "counts": {}}
        self.site.answer("GET", "/v1/status", {**answer, "gateway": UPSTREAMS})
        out = self.command("status")[1]
        self.assertRegex(out, r"  vault +unlocked\n")
        self.assertRegex(out, r"  provider vault +https://a.test/␛ \(at /vault, set by config.yaml\)\n")
        self.assertRegex(
            out, r"  provider anthropic +https://api.anthropic.com \(at /anthropic, key from the vault\)\n"
        )
        self.assertRegex(out, r"  https_proxy +http://p.test:1\n +no_proxy +x.test\n")
        self.assertNotIn("api.openai.com", out)
        self.site.answer(
            "GET", "/v1/status", {**answer, "gateway": {"providers": [], "proxies": UPSTREAMS["proxies"][1:]}}
        )
        self.assertNotIn("no_proxy", self.command("status")[1])

    def test_unlocked_already(self) -> None:
        """Unlocking what is open asks for nothing, and a vault that is there is never made anew."""
        self.serve()
        self.assertEqual(self.command("vault", "unlock"), (0, "The vault is already unlocked.\n", ""))
        self.home.secrets.write_text("{}")
        code, _, err = self.command("vault", "init")
        self.assertEqual((code, "left as it is" in err), (1, True))
        self.assertEqual(self.home.secrets.read_text(), "{}")
