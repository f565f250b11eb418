"""The official files of each data set, where they are, and downloads that continue where they stopped."""

import dataclasses
import logging
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dualogic.errors import DataError, DownloadError

MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
CIFAR = "https://www.cs.toronto.edu/~kriz"
STL10 = "http://ai.stanford.edu/~acoates/stl10"
HWF = "https://drive.google.com/file/d/1G07kw-wK-rqbg_85tuB7FNfA49q8lvoy/view"


@dataclasses.dataclass(frozen=True)
class Source:
    """One official file."""

    file: str  # its name
    url: str  # where it is fetched from, or, for a file that only a person can fetch, the page to open
    md5: str = ""  # as published; empty if none is
    by_hand: bool = False  # whether only a person can fetch it


def _at(base: str, file: str, md5: str) -> Source:
    return Source(file, f"{base}/{file}", md5)


SOURCES: Mapping[str, tuple[Source, ...]] = {
    "mnist": (
        _at(MNIST, "train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        _at(MNIST, "train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        _at(MNIST, "t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        _at(MNIST, "t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ),
    "usps": (
        _at(LIBSVM, "usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197"),
        _at(LIBSVM, "usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118"),
    ),
    "hwf": (Source("HWF.zip", HWF, by_hand=True),),
    "cifar100": (_at(CIFAR, "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"),),
    "cifar10": (_at(CIFAR, "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"),),
    "stl10": (_at(STL10, "stl10_binary.tar.gz", "91f7769df0f17e558f3565bffb0c7dfb"),),
}
OnProgress = Callable[[str, int, int], None]  # takes the file's name, the bytes that are here, and those in all (0 if unknown)
CHUNK = 1 << 14  # bytes written at a time, the most that a broken connection loses
TIMEOUT = (15, 60)
STALLS = 3  # attempts in a row that may bring nothing


def download(source: Source, folder: Path, on_progress: OnProgress | None = None) -> Path:
    """Fetch one official file, unless it is there already; an interrupted download leaves ``FILE.part``, to go on from."""
    import pooch

    fetcher = ResumingDownloader(folder / f"{source.file}.part", on_progress or (lambda file, done, total: None))
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)  # on_progress says enough
    try:
        fetched = pooch.retrieve(source.url, known_hash=f"md5:{source.md5}", fname=source.file, path=folder, downloader=fetcher)
    except ValueError as error:
        raise DataError(f"{source.url} is not the official file, or came corrupt, and was deleted: {error}") from error
    finally:
        logger.setLevel(level)
    return Path(fetched)


class ResumingDownloader:
    """A downloader for :mod:`pooch` that asks only for the bytes that ``part`` does not keep yet."""

    def __init__(self, part: Path, on_progress: OnProgress) -> None:
        self.part, self.on_progress = part, on_progress

    def __call__(self, url: str, output_file: str, pooch: object = None) -> None:
        """Fetch ``url`` into ``output_file``, in as many attempts as bring something."""
        import requests

        stalls, reason = 0, requests.RequestException()
        while stalls < STALLS:
            before, reason = self._size(), requests.ConnectionError("the server ended the file early")
            try:
                if self._attempt(url):
                    os.replace(self.part, output_file)
                    return
            except requests.RequestException as error:
                reason = error
                if error.response is not None and error.response.status_code < 500:  # asking again would not help
                    break
            stalls = stalls + 1 if self._size() <= before else 0
        kept = f"; the same command goes on after the {self._size()} bytes in {self.part}" if self._size() else ""
        raise DownloadError(f"{url} cannot be fetched ({reason}){kept}") from reason

    def _attempt(self, url: str) -> bool:
        """One request; returns whether the part is now the whole file."""
        import requests

        offset = self._size()
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={offset}-"} if offset else {})}
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable and offset:
                if _read_range(response, r"bytes \*/(\d+)$") == offset:
                    return True
                self.part.unlink()  # longer than the file: the remains of another one
                return False
            response.raise_for_status()
            partial = response.status_code == requests.codes.partial_content
            continued = partial and _read_range(response, r"bytes (\d+)-") == offset
            done = offset if continued else 0
            length = response.headers.get("Content-Length")
            total = done + int(length) if length else 0
            with self.part.open("ab" if continued else "wb") as file:
                self.on_progress(self.part.stem, done, total)
                for chunk in response.iter_content(CHUNK):
                    file.write(chunk)
                    done += len(chunk)
                    self.on_progress(self.part.stem, done, total)
                file.flush()
                os.fsync(file.fileno())
        return done >= total  # without a length the end of the connection is the end of the file; the checksum decides

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0


def _read_range(response: Any, pattern: str) -> int | None:
    """A number in what the server says about the bytes it sends."""
    found = re.match(pattern, response.headers.get("Content-Range", ""))
    return int(found[1]) if found else None
