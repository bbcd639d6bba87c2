"""The settings of a transit key source, as they are stored in the vault's file. None of them is secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import PurePosixPath

from attrs import asdict, field, frozen

from aileron.base.addresses import read_base_url

KUBERNETES_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
"""The file with the token of a pod's service account, unless another one is mounted."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_MOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,63}){0,7}")
_CIPHERTEXT = re.compile(r"vault:v[1-9][0-9]{0,8}:[A-Za-z0-9+/]{16,1024}={0,2}")
_MOST_PATH_CHARACTERS = 1024


class TransitLogin(StrEnum):
    """The ways in which a daemon gets its token.

    C{TOKEN}: from a file, which another program renews.  C{APPROLE}: by a role's ID and its secret ID in a file.
    C{KUBERNETES}: by a role's name and the token of the pod's service account.
    """

    TOKEN = "token"
    APPROLE = "approle"
    KUBERNETES = "kubernetes"


@frozen
class TransitSettings:
    """The settings of one source.

    :ivar url: the URL of the server: https, or http to this machine.
    :ivar key: the name of the transit key.
    :ivar mount: the path of the transit engine.
    :ivar namespace: the namespace on the server, or empty.
    :ivar ca_file: the absolute path of the certificate authorities to trust, or empty for those of the system.
    :ivar login: how each daemon gets its token.
    :ivar secret_file: the absolute path of the file with the token, the secret ID or the service account's token.
    :ivar role: the role's ID or name, or empty for a token.
    :ivar login_mount: the path of the login method, or empty for its usual one.
    :ivar ciphertext: the encrypted secret, or empty before it is encrypted.
    :raises ValueError: if one of them is malformed. The message is a sentence without the final stop.
    """

    url: str
    key: str
    secret_file: str
    login: TransitLogin = field(default=TransitLogin.TOKEN, converter=TransitLogin)
    mount: str = "transit"
    namespace: str = ""
    ca_file: str = ""
    role: str = ""
    login_mount: str = ""
    ciphertext: str = ""

    def __attrs_post_init__(self) -> None:
        try:
            read_base_url(self.url)
        except ValueError as error:
            raise ValueError(f"The URL {error}") from None
        if not _NAME.fullmatch(self.key):
            raise ValueError("The key must be the name of a transit key")
        if (self.login is TransitLogin.TOKEN) != (not self.role) or (self.role and not _NAME.fullmatch(self.role)):
            raise ValueError("A role is needed to log in by AppRole or Kubernetes, and only then")
        if self.ciphertext and not _CIPHERTEXT.fullmatch(self.ciphertext):
            raise ValueError("The ciphertext is none of a transit engine")
        self._check_paths()

    def _check_paths(self) -> None:
        given = {"namespace": self.namespace, "login mount": self.login_mount}
        for what, text in {"mount": self.mount, **{name: text for name, text in given.items() if text}}.items():
            # guard of signing: nothing leads a token to another path
            #    -> features.key_sources.test_transit.SettingsTests.test_paths
            if not _MOUNT.fullmatch(text):
                raise ValueError(f"The {what} must be a path such as team/transit, without slashes at its ends")
        if not _is_path(self.secret_file) or (self.ca_file and not _is_path(self.ca_file)):
            raise ValueError("The paths of files must be absolute")

    @property
    def server(self) -> str:
        """The host of the server, for people."""
        return read_base_url(self.url).origin.host_and_port

    def to_stored(self) -> Mapping[str, str]:
        """Return the settings as they are stored, without those that are empty."""
        return {name: str(text) for name, text in asdict(self).items() if text}


def read_settings(stored: Mapping[str, str]) -> TransitSettings:
    """Return the settings that are stored in the vault's file.

    :raises ValueError: if there are unknown ones, some are missing, or one is malformed.
    """
    try:
        found = TransitSettings(**stored)  # the enum's converter takes the text
    except TypeError:
        raise ValueError("There are unknown settings, or some are missing") from None
    if not found.ciphertext:
        raise ValueError("There is no ciphertext")
    return found


def _is_path(text: str) -> bool:
    path = PurePosixPath(text)
    return path.is_absolute() and ".." not in path.parts and text.isprintable() and len(text) <= _MOST_PATH_CHARACTERS
