"""More of everything than anybody needs, from one process of the same user: the others are still served."""

from collections.abc import Sequence
from pathlib import Path

from aileron.home.lock import running_pid
from tests.attacks.flooding import FloodTestCase, Said
from tests.attacks.provider import SAID, RawProvider
from tests.attacks.sandboxed import SandboxTestCase
from tests.extent import Turns, seldom
from tests.functional.browsed import BrowsedTestCase
from tests.functional.mcp_http import McpHttpTestCase
from tests.functional.operated import GATED, SHIP, UNGATED
from tests.functional.process import Running
from tests.functional.reactor import until

# Opens connections and says nothing; how many it got.
_CONNECTIONS = """
import json, socket, sys, time, urllib.parse
address = urllib.parse.urlsplit(sys.argv[1])
held = []
for _ in range(int(sys.argv[2])):
    try:
        held.append(socket.create_connection(("127.0.0.1", address.port), timeout=5))
    except OSError:
        break
print(json.dumps(len(held)), flush=True)
time.sleep(60)
"""


class FloodTests(FloodTestCase):
    """Each flood, and a user who goes on working."""

    timeout = 400

    async def test_connections(self) -> None:
        """Connections without end, all silent, do not keep the user's own commands out."""
        await self.furnish()
        self.assertRegex(Path(f"/proc/{running_pid(self.state)}/limits").read_text(), r"Max open files +1024 +1024 ")
        for site in ("url", "operator_url"):
            flood = self.start(self.python(_CONNECTIONS, self.home.discovery()[site], "1000"))
            await flood.expect(r"\d+", 60)
            await self.operator("approval", "list")
            self.assertEqual((await self.status())["vault_state"], "unlocked")
            await flood.kill()


_WRONG = {"nonce": "A" * 43, "proof": "A" * 43}
_GUESSES = Said("POST", "/v1/operator/login", body=_WRONG)
_LONG = "Prefer: wait=3600"
_PROVIDERS = """\
gateway:
  providers:
    silent: {{base_url: '{silent}'}}
    good: {{base_url: '{good}'}}
"""


def _idle(token: str = "") -> Sequence[tuple[Said, int, bool]]:
    """Everything by which a connection is held without being answered: what is said, by how many, and whether deaf."""
    long_body = {"args": {"text": "x" * 900_000}}
    return (
        (Said("GET", "/v1/health", token, lines=("X: " + "x" * 8000,), times=1, once=True, cut=2), 120, False),
        (Said("POST", "/v1/operator/login", token, long_body, times=1, once=True, cut=600_000), 60, False),
        (Said("GET", "/v1/health", token, times=1, once=True), 120, False),
        (Said("GET", "/v1/openapi.json", token, times=1000), 60, True),
    )


class FloodedTestCase(FloodTestCase, BrowsedTestCase, McpHttpTestCase):
    """A user who goes on working."""

    timeout = 600

    async def begin_flooded(self, more: str = "") -> None:
        """Start the daemon, and give an agent its session.

        :param more: of the configuration.
        """
        self.agent = await self.furnish_with_mcp(more)
        self.floods: list[Running] = []

    async def flood_all(self, site: str, floods: Sequence[tuple[Said, int, bool]]) -> None:
        """Start all of these, and let them go on for a while."""
        self.floods += [await self.flood(site, said, count, deaf=deaf) for said, count, deaf in floods]
        await self.pause(1)

    async def assert_flooded(self) -> None:
        """Each flood goes on, connections are closed and made anew, and none has ended by itself."""
        anew = "a connection that was closed and made anew"
        await until(self.reactor, lambda: any("anew" in flood.output for flood in self.floods), 90, anew)
        ended = [await flood.signal() for flood in self.floods]
        self.assertEqual([(each.exit_code, each.stderr) for each in ended], [(0, "")] * len(ended))
        self.assertGreater(sum(int(each.stdout.split()[-1]) for each in ended), 0)

    async def assert_operable(self) -> None:
        """The operator's commands work, each by a new login with the passphrase, and the daemon says how it is."""
        asked = await self.run_action(self.agent, GATED, {**SHIP, "summary": f"flooded by {len(self.floods)}"})
        self.assertEqual(asked.status, 202, asked.text)
        await self.operator("approval", "list")
        await self.operator("approval", "deny", str(asked.body["run_id"]))
        for line in Turns(self.id()).of("status", "pause resume", "vault status", "daemon status"):
            if line == "pause resume":
                await self.operator("pause")
                await self.operator("resume")
            else:
                await self.command(*line.split())

    async def assert_served(self) -> None:
        """Another agent's calls are answered."""
        other = await self.session("other")
        for number in range(2):
            done = await self.run_action(other, UNGATED, {**SHIP, "summary": str(number)}, wait=20)
            self.assertEqual(done.status, 200, done.text)


class OperatorSiteTests(FloodedTestCase):
    """The operator's site is flooded by who has no credential for it."""

    @seldom
    async def test_guesses(self) -> None:
        """Four hundred connections full of wrong logins, whose refusals come late, keep nobody out."""
        await self.begin_flooded()
        await self.flood_all("operator_url", [(_GUESSES, 400, False)])
        await self.assert_operable()
        await self.assert_flooded()

    @seldom
    async def test_others(self) -> None:
        """Nor do those that are answered at once; that do not end a head or a body; that do not read an answer."""
        await self.begin_flooded()
        address = {"nonce": "A" * 43, "address": str(self.home.discovery()["operator_url"])}
        answered = (
            Said("POST", "/v1/operator/challenge", body=address),
            Said("GET", "/v1/runs", "ail_o_" + "A" * 43),
            Said("GET", "/v1/openapi.json"),
        )
        for floods in ([(each, 150, False) for each in answered], _idle()):
            self.floods = []
            await self.flood_all("operator_url", floods)
            await self.assert_operable()
            await self.assert_flooded()

    async def test_closed_at_once(self) -> None:
        """Nor do those that are closed as soon as they are made, without end."""
        await self.begin_flooded()
        self.floods = [await self.closed_at_once("operator_url") for _ in range(2)]
        await self.pause(1)
        await self.assert_operable()
        await self.assert_flooded()

    async def test_page(self) -> None:
        """Among wrong logins a page that was let in before shows and denies what is asked, and commands log in."""
        await self.begin()
        page = await self.browser.page()
        await self.log_in(page)
        self.floods = []
        await self.flood_all("operator_url", [(_GUESSES, 300, False), (Said("GET", "/v1/health"), 100, False)])
        run_id = await self.ask(summary="asked in a flood")
        await page.shows("ship-update", seconds=60)
        await self.open_approval(page, run_id)
        await self.ready(page)
        await page.click("#deny")
        await self.stands(page, "denied")
        await self.assert_operable()
        await self.assert_flooded()


class LaunchTests(SandboxTestCase):
    """The launch key in the hands of somebody who opens all sessions that may live."""

    timeout = 240

    async def test_no_session_left(self) -> None:
        """An honest launch is refused with the reason, and not once a session was ended."""
        await self.furnish()
        self.put_agent("print('ran')")
        sessions = [await self.session(str(number)) for number in range(64)]
        self.assertIn("64 sessions are live; end one first.", await self.refused(self.agent({})))
        await self.operator("sessions", "end", sessions[0].id)
        finished = await self.run_command(self.agent({}), 60)
        self.assertEqual((finished.exit_code, finished.stdout), (0, "ran\n"), finished.stderr)


class AgentSiteTests(FloodedTestCase):
    """The agents' site is flooded: by one agent with its token, by the launch key, and by nobody's credential."""

    async def test_long_polls(self) -> None:
        """Seven hundred long polls of one agent, on every route that waits, keep out neither operator nor agents."""
        await self.begin_flooded()
        greedy, launch = await self.session("greedy"), str(self.home.discovery()["launch_key"])
        body = {"args": SHIP, "idempotency_key": "always the same"}
        run_id = (await self.run_action(greedy, GATED)).body["run_id"]
        generation = (await self.web.ask("GET", f"{self._agents}/v1/actions", greedy.token)).body["generation"]
        leased = {"agent": "leased", "working_dir": "/", "lease": True}
        lease = (await self.web.ask("POST", f"{self._agents}/v1/sessions", launch, leased)).body["id"]
        listening = ("Accept: text/event-stream", f"Mcp-Session-Id: {await self.by_hand(greedy.token).opened()}")
        waits = (
            Said("POST", f"/v1/actions/{GATED}/run", greedy.token, body, (_LONG,), times=1, once=True),
            Said("GET", f"/v1/action-approvals/{run_id}/result?wait=3600", greedy.token, times=1, once=True),
            Said("GET", f"/v1/runs/{run_id}?wait=3600", greedy.token, times=1, once=True),
            Said("GET", f"/v1/actions?generation={generation}&wait=3600", greedy.token, times=1, once=True),
            Said("GET", f"/v1/sessions/{lease}/lease", launch, times=1, once=True),
            Said("GET", "/mcp", greedy.token, lines=listening, times=1, once=True),
        )
        await self.flood_all("url", [(each, 120, False) for each in waits])
        await self.assert_operable()
        await self.assert_served()
        await self.assert_flooded()

    @seldom
    async def test_without_a_credential(self) -> None:
        """Nor do those that nobody's token opens, that never end their request, or that read no answer."""
        await self.begin_flooded()
        said = (Said("GET", "/v1/runs", "ail_a_" + "A" * 43), Said("GET", "/v1/health"))
        await self.flood_all("url", [*((each, 500, False) for each in said), *_idle()])
        await self.assert_operable()
        await self.assert_served()
        await self.assert_flooded()

    async def test_bodies(self) -> None:
        """Bodies of a megabyte, requests without an end and answers that nobody reads keep nobody out, nor memory."""
        await self.begin_flooded()
        body = {"args": {"text": "x" * 1_000_000}}
        said = Said("POST", f"/v1/actions/{UNGATED}/run", "ail_a_" + "A" * 43, body, times=1, once=True, cut=1000)
        before = self.resident_bytes()
        await self.flood_all("url", [(said, 300, False), *_idle()])
        self.assertLess(self.resident_bytes() - before, 100 << 20)
        await self.assert_served()
        await self.assert_flooded()

    async def test_calls_to_providers(self) -> None:
        """Calls of one session that nobody answers, and ones without a key that do not end, keep out no other's."""
        silent, good = RawProvider.listen(self.reactor), RawProvider.listen(self.reactor)
        silent.will_answer(*[b""] * 1_000_000)
        self.finally_(silent.stop)
        self.finally_(good.stop)
        await self.begin_flooded(_PROVIDERS.format(silent=silent.url, good=good.url))
        greedy, other = await self.session("greedy"), await self.session("other")
        call, unended = {"text": "x" * 1000}, {"text": "x" * 10_000}
        said = (
            Said("POST", f"/s/{greedy.gateway_key}/silent/v1/x", body=call, times=1, once=True),
            Said("POST", "/silent/v1/x", body=unended, times=1, once=True, cut=100),
        )
        await self.flood_all("url", [(each, 400, False) for each in said])
        for _ in range(3):
            url = f"{self._agents}/s/{other.gateway_key}/good/v1/x"
            self.assertEqual((await self.web.ask("POST", url, body=call)).text.encode(), SAID)
        await self.assert_operable()
        await self.assert_served()
        await self.assert_flooded()

    @property
    def _agents(self) -> str:
        return str(self.home.discovery()["url"])
