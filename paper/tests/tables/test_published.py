import pytest

from dualogic_paper import arms
from dualogic_paper.tables.published import EPOCH_SECONDS, SOURCES, find_published, methods_of
from dualogic_paper.tasks import TASKS

# Column sums that a script took from the LaTeX of the paper: one wrong digit changes one of them.
DIGITS = {
    "accuracy": 629.5,
    "satisfied": 499.9,
    "not_p": 450.7,
    "q": 97.7,
    "usps_accuracy": 447.8,
    "usps_satisfied": 560.9,
    "usps_not_p": 552.6,
    "usps_q": 75.2,
}
TRANSFER = {
    "accuracy": 133.9,
    "superclass": 186.6,
    "satisfied": 182.7,
    "stl10_accuracy": 68.0,
    "stl10_superclass": 154.5,
    "stl10_satisfied": 180.3,
}
SUMS = [
    ("digits", {}, DIGITS),
    ("hwf", {}, {"accuracy": 310.0, "satisfied": 329.6}),
    ("hwf-5-20", {}, {"accuracy": 387.3, "satisfied": 417.9}),
    ("paths", {}, {"mse": 39.31, "mae": 8.73, "satisfied": 224.3}),
    ("cifar10-stl10", {}, TRANSFER),
    ("cifar100", {"model": "vgg16"}, {"accuracy": 230.6, "superclass": 243.1, "satisfied": 290.5, EPOCH_SECONDS: 62.7}),
    ("cifar100", {"model": "resnet50"}, {"accuracy": 254.8, "superclass": 255.3, "satisfied": 347.2, EPOCH_SECONDS: 53.4}),
    ("cifar100", {"model": "densenet100"}, {"accuracy": 213.1, "superclass": 170.8, "satisfied": 298.5, EPOCH_SECONDS: 54.8}),
]
DEVIATIONS = {"vgg16": (11.7, 23.88), "resnet50": (5.97, 5.83), "densenet100": (2.53, 3.33)}


@pytest.mark.parametrize(("task", "hyper", "sums"), SUMS)
def test_the_sum_of_each_column_is_the_papers(task, hyper, sums):
    rows = [find_published(task, method, hyper) for method in methods_of(task, hyper) - {"supervised"}]
    found = {key: sum(row[key].value for row in rows if key in row) for key in {key for row in rows for key in row}}
    assert found == pytest.approx(sums, abs=1e-9)


@pytest.mark.parametrize("model", DEVIATIONS)
def test_the_deviations_of_cifar100_add_up(model):
    rows = [find_published("cifar100", method, {"model": model}) for method in methods_of("cifar100", {"model": model})]
    found = tuple(sum(float(row[key].text.partition("±")[2]) for row in rows) for key in ("accuracy", "satisfied"))
    assert found == pytest.approx(DEVIATIONS[model])


@pytest.mark.parametrize(
    ("task", "method", "key", "text"),
    [
        ("digits", "semantic", "usps_accuracy", "48.7"),
        ("digits", "problog", "usps_satisfied", "8.8"),
        ("digits", "pd1", "not_p", "44.2"),
        ("digits", "dual", "usps_q", "75.2"),
        ("digits", "supervised", "usps_accuracy", "82.1"),
        ("hwf", "dl2", "satisfied", "57.5"),
        ("hwf-5-20", "pd2", "accuracy", "76.4"),
        ("paths", "dl2", "mse", "14.21"),
        ("cifar10-stl10", "none", "stl10_superclass", "76.4"),
        ("digits", "dual-paper", "q", "97.7"),
    ],
)
def test_single_figures(task, method, key, text):
    assert find_published(task, method)[key].text == text


def test_the_models_of_cifar100_are_told_apart():
    found = [find_published("cifar100", "dl2", {"model": model})["satisfied"].text for model in DEVIATIONS]
    assert found == ["31.2 ± 17.9", "78.4 ± 1.32", "62.2 ± 0.56"]
    assert find_published("cifar100", "dl2") == {}


def test_every_source_names_arms_and_columns_that_exist():
    for source in SOURCES:
        assert set(source.rows) <= set(arms.names())
        if source.task in TASKS:
            assert source.column in {EPOCH_SECONDS, *(column.key for column in TASKS[source.task].columns)}
