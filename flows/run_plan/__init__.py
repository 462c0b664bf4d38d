"""A run that is only planned: its steps, their size, the time they take, and what would be spent."""
