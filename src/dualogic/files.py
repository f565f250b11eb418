"""Files that are whole or not there, and files that are safe to read."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import torch

from dualogic.errors import DataError

__all__ = ["check_regular", "read_bytes", "remove_leftovers", "write_whole"]

STALE = 60 * 60
"""Seconds after which a part is taken for a leftover even if a process has the number of the one that wrote it."""
_KINDS = {"d": "a folder", "p": "a pipe", "s": "a socket", "c": "a device", "b": "a device"}  # by stat.filemode


def save_whole(value: Any, path: str | os.PathLike[str]) -> None:
    """``torch.save`` under a temporary name, then renamed: whoever reads ``path`` finds the old file or the new one.

    Args:
        value: such as ``{"model": model.state_dict(), "logic": logic.state_dict()}``.
        path: of the file.

    Example:
        >>> import tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_whole({"step": torch.tensor(3)}, f"{folder}/run.pt")
        ...     torch.load(f"{folder}/run.pt", weights_only=True)
        {'step': tensor(3)}
    """
    with write_whole(Path(path)) as file:
        torch.save(value, file)


@contextlib.contextmanager
def write_whole(target: Path) -> Iterator[IO[bytes]]:
    """Open a file that gets its name only when it is complete and on disk.

    A file that is there stays until the new one replaces it. What a killed process left of an earlier attempt is removed first,
    and what a failed one leaves, at once.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with write_whole(folder / "a.txt") as file:
        ...     _ = file.write(b"all of it")
        >>> [path.name for path in folder.iterdir()]
        ['a.txt']
    """
    remove_leftovers(target.parent, target.name)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Delete what killed processes were writing in a folder, of this name or of any, and nothing that a living one is writing."""
    pattern = re.compile(rf"\.{re.escape(name) if name else '.+'}\.(\d+)\.part")
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if (found := pattern.fullmatch(path.name)) and _is_leftover(path, int(found[1])):
                path.unlink(missing_ok=True)


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a regular file of bounded size.

    A pipe would be waited for, a device may never end, and a file that is far larger than it should be fills the memory.

    Raises:
        OSError: if it cannot be opened.
        DataError: if it is no regular file, or has more than ``most`` bytes.

    Example:
        >>> read_bytes(Path(os.devnull), 10)
        Traceback (most recent call last):
            ...
        dualogic.errors.DataError: /dev/null is a device, not a regular file; save what it holds in a file first
    """
    check_regular(path)
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise DataError(f"{path} has {path.stat().st_size:,} bytes; a file of its kind has {most:,} at most")
    return content


def check_regular(path: Path) -> None:
    """Refuse, by a :class:`DataError`, a folder, a pipe, a socket or a device where a file is expected."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.filemode(mode)[0], "something else")
        raise DataError(f"{path} is {kind}, not a regular file; save what it holds in a file first")


def _is_leftover(path: Path, writer: int) -> bool:
    if writer == os.getpid():
        return True
    try:
        if time.time() - path.stat().st_mtime > STALE:
            return True
        if os.name != "nt":  # where asking would send the process a signal
            os.kill(writer, 0)
    except ProcessLookupError:
        return True
    except OSError:  # a process of another user, or a part that is gone
        return False
    return False
