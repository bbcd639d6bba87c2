"""Connectors written in Python: found in the configured packages only. Secrets in their responses are redacted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pkgutil import iter_modules

from attrs import frozen
from twisted.plugin import getCache
from zope.interface.exceptions import Invalid
from zope.interface.verify import verifyObject

from aileron.base.load_error import LoadError
from aileron.base.packages import find_package
from aileron.model.connectors import ConnectorDescription
from aileron.model.interfaces.connectors import IConnector
from aileron.model.trust import Candidate

from ._files import BOUNDARY, SHIPPED
from ._screened import Screened


@frozen
class FoundPlugin:
    """A connector, or the errors of loading it.

    :ivar file: its origin, for people.
    :ivar candidate: the file that the operator must trust, or None if it is not a file of the user's.
    """

    file: str
    connector: IConnector | None
    problems: tuple[LoadError, ...] = ()
    candidate: Candidate | None = None


def of_package(name: str) -> Iterator[FoundPlugin]:
    """Yield every plugin of the package C{name}.

    If there is no such package, yield one error of the kind C{missing}. If the package or a module cannot be imported,
    or a plugin is no connector, yield an error of the kind C{malformed} in its place.
    """
    try:
        package = find_package(name)
    except Exception as error:  # noqa: BLE001  (foreign code may raise any error; the others still load)
        yield _fault("malformed", name, f"raises {type(error).__name__}")
        return
    if package is None:
        yield _fault("missing", name, "there is no such package, or it lies in the working directory")
        return
    dropins = getCache(package)
    for module in sorted(each.name for each in iter_modules(package.__path__)):
        if module not in dropins:
            yield _fault("malformed", f"{name}.{module}", "cannot be imported")
            continue
        for plugin in dropins[module].plugins:
            yield _check(f"{name}.{module}.{plugin.name}", plugin.load)


def _check(file: str, load: Callable[[], object]) -> FoundPlugin:
    try:
        plugin = load()
        verifyObject(IConnector, plugin)
        connector: IConnector = IConnector(plugin)
        described: object = connector.describe()
    except Invalid as error:
        return _fault("malformed", file, f"does not provide IConnector: {error}")
    except Exception as error:  # noqa: BLE001  (foreign code may raise any error; the others still load)
        return _fault("malformed", file, f"raises {type(error).__name__}")
    if not isinstance(described, ConnectorDescription):
        return _fault("malformed", file, "describes itself by something else than a ConnectorDescription")
    if described.name.startswith(f"{SHIPPED}://"):
        return _fault("malformed", file, f"is named {SHIPPED}://, as only what is shipped may be")
    return FoundPlugin(file, Screened(connector))


def _fault(kind: str, file: str, message: str) -> FoundPlugin:
    return FoundPlugin(file, None, (LoadError(kind, " ".join(message.split()), file, None, BOUNDARY),))
