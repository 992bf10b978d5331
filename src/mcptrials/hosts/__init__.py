"""Hosts: agent harnesses that put a model in front of servers."""
