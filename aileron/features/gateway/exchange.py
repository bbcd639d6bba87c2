"""Relays one request to an upstream, and its response back, byte for byte, without a clock or reactor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from aileron.base.http1 import Body, Chunked, Malformed, ResponseHead, Tee, UntilClose, announced, read_response_prefix
from aileron.features.gateway.interfaces import IMeter
from aileron.model.errors import (
    AileronError,
    ExternalApiError,
    InvalidRequest,
    LimitExceeded,
    NetworkError,
    ResourceLimitExceeded,
)
from aileron.redaction import SecretFilter

from ._client_side import RelayTerms, answer
from ._eager import Write
from ._limits import MOST_WAITING_BYTES, RESERVED_BYTES, UPLOAD_BYTES, Account
from ._tally import UNCOUNTED
from .values import Ending

MOST_KEPT_BYTES = 1024 * 1024
"""The most bytes of a request that are stored for a retry on another connection, until its response begins."""

PROGRESS_BYTES = 16 * 1024
"""The bytes of a request's body that must arrive to count as progress of its client, unless the body ends."""

_NO_ROOM = "Too much LLM traffic is waiting to be sent or read, and this call was ended for it. Try again later."


class UpstreamConnection(Protocol):
    """The connection to a provider that carries an exchange.

    :ivar write: sends bytes to the provider.
    """

    write: Write

    def hold(self) -> None:
        """Stop reading from the provider until L{release} is called."""

    def release(self) -> None:
        """Read from the provider again, after L{hold}."""

    def done(self, keep: bool) -> None:
        """Detach the exchange, which has ended, from the connection.

        :param keep: whether the connection may carry another exchange.
        """

    def abort(self) -> None:
        """Close the connection at once. The exchange is not notified."""


class UpstreamExchange:
    """One request and its response. It implements L{aileron.base.http1.RelayedExchange}.

    Values equal for most exchanges are class attributes, so that creating an exchange costs little.

    :ivar stirred: whether either side has made progress since this was last set to false.
    :ivar over: whether the exchange has ended, for any reason.
    :ivar answered: whether the response is complete. The exchange is not C{over} while some of the response waits for
        the client.
    :ivar terms: the settings shared with other requests of the client.
    :ivar length: the length of the request's body in bytes, or L{aileron.base.http1.CHUNKED}.
    :ivar refusal: the status of the gateway's own refusals.
    :ivar meter: the meter that counts the exchange.
    :ivar upstream: the connection that carries the exchange, or None.
    :ivar give_up: cancels the connection attempt, or None if none is under way.
    """

    stirred = True
    over = False
    answered = False
    refusal = 403
    meter: IMeter = UNCOUNTED
    upstream: UpstreamConnection | None = None
    give_up: Callable[[], object] | None = None
    _kept_bytes = 0
    _replayable = True
    _account: Account | None = None
    _counted = 0
    _uploaded = 0
    _progress_at = PROGRESS_BYTES
    _partial = b""
    _answer: Body | None = None
    _screen: SecretFilter | None = None
    _begun = _spoiled = _reusable = _slow = _held = _collects = False

    def __init__(self, terms: RelayTerms, length: int, begin: Callable[[UpstreamExchange], None]) -> None:
        """Create an exchange.

        :param begin: finds the upstream for the exchange. Called once.
        """
        self.terms, self.length = terms, length
        self._begin: Callable[[UpstreamExchange], None] | None = begin  # released early: responses may take long
        self._write, self._keep = terms.write, terms.keep
        self._request = announced(length)
        self._pieces: list[bytes] = []

    # the client's side: see RelayedExchange ---------------------------------------------------------------------------

    def take(self, data: bytes) -> int:
        body = self._request
        if body is None:
            return 0
        try:
            end = body.take(data)
        except Malformed as fault:
            self.fail(InvalidRequest(str(fault)), 400)
            return -1
        if end >= 0:
            self._request = None
            data = data[:end]
        self._uploaded += len(data)
        most = self.terms.most_bytes
        if most is not None and self._uploaded > most:
            self._too_long(most)
            return -1
        progress = end >= 0 or self._uploaded >= self._progress_at
        if progress:
            self._progress_at = self._uploaded + PROGRESS_BYTES
            self.stirred = True
        self._send(data, counts=progress)
        return end

    def _send(self, data: bytes, *, counts: bool) -> None:
        if self._replayable:
            self._pieces.append(data)
            self._kept_bytes += len(data)
        if self._account is not None and (counts or self._replayable):
            self._count()
        if self.upstream is not None:
            self.upstream.write(data)
            if self._uploaded > MOST_KEPT_BYTES:
                self._forget_request()
        elif self._uploaded > MOST_WAITING_BYTES and not (self.over or self._collects):
            self.upstream_is_slow()

    def start(self) -> None:
        most, begin = self.terms.most_bytes, self._begin
        if most is not None and self.length > most:
            self._too_long(most)
        elif begin is not None:
            self._begin = None
            begin(self)

    def _too_long(self, most: int) -> None:
        self.fail(ResourceLimitExceeded(f"The body is longer than {most} bytes."), 413)

    def count_on(self, account: Account, *, opens: bool = False) -> None:
        """Count the bytes that the exchange holds in C{account} from now on.

        If a limit is exceeded, this may end the exchange at once.

        :param opens: whether the caller calls L{open} next. Then the bytes are counted there, not twice.
        """
        former, self._account = self._account, account
        if former is not None and self._counted:
            former.count(self, 0)
            self._counted = 0
        if not opens:
            self._count()

    def read_whole(self) -> bytes | None:
        """Return the request's body, framing included, if all of it has arrived and L{open} was not called yet."""
        return b"".join(self._pieces) if self._request is None else None

    def watch(self, read: Callable[[bytes, bool], None], *, holds: bool) -> None:
        """Pass each piece of the request's body also to C{read}, with whether it is the last. Call this before L{open}.

        Pieces that have arrived are passed at once.

        :param holds: whether the request is held until its body is complete. Then C{read} must limit the body's length.
        """
        self._collects, body = holds, self._request
        self.upstream_has_caught_up()  # resumes the client
        self._request = body and Tee(body, read)
        read(b"".join(self._pieces), body is None)

    def open(self, head: bytes, screen: SecretFilter | None = None) -> None:
        """Store the head to send before the client's data. If a limit is exceeded, this may end the exchange at once.

        :param screen: filters the response, or None if it is relayed unfiltered.
        """
        self._pieces.insert(0, head)
        self._kept_bytes += len(head)
        self._screen = screen
        self._count()

    def attach(self, upstream: UpstreamConnection, *, fresh: bool = False) -> None:
        """Send the request received so far over C{upstream}, and the rest as it arrives.

        :param fresh: whether the connection is new, so that the request never has to be retried on another one.
        """
        self.upstream, self.give_up = upstream, None
        waited, self._held = self._held, False
        upstream.write(b"".join(self._pieces))  # may call upstream_is_slow at once
        self.meter.sent()
        if fresh:
            self._forget_request()
        if waited and not self._held:
            self._held = True
            self.upstream_has_caught_up()

    @property
    def completion(self) -> str:
        return self.meter.completion

    @property
    def replayable(self) -> bool:
        """True while the request can be retried: its received bytes are stored, and no response has started."""
        return self._replayable and not self._spoiled

    def client_is_slow(self) -> None:
        self._slow = True
        if self.upstream is not None:
            self.upstream.hold()
        self._count()

    def client_has_caught_up(self) -> None:
        self._slow, self.stirred = False, True
        self._count()
        if self.upstream is not None:
            self.upstream.release()
        if self.answered:
            self._complete()

    def client_left(self) -> None:
        """Close the upstream connection, or cancel the attempt to open one, and end the exchange."""
        self._let_go_of_upstream()
        self._end(Ending.CLIENT_LEFT)

    # the upstream's side --------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Relay bytes of the response to the client.

        If the response is malformed or has a secret in it, fail the exchange.
        """
        self.stirred = True
        body = self._answer
        if body is None:
            self._receive_head(data)
            return
        try:
            end = body.take(data)
            whole = data if end < 0 else data[:end]
            if self._screen is not None:
                whole = self._screen.body(whole)
            if whole:
                self._write(whole)
                self.meter.passed(whole)
            if end >= 0:
                self._finish(clean=end == len(data))
        except Malformed as fault:
            self.fail(NetworkError(str(fault)), 502, Ending.CUT)
        except ExternalApiError as error:
            self.fail(error, 502, Ending.CUT)

    def _receive_head(self, data: bytes) -> None:
        self._spoiled = True
        try:
            found = read_response_prefix(self._partial + data if self._partial else data)
            if found.interim:
                self._write(found.interim if self._screen is None else self._screen.head(found.interim, chunked=False))
            if found.head is None:
                self._partial = found.rest
                self._count()
            elif not self.over:  # writing the interim response may have ended it
                self._begin_answer(found.head, found.raw, found.rest)
        except Malformed as fault:
            self.fail(NetworkError(str(fault)), 502, Ending.UNREACHABLE)
        except ExternalApiError as error:
            self.fail(error, 502, Ending.CUT)

    def _begin_answer(self, head: ResponseHead, raw: bytes, rest: bytes) -> None:
        self.meter.arrived()
        body = head.body(self.terms.method)
        end = 0 if body is None else body.take(rest)
        closes = type(body) is UntilClose
        self._keep = self._keep and not closes and self._request is None
        whole = rest if end < 0 else rest[:end]
        last = b"\r\n\r\n" if self._keep else b"\r\nConnection: close\r\n\r\n"
        onward = b"".join((b"HTTP/1.1 ", head.status, head.end_to_end(), last))
        if self._screen is not None:
            onward, whole = self._screen.head(onward, chunked=type(body) is Chunked), self._screen.body(whole)
        self._answer, self._begun, self._partial = body, True, b""
        self._reusable = head.keep and not closes
        self._write(onward + whole)
        meter = self.meter
        meter.answered(head.code, raw)
        if whole:
            meter.passed(whole)
        if end >= 0:
            self._finish(clean=end == len(rest))
        if not self.over:
            self._forget_request()

    def _finish(self, *, clean: bool) -> None:
        """Relay the rest of the complete response, release the upstream connection, and complete the exchange.

        :param clean: whether the upstream sent nothing after the response.
        """
        if self.over:
            return  # writing the last bytes may have ended it
        if self._screen is not None:
            self._pass_rest()
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            if self._request is None and not self._held:
                upstream.done(clean and self._reusable)
            else:
                upstream.abort()  # unread bytes of the request would keep it open
        self._complete()

    def _complete(self) -> None:
        """End the exchange. If the client has not read the whole response, wait for that first."""
        self.answered = True
        if not (self._slow or self.over):
            self._end(Ending.COMPLETE)
            self.terms.client.over(self._keep)

    def upstream_left(self, *, cleanly: bool) -> None:
        """Handle the loss of the upstream connection before the response was complete.

        If the connection was closed cleanly and the close marks the body's end, complete the response. Otherwise fail
        the exchange.
        """
        self.upstream = None
        if not cleanly or type(self._answer) is not UntilClose:
            ending = Ending.CUT if self._spoiled else Ending.UNREACHABLE
            self.fail(NetworkError("The provider closed the connection before its answer was whole."), 502, ending)
            return
        try:
            self._pass_rest()
            self._complete()
        except ExternalApiError as error:
            self.fail(error, 502, Ending.CUT)

    def _pass_rest(self) -> None:
        """Relay the bytes that the filter withheld because they could be the start of a secret.

        :raises ExternalApiError: if they hold the secret.
        """
        rest = b"" if self._screen is None else self._screen.rest()
        if rest:
            self._write(rest)
            self.meter.passed(rest)

    def upstream_is_slow(self) -> None:
        """Stop receiving from the client, because the upstream does not read fast enough."""
        if not self._held:
            self._held = True
            self.terms.client.hold()
            self._count()

    def upstream_has_caught_up(self) -> None:
        """Resume receiving from the client."""
        if self._held:
            self._held, self.stirred = False, True
            self._count()
            self.terms.client.release()

    # ends -----------------------------------------------------------------------------------------------------------

    def silent(self, seconds: float) -> None:
        """Fail the exchange, because neither the provider nor the client made progress for C{seconds}."""
        if self._slow:
            self.fail(InvalidRequest(f"The answer was not read for {seconds:g} seconds."), 408, Ending.SILENT)
        elif self._request is None or self._held:
            self.fail(NetworkError(f"The provider was silent for {seconds:g} seconds."), 504, Ending.SILENT)
        else:
            missing = f"The rest of the request did not come in {seconds:g} seconds."
            self.fail(InvalidRequest(missing), 408, Ending.SILENT)

    def free_memory(self) -> None:
        """Free memory: discard the request stored for a retry, or fail the exchange if nothing can be discarded."""
        if self.upstream is not None and self._kept_bytes:
            self._forget_request()
        else:
            self.fail(LimitExceeded(_NO_ROOM), LimitExceeded.status, Ending.CUT)

    def fail(self, error: AileronError, status: int, ending: Ending = Ending.REFUSED) -> None:
        """End the exchange with an error for the client. If a response has begun, cut it so that it looks incomplete.

        Data that waits for a client that does not read is discarded.
        """
        self._let_go_of_upstream()
        self._end(ending)
        if self._begun:
            self.terms.client.cut(framed=type(self._answer) is not UntilClose and not self._slow)
        else:
            self.terms.client.dismiss(answer(error, status, self.terms.dialect))

    def _let_go_of_upstream(self) -> None:
        upstream, self.upstream = self.upstream, None
        give_up, self.give_up = self.give_up, None
        if upstream is not None:
            upstream.abort()
        if give_up is not None:
            give_up()

    def _end(self, ending: Ending) -> None:
        self.over = True
        account, self._account = self._account, None
        self._replayable, self._pieces, self._kept_bytes = False, [], 0
        if account is not None and self._counted:
            account.count(self, 0)
        self.terms.ended(self)
        self.meter.ended(ending, self._uploaded)

    # what it holds --------------------------------------------------------------------------------------------------

    def _forget_request(self) -> None:
        """Discard the stored request, which is not retried any more."""
        self._replayable, self._pieces, self._kept_bytes = False, [], 0
        self._count()

    def _count(self) -> None:
        """Report the held bytes to the account: own buffers, and the buffers of paused connections."""
        if self._account is not None:
            size = self._kept_bytes + len(self._partial) + RESERVED_BYTES * (self._held + self._slow)
            if self._request is not None:
                size += UPLOAD_BYTES
            if size or self._counted:
                self._counted = size
                self._account.count(self, size)
