"""The daemon's guards against who is the same user, each with the attack that must succeed without it."""

from __future__ import annotations

from .guard import ATTACKS, Guard

_CONFIRMING = "cli/records/confirming.py"
_VERIFY = "audit/verify.py"
_ROLLBACK = "runner/_recovery.py"
_VAULT_FILE = "vault/_vault_file.py"
_INJECTION = "features/gateway/_injection.py"

_RECORD = "test_agent.RecordTests"
_KEY = "test_gateway_key.GatewayKeyTests"


def _guard(what: str, file: str, text: str, instead: str, test: str) -> Guard:
    return Guard(ATTACKS, what, file, text, instead, test)


GUARDS = (
    _guard(
        "the daemon is asked for its newest record",
        _CONFIRMING,
        "        return {} if self.head is None else {NAME: self.head}\n",
        "        return {}\n",
        f"{_RECORD}.test_while_it_runs",
    ),
    _guard(
        "what the daemon did not write is found",
        _CONFIRMING,
        "        if now is None or now.head is None or now.head[0] > found.last:\n",
        "        if True:\n",
        f"{_RECORD}.test_while_it_runs",
    ),
    _guard(
        "a daemon is known by its lock on the database",
        _CONFIRMING,
        '        pid, does = database_pid(home), "has the audit log open and may be the daemon"\n',
        "        pass\n",
        f"{_RECORD}.test_hidden",
    ),
    _guard(
        "a daemon is known by daemon.lock",
        _CONFIRMING,
        '    pid, does = running_pid(home), "is this home\'s daemon"\n',
        '    pid, does = None, ""\n',
        f"{_RECORD}.test_copied",
    ),
    _guard(
        "it is said that nothing is confirmed",
        _CONFIRMING,
        "        if is_unconfirmed(found, running):\n",
        "        if False:\n",
        f"{_RECORD}.test_hidden",
    ),
    _guard(
        "it is said that the newest records are not signed",
        _CONFIRMING,
        "    if found.sound and found.unsigned:\n",
        "    if False:\n",
        f"{_RECORD}.test_while_none_runs",
    ),
    _guard(
        "contents are held against their digest",
        "audit/_chain.py",
        "            if not is_bare and payload_digest(salt, payload) != digest:\n",
        "            if False:\n",
        f"{_RECORD}.test_while_none_runs",
    ),
    _guard(
        "contents that are gone are found",
        _VERIFY,
        "        bare = self._chain.unexcused\n",
        "        bare = None\n",
        f"{_RECORD}.test_while_none_runs",
    ),
    _guard(
        "the record reaches what the vault sealed",
        _ROLLBACK,
        "        return sealed is None or await self._runs.audit.at(sealed[0]) == sealed[1]\n",
        "        return True\n",
        "test_rollback.DatabaseTests.test_a_copy",
    ),
    _guard(
        "an older vault is known by the database",
        _ROLLBACK,
        "        old_vault = returned or reached.behind(remembered.get(reached.name))\n",
        "        old_vault = False\n",
        "test_rollback.VaultTests.test_no_trust",
    ),
    _guard(
        "another vault's file opens nothing while the daemon runs",
        _VAULT_FILE,
        "                raise damaged(_difference(found, self.known))\n",
        "                ours = found\n",
        "test_rollback.RewrittenTests.test_refused",
    ),
    _guard(
        "an older vault's file opens nothing while the daemon runs",
        _VAULT_FILE,
        "                raise damaged(_difference(found, self.known))\n",
        "                ours = found\n",
        "test_rollback.VaultTests.test_while_it_runs",
    ),
    _guard(
        "the directory of python -m is not looked through",
        "_start.py",
        "    sys.path[:] = [path for path in sys.path if path not in relative]\n",
        "",
        "test_process.ModuleTests.test_directory",
    ),
    _guard(
        "fields after a body are refused",
        "base/http1/_bodies.py",
        "    return Chunked(trailers=False) if length == CHUNKED else",
        "    return Chunked() if length == CHUNKED else",
        "test_gateway_memory.GatewayMemoryTests.test_trailers",
    ),
    _guard(
        "a key is put in for live sessions alone",
        _INJECTION,
        "    if session is None or not session.live:\n",
        "    if False:\n",
        f"{_KEY}.test_not_put_in",
    ),
    _guard(
        "a key is put into model calls alone",
        _INJECTION,
        "    if not inference:\n",
        "    if False:\n",
        f"{_KEY}.test_not_put_in",
    ),
    _guard(
        "a key is put in in the place of the client's",
        _INJECTION,
        '_CLIENTS_OWN.sub(b"", head)[:-4]',
        "head[:-4]",
        f"{_KEY}.test_put_in",
    ),
    _guard(
        "a key is put in where it was bound for alone",
        _INJECTION,
        "        if binding.scope != scope:\n",
        "        if False:\n",
        f"{_KEY}.test_moved",
    ),
    _guard(
        "a passphrase stays out of the daemon's environment",
        "cli/daemon/process.py",
        '    return {name: text for name, text in environ.items() if name in _PASSED_ON or name.startswith("LC_")}\n',
        "    return dict(environ)\n",
        "test_process.PoisonTests.test_passphrase_from_environment",
    ),
    _guard(
        "the daemon is closed to readers",
        "hardening.py",
        '    conceal(kernel)\n    if kernel.platform.startswith("linux"):\n',
        '    if kernel.platform.startswith("linux"):\n',
        "test_process.ReadersTests.test_daemon",
    ),
    _guard(
        "twistd is closed to readers",
        "daemon/_run.py",
        "    harden()\n",
        "",
        "test_process.ReadersTests.test_twistd",
    ),
    _guard(
        "nothing of the daemon is dumped",
        "hardening.py",
        "        kernel.no_core()\n",
        "        pass\n",
        "test_process.ReadersTests.test_daemon",
    ),
    _guard(
        "a command that asks for a passphrase is closed to readers",
        "cli/context.py",
        "def _new_passphrase(descriptor: int | None) -> str:\n    harden()\n",
        "def _new_passphrase(descriptor: int | None) -> str:\n",
        "test_process.ReadersTests.test_passphrase_in_memory",
    ),
    _guard(
        "a token goes to its command by a socket",
        "cli/daemon/process.py",
        "    reading, writing = (_above_standard(each.detach()) for each in socket.socketpair())\n"
        "    return reading, writing\n",
        "    return os.pipe()\n",
        "test_process.HandedOnTests.test_token",
    ),
    _guard(
        "the hand-over's form comes from no page of another origin",
        "api/channels/checks.py",
        '        if form and head.fields.get(b"origin", b"null").lower() == b"null":\n',
        "        if form:\n",
        "test_operator_door.PageTests.test_form",
    ),
    _guard(
        "the pages have another name at each start",
        "daemon/_sites.py",
        '    if config.operator_host == "localhost":\n',
        "    if True:\n",
        "test_planted.PlantedTests.test_another_name",
    ),
    _guard(
        "a code that is used twice lets nobody in",
        "vault/_operators.py",
        "            self._hand_overs.end(hand_over, HandOverState.TWICE)\n",
        "            pass\n",
        "test_operator_door.CodeTests.test_known",
    ),
)
