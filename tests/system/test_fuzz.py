"""Every public entry under hypothesis, which shrinks what it finds; and what the long run of the same draws has found.

`python -m tests.campaign --part fuzz` takes the same entries further, each batch in a process of its own.
"""

import os
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from campaign import fuzz
from campaign.findings import Findings
from campaign.fuzz_entries import ENTRIES, entry_of, fit_and_answer
from campaign.fuzz_input import Draw
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cmargin import SLNDClassifier, SmSVMClassifier, datasets, margins
from cmargin.data import open_rows
from cmargin.data.arrays import scaled_rows
from cmargin.data.files import open_files
from cmargin.plots import SpectrumDisplay

EXAMPLES = 40


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Entries that write files do so here."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("fuzz"))
    yield
    os.chdir(before)


@pytest.mark.parametrize("name", ENTRIES)
def test_an_answer_without_nan_or_words(name):
    share, entry = ENTRIES[name]

    @settings(derandomize=True, max_examples=EXAMPLES if share > 2 else 5, database=None, deadline=None,
              suppress_health_check=list(HealthCheck))
    @given(st.data())
    def visit(data):
        draw = Draw(lambda n: data.draw(st.integers(0, n - 1)))
        call = entry(draw)
        faults = fuzz.judged(name, call)[1]
        assert not faults, (call.func, call.args, call.keywords, faults)

    visit()


def test_every_public_function_has_an_entry():
    assert set(margins.__all__) - {"ExcessRiskBound"} <= set(ENTRIES)
    assert {entry_of(number)[0] for number in range(20_000)} == set(ENTRIES)


# ------------------------------------------------------------ can the judge be believed?

@pytest.mark.parametrize("call, kind", [
    (lambda X: X * np.nan, "nan"), (lambda X: {"a": (1.0, float("nan"))}, "nan"), (lambda X: X[7], "exception"),
    (lambda X: X.__setitem__(0, 5.0), "changed"), (lambda X: [][np.float64(1)], None), (lambda X: X, None)])
def test_the_judge_sees_it(call, kind):
    _, faults = fuzz.judged("margin", partial(call, np.zeros(3)))
    assert {kind for kind, _ in faults} == ({kind} - {None})


def test_words_are_asked_for():
    def refuse(X):
        raise ValueError("no")

    assert fuzz.judged("margin", partial(refuse, 1.0))[1][0][0] == "no words"


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_refused_fit_that_changes_what_was_learned_is_noticed(method):
    class Careless(SLNDClassifier):
        def fit(self, X, y):
            self.classes_ = y
            raise ValueError("not these rows")

        partial_fit = fit

    with pytest.raises(AssertionError, match="a refused fit changed"):
        fit_and_answer(Careless(), method, np.eye(2), [0, 1], None)


def test_what_a_batch_was_at_is_told():
    """A process that dies has not said at which input; the memory it shares with its parent has."""
    number = 7 * fuzz.BATCH + 3
    fuzz._at[:8] = number.to_bytes(8, "little")
    assert fuzz.describe(7) == [entry_of(number)[0], f"input: {number}"]
    assert fuzz.describe(8) == ["not begun"]


def test_counts_add_up():
    found = Findings(0, [])
    found.count("inputs", "margin answered")
    found.count("inputs", "margin refused")
    assert found.counts == {"inputs": 2, "margin answered": 1, "margin refused": 1}


# ------------------------------------------------------------ what the long run has found

HUGE = 10**400       # an int that float() refuses with OverflowError


@pytest.mark.parametrize("call", [
    lambda: margins.margin_error([0.5], HUGE), lambda: margins.confidence_scale(HUGE, 1.0),
    lambda: margins.margin_summary([0.5, 1.0], quantiles=[HUGE]), lambda: margins.confidence_radius(HUGE, 1.0),
    lambda: margins.expected_calibration_error([0.5], [1], HUGE), lambda: margins.expected_calibration_error(
        [0.5], [1], 2**62), lambda: SLNDClassifier().fit([[HUGE], [1]], [0, 1])])
def test_whole_numbers_beyond_the_range_of_floats(call):
    # OverflowError: int too large to convert to float
    with pytest.raises(ValueError, match=r"\w+ \w+ \w+"):
        call()


def test_huge_numbers_that_share_an_entry():
    # their sum is infinite, and 0 times it, in rows that are scaled so as to fit, was NaN
    X, y = np.array([[1.0, 0], [2, 1], [-1, 0], [-2, 1]]), [1, 1, 0, 0]
    model = SmSVMClassifier().fit(X, y)
    for dtype in (np.float32, np.float64):
        largest = np.finfo(dtype).max
        data = np.array([largest, largest, largest, 1, -largest, -largest], dtype)
        rows = sp.csr_matrix((data, [0, 1, 0, 0, 0, 0], [0, 3, 4, 6]), shape=(3, 2))
        scores = model.decision_function(rows)
        np.testing.assert_array_equal(np.sign(scores), np.sign(model.coef_ @ np.array([[2, 1], [1, 0], [-1, 0]]).T)[0])
        assert np.isfinite(scores).all() and scores[1] == pytest.approx((model.coef_[0, 0] + model.intercept_)[0])
        # and no power of 2 is that of another row
        np.testing.assert_array_equal(scaled_rows(rows)[1][:, 0], np.frexp(np.array([largest, 1, largest]))[1])


@pytest.mark.parametrize("rank", [-1, 3, HUGE])
def test_a_rank_beyond_the_eigenvalues(rank):
    with pytest.raises(ValueError, match=r"rank must be in the range \[0, 2\]"):
        SpectrumDisplay.from_eigenvalues([2.0, 1.0], rank=rank)


@pytest.mark.parametrize("classes, y, words", [([], [0, 1, 0], "contains none"),
                                               (None, [[0], [1], [0]], "classes must be passed")])
def test_no_classes_for_partial_fit(classes, y, words):
    # IndexError: index 0 is out of bounds; of a column of labels it was not asked whether classes are there
    with pytest.raises(ValueError, match=words), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SLNDClassifier().partial_fit([[0.0], [1.0], [2.0]], np.array(y), classes=classes)


@pytest.mark.parametrize("y", [3, np.array(1.0), np.zeros((2, 1, 1))])
def test_labels_of_a_source_have_rows(y):
    # IndexError: tuple index out of range
    with pytest.raises(TypeError, match="one or two dimensions"):
        open_rows(np.zeros((2, 1)), y)


@pytest.mark.parametrize("shape, words", [(b"(((((((", r"is no \.npy file, or is cut short within its header"),
                                          (b"(-3, 2)", r"holds an array of shape \(-3, 2\)")])
def test_a_header_that_makes_no_sense(shape, words, tmp_path):
    # tokenize.TokenError: EOF in multi-line statement; a negative number of rows
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((3, 2)))
    path.write_bytes(path.read_bytes().replace(b"(3, 2), ", shape + b", ").replace(b" \n", b"\n"))
    with pytest.raises(ValueError, match=words):
        open_files(str(path))


@pytest.mark.parametrize("cut", [0, 10, 100, -30, -3])
def test_a_damaged_data_set(cut, tmp_path):
    # BadZipFile, which is no ValueError, and nothing of a data set in its words
    path = tmp_path / "set.npz"
    np.savez(path, X=np.zeros((3, 2)), y=np.arange(3))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match="holds no data set, or is damaged"):
        datasets.read_npz(path)


def test_an_archive_whose_member_lies_behind_its_end(tmp_path):
    # struct.error: unpack requires a buffer of 30 bytes
    path = tmp_path / "x.npz"
    sp.save_npz(path, sp.eye_array(3, format="csr"), compressed=False)
    content = bytearray(path.read_bytes())
    place = content.rindex(b"PK\x01\x02") + 42                     # where the directory says that a member begins
    content[place:place + 4] = (len(content) - 5).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cut short within"):
        open_files(str(path))
