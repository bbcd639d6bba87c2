"""Decides by a file's name whether other programs may read the file automatically, such as a settings file."""

from __future__ import annotations

import re
from collections.abc import Iterable

_DIRECTORIES = frozenset(
    ".amazonq .bundle .cargo .claude .codex .config .continue .cursor .devcontainer .direnv .externalToolBuilders "
    ".fleet .gemini .githooks .goose .helix .hg .husky .idea .jj .kiro .mise .mvn .nvim .opencode .pi .qwen .roo "
    ".settings .sl .svn .vs .vscode .windsurf .yarn .zed".split()
)
_FILES = re.compile(
    r"\.(?:env(?:rc)?(?:\.[a-z.]+)?|autoenv[^/]*|exrc|n?vimrc|nvim\.lua|lvimrc|dir-locals(?:-2)?\.el|gdbinit(?:\.py)?|lldbinit|pdbrc"
    r"|irbrc|pryrc|rspec|ghci|iex\.exs|ocamlinit|octaverc|pylintrc|Rprofile|npmrc|yarnrc(?:\.yml)?|pnpmfile\.cjs|pnp\.cjs|bazelrc|mise(?:\.local)?\.toml|sbtopts|jvmopts"
    r"|pre-commit-config\.yaml|lefthook\.ya?ml|devcontainer\.json|mcp\.json|gitmodules|gitattributes|aider\.conf\.yml"
    r"|tool-versions|rvmrc|latexmkrc|luarc\.json|clangd|rubocop\.yml|flake8|coveragerc|Renviron|RData|perldb|proverc"
    r"|[^/]*\.exs|ycm_extra_conf\.py|php-cs-fixer(?:\.dist)?\.php|pnp\.loader\.mjs|kateproject|project|crush\.json"
    r"|(?:eslintrc|prettierrc|stylelintrc|babelrc|lintstagedrc|huskyrc)(?:\.[a-z]+)?)"
    r"|mise(?:\.local)?\.toml|lefthook\.ya?ml|bunfig\.toml|(?:flake|shell|default|devenv)\.nix|devenv\.ya?ml|crush\.json|opencode\.jsonc?|pyvenv\.cfg|(?:site|user)customize\.py"
    r"|[^/]*\.(?:pth|code-workspace|sublime-project)",
    re.IGNORECASE,
).fullmatch
_CACHES = frozenset(
    ".cache .mypy_cache .nyc_output .parcel-cache .pytest_cache .ruff_cache .svelte-kit .turbo __pycache__".split()
)
"""The directories of caches."""

_NO_SETTINGS = frozenset(".coverage .ds_store .eslintcache .gitkeep .keep .nojekyll".split())
_ENDINGS = frozenset(
    "bazel bzl cabal cfg cmake conf config csproj cson dhall editorconfig env exs fsproj gemspec gradle ini json json5 "
    "jsonc jsonnet just kdl kts lock mk mod ninja nix nims plist pro properties props pth rc ron sbt service sln "
    "targets tf tfvars toml vbproj vcxproj work xcconfig xml yaml yml zon".split()
)
_CODE = r"(?:\.(?:[cm]?[jt]s|rb|py|lua|php|lisp|el|sh|pl|rs|zig|java|groovy|r|jl|clj))"
_RECIPES = re.compile(
    rf"[a-z]*file{_CODE}?"  # Makefile, Dockerfile, Jenkinsfile, gulpfile.js
    r"|build|workspace|buck|sconstruct|sconscript|rust-toolchain|configure|make"
    rf"|(?:build|setup|conftest|noxfile|fabfile|tasks|dodo|conf|manage){_CODE}"
    rf"|[^/]*(?:\.conf|config|settings|rc){_CODE}?"
    rf"|(?:webpack|vite|rollup|karma|jest|babel|gatsby|next|nuxt|metro|knex)[^/]*{_CODE}"
).fullmatch
_DIRECTORIES_OF_SETTINGS = frozenset("mise config direnv hooks systemd autostart".split())


def is_known(name: str, directories: Iterable[str]) -> bool:
    """Return whether shells, editors, package managers or agents are known to read files of this name automatically.

    :param directories: the names of the directories above it.
    """
    return name in _DIRECTORIES or not _DIRECTORIES.isdisjoint(directories) or _FILES(name) is not None


def is_configuration(name: str, directories: Iterable[str]) -> bool:
    """Return whether a file looks like a settings file or a build recipe.

    :param directories: the names of the directories above it.
    """
    lowered, around = name.lower(), [each.lower() for each in directories]
    if lowered in _NO_SETTINGS or not _CACHES.isdisjoint(around):
        return False
    if lowered.startswith(".") or lowered.rpartition(".")[2] in _ENDINGS or _RECIPES(lowered):
        return True
    return any(each.startswith(".") or each in _DIRECTORIES_OF_SETTINGS for each in around)
