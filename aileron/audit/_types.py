"""The types of events. The names that other tools of this kind use are kept."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

RECORDED: Mapping[str, str] = MappingProxyType(
    {
        "run.approved": "A run that needs no decision, or whose decision was found in order at a start, may go on.",
        "run.awaiting_vault": "A run may start, but the vault is locked.",
        "run.awaiting_credential": "A run may start, but a person has to renew its credential first; why is told.",
        "run.resumed": "What a run waited for, the vault or a credential, is there, and it goes on.",
        "run.cancelled": "A run was withdrawn, or dropped at a start of the daemon, before anything was sent.",
        "run.settled": "A person said what came of a run whose outcome was unknown.",
        "approval.requested": "A gated run was put up for decision, or put up anew.",
        "approval.previewed": "What the service shows was fetched, or could not be, and is shown with what is "
        "asked; of its contents only the digest is kept.",
        "approval.modified": "The operator edited the arguments, which are shown anew; how is told.",
        "approval.approved": "The operator approved exactly what was shown.",
        "approval.denied": "The operator said no.",
        "approval.forgiven": "The operator lets agents ask again, before its time, what was denied.",
        "session.broken": "An agent's session, or an action for all agents, was stopped for a while: too many denials "
        "or the same call too often.",
        "approval.expired": "Nobody decided in the time that the action allows.",
        "approval.stale": "What was shown is no longer what would run: it is shown anew and needs a new decision.",
        "pause.begun": "Everything, or one session, was paused: nothing of it begins.",
        "pause.ended": "The operator resumed what was paused; what was approved by then is asked anew.",
        "cap.set": "The operator set a cap of their own; kept before the vault is written.",
        "cap.removed": "The operator removed a cap of their own; kept before the vault is written.",
        "execution.started": "A run may now have an effect; kept before the first byte leaves. Its actor is who "
        "called the action, or the daemon where a decision was waited for.",
        "execution.attempt": "An attempt of a step failed and another is made; kept before the first byte leaves.",
        "execution.succeeded": "Every step was answered as its connector declares success.",
        "execution.failed": "A step failed, and its effect did not happen.",
        "execution.unknown": "A request left, and no answer says whether its effect happened.",
        "execution.late_answer": "An answer came after its time was up, when the run was in doubt already.",
        "execution.reconciled": "It was looked for the effect of a run whose outcome is unknown: what was found, if "
        "anything.",
        "run.run_again": "The operator wants a run whose outcome is unknown done again: a new run is asked about.",
        "binding.created": "A credential was bound to a connector.",
        "binding.rebound": "A credential was bound anew, for what its connector asks for now.",
        "binding.needs_you": "A credential that runs out cannot be renewed any more without a person; why is told.",
        "binding.replaced": "A binding was given another secret.",
        "binding.revoked": "A binding was removed, and its credential with it.",
        "vault.unlocked": "The vault was opened.",
        "vault.locked": "The vault was closed.",
        "action.enabled": "The operator switched an action on.",
        "action.disabled": "The operator switched an action off.",
        "session.started": "An agent's session began.",
        "session.ended": "An agent's session ended.",
        "tamper.detected": "A decision on record was not the operator's for what would have run, or was used before; "
        "or the vault or the record was put back to what it was. What was found is told, what waited is asked anew.",
        "audit.pruned": "The contents of all records up to a number were, or are being, deleted, as the operator has "
        "it in the configuration.",
        "secret.echoed": "An answer held the credential that was sent; it was taken out, or the answer cut, "
        "before anybody saw it.",
        "trust.given": "The operator read a file and trusts it, as it was; kept before the vault is written.",
        "trust.taken": "The operator trusts a file no more; kept before the vault is written.",
        "grant.issued": "The operator allowed calls like the one that was approved with it; kept before the vault is "
        "written.",
        "grant.used": "A call was allowed by a standing grant, and that use was counted.",
        "grant.revoked": "A standing grant is in force no more.",
        "grant.suspended": "A standing grant allows nothing, since what it stands on has changed; told once in a life "
        "of the daemon.",
        "vault.replaced": "Another vault took the place of the earlier one; what was approved by then is asked anew.",
        "operator.login": "The operator proved the passphrase, or let a browser in, and that was given a session.",
        "operator.login_refused": "Logins or tokens were refused, so many since the last of these; one in ten seconds.",
        "operator.logout": "A session of the operator was ended.",
        "operator.passkey_proposed": "A page made a passkey, which waits for its two words.",
        "operator.passkey_added": "A passkey counts from now on: its words were typed in a terminal.",
        "operator.passkey_required": "From now on these approvals need a passkey.",
        "operator.passkey_reset": "All passkeys were forgotten, and no approval needs one.",
        "operator.handover_opened": "A browser came with the code of `aileron open`, and waits for its two words.",
        "operator.handover_refused": "A browser was not let in: its code was used twice, or the two words were wrong.",
    }
)
"""Each type of event, and what happened when it is on record."""
