"""The rules for a binding: its name, its address and its secret."""

from __future__ import annotations

import re
from datetime import datetime

from aileron.base.addresses import covers_host, read_origin
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
    """Return the binding for C{new}.

    :raises InvalidRequest: if a name, the base URL or the secret is malformed. The message does not repeat the secret.
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
        new.owner,
    )
    check_binding(binding)
    return binding


def check_secret(kind: str, secret: bytes) -> None:
    """Raise if C{secret} cannot be stored as a credential of that kind.

    :raises InvalidRequest: if there is no such kind, or its L{CredentialKind.check} fails. The message does not repeat
        the secret.
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
    """Check the parts of a binding.

    :raises InvalidRequest: if one is malformed or the base URL is not allowed. C{details["problems"]} names the part.
    """
    check_kept(binding)
    if (problem := binding.address_problem) is not None:
        raise _problem("base_url", problem)


def check_kept(binding: Binding) -> None:
    """Check that some release could have stored this binding.

    A base URL that an earlier release accepted and this one refuses passes: the vault opens, and uses of the binding
    fail (L{check_address}).

    :raises InvalidRequest: if a part is malformed. C{details["problems"]} names the part.
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
    """Return the error for a failed use of a binding.

    :param more: further details of the error.
    """
    return error(message, {"binding": binding.name, "connector": binding.connector, **more})


def check_address(binding: Binding) -> None:
    """Raise if a binding's base URL is not allowed.

    :raises BindingFailed: if the base URL is not allowed. C{details["problem"]} is the reason.
    """
    if (problem := binding.address_problem) is not None:
        message = f"The base URL of the binding {binding.name} {problem}: revoke it, and set it up again."
        raise refuse_use(binding, message, problem=problem)


def check_scope(binding: Binding, scope: Scope) -> None:
    """Raise if C{scope} is not the scope that C{binding} was encrypted for.

    :raises BindingFailed: if the scopes differ. C{details} holds both as C{sealed_for} and C{in_force}.
    """
    if binding.scope != scope:
        sealed_for = None if binding.scope is None else to_json(binding.scope)
        message = f"The connector would use {binding.name} elsewhere, or in another way, than you agreed to: rebind it."
        raise refuse_use(binding, message, sealed_for=sealed_for, in_force=to_json(scope))


def check_target(binding: Binding, scope: Scope, url: str) -> None:
    """Raise if the scope of C{binding} does not include the host of C{url}.

    :raises BindingFailed: if the scope does not include the host, which is C{details["host"]}.
    """
    host = _find_place(url)
    if host != _find_place(scope.base_url) and not any(covers_host(each, host) for each in scope.hosts):
        raise refuse_use(binding, f"The request goes to {host}, for which {binding.name} is not bound.", host=host)


def _find_place(url: str) -> str:
    """Return the host and port of a URL, or the complete URL if it has no host, as for a program's directory."""
    scheme, _, rest = url.partition("://")
    if scheme in ("http", "https"):
        return read_origin(url).host_and_port
    return rest.partition("/")[0] or url


def _check(part: str, pattern: re.Pattern[str], value: str) -> None:
    if not pattern.fullmatch(value):
        raise _problem(part, f"must match {pattern.pattern}")


def _check_scope(scope: Scope) -> None:
    # The connector checks whether the scope makes sense. Here only its syntax is checked.
    texts = (*scope.hosts, scope.base_url, *scope.settings.keys(), *([scope.header] if scope.header else []))
    if not all(map(_SCOPE_TEXT.fullmatch, texts)) or not all(map(_SETTING.fullmatch, scope.settings.values())):
        raise _problem("scope", "must be of visible ASCII without spaces")
    if "{key}" not in scope.format or not _ACCOUNT.fullmatch(scope.format):
        raise _problem("scope", "must have a format of visible ASCII with {key} in it")


def _problem(part: str, message: str) -> InvalidRequest:
    return InvalidRequest.listing(f"The binding's {part} {message}.", (f"/{part}", message))
