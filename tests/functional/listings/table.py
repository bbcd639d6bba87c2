"""Which listings of the documentation are played by other tests than those of this package, or by none, and why."""

from __future__ import annotations

from collections.abc import Mapping

ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        (f"quickstart-{agent}.md" for agent in ("claude", "codex", "goose", "opencode", "pi")),
        "tests.functional.test_quickstart.QuickstartTests.test_played",
    ),
}
"""Pages whose listings another test plays, and which."""

_MATRICES = "takes from minutes to hours: `python -m tests --all` runs it"
_INSTALLS = "installs: `tox -e release` has pipx and uv install, run and remove the wheel"
_RELEASE = "changes the source tree, or what others see: for maintainers, by hand"
_ROOT = "changes the machine, as root: by hand"
_CONTAINER = "needs podman: by hand, at a release"

_SYSTEMD = (
    "needs systemd's key of the machine: tests.functional.test_key_sources does it, with a double of systemd-creds"
)
_SECURITY_KEY = "needs a security key: tests.functional.test_security_keys does it, with one of software"
_TRANSIT = "needs a server of HashiCorp Vault: tests.functional.test_transit does it, with a double"
_TAILNET = "needs a tailnet: by hand"
_CLOUDFLARE = "needs an account of Cloudflare and a domain there: not tried"
_PHONE = "needs a phone and a name for it: tests.functional.test_phone_name does it, in a browser"
_GITHUB = "needs a token of GitHub: by hand"

_FORCED = "needs a request that others approve: tests.runner.test_forced and tests.cli.test_approval do it"
_PERSONAL = "needs an account at GitHub: tests.features.people.test_agents binds such a credential"
NOT_RUN: Mapping[str, Mapping[str, str]] = {
    "another-user.md": {
        "useradd --create-home agent": _ROOT,
        'install -d -o "$USER" -g agent -m 2770 /srv/project': _ROOT,
    },
    "guarantees.md": {
        "python -m tests.matrix crash": _MATRICES,
        "python -m tests.matrix crash 80 --seed 7": _MATRICES,
        "python -m tests.matrix tools": _MATRICES,
        "python -m tests.matrix daemons 100": _MATRICES,
        "python -m tests.matrix faults": _MATRICES,
        "python -m tests.matrix faults --only clock": _MATRICES,
        "python -m tests.matrix races": _MATRICES,
        "python -m tests.matrix races 300": _MATRICES,
        "python -m tests.matrix machine": _MATRICES,
        "python -m tests.matrix machine 200 --seed 7": _MATRICES,
        "python -m tests.mutants": _MATRICES,
        'python -m tests.mutants "the mark under"': _MATRICES,
        "tox -e attack-mutants": "takes an hour: by hand",
    },
    "install.md": {
        "pipx install .": _INSTALLS,
        "uv tool install .": _INSTALLS,
        "pipx install ./aileron-0.2.0-py3-none-any.whl": _INSTALLS,
        "pipx install --force .": _INSTALLS,
        "pipx uninstall aileron": _INSTALLS,
        "sudo apt-get install ./aileron_0.2.0-1_amd64.deb": _ROOT,
        "podman build --format docker --file packaging/Containerfile --tag aileron .": _CONTAINER,
        "podman run --detach --name aileron --read-only --tmpfs /tmp --cap-drop all --security-opt no-new-privileges "
        "--volume aileron:/var/lib/aileron aileron": _CONTAINER,
        "podman exec --interactive --tty aileron aileron vault init": _CONTAINER,
        "podman exec --interactive --tty aileron aileron vault unlock": _CONTAINER,
        "podman exec --interactive --tty aileron aileron watch": _CONTAINER,
    },
    "phone.md": {
        "aileron config trust": _PHONE,
        "aileron daemon stop": _PHONE,
        "aileron vault unlock": _PHONE,
        "aileron phone certificate --output aileron-ca.pem": _PHONE,
        "aileron phone certificate --import fullchain.pem key.pem": _PHONE,
        "aileron phone certificate --import cert.pem key.pem": _PHONE,
        'aileron phone pair --name "My phone"': _PHONE,
        'aileron phone remove "My phone"': _PHONE,
        "rm key.pem": _PHONE,
        "sudo cp aileron-ca.pem /etc/nginx/aileron-ca.pem": _ROOT,
        "tailscale cert --cert-file cert.pem --key-file key.pem laptop.tail1234.ts.net": _TAILNET,
        "tailscale serve --bg --tcp 443 tcp://127.0.0.1:8443": _TAILNET,
        "tailscale serve --bg http://127.0.0.1:8443": _TAILNET,
        "tailscale serve status": _TAILNET,
        "cloudflared tunnel login": _CLOUDFLARE,
        "cloudflared tunnel create aileron": _CLOUDFLARE,
        "cloudflared tunnel route dns aileron aileron.example.org": _CLOUDFLARE,
        "cloudflared tunnel run --url http://127.0.0.1:8443 aileron": _CLOUDFLARE,
        "aileron notification browser test": _PHONE,
    },
    "releasing.md": {
        "towncrier build --yes --version 0.2.0": f"{_RELEASE}; `tox -e release` runs it with --draft",
        "tox -e release": "takes many minutes: for maintainers, by hand",
        "git tag --sign v0.2.0": _RELEASE,
        "packaging/build-deb dist": "needs debhelper and a built wheel: by hand, at a release",
        "lintian dist/aileron_*.deb": "judges what build-deb made: by hand, at a release",
        "podman build --format docker --file packaging/Containerfile --tag aileron .": _CONTAINER,
    },
    "transit.md": {
        "vault secrets enable transit": _TRANSIT,
        "vault write -f transit/keys/aileron": _TRANSIT,
        "aileron vault key-source add transit --url https://vault.example.org:8200 --key aileron --token-file "
        "/run/aileron/vault-token --encrypt-token-file ~/encrypt-token": _TRANSIT,
        "aileron vault key-source list": _TRANSIT,
        "aileron vault key-source remove ID": _TRANSIT,
    },
    "run-at-login.md": {
        "aileron vault key-source add server --output ~/aileron-vault.cred": _SYSTEMD,
        "aileron daemon install --credential ~/aileron-vault.cred": _SYSTEMD,
        "aileron vault key-source add blue --security-key": _SECURITY_KEY,
        "aileron vault unlock": _SECURITY_KEY,
        "aileron vault key-source list": _SECURITY_KEY,
        "aileron vault key-source remove ID": _SECURITY_KEY,
        'echo \'KERNEL=="hidraw*", ENV{ID_FIDO_TOKEN}=="1", GROUP="plugdev", MODE="0660"\' | sudo tee '
        "/etc/udev/rules.d/70-fido.rules": _ROOT,
        "sudo udevadm control --reload": _ROOT,
    },
    "security-model.md": {
        "echo 'kernel.yama.ptrace_scope = 1' | sudo tee /etc/sysctl.d/60-ptrace.conf": _ROOT,
        "sudo sysctl --system": _ROOT,
    },
    "team.md": {
        "aileron config trust": _PHONE,
        "aileron daemon stop": _PHONE,
        "aileron vault unlock": _PHONE,
        "aileron phone certificate --import fullchain.pem key.pem": _PHONE,
        "aileron credential setup builtin://github --owner alice": _PERSONAL,
        'aileron approve ID --force --reason "The site is down, bob is on a plane"': _FORCED,
    },
}
"""Commands of a page that no test types, and for each the reason and what runs it, if anything does."""
