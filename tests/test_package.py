"""The wheel and the source archive hold what they should, and the files around the package agree with it."""

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import dualogic as dl

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "dualogic"
USE = """
import dualogic as dl
print(dl.__file__)
print(dl.parse("if a then b", {"a": dl.boolean("a"), "b": dl.boolean("b")}))
"""


def package_files(folder):
    return {f"dualogic/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*") if path.is_file()}


def without_caches(names):
    return {name for name in names if "__pycache__" not in name}


def build(kind, root, folder):
    """Build without a network or another process; the path of what was built."""
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    builder = {"wheel": WheelBuilder, "sdist": SdistBuilder}[kind](str(root))
    (path,) = builder.build(directory=str(folder), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(folder)
    (root,) = folder.iterdir()
    return root


@pytest.fixture(scope="module")
def wheel(unpacked, tmp_path_factory):
    """Built from the unpacked source archive, as an index or a distribution would."""
    return build("wheel", unpacked, tmp_path_factory.mktemp("wheel"))


def test_the_source_archive_is_enough_to_work_with(unpacked):
    assert unpacked.name == f"dualogic-{dl.__version__}"
    names = {path.name for path in unpacked.iterdir()}
    assert {"src", "tests", "docs", "examples", "paper", "mkdocs.yml", "constraints.txt", ".ci", ".github"} <= names
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "pyproject.toml", "PKG-INFO"} <= names
    assert package_files(unpacked / "src" / "dualogic") == without_caches(package_files(PACKAGE))


def test_archives_hold_no_data_or_leftovers(sdist, wheel):
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    with zipfile.ZipFile(wheel) as archive:
        names += archive.namelist()
    leftovers = [name for name in names if re.search(r"\.(npz|npy|pt|pth|ckpt|pyc)$|/(\.venv|runs|site|carry)/", name)]
    # The everyday problems of paper/ bring three small tables, so that they run where nothing can be installed.
    assert {Path(name).name for name in leftovers if "/everyday/data/" in name} == {"beliefs.npz", "digits.npz", "tumours.npz"}
    assert not [name for name in leftovers if "/everyday/data/" not in name]


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    own = {name for name in names if not name.startswith(f"dualogic-{dl.__version__}.dist-info/")}
    assert own == without_caches(package_files(PACKAGE))
    assert {"dualogic/py.typed", "dualogic/text/grammar.lark"} <= own


def test_the_wheel_holds_no_experiment(wheel):
    """The paper's tasks, everyday problems, benchmarks and results are a distribution of their own."""
    paper = ROOT / "paper" / "src" / "dualogic_paper"
    experiments = {path.parent.name for path in paper.glob("*/__init__.py")} - {
        path.parent.name for path in PACKAGE.rglob("__init__.py")
    }
    with zipfile.ZipFile(wheel) as archive:
        folders = {folder for name in archive.namelist() for folder in Path(name).parent.parts}
    assert {"tasks", "everyday", "speed"} <= experiments
    assert not folders & {*experiments, "dualogic_paper", "experiments", "results", "tests"}


def test_metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"dualogic-{dl.__version__}.dist-info/METADATA").decode()
        commands = archive.read(f"dualogic-{dl.__version__}.dist-info/entry_points.txt").decode()
    metadata = email.message_from_string(text)
    assert metadata["Version"] == dl.__version__
    assert metadata["Requires-Python"] == ">=3.10"
    needed = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert [line.split(">")[0] for line in needed] == ["torch"], "the core needs torch alone"
    assert "dualogic = dualogic.cli:main" in commands
    optional = re.findall(r"^(.+); extra == ['\"]([\w-]+)", "\n".join(metadata.get_all("Requires-Dist")), flags=re.MULTILINE)
    in_all = {requirement for requirement, extra in optional if extra == "all"}
    for_users = {requirement for requirement, extra in optional if extra not in ("dev", "docs", "test")}
    assert in_all == for_users, "the extra 'all' holds every other extra that users need"
    assert len(in_all) > 8


def test_the_installed_package_works(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    command = [sys.executable, "-c", USE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    place, formula = done.stdout.splitlines()
    assert Path(place).parent == tmp_path / "dualogic"
    assert formula == "a >> b"


def test_the_citation_names_this_version_and_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == dl.__version__
    (paper,) = citation["references"]
    assert paper["title"] == "Learning with Logical Constraints but without Shortcut Satisfaction"
    assert len(paper["authors"]) == 7


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading) for heading in headings[1:])
    kinds = set(re.findall(r"^### (.+)$", text, flags=re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert f"What will be {dl.__version__}" in text or f"## [{dl.__version__}]" in text


def test_links_of_the_texts_beside_the_readme_lead_somewhere():
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / name).read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), f"{name}: {target}"


def test_install_lines_work_from_a_clone():
    files = [
        path for folder in ("src", "docs", "examples") for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md")
    ]
    lines = [line for path in (ROOT / "README.md", *files) for line in path.read_text(encoding="utf-8").splitlines()]
    shown = [line for line in lines if "pip install" in line]
    assert len(shown) > 10
    assert not [line for line in shown if re.search(r"pip install '?dualogic", line)]
    table = (
        (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    )
    known = set(re.findall(r"^([a-z]+) = ", table, flags=re.MULTILINE))
    named = {extra for line in shown for extras in re.findall(r"'\.\[([a-z,]+)\]'", line) for extra in extras.split(",")}
    assert {"all", "lint", "rules"} <= named <= known
