"""From the official files to a cache."""

import contextlib
import shutil
from pathlib import Path

from dualogic.errors import DataError, DualogicError, MissingDataError
from dualogic_paper.data.cache import Manifest, cache_path, hash_file, open_cache, write_cache
from dualogic_paper.data.convert import convert
from dualogic_paper.data.download import SOURCES, OnProgress, Source, download
from dualogic_paper.data.schema import REFERENCE, digest_content

MOST_BYTES = 4 << 30


def get(
    name: str,
    folder: Path | None = None,
    files: Path | None = None,
    keep: bool = False,
    accept_different: bool = False,
    *,
    on_progress: OnProgress | None = None,
) -> tuple[Path, Manifest, bool]:
    """Make sure that the cache of a data set is there, and return it, what is known about it, and whether it was made now.

    ``files`` is a folder with the official files, or the only one of them; by default they are downloaded, and kept if ``keep``.
    """
    path = cache_path(name, folder)
    with contextlib.suppress(DualogicError):  # absent, or not to be read: made anew
        manifest = open_cache(name, path.parent)[1]
        if not manifest.sample:
            return path, manifest, False
    by_hand = [source for source in SOURCES[name] if source.by_hand]
    if files is None and by_hand:
        pages = " and ".join(f"{source.file} from {source.url}" for source in by_hand)
        raise MissingDataError(f"{name} has to be fetched by hand: save {pages}, then type: dualogic data get {name} --from FILE")
    path.parent.mkdir(parents=True, exist_ok=True)
    downloads = path.parent / "downloads" / name
    official = {
        source.file: download(source, downloads, on_progress) if files is None else _find(source, Path(files))
        for source in SOURCES[name]
    }
    arrays = convert(name, official)
    checked = all(source.md5 for source in SOURCES[name])
    if not checked and not accept_different and digest_content(name, arrays) != REFERENCE[name]:
        named = ", ".join(map(str, official.values()))
        raise DataError(
            f"{named} gives other content than the {name} that the project's results were measured on; "
            "if it is the right file all the same, add --accept-different"
        )
    sources = {source.url: f"sha256:{hash_file(official[source.file])}" for source in SOURCES[name]}
    _, manifest = write_cache(name, arrays, path.parent, sources=sources)
    if files is None and not keep:
        shutil.rmtree(downloads, ignore_errors=True)
    return path, manifest, True


def _find(source: Source, files: Path) -> Path:
    path = files / source.file if files.is_dir() else files
    if not path.is_file():
        raise MissingDataError(f"no {path}; it is the official file at {source.url}")
    if path.stat().st_size > MOST_BYTES:
        raise DataError(
            f"{path} has {path.stat().st_size:,} bytes, more than any official file; it should be that at {source.url}"
        )
    if source.md5 and (actual := hash_file(path, "md5")) != source.md5:
        raise DataError(f"{path} is not the official file, or corrupt: its MD5 is {actual}, not {source.md5} ({source.url})")
    return path
