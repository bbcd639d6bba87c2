"""The files in which tools store logins."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools.logins import find_logins


class LoginTests(SynchronousTestCase):
    """A user of C{gh}."""

    def setUp(self) -> None:
        self.home = Path(self.mktemp()).resolve()

    def put(self, directory: str) -> str:
        """Have C{gh} store a login in a directory, and return its file."""
        path = self.home / directory / "hosts.yml"
        path.parent.mkdir(parents=True)
        path.write_text("github.com: {oauth_token: gho_canary}")
        return str(path)

    def found(self, *variables: str, **environment: str) -> list[str]:
        """Return the logins that are found."""
        return list(find_logins(variables, {"HOME": str(self.home), **environment}))

    def test_gh(self) -> None:
        """The login of gh is found at each of its places, if gh gets a placeholder."""
        other, third = self.put("settings/gh"), self.put("own")
        self.assertEqual(self.found("GITHUB_TOKEN", XDG_CONFIG_HOME=f"{self.home}/settings"), [other])
        self.assertEqual(self.found("GH_TOKEN", GH_CONFIG_DIR=f"{self.home}/own"), [third])
        self.assertEqual(self.found("GH_TOKEN"), [])
        usual = self.put(".config/gh")
        self.assertEqual(self.found("GH_TOKEN"), [usual])
        self.assertEqual(self.found("GITLAB_TOKEN"), [])

    def test_all_places(self) -> None:
        """Every login that gh could have stored is found, for the agent may read a file that gh ignores now."""
        usual, other, third = self.put(".config/gh"), self.put("settings/gh"), self.put("own")
        variables = {"GH_CONFIG_DIR": f"{self.home}/own", "XDG_CONFIG_HOME": f"{self.home}/settings"}
        self.assertEqual(self.found("GH_TOKEN", **variables), [third, other, usual])
        self.assertEqual(self.found("GH_TOKEN", XDG_CONFIG_HOME=f"{self.home}/.config"), [usual])

    def test_link(self) -> None:
        """A file behind a link is found where it lies."""
        usual = Path(self.put(".config/gh"))
        lies = usual.rename(self.home / "dotfiles.yml")
        usual.symlink_to(lies)
        self.assertEqual(self.found("GH_TOKEN"), [str(lies)])
