"""Makes the arguments of an OpenAPI operation from its path, query and header parameters and its body."""

from __future__ import annotations

import re
from urllib.parse import quote

from attrs import define, evolve

from aileron.base.addresses import is_overriding_header, is_overriding_parameter, is_partial_header
from aileron.base.json import JSON

from ._bodies import BYTES_TYPE, FORM_TYPE, JSON_TYPE, BodyArguments
from ._references import Inexpressible, Node, list_of, table_of, text_of
from ._schemas import flatten
from ._styles import DEEP, joined_of, style_of
from .description import HEADER, PATH, QUERY
from .files import one_line

__all__ = ["BYTES_TYPE", "FORM_TYPE", "JSON_TYPE", "Arguments"]

_IN_PATH = re.compile(r"\{(\+?)([^{}/+]{1,200})(\+?)\}")
_LITERAL = re.compile(r"[A-Za-z0-9_.~!$&'()*+,;=:@/-]+|%[0-9A-Fa-f]{2}")
_MISLEADING = re.compile(r"/(?:\.{0,2}/|\.{1,2}$)")
_FOREIGN = re.compile(r"[^\x00-\xa0\u2000-\u206f\ud800-\udfff\ufe00-\ufeff]")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.~-]{1,80}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_IGNORED_HEADERS = frozenset({"accept", "authorization", "content-type"})
"""Header parameters of these names are ignored, as OpenAPI demands."""
_OWN_HEADERS = frozenset(
    "accept-encoding connection content-length cookie expect host keep-alive proxy-authorization proxy-connection te "
    "trailer transfer-encoding upgrade user-agent".split()
)
_SECRETS = ("token", "access_token", "auth_token", "api_key", "apikey", "api-key", "x-api-key", "x-auth-token")
_KEYS = ("idempotency-key", "x-idempotency-key")
_TEXT: JSON = {"type": "string"}


@define
class Arguments(BodyArguments):
    """The arguments of one operation: its parameters, and those of its body."""

    def add_parameters(self, *lists: object) -> None:
        """Add the parameters of a path and of its operation. A later one replaces one of the same name and place.

        :raises Inexpressible: if a required parameter cannot be expressed, or a reference cannot be followed.
        """
        there: dict[tuple[str, str], Node] = {}
        for value in (each for given in lists for each in list_of(given)):
            node = self.document.follow(value)
            there[text_of(node.keys.get("name")), text_of(node.keys.get("in"))] = node
        for (name, place), node in there.items():
            required = node.keys.get("required") is True or place == PATH
            if place == HEADER and name.lower() in _KEYS:
                self.headers[name] = "${effect.uuid}"
            elif name.lower() in self.reserved | (_IGNORED_HEADERS if place == HEADER else frozenset()):
                continue
            elif why := self._why_none(name, place):
                self.omit(name, why)
            else:
                try:
                    self._add_parameter(name, place, node, required)
                except Inexpressible as problem:
                    self.leave_out(name, problem, required)

    def _why_none(self, name: str, place: str) -> str:
        """Return why a parameter, even a required one, must not become an input, or an empty text if it may."""
        if is_overriding_parameter(name) or (place == HEADER and is_overriding_header(name)):
            return "makes another request of it than was reviewed"
        if place == HEADER and is_partial_header(name):
            return "asks for a part of an answer, in which no secret can be found"
        if self.reserved and place in (HEADER, QUERY) and name.lower() in _SECRETS:
            return "is a credential, and the connector adds its own"
        return "is a header that only the daemon sets" if place == HEADER and name.lower() in _OWN_HEADERS else ""

    def _add_parameter(self, name: str, place: str, node: Node, required: bool) -> None:
        said = text_of(node.keys.get("description"))
        if place not in (PATH, QUERY, HEADER) or not name or (place == HEADER and not _HEADER.fullmatch(name)):
            raise Inexpressible("is a cookie" if place == "cookie" else "has no proper name")
        if "schema" not in node.keys:
            self._add_encoded(name, place, node, required)
            return
        style, explode = style_of(node.keys, place)
        schema = flatten(self.document, node.keys["schema"], self.work, node.trail)
        if place == QUERY and (style == DEEP or (style == "form" and explode)) and self.find_object(schema) is not None:
            self.add_flat(name if style == DEEP else "", schema, place, required=required)
            return
        made = self.make(name, place, (name,), node.keys["schema"], node.trail, required=required, said=said)
        if style == DEEP and made.schema["type"] == "array":
            made = evolve(made, steps=(f"{name}[]",))
        elif joined := joined_of(name, style, made.schema, explode=explode):
            self.joined[made.name] = joined
        self.keep(made)

    def _add_encoded(self, name: str, place: str, node: Node, required: bool) -> None:
        """Add a parameter whose value is text in a media type such as JSON.

        :raises Inexpressible: if the parameter has no media type.
        """
        media_type = next(iter(table_of(node.keys.get("content"))), "")
        if not media_type:
            raise Inexpressible("has no schema")
        said = f"{text_of(node.keys.get('description'))} As {one_line(media_type, 60)}.".strip()
        made = self.make(name, place, (name,), _TEXT, required=required, said=said)
        self.keep(evolve(made, marks=(f"what is written in it ({one_line(media_type, 60)}) is not checked",)))

    def write_path(self, path: str, *, guess: bool = False) -> tuple[str, dict[str, JSON]]:
        """Return a path with its parameters renamed to inputs, and the key C{slashes}.

        C{slashes} names the inputs that may span several segments. Path arguments that are not in the path are removed.

        :param guess: whether an undescribed parameter becomes an input of type text.
        :raises Inexpressible: if a parameter is not described, or the path cannot be written in a connector file.
        """
        names = {each.steps[0]: each.name for each in self.found if each.place == PATH}
        for name in dict.fromkeys(name for _, name, _ in _IN_PATH.findall(path) if name not in names):
            if not (guess and _PLAIN_NAME.fullmatch(name)):
                raise Inexpressible(f"its path has {one_line(name, 60)}, which is not described")
            made = self.make(name, PATH, (name,), _TEXT, required=True)
            self.keep(evolve(made, marks=("it stands in the path and is not described: a text is a guess",)))
            names[name] = made.name
        unused = names.keys() - {name for _, name, _ in _IN_PATH.findall(path)}
        if unused:
            self.found = [each for each in self.found if each.place != PATH or each.steps[0] not in unused]
            self.omit(one_line(", ".join(sorted(unused))), "is not in its path")
        if not path.startswith("/") or _LITERAL.sub("", _FOREIGN.sub("", _IN_PATH.sub("", path))):
            raise Inexpressible("its path holds what no path can")
        if _MISLEADING.search(path):
            raise Inexpressible("its path has an empty segment, or one that is a dot or two")
        several: list[JSON] = [names[name] for before, name, after in _IN_PATH.findall(path) if before or after]
        written = _IN_PATH.sub(lambda found: f"{{{names[found[2]]}}}", path)
        return _FOREIGN.sub(lambda found: quote(found[0]), written), {"slashes": several} if several else {}
