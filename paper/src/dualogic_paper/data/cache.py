"""One ``.npz`` file per data set, and the small file beside it that says what it must be: found, checked, read, written.

The size is compared with the manifest's every time, the checksum whenever the file has changed since the last comparison. A
cache without a manifest is accepted if its content is that of the real set, or if it is marked as a sample.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from dualogic.errors import DataError, MissingDataError
from dualogic.files import check_regular, read_bytes, write_whole
from dualogic_paper.data.schema import REFERENCE, SAMPLE_KEY, SHAPES, Arrays, Entry, check_name, check_schema, digest_content

CONVERTER = 1  # raised when a converter would write other content from the same official files
MOST_BYTES = 1 << 20  # of a manifest


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What is known about a cache."""

    sha256: str  # of the ``.npz`` file
    size: int  # of the ``.npz`` file, in bytes
    content: str  # digest of the arrays, see :func:`~dualogic_paper.data.schema.digest_content`
    reference: bool  # whether the content is the one that the project's results were measured on
    sample: bool = False  # whether this is a small stand-in and not the real set
    sources: dict[str, str] = dataclasses.field(default_factory=dict)  # official files, with checksums; empty if it was found
    converter: int = CONVERTER  # version of the code that made it
    modified: int = 0  # the file's time of change, in nanoseconds, when ``sha256`` was last compared with it

    @staticmethod
    def path(cache: Path) -> Path:
        """Where the manifest of a cache lies."""
        return cache.with_suffix(".json")

    @classmethod
    def read(cls, cache: Path) -> Manifest | None:
        """The manifest beside a cache, or ``None`` without one; refuses what cannot be read as a manifest."""
        path = cls.path(cache)
        try:
            manifest = cls(**json.loads(read_bytes(path, MOST_BYTES).decode("utf-8")))
            kinds = {field.name: str(field.type).split("[")[0] for field in dataclasses.fields(cls)}
            wrong = [name for name, kind in kinds.items() if type(getattr(manifest, name)).__name__ != kind]
            if wrong:
                raise TypeError(", ".join(wrong))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, RecursionError) as error:
            raise DataError(
                f"{path} is not a manifest ({error}); delete it, and {cache.name} is checked by its content"
            ) from error
        return manifest

    def write(self, cache: Path) -> None:
        """Put the manifest beside its cache in one step."""
        with write_whole(self.path(cache)) as file:
            file.write((json.dumps(dataclasses.asdict(self), indent=2) + "\n").encode())


def hash_file(file: IO[bytes] | Path, algorithm: str = "sha256") -> str:
    """Digest of a file; one that is open is read from its beginning, and left there."""
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return hash_file(opened, algorithm)
    digest = hashlib.new(algorithm)
    file.seek(0)
    while block := file.read(1 << 20):
        digest.update(block)
    file.seek(0)
    return digest.hexdigest()


def cache_path(name: str, folder: Path | None = None) -> Path:
    """The file of a data set's cache, whether it exists or not.

    The folder is by default ``DUALOGIC_DATA`` of the environment if it is set, the user's cache folder otherwise.
    """
    check_name(name)
    chosen = folder or os.environ.get("DUALOGIC_DATA")
    if not chosen:
        import pooch

        chosen = pooch.os_cache("dualogic")
    return Path(chosen).expanduser() / f"{name}.npz"


def load(name: str, folder: Path | None = None) -> Arrays:
    """The arrays that :data:`dualogic_paper.data.SHAPES` lists under a name; for the folder see :func:`cache_path`."""
    return open_cache(name, folder)[0]


def open_cache(name: str, folder: Path | None = None, *, thorough: bool = False) -> tuple[Arrays, Manifest]:
    """Read a data set and what is known about its file; ``thorough`` compares the checksum of an unchanged file too."""
    path = cache_path(name, folder)
    try:
        check_regular(path)
        file = path.open("rb")
    except FileNotFoundError:
        option = f" --folder {path.parent}" if folder is not None else ""
        raise MissingDataError(f"no {path}; type: dualogic data get {name}{option}") from None
    with file:
        status = os.fstat(file.fileno())
        manifest = Manifest.read(path)
        if manifest is None:
            arrays, sample = _read_arrays(name, file, path)
            content = digest_content(name, arrays)
            if not sample and content != REFERENCE[name]:
                raise DataError(
                    f"{path} has the form of {name} but not its content (digest {content}, expected {REFERENCE[name]}), and no "
                    f"manifest says where it came from; {_way_out(path)}"
                )
            size, modified = status.st_size, status.st_mtime_ns
            manifest = Manifest(hash_file(file), size, content, not sample, sample, modified=modified)
            _remember(manifest, path)
            return arrays, manifest
        if status.st_size != manifest.size:
            raise DataError(f"{path} has {status.st_size} bytes, not {manifest.size}: partial or replaced; {_way_out(path)}")
        if thorough or status.st_mtime_ns != manifest.modified:
            actual = hash_file(file)
            if actual != manifest.sha256:
                raise DataError(f"{path} is corrupt: its SHA-256 is {actual}, not {manifest.sha256}; {_way_out(path)}")
            manifest = dataclasses.replace(manifest, modified=status.st_mtime_ns)
            _remember(manifest, path)
        arrays, sample = _read_arrays(name, file, path)
        if sample != manifest.sample:
            raise DataError(f"{path} and {Manifest.path(path).name} disagree on whether it is a sample; {_way_out(path)}")
        return arrays, manifest


def describe_cache(name: str, folder: Path | None = None) -> str:
    """What can be said about a cache in a few words, without reading it."""
    path = cache_path(name, folder)
    if not path.exists():
        return "absent"
    try:
        manifest = Manifest.read(path)
    except DataError as error:
        return f"refused: {error}"
    if manifest is None:
        return "not checked yet"
    status = path.stat()
    if status.st_size != manifest.size:
        return "refused: partial or replaced"
    checked = "verified" if status.st_mtime_ns == manifest.modified else "changed since it was verified"
    if manifest.sample:
        return f"{checked}, a sample and not the real set"
    return checked if manifest.reference else f"{checked}, other content than the results were measured on"


def write_cache(
    name: str,
    arrays: Mapping[str, NDArray[np.generic]],
    folder: Path,
    *,
    sources: Mapping[str, str] | None = None,
    sample: bool = False,
) -> tuple[Path, Manifest]:
    """Check arrays and write them as the cache of a data set, whole or not at all, with its manifest beside it."""
    path = cache_path(name, folder)
    check_schema(name, arrays, sample=sample, where=f"what would become {path}")
    mark = {SAMPLE_KEY: np.array(True)} if sample else {}
    # Between these steps there is never a manifest beside a file that it does not describe.
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_whole(path) as file:
        np.savez(file, **arrays, **mark)  # type: ignore[arg-type]  # numpy's stub takes the keywords for allow_pickle
        file.flush()
        content, size = digest_content(name, arrays), os.fstat(file.fileno()).st_size
        checksum = hash_file(Path(file.name))
        manifest = Manifest(checksum, size, content, content == REFERENCE[name], sample, dict(sources or {}))
        Manifest.path(path).unlink(missing_ok=True)
    manifest = dataclasses.replace(manifest, modified=path.stat().st_mtime_ns)
    manifest.write(path)
    return path, manifest


def _read_arrays(name: str, file: IO[bytes], path: Path) -> tuple[Arrays, bool]:
    try:
        with zipfile.ZipFile(file) as members:
            for member in members.infolist():
                _check_claim(name, members, member, path)
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except DataError:
        raise
    except (ValueError, OSError, EOFError, KeyError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is not a whole .npz file ({error}); {_way_out(path)}") from error
    sample = arrays.pop(SAMPLE_KEY, None) is not None
    check_schema(name, arrays, sample=sample, where=str(path))
    return arrays, sample


def _check_claim(name: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> None:
    """Refuse an array that claims more memory than the real set needs, before any of it is read."""
    key = member.filename.removesuffix(".npy")
    entry = Entry((), "bool") if key == SAMPLE_KEY else SHAPES[name].get(key)
    if entry is None:
        raise DataError(f"{path} is not a cache of {name}: {key[:100]} should not be there; {_way_out(path)}")
    with archive.open(member) as header:
        if np.lib.format.read_magic(header) != (1, 0):
            raise ValueError(f"{key} has a header of another version")
        shape, _, dtype = np.lib.format.read_array_header_1_0(header)
    claimed = math.prod(shape) * dtype.itemsize
    most = math.prod(entry.shape) * np.dtype(entry.dtype).itemsize
    if min(shape, default=0) < 0 or claimed > most:
        raise DataError(f"{path} is not a cache of {name}: {key} claims {claimed:,} bytes, more than {most:,}; {_way_out(path)}")


def _remember(manifest: Manifest, path: Path) -> None:
    with contextlib.suppress(OSError):  # a folder that cannot be written to only costs the comparison each time
        manifest.write(path)


def _way_out(path: Path) -> str:
    return f"delete it and type: dualogic data get {path.stem} --folder {path.parent}"
