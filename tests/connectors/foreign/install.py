"""Installs a package with a kind of connector into a directory, as pip would."""

from __future__ import annotations

from pathlib import Path

PACKAGE, NAME = "acme_rpc", "json_rpc"
FILE = """
[connector]
name = "local://me/notes"
version = "1.0.0"
kind = "json_rpc"
base_url = "http://127.0.0.1:{port}"
private_network = true

[credential]
kind = "api_key"
header = "Authorization"
format = "Bearer {{key}}"

[operations.add_note]
description = "Adds a note."
rpc_method = "notes.add"
inputs = ["text"]
destructive = false

[operations.list_notes]
rpc_method = "notes.list"
effect = "read"
"""


def install(root: Path, text: str = "", *, package: str = PACKAGE, name: str = NAME) -> None:
    """Install the package there.

    :param text: its module, if it is another than that of L{tests.connectors.foreign.json_rpc}.
    """
    source = text or Path(__file__).with_name("json_rpc.py").read_text("utf-8")
    (root / package).mkdir(parents=True)
    (root / package / "__init__.py").write_text(source, "utf-8")
    about = root / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", "utf-8")
    (about / "entry_points.txt").write_text(f"[aileron.connector_kinds]\n{name} = {package}:KIND\n", "utf-8")
