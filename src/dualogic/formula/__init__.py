"""The language of rules: symbols, terms, atoms and connectives, as frozen values with no tensors in them."""
