"""C{doc/services}, played: each service is connected by its one command, from an empty home to the read at its end.

The hosts of the services lead to a double, in a network of its own; it answers what was recorded of the service.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

import attrs
from twisted.internet.interfaces import IProtocolFactory
from twisted.web.server import Site

from aileron.features.setup.services import read_service
from tests.extent import seldom
from tests.functional.listings.internet import HTTPS, Internet
from tests.functional.listings.page import PageTestCase, Play
from tests.functional.listings.recorded import ACCOUNT, CLIENT, CLIENT_SECRET, RecordedService, recorded_answer
from tests.functional.process import Command
from tests.functional.test_first_run import answers_of_new_vault

KEY = "key-canary-58d1"
PAIR = f"{ACCOUNT}:{KEY}"
AWS = json.dumps({"access_key_id": "AKIACANARY000000", "secret_access_key": KEY})
_ADDED = re.compile(r"^\| `[^|]+` \| [^|]+ \| [^|]+ \| yes \|$", re.MULTILINE)
_BROWSER = """
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[1])
urllib.request.urlopen(sys.argv[2], context=context).read()
"""


@attrs.frozen
class Connecting:
    """What a user says and gets who connects a service.

    :ivar host: that is asked at the end; empty: none is.
    :ivar place: the questions on where the service is, and the answers.
    :ivar key: that is typed; empty: one signs in with a browser.
    :ivar sent: what of the key the service gets, in a header or in the address.
    :ivar signs_in_at: the hosts where one signs in, and whether the client has a secret.
    """

    host: str
    place: Sequence[tuple[str, str]] = ()
    key: str = KEY
    sent: str = KEY
    signs_in_at: Sequence[str] = ()
    has_secret: bool = True


_USUAL = ((r"Address of the service \[https://.+\]: ", ""),)
_REGION = ((r"Region of AWS \(such as eu-west-1\): ", "eu-west-1"),)
_BASIC = base64.b64encode(PAIR.encode()).decode()
_GOOGLE = ("accounts.google.com", "oauth2.googleapis.com")
_SIGNED_IN = "Bearer access-canary-77a1"
SERVICES: Mapping[str, Connecting] = {
    "aileron setup --choose aws": Connecting("sts.eu-west-1.amazonaws.com", _REGION, AWS, "AKIACANARY000000/"),
    "aileron setup --choose crates": Connecting("crates.io"),
    "aileron setup --choose discord": Connecting("discord.com", sent=f"Bot {KEY}"),
    "aileron setup --choose github": Connecting("api.github.com"),
    "aileron setup --choose gitlab": Connecting("gitlab.com", _USUAL),
    "aileron setup --choose gmail": Connecting("gmail.googleapis.com", (), "", _SIGNED_IN, _GOOGLE),
    "aileron setup --choose google_calendar": Connecting("www.googleapis.com", (), "", _SIGNED_IN, _GOOGLE),
    "aileron setup --choose google_drive": Connecting("www.googleapis.com", (), "", _SIGNED_IN, _GOOGLE),
    "aileron setup --choose jira": Connecting(
        "acme.atlassian.net", ((r"Name of your site \(such as acme\): ", "acme"),), PAIR, f"Basic {_BASIC}"
    ),
    "aileron setup --choose linear": Connecting("api.linear.app"),
    "aileron setup --choose microsoft365": Connecting(
        "graph.microsoft.com",
        ((r"Directory \(tenant\) ID, .*\[common\]: ", ""),),
        "",
        _SIGNED_IN,
        ("login.microsoftonline.com",),
        has_secret=False,
    ),
    "aileron setup --choose notion": Connecting("api.notion.com"),
    "aileron setup --choose npm": Connecting("registry.npmjs.org"),
    "aileron setup --choose ntfy": Connecting("ntfy.sh", _USUAL),
    "aileron setup --choose pagerduty": Connecting("api.pagerduty.com", sent=f"Token token={KEY}"),
    "aileron setup --choose pypi": Connecting("upload.pypi.org", (), PAIR, f"Basic {_BASIC}"),
    "aileron setup --choose s3": Connecting("s3.eu-west-1.amazonaws.com", _REGION, AWS, "AKIACANARY000000/"),
    "aileron setup --choose sentry": Connecting("sentry.io", _USUAL),
    "aileron setup --choose slack": Connecting("slack.com"),
    "aileron setup --choose sns": Connecting("sns.eu-west-1.amazonaws.com", _REGION, AWS, "AKIACANARY000000/"),
    "aileron setup --choose telegram": Connecting("api.telegram.org", sent=f"/bot{KEY}/"),
    "aileron setup --choose twilio": Connecting("api.twilio.com", (), PAIR, f"Basic {_BASIC}"),
    "aileron setup --choose webhook": Connecting(
        "", (("Address of the service: ", "https://hooks.example.com/incoming"),), sent=""
    ),
}


class ServiceTestCase(PageTestCase):
    """A user with a key of a service, or a client that is registered there."""

    line: ClassVar[str]

    async def connect(self, line: str) -> str:
        """Connect a service; what the terminal showed."""
        name, connecting = line.rpartition(" ")[2], SERVICES[line]
        ready = read_service(name)
        double = RecordedService(recorded_answer(ready, self.state) if ready.check else None)
        hosts = [*connecting.signs_in_at, *([connecting.host] if connecting.host else ["hooks.example.com"])]
        self.internet = await Internet.open(self, hosts, {HTTPS: cast(IProtocolFactory, Site(double))})
        self.behind = self.internet.prefix
        self.secrets += [*double.secrets, KEY]
        added = len(_ADDED.findall(self.page_text())) or len(ready.chosen)
        answers = [
            *answers_of_new_vault().items(),
            *([] if len(ready.actions) == 1 else [(r"Actions to add \[.*\]: ", "")]),
            (rf"Trust {f'all {added}, exactly as shown' if added > 1 else '.*'}\? \[y/N\] ", "y"),
            *connecting.place,
        ]
        if connecting.signs_in_at:
            shown = await self._sign_in(line, answers, connecting.has_secret)
        else:
            answers.append((rf"{re.escape(ready.secret)} for .*\(not shown\): ", connecting.key))
            shown = await self.play(Play(line, answers=answers))
        self.assertIn(f"Trusted: {', '.join(sorted(ready.chosen))}", shown)
        self.assertEqual(len(double.asked), 1 if ready.check else 0)
        for asked in double.asked:
            self.assertEqual(asked.url.split("/")[2], connecting.host)
            self.assertIn(connecting.sent, asked.url + asked.headers)
            self.assertIn(f"Connected to {ready.title}", shown)
        return shown

    async def _sign_in(self, line: str, answers: Sequence[tuple[str, str]], has_secret: bool) -> str:
        """Connect, and open the address that is shown in a browser that says yes."""
        secret = [(r"Client secret \(not shown\): ", CLIENT_SECRET)] if has_secret else []
        playing = self.begin(Play(line, answers=[*secret, (r"Save this credential\? \[y/N\] ", "y")]))
        for question, answer in [*answers, ("Client ID: ", CLIENT)]:
            await playing.running.expect(question, playing.play.seconds)
            playing.running.send(answer)
        url = (await playing.running.expect(r"(https://\S+redirect_uri=\S+)\s", playing.play.seconds))[1]
        browser = Command(
            arguments=(sys.executable, "-c", _BROWSER, str(self.internet.authority), url),
            environment=self.home.environment(),
            directory=self.home.project,
        )
        self._expect(await self.run_command(browser.behind(*self.behind)), 0)
        shown = await self.finish(playing)
        self.assertIn(f"Account: {ACCOUNT}", shown)
        return shown


@seldom
async def _test_played(self: ServiceTestCase) -> None:
    """The actions of the page are trusted, and its check reaches the service with the key, once."""
    await self.connect(self.line)


def _test_case(line: str) -> type[ServiceTestCase]:
    name = line.rpartition(" ")[2]
    about = f"C{{doc/services/{name}.md}}."
    members = {
        "page": f"services/{name}.md",
        "line": line,
        "test_played": _test_played,
        "__doc__": about,
        "__module__": __name__,
    }
    return type(f"{name.title().replace('_', '')}Tests", (ServiceTestCase,), members)


class IndexTests(ServiceTestCase):
    """Somebody who looks what there is."""

    page = "services/index.md"

    @seldom
    async def test_played(self) -> None:
        """A service is connected, those about issues are listed, and what connecting would do is shown."""
        await self.connect("aileron setup --choose slack")
        listed = await self.play(Play("aileron setup --list issue"))
        services = {line.split()[0] for line in listed.splitlines() if line} & {each.split()[-1] for each in SERVICES}
        self.assertEqual(services, {"github", "gitlab", "jira", "linear", "sentry"})
        await self.play(Play("aileron setup --dry-run slack", shows=["post-message.md", "Nothing was changed"]))


vars().update((each.__name__, each) for each in map(_test_case, SERVICES))
