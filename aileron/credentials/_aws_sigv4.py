"""AWS Signature Version 4: a secret key that signs each request and is never sent."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import ClassVar
from urllib.parse import quote, unquote_to_bytes

from attrs import field, frozen

from aileron.base.addresses import covers_host, read_origin
from aileron.base.converter import Member
from aileron.model.connectors import Request
from aileron.model.errors import BindingFailed
from aileron.model.vault import Authorization

from ._kind import CredentialKind, CredentialUse, SettingRule, only
from ._renewal import FORM, read_document, write

UNSIGNED_CHUNKS = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
"""The value of C{X-Amz-Content-Sha256} for content in chunks with a checksum after them, which is not signed."""

CONTENT_HEADER = "x-amz-content-sha256"

_ALGORITHM = "AWS4-HMAC-SHA256"
_KEY_ID = re.compile(r"[A-Za-z0-9_]{16,128}")
_SECRET = re.compile(r"[\x21-\x7e]{1,4096}")
_BLANKS = re.compile(r" +")


@frozen(kw_only=True)
class AwsKeys:
    """An AWS access key, and the region and service to sign for unless the connector file names them."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str | None = None
    service: str | None = None


FORM.differ(
    AwsKeys,
    secret_access_key=Member(),
    session_token=Member(optional=True),
    region=Member(optional=True),
    service=Member(optional=True),
)


_PLACE = re.compile(r"[a-z0-9_.*:{}-]{1,300}=(?:[a-z0-9-]{1,64}|\{[a-z][a-z0-9_]*\})/[a-z0-9-]{1,64}")


@frozen
class SignedService:
    """The region and service for which requests to a host are signed.

    :ivar is_wildcard: whether the host has any label in place of a declared C{*}.
    """

    region: str
    service: str
    is_wildcard: bool = False

    @property
    def title(self) -> str:
        """The service's name for people, such as C{SQS}."""
        return self.service.upper()


def find_signed_service(services: str, host: str) -> SignedService | None:
    """Return the region and service for which requests to a host are signed, or None if there is none.

    :param services: the setting C{services}: entries like C{sqs.eu-west-1.amazonaws.com=eu-west-1/sqs}, between blanks.
    :param host: the host with its port unless that is 443.
    """
    for each in services.split():
        declared, _, named = each.partition("=")
        if covers_host(declared, host):
            region, _, service = named.partition("/")
            return SignedService(region, service, is_wildcard=declared != host)
    return None


_read_name = only(re.compile(r"[a-z0-9-]{1,64}").fullmatch, "must be a name of AWS's, of a-z, 0-9 and '-'")


class AwsSigV4(CredentialKind):
    """An AWS access key.  Requests carry a signature of the complete request, valid for a few minutes."""

    name: ClassVar[str] = "aws_sigv4"
    format: ClassVar[str] = f"{_ALGORITHM} {{key}}"
    placed: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, SettingRule]] = {
        "region": SettingRule(_read_name),
        "service": SettingRule(_read_name),
        "services": SettingRule(several=True),
    }
    reserved: ClassVar[frozenset[str]] = frozenset({"x-amz-date", "x-amz-security-token", CONTENT_HEADER})

    def check_settings(self, settings: Mapping[str, str]) -> None:
        """Raise C{ValueError} if the services are not well-formed, or stand beside one service."""
        services = settings.get("services", "")
        if services and {"region", "service"} & settings.keys():
            raise ValueError("`services` must not stand beside `region` and `service`")
        if not all(map(_PLACE.fullmatch, services.split())):
            raise ValueError("`services` must list texts such as sqs.{region}.amazonaws.com={region}/sqs")

    def check(self, kept: bytes) -> None:
        """Raise C{ValueError} if C{kept} is not a valid document of AWS keys. The message repeats nothing of it."""
        found = read_document(AwsKeys, kept)
        if not _KEY_ID.fullmatch(found.access_key_id):
            raise ValueError("must have an access_key_id of 16 to 128 letters and digits")
        if not all(_SECRET.fullmatch(each) for each in (found.secret_access_key, found.session_token or "-")):
            raise ValueError("must have a secret_access_key, and a session_token if any, of visible ASCII")
        for each in filter(None, (found.region, found.service)):
            _read_name(each)

    def make_sample(self, secret: str) -> bytes:
        """Return a document of AWS keys with C{secret}, a region and a service, for C{aileron connector prove}."""
        return write(AwsKeys(access_key_id="PROVE" * 4, secret_access_key=secret, region="prove", service="prove"))

    def secrets(self, kept: bytes) -> tuple[str, ...]:
        """Return the secret key, and the session token if there is one.

        :raises ValueError: if C{kept} is not the JSON of such a credential.
        """
        found = read_document(AwsKeys, kept)
        return tuple(each for each in (found.secret_access_key, found.session_token) if each)

    async def authorize(self, use: CredentialUse, request: Request) -> Authorization:
        """Return the signature of C{request}, dated now.

        :raises BindingFailed: if neither the connector nor the credential names the region and service.
        :raises ValueError: if the stored keys cannot be read.
        """
        keys = read_document(AwsKeys, use.kept)
        region, service = _find_scope(keys, use.scope.settings, request)
        date, digest, added = use.now().strftime("%Y%m%dT%H%M%SZ"), UNSIGNED_CHUNKS, list[tuple[str, str]]()
        if (CONTENT_HEADER, UNSIGNED_CHUNKS) not in ((name.lower(), value) for name, value in request.headers):
            digest = _digest_content(request)
            added.append(("X-Amz-Content-Sha256", digest))
        added.append(("X-Amz-Date", date))
        if keys.session_token is not None:
            added.append(("X-Amz-Security-Token", keys.session_token))
        headers = _canonical_headers(request, added)
        signed = ";".join(headers)
        whole = "\n".join((*_target(request, service), *(f"{n}:{v}" for n, v in headers.items()), "", signed, digest))
        scope = f"{date[:8]}/{region}/{service}/aws4_request"
        text = "\n".join((_ALGORITHM, date, scope, sha256(whole.encode("utf-8")).hexdigest()))
        key = f"AWS4{keys.secret_access_key}".encode()
        for part in (*scope.split("/"), text):
            key = hmac.digest(key, part.encode("utf-8"), sha256)
        value = f"Credential={keys.access_key_id}/{scope}, SignedHeaders={signed}, Signature={key.hex()}"
        return Authorization(
            headers=(*added, (use.scope.header, use.scope.format.replace("{key}", value))),
            secrets=(*self.secrets(use.kept), key.hex()),
        )


def _digest_content(request: Request) -> str:
    if request.stored is not None:
        return request.stored.digest.removeprefix("sha256:")
    return sha256(request.body or b"").hexdigest()


def _find_scope(keys: AwsKeys, settings: Mapping[str, str], request: Request) -> tuple[str, str]:
    """Return the region and service for which to sign a request.

    :raises BindingFailed: if neither the connector nor the credential names them.
    """
    services = settings.get("services")
    if services is not None:
        found = find_signed_service(services, read_origin(request.url).authority)
        # guard of own tools: a key signs only for the services at the hosts that were agreed to
        #    -> credentials.test_aws_sigv4.ServicesTests.test_other_host
        if found is None:
            raise BindingFailed("The connector does not say for which region and service to sign at this host.")
        return found.region, found.service
    region, service = settings.get("region") or keys.region, settings.get("service") or keys.service
    if region is None or service is None:
        raise BindingFailed("Neither the connector nor the credential says for which region and service to sign.")
    return region, service


def _target(request: Request, service: str) -> Iterator[str]:
    """Yield the method, path and query for signing.

    For S3, each name of the path is decoded and encoded again. For all other services, it is encoded once more.
    """
    path, _, query = request.url.removeprefix(read_origin(request.url).url).partition("?")
    yield request.method
    # A slash within a name stays encoded, as in the request: S3 would read another name from one that is not.
    names = (unquote_to_bytes(each) for each in path.split("/")) if service == "s3" else path.split("/")
    yield "/".join(quote(each, safe="~") for each in names) or "/"
    yield "&".join("=".join(pair) for pair in sorted(each.partition("=")[::2] for each in query.split("&")) if pair[0])


def _canonical_headers(request: Request, added: list[tuple[str, str]]) -> dict[str, str]:
    """Return all headers of the request and the host, sorted by lower-case name."""
    found = {"host": [read_origin(request.url).authority]}
    for name, value in (*request.headers, *added):
        found.setdefault(name.lower(), []).append(_BLANKS.sub(" ", value.strip()))
    return {name: ",".join(values) for name, values in sorted(found.items())}
