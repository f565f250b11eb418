"""Formulas and rule files as text: the inverse of :mod:`dualogic.formula.printing`, and what people write by hand."""
