"""A recorded folder with anything in its files: it has a page, or one line says what is wrong with it."""

import contextlib
import copy
import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualogic.errors import DataError, OptionError
from dualogic.report import make_report
from report.points import train

ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage")
    for name, method in (("none", None), ("dual", "dual")):
        train(folder / name, method, epochs=2)
    return folder


def places(value, path=()):
    """The path of everything inside of a value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in inner:
        yield from places(entry, (*path, key))


def replace(value, path, new):
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = replace(value[path[0]], path[1:], new)
    return value


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_changed_value_never_ends_in_a_crash(recorded, data):
    name = data.draw(st.sampled_from(["config.json", "metrics.jsonl", "diagnosis.json", "result.json"]))
    file = recorded / data.draw(st.sampled_from(["none", "dual"])) / name
    whole = file.read_text()
    try:
        parts = [json.loads(line) for line in whole.splitlines()] if name == "metrics.jsonl" else [json.loads(whole)]
        # As often near the top, where the form is, as deep down, where the numbers are.
        known = sorted(places(parts[0]), key=lambda path: (len(path), str(path)))
        near = [path for path in known if len(path) <= 3]
        path = data.draw(st.one_of(st.sampled_from(near), st.sampled_from(known)))
        changed = [replace(parts[0], path, data.draw(ANYTHING)), *parts[1:]]
        file.write_text("".join(json.dumps(part) + "\n" for part in changed))
        with contextlib.suppress(DataError, OptionError):
            assert make_report([recorded]).startswith("<!doctype html>")
    finally:
        file.write_text(whole)


def test_a_folder_without_any_one_file_has_a_page_or_a_message(recorded, tmp_path):
    for name in ("config.json", "metrics.jsonl", "diagnosis.json", "result.json"):
        place = shutil.copytree(recorded, tmp_path / name.partition(".")[0])
        (place / "dual" / name).unlink()
        assert make_report([place])
