"""The encrypted file of credentials, bound explicitly to connectors, and the operator's logins that hang on its key."""

from ._cipher import DataKey, read_key
from ._control_key import ControlKey
from ._errors import NoVault, VaultDamaged
from ._names import binding_of, check_binding, check_scope
from ._operators import Operators
from ._proofs import Exchange, client_proof, daemon_proof
from ._vault import VaultFile

__all__ = [
    "ControlKey",
    "DataKey",
    "Exchange",
    "NoVault",
    "Operators",
    "VaultDamaged",
    "VaultFile",
    "binding_of",
    "check_binding",
    "check_scope",
    "client_proof",
    "daemon_proof",
    "read_key",
]
