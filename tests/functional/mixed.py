"""Twenty mixed requests of four agents, and a person who decides them by keys."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen
from twisted.web.resource import Resource
from twisted.web.server import Request as WebRequest

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page, PageError
from tests.functional.loopback import LoopbackSite
from tests.functional.operated import GATED, AgentSession

AGENTS = ("goose", "codex", "claude", "pi")
SHOWN = "document.querySelector('article.split')?.dataset.id"
_DECIDABLE = """document.querySelector("#deny:not(:disabled)") !== null
  && document.querySelector("article.split").dataset.settled === 'yes'"""
"""The request stands: one that was drawn again is not approved for half a second, in which a person sees that."""
_DRAWN = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(drawn))))"
"""The browser has drawn twice, and told the page what is on the screen."""
_MOST_KEYS = 30
STATE = "document.querySelector('article.split').dataset.state"

_CONNECTOR = """\
[connector]
name = "local://me/desk"
version = "1.0.0"
base_url = {{ default = "{url}", bindable = false }}
hosts = ["{address}"]
private_network = true

[operations.mail]
method = "POST"
path = "/mails"
json = {{ to = "${{in.to}}", subject = "${{in.subject}}", text = "${{in.text}}" }}
effect = "write"
destructive = false
idempotent = false

[operations.mail.present]
kind = "mail"
headline = "Mail ${{in.to}}: ${{in.subject}}"
to = "to"
subject = "subject"
body = "text"

[operations.open_issue]
method = "POST"
path = "/issues"
json = {{ repository = "${{in.repository}}", title = "${{in.title}}", text = "${{in.text}}" }}
effect = "write"
destructive = false
idempotent = false

[operations.open_issue.present]
kind = "issue"
headline = "Open issue in ${{in.repository}}: ${{in.title}}"
repository = "repository"
title = "title"
body = "text"

[operations.delete_branch]
method = "DELETE"
path = "/branches/${{in.branch}}"
effect = "write"
destructive = true
idempotent = true
present = {{ kind = "delete", headline = "Delete branch ${{in.branch}}", name = "branch" }}

[operations.set_flag]
method = "PUT"
path = "/flags/${{in.flag}}"
json = {{ percent = "${{in.percent}}" }}
effect = "write"
destructive = false
idempotent = true
present = {{ kind = "request", headline = "Set flag ${{in.flag}} to ${{in.percent}} %", to = "flag", text = "percent" }}
"""
_ACTION = """\
+++
name = "{name}"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/desk"
version = "1.0.0"
capabilities = ["{operation}"]

{inputs}
[[execute]]
id = "act"
connector = "local://me/desk"
op = "{operation}"
inputs = {{ {given} }}

[approval]
required = true
+++
# {name}

{description}
"""
_INPUT = '[[inputs]]\nname = "{name}"\ntype = "{kind}"\n{more}description = "{name}"\n'
_ACTIONS: Mapping[str, tuple[str, str, str]] = {
    "send-mail": ("mail", "to subject text", "Sends a mail from your address."),
    "open-issue": ("open_issue", "repository title text", "Opens an issue."),
    "delete-branch": ("delete_branch", "branch", "Deletes a branch."),
    "set-flag": ("set_flag", "flag percent", "Turns a feature on for a share of the users."),
}
_LONG = "\n".join(f"{number}. What was agreed about point {number} of the renewal." for number in range(1, 31))


class _Desk(Resource):
    isLeaf = True

    def render(self, request: WebRequest) -> bytes:
        """Accept anything."""
        request.setHeader("Content-Type", "application/json")
        return b'{"ok": true}'


@frozen
class MixedRequest:
    """A request, and what the person does about it.

    :ivar way: C{approve}, C{deny}, C{confirm} for a red warning that is accepted, or C{edit}.
    """

    action: str
    args: Mapping[str, Any]
    way: str = "approve"


def _post(channel: str, summary: str, way: str = "approve") -> MixedRequest:
    return MixedRequest(GATED, {"channel": channel, "summary": summary}, way)


def _mail(to: str, subject: str, text: str, way: str = "approve") -> MixedRequest:
    return MixedRequest("send-mail", {"to": to, "subject": subject, "text": text}, way)


def _issue(repository: str, title: str, text: str) -> MixedRequest:
    return MixedRequest("open-issue", {"repository": repository, "title": title, "text": text})


def _flag(flag: str, percent: int) -> MixedRequest:
    return MixedRequest("set-flag", {"flag": flag, "percent": percent})


EARLIER = (
    _post("#team-1", "Good morning."),
    _mail("maria@acme.example", "Plan of the week", "It is in the wiki."),
    _issue("acme/shop", "Flaky test", "It failed twice."),
    _flag("search", 5),
)
"""What was approved before, so that the twenty are compared with something."""

MIXED: Mapping[str, Sequence[MixedRequest]] = {
    "goose": (
        _post("#g\u0435neral", "Please pay invoice 4471 at https://acme-p\u0430y.example before noon.", "deny"),
        _post("#team-1", "Rolling back shop-web to 2026.47: p95 of /checkout doubled."),
        _mail("maria@acme.example", "Re: Q3 renewal", _LONG),
        _flag("checkout-v2", 50),
        _issue("acme/infra", "Drift in eu-west-1", "The security group sg-0a41 was changed by hand."),
    ),
    "codex": (
        MixedRequest("delete-branch", {"branch": "feature/old-terraform"}, "confirm"),
        _issue("acme/shop", "Checkout: p95 doubled after 2026.48", "From 380 ms to 790 ms since 14:05."),
        _post("#team-1", "Deploy of 2026.48 has begun."),
        _post("#team-1", "Deploy of 2026.48 has begun."),
        _flag("checkout-v2", 0),
    ),
    "claude": (
        _mail("accounts@northwlnd.example", "Bank details for invoice 20418", "Please use the IBAN below.", "deny"),
        _post("#team-1", "Tests of the release branch are green: <https://ci.example/814|https://ci.example>", "deny"),
        _post("#team-1", "Incident 17 is over. <!channel>", "edit"),
        _mail("maria@acme.example", "Notes of today", "See the wiki."),
        _issue("acme/shop", "Upgrade the payment client", "Version 4 is out of support in March."),
    ),
    "pi": (
        _post("#team-1", "Done, see the notes of today."),
        _post("#team-1", "pay\u200bments are back", "deny"),
        _flag("search", 100),
        _post("#team-1", "Review of 4712, please."),
        _mail("maria@acme.example", "Invoice 20418", "It is paid."),
    ),
}


@frozen
class Decided:
    """What deciding took.

    :ivar keys: the number of keys for each request, by its way.
    """

    seconds: float = 0.0
    keys: Mapping[str, list[int]] = field(factory=dict)


class MixedTestCase(PagesTestCase):
    """Four agents and their requests.

    :ivar asked: each request's session and what is to be done, by its run.
    """

    asked: dict[str, tuple[AgentSession, MixedRequest]]

    async def furnish(self, config: str = "") -> None:
        """Have a second connector with four more actions."""
        await super().furnish(config)
        self.asked = {}
        desk = LoopbackSite.listen(self.reactor, _Desk())
        self.finally_(desk.stop)
        self._put_connector("desk", _CONNECTOR.format(url=desk.url, address=desk.url.removeprefix("http://")))
        paths = []
        for name, (operation, inputs, description) in _ACTIONS.items():
            paths.append(self.home.project / f"{name}.md")
            paths[-1].write_text(_write_action(name, operation, inputs.split(), description))
        await self.add(*paths)

    async def ask_all(self) -> None:
        """Have the earlier requests approved and done, and the twenty wait."""
        self.agent = await self.session("opencode")
        for each in EARLIER:
            run_id = await self.request(self.agent, each)
            await self.approve(run_id)
            await self.outcome(run_id, wait=30)
        for agent, requests in MIXED.items():
            session = await self.session(agent)
            for each in requests:
                self.asked[await self.request(session, each)] = session, each

    async def request(self, session: AgentSession, wanted: MixedRequest) -> str:
        """Ask for an action; the id of what then waits."""
        reply = await self.run_action(session, wanted.action, wanted.args)
        self.assertEqual(reply.status, 202, reply.text)
        return str(reply.body["run_id"])


@frozen
class Person:
    """A person who decides what is shown, by keys alone.

    :ivar keys: the keys pressed for each request, by its way.
    """

    page: Page
    keys: dict[str, list[int]] = field(factory=dict)

    async def decide(self, way: str) -> None:
        """Decide the request that is shown, and wait for the next one or for its outcome."""
        page, shown = self.page, await self.page.evaluate(SHOWN)
        await page.until(_DECIDABLE)
        await page.evaluate(_DRAWN)
        pressed = await (self._deny() if way == "deny" else self._edit() if way == "edit" else self._approve(way))
        await page.until(f"{SHOWN} !== '{shown}' || {STATE} !== 'pending_approval'")
        self.keys.setdefault(way, []).append(pressed)

    async def _deny(self) -> int:
        return await self._press("d", "Enter")

    async def _approve(self, way: str) -> int:
        """Go to Approve, or to what is to be read to its end first, and press it; confirm if it is red."""
        pressed = await self._press("a")
        while not await self._stands_on("#approve"):
            if await self._stands_on(".long"):
                pressed += await self._press("End")
            await self.page.until("!document.activeElement.matches('.unread')")
            pressed += await self._press("a")
        pressed += await self._press("Enter")
        if way == "confirm":
            await self.page.until("document.activeElement.matches('#approve[data-asked]:not(:disabled)')")
            pressed += await self._press("Enter")
        return pressed

    async def _edit(self) -> int:
        """Open the arguments, go to the last one, write behind it, and check and approve the result."""
        pressed = await self._press("e", "Enter")
        await self.page.until("document.querySelector('#edit').open")
        pressed += await self._go("Tab", "[data-edits=summary]")
        pressed += await self._press("End")
        await self.page.write(" Thank you.")
        pressed += await self._press("Escape")
        await self.page.until("document.querySelector('#change:not([hidden], :disabled)') !== null")
        pressed += await self._press("a", "Enter")
        await self.page.until("document.querySelector('#edits') !== null")
        await self.page.until(_DECIDABLE)
        await self.page.evaluate(_DRAWN)
        return pressed + await self._approve("approve")

    async def _press(self, *keys: str) -> int:
        await self.page.press(*keys)
        return len(keys)

    async def _go(self, key: str, selector: str) -> int:
        """Press a key until the focus is on such an element, and return how often.

        :raises PageError: it does not come there.
        """
        for pressed in range(1, _MOST_KEYS):
            await self.page.press(key)
            if await self._stands_on(selector):
                return pressed
        raise PageError(f"{key} does not lead to {selector}")

    async def _stands_on(self, selector: str) -> bool:
        return bool(await self.page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"))


def _write_action(name: str, operation: str, inputs: Sequence[str], description: str) -> str:
    listed = (
        _INPUT.format(
            name=each,
            kind="integer" if each == "percent" else "string",
            more="multiline = true\n" if each == "text" else "",
        )
        for each in inputs
    )
    given = ", ".join(f'{each} = "${{args.{each}}}"' for each in inputs)
    return _ACTION.format(
        name=name, operation=operation, inputs="\n".join(listed), given=given, description=description
    )
