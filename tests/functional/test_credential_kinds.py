"""A credential of each kind, against a service that repeats whatever it is sent: its secret is nowhere else."""

import base64
import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from twisted.web.resource import Resource
from twisted.web.server import Request

from aileron.home.lock import running_pid
from tests.functional import canary
from tests.functional.loopback import LoopbackSite, headers_of
from tests.functional.operated import PASSPHRASE, OperatedTestCase

_CONNECTOR = """
[connector]
name = "local://me/{name}"
version = "1.0.0"
base_url = {{ default = "{url}", bindable = false }}
hosts = ["{address}"]
private_network = true

[credential]
{credential}

[operations.send]
method = "POST"
path = "/send"
json = {{ text = "${{in.text}}" }}
effect = "write"
"""
_ACTION = """\
+++
name = "{name}"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/{name}"
version = "1.0.0"
capabilities = ["send"]

[[inputs]]
name = "text"
type = "string"
description = "What to send"

[[execute]]
id = "send"
connector = "local://me/{name}"
op = "send"
inputs = {{ text = "${{args.text}}" }}
+++
# Send

Sends a text.
"""


@attrs.frozen
class Bound:
    """A credential as it is bound.

    :ivar table: of the connector's file.
    :ivar secret: what is typed.
    :ivar canaries: what no file, answer or process may show.
    """

    table: str
    secret: str
    canaries: tuple[str, ...]


class _Echo(Resource):
    """Answers with the request as it came; or with a token, where one is asked for."""

    isLeaf = True

    def __init__(self, token: str) -> None:
        Resource.__init__(self)
        self.token = token
        self.requests: list[Mapping[str, str]] = []

    def render_POST(self, request: Request) -> bytes:
        """Repeat everything, in the body, in a header and in the reason."""
        assert request.content is not None
        body = request.content.read().decode()
        request.setHeader("Content-Type", "application/json")
        if not request.path.endswith(b"/send"):
            end = datetime.now(UTC) + timedelta(hours=1)
            told = {"token": self.token, "access_token": self.token, "token_type": "bearer"}
            return json.dumps({**told, "expires_at": end.isoformat(), "expires_in": 3600}).encode()
        seen = {"uri": request.uri.decode(), "body": body, **headers_of(request)}
        self.requests.append(seen)
        request.setHeader("X-Seen", json.dumps(seen))
        if "fail" in body:
            request.setResponseCode(500, json.dumps(seen).encode())
        return json.dumps(seen).encode()


def _canary(kind: str) -> str:
    return f"canary-{kind}-{uuid.uuid4().hex}"


def kinds(url: str, token: str) -> Mapping[str, Bound]:
    """Make one of each kind.

    :param token: that the service gives out.
    """
    key, query, password, client, aws, session = map(_canary, ("key", "query", "password", "client", "aws", "session"))
    pem = (
        rsa.generate_private_key(public_exponent=65537, key_size=2048)
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        .decode()
    )
    app = {"app_id": "17", "installation_id": "4", "private_key": pem}
    keys = {"access_key_id": "AKIDEXAMPLE00000", "secret_access_key": aws, "session_token": session}
    oauth = {"grant": "client_credentials", "client_id": "me", "client_secret": client, "token_url": f"{url}/token"}
    return {
        "header": Bound('kind = "api_key"\nheader = "X-Key"\nformat = "{key}"', key, (key,)),
        "query": Bound('kind = "api_key"\nquery = "key"', query, (query,)),
        "basic": Bound(
            'kind = "basic"', f"ada:{password}", (password, base64.b64encode(f"ada:{password}".encode()).decode())
        ),
        "oauth": Bound(f'kind = "oauth2"\ntoken_url = "{url}/token"', json.dumps(oauth), (client, token)),
        "github": Bound('kind = "github_app"', json.dumps(app), (pem.splitlines()[5], token)),
        "aws": Bound('kind = "aws_sigv4"\nregion = "eu-west-1"\nservice = "sqs"', json.dumps(keys), (aws, session)),
    }


class KindsTests(OperatedTestCase):
    """One home with all of them."""

    executes_daemons = True

    async def test_nowhere(self) -> None:
        """Each is sent to its service, which repeats it, and is shown by nothing that an agent or a file could show."""
        echo = _Echo(_canary("token"))
        site = LoopbackSite.listen(self.reactor, echo)
        self.finally_(site.stop)
        await self.operator("vault", "init")
        bound = kinds(site.url, echo.token)
        for name, each in bound.items():
            await self.connect(name, each, site.url)
        session = await self.session()
        said: dict[str, Any] = {}
        for name in bound:
            for text in ("hello", "fail"):
                said[f"{name} {text}"] = (await self.run_action(session, name, {"text": text}, wait=30)).text
        self.assertEqual(len(echo.requests), 2 * len(bound))
        for name, request in zip(bound, echo.requests[::2], strict=True):
            self.assert_sent(name, bound[name], request)
        said["runs"] = json.dumps([await self.told("runs", "show", each["id"]) for each in await self.runs()])
        said["audit"] = json.dumps(await self.audit())
        said["bindings"] = json.dumps(await self.told("binding", "list"))
        self.assert_nowhere(bound, said)
        await self.kill_daemon()
        self.assert_nowhere(bound, said)

    async def connect(self, name: str, bound: Bound, url: str) -> None:
        """Add its connector and an action, and bind it."""
        text = _CONNECTOR.format(name=name, url=url, address=url.removeprefix("http://"), credential=bound.table)
        self._put_connector(name, text)
        path = self.home.project / f"{name}.md"
        path.write_text(_ACTION.format(name=name))
        await self.add(path)
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": bound.secret}
        setup = ("binding", "setup", f"local://me/{name}")
        self._expect(await self.command_line.run(setup, self.home.environment(), fed, self.confine), 0)

    async def runs(self) -> list[Mapping[str, Any]]:
        """All runs."""
        found: list[Mapping[str, Any]] = (await self.told("runs", "list"))["items"]
        return found

    def assert_sent(self, name: str, bound: Bound, request: Mapping[str, str]) -> None:
        """Fail unless the service had what proves that its credential was used."""
        if name == "aws":
            self.assertIn("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE00000/", request["authorization"])
            self.assertEqual(request["x-amz-security-token"], bound.canaries[-1])
        else:
            self.assertIn(bound.canaries[-1], json.dumps(dict(request)))

    def assert_nowhere(self, bound: Mapping[str, Bound], said: Mapping[str, str]) -> None:
        """Fail if a file, an answer, an argument or an environment shows one of them."""
        pid = running_pid(self.state)
        for word in (PASSPHRASE, *(each for one in bound.values() for each in one.canaries)):
            self.assertEqual(canary.in_files(self.home.root, word), [])
            for place, text in said.items():
                self.assertEqual(list(canary.in_bytes(place, text.encode(), word)), [])
            if pid:
                self.assertEqual(canary.in_process(pid, word), [])
