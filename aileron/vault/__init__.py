"""The encrypted file of credentials, each bound to a connector, and the operator's logins, which depend on its key."""

from ._approvers import EXPORT_SECONDS, Approvers, Nonces
from ._cipher import SALT_BYTES, DataKey, KdfParameters, read_key, stretch
from ._control import ControlKey
from ._credential import Renewals
from ._grants import find_grant as grant_found
from ._grants import with_end as grants_with_end
from ._grants import with_new as grants_with_new
from ._grants import with_use as grants_with_use
from ._logins import generate_letters
from ._names import binding_of, check_address, check_binding, check_scope, check_secret, check_target
from ._operators import Operators
from ._passkeys import Passkeys
from ._passphrase import check_passphrase
from ._proofs import LoginExchange, client_proof, daemon_proof
from ._ssh_keys import SshKeys
from ._vault import Vault
from ._webauthn import PasskeyUser, RelyingParty, find_relying_party

__all__ = [
    "EXPORT_SECONDS",
    "SALT_BYTES",
    "Approvers",
    "ControlKey",
    "DataKey",
    "KdfParameters",
    "LoginExchange",
    "Nonces",
    "Operators",
    "PasskeyUser",
    "Passkeys",
    "RelyingParty",
    "Renewals",
    "SshKeys",
    "Vault",
    "binding_of",
    "check_address",
    "check_binding",
    "check_passphrase",
    "check_scope",
    "check_secret",
    "check_target",
    "client_proof",
    "daemon_proof",
    "find_relying_party",
    "generate_letters",
    "grant_found",
    "grants_with_end",
    "grants_with_new",
    "grants_with_use",
    "read_key",
    "stretch",
]
