"""Tables and figures from results: mean and deviation over seeds, with the paper's figure in the same cell."""
