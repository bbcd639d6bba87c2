"""The operator site's methods: deciding, looking back, and what belongs to the vault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from aileron.values import JSON

from ._agent_site import BothSites
from ._requests import DaemonClient, Query

_TEST_SECONDS = 40.0  # one attempt of each channel takes 30 at most


@frozen
class Operator(BothSites):
    """The operator site; without a token only L{challenge} and L{login} are answered.

    Each method raises L{DaemonUnreachable}, L{DaemonFault} and L{AnswerNotUnderstood}.
    """

    _client: DaemonClient

    async def challenge(self, nonce: str) -> Mapping[str, Any]:
        """C{{nonce, proof}}: the daemon proves that it knows the operator's key.

        :param nonce: ours, as unpadded base64url.
        """
        return await self._post("operator", "challenge", body={"nonce": nonce})

    async def login(self, nonce: str, proof: str) -> Mapping[str, Any]:
        """C{{token, expires_at}} for our proof over the daemon's nonce."""
        return await self._post("operator", "login", body={"nonce": nonce, "proof": proof})

    async def logout(self) -> Mapping[str, Any]:
        """End this operator session."""
        return await self._post("operator", "logout")

    async def operator_sessions(self) -> Mapping[str, Any]:
        """C{{items}}: the operator's live logins, newest first."""
        return await self._get("operator", "sessions")

    async def end_operator_session(self, session_id: str) -> Mapping[str, Any]:
        """C{{ended}}: the ids of the logins that ended; here one, with the browser that it let in."""
        return await self._delete("operator", "sessions", session_id)

    async def end_operator_sessions(self) -> Mapping[str, Any]:
        """End all sessions but our own."""
        return await self._delete("operator", "sessions")

    async def passkeys(self) -> Mapping[str, Any]:
        """C{{items, rule}}: the passkeys that count, and what may not be approved without one."""
        return await self._get("operator", "passkeys")

    async def confirm_passkey(self, words: str) -> Mapping[str, Any]:
        """Let the passkey count whose page shows these words."""
        return await self._post("operator", "passkeys", "confirm", body={"words": words})

    async def require_passkey(self, everything: bool, actions: Sequence[str]) -> Mapping[str, Any]:
        """C{{items, rule}}, the rule being this one from now on."""
        body: dict[str, JSON] = {"everything": everything, "actions": list(actions)}
        return await self._post("operator", "passkeys", "rule", body=body)

    async def reset_passkeys(self) -> Mapping[str, Any]:
        """Forget every passkey and the rule."""
        return await self._delete("operator", "passkeys")

    async def hand_over(self) -> Mapping[str, Any]:
        """C{{code}}: what one browser may redeem once."""
        return await self._post("operator", "handover")

    async def handed_over(self) -> Mapping[str, Any]:
        """C{{state}}: how far that is."""
        return await self._get("operator", "handover")

    async def confirm_hand_over(self, words: str) -> Mapping[str, Any]:
        """Let the browser in that shows these two words; its session."""
        return await self._post("operator", "handover", "confirm", body={"words": words})

    async def follow(self, on_event: Callable[[], None]) -> None:
        """Call C{on_event} when the daemon begins to tell, and whenever something is put on record, until that is over.

        Cancelling ends it.
        """
        await self._client.follow("v1", "events", on_event=on_event)

    async def approvals(self, filters: Query | None = None) -> Mapping[str, Any]:
        """C{{items, cursor}}, oldest first."""
        return await self._get("action-approvals", query=filters)

    async def approval(self, run_id: str) -> Mapping[str, Any]:
        """One approval, whole."""
        return await self._get("action-approvals", run_id)

    async def decide(
        self,
        run_id: str,
        approved: bool,
        digest: str,
        *,
        reason: str | None = None,
        not_before: str | None = None,
        grant: Mapping[str, JSON] | None = None,
    ) -> Mapping[str, Any]:
        """Say yes or no to exactly what C{digest} binds.

        :param not_before: RFC 3339: an approved run begins no sooner.
        :param grant: what is allowed besides, from now on: C{{predicates, uses, not_after, session}}.
        """
        said: dict[str, JSON] = {"reason": reason, "not_before": not_before, "grant": grant}
        given = {name: value for name, value in said.items() if value is not None}
        body: dict[str, JSON] = {"approved": approved, "digest": digest, **given}
        return await self._post("action-approvals", run_id, "decide", body=body)

    async def edit(self, run_id: str, arguments: Mapping[str, JSON], digest: str) -> Mapping[str, Any]:
        """Ask for other arguments instead of those that C{digest} binds; the approval as it is then."""
        return await self._post("action-approvals", run_id, "edit", body={"args": arguments, "digest": digest})

    async def forgive(self, run_id: str) -> Mapping[str, Any]:
        """Let agents ask again what was denied."""
        return await self._post("action-approvals", run_id, "forgive")

    async def pause(self, session_id: str | None, reason: str | None) -> Mapping[str, Any]:
        """C{{pause, under_way}}: let nothing more begin, of a session or of all."""
        return await self._post("pause", body={"session": session_id, "reason": reason})

    async def resume(self, session_id: str | None) -> Mapping[str, Any]:
        """C{{asked_anew}}: what was approved and had not begun."""
        return await self._post("resume", body={"session": session_id})

    async def caps(self) -> Mapping[str, Any]:
        """C{{items}}: the operator's own."""
        return await self._get("caps")

    async def set_caps(self, caps: Mapping[str, JSON]) -> Mapping[str, Any]:
        """Set how often something may begin in an hour or a day."""
        return await self._post("caps", body=caps)

    async def remove_cap(self, which: Mapping[str, JSON]) -> Mapping[str, Any]:
        """Remove one; C{{items}}: the others."""
        return await self._delete("caps", body=which)

    async def runs(self, filters: Query | None = None) -> Mapping[str, Any]:
        """C{{items, cursor}}, newest first."""
        return await self._get("runs", query=filters)

    async def run(self, run_id: str) -> Mapping[str, Any]:
        """One run, whole."""
        return await self._get("runs", run_id)

    async def resolve(self, run_id: str, outcome: str, note: str) -> Mapping[str, Any]:
        """Settle an C{unknown} run: C{happened} or C{did_not_happen}; or C{run_again}, which answers the new run."""
        return await self._post("runs", run_id, "resolve", body={"outcome": outcome, "note": note})

    async def undo_run(self, run_id: str) -> Mapping[str, Any]:
        """Request what undoes a completed run: the new run, which needs approval."""
        return await self._post("runs", run_id, "undo")

    async def reconcile_run(self, run_id: str) -> Mapping[str, Any]:
        """Have it looked for what became of an C{unknown} run: C{{run, happened, failure}}."""
        return await self._post("runs", run_id, "reconcile")

    async def audit(self, filters: Query | None = None) -> Mapping[str, Any]:
        """C{{items, cursor}}, newest first."""
        return await self._get("audit", query=filters)

    async def audit_record(self, audit_id: str) -> Mapping[str, Any]:
        """One record."""
        return await self._get("audit", audit_id)

    async def actions(self) -> Mapping[str, Any]:
        """C{{generation, items, load_errors}}."""
        return await self._get("actions")

    async def dry_run(self, name: str, arguments: Mapping[str, JSON]) -> Mapping[str, Any]:
        """C{{digest, review}}: what an action would send; nothing is sent."""
        return await self._post("actions", name, "dry-run", body={"args": arguments})

    async def set_enabled(self, name: str, enabled: bool) -> Mapping[str, Any]:
        """Switch an action on or off."""
        return (await self._client.ask("PATCH", "v1", "actions", name, body={"enabled": enabled})).body

    async def trust_items(self) -> Mapping[str, Any]:
        """List the files on disk and what is trusted, as C{{items}}, each with what is to be read first."""
        return await self._get("trust")

    async def trust(self, items: Sequence[Mapping[str, JSON]]) -> Mapping[str, Any]:
        """Trust exactly these, C{{kind, name, digest}} each; all or none."""
        return await self._post("trust", body={"items": list(items)})

    async def distrust(self, kind: str, name: str) -> Mapping[str, Any]:
        """Take trust back."""
        return await self._delete("trust", body={"kind": kind, "name": name})

    async def grants(self) -> Mapping[str, Any]:
        """C{{items}}: the standing grants."""
        return await self._get("grants")

    async def grant(self, grant_id: str) -> Mapping[str, Any]:
        """One standing grant."""
        return await self._get("grants", grant_id)

    async def revoke_grant(self, grant_id: str) -> Mapping[str, Any]:
        """Revoke a standing grant."""
        return await self._delete("grants", grant_id)

    async def bindings(self) -> Mapping[str, Any]:
        """C{{items}}, without secrets."""
        return await self._get("bindings")

    async def binding(self, name: str) -> Mapping[str, Any]:
        """One binding: for what it was sealed, and what its connector asks for now."""
        return await self._get("bindings", name)

    async def binding_target(self, connector: str, base_url: str | None = None) -> Mapping[str, Any]:
        """C{scope}: for what a credential would be sealed that is bound to C{connector} now."""
        return await self._post("bindings", "target", body={"connector": connector, "base_url": base_url})

    async def set_up_binding(self, binding: Mapping[str, JSON]) -> Mapping[str, Any]:
        """Bind a credential to a connector; the secret travels in the body, once."""
        return await self._post("bindings", "setup", body=binding)

    async def rebind(self, name: str, revision: int) -> Mapping[str, Any]:
        """Seal a binding anew for what its connector asks for now."""
        return await self._post("bindings", name, "rebind", body={"revision": revision})

    async def replace_secret(self, name: str, secret: str) -> Mapping[str, Any]:
        """Keep another secret in the same binding; it travels in the body, once."""
        return await self._post("bindings", name, "replace", body={"secret": secret})

    async def revoke_binding(self, name: str) -> Mapping[str, Any]:
        """Remove a binding and its secret."""
        return await self._delete("bindings", name)

    async def notifications(self) -> Mapping[str, Any]:
        """C{{items}}: the channels by which the operator is told of what waits, and how each does."""
        return await self._get("notifications")

    async def try_notifications(self) -> Mapping[str, Any]:
        """Send a test by each, and return how they do."""
        return (await self._client.ask("POST", "v1", "notifications", "test", body={}, wait_seconds=_TEST_SECONDS)).body

    async def connectors(self) -> Mapping[str, Any]:
        """C{{items, problems}}."""
        return await self._get("connectors")

    async def sessions(self, filters: Query | None = None) -> Mapping[str, Any]:
        """C{{items, cursor}}, newest first."""
        return await self._get("sessions", query=filters)

    async def session(self, session_id: str) -> Mapping[str, Any]:
        """One agent's session."""
        return await self._get("sessions", session_id)

    async def end_session(self, session_id: str) -> Mapping[str, Any]:
        """End an agent's session."""
        return await self._post("sessions", session_id, "end", body={"exit_code": None})

    async def deny_session(self, session_id: str, reason: str | None) -> Mapping[str, Any]:
        """End an agent's session, and deny all that waits of it: C{denied} and C{left} tell which."""
        return await self._post("sessions", session_id, "deny", body={"reason": reason})

    async def lock_vault(self) -> Mapping[str, Any]:
        """Lock the vault; running effects finish first."""
        return await self._post("vault", "lock")

    async def _delete(self, *path: str, body: Mapping[str, JSON] | None = None) -> Mapping[str, Any]:
        return (await self._client.ask("DELETE", "v1", *path, body=body or {})).body
