"""The experiments of the paper, everyday problems and benchmarks of speed, on the public names of dualogic."""
