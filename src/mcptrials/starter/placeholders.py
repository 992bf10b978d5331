"""Placeholders of MCP clients, in the words of a project file."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from mcptrials.starter.harmless import harmless

_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULT = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*):-(.*)", re.DOTALL)
_FOLDERS = ("workspaceFolder", "workspaceRoot", "workspace")


def variable_name(text: str) -> str:
    """A name that the environment can have: `api-key` and `apiKey` are API_KEY."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    name = re.sub(r"[^A-Z0-9]+", "_", spaced.upper()).strip("_") or "VALUE"
    return f"_{name}" if name[0].isdigit() else name


class Placeholders:
    """Translates `${input:id}`, `${env:NAME}`, `${NAME:-default}` and `${workspaceFolder}`."""

    def __init__(self, base: Path, project_dir: Path, environ: Mapping[str, str]) -> None:
        self._base, self._environ = base, environ
        self.workspace = written_folder(base, project_dir)
        self.references: dict[str, None] = {}
        """The variables that must be set."""
        self.unknown: dict[str, None] = {}
        """Placeholders that mean nothing here."""

    def text(self, text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: self._replaced(match.group(), match.group(1)), text)

    def _replaced(self, whole: str, inner: str) -> str:
        kind, colon, rest = inner.partition(":")
        fixed = {"workspaceFolderBasename": self._base.name, "pathSeparator": "/", "/": "/", "userHome": "${HOME}"}
        if kind in _FOLDERS:
            return self.workspace
        if inner in fixed:
            return fixed[inner]
        if match := _DEFAULT.fullmatch(inner):
            name, default = match.groups()
            unset = name not in self._environ and harmless(name, default, self._base)
            return default if unset else self._reference(name)
        if kind == "input" and colon:
            return self._reference(variable_name(rest))
        if kind == "env" and _VARIABLE.fullmatch(rest):
            return self._reference(rest)
        if _VARIABLE.fullmatch(inner):
            return self._reference(inner)
        self.unknown[whole] = None
        return whole

    def _reference(self, name: str) -> str:
        self.references[name] = None
        return f"${{{name}}}"


def written_folder(folder: Path, project_dir: Path) -> str:
    """A folder as a project file writes it."""
    relative = os.path.relpath(folder, project_dir)
    return "{project_dir}" if relative == "." else f"{{project_dir}}/{relative}"
