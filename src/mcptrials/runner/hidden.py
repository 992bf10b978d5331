"""Hidden: why a tool that is there is shown to no model, and what shows it."""

from mcptrials.presentation import RawTool, ToolFilter
from mcptrials.project import ServerConfig

_DENIED = "without an environment writes are denied, and {name!r} may write: it does not declare readOnlyHint: true"


def why_hidden(server: str, tool: RawTool, config: ServerConfig, rule: ToolFilter) -> tuple[str, str]:
    """The cause, and what would help, for a tool that a filter does not show."""
    name, at = tool["name"], f"servers.{server}"
    if name in config.tools.hide:
        return f"{at}.tools.hide names {name!r}", "take it out of there"
    if config.tools.allow is not None and name not in config.tools.allow:
        return f"{at}.tools.allow does not name {name!r}", "add it there"
    if config.writes == "denied":
        return f"{at} says 'writes: denied', and {name!r} may write", f"remove 'writes: denied' of {at}"
    if rule.shows(tool):
        return "a variant's overrides hide it", "take 'hide' out of the overrides"
    return _DENIED.format(name=name), how_to_show(server, config)


def how_to_show(server: str, config: ServerConfig) -> str:
    """The lines of a project file that show tools which may write."""
    if config.url is not None:
        clean = "environment: {reset: [{command: [...]}]}' with what puts the server's data back before each trial"
    else:
        clean = (
            'environment: {files: {fixtures/app.db: "{trial_dir}/app.db"}}\' and let the server keep its data there'
            " ('environment: {}' if it keeps them in memory)"
        )
    return (
        f"add '{clean}; or 'writes: allowed' under servers.{server}, if no call can do harm;"
        " or set readOnlyHint: true on tools that only read"
    )
