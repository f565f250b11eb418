"""One file for each command of ``dualogic``.

A command is a dataclass, its docstring the help, its fields the options, with a method ``run() -> int``; the module names
it ``COMMAND``. Heavy imports belong inside ``run``, so that ``dualogic --help`` stays fast.
"""
