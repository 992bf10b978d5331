"""Programs of child processes that run by the interpreter of a server; they import nothing of this package."""
