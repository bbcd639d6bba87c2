"""Collects the arguments of one imported operation, with marks: texts about what could not be derived."""

from __future__ import annotations

from attrs import define, field

from aileron.base.json import JSON

from ._derive import name_of
from ._references import ApiDocument, Inexpressible, WorkBudget, table_of, text_of
from ._schemas import narrow
from .description import BODY, GIVEN, ApiParameter, name_left_out

_MOST_FOUND = 300
_MOST_INPUT_NAME = 60
_BODIES = (BODY, GIVEN)


@define
class ArgumentList:
    """The arguments of one operation, collected one by one.

    :ivar reserved: lower-case names of the headers and query parameters that carry the credential.
    :ivar found: the arguments kept so far.
    :ivar constant: constant members of the body: the names that lead to the member, and its value.
    :ivar headers: the headers that are the same in every request.
    :ivar body: the kind of the body, such as C{json}; empty if the request has no body.
    :ivar joined: for each input with several parts, by name: how its parts are joined into one text.
    :ivar optional_body: whether the body is omitted if none of its inputs is given.
    """

    document: ApiDocument
    work: WorkBudget
    reserved: frozenset[str]
    found: list[ApiParameter] = field(factory=list, init=False)
    constant: list[tuple[tuple[str, ...], JSON]] = field(factory=list, init=False)
    headers: dict[str, JSON] = field(factory=dict, init=False)
    body: str = field(default="", init=False)
    joined: dict[str, JSON] = field(factory=dict, init=False)
    optional_body: bool = field(default=False, init=False)
    _unchecked: list[str] = field(factory=list, init=False)
    _left_out: dict[str, list[str]] = field(factory=dict, init=False)

    @property
    def marks(self) -> tuple[str, ...]:
        """Return a mark for everything that could not be derived, including the arguments that were left out."""
        left_out = (each for why, names in self._left_out.items() for each in name_left_out(f"it {why}", names))
        return (*dict.fromkeys(self._unchecked), *left_out)

    def mark(self, *marks: str) -> None:
        """Add marks: texts about parts that could not be derived."""
        self._unchecked += marks

    def omit(self, name: str, problem: str) -> None:
        """Record that an argument is left out because of C{problem}. Unlike L{leave_out}, accept required arguments."""
        self._left_out.setdefault(problem, []).append(name)

    def leave_out(self, name: str, problem: Inexpressible, required: bool) -> None:
        """Record that an optional argument is left out because of C{problem}.

        :raises Inexpressible: if the argument is required.
        """
        if required:
            raise Inexpressible(f"{name} is required and {problem}") from None
        self.omit(name, str(problem))

    def keep(self, parameter: ApiParameter) -> None:
        """Add a made argument to C{found}.

        :raises Inexpressible: if an argument with the same place and name in the request was added before.
        """
        if parameter.place != GIVEN and any(map(parameter.is_placed_like, self.found)):
            raise Inexpressible("has the name of another one in the request")
        self.found.append(parameter)

    def make(
        self,
        name: str,
        place: str,
        steps: tuple[str, ...],
        value: JSON,
        trail: frozenset[str] = frozenset(),
        *,
        required: bool,
        said: str = "",
    ) -> ApiParameter:
        """Make an argument under a unique input name. The caller adds the argument with L{keep}.

        :param value: the schema of the argument in the document.
        :param said: the description; empty to use the description in the schema.
        :raises Inexpressible: if no input can express the schema, or there are too many arguments.
        """
        if len(self.found) >= _MOST_FOUND:
            raise Inexpressible("is one of too many")
        taken = {each.name for each in self.found}
        own = name_of(name, most=_MOST_INPUT_NAME)
        own = name_of(f"{place}_{own}" if own in taken else own, taken, _MOST_INPUT_NAME)
        narrowed = narrow(self.document, value, self.work, trail, usual="object" if place == BODY else "string")
        described = said or text_of(narrowed.schema.get("description"))
        if not name.isascii() and name not in described:
            described = f"{described} Called {name} by the service.".strip()
        default = table_of(value).get("default")
        if isinstance(default, str | int | float) and default != "" and "default" not in described.lower():
            described = f"{described} Default: {str(default).lower() if isinstance(default, bool) else default}."
        return ApiParameter(own, narrowed.schema, place, steps, required, described.strip(), narrowed.marks)
