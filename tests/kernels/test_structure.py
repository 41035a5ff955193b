"""Sparse rows whose arrays do not fit together are refused before anything follows them."""


import broken_rows
import naive
import numpy as np
import pytest
import scipy.sparse as sp
from api import Rows, check_structure
from started import python

from cmargin import SLNDClassifier, nested_cross_validation

DENSE, LABELS = broken_rows.sound_rows()


def test_every_method_of_every_estimator_refuses_every_fault():
    # Most of them read and wrote outside the arrays: sixteen estimators ended with a segmentation fault, a row pointer
    # of 2**31 kept SciPy counting, and a column of -1 or one too many was taken for a good one.
    lines = python("-X", "faulthandler", "-c", "import broken_rows; broken_rows.main()", limit=300).splitlines()
    assert not [line for line in lines if not line.endswith(" done")]
    assert len(lines) == len(broken_rows.quick_estimators())


@pytest.mark.parametrize("name, fault", broken_rows.cases())
def test_the_message_names_the_format_and_what_is_wrong(name, fault):
    with pytest.raises(ValueError, match=f"The sparse X in {name.upper()} format is broken: .* build it anew"):
        check_structure(broken_rows.broken(DENSE, name, fault))


@pytest.mark.parametrize("fault", broken_rows.COMPRESSED)
def test_compiled_rows_refuse_the_same(fault):
    with pytest.raises(ValueError, match="is broken"):
        Rows(broken_rows.broken(DENSE, "csr", fault))


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array, sp.coo_array,
                                       sp.bsr_array, sp.dia_array, sp.lil_array, sp.lil_matrix, sp.dok_array])
def test_sound_matrices_of_every_format_pass(container):
    model = SLNDClassifier(random_state=0, max_passes=2)
    expected = model.fit(DENSE, LABELS).predict(DENSE)
    for dense in (DENSE, np.zeros((4, 3)), np.zeros((3, 0)), np.zeros((0, 3))):
        check_structure(container(dense))
    assert np.array_equal(model.fit(container(DENSE), LABELS).predict(container(DENSE)), expected)


def test_unsorted_repeated_long_and_spare_entries_are_no_fault():
    X = sp.csr_matrix(DENSE)
    X.indices[:6], X.data[:6] = X.indices[5::-1].copy(), X.data[5::-1].copy()
    check_structure(X)
    X.indices[:2] = 3
    check_structure(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    check_structure(X)
    X.indptr[-1] -= 1                                    # an entry that no row has
    check_structure(X)
    before = X.indices, X.indptr, X.data
    assert all(a is b for a, b in zip(before, (X.indices, X.indptr, X.data), strict=True))


@pytest.mark.parametrize("name", ["csr", "csc"])
def test_as_the_slow_twin_says_on_random_changes(name):
    rng = np.random.default_rng(5)
    answers = []
    for _ in range(2000):
        X = sp.random(rng.integers(0, 5), rng.integers(1, 5), 0.5, format=name, random_state=rng)
        for _ in range(rng.integers(1, 3)):
            array = getattr(X, rng.choice(["indptr", "indices"]))
            if len(array):
                place = rng.integers(len(array))
                value = int(array[place]) + rng.choice([-2**31, -2, -1, 1, 2, 2**31])
                array[place] = min(max(value, -2**31), 2**31 - 1)
        try:
            check_structure(X)
            answers.append(True)
        except ValueError:
            answers.append(False)
        assert answers[-1] == naive.structure_is_sound(X)
    assert 100 < sum(answers) < 1900                     # both kinds were met


def test_other_dimensions_than_two_are_refused():
    with pytest.raises(ValueError, match="Expected 2D sparse X, got 1 dimensions"):
        SLNDClassifier().fit(sp.coo_array(np.ones(5)), np.arange(5) % 2)


def test_nested_cross_validation_looks_first_too():
    with pytest.raises(ValueError, match="is broken"):
        nested_cross_validation(broken_rows.broken(DENSE, "csr", "a huge inner indptr"), LABELS, [1e-3])
