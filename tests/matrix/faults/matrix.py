"""Each fault on a home of its own, one after the other."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.matrix.crash.lives import Nursery

from .faults import FAULTS, Fault
from .report import Sheet
from .trial import Trial


async def _all(faults: Iterable[Fault], seed: int) -> Sheet:
    sheet, nursery = Sheet(), await Nursery.open()
    for fault in faults:
        with tempfile.TemporaryDirectory(prefix="aileron-faults-") as directory:
            root = Path(directory).resolve() / "home"
            await Trial(root, nursery, fault, sheet, random.Random(f"{seed} {fault.name}")).run()
        print(f"{fault.name}: {len(sheet.faults)} broken so far", file=sys.stderr, flush=True)
    await nursery.close()
    return sheet


def strike(named: str, seed: int) -> Sheet:
    """Try the faults whose name holds C{named}, and tell what came of them."""
    return asyncio.run(_all([fault for fault in FAULTS if named in fault.name], seed))
