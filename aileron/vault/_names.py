"""The rules for a binding: what it may be called, where it may point, and what may be kept in it."""

from __future__ import annotations

import re
from datetime import datetime

from aileron.base.addresses import read_origin
from aileron.base.converter import to_json
from aileron.base.json import JSON
from aileron.credentials import KINDS, CredentialKind
from aileron.model.errors import BindingFailed, InvalidRequest
from aileron.model.vault import Binding, NewBinding, Scope

_SERVICE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,126}")
_CONNECTOR = re.compile(r"[a-z][a-z0-9+.-]{0,31}://[A-Za-z0-9][A-Za-z0-9_./@-]{0,199}")
_ACCOUNT = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?")
_SCOPE_TEXT = re.compile(r"[\x21-\x7e]{1,600}")
_SETTING = re.compile(r"[\x20-\x7e]{1,2000}")
_KEPT_URL = re.compile(r"https?://[\x21-\x7e]{1,800}")


def binding_of(new: NewBinding, created_at: datetime, revision: int) -> Binding:
    """Make the binding that C{new} asks for.

    :raises InvalidRequest: a malformed name, base URL or secret; the secret is not repeated.
    """
    check_secret(new.kind, new.secret)
    binding = Binding(
        f"{new.kind}/{new.service}/{new.identity}",
        new.kind,
        new.service,
        new.identity,
        new.connector,
        created_at,
        revision,
        new.base_url,
        new.account,
        new.scope,
    )
    check_binding(binding)
    return binding


def check_secret(kind: str, secret: bytes) -> None:
    """Refuse what cannot be kept as a credential of that kind.

    :raises InvalidRequest: there is no such kind, or its L{CredentialKind.check} refuses; the secret is not repeated.
    """
    try:
        _kind(kind).check(secret)
    except ValueError as error:
        raise _problem("secret", str(error)) from None


def _kind(name: str) -> CredentialKind:
    if name not in KINDS:
        raise _problem("kind", f"must be one of: {', '.join(sorted(KINDS))}")
    return KINDS[name]


def check_binding(binding: Binding) -> None:
    """Refuse a binding whose parts are malformed, or that points where no binding may.

    :raises InvalidRequest: C{details["problems"]} says which part.
    """
    check_kept(binding)
    if (problem := binding.address_problem) is not None:
        raise _problem("base_url", problem)


def check_kept(binding: Binding) -> None:
    """Refuse what no release ever kept in a vault.

    A base URL that an earlier release took and this one refuses is let through: the vault opens, and what is bound to
    it does not (L{check_address}).

    :raises InvalidRequest: C{details["problems"]} says which part.
    """
    _kind(binding.kind)
    _check("service", _SERVICE, binding.service)
    _check("identity", _IDENTITY, binding.identity)
    _check("connector", _CONNECTOR, binding.connector)
    if binding.account is not None:
        _check("account", _ACCOUNT, binding.account)
    if binding.base_url is not None and not _KEPT_URL.fullmatch(binding.base_url):
        raise _problem("base_url", "must be an http URL of visible ASCII")
    if binding.scope is not None:
        _check_scope(binding.scope)


def refuse_use(
    binding: Binding, message: str, *, error: type[BindingFailed] = BindingFailed, **more: JSON
) -> BindingFailed:
    """Make the failure of a use of a binding."""
    return error(message, {"binding": binding.name, "connector": binding.connector, **more})


def check_address(binding: Binding) -> None:
    """Refuse to open a binding that points where no binding may.

    :raises BindingFailed: C{details["problem"]} says what is wrong with its base URL.
    """
    if (problem := binding.address_problem) is not None:
        message = f"The base URL of the binding {binding.name} {problem}: revoke it, and set it up again."
        raise refuse_use(binding, message, problem=problem)


def check_scope(binding: Binding, scope: Scope) -> None:
    """Refuse to open C{binding} for a scope that is not the one that it was sealed for.

    :raises BindingFailed: C{details} holds both, C{sealed_for} and C{in_force}.
    """
    if binding.scope != scope:
        sealed_for = None if binding.scope is None else to_json(binding.scope)
        message = f"The connector would use {binding.name} elsewhere, or in another way, than you agreed to: rebind it."
        raise refuse_use(binding, message, sealed_for=sealed_for, in_force=to_json(scope))


def check_target(binding: Binding, scope: Scope, url: str) -> None:
    """Refuse to send C{binding} to a host that its scope does not name.

    :raises BindingFailed: C{details["host"]} says which.
    """
    host = _find_place(url)
    if host != _find_place(scope.base_url) and host not in scope.hosts:
        raise refuse_use(binding, f"The request goes to {host}, for which {binding.name} is not bound.", host=host)


def _find_place(url: str) -> str:
    """Return the host and port of a URL; of one without a host, such as a program's directory, the whole."""
    scheme, _, rest = url.partition("://")
    if scheme in ("http", "https"):
        return read_origin(url).host_and_port
    return rest.partition("/")[0] or url


def _check(part: str, pattern: re.Pattern[str], value: str) -> None:
    if not pattern.fullmatch(value):
        raise _problem(part, f"must match {pattern.pattern}")


def _check_scope(scope: Scope) -> None:
    # Whether it makes sense is the connector's to say; here it is kept whole.
    texts = (*scope.hosts, scope.base_url, *scope.settings.keys(), *([scope.header] if scope.header else []))
    if not all(map(_SCOPE_TEXT.fullmatch, texts)) or not all(map(_SETTING.fullmatch, scope.settings.values())):
        raise _problem("scope", "must be of visible ASCII without spaces")
    if "{key}" not in scope.format or not _ACCOUNT.fullmatch(scope.format):
        raise _problem("scope", "must have a format of visible ASCII with {key} in it")


def _problem(part: str, message: str) -> InvalidRequest:
    return InvalidRequest.listing(f"The binding's {part} {message}.", (f"/{part}", message))
