"""Executors: run the trials of a plan, here or elsewhere."""
