"""The exception tree, which is the failure taxonomy: each class with its HTTP status, its side and whether to retry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define, field

from aileron.base.json import JSON

from .faults import Fault
from .runs import Run


@define(eq=False)
class AileronError(Exception):
    """An error that the caller can handle.

    :ivar message: the message for the user. It contains no secret and no stack.
    :ivar details: further data for programs.
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
        """Return the error as the value that is stored and sent."""
        return Fault(self.kind, self.message, self.boundary, self.retriable, self.details)


class InternalError(AileronError):
    """A bug in Aileron. The message contains no internals."""


class InvalidRequest(AileronError):
    """An invalid input. C{details["problems"]}: C{[{"pointer": "/args/x", "message": …}]}."""

    kind, status, boundary = "invalid_request", 400, "user"

    @classmethod
    def listing(cls, message: str, *problems: tuple[str, str]) -> InvalidRequest:
        """Return an error that lists problems.

        :param problems: pairs of JSON pointer and message. No message repeats a value.
        """
        return cls(message, {"problems": [{"pointer": pointer, "message": text} for pointer, text in problems]})


class Unauthorized(AileronError):
    """A missing or unknown credential."""

    kind, status, boundary = "unauthorized", 401, "user"


class LoginLapsed(AileronError):
    """A browser's login that may only read. Its two words must be typed again before it decides."""

    kind, status, boundary = "login_lapsed", 401, "user"


class Forbidden(AileronError):
    """A valid credential that does not allow this request."""

    kind, status, boundary = "forbidden", 403, "user"


class ApprovalDenied(AileronError):
    """A denial by the operator. C{details["reason"]} is the reason, if they wrote one."""

    kind, status, boundary = "approval_denied", 403, "user"


class CapabilityDenied(AileronError):
    """A use of an operation or host that the action or connector does not declare."""

    kind, status, boundary = "capability_denied", 403, "connector_manifest"


class NotFound(AileronError):
    """A thing that does not exist, or does not belong to the caller."""

    kind, status, boundary = "not_found", 404, "user"


class Conflict(AileronError):
    """A conflict with the present state, which C{details} contains."""

    kind, status, boundary = "conflict", 409, "user"


class ApprovalStale(AileronError):
    """A decision about something that has changed. The operator must review it again."""

    kind, status, boundary = "approval_stale", 409, "runtime"


class Cancelled(AileronError):
    """A run that was withdrawn before anything was sent."""

    kind, status, boundary = "cancelled", 409, "user"


class ApprovalExpired(AileronError):
    """An approval that expired without a decision."""

    kind, status, boundary = "approval_expired", 410, "user"


class BindingRequired(AileronError):
    """A missing or ambiguous binding: the connector needs exactly one credential."""

    kind, status, boundary = "binding_required", 412, "runtime"


class BindingFailed(AileronError):
    """A bound credential that could not be opened or that the service rejects."""

    kind, status, boundary = "binding_failed", 412, "runtime"


class CredentialNeedsYou(BindingFailed):
    """A bound credential that only a person can renew. C{details["reason"]} is the reason."""


class HashMismatch(AileronError):
    """Content that differs from its pin."""

    kind, status, boundary = "hash_mismatch", 422, "runtime"


class SignatureFailure(AileronError):
    """An invalid signature."""

    kind, status, boundary = "signature_failure", 422, "runtime"


class VaultLocked(AileronError):
    """A vault that is not unlocked: locked, missing or lost, as in C{details["state"]}."""

    kind, status, boundary = "vault_locked", 423, "runtime"


class LimitExceeded(AileronError):
    """A limit that is reached. C{details["retry_after"]} is the number of seconds to wait."""

    kind, status, boundary, retriable = "limit_exceeded", 429, "user", True


class ConnectorRuntimeError(AileronError):
    """A connector that broke its contract."""

    kind, status, boundary = "connector_runtime_error", 500, "sandbox"


class OutcomeUnknown(AileronError):
    """An effect that may have happened. A person must settle it."""

    kind, status, boundary = "outcome_unknown", 500, "external"


class NetworkError(AileronError):
    """A service that could not be reached. Nothing was sent."""

    kind, status, boundary, retriable = "network_error", 502, "external", True


class ExternalApiError(AileronError):
    """A response which says that the service did not perform the request."""

    kind, status, boundary = "external_api_error", 502, "external"


class Paused(AileronError):
    """A refusal to start anything while the session, or everything, is paused. C{details} describes the pause."""

    kind, status, boundary, retriable = "paused", 503, "runtime", True


class StoreUnavailable(AileronError):
    """A failed write to the database (full, locked, damaged or closing). Nothing was stored."""

    kind, status, boundary, retriable = "store_unavailable", 503, "runtime", True


class ResourceLimitExceeded(AileronError):
    """A size or time above its limit."""

    kind, status, boundary = "resource_limit_exceeded", 507, "sandbox"


@define(eq=False)
class StateConflict(Exception):
    """A failed compare-and-set: the run is no longer in the state that the transition starts from.

    :ivar present: the run as it is now.
    """

    present: Run


class WrongPassphrase(Unauthorized):
    """A passphrase that does not open this vault. An altered wrapped key gives the same error."""


class WeakPassphrase(InvalidRequest):
    """A new passphrase that could be guessed."""


class NoVault(VaultLocked):
    """A missing vault file."""


class VaultDamaged(BindingFailed):
    """A vault file that the key's owner did not write last.

    It is never replaced automatically: a person restores a copy.
    """


def damaged(reason: str) -> VaultDamaged:
    """Return an error with C{reason} and with advice for the person."""
    return VaultDamaged(f"{reason} Put secrets.json back from a copy, or run `aileron vault reset`.")


def _leaves(root: type[AileronError]) -> list[type[AileronError]]:
    return [leaf for branch in root.__subclasses__() for leaf in (branch, *_leaves(branch))]


STATUS: Mapping[str, int] = {leaf.kind: leaf.status for leaf in _leaves(AileronError)}
"""The HTTP status of each class of the taxonomy. The set is closed: a new class needs an ADR."""
