"""A browser gets in by a private file that nobody else can use."""

from __future__ import annotations

import io
import os
import pty
import stat
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.context import CliContext, Conversation, Links
from aileron.cli.vault import open as open_module
from aileron.cli.vault.open import BY_CODE, BY_FILE, browser_command, is_for_safari, let_in, sweep, write_page
from aileron.cli.vault.terminal import Terminal
from aileron.home.paths import Home
from aileron.model.errors import Forbidden, InvalidRequest, NotFound
from tests.cli.daemon import OPERATOR_URL, PASSPHRASE, TOKEN, CommandCase

LOCAL_KEY = "ail_c_local"
_FRESH = "http://wdjbmjhtkc.aileron.localhost:41807"


class PageTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.home = Home(Path(self.mktemp()).absolute())
        self.home.root.mkdir()

    def test_file(self) -> None:
        """The file is this user's alone, posts the code, holds no foreign markup; what was left is removed."""
        file = write_page(self.home, "http://localhost:8", 'c"><script>', "/approvals/1")
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(file.parent.stat().st_mode), 0o700)
        text = file.read_text()
        self.assertIn('method="post" action="http://localhost:8/handover"', text)
        self.assertIn('name="code" value="c&quot;&gt;&lt;script&gt;"', text)
        self.assertIn('value="/approvals/1"', text)
        file = write_page(self.home, "http://localhost:8", "c", "/")
        other = file.with_name("other")
        other.touch()
        sweep(self.home)
        self.assertEqual(list(file.parent.iterdir()), [other])


class BrowserTests(SynchronousTestCase):
    def test_choice(self) -> None:
        """BROWSER comes first if it can be run; without a display there is none."""
        path = {"PATH": "/usr/bin:/bin"}
        self.assertEqual(browser_command({**path, "BROWSER": "/nowhere:cat -n %s"}), ("cat", "-n"))
        self.assertEqual(browser_command(path, "darwin"), ("open",))
        self.assertIsNone(browser_command(path, "linux"))
        self.assertIsNone(browser_command({"PATH": "/nowhere", "DISPLAY": ":0"}, "linux"))

    def test_safari(self) -> None:
        """On a Mac alone, and for a name of this start alone, it is told at once that Safari does not find it."""
        plain = "http://localhost:41807"
        for url, platform, told in ((_FRESH, "darwin", True), (_FRESH, "linux", False), (plain, "darwin", False)):
            self.assertEqual(is_for_safari(url, platform), told)


class OpenTests(CommandCase):
    def test_usage(self) -> None:
        """Only an approval has an ID."""
        for arguments in (("approvals", "x"), ("passkeys", "x"), ("other",)):
            self.assertEqual(self.command("open", *arguments)[0], 2, arguments)

    def test_login_elsewhere(self) -> None:
        """A login that is meant for one address is made at no other: C{daemon.json} may have been replaced between."""
        self.serve()
        self.typed = [PASSPHRASE]
        code, _out, err = self.command("operator", "login", "--token-fd", "1", "--at", "http://localhost:6666")
        self.assertEqual(code, 1)
        self.assertIn("http://localhost:6666", err)
        self.assertEqual((self.site.asked, self.typed), ([], [PASSPHRASE]))

    def test_no_terminal(self) -> None:
        """Where nobody could type the two words nothing is opened, and no passphrase is asked for."""

        def none() -> AbstractContextManager[Conversation]:
            raise InvalidRequest("There is no terminal.")

        self.serve()
        cli = attrs.evolve(self.cli_context(), terminal=none)
        self.patch(self, "cli_context", lambda: cli)
        code, _out, err = self.command("open")
        self.assertEqual(code, 1)
        self.assertIn("Cannot ask for the browser's two words", err)
        self.assertEqual(self.site.asked, [])


LOGINS = "/v1/operator/sessions"


class AlreadyTests(CommandCase):
    """Where a browser may decide already, the page is opened and nothing is asked for."""

    def setUp(self) -> None:
        """Serve, and note what is opened."""
        super().setUp()
        self.serve(LOCAL_KEY)
        self.opened: list[str] = []
        self.has_browser = True
        self.patch(open_module, "open_address", self.open_address)
        cli = attrs.evolve(self.cli_context(), terminal=self.no_terminal, pause=_at_once)
        self.patch(self, "cli_context", lambda: cli)

    def open_address(self, address: str, environ: Mapping[str, str]) -> bool:
        """Open nothing."""
        self.opened.append(address)
        return self.has_browser

    def no_terminal(self) -> AbstractContextManager[Conversation]:
        """Fail as where there is none: it is asked for only if words are needed."""
        raise InvalidRequest("There is no terminal.")

    def lists(self, *used: str, **more: Any) -> None:
        """Have the daemon list a browser that was used then, at one look after the other."""
        left = list(used)
        login = {"id": "ops_1", "browser": True, "decides": True, **more}
        self.site.answer(
            "GET", LOGINS, lambda _: {"items": [{**login, "used_at": left.pop(0) if left[1:] else left[0]}]}
        )

    def assert_words_needed(self, *arguments: str) -> str:
        """The command goes on to the words, for which there is no terminal here."""
        code, _out, err = self.command("open", *arguments)
        self.assertEqual(code, 1)
        self.assertIn("Cannot ask for the browser's two words", err)
        return err

    def test_opens(self) -> None:
        """It opens the page, sees that the browser has used its login since, and is done."""
        self.lists("10:00", "10:00", "10:05")
        code, out, _err = self.command("open")
        self.assertEqual((code, self.opened), (0, [f"{OPERATOR_URL}/"]))
        self.assertIn("can decide", out)
        self.assertEqual({asked.bearer for asked in self.site.asked if asked.path == LOGINS}, {LOCAL_KEY})

    def test_passkeys(self) -> None:
        """The page is the one that was named."""
        self.lists("10:00", "10:05")
        self.assertEqual(self.command("open", "passkeys")[0], 0)
        self.assertEqual(self.opened, [f"{OPERATOR_URL}/settings/passkeys"])

    def test_another_browser(self) -> None:
        """If none has used its login, that browser is another one, and the words follow."""
        self.lists("10:00")
        self.assertIn("cannot decide yet", self.assert_words_needed())
        self.assertEqual(len(self.opened), 1)

    def test_nobody_decides(self) -> None:
        """A browser that only watches, a terminal, or what no daemon answers: the words follow."""
        for more in ({"decides": False}, {"browser": False}):
            self.lists("10:00", "10:05", **more)
            self.assert_words_needed()
        answers: tuple[dict[str, Any], ...] = ({"items": []}, {"items": None}, {}, {"items": [{}]})
        for answer in answers:
            self.site.answer("GET", LOGINS, answer)
            self.assert_words_needed()
        self.assertEqual(self.opened, [])

    def test_no_such_request(self) -> None:
        """No page is opened for a request that there is not, and nothing is asked for."""
        self.lists("10:00", "10:05")
        self.site.answer_unknown = NotFound("There is no such request.")
        code, _out, err = self.command("open", "approval", "01M8HR84TEK1J0CZE2HENJ0E8A")
        self.assertEqual((code, self.opened, self.site.logins), (1, [], []), err)
        self.assertIn("There is no such request.", err)

    def test_asked_for(self) -> None:
        """With --login or --code the words are asked for in any case; without a browser here as well."""
        self.lists("10:00", "10:05")
        self.assert_words_needed("--login")
        self.assert_words_needed("--code")
        self.assertEqual(self.opened, [])
        self.has_browser = False
        self.assert_words_needed()


class ConversationTests(SynchronousTestCase):
    """A terminal that is asked while other things go on."""

    def setUp(self) -> None:
        self.keyboard, inside = pty.openpty()
        self.addCleanup(os.close, self.keyboard)
        self.addCleanup(os.close, inside)
        self.terminal = Terminal(inside)

    def test_answer(self) -> None:
        """There is no answer until a whole line was typed; what stood there before the question is none."""
        self.terminal.put("Words: ")
        self.assertIsNone(self.terminal.answered())
        os.write(self.keyboard, b"blue tow")
        self.assertIsNone(self.terminal.answered())
        os.write(self.keyboard, b"er\n")
        self.assertEqual(self.terminal.answered(), "blue tower")
        self.assertIsNone(self.terminal.answered())
        os.write(self.keyboard, b"injected\n")
        self.terminal.put("Words: ")
        self.assertIsNone(self.terminal.answered())


@attrs.define
class Typing:
    """A person at the terminal.

    :ivar lines: what is typed, each after so many looks.
    :ivar shown: the prompts.
    :ivar told: what else is written there.
    """

    lines: list[str | None]
    shown: list[str] = attrs.Factory(list)
    told: list[str] = attrs.Factory(list)

    def say(self, text: str) -> None:
        self.told.append(text)

    def put(self, prompt: str) -> None:
        self.shown.append(prompt)

    def answered(self) -> str | None:
        """The next line, if it is there yet."""
        return self.lines.pop(0) if self.lines else None

    def ask_secret(self, prompt: str) -> str:
        raise AssertionError(f"no secret is asked for here: {prompt}")


class LettingInTests(CommandCase):
    """A browser comes, and the person types its two words."""

    PATH = "/v1/operator/handover"
    BY_CODE = False

    def setUp(self) -> None:
        super().setUp()
        self.pages: list[str] = []
        self.site.answer("POST", self.PATH, {"code": "c0de"})
        self.site.answer("POST", f"{self.PATH}/confirm", {"id": "ops_2"})

    def let_in(self, states: Sequence[str], *lines: str | None) -> tuple[Any, list[str]]:
        """What it ends with, while the daemon tells these states one after the other; and the prompts."""
        left, typing = list(states), Typing(list(lines))
        self.site.logins[:] = [TOKEN]

        def state(_body: object) -> Any:
            self.pages += [file.read_text() for file in (self.home.root / "run").glob("*.html")]
            return {"state": left.pop(0)}

        self.site.answer("GET", self.PATH, state)
        cli = attrs.evolve(self.cli_context(), pause=_at_once)

        async def whole(links: Links) -> None:
            operator = links.operator(OPERATOR_URL, TOKEN)
            await let_in(cli, typing, operator, OPERATOR_URL, "/approvals/1", way=BY_CODE if self.BY_CODE else BY_FILE)

        ended = self._ended(cli, whole)
        self.told = typing.told
        self.assertEqual(list((self.home.root / "run").glob("*.html")), [], "the file is left")
        return ended, typing.shown

    def _ended(self, cli: CliContext, whole: Any) -> Any:
        try:
            with redirect_stderr(io.StringIO()) as err, redirect_stdout(err):
                return cli.drive(whole)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test looks at it
            return error
        finally:
            self.err = err.getvalue()

    def confirmed(self) -> list[str]:
        """The words that the daemon was sent."""
        return [body["words"] for body in self.site.bodies("POST", f"{self.PATH}/confirm")]

    def test_let_in(self) -> None:
        """The words are asked for until they are typed, naming the address, and sent; what the daemon says is told."""
        ended, shown = self.let_in(["made", "made", "opened", "opened", "opened"], None, None, "Blue tower")
        self.assertEqual((ended, self.confirmed()), (None, ["Blue tower"]))
        self.assertEqual(shown, [f"The two words shown at {OPERATOR_URL}/: "])
        self.assertIn('value="c0de"', self.pages[0])
        ended, shown = self.let_in(["opened"], "", "  ", "blue tower")
        self.assertEqual((ended, self.confirmed(), len(shown)), (None, ["Blue tower", "blue tower"], 3))
        self.site.answer("POST", f"{self.PATH}/confirm", Forbidden("These are not the words."))
        ended, _shown = self.let_in(["opened"], "red house")
        self.assertIn("These are not the words.", str(ended))

    def test_touched(self) -> None:
        """Where a passkey has let the browser in no words are sent, and nothing more is asked."""
        for states in (["made", "opened", "opened", "confirmed"], ["made", "confirmed", "confirmed"]):
            ended, shown = self.let_in(states, None, None)
            self.assertEqual((ended, self.confirmed(), len(shown)), (None, [], 1))
            self.assertIn("Your passkey has logged the browser in.", "".join(self.told))

    def test_ended(self) -> None:
        """If somebody else opened it, nobody came or the words did not, the person is told, and nothing is sent."""
        for states, lines, says in (
            (["opened", "opened_twice"], [None], "The file was opened twice"),
            (["made", "opened_twice"], [None], "The file was opened twice"),
            (["made", "made", "late"], ["early"], "within a minute, so it was deleted."),
            (["opened", "opened", "late"], [None, None], "not entered within two minutes"),
        ):
            ended, shown = self.let_in(states, *lines)
            self.assertIn(says, str(ended))
            self.assertEqual((ended.hint, len(shown)), ("Try again: aileron open", int("opened" in states)))
            self.assertTrue(is_for_safari(_FRESH) or "Safari" not in str(ended))
        self.assertEqual(self.confirmed(), [])

    def test_multiplexer(self) -> None:
        """In tmux or screen it is told beforehand, on standard error, who else can read and type."""
        for variable, name in (("", ""), ("TMUX", "tmux"), ("STY", "screen")):
            self.environ[variable] = "1"
            self.let_in(["opened"], "blue tower")
            told = f"In {name}, programs of yours outside a sandbox can read the screen and type here.\n"
            self.assertEqual(self.err.startswith(told), bool(name), self.err)
            self.assertEqual("and type here" in self.err, bool(name))
            del self.environ[variable]

    def test_login_is_ended(self) -> None:
        """Where nobody is let in the login that it took is ended; else the browser needs it."""
        for states, line, left in ((["opened", "late"], None, []), (["opened"], "blue tower", [TOKEN])):
            self.let_in(states, line)
            self.assertEqual(self.site.logins, left)


class CodeTests(LettingInTests):
    """The same by a code, which the person reads in the terminal and nobody anywhere else."""

    CODE = "WDJB-MJHT-KCRV-XPZN-BGHF"
    BY_CODE = True

    def setUp(self) -> None:
        super().setUp()
        self.site.answer("POST", self.PATH, {"code": self.CODE})

    def test_let_in(self) -> None:
        """The address and the code are written to the terminal alone; it is asked for one to type."""
        ended, shown = self.let_in(["made", "opened", "opened"], None, "Blue tower")
        self.assertEqual((ended, self.confirmed()), (None, ["Blue tower"]))
        self.assertEqual(self.site.bodies("POST", self.PATH), [{"typed": True}])
        self.assertEqual(shown, [f"The two words shown at {OPERATOR_URL}/: "])
        (told,) = self.told
        lines = told.splitlines()
        self.assertEqual([line.strip() for line in lines[2::2]], [f"{OPERATOR_URL}/approvals/1", self.CODE])
        self.assertIn("ssh -L 8:localhost:8 ", lines[1])
        self.assertLess(max(map(len, lines)), 72, "a terminal of 80 columns breaks none, with ports of five digits")
        self.assertNotIn(self.CODE, lines[2])

    def test_nowhere_else(self) -> None:
        """No file, no output that could be kept, no browser's command line, and no request has the code."""
        marker = Path(self.mktemp()).absolute()
        program = marker.with_suffix(".sh")
        program.write_text(f"#!/bin/sh\ntouch {marker}\n")
        program.chmod(0o700)
        self.environ["BROWSER"] = str(program)
        self.let_in(["made", "opened"], "Blue tower")
        self.assertEqual(self.pages, [])
        self.assertFalse(marker.exists())
        self.assertNotIn(self.CODE, self.err)
        self.assertNotIn(self.CODE, str(self.site.asked))
        kept = [path for path in self.home.root.rglob("*") if path.is_file() and self.CODE in path.read_text("latin-1")]
        self.assertEqual(kept, [])

    def test_ended(self) -> None:
        """If the code was used twice, nobody used it or the words did not come, the person is told."""
        for states, lines, says in (
            (["opened", "opened_twice"], [None], "The code was used twice"),
            (["made", "opened_twice"], [None], "The code was used twice"),
            (["made", "made", "late"], ["early"], "so it is no longer valid. Safari cannot find such"),
            (["opened", "opened", "late"], [None, None], "not entered within two minutes"),
        ):
            ended, shown = self.let_in(states, *lines)
            self.assertIn(says, str(ended))
            self.assertEqual((ended.hint, len(shown)), ("Try again: aileron open --code", int("opened" in states)))
        self.assertEqual(self.confirmed(), [])


async def _at_once(_seconds: float) -> None:
    return
