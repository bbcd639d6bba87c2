"""The operator's rules about who approves: those of the config.yaml that was trusted last."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred

from aileron.base.json import digest_of_bytes, utc
from aileron.daemon._approver_rules import TrustedRules
from aileron.daemon._config import read_approver_rules, read_config
from aileron.daemon._config_file import ConfigFile
from aileron.features import FeatureSet
from aileron.home.paths import Home, prepare
from aileron.model.errors import ApprovalStale
from aileron.model.people import ApproverRule, OperatorRule
from aileron.model.trust import Trusted, TrustKind
from aileron.testing import MemoryTrust

from .test_config import ConfigCase

_TEXT = """\
approvals:
  rules:
    - action: pay_*
      by: ["group:finance", ada]
      count: 2
      not_requester: true
    - {action: "*", by: [administrator]}
"""
_RULES = (
    OperatorRule("pay_*", ApproverRule((("group:finance", "ada"),), not_requester=True, count=2)),
    OperatorRule("*", ApproverRule((("administrator",),))),
)


class ReadingTests(ConfigCase):
    """What is a rule."""

    def test_whole(self) -> None:
        """Every key of a rule is read, alone as with the others; a file without rules has none."""
        for text in (_TEXT, f"unknown: 1\n{_TEXT}"):
            self.assertEqual(read_approver_rules(text), _RULES)
        self.assertEqual(read_config(_TEXT, FeatureSet()).approvals, _RULES)
        for text in ("", "listen: tcp:1", "approvals: {}"):
            self.assertEqual(read_approver_rules(text), ())
        self.assertTrue(_RULES[0].covers("pay_now"))
        self.assertFalse(_RULES[0].covers("repay_now"))
        self.assertFalse(OperatorRule("pay", ApproverRule()).covers("pay_now"))

    def test_refused(self) -> None:
        """What is no rule."""
        for rule, word in (
            ("{count: 2}", "the key action"),
            ("{action: pay, counts: 2}", "unknown key"),
            ("{action: '', count: 2}", "name of an action"),
            ("{action: '*pay', count: 2}", "name of an action"),
            ("{action: pay, count: 0}", "from 1 to 10"),
            ("{action: pay, count: 11}", "from 1 to 10"),
            ("{action: pay, count: two}", "from 1 to 10"),
            ("{action: pay, by: []}", "must have a name"),
            ("{action: pay, by: [viewer]}", "roles that decide"),
            ("{action: pay, by: ['group:']}", "roles that decide"),
            ("{action: pay, by: ada}", "must be a list"),
            ("{action: pay, not_requester: 1}", "true or false"),
            ("pay", "must be a mapping"),
        ):
            self.refused(f"approvals:\n  rules:\n    - {rule}\n", 3, word)
        self.refused("approvals: {rules: pay}", 1, "must be a list")


class RulesTests(ConfigCase):
    """Which rules hold."""

    def setUp(self) -> None:
        """A home with a trusted file."""
        self.home = Home(Path(self.mktemp()).absolute())
        prepare(self.home)
        self.trust = MemoryTrust()
        self.texts: dict[str, str] = {}
        self.write(_TEXT)
        self.believe(_TEXT)

    def write(self, text: str) -> None:
        """Write the file."""
        self.home.config.write_text(text)
        self.home.config.chmod(0o600)

    def believe(self, text: str) -> None:
        """Trust a text."""
        self.trust.put([Trusted(TrustKind.CONFIG, "config.yaml", digest_of_bytes(text.encode()), utc(0), "ops_1")])

    def rules(self) -> TrustedRules:
        """The rules of another life of the daemon."""
        return TrustedRules(self.trust, ConfigFile(self.home, self.trust, FeatureSet()), self.find)

    async def find(self, digest: str) -> str | None:
        """A trusted text."""
        return self.texts.get(digest)

    def load(self, rules: TrustedRules) -> object:
        """The rules that hold now."""
        return self.successResultOf(Deferred.fromCoroutine(rules.load()))

    def test_trusted(self) -> None:
        """The rules of the trusted file hold, those of another one from the moment at which it is trusted."""
        rules = self.rules()
        self.assertEqual(self.load(rules), _RULES)
        self.write("approvals: {rules: [{action: pay, count: 3}]}")
        self.assertEqual(self.load(rules), _RULES)
        self.believe("approvals: {rules: [{action: pay, count: 3}]}")
        self.assertEqual(self.load(rules), (OperatorRule("pay", ApproverRule(count=3)),))

    def test_changed(self) -> None:
        """A file that was changed, invalidated or removed before a start does not end the rules of the trusted one."""
        self.texts[digest_of_bytes(_TEXT.encode())] = _TEXT
        for text in ("", "approvals: {rules: []}", "{"):
            self.write(text)
            self.assertEqual(self.load(self.rules()), _RULES)
        self.home.config.unlink()
        self.assertEqual(self.load(self.rules()), _RULES)

    def test_unknown(self) -> None:
        """If the trusted text is nowhere, nothing is approved."""
        self.write("")
        rules = self.rules()
        error = self.failureResultOf(Deferred.fromCoroutine(rules.load()), ApprovalStale).value
        self.assertIn("aileron config trust", str(error))
        self.write(_TEXT)
        self.assertEqual(self.load(rules), _RULES)

    def test_never(self) -> None:
        """Without a trusted file there are no rules, whatever the file says."""
        self.trust = MemoryTrust()
        self.assertEqual(self.load(self.rules()), ())
