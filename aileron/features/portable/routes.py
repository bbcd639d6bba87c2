"""The routes of portable decisions: export a request, import a signed decision, and enrol SSH keys."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

from attrs import evolve

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import BOOLEAN, DIGEST, MOMENT, REASON, TEXT, list_of, made_of, ref
from aileron.api.shapes.values import approval_json, moment, to_json
from aileron.base.json import JSON, timestamp
from aileron.base.sshsig import read_ssh_key
from aileron.model.authority import EnrolledSshKey, decision_item
from aileron.model.errors import ApprovalStale, Conflict, Forbidden, InvalidRequest
from aileron.model.runs import Assertion, Decision, RunState
from aileron.model.signing import EnrolledKey, KeyKind, read_statement, write_file
from aileron.review import review_requests
from aileron.vault import EXPORT_SECONDS

from ._text import MOST_CHARACTERS, PortableRequest

TABLE = EndpointTable()

_COURIERS = Who.OPERATOR | Who.LOCAL
"""Who may export and import: also commands without a login, because the signature decides."""

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
_LINE: Schema = {"type": "string", "minLength": 1, "maxLength": 16 * 1024}
_FILE: Schema = {"type": "string", "minLength": 1, "maxLength": 4 * MOST_CHARACTERS}
_EXPORTED = made_of({"text": TEXT, "digest": TEXT, "until": MOMENT})
_KEY = made_of({"id": TEXT, "name": TEXT, "kind": TEXT, "fingerprint": TEXT, "hardware": BOOLEAN, "made_at": MOMENT})
_KEYS = made_of({"items": list_of(_KEY)})


@TABLE.route(
    "POST",
    "/v1/action-approvals/<approval_id>/export",
    operators=_COURIERS,
    body=made_of({"approved": BOOLEAN}, {"reason": REASON, "digest": DIGEST, "short": BOOLEAN}),
    answers={200: _EXPORTED},
)
async def export(context: RequestContext, deps: Dependencies, approval_id: str) -> Answer:
    """Return a pending request as a text that an enrolled SSH key signs within one hour, whole, to decide the request.

    The last line is the decision. With C{short}, the text has the digest in place of the details.

    :raises NotFound: if there is no such request.
    :raises Conflict: if it is not pending.
    :raises ApprovalStale: if it has not the given digest any more.
    :raises InvalidRequest: if it is too long to be exported whole.
    """
    approval = await deps.decisions.approval(approval_id, only_read=context.caller.only_reads)
    if approval.run.state is not RunState.PENDING:
        raise Conflict("Only a pending request can be exported.", {"state": approval.run.state.value})
    if context.text("digest") not in (None, approval.digest):
        raise ApprovalStale("The request has changed. Nothing was exported. Review it again.")
    (review,) = await review_requests(deps.decisions, deps.submission.offering().offers, (approval,))
    decision = Decision(context.body["approved"] is True, approval.digest, "", context.text("reason"))
    until = deps.now() + timedelta(seconds=EXPORT_SECONDS)
    if approval.expires_at is not None:
        until = min(until, approval.expires_at)
    session_id = approval.run.session_id
    session = None if session_id is None else await deps.sessions.get(session_id)
    request = PortableRequest(review, session, decision, until)
    text = request.write_short() if context.body.get("short") is True else request.write()
    if len(text) > MOST_CHARACTERS:
        raise InvalidRequest.listing("The request is too long to be exported in full.", ("/short", "must be true"))
    statement = deps.approvers.export(text, [decision_item(approval_id, decision, None)])
    return answer({"text": write_file(text, statement), "digest": approval.digest, "until": timestamp(until)})


@TABLE.route(
    "POST",
    "/v1/signed-decisions",
    operators=_COURIERS,
    body=made_of({"text": _FILE, "signature": _LINE}),
    answers={200: ref("Approval")},
)
async def import_decision(context: RequestContext, deps: Dependencies) -> Answer:
    """Decide a request by a signature that an enrolled SSH key made elsewhere. The signature decides, not the caller.

    C{text} is the exported text, unchanged, and C{signature} what C{ssh-keygen -Y sign} wrote for it.

    :raises InvalidRequest: if the text is no exported request or was changed, or the signature is malformed.
    :raises Forbidden: if the key is not enrolled, or the signature is not valid.
    :raises NotFound: if there is no such request.
    :raises Conflict: if it is not pending.
    :raises ApprovalStale: if it has another digest now.
    :raises Paused, VaultLocked: if nothing can be decided now.
    """
    run_id, decision = _read(deps, str(context.body["text"]), str(context.body["signature"]))
    approval = await deps.decisions.decide(run_id, decision)
    return answer(approval_json(approval, deps.review_url))


def _read(deps: Dependencies, text: str, signature: str) -> tuple[str, Decision]:
    """Parse a signed text, and return the run and the decision, whose signature is not verified yet.

    :raises InvalidRequest: if the text is no exported request, or the signature is malformed.
    :raises Forbidden: if the key is not enrolled.
    """
    body, _, last = text.removesuffix("\n").rpartition("\n")
    try:
        statement = read_statement(last)
    except (ValueError, RecursionError):
        raise InvalidRequest.listing("This is no exported request.", ("/text", "was changed or cut")) from None
    signer = deps.approvers.find_signer(signature)
    if signer is None:
        raise Forbidden("The key of this signature is not enrolled. Nothing was decided.", {"signature": True})
    (item, *others) = statement.items
    if others or item["grant"] is not None or item["not_before"] is not None or not text.endswith("\n"):
        raise InvalidRequest.listing("This is no exported request.", ("/text", "has another decision"))
    reason = item["reason"]
    decision = Decision(
        item["verdict"] == "approved", str(item["digest"]), signer.id, None if reason is None else str(reason)
    )
    return str(item["run"]), evolve(decision, assertion=Assertion(last, signature, text=f"{body}\n" if body else ""))


@TABLE.route("GET", "/v1/operator/approvers", operators=READERS, answers={200: _KEYS})
async def list_approvers(context: RequestContext, deps: Dependencies) -> Answer:
    """List the enrolled SSH keys, oldest first."""
    return answer({"items": [_key_json(each) for each in deps.approvers.ssh_keys()]})


@TABLE.route(
    "POST",
    "/v1/operator/approvers",
    operators=Who.OPERATOR,
    body=made_of({"name": _NAME, "public_key": _LINE}),
    answers={201: _KEY},
)
async def add_approver(context: RequestContext, deps: Dependencies) -> Answer:
    """Enrol an SSH key, whose signatures decide from now on. Needs a login by a passphrase in a terminal.

    :raises Forbidden: if the caller has no such login.
    :raises InvalidRequest: if the key cannot be read, or is of a kind that is not supported.
    :raises Conflict: if the key is enrolled already, or there are too many.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault or the audit log cannot be written.
    """
    _require_terminal(context)
    key = deps.approvers.add_ssh_key(str(context.body["name"]), str(context.body["public_key"]))
    enrolled: JSON = to_json(EnrolledKey(KeyKind.SSH, key.public_key))
    told: dict[str, JSON] = {"id": key.id, "name": key.name, "key": enrolled}
    await deps.access_log.record("operator.approver_added", context.caller.actor, told)
    return answer(_key_json(key), 201)


@TABLE.route("DELETE", "/v1/operator/approvers/<key_id>", operators=Who.OPERATOR, answers={200: _KEY})
async def remove_approver(context: RequestContext, deps: Dependencies, key_id: str) -> Answer:
    """Remove an SSH key. What it approved and has not started yet needs another approval.

    :raises NotFound: if there is no such key.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault or the audit log cannot be written.
    """
    key = deps.approvers.remove_ssh_key(key_id)
    await deps.access_log.record("operator.approver_removed", context.caller.actor, {"id": key.id, "name": key.name})
    return answer(_key_json(key))


def _key_json(key: EnrolledSshKey) -> dict[str, JSON]:
    read, _ = read_ssh_key(key.public_key)
    return {
        "id": key.id,
        "name": key.name,
        "kind": read.kind,
        "fingerprint": read.fingerprint,
        "hardware": read.is_hardware,
        "made_at": cast("JSON", moment(key.made_at)),
    }


def _require_terminal(context: RequestContext) -> None:
    if context.caller.token is None:
        raise Forbidden("No page may do that: use a terminal.")
