"""One step a module: a function from artifacts to artifacts."""
