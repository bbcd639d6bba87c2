"""The client of own tools: asks the daemon to open services for the tools of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from aileron.client import AnswerNotUnderstood, Daemon, DaemonFault
from aileron.model.own_tools import REGION

_OK, _NOT_FOUND = 200, 404
_SHORTEST_PART = 8


@frozen
class OpenedServices:
    """The services that the daemon opened for the tools of a session.

    :ivar certificate: the certificate in PEM of the session's authority, which is valid for these hosts alone.
    :ivar hosts: the hosts of the services, with their ports unless these are 443.
    :ivar variables: the variables that tools want, with placeholders as values.
    """

    services: tuple[str, ...]
    certificate: str = field(repr=False)
    hosts: tuple[str, ...]
    variables: Mapping[str, str] = field(factory=dict)

    def replace_credentials(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with placeholders in place of the credentials that the user has for these services.

        A variable whose placeholder is empty is left out. A credential is also replaced in other
        variables with the same value. A long one is replaced even if it is only a part of the value.
        """
        theirs = {
            environment[name]: value
            for name, value in self.variables.items()
            if environment.get(name) and not name.endswith(REGION)
        }
        # guard of own tools: no credential of the user enters the sandbox beside the placeholder
        #    -> features.own_tools.test_client.EnvironmentTests.test_same_value
        kept = {name: _replace(value, theirs) for name, value in environment.items()}
        replaced = {**kept, **self.variables}
        return {name: value for name, value in replaced.items() if value or name not in self.variables}

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The variables whose values are placeholders, without variables that are removed or name a region."""
        return {name: value for name, value in self.variables.items() if value and not name.endswith(REGION)}


def _replace(text: str, theirs: Mapping[str, str]) -> str:
    """Return a text with placeholders in place of credentials. A short one is replaced only if it is the whole text."""
    if text in theirs:
        return theirs[text]
    for value in sorted(theirs, key=len, reverse=True):
        if len(value) >= _SHORTEST_PART:
            text = text.replace(value, theirs[value])
    return text


async def list_configured(daemon: Daemon, session_id: str) -> tuple[str, ...]:
    """Return the services that C{config.yaml} has for a session's directory. It is empty if own tools are off.

    :param daemon: a client with the launch key.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    try:
        answer = await daemon.get("sessions", session_id, "own-tools")
    except DaemonFault as error:
        if error.status == _NOT_FOUND:
            return ()
        raise
    return tuple(map(str, answer.get("services", ())))


async def open_services(daemon: Daemon, session_id: str, services: Sequence[str]) -> OpenedServices:
    """Open services for the tools of a session.

    :param daemon: a client with the launch key.
    :param services: the names of the services, such as C{github}.
    :raises AnswerNotUnderstood: if the answer lacks a part.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    answer = await daemon.post("sessions", session_id, "own-tools", body={"services": list(services)})
    try:
        return OpenedServices(
            services=tuple(str(each["name"]) for each in answer["services"]),
            certificate=answer["certificate"].strip() + "\n",
            hosts=tuple(map(str, answer["hosts"])),
            variables={str(name): str(value) for name, value in answer["variables"].items()},
        )
    except (KeyError, TypeError, AttributeError):
        raise AnswerNotUnderstood("The daemon's response names no opened services.", _OK) from None
