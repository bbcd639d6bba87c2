"""The page that a link of another site leads to."""

from __future__ import annotations

from aileron.web import LANDING_POLICY, landing

from .case import WebCase, read


class LandingTests(WebCase):
    """It holds nothing, and asks once more."""

    def test_empty(self) -> None:
        """It has one script of ours, nothing inline, no link, no form, and no word that belongs to anybody."""
        page = read(landing().decode())
        self.assertEqual([given["src"] for tag, given in page.tags if tag == "script"], ["/static/landing.js"])
        for tag, given in page.tags:
            self.assertNotIn(tag, ("a", "form", "style", "iframe", "img", "link"))
            self.assertFalse([name for name in given if name.startswith("on") or name == "style"], tag)
        self.assertEqual(self.get("/static/landing.js").status, 200)

    def test_policy(self) -> None:
        """It may run our own script, and nothing else."""
        rules = dict(rule.strip().split(" ", 1) for rule in LANDING_POLICY.split(";"))
        self.assertEqual(rules.pop("script-src"), "'self'")
        self.assertEqual(set(rules), {"default-src", "base-uri", "form-action", "frame-ancestors"})
        self.assertEqual(set(rules.values()), {"'none'"})
