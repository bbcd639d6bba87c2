"""What the daemon can talk to."""

from __future__ import annotations

from aileron.api._endpoint import Parts, Table, Visit
from aileron.api._faults import Answer, answer
from aileron.api._guard import Who
from aileron.api.shapes.schemas import list_of, made_of, ref
from aileron.api.shapes.values import connector_json, load_error_json

TABLE = Table()

_CONNECTORS = made_of({"items": list_of(ref("Connector")), "problems": list_of(ref("LoadError"))})


@TABLE.route("GET", "/v1/connectors", operators=Who.OPERATOR, answers={200: _CONNECTORS})
async def list_connectors(visit: Visit, parts: Parts) -> Answer:
    """Every connector that loaded, and why others did not."""
    return answer(
        {
            "items": [connector_json(connector) for connector in parts.connectors.descriptions()],
            "problems": [load_error_json(problem) for problem in parts.connectors.problems()],
        }
    )
