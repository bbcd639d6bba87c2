"""The daemon's process, attacked by another process of the same user."""

import json
import os
import signal
import sys
from pathlib import Path

import attrs

from aileron.home.lock import running_pid
from aileron.testing import example_event, unopened_store
from tests.attacks.case import AttackTestCase
from tests.extent import Turns
from tests.functional.canary import in_process
from tests.functional.home import installed
from tests.functional.operated import PASSPHRASE
from tests.functional.process import Command, Finished

_PRIVATE = ("mem", "environ", "maps", "fd/0", "cwd", "auxv")

# What each of the files says to the attacker: "read", or the error's name.
_READ = """
import errno, json, os, sys
def tried(path):
    try:
        if path.endswith(("/fd/0", "/cwd")):
            os.readlink(path)
        else:
            open(path, "rb").close()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "read"
print(json.dumps({name: tried(f"/proc/{sys.argv[1]}/{name}") for name in sys.argv[2:]}))
"""
_ATTACH = """
import ctypes, errno, json, os, sys
library = ctypes.CDLL(None, use_errno=True)
attached = library.ptrace(16, int(sys.argv[1]), None, None)
print(json.dumps("attached" if attached == 0 else errno.errorcode[ctypes.get_errno()]))
"""
_WAIT = "import time; print('up', flush=True); time.sleep(60)"

# Whether a process that was made like the daemon dumps its memory when it gets each signal.
_DUMP = """
import json, os, resource, sys
from aileron.hardening import harden
def dumps(number):
    child = os.fork()
    if child == 0:
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        harden()
        os.kill(os.getpid(), number)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return [os.WTERMSIG(status), os.WCOREDUMP(status)]
print(json.dumps([dumps(int(number)) for number in sys.argv[1:]]))
"""
# Runs a command that inherits the one end of a pipe; whether that end is closed when the command has ended.
_INHERITED = """
import json, os, select, subprocess, sys
nothing = subprocess.DEVNULL
reading, writing = os.pipe()
os.set_inheritable(writing, True)
code = subprocess.run(sys.argv[1:], close_fds=False, stdout=nothing, stderr=nothing).returncode
os.close(writing)
print(json.dumps([code, bool(select.select([reading], [], [], 5)[0])]))
"""

# Opens a descriptor that a command hands to a child, in the moment before that child can close itself to others, and
# says what it holds.
_SNATCH = """
import json, os, sys, time
option, until = sys.argv[1].encode(), time.monotonic() + float(sys.argv[2])
before, found = set(os.listdir("/proc")), []
print("looking", flush=True)
while not found and time.monotonic() < until:
    for pid in set(os.listdir("/proc")) - before:
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")
            if option not in words:
                continue
            number = words[words.index(option) + 1].decode()
            pipe = os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK)
            found.append("opened")
        except (OSError, ValueError) as error:
            if error.__class__ is OSError and error.errno == 6:
                found.append("no such device")
print(json.dumps(found))
"""

# A module that tells that it was loaded, by whom, and then gets in nobody's way.
_MARK = """
import os, sys
with open({mark!r}, "a") as file:
    file.write(f"{{os.getpid()}} {{__name__}}\\n")
"""
_POISONED = ("sitecustomize.py", "usercustomize.py", "aileron/__init__.py", "twisted/plugins/evil.py")
_SHADOWED = (
    *("json.py", "attrs.py", "attr.py", "click.py", "site.py", "__future__.py", "twisted/__init__.py"),
    *("multiprocessing/__init__.py", "pickle.py", "struct.py", "socket.py", "selectors.py", "signal.py"),
)
# What Python itself loads before it runs a module by its name, in each of its versions.
_BEFORE_US = ("types.py", "importlib/__init__.py", "aileron/__init__.py")


class ReadersTests(AttackTestCase):
    """Looking into the daemon."""

    executes_daemons = True

    async def test_daemon(self) -> None:
        """Memory, environment, descriptors, maps and directory of the daemon are closed, and to a debugger too.

        Another process of the same user is open to both: it is not this kit that closes the daemon. The kernel says of
        the daemon: no new rights, no core, private files.
        """
        await self.operator("vault", "init")
        pid = self.home.discovery()["pid"]
        found = await self.attack(_READ, str(pid), *_PRIVATE)
        self.assertEqual({name: found[name] in ("EACCES", "EPERM") for name in _PRIVATE}, dict.fromkeys(_PRIVATE, True))
        self.assertEqual(await self.attack(_ATTACH, str(pid)), "EPERM")
        victim = self.start(self.python(_WAIT))
        await victim.expect("up")
        self.assertEqual(await self.attack(_READ, str(victim.pid), *_PRIVATE), dict.fromkeys(_PRIVATE, "read"))
        self.assertEqual(await self.attack(_ATTACH, str(victim.pid)), "attached")
        status = self.status_of(pid)
        self.assertEqual((status["NoNewPrivs"], status["Umask"]), ("1", "0077"))
        self.assertRegex(Path(f"/proc/{pid}/limits").read_text(), r"Max core file size +0 +0 ")

    async def test_passphrase_in_memory(self) -> None:
        """A command that waits for the passphrase is closed before a character of it is typed."""
        asking = self.start(self.home.on_terminal("aileron", "vault", "init"))
        await asking.expect("New passphrase: ")
        found = await self.attack(_READ, str(asking.pid), *_PRIVATE)
        self.assertNotIn("read", found.values())

    async def test_twistd(self) -> None:
        """``twistd aileron`` is closed as well."""
        running = self.start(self.home.script("twistd", "-n", "--pidfile=", "aileron"))
        await running.expect("serves http")
        self.assertNotIn("read", (await self.attack(_READ, str(running.pid), *_PRIVATE)).values())
        self.assertEqual(self.status_of(running.pid)["NoNewPrivs"], "1")


class HandedOnTests(AttackTestCase):
    """What a command hands to a child that has just begun, and is not closed yet.

    The commands that are looked at are executed, and the daemons that they start.
    """

    async def snatched(self, option: str, command: Command) -> tuple[Finished, object]:
        """How the command ended, and what became of opening the descriptor that C{option} names to its child."""
        attacker = self.start(self.python(_SNATCH, option, "20"))
        await attacker.expect("looking")
        ended = await self.run_command(command, seconds=60)
        return ended, json.loads((await attacker.finish(60)).stdout.splitlines()[-1])

    async def test_key(self) -> None:
        """The vault's key, on its way to the daemon, cannot be taken out of the daemon's descriptor by another."""
        await self.operator("vault", "init")
        unlocking = self.home.with_passphrase(PASSPHRASE, "aileron", "vault", "unlock")
        for _ in range(4):  # the moment is short: an attacker who was not let run meanwhile has shown nothing
            await self.command("daemon", "stop")
            ended, found = await self.snatched("--key-fd", unlocking)
            if found:
                break
        self.assertEqual((ended.exit_code, found), (0, ["no such device"]), ended)

    async def test_token(self) -> None:
        """Nor can the operator's token, on its way from the child that logs in to C{aileron open}."""
        await self.operator("vault", "init")
        attacker = self.start(self.python(_SNATCH, "--token-fd", "20"))
        await attacker.expect("looking")
        opening = self.start(self.home.on_terminal("aileron", "open", BROWSER="/bin/true"))
        found = json.loads((await attacker.finish(60)).stdout.splitlines()[-1])
        await opening.kill()
        self.assertEqual(found, ["no such device"])

    async def test_token_in_memory(self) -> None:
        """The command that holds the operator's token, and starts a browser, is closed itself, and its browser not."""
        await self.operator("vault", "init")
        opening = self.start(self.home.on_terminal("aileron", "open", BROWSER="/bin/true"))
        await opening.expect("Passphrase of the vault: ")
        self.assertNotIn("read", (await self.attack(_READ, str(opening.pid), *_PRIVATE)).values())
        rights = [self.status_of(pid)["NoNewPrivs"] for pid in (opening.pid, os.getpid())]
        self.assertEqual(rights[0], rights[1], "the browser's own sandbox may need them")


class CoreTests(AttackTestCase):
    """Making a process dump its memory."""

    async def test_no_core(self) -> None:
        """A process that was made like the daemon leaves no core, whatever kills it."""
        signals = (signal.SIGABRT, signal.SIGQUIT, signal.SIGSEGV)
        found = await self.attack(_DUMP, *(str(int(number)) for number in signals))
        self.assertEqual(found, [[number, False] for number in signals])
        self.assertEqual(list(self.home.project.iterdir()), [])


class PoisonCase(AttackTestCase):
    """Modules that somebody put where the user's commands are started."""

    executes_daemons = True
    as_processes = True

    def poison(self, directory: Path, names: tuple[str, ...]) -> Path:
        """Put modules into a directory that tell when they are loaded; where they tell it."""
        mark = self.home.root / "mark"
        for name in names:
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_MARK.format(mark=str(mark)))
        return mark

    async def record(self) -> Path:
        """A record in a file."""
        path = self.home.root / "copy.db"
        store = unopened_store(path)
        await store.open()
        await store.audit.append(*(example_event(f"kind.{number}") for number in range(3)))
        await store.close()
        return path


class ModuleTests(PoisonCase):
    """``python -m aileron``, which has Python look for modules in the directory that it is started in."""

    def module(self, *words: str, passphrase: bool = True) -> Command:
        """The command by its module's name."""
        command = self.home.with_passphrase(PASSPHRASE, "aileron", *words)
        if not passphrase:
            command = self.home.script("aileron", *words)
        return attrs.evolve(command, arguments=(sys.executable, "-m", "aileron", *command.arguments[1:]))

    async def test_directory(self) -> None:
        """What lies in the directory is not loaded by anything of ours: neither before nor after the passphrase."""
        mark = self.poison(self.home.project, (*_SHADOWED, "sitecustomize.py", "twisted/plugins/evil.py"))
        (self.home.project / "evil.pth").write_text(f"import os; open({str(mark)!r}, 'a').close()\n")
        for command in (
            self.module("version", passphrase=False),
            self.module("vault", "init"),
            self.module("approval", "list"),
            self.module("status", passphrase=False),
            self.module("doctor"),
        ):
            ended = await self.run_command(command, seconds=60)
            self.assertIn(ended.exit_code, (0, 1), ended)
            self.assertFalse(mark.exists(), mark.exists() and (command.arguments, mark.read_text()))
        self.assertEqual((await self.status())["vault_state"], "unlocked")

    async def test_python_itself(self) -> None:
        """What Python loads before a line of ours is loaded from there, as is a package of our name; not with -P."""
        for name in _BEFORE_US:
            mark = self.poison(self.home.project, (name,))
            command = self.module("version", passphrase=False)
            python, *rest = command.arguments
            safe = await self.run_command(attrs.evolve(command, arguments=(python, "-P", *rest)))
            self.assertEqual((safe.exit_code, mark.exists()), (0, False), (name, safe))
        await self.run_command(command)  # the last of them: a package of our name
        self.assertTrue(mark.exists())


class SearchPathTests(PoisonCase):
    """``PYTHONPATH`` with an empty or a relative part, which has Python look where it is started first."""

    async def test_directory(self) -> None:
        """No command loads what lies there, nor does the process of an agent's tools."""
        record = await self.record()
        mark = self.poison(self.home.project, (*_SHADOWED, "twisted/plugins/evil.py"))
        self.poison(self.home.project / "src", _SHADOWED)
        by_module = (sys.executable, "-m", "aileron", "version")
        paths, turns = (f"{self.home.user}:.", f":{self.home.user}", "src"), Turns(self.id())
        for command in (
            self.home.script("aileron", "version"),
            self.home.with_passphrase(PASSPHRASE, "aileron", "vault", "init"),
            self.home.with_passphrase(PASSPHRASE, "aileron", "approval", "list"),
            self.home.script("aileron", "audit", "verify", str(record)),
            self.home.script("aileron-mcp"),
            attrs.evolve(self.home.script("aileron"), arguments=by_module),
            attrs.evolve(self.home.script("aileron"), arguments=(by_module[0], "-P", *by_module[1:])),
        ):
            for path in turns.of(*paths):  # the start of all is alike
                environment = {**command.environment, "PYTHONPATH": path}
                ended = await self.run_command(attrs.evolve(command, environment=environment), seconds=120)
                self.assertIn(ended.exit_code, (0, 1) if "init" in command.arguments else (0,), ended)
                self.assertFalse(mark.exists(), mark.exists() and (command.arguments, path, mark.read_text()))

    async def test_python_itself(self) -> None:
        """What Python, or the command's first lines, load before ours is loaded from there; the doctor tells."""
        mark = self.poison(self.home.project, ("sitecustomize.py",))
        doctor = self.home.script("aileron", "doctor", "--offline", PYTHONPATH=":")
        self.assertIn("PYTHONPATH", (await self.run_command(doctor)).stdout)
        self.assertTrue(mark.exists())


class VerifyTests(PoisonCase):
    """``aileron audit verify``, which is typed where a record lies that somebody else had in hand."""

    async def test_directory(self) -> None:
        """What lies in the directory where a record is verified is not loaded, nor where Python is deaf to PYTHON*."""
        path = await self.record()
        mark = self.poison(self.home.project, (*_POISONED, *_SHADOWED))
        verify = self.home.script("aileron", "audit", "verify", str(path), "--json")
        deaf = attrs.evolve(verify, arguments=(sys.executable, "-E", *verify.arguments))
        for command in (verify, deaf):
            ended = await self.run_command(command, seconds=60)
            self.assertFalse(mark.exists(), mark.exists() and (command.arguments, mark.read_text()))
            self.assertEqual((ended.exit_code, ended.stderr), (0, ""), ended)


class PoisonTests(PoisonCase):
    """An environment and a directory that were prepared before the user starts the daemon there."""

    async def closed_vault(self) -> None:
        """Make a vault, before anything is prepared, and have no daemon."""
        self.as_processes = self.executes_daemons = False
        await self.operator("vault", "init")
        await self.command("daemon", "stop")
        self.as_processes = self.executes_daemons = True

    def daemon(self) -> int:
        """The daemon's process."""
        pid = running_pid(self.state)
        assert pid
        return pid

    async def test_directory(self) -> None:
        """Modules, plugins and packages in the directory of the commands are not loaded, by any of them."""
        mark = self.poison(self.home.project, (*_POISONED, *_SHADOWED))
        await self.operator("vault", "init")
        self.poison(self.state.root, (*_POISONED, *_SHADOWED))  # where the daemon is started
        await self.command("status")
        await self.command("daemon", "stop")
        await self.unlock()
        await self.mcp(await self.session())
        self.assertFalse(mark.exists(), mark.exists() and mark.read_text())
        self.assertEqual((await self.status())["vault_state"], "unlocked")

    async def test_plugins(self) -> None:
        """``twistd aileron`` loads no plugin of the directory that it is started in."""
        mark = self.poison(self.home.project, (*_POISONED, *_SHADOWED))
        running = self.start(self.home.script("twistd", "-n", "--pidfile=", "aileron"))
        await running.expect("serves http")
        self.assertFalse(mark.exists(), mark.exists() and mark.read_text())

    async def test_environment(self) -> None:
        """What would steer Python, the loader, TLS or proxies does not reach the daemon, nor does a secret."""
        directory = self.home.root / "evil"
        mark = self.poison(directory, ("sitecustomize.py", "twisted/plugins/evil.py"))
        poison = {
            "PYTHONPATH": str(directory),
            "PYTHONSTARTUP": str(directory / "sitecustomize.py"),
            "LD_PRELOAD": "/nonexistent/canary-preload.so",
            "SSL_CERT_FILE": "/nonexistent/canary-roots.pem",
            "https_proxy": "http://canary-proxy.invalid",
            "AILERON_URL": "http://canary-address.invalid",
            "OPENAI_API_KEY": "canary-of-a-model-key",
            "AILERON_LISTEN": "tcp:1",
        }
        await self.closed_vault()
        command = self.home.script("aileron", "daemon", "start", "--locked")
        self.assertEqual((await self.in_hostile(command, **poison)).exit_code, 0)
        loaded = {int(line.split()[0]) for line in mark.read_text().splitlines()}
        self.assertTrue(loaded, "the environment was not poisoned")
        self.assertNotIn(self.daemon(), loaded)
        said = [path.read_text() for path in self.state.log.iterdir()]
        self.assertNotIn("canary", "".join(said))
        self.assertEqual((await self.status())["vault_state"], "locked")

    async def test_descriptors(self) -> None:
        """A descriptor that a command inherited is not open in the daemon that it starts."""
        found = await self.attack(_INHERITED, installed("aileron"), "daemon", "start")
        self.assertEqual((found, (await self.status())["vault_state"]), ([0, True], "missing"))

    async def test_passphrase_from_environment(self) -> None:
        """A passphrase in the environment of the command is not in the daemon's."""
        await self.closed_vault()
        command = self.home.script("aileron", "daemon", "start", AILERON_VAULT_PASSPHRASE=PASSPHRASE)
        self.assertEqual((await self.run_command(command)).exit_code, 0)
        self.assertEqual((await self.status())["vault_state"], "unlocked")
        self.assertEqual(in_process(self.daemon(), PASSPHRASE), [])  # a root sees it, who runs this in a container
