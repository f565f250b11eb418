"""The rule on images that the network was trained on, beside new ones."""

import pytest

from dualogic_paper.tables.by_heart import OTHERS, RIGHT, draw_heart, make_heart_table
from dualogic_paper.tables.figures import save_figures
from dualogic_paper.tables.naming import divide
from dualogic_paper.tables.page import make_page, make_tables
from dualogic_paper.tables.store import read_results
from tables.fabricate import make_images, make_result, write_images, write_runs


def look(result, early, late):
    """A result whose pool was looked at twice: ``(rightly, each of the others, new images)`` at 60 % of the epochs, and last."""
    history = [{key: value for key, value in row.items() if not key.startswith("pool/")} for row in result["history"]]
    for row, (right, others, new) in ((history[5], early), (history[9], late)):
        row.update({RIGHT: right, OTHERS: others, "satisfied": new})
    return {**result, "history": history}


@pytest.fixture
def results(tmp_path):
    made = [look(make_images("dual", seed, epochs=10), (20.0, 1.0, 40.0), (60.0 + seed, 1.0, 50.0)) for seed in (0, 2)]
    made.append(make_images("none", epochs=10))
    (part,) = divide(read_results(write_images(tmp_path, made), "cifar100"))
    return part


def test_the_rule_holds_where_any_superclass_has_all(results):
    table = make_heart_table(results)
    (row,) = table.rows  # nothing was noted of the other one's pool
    found = {column.key: cell.values for column, cell in zip(table.columns, row.cells)}
    assert found["early_pool"] == (39.0, 39.0)
    assert found["early_new"] == (40.0, 40.0)
    assert found["pool"] == (79.0, 81.0)
    assert found["gap"] == (29.0, 31.0)
    assert found["right"] == pytest.approx((100 * 60 / 79, 100 * 62 / 81))


def test_it_stands_on_the_page_and_among_the_tables_and_is_drawn(results, tmp_path):
    assert "cifar100-resnet50-heart" in [table.name for table in make_tables(results)]
    assert "#### Training images and new ones" in make_page(tmp_path / "results")
    figure = draw_heart(results)
    solid, dashed = (line.get_ydata().tolist() for line in figure.axes[0].lines)
    assert (solid, dashed) == ([39.0, 80.0], [40.0, 50.0])
    assert "images-resnet50-heart.png" in [file.name for file in save_figures(results, tmp_path / "images.png")]


def test_nothing_where_the_pool_was_not_looked_at(tmp_path):
    write_runs(tmp_path, [make_result("digits", "dual")])
    found = read_results(tmp_path, "digits")
    assert make_heart_table(found) is None
    assert draw_heart(found) is None
