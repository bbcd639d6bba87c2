"""Sends one blocking POST to a service, bounded in time and size, for processes without a reactor.

Redirects are not followed, and proxies of the environment are not used.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

from attrs import field, frozen

from .addresses import connectable, read_base_url

MOST_BYTES = 64 * 1024
"""The limit of the body of an answer."""

_BROKEN = "could not be reached, or its answer was not complete"


class ServiceSilent(Exception):
    """Raised if a service gave no complete answer. The message is the reason, as the end of a sentence."""


@frozen
class Posted:
    """One request.

    :ivar base_url: the URL of the service: https, or http to this machine.
    :ivar path: the path below it, with its leading slash.
    :ivar headers: further headers, such as a token.
    :ivar ca_file: a file with the certificate authorities to trust, or None for those of the system.
    """

    base_url: str
    path: str
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    ca_file: Path | None = None


@frozen
class ServiceReply:
    """The answer to a request.

    :ivar content_type: the media type in lower case, without parameters, or empty.
    """

    status: int
    content_type: str
    body: bytes = field(repr=False)


class Post(Protocol):
    """A function that sends a request, and returns the answer."""

    def __call__(self, request: Posted, seconds: float) -> ServiceReply:
        """Send a request once.

        :param seconds: the limit for everything: resolving the name, connecting, and the whole answer.
        :raises ServiceSilent: if there is no complete answer in time, or the certificate is not valid.
        :raises ValueError: if the URL is not permitted. The message is the end of a sentence.
        """


def post(request: Posted, seconds: float) -> ServiceReply:
    """Send a request once. See L{Post}.

    A thread does it, because nothing else bounds the time in which a name is resolved. A thread that is late is left
    alone: it ends when its connection is closed.
    """
    connection = _make_connection(request, seconds)
    replies: SimpleQueue[ServiceReply | ServiceSilent] = SimpleQueue()
    Thread(target=lambda: replies.put(_exchange(connection, request)), name="post", daemon=True).start()
    try:
        # guard of signing: a service that does not answer is not waited for
        #    -> functional.test_blocking.PostTests.test_slow, instead reply = replies.get()
        reply = replies.get(timeout=seconds)
    except Empty:
        raise ServiceSilent(f"did not answer within {seconds:.0f} seconds") from None
    finally:
        _abandon(connection)
    if isinstance(reply, ServiceSilent):
        raise reply
    return reply


def _make_connection(request: Posted, seconds: float) -> HTTPConnection:
    # guard of signing: a token is sent over TLS, or to this machine
    #    -> functional.test_blocking.PostTests.test_plain, instead base = read_url(request.base_url)
    base = read_base_url(request.base_url)
    host = base.origin.host
    if base.origin.scheme == "http":
        # guard of signing: plain HTTP stays on this machine, whatever a resolver says of its names
        #    -> functional.test_blocking.PostTests.test_name, instead pass
        host = connectable(host)
        return HTTPConnection(host, base.origin.port, timeout=seconds)
    # Not ssl.create_default_context, which writes the keys of connections to the file that a variable names.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if request.ca_file is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(str(request.ca_file))
    except (OSError, ValueError):
        raise ServiceSilent(f"cannot be asked: {request.ca_file} holds no certificate authorities") from None
    # guard of signing: the certificate is checked -> functional.test_blocking.TlsTests.test_other_authority,
    #    instead context = ssl._create_unverified_context()
    context.check_hostname = True
    return HTTPSConnection(host, base.origin.port, timeout=seconds, context=context)


def _exchange(connection: HTTPConnection, request: Posted) -> ServiceReply | ServiceSilent:
    base = read_base_url(request.base_url)
    path = base.path + request.path
    headers = {
        "Host": base.origin.authority,
        "Content-Type": "application/json",
        "Accept": "application/json",
        **request.headers,
    }
    try:
        connection.request("POST", path, request.body, headers)
        response = connection.getresponse()
        # guard of signing: an endless answer is cut off -> functional.test_blocking.PostTests.test_endless,
        #    instead body = response.read()
        body = response.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            return ServiceSilent("sent too long an answer")
        if response.length:  # bytes that were announced and never came
            return ServiceSilent(_BROKEN)
        media_type = (response.getheader("Content-Type") or "").partition(";")[0]
        return ServiceReply(response.status, media_type.strip().lower(), body)
    except ssl.SSLCertVerificationError:
        return ServiceSilent("has no valid certificate")
    except TimeoutError:
        return ServiceSilent("did not answer in time")
    except (OSError, HTTPException, ValueError):  # a connection that was closed meanwhile is a ValueError too
        return ServiceSilent(_BROKEN)
    finally:
        connection.close()


def _abandon(connection: HTTPConnection) -> None:
    """Close a connection, also under a thread that still reads from it."""
    import socket

    taken = connection.sock
    if taken is not None:
        with suppress(OSError):
            taken.shutdown(socket.SHUT_RDWR)
