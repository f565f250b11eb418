"""The conditions of every test; those of ``paper/`` have the same."""

import conditions

_seed = conditions._seed
_needs_pysdd = conditions._needs_pysdd
pytest_collection_modifyitems = conditions.pytest_collection_modifyitems
collect_ignore_glob = conditions.collect_ignore_glob
