"""``dualogic lint``."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tyro.conf import Positional

from dualogic.cli.dispatch import describe, require

if TYPE_CHECKING:
    from dualogic.lint.finding import FileReport


@dataclasses.dataclass(frozen=True)
class Lint:
    """Find what is wrong with the rules of files before a network is trained with them.

    Rules that cannot hold, clash or say nothing, parts that can never hold, costs that mislead. The exit status is 0 if there is
    nothing above "info", 1 if there are warnings or errors, and 2 if a file cannot be read.
    """

    files: Positional[tuple[Path, ...]]
    """Rule files."""
    format: Literal["text", "json", "sarif"] = "text"
    """How findings are printed."""
    timeout: float = 3.0
    """Seconds for each question to the solver; what takes longer is reported as unknown."""

    def run(self) -> int:
        """Check every file and print what was found."""
        require("rules", "lark")
        require("lint", "z3")
        import dualogic
        from dualogic.lint.finding import to_json, to_sarif, to_text

        if not self.files:
            print("dualogic: lint needs at least one rule file", file=sys.stderr)
            return 2
        reports = [self._check(path) for path in self.files]
        if self.format == "sarif":
            print(to_sarif(reports, dualogic.__version__))
        else:
            print(to_json(reports) if self.format == "json" else to_text(reports))
        if any(report.problem is not None for report in reports):
            return 2
        return int(any(finding.severity != "info" for report in reports for finding in report.findings))

    def _check(self, path: Path) -> FileReport:
        from dualogic.errors import DualogicError, OptionError
        from dualogic.lint.check import lint
        from dualogic.lint.finding import FileReport
        from dualogic.text.rule_set import load_rules

        try:
            rules = load_rules(path)
            return FileReport(str(path), rules.lines, lint(rules, timeout=self.timeout))
        except OptionError:
            raise
        except RecursionError:
            said = "a rule is nested too deeply; name its parts with let"
        except (DualogicError, OSError) as error:
            said = describe(error)
        problem = said if str(path) in said else f"{path}: {said}"
        print(f"dualogic: {problem}", file=sys.stderr)
        return FileReport(str(path), {}, [], problem)


COMMAND = Lint
