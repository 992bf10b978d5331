"""The page in HTML: one file that needs no network and obeys nothing that it shows."""

import base64
import hashlib
import html
import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mcptrials import excerpt
from mcptrials.page import wording
from mcptrials.page.contents import Contents
from mcptrials.page.vocabulary import FILTERS, NAMES
from mcptrials.visible import plain

FOLDED_OVER = 600
"""Characters of a block that is shown folded."""
_FOR_SCRIPTS = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def html_page(contents: Contents) -> str:
    """The whole document."""
    templates = PackageLoader("mcptrials.page")
    environment = Environment(
        autoescape=True,
        finalize=_harmless,
        loader=templates,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {**FILTERS, "body": _body}
    style, script = (Markup(templates.get_source(environment, name)[0]) for name in ("page.css", "page.js"))  # noqa: S704 - our own
    return environment.get_template("page.html").render(
        data=contents.data,
        reading=contents.reading,
        **NAMES,
        folded_over=FOLDED_OVER,
        embedded=_embedded(contents.data),
        style=style,
        script=script,
        policy=_policy(style, script),
    )


def _harmless(value: Any) -> Any:
    """Of every value that a template puts in; what is put in as markup is the template's own."""
    return value if isinstance(value, Markup) else plain(excerpt.beginning(str(value), wording.WORDS))


def _body(text: str) -> Markup:
    """Text between tags, where quotes are harmless, and would make JSON five times as long."""
    return Markup(html.escape(plain(text), quote=False))  # noqa: S704 - it is escaped


def _embedded(data: dict[str, Any]) -> Markup:
    """JSON inside a script element, in which nothing ends it."""
    return Markup(json.dumps(data, allow_nan=False).translate(_FOR_SCRIPTS))  # noqa: S704


def _policy(style: str, script: str) -> str:
    """Nothing is loaded, sent or run but this page's own style and script."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
