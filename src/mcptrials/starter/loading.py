"""Loading: whether a project file that is to be written could be loaded."""

from pathlib import Path

from mcptrials.errors import UsageError
from mcptrials.project.checks import make_config
from mcptrials.project.secrets import Expander, without_secrets
from mcptrials.source import yaml_source
from mcptrials.starter.variables import Variables, named_variables

_STAND_IN = "http://127.0.0.1/"
"""What a variable without a value may be: it fits every place where servers have texts."""


def refuse_unloadable(path: Path, text: str, variables: Variables) -> None:
    """Looks at a project file as a run would, once its variables have values.

    Raises:
        UsageError: what a run would say.
    """
    values = dict(variables.environ) | {name: value or _STAND_IN for name, value in variables.values.items()}
    source = yaml_source(path, text.removeprefix("\ufeff"))
    if not named_variables(repr(source.value)) <= values.keys():
        return  # the file needs values that only its user knows, of any kind
    expander = Expander(source, values)
    value = expander.value(source.value)
    try:
        make_config(source, value)
    except UsageError as exc:
        raise without_secrets(expander.scrubbed(exc, value), variables.secrets) from exc
