"""The small file beside a cache that says what the cache must be."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import IO

from dualogic.errors import DataError
from dualogic.files import read_bytes, write_whole

CONVERTER = 1
"""Raised when a converter would write other content from the same official files."""

MOST_BYTES = 1 << 20
"""Of a manifest."""


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What is known about a cache."""

    sha256: str  # of the ``.npz`` file
    size: int  # of the ``.npz`` file, in bytes
    content: str  # digest of the arrays, see :func:`dualogic_paper.data.content.digest_content`
    reference: bool  # whether the content is the one that the project's results were measured on
    sample: bool = False  # whether this is a small stand-in and not the real set
    # the official files it was made from, with their checksums; empty for a cache that was found
    sources: dict[str, str] = dataclasses.field(default_factory=dict)
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


def hash_file(file: IO[bytes], algorithm: str = "sha256") -> str:
    """Digest of an open file from its beginning; leaves it at the beginning."""
    digest = hashlib.new(algorithm)
    file.seek(0)
    while block := file.read(1 << 20):
        digest.update(block)
    file.seek(0)
    return digest.hexdigest()
