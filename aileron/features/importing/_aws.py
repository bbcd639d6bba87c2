"""Reads AWS service models in the format of the AWS SDK for Python, for the two AWS protocols that use JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from attrs import field, frozen

from aileron.base.json import JSON
from aileron.model.connectors import READ

from ._aws_request import JSON_RPC, OWN_HEADERS, REST_JSON, AwsRequest, Shapes, parts, wire_name
from ._derive import discloses, effect_of, guarded, list_summaries, name_of
from ._references import Inexpressible, WorkBudget, list_of, table_of, text_of
from ._requests import Arguments
from .description import ApiCredential, ApiDescription, ApiOperation, ApiVariable, NotImported, OperationSummary
from .files import one_line

PROTOCOLS = (JSON_RPC, REST_JSON)

_HOST = re.compile(r"(?:[a-z0-9-]{1,63}\.)*[a-z0-9-]{1,63}")
_LABEL = re.compile(r"[a-z][a-z0-9]{0,30}")
_SIGNED = ("v4", "s3", "s3v4")
_REGIONAL = ("s3", "sts")  # the global endpoint of these does not serve every region
_READS = re.compile(r"(?:batch_)?(?:get|list|describe|head|search|query|scan|lookup)(?:_(?!.*(?:and|or)_)|$)")
_TOKENS = ("NextToken", "nextToken", "Marker", "marker", "PaginationToken", "nextPageToken", "NextMarker")


@frozen
class AwsModel:
    """The description of an AWS service (its "service model"), from which operations are imported.

    :ivar base_url: the base URL to use instead of the service's usual host; empty for the usual host.
    """

    shapes: Shapes
    operations: Mapping[str, Any] = field(repr=False)
    base_url: str = ""

    @classmethod
    def recognise(cls, root: Mapping[str, JSON], address: str = "", base_url: str = "") -> AwsModel | None:
        """Return a reader of the document, or None if the document is not an AWS service model.

        :raises NotImported: if the service's protocol or signature is not supported, or the model names no valid host.
        """
        metadata = table_of(root.get("metadata"))
        if "endpointPrefix" not in metadata or "shapes" not in root:
            return None
        spoken = [metadata.get("protocol"), *list_of(metadata.get("protocols"))]
        protocol = next((each for each in PROTOCOLS if each in spoken), "")
        if not protocol:
            raise NotImported(f"AWS's protocol {one_line(str(spoken[0]), 40)} is not supported.")
        if metadata.get("signatureVersion") not in _SIGNED:
            raise NotImported("The service takes no requests that are signed with AWS Signature Version 4.")
        names = [text_of(metadata["endpointPrefix"]), text_of(metadata.get("signingName", metadata["endpointPrefix"]))]
        if not all(map(_HOST.fullmatch, names)):
            raise NotImported("The model does not name the service's host, or for what its requests are signed.")
        return cls(Shapes(protocol, metadata, table_of(root["shapes"])), table_of(root.get("operations")), base_url)

    @property
    def title(self) -> str:
        """Return the service's own name, or a stand-in if it has none."""
        about = self.shapes.metadata
        return text_of(about.get("serviceAbbreviation")) or text_of(about.get("serviceFullName")) or "A service of AWS"

    def list_operations(self) -> tuple[OperationSummary, ...]:
        """Return all operations, in the model's order."""
        found = []
        for key, value in self.operations.items():
            about, http = table_of(value), table_of(table_of(value).get("http"))
            method, path = text_of(http.get("method")) or "POST", text_of(http.get("requestUri")) or "/"
            found.append((key, key, method, path, text_of(about.get("documentation")), self._effect(key, method)[0]))
        return list_summaries(found)

    def describe(self, name: str, chosen: tuple[OperationSummary, ...]) -> ApiDescription:
        """Describe the service with the operations C{chosen}."""
        about = self.shapes.metadata
        host, prefix = text_of(about.get("globalEndpoint")), text_of(about["endpointPrefix"])
        everywhere = bool(_HOST.fullmatch(host)) and host.endswith(".amazonaws.com") and prefix not in _REGIONAL
        host, region = (host, "us-east-1") if everywhere else (f"{prefix}.{{region}}.amazonaws.com", "{region}")
        service, base_url = text_of(about.get("signingName")) or prefix, self.base_url or f"https://{host}"
        operations = tuple(guarded(each, self._operation) for each in chosen)
        return ApiDescription(
            name=name,
            title=self.title,
            base_url=base_url,
            operations=operations,
            credential=ApiCredential({"kind": "aws_sigv4", "region": region, "service": service}),
            variables=() if everywhere else (ApiVariable("region", "Region of AWS", "[a-z0-9-]+", "eu-west-1"),),
            hosts={each.host: base_url.replace("://", f"://{each.host}.") for each in operations if each.host},
        )

    def _effect(self, key: str, method: str) -> tuple[str, bool, tuple[str, ...]]:
        """Return the effect of an operation, whether it may change or remove things, and texts on what is uncertain."""
        name = name_of(key)
        looks = effect_of("GET", name)[0] == READ and table_of(self.operations[key]).get("readonly") is True
        if looks or (method == "POST" and _READS.match(name)):
            return READ, False, ()
        return effect_of(method if self.shapes.protocol == REST_JSON else "POST", name)

    def _discloses(self, key: str, about: Mapping[str, Any]) -> bool:
        """Return whether a response may contain a secret, judged by the operation's name and the flag C{sensitive}."""
        return discloses(name_of(key)) or text_of(table_of(about.get("output")).get("shape")) in self.sensitive

    @cached_property
    def sensitive(self) -> frozenset[str]:
        """The names of the data types that AWS flags as sensitive, and of all that contain one."""
        holders: dict[str, list[str]] = {}
        for name, shape in self.shapes.by_name.items():
            for member in (each for _, each in parts(table_of(shape)) if "location" not in each):
                holders.setdefault(text_of(member.get("shape")), []).append(name)
        left = [name for name, shape in self.shapes.by_name.items() if table_of(shape).get("sensitive") is True]
        found = set[str]()
        while left:
            name = left.pop()
            left += holders.get(name, ()) if name not in found else ()
            found.add(name)
        return frozenset(found)

    def _operation(self, summary: OperationSummary) -> ApiOperation:
        about = table_of(self.operations[summary.key])
        effect, destructive, marks = self._effect(summary.key, summary.method)
        host, ways = text_of(table_of(about.get("endpoint")).get("hostPrefix")).rstrip("."), about.get("auth")
        if host and not _LABEL.fullmatch(host):
            raise Inexpressible("it goes to a host that one of its arguments names")
        if ways is not None and not any("sigv4" in str(each) for each in list_of(ways)):
            raise Inexpressible("it is not signed with AWS Signature Version 4")
        arguments = Arguments(self.shapes.types, WorkBudget(), OWN_HEADERS)
        request = AwsRequest(self.shapes, arguments, summary.path)
        request.add(summary.key, self.shapes.of(about.get("input")))
        path, slashes = arguments.write_path(summary.path.partition("?")[0])
        answer = self._answer(about)
        extra = {**request.keys(effect), **answer, **slashes}
        if "answer" not in answer and effect == READ:
            extra |= self._pages(about)
        return ApiOperation(
            name=summary.name,
            title=summary.words.partition(". ")[0],
            description=text_of(about.get("documentation")),
            effect=effect,
            destructive=destructive,
            asked=effect == READ and self._discloses(summary.key, about),
            method=summary.method,
            path=path,
            parameters=tuple(arguments.found),
            body=arguments.body,
            constant=tuple(arguments.constant),
            host=host,
            extra=extra,
            marks=(*marks, *arguments.marks),
        )

    def _answer(self, about: Mapping[str, Any]) -> dict[str, JSON]:
        """Return the keys of the operation's table that say how a response and a failure are read.

        :raises Inexpressible: if the response is a stream of events.
        """
        output, shapes = self.shapes.of(about.get("output")), self.shapes
        members = dict(parts(output))
        payload = shapes.of(members.get(text_of(output.get("payload")))).get("type")
        if any(shapes.of(each).get("eventstream") is True for each in members.values()):
            raise Inexpressible("it answers with a stream of events")
        if payload in ("blob", "string"):
            return {"answer": "file" if payload == "blob" else "text"}
        if all("location" in each for each in members.values()):
            return {"answer": "none"}
        failures = [name for each in list_of(about.get("errors")) for name, _ in parts(shapes.of(each))]
        said = Counter(each for each in failures if each.lower() == "message").most_common(1)
        return {"error": {"message": said[0][0] if said else "message"}}

    def _pages(self, about: Mapping[str, Any]) -> dict[str, JSON]:
        """Return the key C{pages} if a response has a token for the next page and exactly one list, else no key."""
        takes = {wire_name(name, each) for name, each in parts(self.shapes.of(about.get("input")))}
        output = parts(self.shapes.of(about.get("output")))
        gives = {wire_name(name, each): self.shapes.of(each).get("type") for name, each in output}
        lists = [name for name, kind in gives.items() if kind == "list"]
        for token in _TOKENS:
            following = next((each for each in (token, f"Next{token}") if gives.get(each) == "string"), "")
            if token in takes and following and len(lists) == 1:
                return {"pages": {"kind": "cursor", "items": lists[0], "cursor": following, "parameter": token}}
        return {}
