"""The contract of every keeper of runs."""

from __future__ import annotations

from ._apply_contract import ApplyContract
from ._receive_contract import ReceiveContract
from ._run_lists_contract import ListContract


class RunsContract(ReceiveContract, ApplyContract, ListContract):
    """All of it.  Mix into a test case with C{make_runs}."""
