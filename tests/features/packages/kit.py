"""A small package, and a publisher who signs as minisign does."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from attrs import field, frozen
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aileron.base.json import digest_of_bytes

CONNECTOR = """
[connector]
name = "local://kit/tracker"
version = "1.0.0"
base_url = "https://tracker.example"
hosts = ["tracker.example:443"]

[operations.file]
method = "POST"
path = "/tickets"
effect = "write"
idempotent = false
json = { title = "${in.title}" }
"""
ACTION = """+++
name = "file-ticket"
version = "1.0.0"

[[requires.connectors]]
name = "local://kit/tracker"
version = "1.0.0"
capabilities = ["file"]

[[inputs]]
name = "title"
type = "string"
description = "What it is about"

[[execute]]
id = "file"
connector = "local://kit/tracker"
op = "file"
inputs = { title = "${args.title}" }

[approval]
required = true
+++
# File a ticket

Files a ticket.
"""
FILES = {"tracker.toml": CONNECTOR.encode(), "file-ticket.md": ACTION.encode()}


def manifest(
    files: Mapping[str, bytes] = FILES, version: str = "1.0.0", name: str = "tracker", more: str = ""
) -> bytes:
    """The manifest of some files."""
    lines = [f'name = "{name}"', f'version = "{version}"', 'description = "A tracker"', more, "[files]"]
    lines += [f'"{path}" = "{digest_of_bytes(data)}"' for path, data in files.items()]
    return ("\n".join(lines) + "\n").encode()


def package(files: Mapping[str, bytes] = FILES, version: str = "1.0.0", more: str = "") -> dict[str, bytes]:
    """Some files, with their manifest."""
    return {**files, "README.md": b"# Read me\n", "aileron-package.toml": manifest(files, version, more=more)}


def write(directory: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a directory."""
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)
    return directory


@frozen
class Publisher:
    """Somebody who signs.

    :ivar key_id: of eight bytes.
    """

    key_id: bytes = b"\1\2\3\4\5\6\7\x08"
    private_key: Ed25519PrivateKey = field(factory=Ed25519PrivateKey.generate)

    @property
    def key(self) -> str:
        """The public key in a line."""
        raw = self.private_key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return b64encode(b"Ed" + self.key_id + raw).decode()

    def sign(self, data: bytes, *, hashed: bool = True, comment: str = "timestamp:1\tfile:x") -> bytes:
        """The file beside C{data} that minisign would write."""
        made = self.private_key.sign(blake2b(data).digest() if hashed else data)
        lines = (
            "untrusted comment: signature from minisign secret key",
            b64encode((b"ED" if hashed else b"Ed") + self.key_id + made).decode(),
            f"trusted comment: {comment}",
            b64encode(self.private_key.sign(made + comment.encode())).decode(),
        )
        return ("\n".join(lines) + "\n").encode()

    def package(
        self, files: Mapping[str, bytes] = FILES, version: str = "1.0.0", *, with_key: bool = True
    ) -> dict[str, bytes]:
        """A package that is signed."""
        found = package(files, version)
        found["aileron-package.toml.minisig"] = self.sign(found["aileron-package.toml"])
        if with_key:
            found["minisign.pub"] = f"untrusted comment: minisign public key\n{self.key}\n".encode()
        return found
