"""``python -m dualogic_paper.everyday``: the same as ``dualogic everyday``, with torch and numpy alone."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dualogic.errors import DualogicError
from dualogic_paper.commands.everyday import Everyday
from dualogic_paper.everyday.problems import PROBLEMS
from dualogic_paper.everyday.setting import METHODS


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse and execute; the exit status."""
    parser = argparse.ArgumentParser("python -m dualogic_paper.everyday", description="Everyday problems, every method.")
    add = parser.add_argument
    add("--problems", nargs="+", default=[], metavar="PROBLEM", help=f"of {', '.join(PROBLEMS)}; all by default")
    add("--methods", nargs="+", default=[], metavar="METHOD", help=f"of {', '.join(METHODS)}, or as dual:share=0.02")
    add("--weights", nargs="+", type=float, default=[1.0], metavar="WEIGHT", help="of the loss of the rules")
    add("--seeds", nargs="+", default=["0-7"], metavar="SEED", help="numbers and ranges, as in 0-7 or 20 21")
    add("--jobs", type=int, default=1, help="runs at a time")
    add("--out", type=Path, default=Everyday.out, help="the folder of results; runs that it has are not repeated")
    add("--table", action="store_true", help="only print what the folder holds")
    add("--again", action="store_true", help="make runs anew that the folder has")
    add("--commit", help="to note with the runs; asked of git by default")
    add("--pages", nargs="+", type=Path, default=[], metavar="FILE", help="pages whose tables are made anew from what is shown")
    try:
        return Everyday(**vars(parser.parse_args(arguments))).run()
    except DualogicError as error:
        print(f"everyday: {error}", file=sys.stderr)  # noqa: T201
        return 1


if __name__ == "__main__":
    sys.exit(main())
