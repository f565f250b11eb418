"""A table in a memory-mapped file: larger than memory, and still there after the run.

The file is made in whole or not at all, and opened only for what it was made for. It has a page of header, which says what is in
it, and then the rows. All of its space is taken when it is made: a page that a full disk has no room for would otherwise show
only when a row on it is written, and then end the process.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import mmap
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from dualogic.duals.host import HostTable
from dualogic.duals.memory import format_bytes
from dualogic.errors import StateError

HEADER = 4096
TITLE = "dualogic table 2"
EARLIER = "dualogic table"
UNFINISHED = {"title": TITLE}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _shorten(text: str, most: int, apart: bool = False) -> str:
    """The beginning of a long text, for a header of one page; ``apart`` if it is to tell one text from another."""
    return text if len(text) <= most else f"{text[:most]}...{' ' + _digest(text) if apart else ''}"


@dataclasses.dataclass(frozen=True)
class Owner:
    """Whose rows a file holds: what checkpoints agree on too."""

    rules: str = ""  # a digest of their names and texts, in order
    text: str = ""  # their beginning, for messages
    method: str = ""  # its name
    rows: str = ""  # what a row holds, in words

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Owner:
        """From what a loss puts into a checkpoint about itself."""
        text = json.dumps(list(state["rules"].items()))
        shown = "; ".join(f"{name}: {rule}" for name, rule in state["rules"].items())
        return cls(_digest(text), _shorten(shown, 200), state["method"], _shorten(state["rows"], 500, apart=True))


@dataclasses.dataclass(frozen=True)
class Header:
    """What is in a file."""

    samples: int  # the number of rows
    width: int  # dual variables per sample
    dtype: str  # of the numbers
    owner: Owner  # of the rows
    identity: str  # drawn when the file was made; a copy of the file keeps it

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        dtype: torch.dtype = getattr(torch, self.dtype)
        return HEADER + self.samples * self.width * dtype.itemsize

    def page(self) -> dict[str, Any]:
        """What the beginning of the file says."""
        return {"title": TITLE, **dataclasses.asdict(self)}


class MappedTable(HostTable):
    """A ``(samples, width)`` tensor in a file, served as by :class:`~dualogic.duals.host.HostTable`.

    A file of another owner's is refused. One with an ``identity`` must be there already; without, it is made if it is not.
    """

    def __init__(
        self,
        samples: int,
        width: int,
        dtype: torch.dtype,
        path: str | os.PathLike[str] | None,
        owner: Owner | None = None,
        identity: str | None = None,
    ) -> None:
        self.shown = "a temporary file" if path is None else path
        # Whoever opens it later may stand in another folder.
        self.path = None if path is None else os.path.abspath(path)
        self.owner_of_rows = owner or Owner()
        self._known = identity
        self.choice = "mapped" if self.path is None else None
        super().__init__(samples, width, dtype)

    def _allocate(self, samples: int, width: int, dtype: torch.dtype) -> Tensor:
        identity = self._known or uuid.uuid4().hex
        wanted = Header(samples, width, str(dtype).removeprefix("torch."), self.owner_of_rows, identity)
        self._pages, self._header = open_pages(self.path, wanted, self._known is not None)
        if hasattr(mmap, "MADV_RANDOM"):
            self._pages.madvise(mmap.MADV_RANDOM)
        if wanted.size == HEADER:
            return torch.zeros(samples, width, dtype=dtype, device="cpu")
        return torch.frombuffer(self._pages, dtype=dtype, offset=HEADER, count=samples * width).view(samples, width)

    def extend_(self, samples: int) -> None:
        """Grow the file in its place; a temporary one is copied, because it cannot be opened again."""
        if self.path is None:
            super().extend_(samples)
            return
        self.settle()
        self._pages.flush()
        self._known = grow(self.path, self._header, samples).identity
        self.values = self._allocate(samples, self.width, self.values.dtype)
        self.samples = samples

    @property
    def place(self) -> str:
        return f"in {self.shown}, for {self.device}"

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint holds; also writes the rows to the file."""
        found = super().state()
        self._pages.flush()
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process it is the same file; a temporary one cannot be opened again, so its rows travel.
        if self.path is None:
            return _in_memory, (self.__getstate__(),)
        self.settle()
        self._pages.flush()
        known = (self.path, self.owner_of_rows, self._header.identity)
        return MappedTable, (self.samples, self.width, self.values.dtype, *known), {"device": self.device}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.to_(state["device"])

    def __deepcopy__(self, memo: dict[int, Any]) -> HostTable:
        # Two tables must not write to one file: a copy is held in memory.
        state = self.__getstate__()
        return _in_memory({**state, "values": state["values"].clone()})


def _in_memory(state: dict[str, Any]) -> HostTable:
    table = HostTable.__new__(HostTable)
    table.__setstate__(state)
    return table


def open_pages(path: str | None, wanted: Header, known: bool) -> tuple[mmap.mmap, Header]:
    """The pages of a file in memory, and its header; the file is made if there is none.

    Without a path it is a temporary one, gone when the pages are. If it is ``known``, it must be that of ``wanted.identity``.
    """
    with _opened(path, known) as file:
        size = os.fstat(file.fileno()).st_size
        found = _read_page(file) if size else {}
        if not size or found == UNFINISHED:
            _make(path, file, wanted)
            header = wanted
        else:
            header = _check(path, found, size, wanted, known)
            # A copy may have left out pages of zeros.
            reserve(file, wanted.size, f"{path} has gaps")
        # The mapping keeps the file open.
        return mmap.mmap(file.fileno(), wanted.size), header


def grow(path: str, header: Header, samples: int) -> Header:
    """Make room for more samples in a file; it says that it is the shorter one until all of the longer one is there."""
    longer = dataclasses.replace(header, samples=samples)
    with _opened(path, True) as file:
        try:
            reserve(file, longer.size, f"{path} cannot grow")
        except StateError:
            file.truncate(header.size)
            raise
        os.fsync(file.fileno())
        _write_page(file, longer.page())
    return longer


def reserve(file: Any, size: int, what: str) -> None:
    """Take up ``size`` bytes of the disk for a file; what is there stays. An error's message begins with ``what``."""
    try:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except (AttributeError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            # Not known to this system, or to the file's.
            start = file.seek(0, os.SEEK_END)
            while start < size:
                start += file.write(bytes(min(1 << 20, size - start)))
            file.flush()
    except OSError as error:
        raise StateError(
            f"{what}: {format_bytes(size)} are needed on the disk and cannot be had ({error.strerror}). Make room or give a path "
            f"on another disk; dtype=torch.bfloat16 takes half of float32, num_samples=None next to nothing"
        ) from error


@contextmanager
def _opened(path: str | None, known: bool) -> Iterator[Any]:
    if path is None:
        with tempfile.TemporaryFile(prefix="dualogic-") as file:
            yield file
        return
    try:
        # Neither "r+b" (the file may be missing) nor "w+b" (it may hold rows) nor "a+b" (which writes at the end only).
        descriptor = os.open(path, os.O_RDWR | (0 if known else os.O_CREAT), 0o644)
    except FileNotFoundError as error:
        if not known:
            raise
        raise StateError(
            f"the dual variables of this LogicLoss are in {path}, which is not there; put the file back in its place, or make a "
            f"new LogicLoss and load a state_dict() that holds the table"
        ) from error
    with os.fdopen(descriptor, "r+b") as file:
        yield file


def _make(path: str | None, file: Any, header: Header) -> None:
    try:
        # Until the last moment the file says that it is not finished: one that a crash has left is made again.
        _write_page(file, UNFINISHED)
        reserve(file, header.size, f"a table of {header.samples} samples x {header.width} dual variables cannot be made")
        _write_page(file, header.page())
    except BaseException:
        if path is not None:
            os.unlink(path)
        raise


def _check(path: str | None, found: dict[str, Any], size: int, wanted: Header, known: bool) -> Header:
    title = found.get("title")
    if not isinstance(title, str) or not title.startswith(EARLIER):
        raise StateError(f"{path} is not a table of dualogic; give the path of one, or of a file to be made")
    if title != TITLE:
        raise StateError(f"{path} is a table of another version of dualogic ({title}); give another path, or delete the file")
    try:
        header = Header(**{field.name: found[field.name] for field in dataclasses.fields(Header)})
        header = dataclasses.replace(header, owner=Owner(**found["owner"]))
    except (KeyError, TypeError) as error:
        raise StateError(
            f"the header of {path} is damaged; put a whole copy in its place, or delete it to start again"
        ) from error
    again = "; give another path, or delete the file to start again"
    if (header.samples, header.width, header.dtype) != (wanted.samples, wanted.width, wanted.dtype):
        raise StateError(
            f"{path} holds {header.samples} samples x {header.width} dual variables in {header.dtype} ({size} bytes), but this "
            f"loss needs {wanted.samples} x {wanted.width} in {wanted.dtype} ({wanted.size} bytes){again}"
        )
    theirs, ours = header.owner, wanted.owner
    for what, one, other in (
        ("the rules are", theirs.rules and theirs.text, ours.rules and ours.text),
        ("the method is", theirs.method, ours.method),
        ("a row holds", theirs.rows, ours.rows),
    ):
        if one != other or (what == "the rules are" and theirs.rules != ours.rules):
            raise StateError(
                f"{path} was made for another loss: {what} {one or 'unknown'} there and {other or 'unknown'} here{again}"
            )
    if known and header.identity != wanted.identity:
        raise StateError(
            f"{path} is not the file that this LogicLoss was pickled with, but another run's; put the file back in its place, or "
            f"make a new LogicLoss and load a state_dict() that holds the table"
        )
    if size < wanted.size:  # a longer one is what an interrupted extension leaves
        raise StateError(
            f"{path} is not whole: it has {size} bytes of {wanted.size}. Put a whole copy in its place, or delete it to start "
            f"again"
        )
    return header


def _read_page(file: Any) -> dict[str, Any]:
    file.seek(0)
    try:
        found = json.loads(file.read(HEADER))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _write_page(file: Any, values: dict[str, Any]) -> None:
    file.seek(0)
    file.write(json.dumps(values, ensure_ascii=False).encode(errors="surrogatepass").ljust(HEADER))
    file.flush()
    os.fsync(file.fileno())
