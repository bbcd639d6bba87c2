"""A script that starts in a sandbox before the agent, and connects the sandbox to the daemon by a socket.

It is called as C{_entrypoint.py PORT DESCRIPTOR BOUNDARY PROGRAM [ARGUMENTS…]}. The sandbox has an empty network of its
own. The script listens on C{PORT} there, and passes the listening socket to the launcher, which is outside. The
launcher accepts connections to that port and forwards them to the daemon.

C{BOUNDARY} is C{-}, or the launcher's instructions as JSON. With instructions, this script also listens on the proxy's
port, and passes on the listening socket of C{_network.py}, if there is one. Before it becomes the agent, it tries every
other way to reach something outside and reports the results.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from collections.abc import Iterator, Sequence

_BACKLOG = 128
_SECONDS = 2.0
_PROXY_SECONDS = 20.0
_OUTSIDE_4, _OUTSIDE_6 = "192.0.2.1", "2001:db8::1"  # addresses for documentation, never assigned (RFC 5737, RFC 3849)
_DNS_PORT = 53
_STDERR = 2
_A_QUERY = bytes.fromhex("a1e1010000010000000000000761696c65726f6e07696e76616c69640000010001")
_FORBIDDEN = {"AF_UNIX": 1, "AF_PACKET": 17, "AF_ALG": 38, "AF_VSOCK": 40}
_KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW)


def enter(
    ports: Sequence[int], descriptor: int, question: str, command: list[str], inherited: Sequence[int] = ()
) -> None:
    """Prepare the sandbox's connection to the daemon, then replace this process by C{command}.

    Listen on C{ports} and pass these sockets to the launcher, which runs outside. If there is a question, try every
    other way to reach something outside, report the results, and wait for the launcher's permission to go on.

    :param ports: the ports to listen on in the sandbox: the daemon's, and perhaps the proxy's.
    :param descriptor: a socket to the launcher, closed before the command starts.
    :param question: C{-}, or the launcher's instructions for the attempts, as JSON.
    :param inherited: descriptors of sockets that listen already. They are passed on and closed here, too.
    """
    with socket.socket(fileno=descriptor) as launcher:
        listening = [socket.create_server(("127.0.0.1", port), backlog=_BACKLOG) for port in ports]
        listening += [socket.socket(fileno=each) for each in inherited]
        socket.send_fds(launcher, [b"\0"], [each.fileno() for each in listening])
        for each in listening:
            each.close()
        _wait(launcher)
        if question:
            launcher.sendall(json.dumps(probe(json.loads(question), {descriptor})).encode("ascii") + b"\n")
            _wait(launcher)
    os.execv(command[0], command)  # noqa: S606  # it becomes the agent


def _wait(launcher: socket.socket) -> None:
    if not launcher.recv(1):
        sys.exit("aileron: the launcher has exited, or did not let the agent start")


def probe(question: dict[str, int], known: set[int]) -> dict[str, list[str]]:
    """Try every way to reach something outside the sandbox.

    :param question: the ports of the launcher outside (C{tcp}, C{udp}), of the proxy inside, and the outside network.
    :param known: the descriptors that the agent will not inherit.
    :return: for each way, what was reached, empty if nothing.
    """
    return {
        "network": list(_try_network(question["network"])),
        "tcp": list(_try_tcp(question["tcp"])),
        "udp": list(_try_udp(question["udp"])),
        "dns": list(_try_dns()),
        "unix": list(_try_unix()),
        "descriptors": list(_check_descriptors(known)),
        "proxy": list(_try_proxy(question["proxy"])),
    }


def _try_network(outside: int) -> Iterator[str]:
    if os.stat("/proc/self/ns/net").st_ino == outside:
        yield "the network is the one outside"
    yield from (f"there is the interface {name}" for _, name in socket.if_nameindex() if name != "lo")


def _try_tcp(port: int) -> Iterator[str]:
    for family, host, number in (
        (socket.AF_INET, "127.0.0.1", port),
        (socket.AF_INET, _OUTSIDE_4, 443),
        (socket.AF_INET6, _OUTSIDE_6, 443),
    ):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as each:
                each.settimeout(_SECONDS)
                each.connect((host, number))
        except TimeoutError:
            yield f"{host} may be reached"
        except OSError:
            continue
        else:
            yield f"{host} was reached"


def _try_udp(port: int) -> Iterator[str]:
    """Yield an error for each datagram that can be sent out of the sandbox.

    The last datagram is sent to a port of the launcher, which reports it if it arrives.
    """
    for family, host, number, must_fail in (
        (socket.AF_INET, _OUTSIDE_4, 443, True),
        (socket.AF_INET6, _OUTSIDE_6, 443, True),
        (socket.AF_INET, "127.0.0.1", port, False),
    ):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as each:
                each.sendto(b"aileron", (host, number))
        except OSError:
            continue
        if must_fail:
            yield f"a datagram left for {host}"


def _try_dns() -> Iterator[str]:
    """Yield an error for each of the system's name servers that may be reachable."""
    try:
        with open("/etc/resolv.conf", encoding="utf-8", errors="replace") as file:
            words = [line.split() for line in file]
    except OSError:
        words = []
    for host in [each[1] for each in words if len(each) > 1 and each[0] == "nameserver"]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as each:
                each.settimeout(_SECONDS)
                each.connect((host.partition("%")[0], _DNS_PORT))
                each.send(_A_QUERY)
                each.recv(512)
        except TimeoutError:
            yield f"the name server {host} may be reached"
        except OSError:
            continue
        else:
            yield f"the name server {host} answered"


def _try_unix() -> Iterator[str]:
    """Yield an error for each kind of socket that can be created and could reach a service outside."""
    for name, family in _FORBIDDEN.items():
        for kind in _KINDS:
            try:
                socket.socket(family, kind).close()
            except OSError:
                continue
            yield f"a socket of {name} can be made"
    try:
        for each in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
            each.close()
    except OSError:
        return
    yield "a pair of datagram sockets can be made"


def _check_descriptors(known: set[int]) -> Iterator[str]:
    """Yield an error for each inherited descriptor that is not standard, or that could connect to another peer."""
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue  # it belonged to the directory listing
        if number in known:
            continue
        if number > _STDERR:
            yield f"descriptor {number} was inherited"
        elif stat.S_ISSOCK(mode) and not _is_a_pair(number):
            yield f"descriptor {number} is a socket that could call another peer"


def _is_a_pair(number: int) -> bool:
    """Return whether a socket is permanently connected, as one end of a pair made by a parent."""
    with socket.socket(fileno=os.dup(number)) as each:
        if each.family != socket.AF_UNIX or each.type == socket.SOCK_DGRAM:
            return False
        try:
            each.getpeername()
        except OSError:
            return False
        return True


def _try_proxy(port: int) -> Iterator[str]:
    try:
        with socket.create_connection(("127.0.0.1", port), _PROXY_SECONDS) as each:
            each.sendall(b"OPTIONS * HTTP/1.1\r\n\r\n")
            answer = each.recv(4096)
    except OSError:
        answer = b""
    if not answer.startswith(b"HTTP/1.1 405 "):
        yield "Aileron's proxy does not answer"


if __name__ == "__main__":
    asked = "" if sys.argv[3] == "-" else sys.argv[3]
    about = json.loads(asked) if asked else {}
    second = [about["proxy"]] if asked else []
    more = [about["listening"]] if "listening" in about else []
    enter([int(sys.argv[1]), *second], int(sys.argv[2]), asked, sys.argv[4:], more)
