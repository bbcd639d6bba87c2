"""The daemon is started at login by systemd or launchd."""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from aileron.cli.daemon.process import STOP_SECONDS
from aileron.features.service.commands import launchd_service, systemd_service
from aileron.home.paths import Home
from tests.cli.daemon import CommandCase

_ODD = Home(Path('/srv/a "b" 100% $HOME\\x'))


class SystemdTests(CommandCase):
    """C{aileron daemon install} and C{uninstall}, with a C{systemctl} of the test's own that notes its arguments."""

    def setUp(self) -> None:
        super().setUp()
        self.patch(sys, "platform", "linux")
        directory = Path(self.mktemp()).absolute()
        directory.mkdir()
        self.calls = directory / "calls"
        self.systemctl = directory / "systemctl"
        self.environ |= {"XDG_CONFIG_HOME": str(directory / "config")}
        self.unit = directory / "config" / "systemd" / "user" / "aileron.service"
        self.patch(os, "environ", {**os.environ, "PATH": f"{directory}:/usr/bin:/bin"})
        self.provide("exit 0")

    def provide(self, ending: str) -> None:
        """Put the program there."""
        self.systemctl.write_text(f'#!/bin/sh\necho "$*" >>{shlex.quote(str(self.calls))}\n{ending}\n')
        self.systemctl.chmod(0o700)

    def called(self) -> list[str]:
        """Return how it was called so far."""
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def test_installed(self) -> None:
        """The unit starts the daemon with a locked vault for this home, and systemd is told; twice is safe."""
        for _ in range(2):
            code, out, err = self.command("daemon", "install")
            self.assertEqual((code, str(self.unit) in out), (0, True))
            self.assertIn("aileron vault unlock", err)
        text = self.unit.read_text()
        self.assertIn(f'Environment="AILERON_HOME={self.home.root}"\n', text)
        self.assertIn('"daemon" "run" "--locked"\n', text)
        limit = int(re.findall("StartLimitIntervalSec=(.*)", text)[0])
        tries, pause = (int(re.findall(f"{name}=(.*)", text)[0]) for name in ("StartLimitBurst", "RestartSec"))
        self.assertGreater(limit, 2 * tries * pause)  # else one that cannot start is started for ever
        self.assertEqual(self.called(), 2 * ["--user daemon-reload", "--user enable --now aileron.service"])

    def test_passphrase_file(self) -> None:
        """A file of the passphrase is named in the unit by its whole path; what it holds is not."""
        file = Path(self.mktemp())
        file.write_text("Canary battery staple 42")
        self.assertEqual(self.command("daemon", "install", "--passphrase-file", str(file))[0], 0)
        text = self.unit.read_text()
        self.assertIn(f'"--passphrase-file" "{file.resolve()}"', text)
        self.assertNotIn("Canary", text)

    def test_credential(self) -> None:
        """A credential of systemd is named in the unit, which then asks for no locked vault, and for no passphrase."""
        file = Path(self.mktemp())
        file.write_text("encrypted")
        code, _, err = self.command("daemon", "install", "--credential", str(file))
        self.assertEqual((code, err), (0, ""))
        text = self.unit.read_text()
        self.assertIn(f'LoadCredentialEncrypted="aileron-vault:{file.resolve()}"\nExecStart=', text)
        self.assertIn('"daemon" "run"\n', text)
        both = self.command("daemon", "install", "--credential", str(file), "--passphrase-file", str(file))
        self.assertNotEqual(both[0], 0)

    def test_printed(self) -> None:
        """It may only be printed: nothing is written, nobody told."""
        code, out, _ = self.command("daemon", "install", "--print")
        self.assertEqual((code, self.unit.exists(), self.called()), (0, False, []))
        self.assertIn("[Service]", out)

    def test_failed(self) -> None:
        """Where systemd refuses, or is missing, the command and its own words are shown; the file stays."""
        self.provide("echo 'Failed to connect to bus' >&2; exit 1")
        code, _, err = self.command("daemon", "install")
        self.assertEqual((code, self.unit.exists()), (1, True))
        self.assertIn("`systemctl --user daemon-reload` failed: Failed to connect to bus", err)
        self.systemctl.unlink()
        self.patch(os, "environ", {**os.environ, "PATH": str(self.systemctl.parent)})
        self.assertIn("failed: No such file or directory", self.command("daemon", "install")[2])

    def test_uninstalled(self) -> None:
        """The unit is disabled, then deleted; without one that is said."""
        self.command("daemon", "install")
        code, out, _ = self.command("daemon", "uninstall")
        self.assertEqual((code, self.unit.exists()), (0, False), out)
        self.assertEqual(self.called()[-1], "--user disable --now aileron.service")
        code, out, _ = self.command("daemon", "uninstall")
        self.assertEqual((code, "Not installed" in out), (0, True))


class TextTests(SynchronousTestCase):
    """What stands in the files."""

    def test_launchd(self) -> None:
        """The property list starts the daemon at login, again after a crash, and gives it time to stop."""
        service = launchd_service(_ODD, {"HOME": "/Users/you"}, ["--locked"])
        found = plistlib.loads(service.text)
        self.assertEqual(str(service.path), "/Users/you/Library/LaunchAgents/org.aileron.daemon.plist")
        self.assertEqual(found["ProgramArguments"][-3:], ["daemon", "run", "--locked"])
        self.assertEqual(found["EnvironmentVariables"], {"AILERON_HOME": str(_ODD.root)})
        self.assertEqual((found["RunAtLoad"], found["KeepAlive"]), (True, {"SuccessfulExit": False}))
        self.assertGreater(found["ExitTimeOut"], STOP_SECONDS)

    def test_quoted(self) -> None:
        """Blanks, quotes, percent and dollar signs of a path mean themselves to systemd."""
        text = systemd_service(_ODD, {"HOME": "/home/you"}, ["--passphrase-file", "/a $b"]).text.decode()
        self.assertIn('Environment="AILERON_HOME=/srv/a \\"b\\" 100%% $HOME\\\\x"\n', text)
        self.assertIn('"--passphrase-file" "/a $$b"\n', text)

    def test_verified(self) -> None:
        """Systemd's own check finds nothing wrong with the unit, whatever it says of others on this machine."""
        if shutil.which("systemd-analyze") is None:
            raise SkipTest("there is no systemd here")
        unit = Path(self.mktemp()).absolute() / "aileron.service"
        unit.parent.mkdir()
        unit.write_bytes(systemd_service(_ODD, {"HOME": "/home/you"}, ["--locked"]).text)
        checked = subprocess.run(
            ["systemd-analyze", "--user", "verify", unit],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "XDG_RUNTIME_DIR": str(unit.parent)},
        )
        faults = [line for line in (checked.stdout + checked.stderr).splitlines() if "aileron.service" in line]
        self.assertEqual((checked.returncode, faults), (0, []))
