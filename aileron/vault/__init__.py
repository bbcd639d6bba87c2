"""The encrypted file of credentials, bound explicitly to connectors, and the operator's logins that hang on its key."""

from ._cipher import DataKey, read_key
from ._errors import NoVault, VaultDamaged
from ._names import binding_of
from ._operators import Operators
from ._proofs import Exchange, client_proof, daemon_proof
from ._vault import VaultFile

__all__ = [
    "DataKey",
    "Exchange",
    "NoVault",
    "Operators",
    "VaultDamaged",
    "VaultFile",
    "binding_of",
    "client_proof",
    "daemon_proof",
    "read_key",
]
