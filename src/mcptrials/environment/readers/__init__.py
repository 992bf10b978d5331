"""The kinds of state readers: each one look at what a trial left behind."""
