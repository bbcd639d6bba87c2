"""A home with a service that agents' own tools may use, and a look at what its database has of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from aileron.features.own_tools.action_file import write_action
from aileron.home.paths import Home, prepare
from aileron.vault.keys import DataKey, create
from tests.connectors.service import Service, spec_of
from tests.matrix.crash.furnished import PASSPHRASE
from tests.matrix.crash.sites import Site

from .tool import HOST, SERVICE

HOLD_SECONDS = 2
NAME = "service"
_CONNECTOR = """[connector]
name = "local://matrix/{name}"
version = "1.0.0"
base_url = "{scheme}://{host}:{port}"
private_network = true

[credential]
kind = "api_key"
header = "X-Key"

[own_tools]
service = "{service}"
variables = {{ MATRIX_TOKEN = "aileron-placeholder" }}
headers = ["X-Key"]
raw = "ask"
errors = "message"

[operations.look]
method = "GET"
path = "/look"
effect = "read"
"""

CLAIMS = """
    SELECT run_id, told, given, runs.id, sessions.id FROM tool_claims
    LEFT JOIN runs ON runs.id = run_id LEFT JOIN sessions ON sessions.id = tool_claims.session_id
"""


def furnish(root: Path, port: int, scheme: str = "http", hold_seconds: int = HOLD_SECONDS) -> DataKey:
    """Make the home, and return its vault's key.

    :param port: the service's.
    """
    home = Home(root)
    prepare(home)
    write_service(home, port, scheme, hold_seconds)
    return create(home.secrets, PASSPHRASE)


def write_service(
    home: Home, port: int, scheme: str = "http", hold_seconds: int = HOLD_SECONDS, name: str = NAME
) -> None:
    """Write the connector, and the action by which tools use it.

    :param name: the connector's.
    """
    text = _CONNECTOR.format(name=name, scheme=scheme, host=HOST, port=port, service=SERVICE)
    described = Service().connector(spec_of(text)).describe()
    assert described.own_tools is not None
    _write(home.connectors / f"{name}.toml", text)
    _write(home.actions / f"{SERVICE}-tools.md", write_action(described, described.own_tools))
    _write(home.config, f"own_tools: {{hold_seconds: {hold_seconds}}}\n")


async def bind(operator: Site, name: str = NAME) -> None:
    """Bind the service's credential.

    :param name: the connector's.
    """
    new = {"service": name, "connector": f"local://matrix/{name}", "secret": "key-of-the-service"}
    said = await operator.post("/v1/bindings/setup", new)
    assert said.well, said


def unsound_claims(root: Path) -> Iterator[str]:
    """Return what is wrong with the claims of a home that nobody serves."""
    with closing(sqlite3.connect(Home(root).database)) as database:
        for (said,) in database.execute("PRAGMA integrity_check"):
            if said != "ok":
                yield f"the database: {said}"
        yield from unsound_rows(database.execute(CLAIMS))


def unsound_rows(rows: Iterable[Any]) -> Iterator[str]:
    """Return what is wrong with claims.

    :param rows: what C{CLAIMS} finds.
    """
    for run_id, told, given, run, session in rows:
        if run is None or session is None:
            yield f"the claim on {run_id} has no run or no session"
        if not all(isinstance(each, list) for each in (json.loads(told), json.loads(given))):
            yield f"the callers of the claim on {run_id} cannot be read"


def claims(root: Path) -> dict[str, bool]:
    """Return for each run that has a claim whether a tool is noted to have its answer."""
    with closing(sqlite3.connect(Home(root).database)) as database:
        return {run_id: given != "[]" for run_id, given in database.execute("SELECT run_id, given FROM tool_claims")}


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)
