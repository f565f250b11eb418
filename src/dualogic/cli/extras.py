"""Say at once, before any work, which packages a command lacks."""

from __future__ import annotations

import importlib.util

from dualogic.errors import MissingExtraError


def require(extra: str, *packages: str) -> None:
    """Refuse to go on without packages that an extra of dualogic installs.

    Args:
        extra: the extra's name in ``pyproject.toml``.
        packages: the names under which they are imported.

    Raises:
        MissingExtraError: with the line to type.

    Example:
        >>> require("cli", "json")
        >>> require("cli", "no_such_package")
        Traceback (most recent call last):
            ...
        dualogic.errors.MissingExtraError: no_such_package is not installed; type: pip install 'dualogic[cli]'
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise MissingExtraError(f"{', '.join(missing)} {verb} not installed; type: pip install 'dualogic[{extra}]'")
