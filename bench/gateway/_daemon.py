"""Our daemon as a user has it: its vault unlocked, its configuration trusted, the provider named by the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from ._processes import Server
from ._tools import Upstream

AILERON = Path(sys.executable).parent / "aileron"
"""The command of the environment that the benchmark runs in."""

_PASSPHRASE = b"seven quiet lamps over the harbour\n"
_CONFIG = "gateway:\n  provider_tools: '{rule}'\n  ca_certificates: |\n{certificate}"


@frozen
class Home:
    """A home of its own, in a directory that is the caller's to remove."""

    directory: Path
    command: Path = AILERON

    def furnish(self, certificate: Path, rule: str) -> None:
        """Make it, with a vault, an authority that upstreams may be known by, and a rule for provider tools.

        No daemon runs there afterwards, whatever happens.
        """
        self.directory.mkdir()
        try:
            self._aileron("vault", "init")
            config = self.directory / "aileron/config.yaml"
            lines = certificate.read_text().splitlines()
            config.write_text(_CONFIG.format(rule=rule, certificate="".join(f"    {line}\n" for line in lines)))
            config.chmod(0o600)
            self._aileron("config", "trust", "--yes")
        finally:
            self._stop()

    @contextmanager
    def serving(self, upstream: Upstream, core: int) -> Iterator[Server]:
        """The daemon while it is needed."""
        try:
            self._aileron("vault", "unlock", core=core, AILERON_OPENAI_BASE_URL=upstream.url)
            serves = json.loads((self.directory / "aileron/daemon.json").read_text())
            yield Server(serves["pid"], int(serves["url"].rpartition(":")[2]))
        finally:
            self._stop()

    def _stop(self) -> None:
        self._run([str(self.command), "daemon", "stop"])

    def _aileron(self, *arguments: str, core: int | None = None, **variables: str) -> None:
        reading, writing = os.pipe()
        os.write(writing, _PASSPHRASE)
        os.close(writing)
        try:
            self._run([str(self.command), *arguments, "--passphrase-fd", str(reading)], reading, core, **variables)
        finally:
            os.close(reading)

    def _environment(self) -> dict[str, str]:
        home = str(self.directory)
        return {"PATH": os.environ["PATH"], "HOME": home, "AILERON_HOME": f"{home}/aileron"}

    def _run(self, command: list[str], inherited: int | None = None, core: int | None = None, **variables: str) -> None:
        """What is started inherits the core.

        :raises RuntimeError: it failed, with what it said.
        """
        done = subprocess.run(
            command,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.directory),
                "AILERON_HOME": f"{self.directory}/aileron",
                **variables,
            },
            cwd=self.directory,
            pass_fds=() if inherited is None else (inherited,),
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
