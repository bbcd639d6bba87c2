"""The files in which tools store logins, and the one from which npm reads its placeholder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools.logins import NPMRC, LoginFiles, find_logins, lay_out_logins


class LoginTests(SynchronousTestCase):
    """A user of C{gh} and C{glab}."""

    def setUp(self) -> None:
        self.home = Path(self.mktemp()).resolve()

    def put(self, directory: str, name: str = "hosts.yml") -> str:
        """Have a tool store a login in a directory, and return its file."""
        path = self.home / directory / name
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

    def test_glab(self) -> None:
        """The login of glab is found at each of its places, if glab gets a placeholder."""
        usual, other = self.put(".config/glab-cli", "config.yml"), self.put("own", "config.yml")
        self.assertEqual(self.found("GITLAB_TOKEN", GLAB_CONFIG_DIR=f"{self.home}/own"), [other, usual])
        self.assertEqual(self.found("GH_TOKEN"), [])

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

    def test_others(self) -> None:
        """The logins of twine and cargo are found too, if these get a placeholder."""
        paths = {name: self.home / name for name in (".pypirc", ".cargo/credentials.toml", "other/credentials")}
        for path in paths.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("canary")
        pypirc, usual, other = map(str, paths.values())
        self.assertEqual(self.found("TWINE_PASSWORD"), [pypirc])
        self.assertEqual(self.found("UV_PUBLISH_TOKEN"), [pypirc])
        self.assertEqual(self.found("CARGO_REGISTRY_TOKEN", CARGO_HOME=f"{self.home}/other"), [other, usual])
        self.assertEqual(self.found("NPM_TOKEN"), [])

    def test_aws(self) -> None:
        """The keys of aws are found, and the tokens in its caches; its settings only if they have a key."""
        stored = ("own", ".aws/credentials", ".aws/cli/cache/a.json", ".aws/sso/cache/b.json")
        for name in (*stored, ".aws/config"):
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text("canary")
        paths = [str(self.home / name) for name in stored]
        self.assertEqual(self.found("AWS_ACCESS_KEY_ID", AWS_SHARED_CREDENTIALS_FILE=paths[0]), paths)
        (self.home / ".aws/config").write_text("[default]\naws_secret_access_key = canary\n")
        self.assertIn(str(self.home / ".aws/config"), self.found("AWS_ACCESS_KEY_ID"))
        self.assertEqual(self.found("GH_TOKEN"), [])


class NpmTests(SynchronousTestCase):
    """A user of npm."""

    def setUp(self) -> None:
        self.home = Path(self.mktemp()).resolve()
        self.home.mkdir()

    def laid_out(self, placeholders: Mapping[str, str], **environment: str) -> tuple[LoginFiles, str]:
        """Return the files of a sandbox, and the text of the one that npm reads."""
        hosts = ("registry.npmjs.org", "npm.example:8443")
        with lay_out_logins(placeholders, hosts, {"HOME": str(self.home), **environment}) as files:
            npmrc = files.mounts.get(NPMRC)
            return files, "" if npmrc is None else Path(npmrc).read_text()

    def test_placeholder(self) -> None:
        """npm reads a file that has the placeholder for each host, and no variable of the user's names another."""
        files, text = self.laid_out({"NPM_TOKEN": "aileron-placeholder"})
        lines = [f"//{host}/:_authToken=aileron-placeholder" for host in ("npm.example:8443", "registry.npmjs.org")]
        self.assertEqual(text.splitlines(), lines)
        self.assertEqual(files.variables, {"NPM_CONFIG_USERCONFIG": NPMRC})
        self.assertEqual(files.variables_outside, {"NPM_CONFIG_USERCONFIG": files.mounts[NPMRC]})
        files, _ = self.laid_out({"NPM_TOKEN": "aileron-placeholder"}, npm_config_userconfig="/nowhere")
        self.assertEqual(files.variables, dict.fromkeys(("NPM_CONFIG_USERCONFIG", "npm_config_userconfig"), NPMRC))
        self.assertEqual(self.laid_out({"GH_TOKEN": "aileron-placeholder"})[0], LoginFiles())

    def test_mode(self) -> None:
        """The empty file belongs to the user alone, without which glab would refuse it."""
        path = self.home / ".config" / "glab-cli" / "config.yml"
        path.parent.mkdir(parents=True)
        path.touch()
        with lay_out_logins(
            {"GITLAB_TOKEN": "aileron-placeholder"}, ("gitlab.com",), {"HOME": str(self.home)}
        ) as files:
            self.assertEqual(Path(files.mounts[str(path)]).stat().st_mode & 0o777, 0o600)

    def test_settings(self) -> None:
        """Harmless settings of the user are kept. Logins are not, and their files are replaced."""
        usual, other = self.home / ".npmrc", self.home / "other"
        usual.write_text(
            "//registry.npmjs.org/:_authToken=npm_canary\n_auth = canary\nsave-exact=true\n"
            "; registry=x\n//npm.example/:certfile=/canary\n@acme:registry=https://npm.example/\n"
            "registry=https://me:canary@npm.example/\nhttps-proxy=http://canary\nsave-prefix=${CANARY}\n"
        )
        other.write_text("fund=false\nemail=canary@example.org\n")
        files, text = self.laid_out({"NPM_TOKEN": "aileron-placeholder"}, NPM_CONFIG_USERCONFIG=str(other))
        settings = ["fund=false", "save-exact=true", "@acme:registry=https://npm.example/"]
        self.assertEqual(text.splitlines()[:-2], settings)
        self.assertEqual(set(files.mounts), {NPMRC, str(usual), str(other)})
        self.assertEqual(len(set(files.mounts.values())), 1)

    def test_unreadable(self) -> None:
        """A file that cannot be read is replaced all the same."""
        usual = self.home / ".npmrc"
        usual.write_bytes(b"\xff\n")
        files, text = self.laid_out({"NPM_TOKEN": "aileron-placeholder"})
        self.assertEqual((len(text.splitlines()), set(files.mounts)), (2, {NPMRC, str(usual)}))
