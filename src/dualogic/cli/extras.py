"""Say at once, before any work, which packages a command lacks."""

from __future__ import annotations

import importlib.util

from dualogic.errors import MissingExtraError, how_to_install


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
        dualogic.errors.MissingExtraError: no_such_package is not installed; type, in a clone of dualogic: pip install -e '.[cli]'
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise MissingExtraError(f"{', '.join(missing)} {verb} not installed; {how_to_install(extra)}")
