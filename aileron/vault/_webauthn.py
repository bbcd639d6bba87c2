"""Makes WebAuthn options, and judges what authenticators answer to them. Nothing else in Aileron judges WebAuthn."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from attrs import frozen

from aileron.base.addresses import PAGES_DOMAIN, read_origin
from aileron.base.json import JSON
from aileron.base.signatures import read_base64url, write_base64url, write_public_key
from aileron.model.errors import AileronError, Conflict
from aileron.model.signing import is_embedded

_LOCALHOST = "localhost"
_MOST_ID_BYTES, _MOST_KEY_BYTES = 1023, 4096
"""The longest credential ID that WebAuthn permits, and the longest public key: an RSA key of 16384 bits is shorter."""


@frozen
class CreatedPasskey:
    """A credential that an authenticator has made.

    :ivar id: the credential's ID, as unpadded base64url.
    :ivar public_key: the public key in COSE format (RFC 9052).
    :ivar count: the authenticator's signature counter, or 0 if it has none.
    :ivar synced: True if the credential may be copied to other devices (flag BE).
    """

    id: str
    public_key: bytes
    count: int
    synced: bool


@frozen
class PasskeySignature:
    """One signature of a credential.

    :ivar count: the authenticator's signature counter after it, or 0 if it has none.
    :ivar synced: True if the credential may be copied to other devices (flag BE).
    """

    count: int
    synced: bool


@frozen
class PasskeyUser:
    """The person for whom a credential is made.

    :ivar id: the user handle, which the authenticator returns when it signs.
    :ivar name: the name that the authenticator shows.
    """

    id: bytes
    name: str


@frozen
class RelyingParty:
    """Our side of WebAuthn, at one site.

    :ivar site: the site (WebAuthn's rpId).
    :ivar origins: the origins of our pages at this site.
    """

    site: str
    origins: Sequence[str]

    def write_creation(
        self, user: PasskeyUser, challenge: bytes, known: Iterable[str], *, needs_room: bool
    ) -> Mapping[str, JSON]:
        """Return the options for C{navigator.credentials.create}. The person must be verified.

        :param known: the IDs of credentials of this person. Their authenticators make no further one.
        :param needs_room: whether the authenticator must store the credential, so that it is found without its ID.
        :raises Conflict: if the library is missing.
        """
        webauthn = import_library()
        structs = webauthn.helpers.structs
        room = structs.ResidentKeyRequirement
        options = webauthn.generate_registration_options(
            rp_id=self.site,
            rp_name="Aileron",
            user_name=user.name,
            user_id=user.id,
            challenge=challenge,
            authenticator_selection=structs.AuthenticatorSelectionCriteria(
                resident_key=room.REQUIRED if needs_room else room.PREFERRED,  # a security key may have no room
                user_verification=structs.UserVerificationRequirement.REQUIRED,
            ),
            supported_pub_key_algs=_algorithms(webauthn),
            exclude_credentials=_describe(structs, known),
        )
        return cast(Mapping[str, JSON], json.loads(webauthn.options_to_json(options)))

    def write_request(self, challenge: bytes, known: Iterable[str]) -> Mapping[str, JSON]:
        """Return the options for C{navigator.credentials.get}. The person must be verified.

        :param known: the IDs of the credentials that may sign. If there is none, the authenticator offers its own.
        :raises Conflict: if the library is missing.
        """
        webauthn = import_library()
        structs = webauthn.helpers.structs
        options = webauthn.generate_authentication_options(
            rp_id=self.site,
            challenge=challenge,
            allow_credentials=_describe(structs, known),
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        )
        return cast(Mapping[str, JSON], json.loads(webauthn.options_to_json(options)))

    def verify_creation(
        self, credential: Mapping[str, JSON], challenge: bytes, problem: AileronError
    ) -> CreatedPasskey:
        """Verify the result of C{navigator.credentials.create}, and return the credential.

        :param problem: the error to raise for every fault that the page's input can cause.
        :raises Conflict: if the library is missing.
        """
        webauthn = import_library()
        verify = partial(webauthn.verify_registration_response, supported_pub_key_algs=_algorithms(webauthn))
        found = self._verify(verify, credential, challenge, problem)
        # guard of signing: what is stored of a passkey is short -> features.people.test_passkeys.AddTests.test_long
        if len(found.credential_id) > _MOST_ID_BYTES or len(found.credential_public_key) > _MOST_KEY_BYTES:
            raise problem
        key_id = write_base64url(found.credential_id)
        return CreatedPasskey(key_id, found.credential_public_key, found.sign_count, _is_synced(found))

    def verify_use(
        self, credential: Mapping[str, JSON], challenge: bytes, public_key: bytes, count: int, problem: AileronError
    ) -> PasskeySignature:
        """Verify the result of C{navigator.credentials.get}, and return what it says of the authenticator.

        :param public_key: the public key of the credential.
        :param count: the signature counter after the last use. It must have grown, unless the authenticator has none.
        :param problem: the error to raise for every fault that the page's input can cause.
        :raises Conflict: if the library is missing.
        """
        verify = partial(
            import_library().verify_authentication_response,
            credential_public_key=public_key,
            credential_current_sign_count=count,
        )
        used = self._verify(verify, credential, challenge, problem)
        return PasskeySignature(used.new_sign_count, _is_synced(used))

    def _verify(
        self, verify: Callable[..., Any], credential: Mapping[str, JSON], challenge: bytes, problem: AileronError
    ) -> Any:
        """Verify a response with the library, and return the library's result."""
        from webauthn.helpers.exceptions import WebAuthnException

        try:
            # guard of signing: no other site's page uses a passkey in a frame
            #    -> vault.test_passkeys.AddingTests.test_embedded, instead if False
            if _is_embedded(credential):
                raise problem
            return verify(
                credential=dict(credential),
                # guard against attack: what a passkey signed to sign in decides nothing,
                #    instead read_base64url(_read_client(credential)["challenge"])
                expected_challenge=challenge,
                expected_rp_id=self.site,
                # guard against attack: a passkey decides only at a page of ours
                #    -> test_passkeys.NeighbourTests.test_neighbours, instead _read_client(credential)["origin"]
                # guard against attack: a passkey signs in only at a page of ours
                #    -> test_phone.NeighbourTests.test_another_port, instead _read_client(credential)["origin"]
                expected_origin=[*self.origins],
                require_user_verification=True,
            )
        except (WebAuthnException, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise problem from error


def find_relying_party(site: str, addresses: Collection[str]) -> RelyingParty:
    """Return our side at a site, whose pages are at those of the addresses that belong to it."""
    return RelyingParty(site, [address for address in addresses if find_site(address) == site])


def find_site(address: str) -> str | None:
    """Return the site (WebAuthn's rpId) of an operator URL, or None if the host cannot be one.

    The host of an https URL is one, and so are C{localhost} and the names of the pages.
    """
    origin = read_origin(address)
    if origin.host.endswith(f".{PAGES_DOMAIN}"):
        return PAGES_DOMAIN
    if origin.scheme == "https":
        return origin.host  # the whole name: a passkey for a part of it would be for other machines too
    return _LOCALHOST if origin.host == _LOCALHOST else None


def decode_public_key(public_key: bytes) -> str:
    """Return a public key in COSE format as signed decisions name it.

    :raises Conflict: if the library is missing.
    """
    helpers = import_library().helpers
    decoded = helpers.decode_credential_public_key(public_key)
    return write_public_key(helpers.decoded_public_key_to_cryptography(decoded))


def import_library() -> Any:
    """Import the library, which is an optional dependency, and return it.

    :raises Conflict: if the library is missing.
    """
    try:
        import webauthn
    except ImportError:
        raise Conflict("Passkeys need the extra `passkey`: add it as the installation guide says.") from None
    return webauthn


def _algorithms(webauthn: Any) -> list[Any]:
    """Return the algorithms whose signatures can be verified offline too, the preferred one first."""
    known = webauthn.helpers.cose.COSEAlgorithmIdentifier
    return [known.ECDSA_SHA_256, known.EDDSA, known.RSASSA_PKCS1_v1_5_SHA_256]


def _describe(structs: Any, known: Iterable[str]) -> list[Any]:
    return [structs.PublicKeyCredentialDescriptor(id=read_base64url(each)) for each in known]


def _is_synced(answer: Any) -> bool:
    """Return whether a passkey may be copied to other devices (flag BE)."""
    return str(getattr(answer.credential_device_type, "value", "")) == "multi_device"


def _read_client(credential: Mapping[str, Any]) -> Any:
    return json.loads(read_base64url(str(credential["response"]["clientDataJSON"])))


def _is_embedded(credential: Mapping[str, Any]) -> bool:
    client = _read_client(credential)
    return not isinstance(client, dict) or is_embedded(client)
