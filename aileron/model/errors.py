"""One exception tree, which is the failure taxonomy: a class of errors, its HTTP status, its side, whether to retry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define, field

from aileron.base.json import JSON

from .faults import Fault
from .runs import Run


@define(eq=False)
class AileronError(Exception):
    """Something failed in a way that a caller may decide about.

    :ivar message: fit for the user's eyes: no secret, no stack.
    :ivar details: what a program wants to know beside it.
    """

    kind: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    boundary: ClassVar[str] = "runtime"
    retriable: ClassVar[bool] = False

    message: str
    details: Mapping[str, JSON] = field(factory=dict)

    def __str__(self) -> str:
        """Return the message, for logs."""
        return self.message

    def fault(self) -> Fault:
        """Return the value that is stored and sent."""
        return Fault(self.kind, self.message, self.boundary, self.retriable, self.details)


class InternalError(AileronError):
    """A fault of our own; the message says nothing of its inside."""


class InvalidRequest(AileronError):
    """The caller's input is wrong.  C{details["problems"]}: C{[{"pointer": "/args/x", "message": …}]}."""

    kind, status, boundary = "invalid_request", 400, "user"

    @classmethod
    def listing(cls, message: str, *problems: tuple[str, str]) -> InvalidRequest:
        """Refuse an input, with its problems.

        :param problems: pairs of JSON pointer and message; no message repeats a value.
        """
        return cls(message, {"problems": [{"pointer": pointer, "message": text} for pointer, text in problems]})


class Unauthorized(AileronError):
    """No credential, or an unknown one."""

    kind, status, boundary = "unauthorized", 401, "user"


class Forbidden(AileronError):
    """A credential that may not do this."""

    kind, status, boundary = "forbidden", 403, "user"


class ApprovalDenied(AileronError):
    """The operator said no; C{details["reason"]} holds why, if given."""

    kind, status, boundary = "approval_denied", 403, "user"


class CapabilityDenied(AileronError):
    """The action or the connector does not declare what was asked of it."""

    kind, status, boundary = "capability_denied", 403, "connector_manifest"


class NotFound(AileronError):
    """There is no such thing, or it is not the caller's."""

    kind, status, boundary = "not_found", 404, "user"


class Conflict(AileronError):
    """The thing is in another state than the caller thought; C{details} tells the present one."""

    kind, status, boundary = "conflict", 409, "user"


class ApprovalStale(AileronError):
    """A decision about what is no longer what would run: look again."""

    kind, status, boundary = "approval_stale", 409, "runtime"


class Cancelled(AileronError):
    """The run was withdrawn before anything was sent."""

    kind, status, boundary = "cancelled", 409, "user"


class ApprovalExpired(AileronError):
    """Nobody decided in the time that the action allows."""

    kind, status, boundary = "approval_expired", 410, "user"


class BindingRequired(AileronError):
    """The connector needs a credential and none, or more than one, is bound to it."""

    kind, status, boundary = "binding_required", 412, "runtime"


class BindingFailed(AileronError):
    """A bound credential could not be opened or is not accepted."""

    kind, status, boundary = "binding_failed", 412, "runtime"


class CredentialNeedsYou(BindingFailed):
    """A bound credential works again only after a person renews it; C{details["reason"]} says why."""


class HashMismatch(AileronError):
    """The content is not the one that was pinned."""

    kind, status, boundary = "hash_mismatch", 422, "runtime"


class SignatureFailure(AileronError):
    """A signature does not hold."""

    kind, status, boundary = "signature_failure", 422, "runtime"


class VaultLocked(AileronError):
    """The vault must be unlocked first (or made, or it is lost); C{details["state"]} says which."""

    kind, status, boundary = "vault_locked", 423, "runtime"


class LimitExceeded(AileronError):
    """Too many at once; C{details["retry_after"]}: seconds."""

    kind, status, boundary, retriable = "limit_exceeded", 429, "user", True


class ConnectorRuntimeError(AileronError):
    """A connector broke its own contract."""

    kind, status, boundary = "connector_runtime_error", 500, "sandbox"


class OutcomeUnknown(AileronError):
    """The effect may have happened; a person settles it."""

    kind, status, boundary = "outcome_unknown", 500, "external"


class NetworkError(AileronError):
    """The service was not reached; nothing was sent."""

    kind, status, boundary, retriable = "network_error", 502, "external", True


class ExternalApiError(AileronError):
    """The service answered that it did not do it."""

    kind, status, boundary = "external_api_error", 502, "external"


class Paused(AileronError):
    """The operator has paused everything."""

    kind, status, boundary, retriable = "paused", 503, "runtime", True


class StoreUnavailable(AileronError):
    """The database could not take the write (full, locked, damaged, closing); nothing of it was kept."""

    kind, status, boundary, retriable = "store_unavailable", 503, "runtime", True


class ResourceLimitExceeded(AileronError):
    """A size or a time went past its cap."""

    kind, status, boundary = "resource_limit_exceeded", 507, "sandbox"


@define(eq=False)
class StateConflict(Exception):
    """A compare-and-set lost: the run is no longer in the state that the transition starts from.

    :ivar present: the run as it is.
    """

    present: Run


class WrongPassphrase(Unauthorized):
    """The passphrase does not open this vault (or its wrapped key was altered: nobody can tell the two apart)."""


class WeakPassphrase(InvalidRequest):
    """A new passphrase that would be guessed."""


class NoVault(VaultLocked):
    """There is no vault file."""


class VaultDamaged(BindingFailed):
    """The vault file is not what the holder of its key wrote last.  It is never replaced; a person puts a copy back."""


def damaged(reason: str) -> VaultDamaged:
    """Make the error that says C{reason}, and what a person can do."""
    return VaultDamaged(f"{reason} Put secrets.json back from a copy, or run `aileron vault reset`.")


def _leaves(root: type[AileronError]) -> list[type[AileronError]]:
    return [leaf for branch in root.__subclasses__() for leaf in (branch, *_leaves(branch))]


STATUS: Mapping[str, int] = {leaf.kind: leaf.status for leaf in _leaves(AileronError)}
"""HTTP status of each class of the taxonomy.  Closed: a new one needs an ADR."""
