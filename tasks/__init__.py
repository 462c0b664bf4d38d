"""The steps of a run, each a module with a function from artifacts to artifacts."""
