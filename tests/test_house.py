"""What stands around the package: workflows that run everything, hooks, templates, releases by tag; and how large it is."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import yaml

from dualogic import errors

ROOT = Path(__file__).parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
LINES = {"src/dualogic": 26_400, "paper/src": 11_000}
"""The most that there may be of each, with some room; the library should shrink, to 19,000. Lower these as they do."""


def load(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def read_workflow(name):
    """The events and the one job of a workflow; YAML 1.1 reads the key ``on`` as true."""
    workflow = load(f".github/workflows/{name}.yml")
    (job,) = workflow["jobs"].values()
    return workflow[True], job


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def test_every_claimed_python_and_the_oldest_and_newest_torch_run_everything():
    events, job = read_workflow("ci")
    assert {"push", "pull_request"} <= set(events)
    assert commands(job)[-1] == ".ci/run"
    matrix = job["strategy"]["matrix"]
    assert matrix["python"] == re.findall(r'Python :: (3\.\d+)"', PROJECT)
    pinned = re.search(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE)
    assert matrix["torch"] == [pinned[1]]
    (oldest,) = matrix["include"]
    assert oldest["torch"].startswith(re.search(r'"torch>=([\d.]+)"', PROJECT)[1] + ".")
    assert oldest["python"] == re.search(r'requires-python = ">=([\d.]+)"', PROJECT)[1]


def test_the_step_that_chooses_torch_changes_its_line_alone(tmp_path):
    _, job = read_workflow("ci")
    (command,) = (command for command in commands(job) if command.startswith("sed "))
    pins = (ROOT / "constraints.txt").read_text()
    (tmp_path / "constraints.txt").write_text(pins)
    subprocess.run(command.replace("${{ matrix.torch }}", "9.8.7"), shell=True, check=True, cwd=tmp_path)
    before, after = pins.splitlines(), (tmp_path / "constraints.txt").read_text().splitlines()
    assert [new for old, new in zip(before, after, strict=True) if old != new] == ["torch==9.8.7"]


def test_everything_is_a_program_and_its_targets_exist():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    targets = re.findall(r"^make (\w[\w-]*)", script.read_text(), flags=re.MULTILINE)
    assert {"lint", "docs", "test", "test-paper"} <= set(targets)
    assert all(re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE) for target in targets)


def test_a_tag_is_checked_before_it_is_released():
    events, job = read_workflow("release")
    assert events == {"push": {"tags": ["v*"]}}
    order = [
        next(i for i, step in enumerate(commands(job)) if word in step) for word in ("hatchling version", ".ci/run", "gh release")
    ]
    assert order == sorted(order)


@pytest.mark.parametrize("version", ["7.8.9", "0.0.1rc1"])
def test_the_version_is_that_of_the_tag(tmp_path, version):
    """The commands of the release, on a copy of what they read."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    source = tmp_path / "src" / "dualogic" / "__init__.py"
    source.parent.mkdir(parents=True)
    source.write_text((ROOT / "src" / "dualogic" / "__init__.py").read_text())
    _, job = read_workflow("release")
    (line,) = re.findall(r"-m hatchling version .+", "\n".join(commands(job)))
    for _ in range(2):  # also where the version stands there already
        shell = ["bash", "-c", f'"{sys.executable}" {line}']
        subprocess.run(shell, check=True, capture_output=True, cwd=tmp_path, env={**os.environ, "GITHUB_REF_NAME": f"v{version}"})
    shown = subprocess.run(
        [sys.executable, "-m", "hatchling", "version"], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert shown.stdout.strip() == version
    assert f'\n__version__ = "{version}"\n' in source.read_text()


def test_hooks_run_the_checks_of_make_lint():
    (local,) = load(".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local", "programs of .venv, so that versions are pinned in one place"
    entries = " ".join(hook["entry"] for hook in local["hooks"])
    recipe = re.search(r"^lint:.*\n((?:\t.+\n)+)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)[1]
    for program in re.findall(r"\$\(BIN\)/((?:ruff )?\w+)", recipe):
        assert f".venv/bin/{program}" in entries


def test_templates_have_what_their_reader_looks_for():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
    assert len(forms) >= 3
    for form in forms:
        _, head, body = form.read_text(encoding="utf-8").split("---\n", 2)
        assert {"name", "about"} <= set(yaml.safe_load(head))
        assert "**" in body
    for text in ("SECURITY.md", ".github/pull_request_template.md"):
        assert (ROOT / text).read_text(encoding="utf-8").strip()


def test_a_deprecation_names_the_line_of_the_user_and_what_to_write():
    def old():
        errors.deprecated("old()", instead="new()", since="0.2", until="0.4")

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        old()
    (warning,) = heard
    assert warning.category is FutureWarning
    assert warning.filename == __file__
    assert str(warning.message) == "old() is deprecated since dualogic 0.2 and will be gone in 0.4; write new() instead"


@pytest.mark.parametrize(("folder", "bound"), LINES.items())
def test_the_number_of_lines(folder, bound):
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py"))
    print(f"{folder}: {lines:,} lines of at most {bound:,}")
    assert lines <= bound
