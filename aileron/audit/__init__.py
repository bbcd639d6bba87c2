"""What is recorded when: sealed into a chain that can be checked."""

from ._check import check_chain
from ._seal import GENESIS, payload_digest, seal
from ._types import RECORDED

__all__ = ["GENESIS", "RECORDED", "check_chain", "payload_digest", "seal"]
