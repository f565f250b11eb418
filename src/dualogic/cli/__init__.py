"""The ``dualogic`` command line; thin, and imported only by it.

Each module of :mod:`dualogic.cli.commands` is one command, named after its file.
"""

from dualogic.cli.dispatch import main, require

__all__ = ["main", "require"]
