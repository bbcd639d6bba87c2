"""The person at the terminal, asked without stopping anything else."""

from __future__ import annotations

import asyncio
import sys

import click


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
