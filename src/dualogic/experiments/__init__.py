"""Experiments: data, models, runs and tables. Nothing in the rest of dualogic imports from here."""
