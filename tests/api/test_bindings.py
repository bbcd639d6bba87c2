"""Bindings: for what they are sealed, and whether that is still what the connector asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from attrs import evolve, frozen
from zope.interface import implementer

from aileron.base.json import utc
from aileron.features.gateway.values import ANTHROPIC, OPENAI, GatewaySettings
from aileron.model.audit import Event
from aileron.model.connectors import CredentialNeed
from aileron.model.interfaces.store import IBindingFlags
from aileron.model.places import UrlTemplate, UrlVariable
from aileron.model.trust import TrustKind
from aileron.model.vault import BindingFlag
from aileron.testing import MemoryConnectors, ScriptedConnector, scripted_description
from tests.features.gateway.running import relaying

from .case import NOW, ApiCase, Heard, running

FQN, NAME = "local://test/scripted", "api_key/slack/default"
BODY = {"service": "slack", "connector": FQN, "secret": "canary-secret"}
SCOPE = {
    "hosts": ["scripted.invalid:443"],
    "base_url": "https://scripted.invalid",
    "header": "Authorization",
    "format": "Bearer {key}",
}


class BindingCase(ApiCase):
    """A connector that wants a credential."""

    def setUp(self) -> None:
        super().setUp()
        self.description = scripted_description(credential=CredentialNeed("api_key", "Authorization", "Bearer {key}"))
        self.connecting()
        self.key = self.operator_token()

    def connecting(self, **changed: Any) -> None:
        """Have the connector say this of itself from now on."""
        self.description = evolve(self.description, **changed)
        self.build(connectors=MemoryConnectors.of([ScriptedConnector(self.description)]))

    def set_up(self, **more: Any) -> Heard:
        """Bind the credential."""
        return self.operator.ask("POST", "/v1/bindings/setup", self.key, {**BODY, **more})

    def shown(self) -> Any:
        return self.operator.ask("GET", f"/v1/bindings/{NAME}", self.key).json

    def rebind(self, revision: int) -> Heard:
        return self.operator.ask("POST", f"/v1/bindings/{NAME}/rebind", self.key, {"revision": revision})


class BindingTests(BindingCase):
    """Bindings, whose secrets come in and never go out."""

    def test_life(self) -> None:
        """A binding is set up, listed, shown and revoked; the secret is in no answer and no record."""
        created = self.set_up()
        self.assertEqual((created.status, created.json["name"]), (201, "api_key/slack/default"))
        listed = self.operator.ask("GET", "/v1/bindings?connector=local://test/scripted", self.key)
        self.assertEqual(len(listed.json["items"]), 1)
        for path in ("/v1/bindings/api_key/slack/default", "/v1/bindings/api_key%2Fslack%2Fdefault"):
            self.assertEqual(self.operator.ask("GET", path, self.key).json, created.json)
        record = self.operator.ask("GET", "/v1/audit", self.key)
        revoked = self.operator.ask("DELETE", "/v1/bindings/api_key%2Fslack%2Fdefault", self.key)
        self.assertEqual(revoked.status, 200)
        self.assertEqual(self.operator.ask("GET", "/v1/bindings/api_key/slack/default", self.key).status, 404)
        self.assertEqual(self.operator.ask("DELETE", "/v1/bindings/api_key/slack/default", self.key).status, 404)
        self.assertEqual(self.events(), ["binding.created", "binding.revoked"])
        for heard in (created, listed, record, revoked):
            self.assertNotIn("canary-secret", heard.text)

    def test_replaced(self) -> None:
        """Another secret comes in like the first, is on record, and leaves the binding what it is."""
        made = self.set_up().json
        path = f"/v1/bindings/{NAME}/replace"
        replaced = self.operator.ask("POST", path, self.key, {"secret": "canary-other"})
        self.assertEqual((replaced.status, replaced.json), (200, made))
        self.assertNotIn("canary", replaced.text)
        self.assertEqual(self.events(), ["binding.created", "binding.replaced"])
        self.assertEqual(self.operator.ask("POST", path, self.key, {"secret": "canary two"}).status, 400)
        other = self.operator.ask("POST", "/v1/bindings/api_key/slack/other/replace", self.key, {"secret": "x"})
        self.assertEqual(other.status, 404)

    def test_state(self) -> None:
        """Whether the credential can be used is told; of a revoked one that it is gone."""
        state = {"status": "ready", "expires_at": None, "reason": None, "surplus": None}
        self.assertEqual(self.set_up().json["state"], state)
        self.assertEqual(self.shown()["state"], state)
        revoked = self.operator.ask("DELETE", f"/v1/bindings/{NAME}", self.key).json
        self.assertEqual(revoked["state"], {**state, "status": "revoked"})

    def test_scopes(self) -> None:
        """It is told which scopes the trusted actions need, with those that no operation names, and compared."""
        settings = {"token_url": "https://login.invalid/token", "scopes": "read offline_access send admin"}
        operations = {
            name: evolve(self.description.operations["post"], name=name, scopes=scopes)
            for name, scopes in (("post", ("send",)), ("get", ("read",)), ("drop", ("admin",)))
        }
        need = CredentialNeed("oauth2", "Authorization", "Bearer {key}", settings)
        self.connecting(credential=need, operations=operations)
        target = self.operator.ask("POST", "/v1/bindings/target", self.key, {"connector": FQN}).json
        self.assertEqual((target["scopes"], target["scope"]["settings"]), (["offline_access", "send"], settings))
        given = {"client_id": "c", "token_url": "https://login.invalid/token", "access_token": "a"}
        secret = json.dumps({"grant": "authorization_code", **given, "scopes": ["read", "send"]})
        made = self.set_up(kind="oauth2", secret=secret).json
        self.assertEqual(made["scopes"], ["offline_access", "send"])
        self.assertEqual(made["state"]["reason"], "It was not given: offline_access.")
        self.assertEqual(made["state"]["surplus"], "It was given more than your trusted actions need: read.")
        self.connecting(operations={name: evolve(each, scopes=()) for name, each in operations.items()})
        (unknown,) = self.operator.ask("GET", "/v1/bindings", self.key).json["items"]
        self.assertEqual((unknown["scopes"], unknown["state"]["surplus"]), (None, None))

    def test_scopes_of_lookups(self) -> None:
        """A trusted write needs the scopes of the read that looks whether it happened, too."""
        settings = {"token_url": "https://login.invalid/token", "scopes": "read send admin"}
        post = evolve(self.description.operations["post"], scopes=("send",), lookup="find")
        find = evolve(post, name="find", scopes=("read",), lookup=None)
        drop = evolve(find, name="drop", scopes=("admin",))
        need = CredentialNeed("oauth2", "Authorization", "Bearer {key}", settings)
        self.connecting(credential=need, operations={each.name: each for each in (post, find, drop)})
        target = self.operator.ask("POST", "/v1/bindings/target", self.key, {"connector": FQN}).json
        self.assertEqual(target["scopes"], ["read", "send"])

    def test_unrecorded(self) -> None:
        """A binding that cannot be put on record is not there."""
        self.agent_token()
        self._ids -= 1  # so that the record refuses the next id as one that it has
        heard = self.set_up()
        self.assertEqual((heard.status, heard.kind), (503, "store_unavailable"))
        self.assertEqual(self.operator.ask("GET", "/v1/bindings", self.key).json["items"], [])

    def test_refused_secret(self) -> None:
        """A refused secret is not repeated, whatever is wrong with it; a second binding of one name is a conflict."""
        for secret in ("canary secret", "", "canary" * 2000, 7, ["canary"]):
            heard = self.operator.ask("POST", "/v1/bindings/setup", self.key, {**BODY, "secret": secret})
            self.assertEqual(heard.status, 400)
            self.assertNotIn("canary", heard.text)
        self.set_up()
        self.assertEqual(self.set_up().status, 409)


class ScopeTests(BindingCase):
    """A credential is sealed for what its connector asks for, and for nothing else."""

    def test_sealed_for(self) -> None:
        """The scope is the connector's own, and is shown."""
        made = self.set_up().json
        self.assertEqual((made["scope"], made["in_force"], made["fits"], made["flag"]), (SCOPE, SCOPE, True, None))
        self.assertEqual(self.operator.ask("GET", "/v1/bindings", self.key).json["items"], [made])

    def test_kind(self) -> None:
        """A binding is of the kind that its connector asks for, and of no other."""
        self.connecting(credential=CredentialNeed("basic", "Authorization", "Basic {key}"))
        heard = self.set_up(kind="api_key", secret="ada:secret")
        self.assertEqual((heard.status, heard.kind), (400, "invalid_request"))
        self.assertIn("/kind", heard.text)
        made = self.set_up(secret="ada:secret").json
        self.assertEqual((made["name"], made["kind"]), ("basic/slack/default", "basic"))

    def test_settings(self) -> None:
        """What else the kind goes by is part of the scope, and of a scope without it nothing is said."""
        self.assertNotIn("settings", self.set_up().json["scope"])
        self.connecting(credential=CredentialNeed("api_key", "", "{key}", {"query": "key"}))
        (listed,) = self.operator.ask("GET", "/v1/bindings", self.key).json["items"]
        self.assertEqual((listed["in_force"]["settings"], listed["fits"]), ({"query": "key"}, False))

    def test_refused(self) -> None:
        """Nothing is bound to what is not there, or to an address that may not be chosen or can be read in two ways."""
        self.assertEqual(self.set_up(connector="builtin://other").status, 400)
        self.assertEqual(self.set_up(base_url="https://mine.invalid").status, 400)
        self.connecting(base_url=None, bindable=True)
        self.assertEqual(self.set_up().status, 400)
        for url in ("https://127.1", "https://mine.invalid:", "https://MINE.invalid", "http://mine.invalid"):
            heard = self.set_up(base_url=url)
            self.assertEqual(heard.status, 400, url)
            self.assertIn("/base_url", str(heard.json["error"]["details"]))
        self.assertEqual(self.deps.bindings.list(), ())
        made = self.set_up(base_url="https://mine.invalid").json
        self.assertEqual((made["scope"]["base_url"], made["fits"]), ("https://mine.invalid", True))

    def test_template(self) -> None:
        """A base URL with variables is one that these can make, and the scope has the hosts that follow."""
        template = UrlTemplate("https://{site}.mine.invalid", (UrlVariable("site", "Site", "[a-z]+", "acme"),))
        hosts = ("{site}.mine.invalid:443", "up-{site}.invalid:443")
        self.connecting(base_url=None, bindable=True, template=template, hosts=hosts)
        self.assertEqual(self.set_up().status, 400)
        for url in (
            "https://mine.invalid",
            "https://evil.invalid",
            "https://a.b.mine.invalid",
            "https://1.mine.invalid",
        ):
            heard = self.set_up(base_url=url)
            self.assertEqual((heard.status, "/base_url" in str(heard.json["error"]["details"])), (400, True), url)
        self.assertEqual(self.deps.bindings.list(), ())
        made = self.set_up(base_url="https://acme.mine.invalid").json
        self.assertEqual(made["scope"]["hosts"], ["acme.mine.invalid:443", "up-acme.invalid:443"])
        self.assertTrue(made["fits"])
        (listed,) = self.operator.ask("GET", "/v1/connectors", self.key).json["items"]
        self.assertEqual(listed["template"]["variables"][0]["example"], "acme")
        self.connecting(hosts=(*hosts, "more.invalid:443"))
        self.assertFalse(self.shown()["fits"])

    def test_variable_of_settings(self) -> None:
        """A variable of the credential's settings alone is given beside the base URL, sealed, and kept at a rebind."""
        region = UrlVariable("region", "Region", "[a-z]+", "there", "here")
        need = CredentialNeed("api_key", "Authorization", "Bearer {key}", {"region": "{region}"})
        template = UrlTemplate("https://scripted.invalid", (region,))
        self.connecting(bindable=True, template=template, credential=need)
        for wrong in ({"region": "A"}, {"other": "there"}):
            heard = self.set_up(variables=wrong)
            self.assertEqual((heard.status, "/variables" in str(heard.json["error"]["details"])), (400, True), wrong)
        target = {"connector": FQN, "variables": {"region": "there"}}
        shown = self.operator.ask("POST", "/v1/bindings/target", self.key, target).json["scope"]
        made = self.set_up(variables={"region": "there"})
        self.assertEqual((made.status, made.json["scope"], made.json["fits"]), (201, shown, True))
        self.assertEqual(shown["settings"], {"region": "there"})
        self.connecting(hosts=("scripted.invalid:443", "more.invalid:443"))
        self.assertFalse(self.shown()["fits"])
        heard = self.rebind(made.json["revision"])
        self.assertEqual((heard.json["scope"]["settings"], heard.json["fits"]), ({"region": "there"}, True))
        required = UrlTemplate("https://scripted.invalid", (evolve(region, default=None),))
        self.connecting(template=required, base_url=None)
        self.assertEqual(self.set_up(base_url="https://scripted.invalid", identity="b").status, 400)

    def test_untrusted_connector(self) -> None:
        """Nothing is bound to a connector's file that is new, or was changed since it was trusted."""
        first = self.runner.put_file(TrustKind.CONNECTOR, FQN, "hosts = []")
        self.assertEqual((self.set_up().status, self.deps.bindings.list()), (409, ()))
        word = {"kind": "connector", "name": FQN, "digest": first.digest}
        self.operator.ask("POST", "/v1/trust", self.key, {"items": [word]})
        self.runner.put_file(TrustKind.CONNECTOR, FQN, "hosts = [evil]")
        heard = self.set_up()
        self.assertEqual((heard.status, self.deps.bindings.list()), (409, ()))
        self.assertIn(f"aileron connector trust {FQN}", heard.json["error"]["message"])
        self.runner.put_file(TrustKind.CONNECTOR, FQN, "hosts = []")
        self.assertEqual(self.set_up().status, 201)

    def test_no_longer_fits(self) -> None:
        """Where the connector asks for something else now, or is gone, that is told with both scopes."""
        self.set_up()
        self.connecting(hosts=("evil.invalid:443",))
        shown = self.shown()
        self.assertEqual((shown["fits"], shown["scope"]), (False, SCOPE))
        self.assertEqual(shown["in_force"], {**SCOPE, "hosts": ["evil.invalid:443"]})
        self.build(connectors=MemoryConnectors.of([]))
        self.assertEqual((self.shown()["fits"], self.shown()["in_force"]), (False, None))

    def test_rebound(self) -> None:
        """What fits no more is rebound to what was shown, by its revision and on record; nothing else is."""
        before = self.set_up().json
        self.assertEqual(self.rebind(before["revision"]).status, 409)
        self.connecting(hosts=("other.invalid:443",))
        self.assertEqual(self.rebind(before["revision"] + 1).status, 409)
        self.runner.put_file(TrustKind.CONNECTOR, FQN, "hosts = [other]")
        self.assertEqual(self.rebind(before["revision"]).status, 409)
        self.assertEqual((self.shown()["scope"], self.shown()["revision"]), (SCOPE, before["revision"]))
        self.assertEqual(self.operator.ask("POST", "/v1/bindings/x/rebind", self.key, {"revision": 1}).status, 404)
        self.runner.remove(TrustKind.CONNECTOR, FQN)
        heard = self.rebind(before["revision"])
        self.assertEqual((heard.status, heard.json["fits"]), (200, True))
        self.assertEqual(heard.json["scope"]["hosts"], ["other.invalid:443"])
        self.assertGreater(heard.json["revision"], before["revision"])
        (record, *_) = self.operator.ask("GET", "/v1/audit", self.key).json["items"]
        self.assertEqual(record["type"], "binding.rebound")
        self.assertEqual((record["payload"]["before"], record["payload"]["now"]), (SCOPE, heard.json["scope"]))

    def test_flag(self) -> None:
        """What must be known of a binding is shown with it, until it has another revision."""
        binding = self.set_up().json
        flag = BindingFlag(NAME, binding["revision"], utc(NOW), "Its secret came back in an answer.")
        self.build(flags=_Flags({NAME: flag}))
        self.assertEqual(self.shown()["flag"]["reason"], flag.reason)
        self.build(flags=_Flags({NAME: evolve(flag, revision=binding["revision"] - 1)}))
        self.assertIsNone(self.shown()["flag"])


class ProviderTests(BindingCase):
    """A credential is bound to a provider of the gateway as to a connector."""

    FQN = "gateway://anthropic"
    SCOPE: ClassVar = {
        "hosts": ["api.anthropic.com:443"],
        "base_url": "https://api.anthropic.com",
        "header": "x-api-key",
        "format": "{key}",
    }

    def setUp(self) -> None:
        super().setUp()
        self.build(features=running(relaying()))

    def target(self, connector: str) -> Heard:
        """For what a credential would be sealed."""
        return self.operator.ask("POST", "/v1/bindings/target", self.key, {"connector": connector})

    def test_shown_before(self) -> None:
        """For what a credential would be sealed is told beforehand, of providers and connectors, and binds nothing."""
        self.assertEqual(self.target(self.FQN).json, {"connector": self.FQN, "scope": self.SCOPE, "scopes": None})
        self.assertEqual(self.target(FQN).json, {"connector": FQN, "scope": SCOPE, "scopes": None})
        self.assertEqual((self.target("gateway://other").status, self.target("builtin://other").status), (400, 400))
        self.assertEqual((self.events(), self.deps.bindings.list()), ([], ()))

    def test_bound(self) -> None:
        """It is sealed for the provider's address and header, and listed by its name."""
        made = self.set_up(connector=self.FQN, service="anthropic").json
        self.assertEqual((made["name"], made["connector"]), ("api_key/anthropic/default", self.FQN))
        self.assertEqual((made["scope"], made["in_force"], made["fits"]), (self.SCOPE, self.SCOPE, True))
        listed = self.operator.ask("GET", f"/v1/bindings?connector={self.FQN}", self.key).json["items"]
        self.assertEqual(listed, [made])

    def test_moved(self) -> None:
        """Where the provider is elsewhere or gone, its credential fits no more until it is rebound; none is bound."""
        self.assertEqual(self.set_up(connector="gateway://other").status, 400)
        self.assertEqual(self.set_up(connector=self.FQN, base_url="https://mine.invalid").status, 400)
        self.assertEqual(self.deps.bindings.list(), ())
        made = self.set_up(connector=self.FQN, service="anthropic").json
        path = f"/v1/bindings/{made['name']}"
        self.build(features=running(relaying(GatewaySettings((OPENAI,)))))
        shown = self.operator.ask("GET", path, self.key).json
        self.assertEqual((shown["fits"], shown["in_force"]), (False, None))
        moved = evolve(ANTHROPIC, base_url="https://mine.invalid:8443/x")
        self.build(features=running(relaying(GatewaySettings((OPENAI, moved)))))
        shown = self.operator.ask("GET", path, self.key).json
        there = {**self.SCOPE, "hosts": ["mine.invalid:8443"], "base_url": "https://mine.invalid:8443/x"}
        self.assertEqual((shown["fits"], shown["scope"], shown["in_force"]), (False, self.SCOPE, there))
        rebound = self.operator.ask("POST", f"{path}/rebind", self.key, {"revision": made["revision"]}).json
        self.assertEqual((rebound["fits"], rebound["scope"]), (True, there))


@implementer(IBindingFlags)
@frozen
class _Flags:
    flags: dict[str, BindingFlag]

    async def all(self) -> Mapping[str, BindingFlag]:
        return self.flags

    async def put(self, flag: BindingFlag, events: Sequence[Event]) -> None:
        self.flags[flag.binding] = flag
