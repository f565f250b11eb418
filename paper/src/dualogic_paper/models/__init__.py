"""The networks of the experiments."""
