"""The sandbox's guards, each with the attack that must succeed without it."""

from __future__ import annotations

from .guard import ATTACKS, Guard

_LAYOUT = "features/sandbox/layout.py"
_SANDBOX = "features/sandbox/sandbox.py"
_FILTER = "features/sandbox/_filter.py"
_PROJECT = "features/sandbox/project.py"
_PROTECTION = "features/sandbox/_protection.py"
_TREE = "features/sandbox/_tree.py"
_COPY = "features/sandbox/_copy.py"
_SANITIZE = "features/sandbox/_sanitize.py"
_IMPORT = "features/sandbox/_import.py"

_AGENT = "test_sandbox.SandboxTests"
_PROGRAMS = "test_sandbox.ProgramTests"
_GIT = "test_sandbox_git.GitTests"
_LINKS = "test_sandbox_links.LinkTests"
_BREAKOUT = "test_breakout.BreakoutTests"
_TOLD = "test_breakout.ToldTests"
_LOST = "test_breakout.LostTests"
_REPLACED = "test_sandbox_replaced.ReplacedTests.test_program"


def _guard(what: str, file: str, text: str, instead: str, test: str) -> Guard:
    return Guard(ATTACKS, what, file, text, instead, test)


GUARDS = (
    _guard(
        "sockets of other families are refused",
        _FILTER,
        "            _rule(calls.socket, _allow_if(_FIRST, _FAMILIES, errno.EAFNOSUPPORT)),\n",
        "",
        f"{_AGENT}.test_nobody_to_be_asked",
    ),
    _guard(
        "pairs of datagram sockets are refused",
        _FILTER,
        "            _rule(calls.socketpair, _allow_if(_SECOND, _STREAMS, errno.EAFNOSUPPORT, mask=_TYPE_MASK)),\n",
        "",
        f"{_AGENT}.test_nobody_to_be_asked",
    ),
    _guard(
        "rings are refused",
        _FILTER,
        "            _rule(calls.missing, _refuse(errno.ENOSYS)),\n",
        "",
        f"{_AGENT}.test_nobody_to_be_asked",
    ),
    _guard(
        "typing into the terminal is refused",
        _FILTER,
        "            _rule(calls.ioctl, _refuse_if(_SECOND, (_TIOCSTI, _TIOCLINUX), errno.EPERM)),\n",
        "",
        f"{_AGENT}.test_typing",
    ),
    _guard(
        "user namespaces are refused",
        _FILTER,
        "            _rule(calls.clone, _allow_if(_FIRST, (0,), errno.EPERM, mask=_CLONE_NEWUSER)),\n",
        "",
        f"{_BREAKOUT}.test_namespace",
    ),
    _guard(
        "the kernel's keys are refused",
        _FILTER,
        "            _rule(calls.refused, _refuse(errno.EPERM)),\n",
        "",
        f"{_BREAKOUT}.test_keyring",
    ),
    _guard(
        "the repository is a copy",
        _COPY,
        '        yield from ("--bind", str(self.git_dir), place)\n',
        '        yield from ("--bind", place, place)\n',
        f"{_GIT}.test_hooks",
    ),
    Guard(
        ATTACKS,
        "git does not read the settings that the agent wrote",
        _SANITIZE,
        '        if name not in _DATA and not name.startswith("sharedindex."):\n',
        "        if False:\n",
        f"{_GIT}.test_configuration",
        ((_SANITIZE, "        shutil.copy2(copy.before / name, copy.git_dir / name)\n", "        pass\n"),),
    ),
    _guard(
        "what is no data is taken out of the copy before git reads it",
        _SANITIZE,
        '        if name not in _DATA and not name.startswith("sharedindex."):\n',
        "        if False:\n",
        f"{_GIT}.test_commondir",
    ),
    _guard(
        "the repository's objects stay as they are",
        _COPY,
        '        yield from ("--ro-bind", str(common / "objects"), f"{place}/{REAL_OBJECTS}")\n',
        '        yield from ("--bind", str(common / "objects"), f"{place}/{REAL_OBJECTS}")\n',
        f"{_GIT}.test_objects",
    ),
    _guard(
        "what Git LFS keeps stays as it is",
        _COPY,
        '                yield from ("--ro-bind", str(common / name), f"{place}/{name}")\n',
        '                yield from ("--bind", str(common / name), f"{place}/{name}")\n',
        f"{_LOST}.test_large_files",
    ),
    _guard(
        "processes are ended before anything is imported",
        "features/sandbox/_processes.py",
        "        signal.pidfd_send_signal(pidfd, signal.SIGKILL)\n",
        "        return True\n",
        f"{_BREAKOUT}.test_outlived",
    ),
    _guard(
        "repositories in the project are protected",
        _PROTECTION,
        "    yield from (path for path in tree.repositories if path != replaced)\n",
        "    yield from ()\n",
        f"{_GIT}.test_nested",
    ),
    _guard(
        "a directory of hooks is protected",
        _PROTECTION,
        "    if (hooks := hooks_directory(git, work_tree)) is not None:\n",
        "    if (hooks := hooks_directory(git, work_tree)) is None:\n",
        f"{_GIT}.test_hooks",
    ),
    _guard(
        "what a hook is a link to is protected",
        _PROTECTION,
        "        yield from _environments_of((root,), linked_from(hooks))\n",
        "",
        f"{_BREAKOUT}.test_hook_path_behind_a_link",
    ),
    _guard(
        "a file that git's settings include is protected",
        _PROTECTION,
        "        yield path\n    _refuse_missing(root, work_tree, git)\n",
        "    _refuse_missing(root, work_tree, git)\n",
        f"{_GIT}.test_included",
    ),
    _guard(
        "a program in a shell command of git's settings is protected",
        _PROTECTION,
        "    yield from {step for named in configured_files(git, work_tree) for step in _steps_within(root, named)}\n",
        "",
        f"{_BREAKOUT}.test_program_in_a_shell_script",
    ),
    _guard(
        "a program that git's settings name and that is missing is refused",
        _PROTECTION,
        "    _refuse_missing(root, work_tree, git)\n    _refuse_modules",
        "    _refuse_modules",
        f"{_BREAKOUT}.test_program_missing",
    ),
    _guard(
        "python -m in git's settings is refused",
        _PROTECTION,
        "    _refuse_modules(work_tree, git)\n    yield",
        "    yield",
        f"{_GIT}.test_module",
    ),
    _guard(
        "a place of a submodule is protected",
        _PROTECTION,
        "        for path in gitlinks(git, work_tree):\n",
        "        for path in ():\n",
        f"{_GIT}.test_submodules",
    ),
    _guard(
        "a new submodule in a commit is not imported",
        _IMPORT,
        " if mode.startswith(GITLINK) and path not in known]",
        " if False]",
        f"{_GIT}.test_embedded",
    ),
    _guard(
        "a new submodule in the index is not imported",
        "features/sandbox/_git.py",
        "    linked = linked_paths(changed)\n",
        "    linked = set[bytes]()\n",
        f"{_GIT}.test_embedded",
    ),
    _guard(
        "directories above what is protected cannot be moved",
        _LAYOUT,
        "            **{path: _bind(path, opened) for path in self._above(read_only, hidden)},\n",
        "",
        f"{_GIT}.test_hooks",
    ),
    _guard(
        "Aileron and the agent are protected",
        _PROTECTION,
        "        yield from _environments_of(writable, steps(program))\n",
        "        yield from ()\n",
        f"{_PROGRAMS}.test_environment",
    ),
    _guard(
        "entries of PATH are protected",
        _PROTECTION,
        "        yield from _environments_of(writable, (*steps(entry), *linked_from(entry)))\n",
        "",
        f"{_PROGRAMS}.test_path",
    ),
    _guard(
        "programs that links on PATH lead to are protected",
        _PROTECTION,
        "(*steps(entry), *linked_from(entry))",
        "steps(entry)",
        f"{_PROGRAMS}.test_path",
    ),
    _guard(
        "a link that a program on PATH is reached by is refused",
        _PROTECTION,
        "(*steps(entry), *linked_from(entry))",
        "steps(entry)",
        f"{_BREAKOUT}.test_chain_of_links",
    ),
    _guard(
        "a relative entry of PATH is refused",
        _PROTECTION,
        "        if not isabs(entry):\n",
        "        if False:\n",
        f"{_PROGRAMS}.test_refused",
    ),
    _guard(
        "a missing entry of PATH is refused",
        _PROTECTION,
        "        if not isdir(entry) and any(",
        "        if False and any(",
        f"{_PROGRAMS}.test_refused",
    ),
    _guard(
        "what is mounted in the project is opened before",
        _SANDBOX,
        "            first = _OPENED if self.by_descriptor else None\n",
        "            first = None\n",
        f"{_LINKS}.test_at_the_last_moment",
    ),
    _guard(
        "settings of editors are protected",
        _PROTECTION,
        "        *protected_settings(layout.places),\n",
        "",
        f"{_AGENT}.test_nothing_to_be_had",
    ),
    _guard(
        "start files are protected",
        _PROTECTION,
        "        *protected_start_files(layout.home, layout.writable, environment),\n",
        "",
        f"{_LINKS}.test_start_file",
    ),
    _guard(
        "a missing start file is refused",
        _PROTECTION,
        '            if not lexists(path):\n                raise InvalidRequest(\n                    f"Your shell',
        '            if False:\n                raise InvalidRequest(\n                    f"Your shell',
        f"{_LINKS}.test_start_file_missing",
    ),
    _guard(
        "the file that BASH_ENV names is protected",
        _PROTECTION,
        "    files += filter(isabs, named.values())\n",
        "",
        f"{_LINKS}.test_start_file_by_variable",
    ),
    _guard(
        "what the agent writes to its settings is thrown away",
        _LAYOUT,
        "            **{path: tuple(_discard_writes(path)) for path in settings},\n",
        "            **{path: _bind(path) for path in settings},\n",
        f"{_LINKS}.test_settings_behind_a_link",
    ),
    _guard(
        "Aileron's home is hidden",
        _LAYOUT,
        "(self.state, *profiles, *browsers)",
        "(*profiles, *browsers)",
        f"{_AGENT}.test_nothing_to_be_had",
    ),
    _guard(
        "browsers' profiles are hidden",
        _LAYOUT,
        "(self.state, *profiles, *browsers)",
        "(self.state, *browsers)",
        f"{_AGENT}.test_nothing_to_be_had",
    ),
    _guard(
        "processes outside are out of reach",
        _LAYOUT,
        '"--unshare-pid", ',
        "",
        f"{_AGENT}.test_nothing_to_be_had",
    ),
    _guard(
        "all but the project can only be read",
        _LAYOUT,
        '        yield from ("--ro-bind", "/", "/", ',
        '        yield from ("--bind", "/", "/", ',
        f"{_AGENT}.test_nothing_to_be_had",
    ),
    _guard(
        "a file that is standard input is copied",
        _SANDBOX,
        "                copies[descriptor] = held.enter_context(_copy_of(descriptor))\n",
        "                pass\n",
        f"{_AGENT}.test_standard_input",
    ),
    _guard(
        "new and changed files are told",
        _PROJECT,
        "                self._tell((*replaced(), *before.changes(read_tree(root), tracked)))\n",
        "                self._tell(replaced())\n",
        f"{_AGENT}.test_told",
    ),
    _guard(
        "a file that was replaced is told",
        _PROJECT,
        "                self._tell((*replaced(), *before.changes(read_tree(root), tracked)))\n",
        "                self._tell(before.changes(read_tree(root), tracked))\n",
        _REPLACED,
    ),
    _guard(
        "nothing is imported where a file was replaced",
        _PROJECT,
        "                if copy is not None and replaced():",
        "                if False:",
        _REPLACED,
    ),
    _guard(
        "a repository that was made is told",
        _TREE,
        "            found.repositories[path] = identity_of(path)\n",
        "            pass\n",
        f"{_GIT}.test_no_repository",
    ),
    _guard(
        "a bare repository that was made is told",
        _TREE,
        "    if any(needed <= entries.keys() for needed in _BARE):\n",
        "    if False:\n",
        f"{_TOLD}.test_root_becomes_a_repository",
    ),
    _guard(
        "a file with another name is told",
        _TREE,
        "        return os.lstat(path).st_nlink > 1\n",
        "        return False\n",
        f"{_TOLD}.test_hard_link",
    ),
    _guard(
        "what is too much to be shown is listed in a file",
        _PROJECT,
        '            listed.write_text("".join(f"{visible(path)}\\n" for path in paths), encoding="utf-8")\n',
        "            pass\n",
        f"{_TOLD}.test_many",
    ),
    _guard(
        "a directory that cannot be listed is told",
        _TREE,
        "        found.repositories[directory] = ()\n",
        "        pass\n",
        "test_breakout.UnreadableTests",
    ),
)
