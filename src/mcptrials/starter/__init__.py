"""Makes the first project of a server: `mcptrials.yaml` and drafts of tasks, from how the server is started today."""

from mcptrials.starter.entry import Entry, from_command, from_url
from mcptrials.starter.starter import Started, Starter

__all__ = ["Entry", "Started", "Starter", "from_command", "from_url"]
