"""Where a figure comes from: the commit, the date and the machine; and its six digits."""

import datetime as dt
import functools
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

from dualogic import __version__


def describe_machine(device: torch.device) -> dict[str, str]:
    """What ran: processor or GPU, and versions."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": name, "torch": torch.__version__, "python": platform.python_version()}


def find_date() -> str:
    """Today, in UTC, such as ``"2026-01-31"``."""
    return dt.datetime.now(dt.timezone.utc).date().isoformat()


@functools.cache
def find_commit() -> str:
    """The commit of the source, marked ``+`` if the source was changed since; the version if there is no repository."""
    if os.environ.get("DUALOGIC_COMMIT"):  # for a copy of the source without its repository
        return os.environ["DUALOGIC_COMMIT"]
    try:
        return _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--short", "--", ":/src", ":/paper/src") else "")
    except (OSError, subprocess.CalledProcessError):
        return f"version {__version__}"


def _git(*words: str) -> str:
    call = ["git", "-C", str(Path(__file__).parent), *words]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def shorten(values: dict[str, Any]) -> dict[str, Any]:
    """What goes into a file: as JSON gives it back, with numbers to six digits."""
    return json.loads(json.dumps(values), parse_float=lambda text: float(f"{float(text):.6g}"))  # type: ignore[no-any-return]
