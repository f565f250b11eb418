"""All attacks at length; see ``make attack``. Ends with status 1 if the library failed in one of them.

Call: ``python tests/attacks/run.py [--formulas N] [--rule-sets N] [--kills N] [--inputs N] [--seed N]``; 0 leaves one out.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PAPER = HERE.parents[1] / "paper" / "tests" / "attacks"
RULE_SETS = """
import sys
from dualogic.lint import gradient
from lint.test_brute_force import check_rule_sets
gradient.check_gradient = lambda *_: []
print(dict(check_rule_sets(int(sys.argv[1]), int(sys.argv[2]))))
"""


def start(*words):
    """Run a program with the tests' folder on its path; what it printed last, or ``None`` if it failed."""
    path = os.pathsep.join([str(HERE.parent), str(PAPER.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "DUALOGIC_COMMIT": "attack"}
    done = subprocess.run([sys.executable, *map(str, words)], env=environment, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.splitlines()[-1] if done.returncode == 0 and done.stdout else None


def main():
    """Make the attacks, and print a line for each."""
    parser = argparse.ArgumentParser(description="Attack the library with random and hostile inputs.")
    parser.add_argument("--formulas", type=int, default=100_000, help="random formulas against the independent evaluator")
    parser.add_argument("--rule-sets", type=int, default=2_000, help="random rule sets for lint against enumeration")
    parser.add_argument("--kills", type=int, default=50, help="runs killed at random moments and started again")
    parser.add_argument("--inputs", type=int, default=500, help="hostile rule files, options, run folders and caches")
    parser.add_argument("--seed", type=int, default=0, help="of all draws")
    options = parser.parse_args()
    held = True
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if options.formulas:
            said = start(HERE / "formulas.py", options.formulas, options.seed)
            held &= said is not None
            print(said or "formulas: a mismatch", flush=True)
        if options.rule_sets:
            said = start("-c", RULE_SETS, options.rule_sets, options.seed)
            held &= said is not None
            print(f"lint: {options.rule_sets:,} rule sets: {said or 'a mismatch'}", flush=True)
        if options.kills:
            (folder / "kills").mkdir()
            said = json.loads(start(PAPER / "kills.py", folder / "kills", options.kills, options.seed) or "{}")
            held &= said.get("same") == said.get("clean") == options.kills
            print(f"kills: {options.kills} runs: {said}", flush=True)
        if options.inputs:
            (folder / "hostile").mkdir()
            said = json.loads(start(PAPER / "hostile.py", folder / "hostile", options.inputs, options.seed) or "{}")
            held &= said.get("faults") == 0
            print(f"hostile inputs: {said}", flush=True)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
