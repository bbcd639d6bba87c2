"""The operator's door, attacked by a process of the same user, and by a page in the operator's own browser."""

import base64
import json
from base64 import urlsafe_b64encode as urlsafe
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from twisted.internet.threads import deferToThread

from aileron.vault import keys
from tests.attacks.case import AttackTestCase
from tests.extent import seldom
from tests.functional.browsed import BrowsedTestCase
from tests.functional.browser import Browser, come
from tests.functional.chromium import Chromium, Page
from tests.functional.loopback import LoopbackSite, Neighbour
from tests.functional.operated import PASSPHRASE
from tests.functional.process import Running
from tests.functional.reactor import until

WORDS = "The two words shown at .*: "
SIBLING = "evil.aileron.localhost"
"""A name beside that of the pages, which browsers call the same site."""

# Waits for the file of `aileron open`, posts it before the browser can, and tries all that it then could.
_STEAL = """
import http.client, json, pathlib, re, sys, time, urllib.parse
run, deadline, page = pathlib.Path(sys.argv[1]) / "run", time.monotonic() + 60, ""
while "</html>" not in page and time.monotonic() < deadline:
    time.sleep(0.005)
    for file in run.glob("open-*.html"):
        page = file.read_text()
site = re.search('action="(http://[^"]+)/handover"', page)[1]
code = re.search('name="code" value="([^"]+)"', page)[1]
def ask(method, path, body=None, **headers):
    address = urllib.parse.urlsplit(site)
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=20)
    connection.request(method, path, body, {"Host": address.netloc, **headers})
    answer = connection.getresponse()
    return answer, answer.read().decode()
answer, text = ask("POST", "/handover", "code=" + code, **{"Content-Type": "application/x-www-form-urlencoded"})
import base64, hashlib, secrets
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
def written(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
cookie, page_key = answer.headers["Set-Cookie"].partition(";")[0], re.search("page-key&quot;: &quot;([^&]+)", text)[1]
key, in_json = ec.generate_private_key(ec.SECP256R1()), {"Content-Type": "application/json"}
point = written(key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))
told = json.dumps({"page_key": page_key, "public_key": point})
instance = json.loads(ask("POST", "/handover/key", told, Cookie=cookie, **in_json)[1])["instance"]
def signed(method, path, body):
    at, nonce = str(round(time.time() * 1000)), written(secrets.token_bytes(16))
    digest = written(hashlib.sha256((body or "").encode()).digest())
    said = "\\n".join(["aileron.operator.request.v1", method, path, digest, instance, nonce, at]).encode()
    pair = utils.decode_dss_signature(key.sign(said, ec.ECDSA(SHA256())))
    signature = written(b"".join(number.to_bytes(32, "big") for number in pair))
    return {"Cookie": cookie, "X-Aileron-Proof": ".".join((at, nonce, signature))}
state = json.loads(ask("GET", "/handover/state", **signed("GET", "/handover/state", None))[1])
typed = json.dumps({"words": state["words"]})
tried = {}
for method, path, body in json.loads(sys.argv[2]):
    content = in_json if method == "POST" else {}
    sent = typed if body else "{}" if content else None
    tried[path] = ask(method, path, sent, **signed(method, path, sent), **content)[0].status
print(json.dumps({"given": answer.status, "tried": tried}), flush=True)
"""
# Posts codes of the true form that are wrong, one of them as like the right one as can be; the statuses.
_GUESS = """
import http.client, json, secrets, sys, urllib.parse
site, code = sys.argv[1:]
address = urllib.parse.urlsplit(site)
letters = "BCDFGHJKLMNPQRSTVWXZ"
form = {"Content-Type": "application/x-www-form-urlencoded", "Host": address.netloc}
near = code[:-1] + next(letter for letter in letters if letter != code[-1])
guesses = ["-".join("".join(secrets.choice(letters) for _ in range(4)) for _ in range(5)) for _ in range(200)]
statuses = []
for guess in (near, *guesses):
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=20)
    connection.request("POST", "/handover", "code=" + guess, form)
    statuses.append(connection.getresponse().status)
    connection.close()
print(json.dumps(sorted(set(statuses))), flush=True)
"""
_TRIED = [
    ("GET", "/v1/runs", False),
    ("GET", "/v1/action-approvals", False),
    ("GET", "/v1/operator/sessions", False),
    ("GET", "/v1/operator/handover", False),
    ("GET", "/fragments/approvals", False),
    ("POST", "/v1/operator/handover", False),
    ("POST", "/v1/operator/handover/confirm", True),
    ("POST", "/v1/vault/lock", False),
]

# In the daemon's place: it holds the home's lock, is named by daemon.json, and says whatever it likes.  Where it is
# given an address it hands each challenge on to that and answers with the true daemon's proof.
_IMPOSTOR = """
import fcntl, http.client, http.server, json, os, pathlib, sys, threading, urllib.parse
home, seen, relayed = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
ports = json.loads((home / "ports.json").read_text())
class Fake(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with open(seen, "ab") as notes:
            notes.write(self.requestline.encode() + b" " + bytes(self.headers) + body + b"\\n")
        said = {"state": "unlocked", "service": "aileron", "token": "ail_o_fake", "items": [], "cursor": None,
                "nonce": "A" * 43, "proof": "A" * 43, "id": "x", "expires_at": "2030-01-01T00:00:00.000000Z"}
        if relayed and self.path == "/v1/operator/challenge":
            said = self.relay(json.loads(body))
        text = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def relay(self, asked):
        address = urllib.parse.urlsplit(relayed)
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=20)
        headers = {"Content-Type": "application/json", "Host": address.netloc}
        connection.request("POST", "/v1/operator/challenge", json.dumps(asked), headers)
        return json.loads(connection.getresponse().read())
    do_GET = do_POST = answer
    def log_message(self, *words):
        pass
def serve(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Fake)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "http://localhost:%d" % server.server_port
pid = json.loads(sys.argv[4])
if pid is None:
    lock = open(home / "daemon.lock", "a")
    fcntl.lockf(lock, fcntl.LOCK_EX)
    pid = os.getpid()
taken = (ports["agent"], ports["operator"]) if not relayed else (0, 0)
url, operator_url = serve(taken[0]), serve(taken[1])
said = json.loads(sys.argv[5])
said.update(url=url.replace("localhost", "127.0.0.1"), operator_url=operator_url, pid=pid)
(home / "daemon.json").write_text(json.dumps(said))
print("up", flush=True)
threading.Event().wait(120)
"""


class DoorTestCase(AttackTestCase, BrowsedTestCase):
    """A user with a vault and nothing else.

    :ivar host: the name of the pages, once they are browsed.
    """

    host: str

    async def begin(self) -> None:
        """Make the vault."""
        await self.operator("vault", "init")
        self.url = str(self.home.discovery()["operator_url"])

    async def opening(self) -> tuple[Running, Path]:
        """``aileron open`` on a terminal, and where the file's text will be that the browser was given."""
        seen, program = self.home.root / "seen", self.home.root / "browser"
        program.write_text(f'#!/bin/sh\ncat "$1" > {seen}.part && mv {seen}.part {seen}\n')
        program.chmod(0o700)
        running = self.on_terminal("open", BROWSER=str(program))
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        return running, seen

    async def browse(self) -> tuple[Page, Page, Neighbour]:
        """The operator's page, logged in, and a page of another port beside it."""
        await self.begin()
        self.browser = await Chromium.lend(self.reactor)
        self.finally_(self.browser.give_back)
        page = await self.browser.page()
        await self.log_in(page)
        await page.shows("No pending approvals.")
        neighbour = Neighbour()
        site = LoopbackSite.listen(self.reactor, neighbour)
        self.finally_(site.stop)
        foreign = await self.browser.page()
        self.host = urlsplit(self.url).hostname or ""
        await foreign.open(site.url.replace("127.0.0.1", self.host))
        await foreign.shows("neighbour")
        return page, foreign, neighbour

    async def events(self, kind: str) -> list[Mapping[str, Any]]:
        """What the events of a type on record say."""
        return [record["payload"] for record in await self.audit() if record["type"] == kind]


class HandOverTests(DoorTestCase):
    """The file by which the browser is let in."""

    async def steal(self) -> tuple[Running, Path, Mapping[str, Any]]:
        """The user opens a browser, and the attacker is faster."""
        await self.begin()
        thief = self.start(self.python(_STEAL, str(self.home.aileron), json.dumps(_TRIED)))
        opening, seen = await self.opening()
        await thief.expect(r"\{.*\}\s", 60)
        stolen = json.loads((await thief.finish(30)).stdout)
        self.assertEqual(stolen["given"], 200, "the attacker was not faster: this shows nothing")
        return opening, seen, stolen

    async def test_faster_than_the_browser(self) -> None:
        """Who posts the file first is nobody; the browser that comes after it says so, and so does the terminal."""
        opening, seen, stolen = await self.steal()
        self.assertEqual(stolen["tried"], {path: 401 for _, path, _ in _TRIED})
        await opening.expect(WORDS)
        await until(self.reactor, seen.exists, 30, "the browser's file")
        self.assertEqual(await deferToThread(come, seen.read_text()), 409)
        await opening.expect("The file was opened twice")
        self.assertEqual((await opening.finish(30)).exit_code, 1)
        (refused,) = await self.events("operator.handover_refused")
        self.assertEqual(refused["reason"], "opened_twice")
        self.assertEqual([each for each in await self.events("operator.login") if each["browser"]], [])

    async def test_alone(self) -> None:
        """Where the browser never came the terminal asks for words that nobody has seen, and any answer ends it."""
        opening, _seen, _stolen = await self.steal()
        await opening.expect(WORDS)
        opening.send("no idea")
        await opening.expect("These are not the words")
        self.assertEqual((await opening.finish(30)).exit_code, 1)
        self.assertEqual([each["reason"] for each in await self.events("operator.handover_refused")], ["wrong_words"])
        self.assertEqual(len(await self.events("operator.handover_opened")), 1)


class CodeTests(DoorTestCase):
    """The code by which a browser elsewhere is let in."""

    async def opening_by_code(self) -> tuple[Running, str]:
        """``aileron open --code`` on a terminal, and the page of a browser that sends its code."""
        running = self.start(self.home.on_terminal("aileron", "open", "--code"))
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        code = (await running.expect(r"\s((?:[A-Z]{4}-){4}[A-Z]{4})\s"))[1]
        return running, f'action="{self.url}/handover" name="code" value="{code}"'

    async def test_guessed(self) -> None:
        """Wrong codes give nothing, end nothing and are counted: before one, and while its browser waits."""
        await self.begin()
        opening, page = await self.opening_by_code()
        code = page.rpartition('value="')[2].rstrip('"')
        guessing = self.python(_GUESS, self.url, code)
        self.assertEqual(json.loads((await self.run_command(guessing, 60)).stdout), [401])
        browser = await deferToThread(come, page)
        assert isinstance(browser, Browser)
        self.assertEqual(json.loads((await self.run_command(guessing, 60)).stdout), [401])
        await opening.expect(WORDS)
        opening.send(await deferToThread(browser.words))
        self.assertEqual((await opening.finish(30)).exit_code, 0)
        self.assertEqual((await deferToThread(browser.ask, f"{self.url}/v1/runs"))[0], 200)
        self.assertTrue(await self.events("operator.login_refused"))
        self.assertEqual(await self.events("operator.handover_refused"), [])

    @seldom  # the thief of the file, who is as fast, is there each time
    async def test_known(self) -> None:
        """Who knows the code and is faster is nobody: the browser that comes after it ends that, and both are told."""
        await self.begin()
        opening, page = await self.opening_by_code()
        thief = await deferToThread(come, page)
        assert isinstance(thief, Browser)
        self.assertEqual((await deferToThread(thief.ask, f"{self.url}/v1/runs"))[0], 401)
        self.assertEqual(await deferToThread(come, page), 409)
        await opening.expect("The code was used twice")
        self.assertEqual((await opening.finish(30)).exit_code, 1)
        self.assertEqual([each["reason"] for each in await self.events("operator.handover_refused")], ["opened_twice"])


class ImpostorTests(DoorTestCase):
    """A program that stands where the daemon stood."""

    async def impostor(self, relayed: str = "", pid: int | None = None) -> Path:
        """Start it; where it notes all that it was sent."""
        notes = self.home.root / "notes"
        said = json.dumps(dict(self.home.discovery()))
        if not relayed:
            await self.command("daemon", "stop")
        fake = self.python(_IMPOSTOR, str(self.home.aileron), str(notes), relayed, json.dumps(pid), said)
        running = self.start(fake)
        self.finally_(running.kill)
        await running.expect("up")
        return notes

    async def assert_refused(self, notes: Path) -> None:
        """The operator's commands send it nothing that is worth anything."""
        for words in (("resume",), ("approval", "approve", "01" + "R" * 24, "--yes")):
            finished = await self.operator(*words, code=1)
            self.assertIn("could not prove that it is your daemon", finished.stderr)
        opening, seen = await self.opening()
        await opening.expect("could not prove that it is your daemon")
        self.assertEqual((await opening.finish(30)).exit_code, 1)
        self.assertFalse(seen.exists(), "a browser was sent there")
        sent = notes.read_bytes()
        self.assertIn(b"/v1/operator/challenge", sent, "it was never asked: this shows nothing")
        self.assertNotIn(b"/v1/operator/login", sent)
        self.assertNotIn(b"ail_o_", sent)
        key = keys.operator_key(keys.open_vault(self.state.secrets, PASSPHRASE))
        for secret in (PASSPHRASE.encode(), key, key.hex().encode(), base64.b64encode(key), urlsafe(key).rstrip(b"=")):
            self.assertNotIn(secret, sent)

    async def test_in_its_place(self) -> None:
        """On the daemon's own ports, with its lock and its file, it is asked to prove itself and cannot."""
        await self.begin()
        await self.assert_refused(await self.impostor())

    async def test_in_between(self) -> None:
        """Before the daemon that runs, handing on what it is asked, it gets a proof that holds for another address."""
        await self.begin()
        true = dict(self.home.discovery())
        await self.assert_refused(await self.impostor(self.url, true["pid"]))
        (self.home.aileron / "daemon.json").write_text(json.dumps(true))
        self.assertEqual([each for each in await self.events("operator.login") if each["browser"]], [])


class PageTests(DoorTestCase):
    """Pages in the operator's own browser."""

    async def test_form(self) -> None:
        """It may post no form of ours; if it hides where it comes from, it is counted as one that has no code."""
        page, foreign, neighbour = await self.browse()
        at, hides = await foreign.evaluate("location.href"), "no-referrer"
        for place, policy, shown in (
            (at, "unsafe-url", "Pages of another origin"),
            (at, hides, "Pages of another site"),
            (at.replace(self.host, SIBLING), "unsafe-url", "Pages of another origin"),
            (at.replace(self.host, SIBLING), hides, "Pages of another site"),
            (at.replace(self.host, "127.0.0.1"), "unsafe-url", "Pages of another origin"),
            (at.replace(self.host, "127.0.0.1"), hides, "This login link is no longer valid"),
        ):
            await foreign.open(place)
            await foreign.shows("neighbour")
            await foreign.evaluate(_FORM % (json.dumps(policy), json.dumps(f"{self.url}/handover")))
            await foreign.shows(shown)
        self.assertTrue(neighbour.cookies)
        self.assertEqual(await foreign.evaluate("sessionStorage.getItem('aileron-entering')"), None)
        await page.reload()
        await page.shows("No pending approvals.")
        self.assertEqual(await self.events("operator.login_refused"), [{"count": 1}])


_FORM = (
    "(() => { const m = document.createElement('meta'); m.name = 'referrer'; m.content = %s; document.head.append(m);"
    " const f = document.createElement('form'); f.method = 'post'; f.action = %s;"
    " f.innerHTML = '<input name=code value=guess>'; document.body.append(f); void setTimeout(() => f.submit()); })()"
)
