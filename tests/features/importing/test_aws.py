"""Of AWS's service models: what their operations become, held against what the SDK for Python makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.importing.description import NotImported
from aileron.features.importing.files import write_connector
from aileron.features.importing.readers import read_api
from tests.features.importing.reading import action, describe, operation, reader, request, spec

ServiceModel: Any = import_module("botocore.model").ServiceModel
create_serializer: Any = import_module("botocore.serialize").create_serializer


def _structure(*required: str, **members: Any) -> dict[str, Any]:
    return {
        "type": "structure",
        "members": {name: {"shape": each} if isinstance(each, str) else each for name, each in members.items()},
        "required": list(required),
    }


_SHAPES: dict[str, Any] = {
    "Text": {"type": "string", "min": 1, "max": 64},
    "Kind": {"type": "string", "enum": ["plain", "bold"]},
    "Count": {"type": "integer", "min": 1, "max": 10},
    "Moment": {"type": "timestamp"},
    "Bytes": {"type": "blob"},
    "Secret": {"type": "string", "sensitive": True},
    "Texts": {"type": "list", "member": {"shape": "Text"}},
    "Items": {"type": "list", "member": {"shape": "Item"}, "max": 5},
    "Tags": {"type": "map", "key": {"shape": "Text"}, "value": {"shape": "Text"}},
    "Item": _structure("Name", Name="Text", Kind="Kind", Due="Moment", Parts="Items", Tags="Tags"),
    "Value": {**_structure(S="Text", N="Count"), "union": True},
    "PutInput": _structure(
        "Item",
        Item="Item",
        Value="Value",
        Token={"shape": "Text", "idempotencyToken": True},
        Old={"shape": "Text", "deprecated": True},
    ),
    "ListInput": _structure(NextToken="Text", Count="Count", Names="Texts"),
    "ListOutput": _structure(NextToken="Text", Things="Items"),
    "SecretOutput": _structure(Key="Secret"),
    "StreamOutput": _structure(Events="Stream"),
    "Stream": {**_structure(Event="Item"), "eventstream": True},
    "Failure": _structure(Message="Text"),
}


def model(protocol: str, shapes: Mapping[str, Any], operations: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    """A service model."""
    about = {
        "protocol": protocol,
        "endpointPrefix": "things",
        "signatureVersion": "v4",
        "serviceFullName": "AWS Things",
        "serviceId": "Things",
        "apiVersion": "2020-01-01",
        "jsonVersion": "1.1",
        "targetPrefix": "Things_20200101",
    }
    there = {
        name: {"name": name, "http": {"method": "POST", "requestUri": "/"}, **each} for name, each in operations.items()
    }
    return {"version": "2.0", "metadata": {**about, **metadata}, "shapes": {**_SHAPES, **shapes}, "operations": there}


def of_sdk(document: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the SDK for Python would send: method, path, query, headers and body."""
    service = ServiceModel(document, "things")
    made = create_serializer(service.metadata["protocol"]).serialize_to_request(
        arguments, service.operation_model(name)
    )
    path, _, query = made["url_path"].partition("?")
    told = dict(parse_qsl(query)) | {name: str(each) for name, each in dict(made["query_string"]).items()}
    return {**made, "path": path, "query": told}


RPC = model(
    "json",
    {},
    {
        "PutThing": {"input": {"shape": "PutInput"}, "errors": [{"shape": "Failure"}], "output": {"shape": "Item"}},
        "ListThings": {"input": {"shape": "ListInput"}, "output": {"shape": "ListOutput"}},
        "GetThing": {"output": {"shape": "SecretOutput"}},
        "GetToken": {"output": {"shape": "Item"}},
        "DeleteThings": {},
        "GetAndDelete": {"output": {"shape": "Item"}},
        "Watch": {"output": {"shape": "StreamOutput"}},
        "DeletePing": {"readonly": True},
        "Ping": {"endpoint": {"hostPrefix": "data."}, "readonly": True, "output": {"shape": "Item"}},
        "Other": {"endpoint": {"hostPrefix": "{Account}."}},
        "Open": {"auth": ["smithy.api#httpBearerAuth"]},
    },
)
RPC_URL = "https://things.eu-west-1.amazonaws.com"

REST = model(
    "rest-json",
    {
        "SendInput": _structure(
            "Box",
            "Key",
            Box={"shape": "Text", "location": "uri", "locationName": "box"},
            Key={"shape": "Text", "location": "uri", "locationName": "key"},
            Mode={"shape": "Kind", "location": "header", "locationName": "X-Mode"},
            Meta={"shape": "Tags", "location": "headers", "locationName": "x-meta-"},
            Size={"shape": "Count", "location": "querystring", "locationName": "size"},
            Due={"shape": "Moment", "location": "querystring", "locationName": "due"},
            Names={"shape": "Texts", "location": "querystring", "locationName": "name"},
            Title={"shape": "Text", "locationName": "title"},
            Token={"shape": "Text", "idempotencyToken": True, "location": "header", "locationName": "X-Token"},
        ),
        "RunInput": {
            **_structure("Id", Id={"shape": "Text", "location": "uri", "locationName": "Id"}, Body="Bytes"),
            "payload": "Body",
        },
        "RunOutput": {**_structure(Body="Bytes"), "payload": "Body"},
        "MakeInput": {**_structure("Item", Item={"shape": "Item"}), "payload": "Item"},
    },
    {
        "SendThing": {
            "http": {"method": "PUT", "requestUri": "/boxes/{box}/{key+}?kind=thing"},
            "input": {"shape": "SendInput"},
        },
        "RunThing": {
            "http": {"method": "POST", "requestUri": "/things/{Id}/run"},
            "input": {"shape": "RunInput"},
            "output": {"shape": "RunOutput"},
        },
        "MakeThing": {
            "http": {"method": "POST", "requestUri": "/things"},
            "input": {"shape": "MakeInput"},
            "output": {"shape": "Item"},
        },
        "Odd": {"http": {"method": "GET", "requestUri": "/things/{Gone}"}},
    },
    signingName="thingsapi",
)


class RpcTests(SynchronousTestCase):
    def test_request(self) -> None:
        """A request is what the SDK would send; the effect key is where the service looks for repetitions."""
        item = {"Name": "a", "Kind": "bold", "Due": 7, "Parts": [{"Name": "b"}], "Tags": {"x": "y"}}
        made = request(RPC, "PutThing", RPC_URL, item=item, value={"S": "s"})
        told = json.loads(made.body or b"")
        token = told["Token"]
        wanted = of_sdk(RPC, "PutThing", {"Item": item, "Value": {"S": "s"}, "Token": token})
        self.assertEqual((made.method, made.url), (wanted["method"], f"{RPC_URL}/"))
        self.assertEqual(told, json.loads(wanted["body"]))
        headers = dict(made.headers)
        self.assertEqual(
            {name: headers[name] for name in wanted["headers"] if name in headers}, dict(wanted["headers"])
        )
        self.assertEqual(headers["X-Amz-Target"], "Things_20200101.PutThing")
        self.assertEqual(len(token), 36)
        self.assertTrue(made.idempotent)
        self.assertEqual(json.loads(request(RPC, "DeleteThings", RPC_URL).body or b""), {})

    def test_inputs(self) -> None:
        """Bounds, choices and required members are checked; what repeats itself is any object."""
        schema: Any = action(RPC, "PutThing").input_schema
        self.assertEqual((set(schema["properties"]), schema["required"]), ({"item", "value"}, ["item"]))
        item = schema["properties"]["item"]
        self.assertEqual(item["required"], ["Name"])
        self.assertEqual(item["properties"]["Name"], {"type": "string", "minLength": 1, "maxLength": 64})
        self.assertEqual(item["properties"]["Kind"]["enum"], ["plain", "bold"])
        self.assertEqual(item["properties"]["Parts"], {"type": "array", "maxItems": 5, "items": {"type": "object"}})
        value = schema["properties"]["value"]
        self.assertEqual((value["minProperties"], value["maxProperties"]), (1, 1))

    def test_effects(self) -> None:
        """What only reads is told by its verb or by AWS; one whose answer may be secret is asked for all the same."""
        effects = {each.key: each.effect for each in reader(RPC).list_operations()}
        reads = {"ListThings", "Ping", "GetThing", "GetToken"}
        self.assertEqual({key for key, effect in effects.items() if effect == "read"}, reads)
        self.assertEqual({key for key in reads if action(RPC, key).approval.gated}, {"GetThing", "GetToken"})
        self.assertTrue(operation(RPC, "GetAndDelete").destructive)

    def test_pages(self) -> None:
        """A read with a token and one list is paged."""
        pages = spec(RPC, "ListThings").operations["list_things"].pages
        assert pages is not None
        self.assertEqual((pages.items, pages.cursor, pages.parameter), (("Things",), ("NextToken",), ("NextToken",)))

    def test_answers(self) -> None:
        """An operation without output has none; a failure has the message that its shapes name."""
        self.assertEqual(operation(RPC, "DeleteThings").extra["answer"], "none")
        self.assertEqual(operation(RPC, "PutThing").extra["error"], {"message": "Message"})
        self.assertEqual(operation(RPC, "ListThings").extra["error"], {"message": "message"})

    def test_place(self) -> None:
        """It is at the host of the region, which the credential signs for; an operation may have a host of its own."""
        found = describe(RPC, "Ping", "ListThings")
        self.assertEqual(found.base_url, "https://things.{region}.amazonaws.com")
        self.assertEqual(found.hosts, {"data": "https://data.things.{region}.amazonaws.com"})
        assert found.credential is not None
        self.assertEqual(found.credential.keys, {"kind": "aws_sigv4", "region": "{region}", "service": "things"})
        self.assertEqual(request(RPC, "Ping", RPC_URL).url, "https://data.things.eu-west-1.amazonaws.com/")
        named = read_api(json.dumps(RPC).encode(), "", "https://things.{region}.api.aws")
        found = named.describe("local://me/things", named.list_operations())
        self.assertEqual(found.base_url, "https://things.{region}.api.aws")
        self.assertEqual(found.hosts, {"data": "https://data.things.{region}.api.aws"})
        everywhere = {**RPC, "metadata": {**RPC["metadata"], "globalEndpoint": "things.amazonaws.com"}}
        found = describe(everywhere, "ListThings")
        self.assertEqual((found.base_url, found.variables), ("https://things.amazonaws.com", ()))

    def test_refused(self) -> None:
        """Streams, hosts that an argument names, and requests that are signed otherwise are refused."""
        refused = write_connector(describe(RPC)).refused
        self.assertEqual(set(refused), {"watch", "other", "open"})
        self.assertIn("stream of events", refused["watch"])
        self.assertIn("one of its arguments names", refused["other"])
        self.assertIn("Signature Version 4", refused["open"])


class RestTests(SynchronousTestCase):
    def test_request(self) -> None:
        """A request is what the SDK would send, with its parts in path, query, headers and body."""
        due = "2030-01-31T00:00:00Z"
        told = {"Box": "a b", "Key": "x/y z", "Mode": "bold", "Size": 3, "Names": ["n"], "Title": "t", "Due": due}
        inputs = {"box": "a b", "key": "x/y z", "x_mode": "bold", "size": 3, "name": ["n"], "title": "t", "due": due}
        made = request(REST, "SendThing", RPC_URL, **inputs)
        headers = dict(made.headers)
        wanted = of_sdk(REST, "SendThing", {**told, "Token": headers["X-Token"]})
        url = urlsplit(made.url)
        self.assertEqual((made.method, url.path), (wanted["method"], wanted["path"]))
        self.assertEqual(dict(parse_qsl(url.query)) | {"name": "['n']"}, wanted["query"])
        self.assertEqual(json.loads(made.body or b""), json.loads(wanted["body"]))
        self.assertEqual((headers["X-Mode"], len(headers["X-Token"])), (wanted["headers"]["X-Mode"], 36))
        self.assertIn("x-meta-", operation(REST, "SendThing").marks[0])

    def test_payloads(self) -> None:
        """A body of bytes is a file in both directions; of a structure its members are arguments."""
        made = request(REST, "RunThing", RPC_URL, id="7", content="aGk=", content_type="text/plain")
        self.assertEqual((made.url, made.body), (f"{RPC_URL}/things/7/run", b"hi"))
        self.assertEqual(request(REST, "RunThing", RPC_URL, id="7").body, b"")
        self.assertEqual(operation(REST, "RunThing").extra["answer"], "file")
        made = request(REST, "MakeThing", RPC_URL, name="a", tags={"x": "y"})
        wanted = of_sdk(REST, "MakeThing", {"Item": {"Name": "a", "Tags": {"x": "y"}}})
        self.assertEqual(json.loads(made.body or b""), json.loads(wanted["body"]))
        self.assertEqual(action(REST, "MakeThing").input_schema["required"], ["name"])

    def test_refused(self) -> None:
        """A path with what is not described is refused; the name that is signed for is the service's."""
        self.assertIn("its path", operation(REST, "Odd").refused)
        credential = describe(REST, "MakeThing").credential
        assert credential is not None
        self.assertEqual(credential.keys["service"], "thingsapi")


class ModelTests(SynchronousTestCase):
    def test_not_imported(self) -> None:
        """Protocols, signatures and hosts that no connector file can say are refused; any host is AWS's own."""
        for metadata in (
            {"protocol": "ec2"},
            {"protocol": "query"},
            {"protocol": "rest-xml"},
            {"protocol": "smithy-rpc-v2-cbor", "protocols": ["smithy-rpc-v2-cbor"]},
            {"signatureVersion": "v2"},
            {"endpointPrefix": "evil.example/"},
            {"endpointPrefix": "{a}"},
            {"endpointPrefix": 7},
            {"signingName": "Some Thing"},
        ):
            with self.assertRaises(NotImported):
                reader({**RPC, "metadata": {**RPC["metadata"], **metadata}})
        chosen = {**RPC["metadata"], "protocol": "smithy-rpc-v2-cbor", "protocols": ["smithy-rpc-v2-cbor", "json"]}
        self.assertEqual(reader({**RPC, "metadata": chosen}).title, "AWS Things")
        elsewhere = {**RPC, "metadata": {**RPC["metadata"], "globalEndpoint": "evil.example"}}
        self.assertEqual(describe(elsewhere, "ListThings").base_url, "https://things.{region}.amazonaws.com")

    def test_hostile(self) -> None:
        """Values of other types, shapes in circles and ones that are missing do no harm."""
        shapes: dict[str, Any] = {
            "A": {"type": "list", "member": {"shape": "A"}},
            "B": {**_structure(A="A", C="Gone", E={}), "required": [7, [], "A"]},
            "F": 7,
        }
        shapes["B"]["members"]["D"] = 7
        wrong = {"input": 7, "http": 7, "errors": 7}
        operations = {"Do": {"input": {"shape": "B"}, "output": {"shape": "A"}}, "Not": wrong}
        for protocol in ("json", "rest-json"):
            wild = model(protocol, shapes, operations)
            wild["operations"] |= {"Seven": 7}
            self.assertEqual(len(reader(wild).list_operations()), 3)
            write_connector(describe(wild))
