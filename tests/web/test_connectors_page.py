"""The connectors: how each is connected, how to connect it, test it, rebind it, and what an agent can do with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.base.load_error import LoadError
from aileron.base.text import visible
from aileron.features import FeatureSet, RunningFeatures
from aileron.model.actions import Action, ApprovalRule, Cap, Offer, PreviewRule, Step
from aileron.model.audit import Actor
from aileron.model.authority import OwnCap
from aileron.model.connectors import CredentialNeed, Operation
from aileron.model.faults import Fault
from aileron.model.places import UrlTemplate, UrlVariable
from aileron.model.runs import RunState
from aileron.model.vault import Binding, BindingFlag, CredentialState, CredentialStatus, NewBinding, Scope
from aileron.testing import MemoryBindings, MemoryConnectors, ScriptedConnector, scripted_description, scripted_offer
from aileron.web.texts import credential_problem
from tests.api.case import NOW
from tests.web.case import Reading, WebCase, read

FQN, PLAIN, FREE = "local://test/scripted", "local://test/plain", "local://test/free"
PAGE = "/connectors/local%3A%2F%2Ftest%2Fscripted"
NAME = "api_key/scripted/default"
_DOCUMENT = b'{"grant": "device_code", "client_id": "c", "token_url": "https://login.example", "access_token": "t"}'
_SCOPED = (("post", "send"), ("look", "read"))
HOSTILE = "<b onclick=x>\u202e</b>"


def reading(name: str, connector: str = FQN, **changed: Any) -> Offer:
    """An action that reads from one connector, takes nothing and asks nobody."""
    offer = scripted_offer(name, gated=False)
    changed = {"steps": (Step("look", connector, "look"),), **changed}
    return evolve(offer, read_only=True, action=evolve(offer.action, **changed))


class _Altered(MemoryBindings):
    """The bindings of a vault of an earlier version, which took what none takes today."""

    def __init__(self, *bindings: Binding) -> None:
        super().__init__()
        self._bindings = bindings

    def list(self) -> tuple[Binding, ...]:
        return self._bindings


class ConnectorsCase(WebCase):
    """A connector that wants a credential, one that wants none, and one whose credential sets the base URL."""

    def setUp(self) -> None:
        super().setUp()
        self.about = scripted_description(credential=CredentialNeed("api_key", "Authorization", "Bearer {key}"))
        self.connecting()

    def connecting(self, off: Sequence[str] = (), **changed: Any) -> None:
        """Have the connector say this of itself from now on, with these features off."""
        self.about = evolve(self.about, **changed)
        free = evolve(self.about, name=FREE, base_url=None, bindable=True)
        every = (self.about, scripted_description(fqn=PLAIN), free)
        connectors = MemoryConnectors.of([ScriptedConnector(each) for each in every])
        self.build(connectors=connectors, features=RunningFeatures(FeatureSet().without(*off)))

    def bind(self, connector: str = FQN, identity: str = "default", **more: Any) -> Binding:
        """Add a credential for what the connector asks for now."""
        scope = self.about.scope("https://scripted.invalid")
        new = NewBinding("api_key", "scripted", identity, connector, b"canary-secret", account="ops", scope=scope)
        return cast("MemoryBindings", self.deps.bindings).add(evolve(new, **more))

    def page(self, path: str = PAGE) -> Reading:
        """The page."""
        heard = self.fragment(path)
        self.assertEqual(heard.status, 200, heard.text)
        self.assertNotIn("canary", heard.text)
        return read(heard.text)

    def acts(self, path: str = PAGE) -> dict[str, dict[str, str]]:
        """The buttons, by what they do."""
        return {each["data-act"]: each for _, each in self.page(path).tags if "data-act" in each}

    def commands(self) -> list[str]:
        """The commands that can be copied."""
        return [each["data-copy"] for _, each in self.page().tags if "data-copy" in each]


class ConnectorsPageTests(ConnectorsCase):
    """C{/connectors}."""

    def states(self) -> list[str]:
        """How each connector stands, in order: first those with a credential."""
        chips = ("Connected", "Needs a credential", "Needs no credential", "Problem")
        return [word for word in self.page("/connectors").words if word in chips]

    def test_states(self) -> None:
        """Each connector is listed once and says how it is connected; what is flagged or does not fit is a problem."""
        self.assertEqual(self.states(), ["Needs a credential", "Needs no credential", "Needs a credential"])
        bound = self.bind()
        self.assertEqual(self.states()[0], "Connected")
        self.assertIn("ops", self.page("/connectors").words)
        flag = BindingFlag(bound.name, bound.revision, utc(NOW), "It came back.")
        self.successResultOf(Deferred.fromCoroutine(self.deps.flags.put(flag, ())))
        self.assertEqual(self.states()[0], "Problem")
        self.successResultOf(Deferred.fromCoroutine(self.deps.flags.put(evolve(flag, revision=9), ())))
        self.assertEqual(self.states()[0], "Connected")
        self.connecting(hosts=("elsewhere.invalid:443",))
        self.assertEqual(self.states()[0], "Problem")

    def test_readers(self) -> None:
        """The credential of a local server says how it reaches that, and who can read it."""
        for settings, said in (
            (
                {"api": "https://api.invalid"},
                "Aileron adds it to requests to https://api.invalid. The program cannot read it.",
            ),
            ({"variable": "TOKEN"}, "The program and everything that it starts can read it."),
        ):
            self.connecting(credential=CredentialNeed("api_key", "", "{key}", settings))
            self.assertIn(said, self.page().words)

    def test_two(self) -> None:
        """Two credentials for one connector are a problem, and it says what to do."""
        self.bind()
        self.bind(identity="second")
        self.assertEqual(self.states()[0], "Problem")
        self.assertIn("Revoke all but one.", self.page().text)

    def test_variables(self) -> None:
        """A connector whose base URL has variables shows it as it is declared, and the command that sets them."""
        template = UrlTemplate("https://{site}.test.invalid", (UrlVariable("site", "Site", "[a-z]+", "acme"),))
        hosts = ("{site}.test.invalid:443",)
        self.connecting(base_url=None, bindable=True, template=template, hosts=hosts)
        self.assertIn(f"aileron credential setup {FQN} --set site=acme", self.commands())
        shown = self.page().text
        for part in ("https://{site}.test.invalid", "{site}.test.invalid:443", "set your own values"):
            self.assertIn(part, shown)
        self.assertNotIn("--base-url", shown)

    def test_variable_of_settings(self) -> None:
        """A variable that is in the credential's settings alone is named, with the option that sets it."""
        template = UrlTemplate("https://test.invalid", (UrlVariable("tenant", "Your tenant", "[a-z]+", "acme", "all"),))
        self.connecting(bindable=True, template=template)
        self.assertIn("add --set NAME=VALUE. There is: tenant (Your tenant).", self.page().text)

    def test_others(self) -> None:
        """A credential whose connector is gone is listed and can be revoked; what did not load says why."""
        self.bind("local://test/gone", account="<b>ops</b>")
        self.assertIn("DELETE /v1/bindings/api_key%2Fscripted%2Fdefault", self.acts("/connectors"))
        shown = self.page("/connectors").text
        self.assertIn("what it was added for is not there", shown)
        self.assertIn("<b>ops</b>", shown)
        problem = LoadError("connector", HOSTILE, "bad.toml", 3)
        self.build(connectors=evolve(cast("MemoryConnectors", self.deps.connectors), reported=(problem,)))
        shown = self.page("/connectors").text
        self.assertIn("bad.toml", shown)
        self.assertIn(visible("\u202e"), shown)


class ConnectorPageTests(ConnectorsCase):
    """C{/connectors/…}."""

    def test_needing(self) -> None:
        """A credential that needs the operator says why, and by which command it is renewed or replaced."""
        bound = self.bind()
        bindings = cast("MemoryBindings", self.deps.bindings)
        bindings.needing[bound.name] = "It has expired."
        self.assertIn(f"It has expired. Run: aileron credential replace {bound.name}", self.page().text)
        need = CredentialNeed("oauth2", "Authorization", "Bearer {key}", {"token_url": "https://login.example"})
        self.connecting(credential=need)
        signed_in = self.bind(kind="oauth2", secret=_DOCUMENT)
        cast("MemoryBindings", self.deps.bindings).needing = {signed_in.name: "It was refused."}
        self.assertIn(f"It was refused. Run: aileron credential renew {signed_in.name}", self.page().text)

    def test_more_scopes(self) -> None:
        """A credential for which the server wants more scopes says which, and that signing in again asks for them."""
        settings = {"discover": "true", "resource": "https://mcp.example/mcp"}
        bound = evolve(
            self.bind(),
            kind="oauth2",
            scope=Scope((), "https://mcp.example", "Authorization", "Bearer {key}", settings),
        )
        state = CredentialState(CredentialStatus.NEEDS_YOU, reason="It wants more.", wanted=("read", "admin"))
        told = f"It wants more. It will ask for these scopes: read, admin. Run: aileron credential renew {bound.name}"
        self.assertEqual(credential_problem(bound, state), told)

    def test_surplus(self) -> None:
        """A credential with scopes that no trusted action needs says which, and how to have less."""
        settings = {"token_url": "https://login.example", "scopes": "read send"}
        send, read = (evolve(self.about.operations[name], scopes=(scope,)) for name, scope in _SCOPED)
        need = CredentialNeed("oauth2", "Authorization", "Bearer {key}", settings)
        self.connecting(credential=need, operations={"post": send, "look": read})
        self.runner.offer(scripted_offer("ship"))
        secret = json.dumps({**json.loads(_DOCUMENT), "scopes": ["send", "read", "<b>"]}).encode()
        bound = self.bind(kind="oauth2", secret=secret)
        self.assertIn("It was given more than your trusted actions need: read, <b>.", self.page().text)
        self.assertIn(f"aileron credential renew {bound.name}", self.commands())

    def test_connect(self) -> None:
        """Without a credential it shows the command that asks for one, and for what; no field takes a secret."""
        self.runner.offer(reading("check"))
        page = self.page()
        self.assertEqual(self.commands(), [f"aileron credential setup {FQN}"])
        for part in ("scripted.invalid:443", "https://scripted.invalid", "Authorization: Bearer {key}"):
            self.assertIn(part, page.text)
        self.assertEqual([tag for tag, _ in page.tags if tag in ("input", "form", "textarea")], [])
        self.assertNotIn("POST /v1/actions/check/run", self.acts())

    def test_built_in(self) -> None:
        """For a connector that comes with Aileron the command that does every step is shown first."""
        self.connecting(name="builtin://scripted")
        tags = self.page("/connectors/builtin%3A%2F%2Fscripted").tags
        commands = [each["data-copy"] for _, each in tags if "data-copy" in each]
        self.assertEqual(commands, ["aileron setup scripted", "aileron credential setup builtin://scripted"])
        self.connecting(off=("setup",), name="builtin://scripted")
        tags = self.page("/connectors/builtin%3A%2F%2Fscripted").tags
        commands = [each["data-copy"] for _, each in tags if "data-copy" in each]
        self.assertEqual(commands, ["aileron credential setup builtin://scripted"])

    def test_base_url(self) -> None:
        """A connector without a base URL of its own has one in the command; one that needs nothing shows no command."""
        free, plain = (f"/connectors/local%3A%2F%2Ftest%2F{name}" for name in ("free", "plain"))
        self.assertIn(f"aileron credential setup {FREE} --base-url URL", self.page(free).text)
        self.assertNotIn("binding setup", self.page(plain).text)
        self.assertIn("needs no credential", self.page(plain).text)

    def test_connected(self) -> None:
        """A credential says where it may be sent; revoking it says which enabled actions stop working."""
        self.runner.offer(reading("check"), scripted_offer(), scripted_offer("off", enabled=False))
        self.bind()
        self.assertIn("Authorization: Bearer {key}", self.page().text)
        revoke = self.acts()["DELETE /v1/bindings/api_key%2Fscripted%2Fdefault"]
        self.assertEqual(revoke["data-sure"], "Confirm: delete the secret. Stops working: check, ship-update")
        self.assertNotIn("Rebind", self.page().text)

    def test_rebind(self) -> None:
        """The scope asked for now is beside the one that was sealed; a button rebinds that revision."""
        bound = self.bind()
        self.connecting(hosts=("elsewhere.invalid:443",))
        heard = self.fragment(PAGE).text
        self.assertIn("<mark>scripted.invalid:443</mark>", heard)
        self.assertIn("<mark>elsewhere.invalid:443</mark>", heard)
        self.assertNotIn("<mark>https", heard)
        act = self.acts()["POST /v1/bindings/api_key%2Fscripted%2Fdefault/rebind"]
        self.assertEqual(json.loads(act["data-body"]), {"revision": bound.revision})
        self.assertTrue(act["data-sure"])

    def test_not_rebound(self) -> None:
        """Rebinding is not offered for an address that cannot be used, or where no credential is wanted any more."""
        bound = evolve(self.bind(), base_url="http://scripted.invalid/%2e", scope=None)
        self.build(bindings=_Altered(bound))
        self.assertIn("Revoke it and add it again.", self.page().text)
        self.assertEqual([each for each in self.acts() if "rebind" in each], [])
        self.build(bindings=_Altered(evolve(bound, base_url=None, scope=self.about.scope("https://scripted.invalid"))))
        self.connecting(credential=None)
        self.assertIn("needs no credential now", self.page().text)
        self.assertEqual([each for each in self.acts() if "rebind" in each], [])

    def test_tests(self) -> None:
        """Only an enabled action that reads, takes nothing, asks nobody and uses this connector alone is a test."""
        self.bind()
        gated = ApprovalRule(gated=True)
        steps = (Step("look", FQN, "look"), Step("other", PLAIN, "look"))
        self.runner.offer(
            reading("check"),
            reading("gated", approval=gated),
            reading("takes", input_schema={"type": "object", "required": ["text"]}),
            reading("elsewhere", PLAIN),
            reading("several", steps=steps),
            evolve(reading("off"), enabled=False),
            evolve(reading("writes"), read_only=False),
        )
        runs = [each for each in self.acts() if each.endswith("/run")]
        self.assertEqual(runs, ["POST /v1/actions/check/run"])
        self.assertIn("Not tested yet", self.page().text)

    def test_result(self) -> None:
        """The latest run of a test is shown with its outcome, why it failed, and a link to it."""
        self.bind()
        self.runner.offer(reading("check"))
        token = self.operator_token()
        heard = self.operator.ask("POST", "/v1/actions/check/run", token, {})
        self.assertEqual(heard.status, 200, heard.text)
        self.assertIn(f'href="/runs/{heard.json["run_id"]}"', self.fragment(PAGE).text)
        self.assertIn("Completed", self.page().text)
        self.assertEqual([(call.action, call.actor.type) for call in self.runner.calls], [("check", "human")])
        self.runner.usual = RunState.FAILED
        self.operator.ask("POST", "/v1/actions/check/run", token, {})
        self.assertIn("Failed", self.page().text)

    def test_no_test(self) -> None:
        """Without a test it says which action to add, by which command, or that the connector reads nothing."""
        self.bind()
        self.assertIn("Operations that only read: look.", self.page().text)
        command = f"aileron action new check-scripted --connector {FQN} --ungated --edit"
        self.assertIn(command, self.commands())
        self.connecting(operations={"post": Operation("post", "write", idempotent=False)})
        self.assertIn("no operation that only reads", self.page().text)
        self.assertNotIn(command, self.commands())

    def test_agents(self) -> None:
        """Each trusted action says whether it asks and how often it may run; what none uses cannot be called."""
        preview = ApprovalRule(gated=True, preview=PreviewRule(FQN, "look"))
        changed: Action = evolve(scripted_offer().action, approval=preview, limits=(Cap(3, 3600.0),))
        self.runner.offer(evolve(scripted_offer(), action=changed), reading("elsewhere", PLAIN))
        cap = OwnCap(Cap(9, 86400.0), utc(NOW), "operator-1", "ship-update")
        self.successResultOf(Deferred.fromCoroutine(self.runner.set_caps([cap], Actor("human", "operator-1"))))
        page = self.page()
        self.assertIn(("a", "/actions/ship-update"), [(tag, each.get("href")) for tag, each in page.tags])
        for part in ("Required", "Makes changes", "3 per hour; 9 per day", "post, look"):
            self.assertIn(part, page.words)
        self.assertEqual(page.words.count("Agents can call only the operations that an action uses."), 1)
        self.assertEqual(page.words.count("–"), 2)
        self.assertNotIn("elsewhere", page.text)

    def test_nobody(self) -> None:
        """A name that no connector has is no page; neither is any of it there for who is not logged in."""
        self.assertEqual(self.fragment("/connectors/local%3A%2F%2Ftest%2Fnone").status, 404)
        self.assertEqual(self.get(f"/fragments{PAGE}").status, 401)


class PinnedTests(ConnectorsCase):
    """A connector to a server whose tools are pinned."""

    def setUp(self) -> None:
        super().setUp()
        pinned = Operation("post", "write", idempotent=False, description="Posts.", pin="sha256:" + "a" * 64)
        self.connecting(operations={"post": pinned})
        self.bind()
        offer = scripted_offer("announce", gated=False)
        self.runner.offer(evolve(offer, action=evolve(offer.action, steps=(Step("post", FQN, "post"),))))

    def ended(self, **more: Any) -> None:
        """Have a run of the action end so."""
        heard = self.operator.ask("POST", "/v1/actions/announce/run", self.operator_token(), {})
        self.runner.finish(heard.json["run_id"], **more)

    def test_pin(self) -> None:
        """An operation says to which description it is pinned."""
        self.assertIn("pinned to sha256:aaaaaaaaaaaa…", self.page().text)

    def test_changed(self) -> None:
        """If the latest run found another tool, the page says so, and by which command one sees what changed."""
        command = f"aileron connector import {FQN}"
        self.assertNotIn(command, self.commands())
        self.ended(state=RunState.FAILED, fault=Fault("hash_mismatch", "The tool is not the one that was reviewed."))
        self.assertIn(command, self.commands())
        self.assertIn("The server has changed tools since you reviewed them.", self.page().text)
        self.ended(state=RunState.COMPLETED, result={"output": 1})
        self.assertNotIn(command, self.commands())
