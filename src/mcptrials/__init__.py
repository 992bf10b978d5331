"""Evaluate MCP servers through language models."""
