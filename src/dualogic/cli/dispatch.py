"""Find the command, parse its arguments, run it, and turn expected errors into one line."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from dualogic import __version__
from dualogic.cli import commands
from dualogic.errors import DualogicError, MissingExtraError, how_to_install

DESCRIPTION = "Teach neural networks logical rules without letting them cheat. --version says which version this is."
PLAINLY = {
    RecursionError: "the input is nested too deeply",
    MemoryError: "the input needs more memory than there is",
    KeyboardInterrupt: "interrupted; a run goes on where it was when started again",
}
"""What errors of Python mean to who types commands."""
GROUP = "dualogic.commands"  # entry points by which other packages add commands


class Command(Protocol):
    """A parsed command: a dataclass whose fields are its options and whose docstring is its help."""

    def run(self) -> int: ...  # do it, and return the exit status


def find_commands(word: str | None = None) -> dict[str, Callable[..., Command]]:
    """The commands by name; those of other packages only if ``word`` asks for them, or for nothing that there is.

    Those of this package are the attribute ``COMMAND`` of each module of :mod:`dualogic.cli.commands`. Other packages add
    theirs by entry points of the group ``dualogic.commands``.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(commands.__path__))
    own = {name: importlib.import_module(f"{commands.__name__}.{name}").COMMAND for name in names}
    entries = {entry.name: entry for entry in importlib.metadata.entry_points(group=GROUP) if entry.name not in own}
    chosen = entries.keys() & {word} if word in {*own, *entries} else entries.keys()
    return dict(sorted({**own, **{name: entries[name].load() for name in chosen}}.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default with the words of the process after ``dualogic``.

    Returns:
        The exit status: 0, or 1 after an error that is explained on stderr. Words that cannot be parsed leave with
        status 2, an interruption with 130.
    """
    if list(sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        print(f"dualogic {__version__}")
        return 0
    try:
        return _parse(arguments).run()
    except BrokenPipeError:  # who reads the output has seen enough
        with contextlib.suppress(OSError):  # so that nothing is flushed into the pipe at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (DualogicError, OSError, RecursionError, MemoryError, KeyboardInterrupt) as error:
        print(f"dualogic: {describe(error)}", file=sys.stderr)
        return 130 if isinstance(error, KeyboardInterrupt) else 1


def describe(error: BaseException) -> str:
    """An expected error as one would say it."""
    if isinstance(error, OSError) and not isinstance(error, DualogicError) and None not in (error.filename, error.strerror):
        return f"{error.filename}: {error.strerror}"
    return next((text for kind, text in PLAINLY.items() if isinstance(error, kind)), str(error))


def _parse(arguments: Sequence[str] | None) -> Command:
    require("cli", "tyro", "rich")
    import tyro

    words = sys.argv[1:] if arguments is None else arguments
    command: Command = tyro.extras.subcommand_cli_from_dict(
        find_commands(words[0] if words else None),
        prog="dualogic",
        description=DESCRIPTION,
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff, tyro.conf.CascadeSubcommandArgs),
    )
    return command


def require(extra: str, *packages: str) -> None:
    """Refuse to go on, before any work, without packages that an extra of dualogic installs; says the line to type."""
    if missing := [package for package in packages if importlib.util.find_spec(package) is None]:
        verb = "is" if len(missing) == 1 else "are"
        raise MissingExtraError(f"{', '.join(missing)} {verb} not installed; {how_to_install(extra)}")
