"""Every error that dualogic raises on purpose, its two warnings, and how a name is taken out of use.

Each class is a :class:`DualogicError` *and* the built-in exception that a Python user would expect, so both
``except dualogic.errors.DualogicError`` and ``except ValueError`` work. A message always says what was expected,
what came instead, where (the symbol or the sub-formula), and what to do about it.
"""

from __future__ import annotations

import contextlib
import difflib
import warnings
from collections.abc import Iterable, Iterator


class DualogicError(Exception):
    """Base class of all errors raised by dualogic."""


class FormulaTypeError(DualogicError, TypeError):
    """Something that is not a formula, a term or a class stands where one is needed."""


class ShapeError(DualogicError, ValueError):
    """Axes that cannot be broadcast, indexed or reduced as asked."""


class SymbolError(DualogicError, ValueError):
    """A symbol is declared or bound wrongly: a reserved name, a class out of range, a missing tensor."""


class BindingError(DualogicError, ValueError):
    """A bound tensor does not fit the declaration of its symbol."""


class SizeError(DualogicError, ValueError):
    """A pass would make a formula larger than its guard allows."""


class SampleIndexError(DualogicError, IndexError):
    """The sample index is missing, of the wrong kind, or past the end of the table."""


class NonFiniteError(DualogicError, ArithmeticError):
    """A cost is infinite or not a number."""


class OptionError(DualogicError, ValueError):
    """An option of a method or of the loss has a value that makes no sense."""


class StateError(DualogicError, RuntimeError):
    """A call that does not fit the state of the loss, such as ``step()`` before any ``forward``."""


class ShortcutWarning(UserWarning):
    """A rule teaches nothing, or is being satisfied by a shortcut; see ``docs/monitor.md``."""


class MistakeWarning(UserWarning):
    """What can be computed but is probably not what was meant, such as probabilities that are declared as logits.

    Each is told once for a loss. ``warnings.filterwarnings("ignore", category=dl.errors.MistakeWarning)`` silences them all.
    """


class MissingExtraError(DualogicError, ImportError):
    """An optional dependency is not installed."""


def how_to_install(extra: str) -> str:
    """What to type for an extra, from a clone; the extra ``"paper"`` is the reproduction, a distribution of its own."""
    return f"type, in a clone of dualogic: pip install -e {extra if extra == 'paper' else repr(f'.[{extra}]')}"


@contextlib.contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Tell what to install if an import inside fails; ``what`` says what it is for."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(f"{what}; {how_to_install(extra)}") from error


class DataError(DualogicError, ValueError):
    """A data file that is corrupt, partial or of another form than documented."""


class MissingDataError(DualogicError, FileNotFoundError):
    """A data set that is not in the folder."""


class DownloadError(DualogicError, OSError):
    """An official file that cannot be fetched."""


class ParseError(DualogicError, ValueError):
    """Text that cannot be read as a rule; the message shows the line with a mark under the place.

    Attributes:
        path: the rule file, or ``None`` for text that came from elsewhere.
        line: the line, counted from 1.
        column: the character within the line, counted from 1.
        reason: the message without the place.
    """

    path: str | None = None
    line: int = 1
    column: int = 1
    reason: str = ""


def deprecated(what: str, *, instead: str, since: str, until: str) -> None:
    """Tell the caller of the caller that something will go; see "Deprecations" in ``CONTRIBUTING.md``.

    ``what`` is the function, argument or value, as it is written, and ``instead`` what to write in its place. ``since`` is the
    first version that says so, ``until`` the first one without it.
    """
    # FutureWarning, because Python hides a DeprecationWarning from all but the script that is run.
    text = f"{what} is deprecated since dualogic {since} and will be gone in {until}; write {instead} instead"
    warnings.warn(text, FutureWarning, stacklevel=3)


def suggest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'f'?`` for the known names nearest to a word, or nothing."""
    folded = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(folded), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(folded[name]) for name in near)}?" if near else ""
