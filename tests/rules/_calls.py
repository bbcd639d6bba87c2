"""Who may call a connector, who may open a secret, and who may read addresses and TOML."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ._source import Source

_EXECUTOR = "aileron.runner.executor"
_CONNECTOR_SIDE = ("aileron.connectors", "aileron.testing")
_HOLDS_A_CONNECTOR = ("aileron.runner",)
_OPENS_SECRETS = (*_CONNECTOR_SIDE, "aileron.vault", "aileron.credentials")
_PUTS_KEYS_IN = "aileron.features.gateway._injection"
_OPENS_CHANNELS = "aileron.features.notices._channels"
_OPENS_BROWSERS = "aileron.features.push._browsers"
_OPENS_CERTIFICATES = "aileron.features.phone._certificate_store"
_OPENS_CLIENT_SECRETS = "aileron.features.oidc._client_secret"
_USE_SECRETS = (_PUTS_KEYS_IN, _OPENS_CHANNELS, _OPENS_BROWSERS, _OPENS_CERTIFICATES, _OPENS_CLIENT_SECRETS)
_READERS = {
    "aileron.base.addresses": ("urllib.parse.urlsplit", "urllib.parse.urlparse", "ipaddress", "hyperlink"),
    "aileron.base.toml": ("tomllib",),
}
"""By the room that alone uses them, so that all read alike: the libraries that read foreign text."""


def foreign_readers(source: Source) -> Iterator[str]:
    """Find what is read by another than the one room that reads it for all."""
    for room, readers in _READERS.items():
        for imported in () if source.name.startswith(room) else source.imports:
            if f"{imported.path}.".startswith(tuple(f"{reader}." for reader in readers)):
                yield f"{source.name}:{imported.line} only {room} uses {imported.path}"


def connector_calls(source: Source) -> Iterator[str]:
    """Find calls of a connector's ``invoke``, ``reconcile`` and ``read`` outside the executor.

    Files have a ``read`` too, so that name is banned where connectors are in hand, and elsewhere on what is called a
    connector; the other two names mean a connector everywhere.
    """
    if source.name == _EXECUTOR or source.name.startswith(_CONNECTOR_SIDE):
        return
    for call, method in _method_calls(source):
        on_connector = "connector" in ast.unparse(method.value).lower() or source.name.startswith(_HOLDS_A_CONNECTOR)
        if method.attr in {"invoke", "reconcile"} or (method.attr == "read" and on_connector):
            yield f"{source.name}:{call.lineno} only the executor calls .{method.attr}("


def secrets_opened(source: Source) -> Iterator[str]:
    """Find what opens a credential above the connectors, but for three modules that use it themselves."""
    if source.name.startswith(_OPENS_SECRETS) or source.name in _USE_SECRETS:
        return
    for call, method in _method_calls(source):
        if method.attr in {"reveal", "authorize"}:
            who = " and ".join(_USE_SECRETS)
            yield f"{source.name}:{call.lineno} only connectors, the vault, {who} call .{method.attr}("


def _method_calls(source: Source) -> Iterator[tuple[ast.Call, ast.Attribute]]:
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node, node.func
