"""Graders: each scores one side of a trial from its task, transcript and outcome alone."""
