"""The read that shows a package: of the request as it would be sent, with the registry's published version."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors import (
    SHOW_PACKAGE,
    Flight,
    HttpConnector,
    OutgoingRequest,
    ServiceAnswer,
    ServiceUnreachable,
    UploadRequest,
)
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.http import _packages
from aileron.connectors.kinds.http._spec import HttpSpec
from aileron.testing import MemoryCredential
from tests.connectors.packages.kit import cargo_request, npm_body, npm_package, npm_request, targz
from tests.connectors.service import NOW
from tests.connectors.test_builtin import BUILTIN

SECRET = b"canary_42"


@define
class Registries:
    """All registries: they answer what a test says, and note what they are asked.

    :ivar answers: the answers, by URL. For others there is none.
    """

    answers: dict[str, ServiceAnswer] = field(factory=dict)
    asked: list[OutgoingRequest] = field(factory=list)

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Answer."""
        self.asked.append(message)
        if message.url not in self.answers:
            return fail(ServiceUnreachable())
        return succeed(self.answers[message.url])

    def has(self, url: str, body: bytes | Mapping[str, JSON], **headers: str) -> None:
        """Have an answer."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers[url] = ServiceAnswer(200, headers, content)


class PreviewTests(SynchronousTestCase):
    """L{PackagePreview}, with the connectors that come with Aileron."""

    def setUp(self) -> None:
        self.registries = Registries()

    def spec(self, name: str) -> HttpSpec:
        """Return a connector's spec."""
        spec = read_file((BUILTIN / f"{name}.toml").read_bytes(), name, "builtin").spec
        assert isinstance(spec, HttpSpec)
        return spec

    def show(self, spec: HttpSpec, request: UploadRequest, seconds: float = 5) -> Any:
        """Return what is shown of a request."""
        assert spec.description.own_tools is not None
        inputs: dict[str, JSON] = {
            "host": spec.description.own_tools.hosts[0],
            "method": request.method,
            "target": request.target,
            "headers": [f"{name}: {value}" for name, value in request.headers],
            **({"body_base64": base64.b64encode(request.body).decode()} if request.body else {}),
        }
        transport: Any = self.registries
        connector = HttpConnector(spec, transport, Clock(), lambda: NOW)
        asked = connector.prepare(SHOW_PACKAGE, inputs, spec.description.base_url or "", "effect-1")
        credential = MemoryCredential(SECRET, "Bearer {key}")
        outcome = self.successResultOf(Deferred.fromCoroutine(connector.read(asked, credential, seconds)))
        self.assertIsNone(outcome.fault)
        return outcome.output

    def test_credential(self) -> None:
        """A package of npm is read from its registry with the credential, and a crate from elsewhere without one."""
        tarball = "https://registry.npmjs.org/@acme/app/-/app-1.2.0.tgz"
        place = "https://registry.npmjs.org/@acme%2Fapp/next"
        self.registries.has(place, {"version": "1.2.0", "dist": {"tarball": tarball}})
        self.registries.has(tarball, npm_package(version="1.2.0"))
        shown = self.show(self.spec("npm"), npm_request(npm_body(npm_package())))
        self.assertEqual((shown["package"], shown["compared_with"]), ("@acme/app 1.3.0", "1.2.0"))
        self.registries.has("https://crates.io/api/v1/crates/acme-app", {"crate": {"newest_version": "1.2.0"}})
        crate = "https://static.crates.io/crates/acme-app/acme-app-1.2.0.crate"
        self.registries.has(crate, targz({"acme-app-1.2.0/a": b"x"}))
        shown = self.show(self.spec("crates"), cargo_request(targz({"acme-app-1.3.0/a": b"x"})))
        self.assertEqual((shown["compared_with"], shown["changes"]), ("1.2.0", "All files are the same."))
        self.assertEqual([SECRET.decode() in str(each.headers) for each in self.registries.asked], [True] * 3 + [False])
        self.assertEqual({each.method for each in self.registries.asked}, {"GET"})

    def test_undeclared(self) -> None:
        """A host that the connector's file does not declare is not asked."""
        spec = self.spec("crates")
        spec = evolve(spec, description=evolve(spec.description, hosts=("crates.io:443",)))
        self.registries.has("https://crates.io/api/v1/crates/acme-app", {"crate": {"newest_version": "1.2.0"}})
        shown = self.show(spec, cargo_request(targz({"acme-app-1.3.0/a": b"x"})))
        self.assertIn("does not declare the host static.crates.io:443", shown["compared_with"])
        self.assertEqual(len(self.registries.asked), 1)

    def test_no_answer(self) -> None:
        """If a registry does not answer, is not in time, or answers encoded, there is no comparison."""
        npm, crates = self.spec("npm"), self.spec("crates")
        publish, crate = npm_request(npm_body(npm_package())), cargo_request(targz({"acme-app-1.3.0/a": b"x"}))
        self.assertIn("Not compared with a published version: ", self.show(npm, publish)["compared_with"])
        self.registries.has("https://crates.io/api/v1/crates/acme-app", {"crate": {"newest_version": "1.2.0"}})
        self.assertIn("did not answer in time", self.show(crates, crate)["compared_with"])
        url = "https://static.crates.io/crates/acme-app/acme-app-1.2.0.crate"
        self.registries.has(url, b"", **{"content-encoding": "br"})
        self.assertIn("an encoding that was not asked for", self.show(crates, crate)["compared_with"])
        self.patch(_packages, "_SHARE_OF_FETCHING", 0)
        self.assertIn("takes too long", self.show(npm, publish)["compared_with"])

    def test_nothing(self) -> None:
        """A request that publishes no package is told to be so, and one that cannot be shown as well."""
        spec = self.spec("npm")
        self.assertEqual(self.show(spec, npm_request({}))["package"], "This request publishes no package.")
        self.assertIn("one way only", self.show(spec, npm_request(b"{"))["warning"])
        self.assertEqual(self.registries.asked, [])
