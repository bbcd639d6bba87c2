"""C{aileron open}: opens the web pages in the person's browser, logged in.

The browser receives a code from a private file with a form that posts itself once, or the person types the code there.
The browser then shows two words, which the person types here. No command line contains a secret.
"""

from __future__ import annotations

import html
import os
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve, field, frozen

from aileron.base.addresses import PAGES_DOMAIN, read_origin
from aileron.base.json import JSON
from aileron.cli import options as _options
from aileron.cli.context import CliContext, Conversation, Links, pass_cli
from aileron.cli.errors import CommandError
from aileron.cli.ids import find_id
from aileron.cli.output import note, say
from aileron.cli.session import look_first, quietly
from aileron.cli.things import APPROVAL
from aileron.home.paths import Home
from aileron.model.errors import InvalidRequest
from aileron.model.sessions import HandOverState

from .operator import login_from_child, unlock_with_child
from .terminal import note_multiplexer
from .unlocking import is_unlocked

if TYPE_CHECKING:
    from aileron.client import Operator

_PASSKEYS = "/settings/passkeys"
_APPROVALS = "/approvals/"
_POLL_SECONDS = 0.4
_MOST_LOOKS = 15
"""How many polls wait for a browser that may decide to fetch the page, before the words are requested."""
_NO_WORDS = "The two words were not entered within two minutes, so no browser was logged in."
_ELSEWHERE = "Another `aileron open` replaced this one, so no browser was logged in here."
_SHOWN = """Open this address in the browser.
If it is on another device, ssh -L {port}:{host}:{port} leads there.
  {url}{path}
Enter this code there within two minutes, on no other page:
  {code}
"""
_NOT_FOUND = (
    "Safari cannot find such an address: use another browser, or set `operator_host: localhost` in config.yaml. The "
    "configuration page says what that risks."
)
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>Aileron</title>
<form method="post" action="{action}">
<input type="hidden" name="code" value="{code}">
<input type="hidden" name="next" value="{path}">
<p>Opening your Aileron pages … <noscript><button>Continue</button></noscript></p>
</form>
<script>document.forms[0].submit()</script>
</html>
"""
_LINK = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>Aileron</title>
<p><a href="{url}">Continue to sign in</a></p>
</html>
"""


@frozen
class Way:
    """One way to pass a login code to a browser, by a file or typed, with the messages for the person.

    :ivar command: the command that uses this way.
    :ivar opened: the message when a browser connected; C{url} is the operator site's.
    :ivar late: the message when no browser connected in time.
    :ivar twice: the message when two browsers connected.
    :ivar body: the body of the request that makes the daemon create the code, or None.
    """

    command: str
    opened: str
    late: str
    twice: str
    body: Mapping[str, JSON] | None = None


BY_FILE = Way(
    "aileron open",
    "A browser opened the file. If yours shows no two words at {url}, another program opened it: press Ctrl-C.",
    "No browser opened the file within a minute, so it was deleted.",
    "The file was opened twice, so no browser was logged in. If you did not open it twice, another program reads your "
    "files. This is recorded in the audit log.",
)
BY_CODE = Way(
    "aileron open --code",
    "A browser used the code. If yours shows no two words at {url}, another program used it: press Ctrl-C.",
    "No browser used the code within two minutes, so it is no longer valid.",
    "The code was used twice, so no browser was logged in. If you did not enter it twice, another program knows it. "
    "This is recorded in the audit log.",
    {"typed": True},
)
_BY_NEW_PASSKEY = evolve(
    BY_FILE,
    command="aileron passkey add",
    opened="A browser opened the file. Create the passkey there. If yours shows no such page at {url}, another program "
    "opened the file: press Ctrl-C.",
    body={"adds_passkey": True},
)


@click.command("open")
@click.argument("what", required=False, type=click.Choice(["approval", "approvals", "passkeys"]))
@click.argument("approval_id", metavar="[ID]", required=False)
@click.option("--code", "by_code", is_flag=True, help="Show a code to enter in a browser elsewhere, such as a phone's.")
@click.option("--login", is_flag=True, help="Log the browser in, even if one can decide already.")
@_options.passphrase_fd
@pass_cli
def open_pages(
    cli: CliContext, what: str | None, approval_id: str | None, by_code: bool, login: bool, passphrase_fd: int | None
) -> None:
    """Open your pages in the browser, logged in.

    With `approval ID` open the page of that request, with `passkeys` the page where passkeys are added.

    The daemon is started, and the vault unlocked, if necessary. If your browser can decide already, this only opens the
    page.

    Otherwise the browser opens a private file that works once, within a minute, and shows two words. Enter them here to
    log the browser in. It can decide until it was not used for 30 minutes, for 12 hours at most, and watch as long as
    the daemon runs.

    With `--code` no browser is started. Open the address in any browser that reaches it, such as that of a phone with
    `ssh -L PORT:localhost:PORT`, and enter the code there, within two minutes; then its two words here.
    """
    if what != "approval" and approval_id is not None:
        raise click.UsageError("Use one of: aileron open, aileron open approval ID, aileron open passkeys")
    with ExitStack() as stack:
        terminal, given = None, None
        if not is_unlocked(cli):
            terminal = _terminal(cli, stack)
            given = unlock_with_child(cli, passphrase_fd).token
        path = _path(cli, what, approval_id)
        login_wanted = by_code or login or given is not None
        one = _BrowserLogin(cli.running().operator_url, path, by_code, passphrase_fd, given)
        shown = _log_browser_in(cli, lambda: terminal or _terminal(cli, stack), one, only_if_needed=not login_wanted)
    words = "Opened, and the browser can decide: {url}{path}" if shown else "The browser is logged in: {url}{path}"
    say(words, url=one.url, path=path)


def add_passkey(cli: CliContext, passphrase_fd: int | None) -> Mapping[str, Any]:
    """Add a passkey that a browser creates, confirmed by the two words of its page, and return it.

    The browser is logged in. The daemon is started, and the vault unlocked, if necessary.

    :raises CommandError: if there is no terminal, the pages have no name that passkeys can be bound to, or no browser
        was logged in.
    :raises DaemonFault: if the words are wrong, or the daemon refuses the passkey.
    :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
    """
    with ExitStack() as stack:
        terminal = _terminal(cli, stack)
        given = None if is_unlocked(cli) else unlock_with_child(cli, passphrase_fd).token
        url = cli.running().operator_url

        async def carry_out(links: Links) -> Mapping[str, Any]:
            token = given or login_from_child(cli, url, passphrase_fd).token
            operator = links.operator(url, token)
            words = await let_in(cli, terminal, operator, url, _PASSKEYS, way=_BY_NEW_PASSKEY)
            return await operator.post("operator", "passkeys", "confirm", body={"words": words})

        return cli.drive(carry_out)


@frozen
class _BrowserLogin:
    """One browser to log in.

    :ivar url: the URL of the operator site.
    :ivar path: the page to open.
    :ivar token: a token of the operator, or None to ask for the passphrase.
    """

    url: str
    path: str
    by_code: bool
    passphrase_fd: int | None
    token: str | None = field(repr=False)


def _path(cli: CliContext, what: str | None, approval_id: str | None) -> str:
    if what == "approval":
        return f"{_APPROVALS}{find_id(cli, APPROVAL, approval_id)}"
    return _PASSKEYS if what == "passkeys" else "/"


def _log_browser_in(
    cli: CliContext, terminal: Callable[[], Conversation], login: _BrowserLogin, *, only_if_needed: bool
) -> bool:
    """Log a browser in, unless one that may decide is logged in already and shows the page.

    :param terminal: opens the terminal, in which the person types the two words.
    :param only_if_needed: whether to look first for a browser that is logged in. If false, always log a browser in.
    :return: True if a browser was logged in already.
    :raises CommandError: if there is no terminal, no browser or a second one connected, or the words were not
        typed in time.
    :raises DaemonFault: if the words are wrong, or there is no such approval.
    """

    async def look(operator: Operator) -> None:
        if login.path.startswith(_APPROVALS):
            await operator.get("action-approvals", login.path.removeprefix(_APPROVALS))

    async def carry_out(links: Links) -> bool:
        await look_first(cli, links, look)  # before a browser opens the page of a request that does not exist
        if only_if_needed and await _is_shown(cli, links, login):
            return True
        asked = terminal()
        # A child reads the passphrase: a browser that we start must not inherit from a process that held it.
        token = login.token or login_from_child(cli, login.url, login.passphrase_fd).token
        # No logout after admission: the browser may decide no longer than the login that created its session.
        operator = links.operator(login.url, token)
        await let_in(cli, asked, operator, login.url, login.path, way=BY_CODE if login.by_code else BY_FILE)
        return False

    return cli.drive(carry_out)


async def _is_shown(cli: CliContext, links: Links, login: _BrowserLogin) -> bool:
    """If a browser is logged in and may decide, open the page, and wait briefly until such a browser uses its login.

    The daemon has not proved its identity, so it is sent nothing but the local key.

    :return: True if a browser that may decide shows the page. False if none did in time, or none is logged in.
    :raises CommandError: if no daemon runs.
    :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
    """
    key = cli.running().local_key
    if key is None:
        return False
    operator = links.operator(login.url, key)
    with suppress(LookupError, TypeError, AttributeError, ValueError):  # no daemon sends this response
        before = await _last_use(operator)
        if not before or not open_address(f"{login.url}{login.path}", cli.environ):
            return False
        for _ in range(_MOST_LOOKS):
            await cli.pause(_POLL_SECONDS)
            if await _last_use(operator) > before:
                return True
        note("The browser that opened cannot decide yet.")
    return False


async def _last_use(operator: Operator) -> str:
    """Return when a browser that may decide was used last, or an empty text if there is none.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    logins = (await operator.get("operator", "sessions"))["items"]
    return max((str(each["used_at"]) for each in logins if each["browser"] and each.get("decides")), default="")


def _terminal(cli: CliContext, stack: ExitStack) -> Conversation:
    """Open the terminal, which is closed with C{stack}. Call before a browser is opened.

    :raises CommandError: if there is no terminal, so that the browser's two words could not be typed.
    """
    try:
        return stack.enter_context(cli.terminal())
    except InvalidRequest:
        raise CommandError(
            "Cannot ask for the browser's two words: no terminal. No browser was opened.",
            "To work without a browser: aileron approval list",
        ) from None


async def let_in(
    cli: CliContext, terminal: Conversation, operator: Operator, url: str, path: str, *, way: Way
) -> str | None:
    """Admit one browser to the page at C{path}. If that fails or is aborted, the login ends.

    :param url: the URL of the operator site.
    :return: the two words that were typed, or None if a passkey has let the browser in.
    :raises CommandError: if no browser or a second one connected, or the words were not typed in time.
    :raises DaemonFault: if the words are wrong.
    """
    note_multiplexer(cli.environ)
    try:
        code = (await operator.post("operator", "handover", body=way.body))["code"]
        if way is BY_CODE:
            there = read_origin(url)
            host = "localhost" if _has_fresh_name(url) else there.host  # ssh asks a DNS resolver
            terminal.say(_SHOWN.format(url=url, path=path, host=host, port=there.port, code=code))
            await _wait_for_browser(cli, operator, url, way)
        else:
            await _send_file(cli, operator, url, code, path, way)
        words = await _words(cli, terminal, operator, url, way)
        if words is not None:
            await operator.post("operator", "handover", "confirm", body={"words": words})
    except BaseException:
        await quietly(operator.logout)
        raise
    return words


async def _send_file(cli: CliContext, operator: Operator, url: str, code: str, path: str, way: Way) -> None:
    """Open a file with the code in a browser, and delete it once a browser has connected.

    :raises CommandError: if no browser connected in time.
    """
    sweep(cli.home)
    file = write_page(cli.home, url, code, path)
    try:
        _tell(file, open_file(file, cli.environ))
        if is_for_safari(url):
            note(_NOT_FOUND)
        await _wait_for_browser(cli, operator, url, way)
    finally:
        file.unlink(missing_ok=True)


async def _wait_for_browser(cli: CliContext, operator: Operator, url: str, way: Way) -> None:
    in_safari = _has_fresh_name(url) if way is BY_CODE else is_for_safari(url)  # the code may be typed on an iPhone
    late = f"{way.late} {_NOT_FOUND}" if in_safari else way.late
    while await _state(operator, way, late) is HandOverState.MADE:
        await cli.pause(_POLL_SECONDS)


def is_for_safari(url: str, platform: str = sys.platform) -> bool:
    """Return True if the address may open in Safari, which does not resolve it: the Mac's own address."""
    return platform == "darwin" and _has_fresh_name(url)


def _has_fresh_name(url: str) -> bool:
    return read_origin(url).host.endswith(f".{PAGES_DOMAIN}")


def _tell(file: Path, opened: bool) -> None:
    if opened:
        note("If no page opens, open this file in your browser within a minute: {file}", file=file)
    else:
        note("No browser found. Open this file in a browser on this machine within a minute: {file}", file=file)
        note("For a browser on another machine, run: aileron open --code")


async def _words(cli: CliContext, terminal: Conversation, operator: Operator, url: str, way: Way) -> str | None:
    """Ask for the two words until some are typed, and return them, or None if a passkey has let the browser in.

    :raises CommandError: if the login cannot succeed any more, see L{_state}.
    """
    note(way.opened, url=url)
    while True:
        terminal.put(f"The two words shown at {url}/: ")
        typed = terminal.answered()
        while typed is None:
            if await _state(operator, way, _NO_WORDS) is HandOverState.CONFIRMED:
                terminal.say("\nYour passkey has logged the browser in.\n")
                return None
            await cli.pause(_POLL_SECONDS)
            typed = terminal.answered()
        if typed.strip():
            return typed


async def _state(operator: Operator, way: Way, when_late: str) -> HandOverState:
    """Return the state of the browser's login: C{MADE}, C{OPENED} or C{CONFIRMED}.

    :param when_late: the message of the error if the time limit has passed.
    :raises CommandError: if the login has any other state, so that it cannot succeed any more.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    state = HandOverState((await operator.get("operator", "handover"))["state"])
    if state in (HandOverState.MADE, HandOverState.OPENED, HandOverState.CONFIRMED):
        return state
    why = {HandOverState.TWICE: way.twice, HandOverState.LATE: when_late}.get(state, _ELSEWHERE)
    raise CommandError(why, f"Try again: {way.command}")


def browser_command(environ: Mapping[str, str], platform: str = sys.platform) -> tuple[str, ...] | None:
    """Return the command that opens a page in a browser, or None if there is no browser.

    C{BROWSER} comes first, with its first command that can be run. C{%s} is omitted.
    """
    path = environ.get("PATH", os.defpath)
    for choice in filter(None, environ.get("BROWSER", "").split(os.pathsep)):
        words = [word for word in shlex.split(choice) if word != "%s"]
        if words and shutil.which(words[0], path=path):
            return tuple(words)
    if platform == "darwin":
        return ("open",)
    if not any(environ.get(name) for name in _DISPLAYS):
        return None
    return ("xdg-open",) if shutil.which("xdg-open", path=path) else None


def open_file(file: Path, environ: Mapping[str, str]) -> bool:
    """Open C{file} in the person's browser. Return False if there is no browser, or its command cannot be started."""
    return open_address(str(file), environ)


def open_address(address: str, environ: Mapping[str, str]) -> bool:
    """Open an address, or the path of a file, in the person's browser. Do not wait for it.

    Return False if there is no browser, or its command cannot be started.
    """
    command = browser_command(environ)
    if command is None:
        return False
    try:
        subprocess.Popen(
            (*command, address),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    return True


def write_page(home: Home, operator_url: str, code: str, path: str) -> Path:
    """Write the file that posts the code, and return its path. Only this user can read it. The caller deletes it.

    :param code: works once, within 60 s.
    :param path: the path of the page to show, below C{operator_url}.
    """
    page = _PAGE.format(action=html.escape(f"{operator_url}/handover"), code=html.escape(code), path=html.escape(path))
    return _write(home, page)


def write_link(home: Home, url: str) -> Path:
    """Write a private file that redirects to C{url}, which is secret, and return its path. The caller deletes it."""
    return _write(home, _LINK.format(url=html.escape(url)))


def _write(home: Home, page: str) -> Path:
    directory = home.root / "run"
    directory.mkdir(mode=0o700, exist_ok=True)
    file = directory / f"open-{secrets.token_hex(8)}.html"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as written:
        written.write(page)
    return file


def sweep(home: Home) -> None:
    """Delete login pages that a killed C{aileron open} has left as files. The codes in them have expired."""
    for left in (home.root / "run").glob("open-*.html"):
        left.unlink(missing_ok=True)
