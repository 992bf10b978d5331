"""The table of dialects: what each provider takes, and from which kind of source that is known."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from mcptrials.dialect import rules
from mcptrials.dialect.keyword import keyword_faults, newest_draft_faults
from mcptrials.dialect.rules import Rule

Inline = Literal["none", "odd", "all"]
"""Which references are written out: odd ones are those that lead through a list, an anchor or to the whole document."""

Check = Callable[[Mapping[str, Any], bool], Iterator[str]]
"""What is wrong with a schema when all rules were applied; told whether it is the root."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one provider takes."""

    name: str
    rules: tuple[Rule, ...] = ()
    checks: tuple[Check, ...] = ()
    inline: Inline = "none"
    booleans: bool = True
    """Whether `true` and `false` are schemas."""
    typed: bool = False
    """Whether an alternative needs a type beside its keywords."""
    max_tools: int | None = None
    """None: no limit is known."""
    first: re.Pattern[str] = re.compile(".*", re.DOTALL)
    """What a name must match besides being valid for every provider."""

    @property
    def adapts(self) -> bool:
        return bool(self.rules or self.checks)


EXACT = Dialect("exact")
"""Nothing is changed and nothing refused: the server's own schemas."""
VALID = Dialect("2020-12", checks=(newest_draft_faults,))
"""Nothing is changed; what it refuses is wrong for everyone."""

# Source kinds: [error] the provider's own error message, in public reports; [docs] its reference; [fix] the change that
# made it work, in public reports. Lengths of descriptions are not limited: OpenAI's former 1,024 characters are
# lifted [fix, 2025-05], and cutting a description would change what is measured.
OPENAI = Dialect(
    "openai",
    rules=(
        rules.MERGE_ROOT,  # [error] must not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level
        rules.ADD_PROPERTIES_AT_ROOT,  # [error] object schema missing properties
        rules.TUPLE_AS_PREFIX,  # [error] [...] is not of type 'object', 'boolean': a list as `items`
        rules.ADD_ITEMS,  # [error] array schema missing items; also where `array` is one of several types
        rules.NUMERIC_EXCLUSIVE_BOUNDS,  # [error] True is not of type 'number'
        rules.REQUIRED_IS_A_LIST,  # [error] ... is not of type 'array'
        rules.EXAMPLES_ARE_A_LIST,  # [error] the same
    ),
    checks=(newest_draft_faults,),  # [error] ... is not of type ...
    max_tools=128,  # [error] array too long. Expected an array with maximum length 128
)
ANTHROPIC = Dialect(
    "anthropic",
    rules=(
        rules.MERGE_ROOT_COMPOSITION,  # [error] does not support oneOf, allOf, or anyOf at the top level
        rules.NUMERIC_EXCLUSIVE_BOUNDS,  # [error] must match JSON Schema draft 2020-12: draft 4 wrote true here
        rules.TUPLE_AS_PREFIX,  # [error] the same, for a list as `items`
        rules.REQUIRED_IS_A_LIST,  # [error] the same
        rules.EXAMPLES_ARE_A_LIST,  # [error] the same
        rules.NEW_DRAFT_ONLY,  # [error] the same, for a `$schema` that names another draft
    ),
    checks=(
        newest_draft_faults,  # [error] It must match JSON Schema draft 2020-12
        rules.anthropic_keys,  # [error] Property keys should match pattern ...
    ),
)
GEMINI = Dialect(
    "gemini",
    rules=(
        rules.MERGE_ALL_OF,  # [docs] its Schema has no allOf; [error] Unknown name
        rules.ONE_OF_AS_ANY_OF,  # [docs] nor oneOf
        rules.NO_EMPTY_ALTERNATIVES,
        rules.CONST_AS_ENUM,  # [error] Unknown name "const"
        rules.REQUIRED_IS_A_LIST,
        rules.REQUIRED_IS_DEFINED,  # [error] required[0]: property is not defined
        rules.KNOWN_FORMATS,  # [error] only 'enum' and 'date-time' are supported for STRING type
        rules.INCLUSIVE_BOUNDS,  # [error] Unknown name "exclusiveMinimum"
        rules.ONE_TYPE,  # [error] Proto field is not repeating, cannot start list
        rules.IMPLIED_TYPE,  # [error] any_of[0].required: only allowed for OBJECT type
        rules.ADD_ITEMS_OR_FIRST,  # [error] items: missing field, also in nested arrays
        rules.ADD_PROPERTIES_AT_ROOT,  # [fix] an object without properties is refused at the root
        rules.TEXT_ENUMS,  # [error] enum[n]: cannot be empty; only allowed for STRING type
        rules.FITTING_KEYWORDS,  # [error] only allowed for ... type
        rules.GEMINI_KEYS_ONLY,  # [docs] the fields of Schema; [error] Unknown name "$schema": Cannot find field
    ),
    checks=(keyword_faults,),  # [error] Invalid value at ...
    inline="all",  # [docs] Schema has no $ref
    booleans=False,  # [docs] a Schema is a message
    typed=True,  # [error] any_of[0].required: only allowed for OBJECT type
    max_tools=512,  # [error] At most 512 function declarations can be specified
    first=re.compile("[a-zA-Z_].*", re.DOTALL),  # [error] Invalid function name. Must start with a letter or underscore
)
LLAMA_CPP = Dialect(
    "llama_cpp",
    rules=(
        rules.ANCHORED_PATTERNS,  # [error] Pattern must start with '^' and end with '$'
        rules.REQUIRED_IS_A_LIST,
    ),
    inline="odd",  # [error] Unsupported ref; references into arrays
    booleans=False,  # [error] Unrecognized schema: true
)
DIALECTS: Mapping[str, Dialect] = {each.name: each for each in (EXACT, OPENAI, ANTHROPIC, GEMINI, LLAMA_CPP)}

_HOSTS = {
    "api.openai.com": OPENAI,
    "api.anthropic.com": ANTHROPIC,
    "generativelanguage.googleapis.com": GEMINI,
}
_ADAPTERS = {"openai": OPENAI, "openai-responses": OPENAI, "anthropic": ANTHROPIC}


def dialect_of(adapter: str, base_url: str | None, chosen: str | None = None) -> Dialect:
    """The dialect of a model: what its entry chooses, else that of a provider known by adapter or address, else exact.

    An endpoint of the user's own gets what the server sent: nothing is known of it.
    """
    if chosen is not None:
        return DIALECTS[chosen]
    if base_url is None:
        return _ADAPTERS.get(adapter, EXACT)
    return _HOSTS.get(urlsplit(base_url).hostname or "", EXACT)
