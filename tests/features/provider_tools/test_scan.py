"""Finding a provider's tools in a request: as a whole parser would, wherever the request is split."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.gateway.values import ProviderTool, ToolKind
from aileron.features.provider_tools.scan import MOST_FOUND, ToolScan
from tests.extent import examples

UNREADABLE = ToolKind.UNREADABLE.value
SERVER = '{"type":"url","url":"https://mcp.example.com/sse","name":"x"}'
HIDDEN = tuple(
    text.replace("MCP", SERVER)
    for text in (
        '\ufeff{"mcp_servers":[MCP]}',
        '{"mcp\\u005fservers":[MCP]}',
        '{"\\u006d\\u0063\\u0070_servers" :\n[ MCP ] }',
        '{"mcp_servers":[],"mcp_servers":[MCP]}',
        '{"mcp_servers":[MCP],"mcp_servers":[]}',
        '{"Mcp_Servers":[MCP]}',
        '{"mcp_\u017fervers":[MCP]}',
        '{"mcp_\\u017fervers":[MCP]}',
        '{"metadata":{"a":[[[["}]"]]]],"b":"\\\\"},"mcp_servers":[MCP]}',
        '{"system":"a \\" b \\\\\\\\","mcp_servers":[MCP]}',
        '{"system":"\U0001f600\u00e9","mcp_servers":[MCP]}',
        '{"a":-1.5E+3,"b":true,"c":null,"d":NaN,"mcp_servers":[MCP]}',
        '{"mcp_servers":MCP}',
        '{"requests":[{"custom_id":"1","params":{"mcp_servers":[MCP]}}]}',
        '{"tools":[{"type":"mcp","server_url":"https:\\/\\/Mcp.example.com"}]}',
        '{"input":[{"type":"additional_tools","tools":[{"server_url":"https://mcp.example.com:8443","type":"mcp"}]}]}',
    )
)
HARMLESS = (
    '{"a\\"\\"b":1}',
    "{}",
    ' {"tools":[],"mcp_servers":[],"web_search_options":null}',
    '{"tools":null,"mcp_servers":null}',
    '{"messages":[{"content":"\\"mcp_servers\\":[{}]"}]}',
    '{"messages":[{"mcp_servers":[{"url":"https://x"}],"tools":[{"type":"web_search"}]}]}',
    '{"messages":[{"content":[{"type":"tool_use","input":{"tools":[{"type":"web_search_20250305"}]}}]}]}',
    '{"metadata":{"tools":[{"type":"web_search"}]}}',
    '{"input":[{"type":"mcp_list_tools","server_label":"x","tools":[{"name":"web_search","input_schema":{}}]}]}',
    '{"tools":[{"type":"function","function":{"type":"web_search","parameters":{"type":"mcp"}}}]}',
    '{"tools":[{"name":"web_search","input_schema":{"type":"object"}},{"type":null},{"type":"custom"}]}',
    '{"tools":[{"type":"bash_20250124"},{"type":"text_editor_20250728"},{"type":"memory_20250818"}]}',
    '{"tools":[{"type":"shell","environment":{"type":"local"}},{"type":"local_shell"},{"type":"apply_patch"}]}',
    '{"tools":[{"type":"tool_search"},{"type":"namespace","tools":[{"type":"function"}]}]}',
)
KINDS = (
    ('{"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}]}', "remote_mcp"),
    ('{"tools":[{"type":"mcp","connector_id":"connector_gmail"}]}', "remote_mcp"),
    ('{"tools":[{"type":"mcp","server_url":"https://user:secret@x.example"}]}', "remote_mcp"),
    ('{"tools":[{"type":"web_search_20250305","name":"web_search"}]}', "web_search"),
    ('{"tools":[{"type":"web_search_preview"}]}', "web_search"),
    ('{"web_search_options":{}}', "web_search"),
    ('{"tools":[{"type":"web_fetch_20250910"}]}', "web_fetch"),
    ('{"tools":[{"type":"code_execution_20250825"}]}', "code_execution"),
    ('{"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}', "code_execution"),
    ('{"tools":[{"environment":{"type":"container_auto"},"type":"shell"}]}', "code_execution"),
    ('{"tools":[{"type":"computer_20250124"}]}', "computer_use"),
    ('{"tools":[{"type":"computer_use_preview","environment":"browser"}]}', "computer_use"),
    ('{"tools":[{"type":"file_search","vector_store_ids":[]}]}', "file_search"),
    ('{"tools":[{"type":"image_generation"}]}', "image_generation"),
    ('{"tools":[{"type":"something_new"}]}', "other"),
    ('{"tools":[{"type":"function","type":"something_new"}]}', "other"),
    (f'{{"tools":[{{"type":"{"x" * 20_000}"}}]}}', "other"),
    ('{"tools":[{"type":"namespace","tools":[{"type":"web_search"}]}]}', "web_search"),
    ('{"session":{"tools":[{"type":"file_search"}]}}', "file_search"),
    ('{"messages":[{"content":{"tool_changes":[{"tool":{"definition":{"type":"advisor_1"}}}]}}]}', "other"),
    ('{"session":{"delegation":{"responses":{"tools":[{"type":"mcp"}]}}}}', "remote_mcp"),
    ('{"agent":{"id":"a","tools":[{"type":"web_search"}]}}', "web_search"),
    ('{"target":{"agent":{"tools":[{"type":"mcp"}]}}}', "remote_mcp"),
    ('{"data_source":{"type":"responses","sampling_params":{"tools":[{"type":"mcp"}]}}}', "remote_mcp"),
    ('{"thread":{"messages":[{"attachments":[{"tools":[{"type":"file_search"}]}]}]}}', "file_search"),
    ('{"additional_messages":[{"attachments":[{"tools":[{"type":"code_interpreter"}]}]}]}', "code_execution"),
    (
        '{"messages":[{"content":[{"tool":{"definition":{"type":"web_fetch_20260318"}},"type":"tool_addition"}]}]}',
        "web_fetch",
    ),
)
NO_JSON = (
    "",
    " ",
    "\ufeff\ufeff{}",
    '"x"',
    "5",
    "{",
    '{"tools":[{"type":"web_search"}',
    "{}x",
    "{}{}",
    "{'a':1}",
    '{/*"*/"mcp_servers":[{}]}',
    '{a:1,"mcp_servers":[{}]}',
    '{"a":1 "mcp_servers":[{}]}',
    '{"a":\x00}',
    '{"metadata":{"a":\\u0022}}',
    '{"tools":[}',
    '{"tools":{]}',
    '{"a" {}}',
    '{"\\x":1}',
    f'{{"tools":{"[" * 40}{"]" * 40}}}',
)


def verdict(pieces: Sequence[bytes]) -> set[str]:
    """What the scan says of a request that comes in these pieces."""
    scan = ToolScan()
    for piece in pieces:
        scan.feed(piece)
    scan.finish()
    return {str(tool) for tool in scan.found} | ({UNREADABLE} if scan.unreadable else set())


def splits(data: bytes) -> Iterator[list[bytes]]:
    """Whole, in two pieces at every place, and byte by byte."""
    yield [data]
    yield [bytes([byte]) for byte in data]
    for place in range(1, len(data)):
        yield [data[:place], data[place:]]


class Pairs(list[tuple[str, Any]]):
    """An object with every member that it has, also those of the same name."""

    def all(self, name: str) -> Iterator[Any]:
        """The values of that name."""
        return (value for key, value in self if key.casefold() == name)


def objects(value: Any) -> Iterator[Pairs]:
    """An object itself, or the objects of an array."""
    if isinstance(value, Pairs):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from objects(item)


def members(value: Any, *path: str) -> Iterator[Any]:
    """The values at the end of a path of names, wherever an array of objects stands for one."""
    if not path:
        yield value
        return
    for each in objects(value):
        for inner in each.all(path[0]):
            yield from members(inner, *path[1:])


def expected(document: Any) -> Iterator[str]:
    """What is to be found, told with the whole document in hand, and without the tables of the scan."""
    for path in (("tools",), ("input", "tools")):
        yield from of_tools(members(document, *path))
    for servers in members(document, "mcp_servers"):
        for server in objects(servers):
            yield from at_hosts(server, "url")
    for options in members(document, "web_search_options"):
        yield from ("web_search" for _ in objects(options))
    yield from of_blocks(members(document, "messages", "content"))
    for path in (("requests", "params"), ("session",)):
        for inner in members(document, *path):
            yield from expected(inner)


def of_blocks(values: Iterator[Any]) -> Iterator[str]:
    """Of blocks of content."""
    for value in values:
        yield from of_tools(members(value, "tool", "definition"))
        yield from of_blocks(members(value, "tool_changes"))


def of_tools(values: Iterator[Any]) -> Iterator[str]:
    """Of tools."""
    for value in values:
        for tool in objects(value):
            for kind in map(kind_of, filter(is_text, tool.all("type"))):
                if kind == "remote_mcp":
                    yield from at_hosts(tool, "server_url")
                elif kind:
                    yield kind
            types = filter(is_text, members(tool, "environment", "type"))
            yield from ("code_execution" for type_ in types if type_ != "local")
            yield from of_tools(tool.all("tools"))


def is_text(value: object) -> bool:
    """Whether it is one."""
    return isinstance(value, str)


def at_hosts(tool: Pairs, name: str) -> Iterator[str]:
    """A remote MCP server, once for each host."""
    urls = list(filter(is_text, tool.all(name)))
    for url in urls or [""]:
        host = re.fullmatch(r"https?://([a-z0-9.-]+)(:\d+)?(/.*)?", url, re.IGNORECASE)
        yield f"remote_mcp at {host[1].lower()}" if host else "remote_mcp"


def kind_of(type_: str) -> str | None:
    """The kind by the name of a type."""
    if re.fullmatch(r"(bash|text_editor|memory)_\d+|tool_search(_tool_(bm25|regex)(_\d+)?)?", type_):
        return None
    if type_ in "function custom namespace local_shell shell apply_patch programmatic_tool_calling".split():
        return None
    for found in ("web_search", "web_fetch", "code_execution", "file_search", "image_generation"):
        if type_.startswith(found):
            return found
    others = {"mcp": "remote_mcp", "code_interpreter": "code_execution", "computer": "computer_use"}
    others["browser_toolset"] = "computer_use"
    return next((kind for start, kind in others.items() if type_.startswith(start)), "other")


TYPES = st.sampled_from(
    (
        "function",
        "custom",
        "mcp",
        "mcp_toolset",
        "web_search",
        "web_search_20260318",
        "web_fetch_20250910",
        "code_interpreter",
        "computer",
        "shell",
        "namespace",
        "new",
    )
)
NAMES = st.sampled_from(
    (
        "tools",
        "mcp_servers",
        "type",
        "url",
        "server_url",
        "environment",
        "messages",
        "content",
        "tool",
        "tool_changes",
        "definition",
        "input",
        "requests",
        "params",
        "session",
        "web_search_options",
        "Tools",
        "x",
        '"',
        "\\",
        "\u00e9\U0001f600",
    )
)
TEXTS = TYPES | NAMES | st.sampled_from(("https://a.example/x", "http://B.example:81", "nonsense", "local", "]}{[,:"))
SCALARS = TEXTS | st.none() | st.booleans() | st.integers() | st.floats()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: ["list", items])
        | st.lists(st.tuples(NAMES, inner), max_size=4).map(lambda pairs: ["object", pairs])
    ),
    max_leaves=25,
)
REQUESTS = st.lists(st.tuples(NAMES, VALUES), max_size=5).map(lambda pairs: ["object", pairs])


@st.composite
def written(draw: st.DrawFn, values: st.SearchStrategy[Any] = REQUESTS) -> str:
    """JSON with names twice, characters escaped or not, and blanks anywhere."""
    blanks = st.sampled_from(("", "", " ", "\n\t "))

    def text(value: str) -> str:
        quoted = json.dumps(value, ensure_ascii=draw(st.booleans()))
        if value and value.isascii() and value.isidentifier() and draw(st.booleans()):
            place = draw(st.integers(1, len(value)))
            quoted = f"{quoted[:place]}\\u{ord(quoted[place]):04x}{quoted[place + 1 :]}"
        return quoted

    def write(value: Any) -> str:
        if isinstance(value, list):
            kind, items = value
            parts = [
                write(item) if kind == "list" else f"{text(item[0])}{draw(blanks)}:{write(item[1])}" for item in items
            ]
            inner = f"{draw(blanks)},{draw(blanks)}".join(parts)
            return f"[{inner}{draw(blanks)}]" if kind == "list" else f"{{{draw(blanks)}{inner}}}"
        return text(value) if isinstance(value, str) else json.dumps(value)

    return draw(st.sampled_from(("", "\ufeff", "\n"))) + write(draw(values)) + draw(blanks)


@st.composite
def pieces(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The same bytes in pieces."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


class TableTests(SynchronousTestCase):
    """What hides a tool, what looks like one, and what is no JSON."""

    def test_hidden(self) -> None:
        """No spelling, repetition, nesting, mark or split hides a tool."""
        for text in HIDDEN:
            for split in splits(text.encode()):
                self.assertEqual(verdict(split), {"remote_mcp at mcp.example.com"}, text)

    def test_harmless(self) -> None:
        """What stands in strings, in messages or deeper, and what the client runs itself, is no tool."""
        for text in HARMLESS:
            for split in splits(text.encode()):
                self.assertEqual(verdict(split), set(), text)

    def test_kinds(self) -> None:
        """Each published type is of its kind, and one that nobody knows is another; no password is told."""
        for text, kind in KINDS:
            for split in ([text.encode()], [bytes([byte]) for byte in text.encode()]):
                self.assertEqual(verdict(split), {kind}, text[:200])

    def test_unreadable(self) -> None:
        """What is no JSON, or has its tools nested without end, is not readable."""
        for text in NO_JSON:
            for split in splits(text.encode()):
                self.assertIn(UNREADABLE, verdict(split), text)
        for coding in ("utf-16", "utf-16-le", "utf-32"):
            self.assertEqual(verdict([HIDDEN[0].encode(coding)]), {UNREADABLE})

    def test_bounded(self) -> None:
        """A thousand servers, or hosts of one, are told as a few; nothing long is kept."""
        servers = ",".join(f'{{"url":"https://h{number}.example"}}' for number in range(1000))
        self.assertEqual(len(verdict([f'{{"mcp_servers":[{servers}]}}'.encode()])), MOST_FOUND + 1)
        urls = ",".join(f'"url":"https://h{number}.example"' for number in range(1000))
        self.assertEqual(len(verdict([f'{{"mcp_servers":{{{urls}}}}}'.encode()])), 9)
        scan = ToolScan()
        scan.feed(b'{"')
        for _ in range(100):
            scan.feed(b"x" * 65536)
        self.assertLess(len(scan._text or b""), 100_000)
        scan.feed(b'":{"a":' + b"[" * 500_000 + b"]" * 500_000 + b'},"tools":{"type":"mcp"}}')
        self.assertEqual(scan.found, {ProviderTool(ToolKind.REMOTE_MCP): None})


class EqualityTests(SynchronousTestCase):
    """Beside the standard library's parser."""

    @given(st.data(), written())
    @settings(max_examples=examples(100), deadline=None)
    def test_same(self, data: st.DataObject, text: str) -> None:
        """However a request is written and split, what is found is what a parser of the whole finds."""
        body = text.encode()
        document = json.loads(body, object_pairs_hook=Pairs)
        self.assertEqual(verdict(data.draw(pieces(body))), set(expected(document)))

    @given(st.data(), written(), st.binary(max_size=3))
    @settings(max_examples=examples(100), deadline=None)
    def test_changed(self, data: st.DataObject, text: str, junk: bytes) -> None:
        """Of a request in which a few bytes were changed, nothing is missed that a parser finds."""
        body = text.encode()
        place, length = data.draw(st.integers(0, len(body))), data.draw(st.integers(0, 3))
        body = body[:place] + junk + body[place + length :]
        try:
            document = json.loads(body, object_pairs_hook=Pairs, strict=False)
        except (ValueError, RecursionError):
            verdict(data.draw(pieces(body)))
            return
        found = verdict(data.draw(pieces(body)))
        if isinstance(document, Pairs) and UNREADABLE not in found:
            self.assertEqual(found, set(expected(document)))
