"""The audit log: events, hashed into a chain that shows whether one was altered."""

from ._chain import GENESIS, PRUNED, fingerprint, is_signed, payload_digest, seal
from ._commit_observer import CommitObserver
from ._export import Exporting, record_line
from ._key_file import KeyFile
from ._record_reader import Retention
from ._signer import CheckpointSigner
from .verify import Verification

__all__ = [
    "GENESIS",
    "PRUNED",
    "CheckpointSigner",
    "CommitObserver",
    "Exporting",
    "KeyFile",
    "Retention",
    "Verification",
    "fingerprint",
    "is_signed",
    "payload_digest",
    "record_line",
    "seal",
]
