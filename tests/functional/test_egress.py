"""The way out of a sandbox: package managers and git by the proxy, and nothing else by any way."""

from __future__ import annotations

import json
import shlex
import sys

import attrs

from tests.attacks.sandboxed import SandboxTestCase
from tests.functional.process import Finished
from tests.functional.registries import Registries

_PYTHON = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
_SHELL = """
import json, os, sys
os.execvp("bash", ["bash", "-uc", json.loads(sys.argv[-1])])
"""
_INSTALL = """
git clone -q {url}/demo.git cloned && cat cloned/said.txt && echo " git"
{python} -m pip install -q --no-input --disable-pip-version-check --no-deps --target packages \
  --index-url {url}/simple demo \
  && {python} -c 'import sys; sys.path.insert(0, "packages"); import demo; print(demo.SAID, "pip")'
npm install --silent --no-fund --no-audit --cache cache --registry {url}/npm/ demo && node -p 'require("demo") + " npm"'
"""
_CARGO = """
cargo init -q --vcs none --name user user && cd user && cargo add -q --registry local demo && cargo fetch -q \
  && cat $CARGO_HOME/registry/src/*/demo-1.0.0/src/lib.rs
"""


class EgressTests(SandboxTestCase):
    """C{aileron launch --sandbox --egress}."""

    async def begin(self) -> Registries:
        """A daemon, an agent that runs a shell script, and registries that the project may reach."""
        self.put_agent(_SHELL)
        await self.operator("vault", "init")
        found = Registries.listen(self.reactor, self.home.root / "served", self.home.project / "authority.pem")
        self.finally_(found.site.stop)
        return found

    async def allow(self, *hosts: str) -> None:
        """Write the file of the project's hosts, and trust it."""
        project, listed = json.dumps(str(self.home.project)), json.dumps(list(hosts))
        self.state.egress.write_text(
            f"[[allow]]\nproject = {project}\nhosts = {listed}\nprivate_network = true\n", encoding="utf-8"
        )
        await self.operator("config", "trust", "--yes")

    async def inside(
        self, script: str, registries: Registries, words: str = "project", seconds: float = 120
    ) -> Finished:
        """What came of a script in the sandbox."""
        said = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in registries.environment().items())
        command = self.agent(said + script, "--sandbox", "--egress", words)
        return await self.run_command(attrs.evolve(command, environment={**command.environment, **_quiet()}), seconds)

    async def test_package_managers(self) -> None:
        """git, pip and npm fetch from hosts that the file allows the project, once it is trusted, and are counted."""
        registries = await self.begin()
        await self.allow(registries.host)
        finished = await self.inside(_INSTALL.format(url=registries.url, python=_PYTHON), registries)
        said = [f"installed by the proxy {name}" for name in ("git", "pip", "npm")]
        self.assertEqual(finished.stdout.split("\n")[:-1], said, finished.stderr)
        self.assertIn("checked: TCP, UDP, DNS, Unix sockets and inherited descriptors lead nowhere", finished.stderr)
        events = {event["type"]: event["payload"] for event in await self.audit()}
        self.assertEqual(events["egress.connected"]["basis"], "egress.toml")
        (host,) = events["egress.ended"]["hosts"]
        self.assertEqual(host["host"], registries.host)
        self.assertGreater(min(host["sent"], host["received"]), 1000)


def _quiet() -> dict[str, str]:
    return {"PIP_CONFIG_FILE": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "npm_config_update_notifier": "false"}
