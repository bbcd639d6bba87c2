"""Tools that were tried with own tools: by what each trusts Aileron in the sandbox, and whether it uses a proxy."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec

from aileron.features.own_tools.machine import KNOWN_TOOLS, KnownTool
from aileron.features.own_tools.trust import ADDING, REPLACING
from tests.extent import seldom
from tests.functional.github import HOST
from tests.functional.install import node_clients
from tests.functional.process import Command
from tests.functional.reactor import until
from tests.functional.test_own_tools import Inside, OwnToolsTestCase

_URL = f"https://{HOST}/repos/acme/web"
_PYTHON = f"{sys.executable} -c"
_ASYNC = """import asyncio, aiohttp
async def main():
    async with aiohttp.ClientSession() as session, session.get("URL") as answer:
        print(await answer.text())
asyncio.run(main())
"""
_HTTP_CLIENT = f"""
import http.client as h
c = h.HTTPSConnection("{HOST}", timeout=20)
c.request("GET", "/repos/acme/web", headers={{"User-Agent": "x"}})
print(c.getresponse().read().decode())
"""
_GO = """package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
    answer, problem := http.Get("URL")
    if problem != nil { fmt.Println(problem); os.Exit(1) }
    content, _ := io.ReadAll(answer.Body)
    fmt.Println(string(content))
}
"""
_FETCH = 'fetch("URL", {headers: {"User-Agent": "x"}}).then(a => a.text()).then(console.log)'
_AXIOS = (
    f'require("{node_clients()}/node_modules/axios").get("{_URL}", {{headers: {{"User-Agent": "x"}}}})'
    ".then(a => console.log(JSON.stringify(a.data)))"
)
_OCTOKIT = f"""
const {{ Octokit }} = await import("{node_clients()}/node_modules/@octokit/rest/dist-src/index.js");
const github = new Octokit({{ auth: process.env.GH_TOKEN }});
try {{
  const issue = {{ owner: "acme", repo: "web", issue_number: 7 }};
  const {{ data }} = await github.rest.issues.createComment({{ ...issue, body: "Hi" }});
  console.log(data.number);
}} catch (error) {{ console.log(error.status, error.message); }}
"""
_OPENSSL = (
    f"printf 'GET /repos/acme/web HTTP/1.1\\r\\nHost: {HOST}\\r\\nUser-Agent: x\\r\\nConnection: close\\r\\n\\r\\n' | "
    f"openssl s_client -quiet -verify_return_error -ignore_unexpected_eof -connect {HOST}:443 -servername {HOST}"
)
SCRIPTS: Mapping[str, tuple[str, str]] = {
    "gh": ("gh", "gh api repos/acme/web"),
    "curl": ("curl", f"curl -sS --max-time 20 {_URL}"),
    "wget": ("wget", f"wget -q -t 1 -O - {_URL}"),
    "openssl s_client": ("openssl", _OPENSSL),
    "Go": ("go", "./client"),
    "Python: requests": ("requests", f"{_PYTHON} 'import requests; print(requests.get(\"{_URL}\", timeout=20).text)'"),
    "Python: httpx": ("httpx", f"{_PYTHON} 'import httpx; print(httpx.get(\"{_URL}\", timeout=20).text)'"),
    "Python: aiohttp": ("aiohttp", f"{sys.executable} client.py"),
    "Python: urllib": (
        "urllib",
        f"{_PYTHON} 'import urllib.request as u; print(u.urlopen(\"{_URL}\", timeout=20).read().decode())'",
    ),
    "Python: http.client": ("http", f"{_PYTHON} '{_HTTP_CLIENT}'"),
    "Node before 24: fetch, https": ("node", f"node -e '{_FETCH.replace('URL', _URL)}'"),
    "Node: axios": ("node", f"node -e '{_AXIOS}'"),
}
"""The scripts that read from GitHub, each with the program or module that it needs, by the tool's name."""

_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_TRUST = (*REPLACING, *ADDING, "SSL_CERT_DIR", "NODE_USE_SYSTEM_CA")
_DEAD = "http://127.0.0.1:9"


class ClientTests(OwnToolsTestCase):
    """The table in C{doc/own-tools.md}."""

    @seldom
    async def test_table(self) -> None:
        """Each tool reads; it does so without the variables of certificates if it trusts the system's, and with a dead
        proxy if it ignores proxies.
        """
        await self.begin()
        (self.home.project / "client.go").write_text(_GO.replace("URL", _URL))
        go = shutil.which("go")
        if go is not None:
            build = Command(
                arguments=(go, "build", "client.go"), environment=self.home.environment(), directory=self.home.project
            )
            built = await self.run_command(build)
            self.assertEqual(built.exit_code, 0, built)
        inside = self.enter()
        (self.home.project / "client.py").write_text(_ASYNC.replace("URL", _URL))
        wrong = []
        for tool in KNOWN_TOOLS:
            if self.is_there(tool):
                found = await self.read(inside, tool)
                expected = [True, tool.uses_system, not tool.reaches_by]
                if found != expected:
                    wrong.append((tool.name, found, expected))
        self.assertEqual(wrong, [])
        await inside.end()

    def is_there(self, tool: KnownTool) -> bool:
        """Return whether the test has a script for a tool, and this machine has what it needs."""
        needed = SCRIPTS.get(tool.name, ("",))[0]
        if tool.name == "Node: axios" and not node_clients().exists():
            return False
        if tool.name.startswith("Python"):
            return bool(needed) and find_spec(needed) is not None
        return bool(needed) and shutil.which(needed) is not None

    async def read(self, inside: Inside, tool: KnownTool) -> list[bool]:
        """Return whether a tool reads: as it is, without the variables of certificates, and with a dead proxy."""
        script = SCRIPTS[tool.name][1]
        dead: Sequence[str] = [f"export {each}={_DEAD}" for each in _PROXIES]
        answers = []
        for before in ("", f"unset {' '.join(_TRUST)}", "; ".join(dead)):
            finished = await inside.run(f"{before}\n{script}\n")
            answers.append('"acme/web"' in finished.stdout)
        return answers


class OctokitTests(OwnToolsTestCase):
    """GitHub's own SDK for JavaScript."""

    skip = None if node_clients().exists() else "Octokit is fetched for seldom tests"

    @seldom
    async def test_comment(self) -> None:
        """A comment is asked for once, its program is told so, and its repetition gets the answer."""
        await self.begin()
        inside = self.enter()
        (self.home.project / "comment.mjs").write_text(_OCTOKIT)
        parked = await inside.run("node comment.mjs")
        self.assertIn("403 This request waits for the user's approval", parked.stdout, parked)
        (approval,) = await self.pending()
        await self.approve(approval["id"])
        await until(self.reactor, partial(self.has_effects, 1), 30, "the effect")
        repeated = await inside.run("node comment.mjs")
        self.assertEqual(repeated.stdout, "1\n", repeated)
        await inside.end()
        self.assertEqual(self.github.effects, ["POST /repos/acme/web/issues/7/comments Hi"])
