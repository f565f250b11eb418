"""From formulas to an immutable plan of tensor operations, one per connective level."""
