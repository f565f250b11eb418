"""``dualogic data``."""

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import tyro

from dualogic.errors import DualogicError, MissingDataError, OptionError
from dualogic_paper.data import NAMES
from dualogic_paper.data.cache import cache_path, describe_cache, open_cache
from dualogic_paper.data.download import OnProgress
from dualogic_paper.data.fetch import get
from dualogic_paper.data.schema import check_name


@dataclasses.dataclass(frozen=True)
class Get:
    """Download the official files of data sets, check them, and convert each set to one cache.

    What is already there is left alone. An interrupted download goes on where it stopped.
    """

    names: tyro.conf.Positional[tuple[str, ...]]  # mnist, usps, hwf, cifar100, cifar10, stl10, or all.
    folder: Path | None = None  # Where the caches go: the variable DUALOGIC_DATA, or the user's cache folder, by default.
    files: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Official files that are already here: a folder, or the only file. Nothing is downloaded then."""
    keep: bool = False  # Keep the downloaded files beside the cache.
    accept_different: bool = False
    """Accept files without a published checksum whose content differs from what the results were measured on."""

    def run(self) -> int:
        """Fetch and convert; goes on after a set that fails."""
        return _for_each(_choose(self.names), self._get)

    def _get(self, name: str) -> None:
        with _progress() as on_progress:
            options = (self.folder, self.files, self.keep, self.accept_different)
            path, manifest, made = get(name, *options, on_progress=on_progress)
        print(f"{name}: {'made' if made else 'already there'}, {path} ({manifest.size / 1e6:.1f} MB)")
        if not manifest.reference:
            print(f"{name}: its content differs from what the project's results were measured on")


@dataclasses.dataclass(frozen=True)
class List:
    """Say which data sets are there, how large they are, and whether they were verified."""

    folder: Path | None = None  # Where to look: the variable DUALOGIC_DATA, or the user's cache folder, by default.

    def run(self) -> int:
        """Look, without reading the caches."""
        print(cache_path(NAMES[0], self.folder).parent)
        for name in NAMES:
            path = cache_path(name, self.folder)
            size = f"{path.stat().st_size / 1e6:.1f} MB" if path.exists() else ""
            print(f"{name:<9}{size:>9}  {describe_cache(name, self.folder)}")
        return 0


@dataclasses.dataclass(frozen=True)
class Check:
    """Read data sets from end to end and compare them with their checksums; status 1 if one is not right."""

    names: tyro.conf.Positional[tuple[str, ...]] = ()  # The sets; all that are there by default.
    folder: Path | None = None  # Where to look: the variable DUALOGIC_DATA, or the user's cache folder, by default.

    def run(self) -> int:
        """Check."""
        there = [name for name in NAMES if cache_path(name, self.folder).exists()]
        if not there and not self.names:
            raise MissingDataError(f"no data set in {cache_path(NAMES[0], self.folder).parent}; type: dualogic data get NAME")
        return _for_each(_choose(self.names) if self.names else there, self._check)

    def _check(self, name: str) -> None:
        open_cache(name, self.folder, thorough=True)
        print(f"{name}: {describe_cache(name, self.folder)}")


@dataclasses.dataclass(frozen=True)
class Data:
    """Get, list and check the data sets of the paper's experiments."""

    action: Annotated[
        Annotated[Get, tyro.conf.subcommand("get", prefix_name=False)]
        | Annotated[List, tyro.conf.subcommand("list", prefix_name=False)]
        | Annotated[Check, tyro.conf.subcommand("check", prefix_name=False)],
        tyro.conf.arg(name=""),
    ]

    def run(self) -> int:
        """Do it."""
        return self.action.run()


def _for_each(names: Sequence[str], act: Callable[[str], None]) -> int:
    """Go on after a set that fails; the exit status is 1 then."""
    failed = False
    for name in names:
        try:
            act(name)
        except (DualogicError, OSError) as error:  # such as a full disk, or a folder that may not be written to
            failed = True
            print(f"dualogic: {error}", file=sys.stderr)
    return int(failed)


def _choose(names: tuple[str, ...]) -> tuple[str, ...]:
    if "all" in names:
        return NAMES
    if not names:
        raise OptionError(f"name one or more of {', '.join(NAMES)}, or all")
    for name in names:
        check_name(name)
    return tuple(dict.fromkeys(names))


@contextmanager
def _progress() -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def show(file: str, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(file)
            progress.update(tasks[file], completed=done, total=total or None)

        yield show


COMMAND = Data
