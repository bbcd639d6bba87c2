"""The third act: the person is shown the whole of it, and decides here or in the browser."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from aileron.demo._stage import Stage, act, command, printed, tell
from aileron.errors import InternalError


async def typed(prompt: str) -> str:
    """The next line that is typed, lower case; empty when the terminal ends."""
    click.echo(prompt, nl=False)
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def ready() -> None:
        text = sys.stdin.readline()
        if not line.done():
            line.set_result(text)

    loop.add_reader(sys.stdin, ready)
    try:
        return (await line).strip().lower()
    finally:
        loop.remove_reader(sys.stdin)


_ASK_SECONDS = 30.0
_PROMPT = "   Let exactly this run? [y]es, [n]o, [b]rowser: "


async def decide(scene: Stage, calling: asyncio.Task[str], answer: bool | None) -> None:
    """Show what waits, and see it decided.

    :param calling: the agent's call; done as soon as somebody has decided.
    :param answer: what to say, or L{None}: ask the person.
    """
    act(3, "You are asked")
    approval = await _pending(scene, calling)
    command(
        f"aileron approval show {approval['id']}", "Everything that will happen; you approve this and nothing else."
    )
    printed(await scene.as_operator("approval", "show", str(approval["id"])))
    tell(f"The same as a page: {approval['review_url']} (aileron open)")
    if answer is None:
        answer = await _ask(scene, calling, approval)
    if answer is not None:
        await _say(scene, approval, answer)


async def _pending(scene: Stage, calling: asyncio.Task[str]) -> Mapping[str, Any]:
    """What waits for the person."""
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


async def _ask(scene: Stage, calling: asyncio.Task[str], approval: Mapping[str, Any]) -> bool | None:
    """The person's answer here, or L{None}: it was decided on the page."""
    while True:
        line = asyncio.ensure_future(typed(_PROMPT))
        await asyncio.wait({line, calling}, return_when=asyncio.FIRST_COMPLETED)
        if not line.done():
            line.cancel()
            tell("\n   Decided on the page.")
            return None
        word = line.result()
        if word in {"y", "yes"}:
            return True
        if word in {"b", "browser"}:
            await _open(scene, str(approval["id"]))
        elif word in {"n", "no", ""}:
            return False


async def _open(scene: Stage, approval_id: str) -> None:
    """Let a browser in.  Its command asks in this terminal for the browser's two words, so that we ask nothing then."""
    child, _ = await scene.begin("open", "approval", approval_id, passphrase_fd=scene.passphrase)
    try:
        while child.stderr is not None and (line := await child.stderr.readline()):
            printed("\n" + line.decode("utf-8", "replace"))
        await child.wait()
    finally:
        if child.returncode is None:
            child.terminate()
            await child.wait()


async def _say(scene: Stage, approval: Mapping[str, Any], answer: bool) -> None:
    word = ("approve", "--yes") if answer else ("deny", "--reason", "Not today.")
    command(f"aileron approval {' '.join(word)} {approval['id']}", "Your word, for exactly the digest above.")
    await scene.as_operator("approval", word[0], str(approval["id"]), *word[1:], "--digest", str(approval["digest"]))
