"""Fits and predictions have the same bits in a thread whose arithmetic another library has changed.

`import snapml` (1.17.2) switches its thread, and threads that are started from there, to results of 0 where they are
subnormal, and says nothing. A smoothed hinge of width 5e-324 was none then, and sample weights of 1e-310 were refused.
"""

import threading

import numpy as np
import pytest
from api import StandardArithmetic, _fp_control
from estimators import quick_estimators
from sklearn.base import clone
from sklearn.datasets import load_digits

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier

FLUSH = {0x1F80: 0x9FC0, 0x0: 1 << 24}       # subnormal results and operands are 0: x86's MXCSR, Arm's FPCR
STANDARD = _fp_control.settings()
needed = pytest.mark.skipif(STANDARD not in FLUSH or not _fp_control.is_standard(), reason="other settings here")


def flushes():
    return float(np.full(1, 1e-300)[0] * np.full(1, 1e-20)[0]) == 0.0


def in_a_thread_that_flushes(function):
    """What ``function`` returns in a new thread, whose helpers are new too; whether the settings were left alone."""
    found = []

    def run():
        _fp_control.set_settings(FLUSH[STANDARD])
        assert flushes()
        result = function()
        found.append((result, flushes()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found, "an exception, see above"
    return found[0]


@needed
def test_the_context_sets_and_puts_back():
    def inside():
        with StandardArithmetic():
            with StandardArithmetic():
                pass
            return flushes()

    assert not flushes()
    assert in_a_thread_that_flushes(inside) == (False, True)
    assert not flushes()


def small_numbers(n=300, m=6):
    """Rows and labels among which products are subnormal, and so are some of the numbers."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, m))
    y = (X[:, 0] + 0.3 * rng.standard_normal(n) > 0).astype(int)
    X[:, 1] *= 1e-155
    X[::3, 2] *= 1e-311
    return X, y


KINDS = [*quick_estimators(), SmSVMClassifier(l2=1e-10, loss="logistic", n_jobs=2),
         SmSVMClassifier(linear_solver="dual"), SmSVMClassifier(l1=1e-3, n_jobs=2),
         MarginPursuitClassifier(n_jobs=2, l2=1e-6), SLNDClassifier(l2=1e-6, n_jobs=2),
         SLNDClassifier(loss="logistic", n_jobs=2, random_state=0)]


@needed
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", KINDS, ids=repr)
def test_fits_of_every_kind_have_the_same_bits(estimator):
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=3)
    X, y = small_numbers()
    plain = clone(estimator).fit(X, y)
    (there, scores), left_alone = in_a_thread_that_flushes(
        lambda: (model := clone(estimator).fit(X, y), model.decision_function(X)))
    assert left_alone
    np.testing.assert_array_equal(there.coef_, plain.coef_)
    np.testing.assert_array_equal(there.intercept_, plain.intercept_)
    np.testing.assert_array_equal(scores, plain.decision_function(X))


@needed
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_weak_penalty_on_raw_digits(n_jobs):
    X, y = load_digits(return_X_y=True)
    model = SmSVMClassifier(l2=1e-10, loss="logistic", n_jobs=n_jobs, max_passes=60)
    plain = clone(model).fit(X, y)
    there, left_alone = in_a_thread_that_flushes(lambda: clone(model).fit(X, y))
    assert left_alone
    np.testing.assert_array_equal(there.coef_, plain.coef_)


@needed
def test_subnormal_sample_weights_are_weights():
    X, y = small_numbers()
    X = X[:, :1]
    weight = np.full(len(y), 1e-310)
    there, left_alone = in_a_thread_that_flushes(lambda: SmSVMClassifier().fit(X, y, weight))
    assert left_alone
    np.testing.assert_array_equal(there.coef_, SmSVMClassifier().fit(X, y, weight).coef_)


@needed
def test_a_refused_fit_puts_back_too():
    def refused():
        with pytest.raises(ValueError, match="NaN"):
            SmSVMClassifier().fit([[np.nan], [1.0]], [0, 1])

    assert in_a_thread_that_flushes(refused) == (None, True)


@needed
def test_a_peer_of_the_race_changes_nothing_for_long(tmp_path, monkeypatch):
    # where snapml is installed, a test of the kernels failed in the process that had raced first
    peer = pytest.importorskip("race.peer", reason="the benchmarks are not beside the tests")
    (tmp_path / "a_fast_peer.py").write_text("from cmargin._core.util import _fp_control\n"
                                             f"_fp_control.set_settings({FLUSH[STANDARD]})\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert peer.installed("a_fast_peer") and not flushes()
