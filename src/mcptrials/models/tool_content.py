"""A tool's result as content blocks of Anthropic's: text and images as the server sent them, the rest as text."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from mcptrials.presentation import ERROR_MARK, text_of_blocks
from mcptrials.protocols import ToolOutput

_SIGNATURES: Mapping[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
MAX_IMAGE_CHARACTERS = 5_000_000
"""Of base64; a larger image, or one that is not what it claims to be, would end the trial by the provider's refusal."""


def tool_content(output: ToolOutput) -> list[dict[str, Any]]:
    """The content of one result.

    Where a policy changed the text, and where the server sent no content blocks, the text that is shown counts.
    """
    texts = text_of_blocks(output.result)
    plain = "\n".join(texts)
    if not texts or output.text not in (plain, ERROR_MARK + plain):
        return _text(output.text)
    if output.is_error:  # the API takes nothing but text in a result that is one
        return [block for text in texts for block in _text(text)]
    parts = [_part(block, text) for block, text in zip(output.result["content"], texts, strict=True)]
    return [block for part in parts for block in part]


def _part(block: Any, text: str) -> list[dict[str, Any]]:
    if isinstance(block, Mapping) and block.get("type") == "image" and _is_image(block):
        source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
        return [{"type": "image", "source": source}]
    return _text(text)


def _text(text: str) -> list[dict[str, Any]]:
    """A text block, or none: one without a visible character is refused by the API."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _is_image(block: Mapping[str, Any]) -> bool:
    data, kind = block.get("data"), block.get("mimeType")
    if not isinstance(data, str) or not isinstance(kind, str) or len(data) > MAX_IMAGE_CHARACTERS:
        return False
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return content.startswith(_SIGNATURES.get(kind, ()))
