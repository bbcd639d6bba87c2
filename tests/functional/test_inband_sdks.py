"""The official SDKs in in-band mode: a program that knows nothing of actions has a model that uses them."""

import json
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any

from twisted.internet.defer import Deferred

from tests.extent import seldom
from tests.functional.inband import CLIENTS, HELLO, WEATHER, Client, InBandTestCase, each_client
from tests.functional.llm import ScriptedLLM
from tests.functional.operated import SHIP, kinds
from tests.functional.reactor import until
from tests.functional.script import Call, Calls, Received, Refuse, Say, Turn, found
from tests.functional.sdks import Api

NOTE, SHIPPING = Call("post_note", SHIP), Call("ship_update", SHIP)
RAIN = Call(WEATHER, {"place": "Zürich"})
DONE = Say("All done, said the model.")
STREAMING = tuple(client for client in CLIENTS if client.streams)


def status_of(received: Received) -> dict[str, Any]:
    """The arguments by which the model asks how the call stands that it was told of last."""
    return {"approval_id": found(r"approval_id: (\S+)", received), "wait_seconds": 20}


def asked_since(llm: ScriptedLLM, before: int) -> bool:
    """Whether the model was asked more often than that."""
    return len(llm.script.received) > before


def failing(client: Client, api: Api) -> str:
    """The words of what goes wrong."""
    try:
        client.ask(api, HELLO)
    except Exception as problem:  # noqa: BLE001 - each SDK raises its own
        return str(problem)
    return "nothing"


class TurnsTests(InBandTestCase):
    """Every protocol, streamed and not, over one daemon."""

    async def test_own(self) -> None:
        """A call of an action runs, its result goes to the model, and the program reads one reply without a call.

        Catalogues that are equal make equal tools, at each turn.
        """
        llm = await self.begin([*each_client(NOTE, DONE)])
        session = await self.in_band()
        for number, client in enumerate(CLIENTS, 1):
            said = await self.ask(session, client)
            self.assertEqual((said.text, said.calls), (DONE.text, ()), client)
            self.assertEqual(len(self.workspace.messages), number)
            first, second = llm.script.received[-2:]
            self.assertEqual(json.loads(second.tool_results[0])["ts"], self.workspace.messages[-1].ts)
            self.assertEqual(first.tools, [WEATHER, "check_action_status", "post_note", "ship_update"])
            self.assertEqual(json.dumps(first.body["tools"]), json.dumps(second.body["tools"]))
            self.assertNotIn(session.in_band_key, json.dumps([second.path, second.headers, second.body]))
            self.assertNotIn("ail_", json.dumps([first.path, first.headers]))
        turns = [each for each in await self.audit() if each["type"] == "in_band.turn"]
        self.assertEqual(len(turns), len(CLIENTS))
        (call,) = turns[0]["payload"]["calls"]
        self.assertEqual((call["tool"], call["outcome"]), ("post_note", "answered"))
        self.assertNotIn(SHIP["summary"], json.dumps(turns))

    async def test_completions(self) -> None:
        """With `gateway.audit: shape` each turn with the provider is recorded, and the calls made in it lead to it."""
        await self.begin([*each_client(NOTE, DONE)])
        await self.set_config("gateway: {audit: shape}\n")
        session = await self.in_band()
        for client in CLIENTS:
            self.assertEqual((await self.ask(session, client)).text, DONE.text, client)
        events = await self.audit()
        turns = [each["payload"] for each in events if each["type"] == "in_band.turn"]
        shapes = [each["payload"] for each in events if each["type"] == "completion.recorded"]
        self.assertEqual([each["completion"] for each in turns], [each["completion"] for each in shapes[::2]])
        called = [each["run_id"] for each in events if each["type"] == "execution.succeeded"]
        self.assertEqual([each["calls"][0]["run"] for each in turns], called)
        for client, first, second in zip(CLIENTS, shapes[::2], shapes[1::2], strict=True):
            self.assertEqual((first["tools"], second["tools"]), (["post_note"], []), client)
            told = {(each["model"], each["ending"], each["status"], each["partial"]) for each in (first, second)}
            self.assertEqual(told, {("m", "complete", 200, False)}, client)
            self.assertTrue(first["stop_reason"] and second["stop_reason"], client)
        self.assertNotIn(DONE.text, json.dumps(shapes))

    async def test_of_the_client(self) -> None:
        """A call of the program's own tool reaches it as the model made it, and its result reaches the model."""
        llm = await self.begin([*each_client(RAIN, DONE)])
        session = await self.in_band()
        for client in CLIENTS:
            said = await self.ask(session, client)
            self.assertEqual([name for _, name in said.calls], [WEATHER], client)
            said = await self.ask(session, client, [*HELLO, *said.history, *client.results(said, "rain")])
            self.assertEqual((said.text, llm.script.received[-1].tool_results), (DONE.text, ["rain"]), client)
        self.assertEqual(self.workspace.messages, [])

    async def test_mixed(self) -> None:
        """Of a turn with calls of both the program sees its own; ours are in their place when its result comes back.

        So it is after the daemon was killed in between, and in every later request of this conversation.
        """
        llm = await self.begin([*each_client(Calls((NOTE, RAIN)), DONE, DONE)])
        session = await self.in_band()
        for number, client in enumerate(CLIENTS, 1):
            said = await self.ask(session, client)
            self.assertEqual([name for _, name in said.calls], [WEATHER], client)
            self.assertEqual(len(self.workspace.messages), number)
            if client.streams:
                await self.kill_daemon()
                await self.unlock()
            history = [*HELLO, *said.history, *client.results(said, "rain")]
            for _ in range(2):
                said = await self.ask(session, client, history)
                self.assertEqual(said.text, DONE.text, client)
                note, rain = llm.script.received[-1].tool_results
                self.assertEqual((json.loads(note)["ts"], rain), (self.workspace.messages[-1].ts, "rain"))
                history = [*history, *said.history, {"role": "user", "content": "go on"}]
        self.assertEqual(len(self.workspace.messages), len(CLIENTS))

    @seldom
    async def test_rounds(self) -> None:
        """Several turns of ours, also one with two calls, are one reply."""
        llm = await self.begin([*each_client(NOTE, Calls((NOTE, NOTE)), DONE)])
        session = await self.in_band()
        for client in CLIENTS:
            said = await self.ask(session, client)
            self.assertEqual((said.text, said.calls), (DONE.text, ()), client)
            self.assertEqual(len(llm.script.received[-1].tool_results), 3)
        self.assertEqual(len(self.workspace.messages), 3 * len(CLIENTS))

    @seldom
    async def test_bad_arguments(self) -> None:
        """Arguments that the action does not take go back to the model as an error, and nothing is sent."""
        wrong = Call("post_note", {"channel": "#engineering", "summary": 7})
        llm = await self.begin([*each_client(wrong, DONE)])
        session = await self.in_band()
        for client in CLIENTS:
            self.assertEqual((await self.ask(session, client)).text, DONE.text, client)
            self.assertIn("summary", llm.script.received[-1].tool_results[0])
        self.assertEqual(self.workspace.messages, [])

    @seldom
    async def test_provider_refuses(self) -> None:
        """A provider's refusal is its own error, before anything ran unchanged, and later one that is not retried."""
        turns: list[Turn] = [Refuse(429, "slowly"), NOTE, Refuse(429, "slowly")]
        llm = await self.begin([*each_client(*turns)])
        session = await self.in_band()
        for client in CLIENTS:
            sdk = self.sdk(session, client)
            problem = await sdk.problem(client.asking())
            self.assertEqual((type(problem).__name__, problem.status_code), ("RateLimitError", 429), client)
            why = await sdk.use(partial(failing, client), retries=2)
            # Its helper for streams does not repeat what an error says.
            self.assertIn("response.completed" if client == Client("responses", True) else "slowly", why)
        self.assertEqual(len(llm.script.received), len(turns) * len(CLIENTS))


class RunnerTests(InBandTestCase):
    """The Anthropic SDK's own loop, which runs a program's functions."""

    @seldom
    async def test_tool_runner(self) -> None:
        """It runs its function and never hears of an action, alone or in one turn with its own, streamed or not."""
        llm = await self.begin([NOTE, Calls((NOTE, RAIN)), RAIN, DONE] * 2)
        session = await self.in_band()
        for client in CLIENTS[-2:]:
            said, places = await self.sdk(session, client).use(partial(self.run_tools, client))
            self.assertEqual((said, places), (DONE.text, ["Zürich"] * 2), client)
            results = llm.script.received[-1].tool_results
            self.assertEqual([each for each in results if "ts" not in each], ["rain", "rain"])
            self.assertEqual(len(results), 4)
        self.assertEqual(len(self.workspace.messages), 4)

    def run_tools(self, client: Client, api: Api) -> tuple[str, list[str]]:
        """What the model says at last, and where the function was asked for the weather."""
        places: list[str] = []

        def weather(place: str) -> str:
            """d"""
            places.append(place)
            return "rain"

        tool = import_module("anthropic").beta_tool(weather)
        begin = api.client.beta.messages.tool_runner
        runner = begin(model="m", max_tokens=100, tools=[tool], messages=list(HELLO), stream=client.streams)
        for each in runner:
            message = each.get_final_message() if client.streams else each
        return "".join(block.text for block in message.content if block.type == "text"), places


class ApprovalTests(InBandTestCase):
    """Actions that a person decides."""

    async def decide(self, verdict: str) -> None:
        """Decide the one that waits."""
        (approval,) = await self.waiting()
        await self.operator("approval", verdict, approval["id"], *(["--yes"] if verdict == "approve" else []))

    @seldom
    async def test_decided(self) -> None:
        """The reply waits for the decision, then goes on with what came of it: done, or not done and why."""
        numbers = count(1)  # what was denied is refused for a while
        shipping = Call("ship_update", lambda _: {**SHIP, "summary": f"number {next(numbers)}"})
        verdicts = {client: ("approve", "deny") if client.streams else ("approve",) for client in CLIENTS}
        llm = await self.begin([shipping, DONE] * sum(map(len, verdicts.values())))
        session = await self.in_band()
        for number, client in enumerate(CLIENTS, 1):
            for verdict in verdicts[client]:
                asking = Deferred.fromCoroutine(self.ask(session, client, wait=60))
                await self.decide(verdict)
                self.assertEqual((await asking).text, DONE.text, client)
                result = llm.script.received[-1].tool_results[-1]
                self.assertIn("ts" if verdict == "approve" else "The user said no", result)
            self.assertEqual(len(self.workspace.messages), number)

    @seldom
    async def test_late(self) -> None:
        """Past the client's limit the model is told where it waits, and asks later what came of it."""
        llm = await self.begin([*each_client(SHIPPING, Call("check_action_status", status_of), DONE)])
        session = await self.in_band()
        for client in CLIENTS:
            asking = Deferred.fromCoroutine(self.ask(session, client, wait=1))
            before = len(llm.script.received)
            await until(self.reactor, partial(asked_since, llm, before + 1), 30, "it is pending")
            await self.decide("approve")
            self.assertEqual((await asking).text, DONE.text, client)
            pending, status = llm.script.received[-1].tool_results
            self.assertIn("/approvals/", pending)
            self.assertNotIn("completed", pending)
            self.assertIn("completed", status)
        self.assertEqual(len(self.workspace.messages), len(CLIENTS))

    async def test_one_by_one(self) -> None:
        """A call that needs no approval does not take one with it that does."""
        llm = await self.begin([*each_client(Calls((NOTE, SHIPPING)), DONE)])
        session = await self.in_band()
        for number, client in enumerate(CLIENTS, 1):
            await self.ask(session, client, wait=1)
            self.assertEqual(len(self.workspace.messages), number)
            note, shipping = llm.script.received[-1].tool_results
            self.assertIn("ts", note)
            self.assertIn("waits for the user's approval", shipping)

    @seldom
    async def test_client_gone(self) -> None:
        """A client that leaves ends the conversation, not the run: approved then, it is done, once."""
        llm = await self.begin([SHIPPING] * len(STREAMING))
        session = await self.in_band()
        for number, client in enumerate(STREAMING, 1):
            asking = self.sdk(session, client).use(partial(self.gone, client))
            await asking
            (approval,) = await self.waiting()
            self.assertEqual(len(llm.script.received), number)
            await self.approve(approval["id"], "--wait", "20")
            self.assertEqual(len(self.workspace.messages), number)
        self.assertEqual(len(llm.script.received), len(STREAMING))

    async def test_sent_again(self) -> None:
        """What an SDK sends again by itself, since it waited too long, waits for the same run, which is made once."""
        llm = await self.begin([SHIPPING, SHIPPING, DONE])
        session, client = await self.in_band(), Client("chat", streams=False)
        asking = Deferred.fromCoroutine(self.sdk(session, client).use(partial(self.patient, client)))
        await until(self.reactor, partial(asked_since, llm, 1), 30, "it is sent again")
        await self.decide("approve")
        self.assertEqual(await asking, DONE.text)
        self.assertEqual((len(llm.script.received), len(self.workspace.messages)), (3, 1))

    def patient(self, client: Client, api: Api) -> str:
        """Ask, and ask once more after a while."""
        return client.ask(Api(api.provider, api.client.with_options(timeout=5, max_retries=1)), HELLO).text

    def gone(self, client: Client, api: Api) -> None:
        """Ask, and be gone before the reply has ended."""
        short = Api(api.provider, api.client.with_options(timeout=1.5, max_retries=0))
        self.assertNotEqual(failing(client, short), "nothing")


class RecordTests(InBandTestCase):
    """What else is on record, and what the mode refuses."""

    @seldom
    async def test_renamed(self) -> None:
        """A client's own tool whose name is ours to give goes on working under its name, and that is on record once."""
        own = [{"type": "function", "function": {"name": "aileron_tool", "parameters": {"type": "object"}}}]
        llm = await self.begin([Call("aileron_tool"), Call("aileron_tool")])
        session, client = await self.in_band(), CLIENTS[1]
        for _ in range(2):
            said = await self.ask(session, client, own=own)
            self.assertEqual([name for _, name in said.calls], ["aileron_tool"])
            self.assertIn("agent_aileron_tool", llm.script.received[-1].tools)
        self.assertEqual(kinds(await self.audit()).count("in_band.warned"), 1)

    async def test_other_paths(self) -> None:
        """Whatever else the client asks at this address is the provider's own answer."""
        await self.begin([])
        session = await self.in_band()
        for client in CLIENTS[::4]:
            names = await self.sdk(session, client).use(lambda api: [each.id for each in api.client.models.list()])
            self.assertEqual(names, ["m"])

    async def test_refused(self) -> None:
        """A locked vault, an ended session, another key and a browser get the provider's error; no model is asked."""
        llm = await self.begin([])
        session, client = await self.in_band(), CLIENTS[0]
        url = self.home.discovery()["url"]
        for key in (session.gateway_key, session.token, "ail_i_" + "x" * 43):
            path = f"{url}/s/{key}/inband/openai/v1/chat/completions"
            reply = await self.web.ask("POST", path, "sk", {"model": "m", "messages": list(HELLO)})
            self.assertEqual((reply.status, reply.body["error"]["code"]), (403, "forbidden"))
        path = f"{url}/s/{session.in_band_key}/inband/openai/v1/chat/completions"
        asked = {"model": "m", "messages": list(HELLO)}
        reply = await self.web.ask("POST", path, "sk", asked, Origin="https://evil.test")
        self.assertEqual((reply.status, reply.body["error"]["code"]), (403, "forbidden"))
        reply = await self.web.ask("POST", path.replace("/inband/openai", ""), "sk", asked)
        self.assertEqual(reply.status, 403)
        await self.operator("vault", "lock")
        for client in CLIENTS[::2]:
            problem = await self.sdk(session, client).problem(client.asking())
            self.assertIn("aileron vault unlock", str(problem))
        await self.unlock()
        await self.web.ask("POST", f"{url}/v1/sessions/{session.id}/end", session.token, {})
        problem = await self.sdk(session, client).problem(client.asking())
        self.assertIn("session has ended", str(problem))
        self.assertEqual(llm.script.received, [])
