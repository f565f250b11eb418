"""Errors as one would say them, and packages that are missing."""

import pytest

from dualogic.cli.dispatch import describe, require
from dualogic.errors import MissingExtraError


def test_an_error_of_a_file_names_the_file():
    assert describe(FileNotFoundError(2, "No such file or directory", "a.rules")) == "a.rules: No such file or directory"


def test_the_line_to_type_is_given():
    require("cli", "json")
    with pytest.raises(MissingExtraError, match=r"no_such_package is not installed; .* pip install -e '\.\[cli\]'"):
        require("cli", "json", "no_such_package")
