"""Which step follows which; the command line, the budget, the server."""
