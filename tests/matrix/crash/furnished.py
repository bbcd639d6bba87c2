"""A home with a vault, a connector to the counting service, and actions of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from aileron.home.paths import Home, prepare
from aileron.vault.keys import DataKey, create

from .sites import Site
from .words import FIRST_LIMIT, LIMIT

UNDO_SECONDS = 0.3
PASSPHRASE = "seven quiet lamps over the harbour"
CONNECTOR = """[connector]
name = "local://matrix/service"
version = "1.0.0"
base_url = {{ default = "http://127.0.0.1:{port}", bindable = false }}
hosts = ["127.0.0.1:{port}"]
private_network = true
"""
_OPERATION = """[operations.{name}]
method = "POST"
path = "/{name}"
headers = {{ Idempotency-Key = "${{effect.key}}" }}
json = {{ text = "${{in.text}}", note = "${{in.note}}" }}
effect = "write"
refused = [503]
timeout_seconds = 1
idempotent = {idempotent}
"""
_READS = """[operations.send.reconcile]
op = "sent"
inputs = { key = "${effect.key}" }
items = "items"
absent = "did_not_happen"
after_seconds = 1
[operations.sent]
method = "GET"
path = "/sent"
query = { key = "${in.key}" }
effect = "read"
[operations.look]
method = "GET"
path = "/look"
query = { text = "${in.text}" }
effect = "read"
"""
_PREVIEW = """required = true
[approval.preview]
op = "look"
args = { text = "${args.text}" }
render = { Seen = "seen" }
"""
_ACTION = """+++
name = "{name}"
version = "1.0.0"
timeout_seconds = 5
[[requires.connectors]]
name = "local://matrix/service"
version = "1.0.0"
capabilities = ["post", "put", "send", "look"]
[[inputs]]
name = "text"
type = "string"
description = "What to say"
[[inputs]]
name = "note"
type = "string"
required = false
description = "What the operator may add"
{steps}
{approval}
+++
Says something.
"""
_STEP = """[[execute]]
id = "{id}"
connector = "local://matrix/service"
op = "{operation}"
inputs = {{ text = "${{args.text}}", note = "${{args.note}}" }}
"""


@frozen
class Kind:
    """An action: its steps by their ids, and how the operator is asked, if at all.

    :ivar approval: its table's lines.
    :ivar most: how often it may begin in an hour, by its file.
    :ivar granted: whether the operator may allow more calls like one.
    :ivar waits: whether it does not begin as soon as it is approved.
    """

    name: str
    steps: dict[str, str]
    approval: str | None = "required = true"
    most: int | None = None
    granted: bool = False
    waits: bool = False

    @property
    def gated(self) -> bool:
        """Whether the operator is asked."""
        return self.approval is not None

    @property
    def is_limited(self) -> bool:
        """Whether it may have been approved and find no room, by its file's limit or the operator's."""
        return self.most is not None or self.name == LIMIT

    def text(self) -> str:
        """Its file."""
        steps = "\n".join(_STEP.format(id=id_, operation=operation) for id_, operation in self.steps.items())
        # Some of their texts are the same: one denial would keep the others from being asked.
        approval = "" if self.approval is None else f'[approval]\ncool_down = "0s"\n{self.approval}'
        limits = "" if self.most is None else f"[limits]\nper_hour = {self.most}\n"
        return _ACTION.format(name=self.name, steps=steps, approval=limits + approval)


KINDS = (
    Kind("once", {"only": "post"}),
    Kind("safe", {"only": "put"}),
    Kind("open-once", {"only": "post"}, None),
    Kind("open-safe", {"only": "put"}, None),
    Kind("steps", {"first": "put", "second": "post", "third": "put"}),
    Kind("found", {"only": "send"}),
    Kind("shown", {"only": "post"}, _PREVIEW),
    Kind("undone", {"only": "post"}, f"required = true\nundo_seconds = {UNDO_SECONDS}", waits=True),
    Kind("brief", {"only": "post"}, 'required = true\nexpires_after = "1s"'),
    Kind("allowed", {"only": "post"}, granted=True),
    Kind("put-off", {"only": "put"}, waits=True),
    Kind("few", {"only": "post"}, most=10),
    Kind("open-few", {"only": "post"}, None, most=10),
    Kind(LIMIT, {"only": "put"}, None),
)


def furnish(root: Path, port: int, kinds: Sequence[Kind] = KINDS) -> DataKey:
    """Make the home, with actions of these kinds; its vault's key."""
    home = Home(root)
    prepare(home)
    operations = (("post", "false"), ("put", "true"), ("send", "false"))
    declared = "".join(_OPERATION.format(name=name, idempotent=idempotent) for name, idempotent in operations)
    _write(home.connectors / "service.toml", CONNECTOR.format(port=port) + declared + _READS)
    for kind in kinds:
        _write(home.actions / f"{kind.name}.md", kind.text())
    return create(home.secrets, PASSPHRASE)


async def trust_all(operator: Site) -> None:
    """Let the operator trust what lies there."""
    items = (await operator.get("/v1/trust")).body["items"]
    wanted = [{name: item[name] for name in ("kind", "name", "digest")} for item in items]
    said = await operator.post("/v1/trust", {"items": wanted})
    assert said.well, said


async def limit(operator: Site) -> None:
    """Let the operator limit one of them."""
    said = await operator.post("/v1/caps", {"action": LIMIT, "per_hour": FIRST_LIMIT})
    assert said.well, said


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)
