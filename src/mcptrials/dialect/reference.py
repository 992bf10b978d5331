"""References inside a schema: `$ref` to a place in the same document; nothing is ever fetched.

Spec 2026-07-28, basic: a client MUST NOT fetch a remote `$ref` by itself.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote


def resolve(root: Any, ref: Any) -> Any:
    """What `ref` names in `root`.

    Raises:
        LookupError: it leads out of the document, or nowhere in it.
    """
    own = root.get("$id") if isinstance(root, Mapping) else None
    if isinstance(ref, str) and isinstance(own, str) and own:
        ref = "#" if ref == own else ref.removeprefix(own.removesuffix("#"))
    if not isinstance(ref, str) or not ref.startswith("#"):
        raise LookupError("leads out of the schema, and is never fetched")
    pointer = unquote(ref[1:])
    if pointer and not pointer.startswith("/"):
        return _anchored(root, pointer)
    target = root
    for part in pointer.split("/")[1:]:
        target = _step(target, part.replace("~1", "/").replace("~0", "~"))
    return target


def _step(target: Any, part: str) -> Any:
    if isinstance(target, Mapping) and part in target:
        return target[part]
    if isinstance(target, list) and part.isascii() and part.isdigit() and int(part) < len(target):
        return target[int(part)]
    raise LookupError("leads nowhere in the schema")


def _anchored(root: Any, name: str) -> Any:
    """The definition that carries an `$anchor`, which servers put among their definitions."""
    for group in ("$defs", "definitions"):
        held = root.get(group) if isinstance(root, Mapping) else None
        for definition in held.values() if isinstance(held, Mapping) else ():
            if isinstance(definition, Mapping) and definition.get("$anchor") == name:
                return definition
    raise LookupError("leads nowhere in the schema")


def is_plain(ref: Any) -> bool:
    """Whether it names a definition by nothing but names: no anchor, no list, not the whole document."""
    return isinstance(ref, str) and ref.startswith("#/") and not any(part.isdigit() for part in ref.split("/"))
