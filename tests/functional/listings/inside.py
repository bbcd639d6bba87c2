"""Runs within a network of its own: hands every connection to a public address there on to a socket outside.

``python inside.py ADDRESS DIRECTORY PORT...`` gives the network that address, listens there at each port, prints its
process number, and connects whoever comes to the Unix socket in the directory that is called as the port.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

_SET_ADDRESS = 0x8916
"""SIOCSIFADDR, of linux/sockios.h."""
_SIZE = 1 << 16


def give_address(address: str) -> None:
    """Give the loopback device an address besides its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack(
            "16sH2s4s8s", b"lo:0", socket.AF_INET, bytes(2), socket.inet_aton(address), bytes(8)
        )  # struct ifreq
        fcntl.ioctl(any_socket, _SET_ADDRESS, request)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_SIZE):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def serve(address: str, directory: str, ports: Sequence[str]) -> None:
    """Hand connections on, until this process is killed."""

    def hand_on(path: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]:
        async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_unix_connection(path)
            await asyncio.gather(_pump(reader, back), _pump(there, writer))

        return connect

    servers = [await asyncio.start_server(hand_on(f"{directory}/{port}"), address, int(port)) for port in ports]
    print(f"process {os.getpid()}", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    give_address(sys.argv[1])
    asyncio.run(serve(sys.argv[1], sys.argv[2], sys.argv[3:]))
