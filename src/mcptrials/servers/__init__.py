"""Servers under test: how to start one, and how to speak with it."""
