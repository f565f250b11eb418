"""Measurements behind the choice of defaults, each a module that writes one file of results."""
