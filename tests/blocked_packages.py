"""Run code as if only some extras were installed."""

import functools
import importlib.metadata
import os
import re
import subprocess
import sys

from packaging.requirements import Requirement

BLOCK = """
import importlib.metadata, sys
modules, hidden = (words.split() for words in sys.argv[1:3])
sys.argv[1:] = sys.argv[3:]
sys.modules.update(dict.fromkeys(modules))
find = importlib.metadata.Distribution.from_name.__func__
def from_name(kind, name):  # some packages look for a distribution, and then import it
    if name.lower().replace("_", "-") in hidden:
        raise importlib.metadata.PackageNotFoundError(name)
    return find(kind, name)
importlib.metadata.Distribution.from_name = classmethod(from_name)
"""
RUN = """
import shlex
from dualogic.cli import main
sys.exit(max(main(shlex.split(words)) for words in sys.argv[1:]))
"""


@functools.cache
def closure(extras, package="dualogic"):
    """The distributions that ``pip install 'PACKAGE[EXTRAS]'`` brings."""
    found, waiting = set(), [(package, frozenset(extras.split(",")))]
    while waiting:
        name, chosen = waiting.pop()
        if (name, chosen) in found:
            continue
        found.add((name, chosen))
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:  # for another system
            continue
        for text in requirements:
            requirement = Requirement(text)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in (*chosen, "")):
                waiting.append((canonical(requirement.name), frozenset(requirement.extras)))
    return {name for name, _ in found}


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def others(extras, package="dualogic"):
    """The modules and distributions that come with all extras, and not with these."""
    missing = closure("all") | closure("", "dualogic-paper")
    missing -= closure(extras, package)
    found = importlib.metadata.packages_distributions()
    return sorted(name for name, owners in found.items() if {canonical(owner) for owner in owners} <= missing), sorted(missing)


def run(code, extras, *words, cwd, package="dualogic"):
    modules, hidden = others(extras, package)
    call = [sys.executable, "-W", "ignore", "-c", BLOCK + code, " ".join(modules), " ".join(hidden), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DUALOGIC_DATA": str(cwd)}
    return subprocess.run(call, capture_output=True, text=True, check=False, cwd=cwd, env=environment)
