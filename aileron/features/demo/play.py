"""The parts of the demo, in order. In the third, the user sees the whole request and decides."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from types import FrameType
from typing import Any

import click
from attrs import define

from aileron.model.errors import InternalError, InvalidRequest

from ._agent import DemoAgent, agent, ask_service
from ._stage import Stage, end_child, print_command, print_heading, print_output, print_quoted, print_text, stage


async def typed(prompt: str) -> str:
    """Return the next line that is typed, in lower case.

    :raises InvalidRequest: if the terminal is closed.
    """
    click.echo(prompt, nl=False)
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def ready() -> None:
        text = sys.stdin.readline()
        if not line.done():
            line.set_result(text)

    loop.add_reader(sys.stdin, ready)
    try:
        text = await line
    finally:
        loop.remove_reader(sys.stdin)
    if not text:
        raise InvalidRequest("Cannot read your decision: the terminal was closed. Nothing was sent.")
    return text.strip().lower()


_ASK_SECONDS = 30.0
_PROMPT = "   Approve exactly this? [y]es, [n]o, [b]rowser: "


async def decide(scene: Stage, calling: asyncio.Task[str], answer: bool | None, *, browser: bool = True) -> None:
    """Show the pending approval and wait for its decision.

    :param calling: the agent's call. It completes after the decision.
    :param answer: the decision, or None to ask the person.
    :param browser: whether this machine has a browser.
    :raises InternalError: if no approval is pending in time, or a command failed.
    :raises InvalidRequest: if the terminal is closed.
    """
    print_heading(3, "You decide")
    approval = await _find_pending(scene, calling)
    print_command(("approval", "show", str(approval["id"])), "Everything that will be sent. You approve exactly this.")
    print_output(await scene.as_operator("approval", "show", str(approval["id"])))
    print_text("In the browser:")
    click.echo(approval["review_url"])  # from the terminal's edge, where 80 columns have room for it
    if answer is None:
        answer = await _ask(scene, calling, approval, browser=browser)
    if answer is not None:
        await _say(scene, approval, answer)


async def _find_pending(scene: Stage, calling: asyncio.Task[str]) -> Mapping[str, Any]:
    """Wait for the first pending approval and return it.

    :raises InternalError: if the agent's call ends without an approval, or no approval is pending in time.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _ASK_SECONDS
    while loop.time() < deadline:
        items = json.loads(await scene.as_operator("approval", "list", "--json"))["items"]
        if items:
            first: Mapping[str, Any] = items[0]
            return first
        if calling.done():
            raise InternalError(f"The call was not held for approval: {calling.result()}")
    raise InternalError("The call did not reach the daemon.")


async def _ask(scene: Stage, calling: asyncio.Task[str], approval: Mapping[str, Any], *, browser: bool) -> bool | None:
    """Ask the user in this terminal and return the answer, or None if the approval was decided on the page.

    :raises InvalidRequest: if the terminal is closed.
    """
    while True:
        line = asyncio.ensure_future(typed(_PROMPT))
        await asyncio.wait({line, calling}, return_when=asyncio.FIRST_COMPLETED)
        if not line.done():
            line.cancel()
            print_text("\n   Decided on the page.")
            return None
        word = line.result()
        if word in {"y", "yes"}:
            return True
        if word in {"n", "no"}:
            return False
        if word not in {"b", "browser"}:
            print_text("Nothing is decided yet. Type y, n or b.")
        elif browser:
            await _open(scene, str(approval["id"]))
        else:
            print_text("No browser was found on this machine. Decide here: type y or n.")


async def _open(scene: Stage, approval_id: str) -> None:
    """Open the approval in the browser. The command prompts for the browser's two words in this terminal.

    :raises NotFound: if the command C{aileron} is not installed.
    """
    child = await scene.begin("open", "approval", approval_id, at_terminal=True, passphrase_fd=scene.passphrase)
    try:
        while child.stderr is not None and (line := await child.stderr.readline()):
            print_output("\n" + line.decode("utf-8", "replace"))
        await child.wait()
    finally:
        await end_child(child)


async def _say(scene: Stage, approval: Mapping[str, Any], answer: bool) -> None:
    word = ("approve", "--yes") if answer else ("deny", "--reason", "Not today.")
    decision = (*word, str(approval["id"]))
    print_command(decision, "Your decision, for exactly the digest above.")
    await scene.as_operator(*decision, "--digest", str(approval["digest"]))


CHANNEL = "#releases"
SUMMARY = "The new parser is out.\nIt reads twice as fast."
TOOL = "ship_update"


def play(environ: Mapping[str, str], answer: bool | None = None, *, browser: bool = True) -> int:
    """Run all parts of the demo, and delete everything they created.

    :param answer: whether to approve; None to ask the person.
    :param browser: whether this machine has a browser.
    :return: 0, the exit code.
    :raises InvalidRequest: if C{answer} is None and there is no terminal.
    :raises InternalError: if a command failed.
    :raises KeyboardInterrupt: if the user pressed Ctrl-C.
    :raises NotFound: if a command of Aileron is not installed.
    """
    if answer is None and not (sys.stdin and sys.stdin.isatty()):
        raise InvalidRequest("Cannot ask for your decision: no terminal. Add --yes or --no.")
    click.secho("An agent requests an action, you approve it, it runs, and it is recorded.", bold=True)
    with _interrupted_once() as interruption, stage(environ) as scene:
        print_text(
            f"Everything is in {scene.home.root.parent}, which is deleted at the end. Nothing leaves this machine."
        )
        try:
            asyncio.run(interruption.watch(_acts(scene, answer, browser=browser)))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
    return 0


@define
class _Interruption:
    """Cancels the demo at the first Ctrl-C and ignores the others, so that the clean-up completes.

    :ivar _task: the task to cancel, or None while no loop runs.
    """

    _task: asyncio.Task[None] | None = None

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self._task is None:
            raise KeyboardInterrupt
        self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def watch(self, work: Coroutine[Any, Any, None]) -> None:
        """Await C{work}, and cancel it at Ctrl-C."""
        self._task = asyncio.current_task()
        try:
            await work
        finally:
            self._task = None


@contextmanager
def _interrupted_once() -> Iterator[_Interruption]:
    interruption = _Interruption()
    before = signal.signal(signal.SIGINT, interruption)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)


async def _acts(scene: Stage, answer: bool | None, *, browser: bool) -> None:
    _heed_termination()
    await _set_up(scene)
    async with agent(scene.home, str(scene.home.root.parent)) as acting:
        calling = await _call(acting)
        try:
            await decide(scene, calling, answer, browser=browser)
            told = await calling
        finally:
            calling.cancel()
    _tell_effect(scene, told)
    await _tell_record(scene)


def _heed_termination() -> None:
    """Clean up at SIGTERM and SIGHUP as at Ctrl-C."""
    task = asyncio.current_task()
    if task is not None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)


async def _set_up(scene: Stage) -> None:
    print_heading(1, "Setup")
    print_command(("vault", "init"), "Creates a vault for your credentials, and starts the daemon.")
    await scene.as_operator("vault", "init")
    data = files(__package__).joinpath("data")
    (scene.home.connectors / "team-chat.toml").write_bytes(data.joinpath("team-chat.toml").read_bytes())
    print_command(
        ("action", "add", "ship-update.md"), "Adds an action that agents can request. You review and trust it."
    )
    source = scene.home.root.parent / "ship-update.md"
    source.write_bytes(data.joinpath("ship-update.md").read_bytes())
    added = await scene.as_operator("action", "add", str(source), "--yes")
    print_output(added.splitlines()[-1])
    print_command(
        ("credential", "setup", "local://demo/team-chat"),
        "Stores the key of your team's chat. Only the daemon has it now.",
    )
    await scene.as_operator(
        "credential", "setup", "local://demo/team-chat", "--base-url", scene.chat_url, secret_fd=scene.key
    )


async def _call(acting: DemoAgent) -> asyncio.Task[str]:
    print_heading(2, "An agent requests an action")
    tools = await acting.tools_with(TOOL)
    print_text(f"It uses MCP. aileron-mcp offers these tools: {', '.join(tools)}.")
    print_text(f"It calls {TOOL} with channel {CHANNEL} and this summary:")
    print_quoted(SUMMARY)
    return asyncio.create_task(acting.call(TOOL, {"channel": CHANNEL, "summary": SUMMARY}))


def _tell_effect(scene: Stage, told: str) -> None:
    print_heading(4, "Result")
    messages = ask_service(scene.chat_url, "GET", "/messages", scene.key)["messages"]
    if messages:
        print_text(f"New message in {messages[0]['channel']} of the chat:")
        print_quoted(messages[0]["text"])
    else:
        print_text("No message in the chat: no request was sent.")
    print_text("The agent received:")
    print_quoted(told)


async def _tell_record(scene: Stage) -> None:
    print_heading(5, "Audit log")
    print_command(("audit", "list"), "Newest first. Each record contains the hash of the one before it.")
    print_output(await scene.as_operator("audit", "list", "--action", "ship-update"))
    click.echo()
    print_text("The agent never had the key, and its token cannot approve anything. To set up your own: aileron setup")
