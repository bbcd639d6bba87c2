"""What is recorded when: sealed into a chain that can be checked."""

from ._chain_verifier import PRUNED
from ._checkpoints import fingerprint, is_signed
from ._export import Exporting
from ._export_line import record_line
from ._key_file import KeyFile
from ._notary import Notary
from ._retention import Retention
from ._seal import GENESIS, check_chain, payload_digest, seal
from ._types import RECORDED
from ._witness import Witness
from .verify import Verification

__all__ = [
    "GENESIS",
    "PRUNED",
    "RECORDED",
    "Exporting",
    "KeyFile",
    "Notary",
    "Retention",
    "Verification",
    "Witness",
    "check_chain",
    "fingerprint",
    "is_signed",
    "payload_digest",
    "record_line",
    "seal",
]
