"""The ``dualogic`` command line; thin, and imported only by it."""
