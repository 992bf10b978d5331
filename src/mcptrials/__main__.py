"""`python -m mcptrials`."""

from mcptrials.cli import main

main()
