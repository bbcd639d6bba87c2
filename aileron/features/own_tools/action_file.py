"""Writes the action by which agents' own tools use a service."""

from __future__ import annotations

from collections.abc import Collection

from aileron.connectors import FORWARDED_INPUTS, PUSH_INPUTS, SHOW_PACKAGE, SHOW_PUSH
from aileron.model.connectors import FORWARD, ConnectorDescription
from aileron.model.own_tools import ToolDeclaration

_TEXT = """\
+++
# Own tools of agents, such as gh and curl, use {service} by this action. Agents cannot call it.
name = "{name}"
version = "1.1.0"
timeout_seconds = 360

[[requires.connectors]]
name = "{connector}"
version = "{version}"
capabilities = [{capabilities}]

[[inputs]]
name = "host"
type = "string"
description = "Host that the tool addressed"

[[inputs]]
name = "method"
type = "string"
description = "Method of the request"

[[inputs]]
name = "target"
type = "string"
description = "Path and query, exactly as the tool wrote them"

[[inputs]]
name = "headers"
type = "array"
items_type = "string"
description = "Headers, without the credential"

[[inputs]]
name = "body"
description = "Body, if it is text"
required = false
multiline = true
schema = {{ type = "string", maxLength = 1048576 }}

[[inputs]]
name = "body_base64"
description = "Body in base64, if it is not text"
required = false
schema = {{ type = "string", maxLength = 1398104 }}

[[inputs]]
name = "content"
type = "string"
description = "Digest of the body, if it is longer than 1 MiB"
required = false

[[inputs]]
name = "size"
type = "integer"
description = "Size of that body in bytes"
required = false

[[inputs]]
name = "beginning"
type = "string"
description = "Its beginning, if it is text"
required = false
multiline = true

[[inputs]]
name = "parts"
type = "array"
items_type = "string"
description = "Its parts, if it has several"
required = false

[[inputs]]
name = "recognised"
type = "object"
description = "How the request was recognised"
required = false

[[execute]]
id = "send"
connector = "{connector}"
op = "{operation}"

[execute.inputs]
host = "${{args.host}}"
method = "${{args.method}}"
target = "${{args.target}}"
headers = "${{args.headers}}"
body = "${{args.body}}"
body_base64 = "${{args.body_base64}}"
content = "${{args.content}}"
size = "${{args.size}}"
beginning = "${{args.beginning}}"
parts = "${{args.parts}}"
recognised = "${{args.recognised}}"

# Each write of a tool needs your approval. Also: undo_seconds = 30.
[approval]
required = true
{preview_of_packages}+++
# {title}: own tools

Sends what a tool of the agent, such as `gh` or `curl`, wrote to {service}.
"""

_PREVIEW_OF_PACKAGES = """
[approval.preview]
op = "{preview}"
multiline = ["Warning", "Details", "Files", "Changes", "Patch"]

[approval.preview.render]
Warning = "warning"
Package = "package"
Details = "details"
Files = "files"
"Compared with" = "compared_with"
Changes = "changes"
Patch = "patch"

[approval.preview.args]
{inputs}
"""

_OF_GIT = """\
+++
# The git of agents uses {service} by this action. Agents cannot call it.
name = "{name}"
version = "1.1.0"
timeout_seconds = 180

[[requires.connectors]]
name = "{connector}"
version = "{version}"
capabilities = ["{operation}", "{preview}"]

[[inputs]]
name = "host"
type = "string"
description = "Host"

[[inputs]]
name = "repository"
type = "string"
description = "Repository"

[[inputs]]
name = "changes"
type = "string"
description = "What it does"

[[inputs]]
name = "updates"
type = "array"
items_type = "string"
description = "Updates: the old commit, the new commit, the ref"

[[inputs]]
name = "capabilities"
type = "array"
items_type = "string"
description = "Settings of the protocol"

[[inputs]]
name = "options"
type = "array"
items_type = "string"
description = "Push options, for hooks of the server"

[[inputs]]
name = "shallow"
type = "array"
items_type = "string"
description = "Commits whose parents the agent does not have"

[[inputs]]
name = "headers"
type = "array"
items_type = "string"
description = "Headers, without the credential"

[[inputs]]
name = "content"
type = "string"
description = "Digest of all that is sent"

[[inputs]]
name = "size"
type = "integer"
description = "Its size in bytes"

[[inputs]]
name = "recognised"
type = "object"
description = "How the request was recognised"
required = false

[[execute]]
id = "send"
connector = "{connector}"
op = "{operation}"

[execute.inputs]
{inputs}

# Each push needs your approval. Also: undo_seconds = 30.
[approval]
required = true

[approval.preview]
op = "{preview}"
multiline = ["Warning", "Refs", "Commits", "Files", "Patch"]

[approval.preview.render]
Irreversible = "irreversible"
Warning = "warning"
Refs = "refs"
Commits = "commits"
Files = "diffstat"
Patch = "patch"
"SHA-256 of the whole patch" = "patch_digest"

[approval.preview.args]
{inputs}
+++
# {title}: git of agents

Sends what `git push` of the agent wrote to {service}.
"""


def name_action(service: str) -> str:
    """Return the name that the action of a service has, unless the user renamed it."""
    return f"{service}-tools"


def write_action(about: ConnectorDescription, declared: ToolDeclaration) -> str:
    """Return the text of the action file for a connector that declares own tools."""
    text = _OF_GIT if declared.is_git else _TEXT
    of_packages = _PREVIEW_OF_PACKAGES.format(preview=SHOW_PACKAGE, inputs=_write_inputs(FORWARDED_INPUTS))
    used = (FORWARD, *([SHOW_PACKAGE] if declared.packages else []))
    return text.format(
        preview=SHOW_PUSH,
        preview_of_packages=of_packages if declared.packages else "",
        capabilities=", ".join(f'"{each}"' for each in used),
        inputs=_write_inputs(PUSH_INPUTS),
        name=name_action(declared.service),
        service=declared.service,
        title=declared.service.capitalize(),
        connector=about.name,
        version=about.version,
        operation=FORWARD,
    )


def _write_inputs(inputs: Collection[str]) -> str:
    """Return lines by which an action passes its arguments on as inputs of the same names."""
    return "\n".join(f'{name} = "${{args.{name}}}"' for name in sorted(inputs))
