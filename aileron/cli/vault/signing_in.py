"""Signs in to a service, in the browser, on another device or as the client, with the person's confirmation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve, field, frozen

from aileron.base.addresses import read_origin
from aileron.base.json import timestamp, utc
from aileron.cli.actions.trusting import confirm
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.output import note, when
from aileron.model.connectors import ConnectorDescription
from aileron.model.errors import AileronError, InvalidRequest, NetworkError

from .callback import WAIT_SECONDS, CallbackListener
from .open import open_file, sweep, write_link

if TYPE_CHECKING:
    from aileron.credentials import BrowserSignIn, OAuth2Document, SignInClient, TokenAnswer, TokenExchange

KIND = "oauth2"
_IN_TERMINAL = "Run the command in a terminal."

port_option = click.option(
    "--callback-port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Port that the browser returns to, if you registered a fixed redirect URI.  [default: a free one]",
)

device_option = click.option("--device", is_flag=True, help="Sign in on another device, if the connector allows it.")


def signs_in(cli: CliContext, connector: str) -> bool:
    """Return True if a connector file requests a credential that is obtained by signing in."""
    found = find_description(cli, connector)
    return found is not None and found.credential is not None and found.credential.kind == KIND


def find_description(cli: CliContext, connector: str) -> ConnectorDescription | None:
    """Find the connector file in the home that declares this connector, and return its description.

    The file need not be trusted.

    :param connector: the connector's name, such as C{local://me/tracker}.
    :return: the description, or None if no readable file declares the connector.
    """
    from aileron.connectors import read_descriptions

    return next((each for each, _ in read_descriptions(cli.home.connectors, cli.kinds) if each.name == connector), None)


def renewal(item: Mapping[str, Any]) -> str:
    """Return the command that renews a binding, from the daemon's data about it."""
    settings = (item["scope"] or {}).get("settings", {})
    how = "renew" if item["kind"] == KIND and {"token_url", "discover"} & {*settings} else "replace"
    return f"aileron credential {how} {item['name']}"


@frozen
class SignInChoice:
    """The way in which a person signs in.

    :ivar port: the port to which the browser returns, or 0 for any free port.
    :ivar device: whether to sign in on another device.
    :ivar opens_browser: whether to open a browser, or only to show its address.
    :ivar account: the account that signed in before, if known.
    :ivar before: the state of the credential to renew, from the daemon, or None if it is new.
    """

    port: int = 0
    device: bool = False
    opens_browser: bool = True
    account: str | None = None
    before: Mapping[str, Any] | None = None


@frozen
class SignedIn:
    """The result of a sign-in.

    :ivar account: the account that the service names, or None if it names none.
    """

    document: OAuth2Document = field(repr=False)
    account: str | None = None

    @property
    def secret(self) -> str:
        """Return the credential in the form that the vault stores."""
        from aileron.credentials import write

        return write(self.document).decode("ascii")


async def sign_in(cli: CliContext, target: Mapping[str, Any], choice: SignInChoice) -> SignedIn:
    """Sign in for a credential, ask the person to confirm, and return the result.

    :param target: the daemon's data: its scope, and the scopes that trusted actions need, if known.
    :raises CommandError: if the connector file lacks a needed URL, the sign-in failed, or the person declined. Nothing
        is stored.
    :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
    """
    from aileron.credentials import DISCOVER, SignInRefused

    settings = {} if target["scope"] is None else {**target["scope"].get("settings", {})}
    scopes = [*(target.get("scopes") or settings.get("scopes", "").split()), *target.get("state", {}).get("wanted", ())]
    if scopes:
        settings["scopes"] = " ".join(dict.fromkeys(scopes))
    device = choice.device
    if not {"token_url", DISCOVER} & {*settings}:
        raise CommandError(
            "The connector file does not say where to sign in (token_url), so nothing was done.",
            "Enter what you obtained elsewhere with --secret-fd. For a new key: aileron credential replace NAME",
        )
    if device and "device_url" not in settings:
        raise CommandError("The connector file has no device_url, so --device cannot be used. Nothing was done.")
    running = cli.running()
    exchange = cli.exchange([read_origin(url).port for url in (running.url, running.operator_url)])
    try:
        find = _find_client if DISCOVER in settings else _find_declared_client
        client = await find(cli, settings, exchange, choice)
        if "device_url" in settings and (device or "authorize_url" not in settings):
            signed = await _on_device(cli, client, exchange)
        elif "authorize_url" in client.settings:
            signed = await _in_browser(cli, client, exchange, choice)
        else:
            signed = await _as_client(cli, client, exchange)
    except (SignInRefused, AileronError) as failed:
        raise CommandError(f"You are not signed in. {failed}", "Nothing was saved.") from None
    _show(client, signed, choice.account)
    confirm(cli, "Save this credential? [y/N] ", "saved", _IN_TERMINAL)
    return signed


async def _find_client(
    cli: CliContext, settings: Mapping[str, str], exchange: TokenExchange, choice: SignInChoice
) -> SignInClient:
    """Find the authorization server of a resource, and return the client for it after the person's confirmation.

    Until the person confirms, no request is sent to an authorization server that only the resource names, or that
    differs from the previous one.

    :raises CommandError: if the person declined, or a client ID is needed and was not entered. Nothing is stored.
    :raises SignInRefused: if the servers' metadata is invalid or inconsistent.
    :raises NetworkError, BindingFailed: if a server cannot be reached.
    """
    from aileron.credentials import AuthorizationServer, ProtectedResource, found_client

    resource = await ProtectedResource.find(settings, exchange)
    issuer, url = resource.issuer(settings), settings["resource"]
    is_moved = _tell_moved(choice.before, issuer, None)
    is_elsewhere = "issuer" not in settings and read_origin(issuer).url != read_origin(url).url
    if is_elsewhere:
        note("{url} says that sign-in is at another host: {issuer}", url=url, issuer=issuer)
    if is_moved or is_elsewhere:
        confirm(cli, "Contact that host? [y/N] ", "saved", _IN_TERMINAL)
    server = await AuthorizationServer.find(issuer, settings, exchange)
    client = found_client(settings, resource, server)
    if not client.client_id and server.registration_url is None:
        note("The authorization server does not register clients automatically. Register one there, and enter its ID.")
        client = evolve(client, client_id=_ask_for_client(cli, settings).client_id)
    note("Authorization server: {issuer}", issuer=issuer)
    note("  Sign-in page:       {url}", url=server.authorize_url)
    note("  Tokens from:        {url}", url=server.token_url)
    note("  Tokens for:         {resource}", resource=resource.name)
    note("  Scopes:             {scopes}", scopes=", ".join(client.asked_scopes) or "none, the server chooses")
    page = read_origin(server.authorize_url).host
    if page != read_origin(issuer).host:
        note(
            "Warning: the sign-in page is at {page}. What you allow there is given to {issuer}.",
            page=page,
            issuer=issuer,
        )
    identity = client.client_id or f"a new one, registered at {server.registration_url}"
    note("  Client:             {identity}", identity=identity)
    if not is_moved:
        _tell_moved(choice.before, issuer, server.token_url)
    confirm(cli, "Sign in there? [y/N] ", "saved", _IN_TERMINAL)
    return client


async def _find_declared_client(
    cli: CliContext, settings: Mapping[str, str], exchange: TokenExchange, choice: SignInChoice
) -> SignInClient:
    """Return the client for a connector file that names the endpoints. Sends no request.

    If the file has no client ID, ask for the ID. If the authorization server or its token endpoint differs from the
    previous sign-in's, or that is unknown, ask the person to confirm.

    :raises CommandError: if there is no terminal, no client ID was entered, or the person declined. Nothing is stored.
    """
    client = _ask_for_client(cli, settings)
    if _tell_moved(choice.before, None, settings["token_url"]):
        confirm(cli, "Sign in there? [y/N] ", "saved", _IN_TERMINAL)
    return client


def _tell_moved(before: Mapping[str, Any] | None, issuer: str | None, token_url: str | None) -> bool:
    """Print a warning if the authorization server differs from the previous one, or the previous one is unknown.

    :param before: the state of the credential to renew, or None if it is new.
    :param issuer: the issuer, or None if the connector file names the endpoints.
    :param token_url: the token endpoint, or None if it is not known yet.
    :return: whether a warning was printed.
    """
    if before is None:
        return False
    if before.get("token_url") is None:
        note("Warning: where you signed in before cannot be told, so it is not known whether that changed.")
        return True
    is_moved = False
    if before.get("issuer") != issuer:
        is_moved = True
        named = "the endpoints of the connector file"
        note(
            "Warning: the authorization server changed since you signed in. Before: {before}. Now: {now}.",
            before=before.get("issuer") or named,
            now=issuer or named,
        )
    if token_url is not None and before["token_url"] != token_url:
        is_moved = True
        note(
            "Warning: the token endpoint changed since you signed in. Before: {before}. Now: {now}.",
            before=before["token_url"],
            now=token_url,
        )
    return is_moved


def _ask_for_client(cli: CliContext, settings: Mapping[str, str]) -> SignInClient:
    """Return the client that the connector file names, or the one that the person registered.

    :raises CommandError: if there is no terminal, or no answer.
    """
    from aileron.credentials import SignInClient

    try:
        client_id = settings.get("client_id") or cli.ask("Client ID: ").strip()
    except InvalidRequest:
        raise CommandError("Cannot ask for the client ID: no terminal. Nothing was done.") from None
    if not client_id:
        raise CommandError("The client ID is empty. Nothing was done.")
    return SignInClient(settings, client_id)


def _ask_for_secret(cli: CliContext, client: SignInClient) -> SignInClient:
    """Ask for the client's secret, and return the client with it, or without a secret if the answer is empty.

    No browser can be started after that (L{CliContext}).
    """
    return evolve(client, client_secret=cli.secret("Client secret", None) or None)


async def _in_browser(cli: CliContext, client: SignInClient, exchange: TokenExchange, choice: SignInChoice) -> SignedIn:
    from aileron.credentials import CODE, BrowserSignIn, register

    listener = CallbackListener(cli.reactor(), choice.port)
    try:
        client = await register(client, listener.redirect_uri, exchange)
        begun = BrowserSignIn.begin(client, listener.redirect_uri, cli.randomness)
        code = await _come_back(cli, begun, listener, choice)
    finally:
        listener.close()
    if client.needs_secret:
        client = _ask_for_secret(cli, client)
    answer = await exchange(evolve(begun, client=client).token_request(code))
    return _read(cli, client, CODE, answer)


async def _come_back(cli: CliContext, begun: BrowserSignIn, listener: CallbackListener, choice: SignInChoice) -> str:
    """Open the service's page in the browser, and return the code that it returns with.

    The address is passed to the browser in a private file, which is deleted afterwards.

    :raises SignInRefused: if the service refused, or the browser did not return in time.
    """
    sweep(cli.home)
    file = write_link(cli.home, begun.authorize_url)
    try:
        note("Redirect URI of this sign-in: {uri}", uri=listener.redirect_uri)
        opened = choice.opens_browser and open_file(file, cli.environ)
        note("If no page opens, open this address:" if opened else "Open this address in a browser on this machine:")
        note("  {url}", url=begun.authorize_url)
        note("Waiting for you to sign in, {minutes} minutes at most.", minutes=WAIT_SECONDS // 60)
        if begun.client.needs_secret:
            note("After that you are asked for the client secret here.")
        return await listener.wait(begun.read_callback)
    finally:
        file.unlink(missing_ok=True)


async def _on_device(cli: CliContext, client: SignInClient, exchange: TokenExchange) -> SignedIn:
    from aileron.credentials import DEVICE, DeviceSignIn, SignInRefused

    if client.needs_secret:
        client = _ask_for_secret(cli, client)
    asking = DeviceSignIn.from_answer(client, await exchange(DeviceSignIn.request(client)))
    note("Open this page on any device:  {page}", page=asking.page)
    note("Enter this code there:         {code}", code=asking.user_code)
    until = cli.seconds() + asking.expires_in
    while cli.seconds() < until:
        await cli.pause(asking.interval)
        try:
            answer = await exchange(asking.token_request())
        except NetworkError:
            continue  # the next question may be answered
        going_on = asking.go_on(answer)
        if going_on is None:
            return _read(cli, client, DEVICE, answer)
        asking = going_on
    raise SignInRefused("The code was not entered in time.")


async def _as_client(cli: CliContext, client: SignInClient, exchange: TokenExchange) -> SignedIn:
    """Request a first token, which proves that the client's ID and secret are valid, and return the result.

    :raises SignInRefused: if the service refuses.
    :raises AileronError: if the service cannot be reached.
    """
    from aileron.credentials import CLIENT

    client = _ask_for_secret(cli, client)
    request = client.request(CLIENT, scope=list(client.scopes) or None)
    return _read(cli, client, CLIENT, await exchange(request))


def _read(cli: CliContext, client: SignInClient, grant: str, answer: TokenAnswer) -> SignedIn:
    return SignedIn(client.read_tokens(grant, answer, utc(cli.wall())), client.read_account(answer))


def _show(client: SignInClient, signed: SignedIn, before: str | None) -> None:
    from aileron.credentials import CLIENT, missing_scopes

    document = signed.document
    if signed.account is not None:
        note("Account: {account}", account=signed.account)
    if before is not None and signed.account not in (None, before):
        note("This is another account than before: {account}", account=before)
    given = ", ".join(document.scopes) or "none stated"
    note("Signed in as the client {id}. Scopes: {scopes}.", id=document.client_id, scopes=given)
    if missing := missing_scopes(document, client.scopes):
        note("Not given, although the connector asks for them: {scopes}.", scopes=", ".join(missing))
    if document.refresh_token is None and document.grant != CLIENT:
        ends = "not known" if document.expires_at is None else when(timestamp(document.expires_at))
        note("The service gave no refresh token: sign in again when the token expires ({ends}).", ends=ends)
