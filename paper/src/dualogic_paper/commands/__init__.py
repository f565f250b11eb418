"""What this package adds to the command line of dualogic, by the entry points in ``pyproject.toml``."""
