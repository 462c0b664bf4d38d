"""Look at a raw file without a configuration, to show what it holds and to propose one."""
