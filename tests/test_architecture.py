"""The rooms of the library import one way only, and CONTRIBUTING.md draws them as they are.

``python tests/test_architecture.py`` draws the picture anew.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "dualogic"
PAGE = ROOT / "CONTRIBUTING.md"
PICTURE = re.compile(r"(?<=<!-- rooms -->\n```text\n).*?(?=```\n<!-- /rooms -->)", re.DOTALL)
FRONT = "dualogic"
EVERYWHERE = "errors"
BACKWARDS = {
    ("formula", "normalize"): {"formula/connective.py: Formula.to_nnf", "formula/connective.py: Formula.to_cnf"},
    ("formula", "compile"): {"formula/connective.py: Formula.cost", "formula/connective.py: Formula.satisfied"},
    ("loss", "diagnosis"): {"loss/module.py: LogicLoss.diagnose", "loss/module.py: "},  # the latter for its type
}
"""The only imports against the order, by where they stand: methods that are short for a function of a later room."""
DEEP = ("formula", "compile", "duals", "diagnosis")


def find_rooms(library):
    return {path.stem for path in library.iterdir() if path.is_dir() or path.suffix == ".py"} - {"__init__", "__pycache__"}


def list_imports(tree):
    """Every module that is imported anywhere in a file, with the class and function around it."""

    def descend(node, around):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((".".join(around), alias.name) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, "imports name the whole module"
                yield from ((".".join(around), f"{child.module}.{alias.name}") for alias in child.names)
            else:
                scope = isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
                yield from descend(child, (*around, child.name) if scope else around)

    return descend(tree, ())


def find_graph(library=LIBRARY):
    """Which room imports which other, and where; imports in functions and for types alone count too."""
    rooms = find_rooms(library)
    graph = {room: {} for room in (*sorted(rooms), FRONT)}
    for path in sorted(library.rglob("*.py")):
        file = path.relative_to(library)
        room = FRONT if file.name == "__init__.py" and len(file.parts) == 1 else file.parts[0].removesuffix(".py")
        for around, module in list_imports(ast.parse(path.read_text(encoding="utf-8"))):
            package, *parts = module.split(".")
            target = parts[0] if parts and parts[0] in rooms else FRONT
            if package == "dualogic" and target != room:
                graph[room].setdefault(target, set()).add(f"{file.as_posix()}: {around}")
    return graph


def forwards(graph):
    """The graph without the imports against the order, as sets."""
    return {room: {target for target in targets if (room, target) not in BACKWARDS} for room, targets in graph.items()}


def sort_rooms(graph):
    """Rooms in an order in which each one imports only earlier ones; a cycle is refused, with its rooms."""
    order = []
    while len(order) < len(graph):
        ready = sorted(room for room in graph if room not in order and graph[room] <= set(order))
        assert ready, f"these rooms import each other in a circle, or one that does: {sorted(set(graph) - set(order))}"
        order += ready
    return order


def draw(graph):
    """A line for each room: what it imports stands in lines above it."""
    order = sort_rooms(forwards(graph))
    lines = []
    for room in order:
        targets = [target for target in order if target in forwards(graph)[room] and target != EVERYWHERE]
        later = [target for target in order if (room, target) in BACKWARDS and target in graph[room]]
        methods = sum(not place.endswith(": ") for target in later for place in graph[room][target])
        note = f"({', '.join(later)}: in {methods} method{'s' * (methods > 1)})" if later else ""
        lines.append(f"{room:<13} {' '.join([*targets, *filter(None, [note])])}".rstrip())
    return "\n".join(lines) + "\n"


def test_imports_point_one_way():
    graph = find_graph()
    assert len(graph) > 15
    assert len(sort_rooms(forwards(graph))) == len(graph)


def test_what_goes_backwards_is_what_is_allowed():
    graph = find_graph()
    assert {pair: graph[pair[0]].get(pair[1]) for pair in BACKWARDS} == BACKWARDS


def test_every_room_may_raise_errors_which_need_nothing():
    assert not find_graph()[EVERYWHERE]


def test_modules_are_imported_by_statements():
    """What is imported by a text would be missing in the graph; only these two files do it, and say what they can import."""
    found = {path.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("*.py") if "import_module" in path.read_text()}
    assert found == {"__init__.py", "cli/dispatch.py"}


def test_the_picture_is_true():
    picture = PICTURE.search(PAGE.read_text(encoding="utf-8"))
    assert picture is not None
    assert picture[0] == draw(find_graph()), "draw it anew: python tests/test_architecture.py"


def test_the_rooms_in_the_text_are_those_that_are_there():
    """Each folder has a line that says what it is for."""
    text = PAGE.read_text(encoding="utf-8")
    rooms = {path.name for path in LIBRARY.iterdir() if path.is_dir()} - {"__pycache__"}
    assert set(re.findall(r"^\| `(\w+)/` \|", text, flags=re.MULTILINE)) == rooms


@pytest.mark.parametrize("room", DEEP)
def test_the_readme_of_a_deep_room_is_a_page_and_names_its_files(room):
    text = (LIBRARY / room / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    assert set(re.findall(r"`(\w+\.py)`", text)) == {path.name for path in (LIBRARY / room).glob("*.py")} - {"__init__.py"}
    assert "**In**" in text
    assert "**Out**" in text
    assert "May be touched freely" in text


def test_a_circle_and_a_late_import_are_found(tmp_path):
    for name, code in {"a": "def f():\n    from dualogic.b import x\n", "b": "import dualogic.a.c\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(code)
    graph = find_graph(tmp_path)
    assert graph["a"] == {"b": {"a/__init__.py: f"}}
    with pytest.raises(AssertionError, match=r"import each other in a circle, or one that does: \['a', 'b'\]"):
        sort_rooms(forwards(graph))


if __name__ == "__main__":
    PAGE.write_text(PICTURE.sub(lambda _: draw(find_graph()), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
