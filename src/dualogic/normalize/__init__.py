"""Passes from formula to formula: negation normal form and conjunctive normal form."""
