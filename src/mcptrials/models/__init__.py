"""Models: what answers a request, one module per provider."""
