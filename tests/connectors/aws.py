"""AWS's side of a signature, as botocore computes it: which key signed a request, and for what."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from attrs import frozen

# Its package has no types.
auth: Any = import_module("botocore.auth")
AWSRequest: Any = import_module("botocore.awsrequest").AWSRequest
Credentials: Any = import_module("botocore.credentials").Credentials

CHUNKS = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?SignedHeaders=([^,]+), ?"
    r"Signature=([0-9a-f]{64})"
)


@frozen
class Signed:
    """What a valid signature says.

    :ivar problem: why it is not valid, or empty.
    """

    key_id: str = ""
    region: str = ""
    service: str = ""
    date: str = ""
    problem: str = ""


def check_signature(
    method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes, key_id: str, secret: str
) -> Signed:
    """Check the signature of a request as AWS does."""
    named = {"host": urlsplit(url).netloc, **{name.lower(): value for name, value in headers}}
    found = _AUTHORIZATION.fullmatch(named.get("authorization", ""))
    if found is None:
        return Signed(problem="no signature")
    date, region, service = named.get("x-amz-date", ""), found[3], found[4]
    digest = named.get("x-amz-content-sha256", "")
    if found[1] != key_id or date[:8] != found[2]:
        return Signed(problem=f"another key, or another date: {found[1]} {date} {found[2]}")
    if digest != CHUNKS and digest != hashlib.sha256(body).hexdigest():
        return Signed(problem="the digest is not that of the content")
    covered = found[5].split(";")
    if not {"host", *(each for each in named if each.startswith("x-amz-"))} <= set(covered):
        return Signed(problem=f"headers of AWS are not signed: {covered}")
    kind = auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth
    signer = kind(Credentials(key_id, secret), service, region)
    signer.headers_to_sign = lambda request: request.headers  # botocore itself signs fewer
    asked = AWSRequest(method, url, data=body)
    for name in covered:
        asked.headers[name] = named.get(name, "")
    asked.context["timestamp"] = date
    expected = signer.signature(signer.string_to_sign(asked, signer.canonical_request(asked)), asked)
    return Signed(found[1], region, service, date, "" if expected == found[6] else "the signature does not match")
