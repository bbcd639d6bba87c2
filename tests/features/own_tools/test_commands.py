"""C{aileron own-tools}: services are added, listed, checked and removed."""

from __future__ import annotations

import json
from pathlib import Path

from aileron.actions import check
from aileron.model.connectors import FORWARD
from tests.cli.daemon import PASSPHRASE
from tests.cli.test_trust import TrustCase, item, word

NAME = "github-tools"


class OwnToolsTests(TrustCase):
    """A home without the action, and a daemon that knows no binding."""

    def setUp(self) -> None:
        super().setUp()
        self.serve(local_key="k" * 43)
        self.home.secrets.write_text("{}")
        self.path = self.home.actions / f"{NAME}.md"
        self.offered()
        self.bound()
        self.vault("unlocked")
        programs = Path(self.mktemp()).absolute()
        programs.mkdir()
        (programs / "bwrap").write_text("#!/bin/sh\n")
        (programs / "bwrap").chmod(0o755)
        self.environ["PATH"] = str(programs)

    def offered(self, *offers: dict[str, object]) -> None:
        """Have the daemon offer these actions."""
        self.site.answer("GET", "/v1/actions", {"items": list(offers), "load_errors": []})

    def bound(self, *connectors: str) -> None:
        """Have credentials bound to these connectors."""
        self.site.answer("GET", "/v1/bindings", {"items": [{"connector": each} for each in connectors]})

    def vault(self, state: str) -> None:
        """Have the vault in this state."""
        self.site.answer("GET", "/v1/vault/status", {"state": state})

    def add(self) -> None:
        """Add the service, and trust its action."""
        self.lying(item(NAME, path=str(self.path)))
        self.typed = [PASSPHRASE, "y"]
        code, out, err = self.command("own-tools", "add", "github")
        self.assertEqual(code, 0, err)
        self.assertIn(f"Trusted: {NAME}", out)

    def test_add(self) -> None:
        """The action is written without errors, shown, and trusted as it was shown; a second time changes nothing."""
        self.add()
        self.assertEqual([], check(str(self.path)))
        text = self.path.read_text()
        self.assertIn(f'op = "{FORWARD}"', text)
        self.assertIn("required = true", text)
        self.assertEqual([{"items": [word(NAME)]}], self.site.bodies("POST", "/v1/trust"))
        self.add()
        self.assertEqual(text, self.path.read_text())

    def test_add_for_programs(self) -> None:
        """With --json nothing is asked, and what was added and trusted is printed."""
        self.lying(item(NAME, path=str(self.path)))
        code, out, err = self.as_operator("own-tools", "add", "github", "--json", "--yes")
        self.assertEqual(code, 0, err)
        self.assertEqual(f"{NAME}.md", json.loads(out)["added"])
        self.assertEqual(2, self.command("own-tools", "add", "github", "--json")[0])

    def test_different(self) -> None:
        """A file with other contents is kept."""
        self.add()
        mine = self.path.read_text().replace("timeout_seconds = 360", "timeout_seconds = 60")
        self.path.write_text(mine)
        code, _, err = self.as_operator("own-tools", "add", "github")
        self.assertEqual((1, mine), (code, self.path.read_text()))
        self.assertIn("aileron own-tools remove github", err)

    def test_unknown(self) -> None:
        """A service that no connector declares is an error, before a passphrase is asked for."""
        for name in ("add", "remove", "check"):
            code, _, err = self.command("own-tools", name, "none")
            self.assertEqual((code, "aileron own-tools list" in err), (1, True), err)

    def test_list(self) -> None:
        """Services are listed with what the daemon offers of them."""
        self.bound("builtin://github")
        for offer, state in (
            (None, "not added"),
            ({"name": NAME, "enabled": True}, "ready"),
            ({"name": NAME, "enabled": False}, "disabled"),
        ):
            self.offered(*([offer] if offer else ()))
            code, out, err = self.as_operator("own-tools", "list")
            self.assertEqual((code, state in out), (0, True), out + err)
        self.path.write_text(self.written())
        self.path.chmod(0o600)
        self.offered()
        found = json.loads(self.as_operator("own-tools", "list", "--json")[1])["items"]
        listed = next(each for each in found if each["service"] == "github")
        self.assertEqual(("not trusted", "builtin://github"), (listed["state"], listed["connector"]))

    def test_list_lacking(self) -> None:
        """An offered action without a credential, or with a locked vault, is not ready; many hosts are shortened."""
        self.offered({"name": NAME, "enabled": True})
        out = self.as_operator("own-tools", "list")[1]
        self.assertEqual((True, False), ("no credential" in out, "ready" in out), out)
        self.assertIn("sts.amazonaws.com and 8 more", out)
        self.bound("builtin://github")
        self.vault("locked")
        code, out, err = self.command("own-tools", "list")
        self.assertEqual((0, True, False), (code, "vault locked" in out, "ready" in out), out + err)

    def test_check_vault(self) -> None:
        """A vault that is locked or missing is told first. Nobody is sent to trust an action meanwhile."""
        self.path.write_text(self.written())
        self.path.chmod(0o600)
        self.bound("builtin://github")
        for state, told in (("locked", "aileron vault unlock"), ("missing", "aileron vault init")):
            self.vault(state)
            code, _, err = self.command("own-tools", "check", "github")
            self.assertEqual((1, True, False), (code, told in err, "aileron action trust" in err), err)

    def test_address(self) -> None:
        """A service at an IP address is not ready, because the proxy leads tools to names only."""
        self.offered({"name": "gitlab-tools", "enabled": True})
        for base_url, told in (
            ("https://10.0.0.1", True),
            ("https://10.0.0.1:8443", True),
            ("https://ten.example", False),
        ):
            self.site.answer(
                "GET", "/v1/bindings", {"items": [{"connector": "builtin://gitlab", "base_url": base_url}]}
            )
            err = self.command("own-tools", "check", "gitlab")[2]
            self.assertEqual(told, "is an IP address" in err, err)

    def test_own_server(self) -> None:
        """A service is listed with the host of the binding's base URL, if it has one."""
        for base_url, hosts in ((None, ["gitlab.com"]), ("https://git.example", ["git.example"])):
            bound = {"connector": "builtin://gitlab", "base_url": base_url}
            self.site.answer("GET", "/v1/bindings", {"items": [bound]})
            found = json.loads(self.as_operator("own-tools", "list", "--json")[1])["items"]
            self.assertEqual([hosts], [each["hosts"] for each in found if each["service"] == "gitlab"])

    def written(self) -> str:
        """Return the text of the action, without leaving it in the home."""
        self.add()
        text = self.path.read_text()
        self.path.unlink()
        return text

    def test_check(self) -> None:
        """What is missing is told with the command that helps, until nothing is."""
        code, _, err = self.as_operator("own-tools", "check", "github")
        self.assertEqual(1, code)
        self.assertIn("aileron own-tools add github", err)
        self.assertIn("aileron credential setup builtin://github", err)
        self.offered({"name": NAME, "enabled": False})
        self.bound("builtin://github")
        code, out, err = self.as_operator("own-tools", "check", "github", "--json")
        self.assertEqual((1, f"aileron action enable {NAME}" in out), (code, True))
        self.offered({"name": NAME, "enabled": True})
        code, out, err = self.as_operator("own-tools", "check", "github")
        self.assertEqual((0, ""), (code, err))
        self.assertIn("--own-tools github", out)
        self.assertIn("GH_TOKEN", out)
        told = json.loads(self.as_operator("own-tools", "check", "github", "--json")[1])
        self.assertEqual([each["tool"] for each in told["tools"]], ["gh", "curl", "wget"])

    def test_machine(self) -> None:
        """What the machine lacks is told too."""
        self.environ["PATH"] = "/nowhere"
        self.offered({"name": NAME, "enabled": True})
        self.bound("builtin://github")
        code, _, err = self.as_operator("own-tools", "check", "github")
        self.assertEqual((1, "Install the package: bubblewrap" in err), (code, True), err)

    def test_remove(self) -> None:
        """Trust is revoked and the file deleted; what was not added is an error."""
        code, _, err = self.command("own-tools", "remove", "github", "--yes")
        self.assertEqual((code, "was not added" in err), (1, True))
        self.add()
        self.lying(item(NAME, state="trusted", path=str(self.path)))
        self.site.answer("DELETE", "/v1/trust", {"kind": "action", "name": NAME})
        code, out, err = self.as_operator("own-tools", "remove", "github", "--yes")
        self.assertEqual((code, self.path.exists()), (0, False), err)
        self.assertIn("is not trusted any more", out)
