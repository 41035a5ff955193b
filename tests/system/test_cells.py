"""Containers, kinds of labels and files, in short: every cell is as doc/reliability.md says.

The tables there are made by ``python -m tests.campaign.cell_tables``; here every container, every kind of labels and
every file has a few of its cells tried. One that answers where the page has a refusal is news for the page.
"""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from campaign import cell_tables, cells
from campaign.cell_tables import LETTERS, estimator_beside
from campaign.cells import CONTAINERS, EQUAL, LABELS, REFUSED, WRONG, Answer, Refusal, missing, verdict_of
from campaign.estimators import ESTIMATORS
from campaign.file_cells import KINDS, LABELLED, READERS, ROWS, verdict_of_command, verdict_of_rows

# Faults that are known. A name comes off its list with the mend: a cell that is listed and right fails.
WRONG_CONTAINERS: set = set()
WRONG_LABELS: set = set()
WRONG_FILES: set = set()
WRONG_COMMANDS: set = set()                  # (file, kind of labels)
WRONG_BESIDES: set = set()                   # (estimator, labels)
SHARE = 12                     # of the pairs of a container and a kind of labels, one in so many


@pytest.fixture(scope="module")
def page():
    return cell_tables.listed()


@pytest.fixture(scope="module", autouse=True)
def workers():
    """Those of Dask, for all cells that have any."""
    with ExitStack() as at_end:
        if not missing("Dask array", "int64"):
            at_end.enter_context(cells.cluster_for("Dask array", "int64"))
        yield


def hold(verdict, letters, known=False, may_be=False):
    """Fail unless a verdict is what the page has, or wrong and ``known``; ``may_be``: or known for a part of it."""
    if known:
        assert verdict.kind == WRONG, "this cell is right now: take it off the list, and make the tables anew"
    elif not (may_be and verdict.kind == WRONG):
        assert verdict.kind != WRONG, verdict.words
        assert LETTERS[verdict.kind] in letters or LETTERS[WRONG] == letters, (
            f"{verdict} where doc/reliability.md has {letters}: python -m tests.campaign.cell_tables makes it anew")


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers(container, page):
    pytest.importorskip(CONTAINERS[container].needs)
    at = list(CONTAINERS).index(container)
    row = page["containers", container]
    on_workers = container.startswith("Dask")
    estimator = estimator_beside(container, "int64") if on_workers else ESTIMATORS[at % len(ESTIMATORS)]
    hold(verdict_of(container, "int64", estimator), row["numbers"], container in WRONG_CONTAINERS)
    for labels in [] if on_workers else list(LABELS)[at % SHARE::SHARE]:             # there a fit takes seconds
        if not missing(container, labels) and LABELS[labels].needs != "distributed":
            estimator = estimator_beside(container, labels)
            known = container in WRONG_CONTAINERS or labels in WRONG_LABELS or (estimator, labels) in WRONG_BESIDES
            hold(verdict_of(container, labels, estimator), row[LABELS[labels].group], may_be=known)


@pytest.mark.parametrize("labels", LABELS)
def test_labels(labels, page):
    pytest.importorskip(LABELS[labels].needs)
    at = list(LABELS).index(labels)
    for family, estimators in cell_tables.FAMILIES.items():
        estimator = estimators[at % len(estimators)]
        known = labels in WRONG_LABELS or (estimator, labels) in WRONG_BESIDES
        known &= (labels, estimator) != ("indicator, masked", "SmSVMClassifierCV")       # refuses every indicator
        hold(verdict_of("C order", labels, estimator), page["labels", labels][family], known)


@pytest.mark.parametrize("file", ROWS)
def test_files(file, page):
    if "parquet" in file:
        pytest.importorskip("pyarrow")
    for number, reader in enumerate(READERS):
        estimator = ESTIMATORS[(3 * number + list(ROWS).index(file)) % len(ESTIMATORS)]
        known = file in WRONG_FILES and reader != "kept in the file"         # which not all estimators take
        hold(verdict_of_rows(file, reader, estimator), page["files", file][reader], known, file in WRONG_FILES)


@pytest.mark.parametrize("file", LABELLED)
def test_files_of_rows_and_labels(file, page):
    if "parquet" in file:
        pytest.importorskip("pyarrow")
    at = list(LABELLED).index(file)
    for kind in list(KINDS)[at % 2::2]:
        hold(verdict_of_command(file, kind), page["commands", file][kind], (file, kind) in WRONG_COMMANDS)


@pytest.mark.parametrize("container, words", [
    ("pandas, a column of strings", "X holds the text 'v.', .* encode columns of texts"),
    ("Arrow table, a column of strings", "X holds the text 'v.', .* encode columns of texts"),
    ("pandas, sparse columns, NaN left out", r"give X.sparse.to_dense\(\), or make")])
def test_columns_that_are_no_numbers_are_refused_in_words(container, words):
    # NumPy said "could not convert string to float: 'v2'", pandas "fill value must be 0 when converting to COO matrix".
    pytest.importorskip(CONTAINERS[container].needs)
    X, y = cells.numbers(0, 3)
    for estimator in map(cells.estimator_of, ("SLNDClassifier", "SmSVMClassifierCV", "PegasosClassifier")):
        with pytest.raises(ValueError, match=words):
            estimator.fit(CONTAINERS[container].make(X), y)
        with pytest.raises(ValueError, match=words):
            estimator.fit(CONTAINERS["pandas, float64"].make(X), y).predict(CONTAINERS[container].make(X))


# ------------------------------------------------------------ the judges

def test_names_on_the_lists_are_there():
    assert WRONG_CONTAINERS <= set(CONTAINERS) and WRONG_LABELS <= set(LABELS) and WRONG_FILES <= set(ROWS)
    assert WRONG_COMMANDS <= {(file, kind) for file in LABELLED for kind in KINDS}


@pytest.mark.parametrize("error, kind", [
    (lambda: {}["a"], WRONG), (lambda: None.shape, WRONG), (lambda: float("a"), WRONG),
    (lambda: np.asarray([[1.0], [1.0, 2.0]]), WRONG),
    (lambda: cells.make("SmSVMClassifier").fit([[{}], [{}]], [1, 2]), WRONG),          # NumPy's error, through a check
    (lambda: cells.make("SmSVMClassifier").fit([[1.0], [2.0]], [1, 1]), REFUSED),
    (lambda: cells.make("SmSVMClassifier").fit([[1.0], [float("nan")]], [1, 2]), REFUSED)])
def test_refusals_that_are_none(error, kind):
    with pytest.raises(Refusal) as refused:
        cells.step("fit", error)
    assert cells.judge_refusal(refused.value).kind == kind
    assert cells.judge_refusal(Refusal("predict", refused.value.error)).kind == WRONG


def answer(**changed):
    plain = {"classes": [0, 1, 2], "predictions": np.array([0, 1, 2]), "score": 1.0,
             "weights": [np.ones(3)]}
    return Answer(**{**plain, **changed})


@pytest.mark.parametrize("changed, bits, is_equal", [
    ({}, True, True), ({"classes": [0.0, 1.0, 2.0]}, True, False), ({"classes": [False, True, 2]}, True, False),
    ({"predictions": np.array([0, 1, 1])}, True, False), ({"score": 0.5}, True, False),
    ({"weights": [np.ones(3) * (1 + 1e-15)]}, True, False), ({"weights": [np.ones(3)] * 1}, False, True),
    ({"weights": [np.ones(3) * (1 + 1e-15)], "predictions": np.array([0, 1, 1])}, False, True),
    ({"weights": [np.ones(3) * 2], "predictions": np.array([0, 1, 1])}, False, False)])
def test_answers_that_differ_are_noticed(changed, bits, is_equal):
    for missing_label in (False, True):
        kind = replace(LABELS["int64"], missing=missing_label)
        verdict = cells.judge(lambda: answer(**changed), [answer], kind, bits)
        assert (verdict.kind == EQUAL) == (is_equal and not missing_label)
    assert cells.judge(answer, [], LABELS["int64"]).kind == WRONG
    assert cells.judge(answer, [lambda: Refusal("fit", ValueError())], LABELS["int64"]).kind == WRONG
