"""Requests of npm, twine and cargo: what they publish is named, and what could publish something else is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import parse
from aileron.base.json import JSON, digest_of_bytes
from aileron.connectors import FORWARDED_INPUTS, SHOW_PACKAGE, UploadRequest
from aileron.features.own_tools import _door
from aileron.features.own_tools._forms import form_digest, read_long
from aileron.features.own_tools._recognition import Recognised, recognise
from aileron.features.own_tools.action_file import write_action
from aileron.features.own_tools.values import ToolAnswer, ToolRequest
from aileron.model.connectors import FORWARD
from aileron.model.runs import Decision
from aileron.model.vault import NewBinding
from aileron.review._headline import find_title
from aileron.testing import MemoryConnectors
from tests.connectors.kinds.http.test_forward import SECRET, TRACKER
from tests.connectors.packages import kit
from tests.connectors.service import Service, answer, json_answer, spec_of
from tests.runner.kit import OPERATOR

from .door import HOLD, DoorCase
from .requests import declared, see, shipped
from .test_service import BASE, HOST


def tool_request(name: str, request: UploadRequest, *headers: tuple[str, str]) -> ToolRequest:
    """Return a request as a tool sends it to a service."""
    host = declared(shipped(name)).hosts[0]
    return ToolRequest("s", 1, host, request.method, request.target, (*request.headers, *headers), request.body)


def publish(name: str, request: UploadRequest, *headers: tuple[str, str]) -> Recognised:
    """Return what a request to a service is recognised as."""
    return recognise(tool_request(name, request, *headers), shipped(name))


class PublishTests(SynchronousTestCase):
    """The three services, as they come with Aileron."""

    def setUp(self) -> None:
        self.body = kit.npm_body(kit.npm_package())

    def test_publish(self) -> None:
        """A publish waits for approval, and its package is named in the title of the request."""
        uploads = {
            "npm": kit.npm_request(self.body),
            "pypi": kit.twine_request(kit.twine_parts(kit.targz({}), "acme_app-1.3.0.tar.gz")),
            "crates": kit.cargo_request(kit.targz({})),
        }
        for name, request in uploads.items():
            found, about = publish(name, request), shipped(name)
            self.assertEqual((found.effect, found.problem, found.package["version"]), ("write", "", "1.3.0"), name)
            inputs: dict[str, JSON] = {"host": "h", "method": "PUT", "target": "/", "recognised": found.to_json()}
            presentation, shown = about.find_presented(about.operations[FORWARD], inputs)
            assert presentation is not None
            self.assertEqual(presentation.titles[0], "Publish ${in.package} ${in.version} to ${in.host}")
            self.assertEqual((shown["package"], shown["version"]), (found.package["name"], "1.3.0"))

    def test_no_publish(self) -> None:
        """Tags, deprecations, removals and yanks wait for approval too, and those that are operations are shown so."""
        tag = see("npm", "PUT", "/-/package/@acme%2fapp/dist-tags/latest", "1.3.0")
        self.assertEqual((tag.effect, tag.operation), ("write", "set_tag"))
        self.assertEqual(tag.inputs, {"package": "@acme/app", "tag": "latest", "version": "1.3.0"})
        yank = see("crates", "DELETE", "/api/v1/crates/acme-app/1.3.0/yank")
        self.assertEqual((yank.effect, yank.operation), ("write", "yank"))
        removed = {name: value for name, value in self.body.items() if name != "_attachments"}
        for method, target, body in (
            ("PUT", "/@acme%2fapp", removed),
            ("PUT", "/@acme%2fapp/-rev/3", removed),
            ("DELETE", "/@acme%2fapp/-rev/3", b""),
            ("DELETE", "/@acme/app/-/app-1.3.0.tgz/-rev/4", b""),
            ("DELETE", "/-/package/@acme%2fapp/dist-tags/next", b""),
        ):
            found = see("npm", method, target, body)
            self.assertEqual((found.effect, found.operation, found.package, found.problem), ("write", "", {}, ""))
        self.assertEqual(see("npm", "GET", "/@acme%2fapp?write=true").effect, "read")

    def test_refused(self) -> None:
        """A request that may publish something that would not be shown is refused."""
        both: dict[str, Any] = {**self.body, "versions": {**self.body["versions"], "9.9.9": {}}}
        for name, request in (
            ("npm", kit.npm_request(both)),
            ("npm", kit.npm_request(self.body, "/other")),
            ("pypi", kit.twine_request([])),
            ("crates", kit.cargo_request(b"", b"more")),
        ):
            found = publish(name, request)
            self.assertEqual((found.effect, found.package), ("", {}), name)
            self.assertIn("It may publish a package, but cannot be shown: it ", found.problem)

    def test_login(self) -> None:
        """A login of npm is refused, and a request for a token says that its answer has one."""
        self.assertEqual(see("npm", "PUT", "/-/user/org.couchdb.user:me", {"password": "x"}).effect, "")
        self.assertEqual(see("npm", "POST", "/-/v1/login", {}).effect, "")
        self.assertTrue(see("npm", "POST", "/-/npm/v1/tokens", {}).returns_credential)
        self.assertTrue(see("npm", "GET", "/-/npm/v1/tokens").returns_credential)

    def test_credentials(self) -> None:
        """Each tool's placeholder is accepted as it sends it, and another token is refused."""
        pair = base64.b64encode(b"aileron-placeholder:aileron-placeholder").decode()
        token = base64.b64encode(b"__token__:aileron-placeholder").decode()
        crate = kit.cargo_request(kit.targz({}))
        wheel = kit.twine_request(kit.twine_parts(kit.targz({}), "acme_app-1.3.0.tar.gz"))
        for name, request, value in (
            ("npm", kit.npm_request(self.body), "Bearer aileron-placeholder"),
            ("pypi", wheel, f"Basic {pair}"),
            ("pypi", wheel, f"Basic {token}"),
            ("crates", crate, "aileron-placeholder"),
        ):
            found = publish(name, request, ("Authorization", value))
            self.assertEqual((found.effect, found.problem), ("write", ""), name)
        for name, request, value in (
            ("npm", kit.npm_request(self.body), "Bearer npm_another"),
            ("pypi", wheel, f"Basic {base64.b64encode(b'__token__:pypi-another').decode()}"),
            ("crates", crate, "cio_another"),
        ):
            self.assertTrue(publish(name, request, ("Authorization", value)).is_foreign, name)

    def test_repetition(self) -> None:
        """A publish that is repeated has the same form; one of other bytes has not.

        Each run of twine has another boundary, and its fields in another order.
        """
        parts = kit.twine_parts(kit.targz({}), "acme_app-1.3.0.tar.gz")
        one, other = (
            kit.twine_request(parts),
            kit.twine_request(kit.twine_parts(kit.targz({"a": b""}), parts[-1][1] or "")),
        )
        again = UploadRequest(
            one.method,
            one.target,
            tuple((name, value.replace(kit.BOUNDARY, "0" * 32)) for name, value in one.headers),
            kit.twine_request([*reversed(parts)]).body.replace(kit.BOUNDARY.encode(), b"0" * 32),
        )
        forms = [
            form_digest(tool_request("pypi", each), declared(shipped("pypi")), same=publish("pypi", each).same)
            for each in (one, again, other)
        ]
        self.assertEqual(forms[0], forms[1])
        self.assertNotEqual(forms[0], forms[2])

    def test_action(self) -> None:
        """The action shows the package of a request, and passes everything on to what shows it. Others show none."""
        about = shipped("npm")
        action = parse(write_action(about, declared(about)).encode(), "npm-tools.md")
        assert action.approval.preview is not None
        self.assertEqual(action.approval.preview.operation, SHOW_PACKAGE)
        self.assertEqual(set(action.approval.preview.args), FORWARDED_INPUTS)
        self.assertTrue(about.operations[SHOW_PACKAGE].tools_only)
        other = shipped("github")
        self.assertIsNone(parse(write_action(other, declared(other)).encode(), "github-tools.md").approval.preview)
        self.assertNotIn(SHOW_PACKAGE, other.operations)


class StoredTests(DoorCase):
    """Packages from the door to the registry: a double at the other end of memory transports."""

    def setUp(self) -> None:
        super().setUp()
        self.wire = Service()
        text = TRACKER.replace("[own_tools]", '[own_tools]\npackages = "npm"').replace("8080/api", "8080")
        connector = evolve(self.wire.connector(spec_of(text)), open_content=self.stored.open)
        description = connector.describe()
        self.connectors = MemoryConnectors.of([connector])
        self.believe_connectors()
        self.write("tracker-tools", write_action(description, declared(description)))
        scope = description.scope(BASE.removesuffix("/api"))
        assert scope is not None
        self.bindings.add(NewBinding("api_key", "tracker", "me", description.name, SECRET, scope=scope))
        self.restart()

    def publish(self, body: bytes, *, long: bool) -> Deferred[ToolAnswer]:
        """Send a publish, as a long body or a short one."""
        headers = (("Content-Type", "application/json"), ("X-Key", "aileron-placeholder"))
        more: dict[str, Any] = {}
        if long:
            spool = self.spools.open("session-1", read_long("application/json"))
            spool.write(body)
            more = {"long": self.sync(spool.finish()), "spool": spool}
        return self.later(
            self.door.handle(self.request("PUT", "/app", b"" if long else body, host=HOST, headers=headers, **more))
        )

    def test_stored(self) -> None:
        """The body of a publish is stored, long or not; the review shows its package, and it is sent as it came."""
        for number, long in enumerate((False, True)):
            body = json.dumps(kit.npm_body(kit.npm_package("app", f"1.3.{number}"), "app", f"1.3.{number}")).encode()
            asked = self.publish(body, long=long)
            self.clock.advance(HOLD)
            self.assertEqual("Waits for approval", self.delivered(asked).reason)
            run = self.runs()[-1]
            self.assertEqual((run.arguments["content"], run.arguments["size"]), (digest_of_bytes(body), len(body)))
            self.assertNotIn("body", run.arguments)
            self.wire.replies += [json_answer({"error": "Not found"}, 404)] * 2
            self.wire.advance(0)
            viewing = self.later(self.runner.decisions.approval(run.id))
            self.wire.advance(0)
            approval = self.successResultOf(viewing)
            self.assertEqual(find_title(run.action, approval.review), f"Publish app 1.3.{number} to {HOST}")
            seen = {each.label: each.value for each in approval.review.shown_preview.fields}
            self.assertEqual((seen["Package"], seen["Warning"]), (f"app 1.3.{number}", None))
            self.assertIn("package/index.js (4 bytes)", seen["Files"] or "")
            self.wire.replies += [json_answer({"error": "Not found"}, 404)] * 4 + [answer(b"{}", 201)]
            deciding = self.later(self.runner.decisions.decide(run.id, Decision(True, approval.digest, OPERATOR.id)))
            self.wire.advance(0)
            self.successResultOf(deciding)
            self.wire.advance(0)
            self.assertEqual(self.wire.requests[-1].partition(b"\r\n\r\n")[2], body)

    def test_refused(self) -> None:
        """A long body that publishes two versions is refused as a short one is."""
        body = kit.npm_body(kit.npm_package("app"), "app")
        both = json.dumps({**body, "versions": {**body["versions"], "9.9.9": {}}}).encode()
        for long in (False, True):
            answered = self.delivered(self.publish(both, long=long))
            self.assertIn("exactly one version", answered.body.decode())
        self.assertEqual(self.runs(), [])

    def test_too_long(self) -> None:
        """A body that is too long to be shown as a package is refused."""
        self.patch(_door, "MOST_PACKAGE_BYTES", 10)
        body = json.dumps(kit.npm_body(kit.npm_package("app"), "app")).encode()
        self.assertIn("at most 32 MiB", self.delivered(self.publish(body, long=True)).body.decode())
        self.assertEqual(self.runs(), [])
