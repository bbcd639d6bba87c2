"""Answers to tools in the error form of their service: requests that wait, were denied, or are refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from xml.sax.saxutils import escape

from attrs import evolve, frozen

from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.connectors import GitPush, write_packet, write_report
from aileron.model.own_tools import ToolDeclaration

from ._aws import AWS_JSON, AWS_QUERY, AWS_REST, AWS_S3
from ._git import GIT_FETCH
from ._recognition import GRAPHQL, Recognised
from .values import ToolAnswer

WAITS = "Waits for approval"
DENIED = "Denied"
UNKNOWN = "Outcome unknown"
REFUSED = "Refused by Aileron"

_AWS = frozenset((AWS_JSON, AWS_QUERY, AWS_REST, AWS_S3))
_OK = "ok"
_NOTHING_SENT = "Nothing was sent."
_MOST_TEXT = 2000
_JSON = "application/json; charset=utf-8"
_PLAIN = "text/plain; charset=utf-8"
_PUSH_RESULT, _FETCH_RESULT = "application/x-git-receive-pack-result", "application/x-git-upload-pack-result"


def _write_message(text: str, code: str, url: str) -> JSON:
    return {"message": text, "code": code, **({"documentation_url": url} if url else {})}


def _write_error(text: str, code: str, url: str) -> JSON:
    return {"error": text, "code": code}


def _write_ok(text: str, code: str, url: str) -> JSON:
    return {"ok": False, "error": text, "code": code}


def _write_error_object(text: str, code: str, url: str) -> JSON:
    return {"error": {"message": text, "type": code, "code": code}}


def _write_errors(text: str, code: str, url: str) -> JSON:
    return {"errors": [{"detail": text, "code": code}]}


_WRITERS: Mapping[str, Callable[[str, str, str], JSON]] = {
    "message": _write_message,
    "error": _write_error,
    "error_object": _write_error_object,
    "errors": _write_errors,
    _OK: _write_ok,
}


@frozen
class Refusals:
    """Writes answers in the form of one service's errors, for tools and the agents that read their output.

    An answer in REST has the status 403: no tool takes it for a success, or repeats the request. Many tools show its
    reason phrase. In the form C{ok} the status is 200, as for all errors of such a service: its clients show no text of
    another status, and some repeat the request. An answer in GraphQL has the status 200 with C{errors}, which all
    clients show. An answer to git has the status 200 with an error of git's protocol, because git does not show the
    text of a 403.

    :ivar form: one of L{ERROR_FORMS<aileron.model.own_tools.ERROR_FORMS>}.
    :ivar protocol: the protocol of the request.
    :ivar push: the push of git that is answered, or None.
    """

    form: str
    protocol: str
    push: GitPush | None = None

    @classmethod
    def of(cls, declaration: ToolDeclaration, recognised: Recognised) -> Refusals:
        """Return the refusals of a service for a request."""
        return cls(declaration.errors, recognised.protocol, recognised.push)

    def waits(self, run_id: str, url: str) -> ToolAnswer:
        """Return the answer for a write that waits for approval.

        :param url: the address of its review.
        """
        text = (
            f"This request waits for the user's approval: {url} . Nothing was sent yet. It is sent once approved. "
            "Run the same command again after approval to get its result, and do not change the command."
        )
        return self._answer(WAITS, "pending_approval", text, run_id, url)

    def under_way(self, run_id: str, url: str) -> ToolAnswer:
        """Return the answer for a write that was approved and has no outcome yet.

        :param url: the address of its run.
        """
        text = f"This request was approved and has no result yet: {url} . Run the same command again to get its result."
        return self._answer("Approved, no result yet", "in_progress", text, run_id, url)

    def denied(self, run_id: str, reason: str = "") -> ToolAnswer:
        """Return the answer for a write that the user denied.

        :param reason: the user's reason, or empty.
        """
        given = f' Reason: "{_shorten(reason)}"' if reason else ""
        text = f"The user denied this request.{given} {_NOTHING_SENT}"
        return self._answer(DENIED, "approval_denied", text, run_id)

    def ended(self, run_id: str, why: str) -> ToolAnswer:
        """Return the answer for a write whose run ended without being sent, for example because it expired.

        :param why: the reason, as sentences.
        """
        return self._answer("Not sent", "not_sent", f"{_shorten(why)} {_NOTHING_SENT}", run_id)

    def failed(self, why: str, run_id: str = "") -> ToolAnswer:
        """Return the answer for a request that failed, and of which there is no answer of the service.

        :param why: the reason, as sentences. They say whether something was sent.
        :param run_id: the run of a write, or empty for a read.
        """
        return self._answer("Failed", "failed", _shorten(why), run_id)

    def unknown(self, run_id: str, url: str) -> ToolAnswer:
        """Return the answer for a write that was sent and whose outcome is unknown.

        :param url: the address of its run.
        """
        text = (
            "The outcome of this request is unknown: it was sent, but no complete answer came. It will not be sent "
            f"again. Check the service before you send another one. The user can settle it at {url}"
        )
        return self._answer(UNKNOWN, "outcome_unknown", text, run_id, url)

    def owed(self) -> ToolAnswer:
        """Return the answer for a further write of a command that has not got the answer to an earlier one."""
        text = (
            "An earlier request of this command waits for approval, so this request was refused. "
            f"{_NOTHING_SENT} Run the same command again after approval."
        )
        return self._answer(REFUSED, "earlier_request_pending", text)

    def refused(self, why: str, code: str = "refused") -> ToolAnswer:
        """Return the answer for a request that Aileron refuses.

        :param why: what is wrong, as sentences without any value of a credential.
        :param code: the reason for programs: C{refused}, C{foreign_credential}, C{paused}, C{vault_locked},
            C{too_long}, …
        """
        return self._answer(REFUSED, code, f"Aileron refused this request. {_shorten(why)} {_NOTHING_SENT}")

    def unauthorized(self, connector: str) -> ToolAnswer:
        """Return the answer for a request whose credential the service refused with the status 401.

        The status is not passed on, because tools would ask for a login.

        :param connector: the connector's name.
        """
        text = (
            f"The service refused the credential that Aileron added for {connector}. The user can look at it with: "
            "aileron credential list"
        )
        return self._answer("Credential refused by the service", "credential_refused", text)

    def _answer(self, phrase: str, code: str, text: str, run_id: str = "", url: str = "") -> ToolAnswer:
        headers = [("Cache-Control", "no-store"), ("x-should-retry", "false")]
        if run_id:
            headers.append(("Aileron-Run", run_id))
        if self.protocol == GRAPHQL:
            error: JSON = {"message": text, "type": code.upper(), "extensions": {"code": code.upper()}}
            return _write_json(200, "OK", headers, {"data": None, "errors": [error]})
        if self.push is not None or self.protocol == GIT_FETCH:
            return self._answer_git(phrase, text, headers)
        if self.protocol in _AWS:
            return self._answer_aws(phrase, code, text, headers)
        writer = _WRITERS.get(self.form)
        if writer is None:
            phrase = _write_reason(text) if self.form == "reason" else phrase
            return ToolAnswer(403, phrase, (("Content-Type", _PLAIN), *headers), f"{text}\n".encode())
        if self.form == _OK:
            return _write_json(200, "OK", headers, writer(text, code, url))
        return _write_json(403, phrase, headers, writer(text, code, url))

    def _answer_git(self, phrase: str, text: str, headers: list[tuple[str, str]]) -> ToolAnswer:
        """Return an answer to git: the report on a push, or the line that git shows when it fetches."""
        if self.push is None:
            error_line = write_packet(f"ERR {text}\n".encode())
            return ToolAnswer(200, "OK", (("Content-Type", _FETCH_RESULT), *headers), error_line)
        report = write_report(self.push, phrase[:1].lower() + phrase[1:], text)
        return ToolAnswer(200, "OK", (("Content-Type", _PUSH_RESULT), *headers), report)

    def _answer_aws(self, phrase: str, code: str, text: str, headers: list[tuple[str, str]]) -> ToolAnswer:
        """Return an answer in the form of AWS's errors. The error's code is written in upper camel case."""
        name = "".join(each.capitalize() for each in code.split("_"))
        if self.protocol in (AWS_JSON, AWS_REST):
            typed = [("x-amzn-ErrorType", name)] if self.protocol == AWS_REST else []
            answer = _write_json(403, phrase, [*typed, *headers], {"__type": name, "message": text})
            return evolve(answer, headers=(("Content-Type", "application/x-amz-json-1.0"), *answer.headers[1:]))
        error = f"<Code>{name}</Code><Message>{escape(text)}</Message>"
        if self.protocol == AWS_QUERY:
            error = f"<ErrorResponse><Error><Type>Sender</Type>{error}</Error></ErrorResponse>"
        else:
            error = f"<Error>{error}</Error>"
        body = f'<?xml version="1.0" encoding="UTF-8"?>\n{error}'.encode()
        return ToolAnswer(403, phrase, (("Content-Type", "application/xml"), *headers), body)


def _shorten(text: str) -> str:
    shown = visible(text[:_MOST_TEXT])
    return shown if len(text) <= _MOST_TEXT else f"{shown}…"


def _write_reason(text: str) -> str:
    """Return a text as a reason phrase, which is all that twine shows of PyPI's errors."""
    return text[:_MOST_TEXT].replace("\n", " ").encode("ascii", "replace").decode("ascii")


def _write_json(status: int, phrase: str, headers: list[tuple[str, str]], value: JSON) -> ToolAnswer:
    return ToolAnswer(status, phrase, (("Content-Type", _JSON), *headers), json.dumps(value).encode() + b"\n")
