"""The acts of the play, in order."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping
from importlib.resources import files

import click

from aileron.demo._agent import Agent, agent, ask
from aileron.demo._decision import decide
from aileron.demo._stage import Stage, act, command, printed, quote, stage, tell
from aileron.errors import InvalidRequest

CHANNEL = "#releases"
SUMMARY = "The new parser is out.\nIt reads twice as fast."
TOOL = "ship_update"


def _at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def play(
    environ: Mapping[str, str], answer: bool | None = None, interactive: Callable[[], bool] = _at_a_terminal
) -> int:
    """Play it all, and leave nothing behind.

    :param answer: whether to approve; L{None}: the person is asked.
    :param interactive: whether there is a person to be asked.
    :return: the exit code.
    :raises InvalidRequest: nobody is there to be asked.
    :raises InternalError: something failed.
    """
    if answer is None and not interactive():
        raise InvalidRequest("There is nobody to ask here: add --yes or --no.")
    click.secho("An agent asks, you approve, it is done, and it is on record.", bold=True)
    with stage(environ) as scene:
        tell(f"All of it in {scene.home.root.parent}, which is removed at the end. Nothing leaves this machine.")
        try:
            asyncio.run(_acts(scene, answer))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
    return 0


async def _acts(scene: Stage, answer: bool | None) -> None:
    _heed_termination()
    await _set_up(scene)
    async with agent(scene.home, str(scene.home.root.parent)) as acting:
        calling = await _call(acting)
        try:
            await decide(scene, calling, answer)
            told = await calling
        finally:
            calling.cancel()
    _tell_effect(scene, told)
    await _tell_record(scene)


def _heed_termination() -> None:
    """A polite end cleans up as Ctrl-C does."""
    task = asyncio.current_task()
    if task is not None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)


async def _set_up(scene: Stage) -> None:
    act(1, "You set it up")
    command("aileron vault init", "A vault for your keys, and the daemon that holds them.")
    await scene.as_operator("vault", "init")
    data = files(__package__).joinpath("data")
    (scene.home.connectors / "team-chat.toml").write_bytes(data.joinpath("team-chat.toml").read_bytes())
    command("aileron action add ship-update.md", "What agents may ask for. You read it, and trust exactly that.")
    source = scene.home.root.parent / "ship-update.md"
    source.write_bytes(data.joinpath("ship-update.md").read_bytes())
    added = await scene.as_operator("action", "add", str(source), "--yes")
    printed(added.splitlines()[-1])
    command("aileron binding setup local://demo/team-chat", "The key of your team's chat. Only the daemon has it now.")
    await scene.as_operator(
        "binding", "setup", "local://demo/team-chat", "--base-url", scene.chat_url, secret_fd=scene.key
    )


async def _call(acting: Agent) -> asyncio.Task[str]:
    act(2, "An agent works")
    tools = await acting.tools_with(TOOL)
    tell(f"It speaks MCP to aileron-mcp, which offers: {', '.join(tools)}.")
    tell(f"It calls {TOOL} with channel {CHANNEL} and this summary:")
    quote(SUMMARY)
    return asyncio.create_task(acting.call(TOOL, {"channel": CHANNEL, "summary": SUMMARY}))


def _tell_effect(scene: Stage, told: str) -> None:
    act(4, "What came of it")
    messages = ask(scene.chat_url, "GET", "/messages", scene.key)["messages"]
    if messages:
        tell(f"In the chat, {messages[0]['channel']} now says:")
        quote(messages[0]["text"])
    else:
        tell("In the chat: nothing. No request was sent.")
    tell("The agent was told:")
    quote(told)


async def _tell_record(scene: Stage) -> None:
    act(5, "It is on record")
    command("aileron audit list", "Newest first; each record seals the one before it.")
    printed(await scene.as_operator("audit", "list", "--action", "ship-update"))
    click.echo()
    tell("The agent never had the key, and its token approves nothing. Now for real: aileron vault init")
