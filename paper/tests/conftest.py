"""The conditions of every test; those of ``paper/`` have the same."""
