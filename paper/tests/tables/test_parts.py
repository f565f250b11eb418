"""CIFAR-100: a table for each network, satisfaction beside that of an equally certain network, run times, and Figure 2."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualogic.cli import main
from dualogic.errors import DataError
from dualogic_paper.tables.figures import draw_parts, save_figures
from dualogic_paper.tables.formats import to_text
from dualogic_paper.tables.matching import draw_certainty, satisfaction_at, trace
from dualogic_paper.tables.naming import divide, group_runs
from dualogic_paper.tables.page import make_page, make_tables
from dualogic_paper.tables.store import read_results
from dualogic_paper.tables.summary import make_table
from dualogic_paper.tables.times import make_time_table
from tables.fabricate import MODELS, make_images, make_result, write_images, write_runs, write_times


@pytest.fixture
def folder(tmp_path):
    """Three networks, two methods, with what all runs share set otherwise than by default."""
    results = [make_images("none", seed, model, epochs=10) for model in MODELS for seed in (0, 1)]
    results += [
        make_images("dual", seed, model, accuracy=55.0, entropy=0.5, satisfied=80.0 + seed, epochs=10)
        for model in MODELS
        for seed in (0, 1)
    ]
    return write_images(tmp_path, results)


def cells_of(table, label):
    (row,) = [row for row in table.rows if row.label == label]
    return {column.key: cell for column, cell in zip(table.columns, row.cells)}


def test_each_network_has_a_table_with_its_own_published_figures(folder):
    parts = divide(read_results(folder, "cifar100"))
    assert [part.part for part in parts] == list(MODELS)
    tables = [make_table(part) for part in parts]
    assert [table.name for table in tables] == [f"cifar100-{model}" for model in MODELS]
    assert tables[0].title.endswith(": VGG16")
    published = [cells_of(table, "dual")["accuracy"].published.text for table in tables]
    assert published == ["53.4 ± 0.43", "56.0 ± 1.78", "51.4 ± 0.27"]
    assert [cells_of(table, "none")["superclass"].published.text for table in tables] == ["64.6", "59.8", "50.2"]
    assert [len(cells_of(table, "dual")["accuracy"].values) for table in tables] == [2, 2, 2]


def test_a_task_without_parts_stays_whole(tmp_path):
    write_runs(tmp_path, [make_result("digits", "dual")])
    results = read_results(tmp_path, "digits")
    assert divide(results) == (results,)
    assert draw_parts(results) is None


def test_unfinished_runs_are_counted_with_their_network(tmp_path):
    write_runs(tmp_path, [make_images("dual", 0, "vgg16"), make_images("none", 0, "resnet50")])
    for model, seed in (("vgg16", 1), ("resnet50", 2)):
        (file,) = write_runs(tmp_path, [make_images("dual", seed, model)])
        file.unlink()
    vgg16, resnet50 = divide(read_results(tmp_path, "cifar100"))
    assert vgg16.unfinished == (("dual", 1),)
    assert resnet50.unfinished == (("dual", 2),)


def test_satisfaction_is_set_beside_the_baseline_made_as_certain(folder):
    table = make_table(divide(read_results(folder, "cifar100"))[1])
    # The baseline satisfies 40 % at entropy 1 and 100 % at entropy 0; half as uncertain, it is half way.
    assert cells_of(table, "dual")["matched"].values == pytest.approx((70.0, 70.0))
    assert cells_of(table, "none")["matched"].values == ()
    assert not any("only these have it" in note for note in table.notes)
    assert any("temperature" in note for note in table.notes)


def test_all_rows_can_be_compared_at_one_entropy(folder):
    table = make_table(divide(read_results(folder, "cifar100"))[1])
    # The baseline at entropy 1 and the rule's network at 0.5: at 0.5 both, the first half way to 100 %, the second as it is.
    assert cells_of(table, "none")["equally_certain"].values == pytest.approx((70.0, 70.0))
    assert cells_of(table, "dual")["equally_certain"].values == pytest.approx((80.0, 81.0))
    assert cells_of(table, "dual")["equally_certain"].best
    assert any("0.5 nats" in note for note in table.notes)


def test_the_figure_of_certainty_draws_each_network_at_every_temperature(folder, tmp_path):
    results = divide(read_results(folder, "cifar100"))[1]
    for label, dot, at_half in (("none", (1.0, 40.0), 70.0), ("dual", (0.5, 80.5), 80.5)):
        runs = dict(group_runs(results))[label]
        line = trace(runs)
        assert all(satisfied >= other for (_, satisfied), (_, other) in itertools.pairwise(line))  # less, the less certain
        near = min(line, key=lambda point: abs(point[0] - 0.5))
        assert near[1] == pytest.approx(at_half, abs=2.0)
        figure = draw_certainty(results)
        dots = [
            tuple(float(place) for place in drawn.get_xydata()[0]) for drawn in figure.axes[0].lines if drawn.get_marker() == "o"
        ]
        assert any(found == pytest.approx(dot) for found in dots)
    written = save_figures(read_results(folder, "cifar100"), tmp_path / "images.png")
    assert {f"images-{model}-certainty.png" for model in MODELS} <= {file.name for file in written}


def test_no_figure_of_certainty_without_temperatures(tmp_path):
    write_runs(tmp_path, [make_result("digits", "dual"), make_result("digits", "none")])
    assert draw_certainty(read_results(tmp_path, "digits")) is None


def test_the_baseline_is_of_the_same_seed_and_configuration(tmp_path):
    results = [
        make_images("none", 0, satisfied=20.0),
        make_images("none", 1, satisfied=60.0),
        make_images("none", 0, satisfied=0.0, batch=64),
        make_images("dual", 0, entropy=0.5, rule_on="labelled"),
        make_images("dual", 1, entropy=0.5, rule_on="labelled"),
        make_images("dual", 0, entropy=0.5, form="one"),
        make_images("dl2", 2, entropy=0.5),
        make_images("hard", 0, entropy=3.0),
    ]
    (part,) = divide(read_results(write_images(tmp_path, results), "cifar100"))
    table = make_table(part)
    assert cells_of(table, "dual[rule_on=labelled]")["matched"].values == pytest.approx((60.0, 80.0))
    assert cells_of(table, "dual[form=one]")["matched"].values == pytest.approx((60.0,))
    assert cells_of(table, "dl2")["matched"].lacking == 1
    assert cells_of(table, "hard")["matched"].lacking == 1  # less certain than the baseline at its highest temperature


@given(st.lists(st.tuples(st.floats(0.01, 4.6), st.floats(0, 100)), min_size=1, max_size=8, unique_by=lambda point: point[0]))
def test_interpolation_meets_every_measured_point_and_stays_between(points):
    test = {}
    for number, (entropy, satisfied) in enumerate(points):
        mark = f"_t{number}.5" if number else ""
        test |= {f"entropy{mark}": entropy, f"satisfied{mark}": satisfied}
    for entropy, satisfied in points:
        assert satisfaction_at(test, entropy) == pytest.approx(satisfied)
    assert satisfaction_at(test, 0.0) == 100.0
    highest = max(entropy for entropy, _ in points)
    assert satisfaction_at(test, highest + 0.1) is None
    between = satisfaction_at(test, highest / 2)
    assert min(satisfied for _, satisfied in points) - 1e-9 <= between <= 100


def test_run_times_stand_beside_the_papers(folder):
    before = make_table(divide(read_results(folder, "cifar100"))[0])
    assert "epoch_seconds" in {column.key for column in before.columns}
    assert make_time_table(read_results(folder, "cifar100")) is None
    write_times(folder, ("captured", "compiled"), "bandwidth")
    results = read_results(folder, "cifar100")
    assert "epoch_seconds" not in {column.key for column in make_table(divide(results)[0]).columns}
    table = make_time_table(results)
    assert [row.label for row in table.rows] == [
        *("none", "dl2", "dual"),
        *("none, compiled", "dl2, compiled", "dual, compiled"),
        *("none, eager", "dual, eager"),
    ]
    own = cells_of(table, "dual")
    assert own["resnet50_seconds"].mean == pytest.approx(0.021 * 79)
    assert own["resnet50_seconds"].published.text == "27.0"
    assert own["resnet50_ratio"].mean == pytest.approx(1.05)
    assert cells_of(table, "dual, compiled")["resnet50_seconds"].published is None
    assert cells_of(table, "dl2")["vgg16_seconds"].published is None
    text = to_text(table)
    assert "steps timed" in text
    assert cells_of(table, "dual, eager")["vgg16_ratio"].mean == pytest.approx(
        1.25
    )  # the ratio of blocks, not of the two medians
    assert "eager on another at commit 1111111" in text
    assert "DenseNet100, compiled: bandwidth." in text
    assert make_tables(results)[-1] == table


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"variants": {"captured": {}}}'])
def test_a_broken_file_of_times_is_refused(folder, content):
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "cifar100.json").write_text(content)
    with pytest.raises(DataError, match=r"cifar100\.json or one beside it is not what dualogic_paper/speed writes"):
        read_results(folder, "cifar100")


def test_a_time_must_be_a_time(folder):
    write_times(folder)
    file = folder / "benchmarks" / "cifar100.json"
    content = json.loads(file.read_text())
    content["variants"]["captured"]["networks"]["vgg16"]["times"]["none"]["ms"] = -1
    file.write_text(json.dumps(content))
    with pytest.raises(DataError, match="not a positive number"):
        read_results(folder, "cifar100")


def test_the_page_has_a_section_for_each_network_and_one_of_times(folder):
    write_times(folder)
    page = make_page(folder)
    places = [page.index(f"### {title}\n") for title in ("VGG16", "ResNet50", "DenseNet100", "Run time")]
    assert places == sorted(places)
    assert make_page(folder, page) == page


def test_the_command_prints_all(folder, capsys):
    write_times(folder)
    assert main(["table", "cifar100", "--from", str(folder)]) == 0
    printed = capsys.readouterr().out
    for text in (": VGG16", ": ResNet50", ": DenseNet100", ": run time", "sat. of no rule", "(56.0 ± 1.78)", "(27.0)"):
        assert text in printed


def test_figure_2_draws_measured_published_and_matched(folder, tmp_path):
    results = read_results(folder, "cifar100")
    figure = draw_parts(results)
    assert [axes.get_title() for axes in figure.axes] == ["class (%)", "superclass (%)", "sat. (%)"]
    accuracy, _, satisfied = figure.axes
    assert [label.get_text() for label in satisfied.get_xticklabels()] == ["VGG16", "ResNet50", "DenseNet100"]
    heights = [bar.get_height() for bar in accuracy.patches if bar.get_height()]
    assert sorted(heights) == [50.0] * 3 + [55.0] * 3
    diamonds = {float(line.get_ydata()[0]) for line in accuracy.lines if line.get_marker() == "D"}
    assert {53.4, 56.0, 51.4, 45.3} <= diamonds
    lines = [segment[0][1] for lines in satisfied.collections for segment in lines.get_segments() if len(segment) == 2]
    assert lines.count(pytest.approx(70.0)) == 3
    files = save_figures(results, tmp_path / "images" / "cifar100.png")
    names = [file.name for file in files]
    assert names[-1] == "cifar100-parts.png"
    assert "cifar100-vgg16-comparison.png" in names
