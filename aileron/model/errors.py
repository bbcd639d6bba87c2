"""The exceptions for all failures: each class with its HTTP status, the side that failed, and if a retry may help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define, field

from aileron.base.json import JSON

from .faults import Fault
from .runs import Run


@define(eq=False)
class AileronError(Exception):
    """The base of errors that the caller can handle.

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
    """Raised for a bug in Aileron. The message contains no internals."""


class InvalidRequest(AileronError):
    """Raised if an input is invalid. C{details["problems"]}: C{[{"pointer": "/args/x", "message": …}]}."""

    kind, status, boundary = "invalid_request", 400, "user"

    @classmethod
    def listing(cls, message: str, *problems: tuple[str, str]) -> InvalidRequest:
        """Return an error that lists problems.

        :param problems: pairs of JSON pointer and message. No message repeats a value.
        """
        return cls(message, {"problems": [{"pointer": pointer, "message": text} for pointer, text in problems]})


class Unauthorized(AileronError):
    """Raised if a request has no credential or an unknown one."""

    kind, status, boundary = "unauthorized", 401, "user"


class LoginLapsed(AileronError):
    """Raised if a browser's login may only read, but the request decides something.

    The browser must be confirmed again first, by its two words or a passkey.
    """

    kind, status, boundary = "login_lapsed", 401, "user"


class Forbidden(AileronError):
    """Raised if the caller's credential is valid but does not allow this request."""

    kind, status, boundary = "forbidden", 403, "user"


class ApprovalDenied(AileronError):
    """Raised for a call that the operator denied. C{details["reason"]} is the reason, if they wrote one."""

    kind, status, boundary = "approval_denied", 403, "user"


class CapabilityDenied(AileronError):
    """Raised if an operation or host is to be used that the action or connector does not declare."""

    kind, status, boundary = "capability_denied", 403, "connector_manifest"


class NotFound(AileronError):
    """Raised if a thing does not exist, or does not belong to the caller."""

    kind, status, boundary = "not_found", 404, "user"


class Conflict(AileronError):
    """Raised if a request conflicts with the present state, which C{details} contains."""

    kind, status, boundary = "conflict", 409, "user"


class ApprovalStale(AileronError):
    """Raised for a decision about a request that has changed since. The operator must review the request again."""

    kind, status, boundary = "approval_stale", 409, "runtime"


class Cancelled(AileronError):
    """Raised for a run that was withdrawn before anything was sent."""

    kind, status, boundary = "cancelled", 409, "user"


class ApprovalExpired(AileronError):
    """Raised for a run whose approval expired without a decision."""

    kind, status, boundary = "approval_expired", 410, "user"


class BindingRequired(AileronError):
    """Raised if a binding is missing or ambiguous: the connector needs exactly one credential."""

    kind, status, boundary = "binding_required", 412, "runtime"


class BindingFailed(AileronError):
    """Raised if a bound credential cannot be opened, or the service rejects it."""

    kind, status, boundary = "binding_failed", 412, "runtime"


class CredentialNeedsYou(BindingFailed):
    """Raised if a bound credential can only be renewed by a person. C{details["reason"]} is the reason."""


class HashMismatch(AileronError):
    """Raised if content differs from the digest by which it is pinned."""

    kind, status, boundary = "hash_mismatch", 422, "runtime"


class SignatureFailure(AileronError):
    """Raised if a signature is invalid."""

    kind, status, boundary = "signature_failure", 422, "runtime"


class VaultLocked(AileronError):
    """Raised if the vault is not unlocked: locked, missing or lost, as in C{details["state"]}."""

    kind, status, boundary = "vault_locked", 423, "runtime"


class LimitExceeded(AileronError):
    """Raised if a limit is reached. C{details["retry_after"]} is the number of seconds to wait."""

    kind, status, boundary, retriable = "limit_exceeded", 429, "user", True


class ConnectorRuntimeError(AileronError):
    """Raised if a connector broke its contract."""

    kind, status, boundary = "connector_runtime_error", 500, "sandbox"


class OutcomeUnknown(AileronError):
    """Raised for an effect that may or may not have happened. A person must settle it."""

    kind, status, boundary = "outcome_unknown", 500, "external"


class NetworkError(AileronError):
    """Raised if a service could not be reached. Nothing was sent."""

    kind, status, boundary, retriable = "network_error", 502, "external", True


class ExternalApiError(AileronError):
    """Raised if a service responded that it did not perform the request."""

    kind, status, boundary = "external_api_error", 502, "external"


class Paused(AileronError):
    """Raised if something should start while the session, or everything, is paused. C{details} describes the pause."""

    kind, status, boundary, retriable = "paused", 503, "runtime", True


class StoreUnavailable(AileronError):
    """Raised if the database cannot be written (full, locked, damaged or closing). Nothing was stored."""

    kind, status, boundary, retriable = "store_unavailable", 503, "runtime", True


class Stopping(StoreUnavailable):
    """Raised if the daemon is stopping, so it begins nothing new. C{details["stopping"]} is true.

    Another daemon answers the same request, or this one after its next start.
    """


def refuse_while_stopping() -> Stopping:
    """Return the error for new work that reaches a daemon that is stopping."""
    return Stopping(
        "The daemon is stopping. Nothing was stored or sent: try again.", {"stopping": True, "retry_after": 1}
    )


class AuthorityChanged(StoreUnavailable):
    """Raised if the operator decided something on another daemon, so that this one must read it before it begins."""


class ResourceLimitExceeded(AileronError):
    """Raised if a size or time is above its limit."""

    kind, status, boundary = "resource_limit_exceeded", 507, "sandbox"


@define(eq=False)
class StateConflict(Exception):
    """Raised if a run cannot change its state, because it is no longer in the state that the change starts from.

    :ivar present: the run as it is now.
    """

    present: Run


class WrongPassphrase(Unauthorized):
    """Raised if a passphrase does not open this vault. An altered vault file gives the same error."""


class WeakPassphrase(InvalidRequest):
    """Raised if a new passphrase is so weak that it could be guessed."""


class NoVault(VaultLocked):
    """Raised if there is no vault file."""


class VaultDamaged(BindingFailed):
    """Raised if a vault file was damaged or altered by a program that does not have the vault's key.

    The file is never replaced automatically: a person restores a copy.
    """


def damaged(reason: str) -> VaultDamaged:
    """Return the error for a damaged vault file, with C{reason} and with advice for the person."""
    return VaultDamaged(f"{reason} Put secrets.json back from a copy, or run `aileron vault reset`.")


def _leaves(root: type[AileronError]) -> list[type[AileronError]]:
    return [leaf for branch in root.__subclasses__() for leaf in (branch, *_leaves(branch))]


STATUS: Mapping[str, int] = {leaf.kind: leaf.status for leaf in _leaves(AileronError)}
"""The HTTP status of each class of the taxonomy. The set is closed: a new class needs an ADR."""
