"""The benchmark from the command line: make the missing runs, print the table, bring pages up to date."""

from collections.abc import Callable, Sequence

from dualogic.errors import OptionError
from dualogic_paper.commands.everyday import Everyday
from dualogic_paper.everyday.problems import PROBLEMS
from dualogic_paper.everyday.runner import Job, run_missing
from dualogic_paper.everyday.setting import METHODS, NONE, Setting
from dualogic_paper.everyday.store import Store
from dualogic_paper.everyday.table import make_tables, update_page


def execute(request: Everyday, show: Callable[[str], None]) -> int:
    """Run what is missing and show the table, line by line; the exit status is 1 if some runs could not be made."""
    problems = request.problems or tuple(PROBLEMS)
    unknown = [name for name in problems if name not in PROBLEMS]
    if unknown:
        raise OptionError(f"a problem must be one of {', '.join(PROBLEMS)}; got {', '.join(unknown)}")
    if request.jobs < 1:
        raise OptionError(f"--jobs must be 1 or more; got {request.jobs}")
    store, seeds, broken = Store(request.out), read_seeds(request.seeds), 0
    methods = [(method, weight) for weight in request.weights for method in request.methods or METHODS]
    # Training without rules is run once, whatever the weights.
    settings = list(dict.fromkeys(Setting(method, 1.0 if method == NONE else weight) for method, weight in methods))
    if not request.table:
        jobs = [Job(problem, setting, seed) for seed in seeds for problem in problems for setting in settings]
        broken = run_missing(jobs, store, request.jobs, request.commit, request.again, show)
    wanted = {(setting.method, setting.weight) for setting in settings}
    runs = [run for run in store.read() if run.problem in problems and run.seed in seeds and (run.method, run.weight) in wanted]
    show(make_tables(runs))
    for page in request.pages:
        page.write_text(update_page(page.read_text(encoding="utf-8"), runs), encoding="utf-8")
        show(f"written: {page}")
    return 1 if broken else 0


def read_seeds(words: Sequence[str]) -> list[int]:
    """Numbers and ranges as a list of seeds.

    Example:
        >>> read_seeds(["0-3", "20"])
        [0, 1, 2, 3, 20]
    """
    seeds: list[int] = []
    for word in words:
        first, _, last = word.partition("-")
        try:
            seeds.extend(range(int(first), int(last or first) + 1))
        except ValueError:
            raise OptionError(f"seeds must be numbers or ranges, as in 0-7 or 20 21; got {word!r}") from None
    return list(dict.fromkeys(seeds))
