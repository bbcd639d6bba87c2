"""The operator's rules about who approves, from the C{config.yaml} that the operator trusted last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from attrs import define, field

from aileron.base.yaml_keys import NotConfig
from aileron.model.errors import ApprovalStale
from aileron.model.interfaces.authority import ITrust
from aileron.model.interfaces.connectors import IConfigFile
from aileron.model.people import OperatorRule
from aileron.model.trust import TrustKind

from ._config import read_approver_rules
from ._config_file import NAME

_UNKNOWN = (
    "The config.yaml that is trusted cannot be found, so its rules about who may approve are not known, and nothing is "
    "approved. Review the file and trust it again: aileron config trust"
)


@define(eq=False)
class TrustedRules:
    """Reads the rules in the trusted C{config.yaml}. They hold from the moment at which it is trusted.

    A file that was changed, or removed, since is not read: the rules of the trusted text hold until the operator trusts
    another one, or distrusts it.

    :param file: the file on disk, whose text is used if it is the trusted one.
    :param find_stored: returns a trusted text by its digest, or None if it is unknown.
    """

    _trust: ITrust
    _file: IConfigFile
    _find_stored: Callable[[str], Awaitable[str | None]]
    _known: tuple[str | None, Sequence[OperatorRule]] = field(default=(None, ()), init=False)

    async def load(self) -> Sequence[OperatorRule]:
        """Return the rules in force.

        :raises ApprovalStale: if the trusted text is unknown, so that nothing may be approved.
        :raises StoreUnavailable: if it cannot be read.
        """
        word = self._trust.find(TrustKind.CONFIG, NAME)
        if word is None:
            return ()
        if self._known[0] != word.digest:
            text = await self._find_text(word.digest)
            try:
                # guard of roles: without the trusted text nothing is approved
                #    -> daemon.test_approver_rules.RulesTests.test_unknown,
                #    instead self._known = word.digest, read_approver_rules(text or "")
                self._known = word.digest, read_approver_rules(_require(text))
            except NotConfig as error:
                raise ApprovalStale(_UNKNOWN) from error
        return self._known[1]

    async def _find_text(self, digest: str) -> str | None:
        # guard of roles: a changed file does not end the rules -> daemon.test_approver_rules.RulesTests.test_changed,
        #    instead return next((each.text for each in self._file.candidates()), None)
        for candidate in self._file.candidates():
            if candidate.digest == digest:
                return candidate.text
        return await self._find_stored(digest)


def _require(text: str | None) -> str:
    if text is None:
        raise ApprovalStale(_UNKNOWN)
    return text
