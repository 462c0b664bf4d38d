"""The order of the steps, the command line, the budget and the server."""
