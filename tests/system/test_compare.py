"""The comparisons of asv_benches on the command line, on small data: that every part prints what it promises."""

import sys
from functools import partial

import numpy as np
import pytest
from started import BENCHES, LIGHT, ROOT, python

SCRIPT = BENCHES / "compare_smsvm.py"
COLUMNS = {"Passes to": ["class", "l2", "passes", "largest gap"],
           "An evaluation over": ["rows", "curved", "share", "evaluation, ms", "dearest, ms", "memory, ms", "dsyrk, ms",
                                  "binding", "evaluation / limit", "limit / evaluation", "limit / dearest"],
           "Peak memory": ["l2", "MB", "vectors of N doubles", "X itself"],
           "Growth": ["N", "passes", "2 threads, ms", "1 thread, ms", "gain"],
           "One-vs-rest": ["set", "solver", "objective", "seconds", "classes certified", "zeros, %"],
           "CSR rows": ["rows x columns, entries", "C", "all columns, ms", "auto, ms", "reads a class", "LinearSVC, ms",
                        "distance"],
           "Dense float32 rows": ["rows", "l2", "Newton", "dual, CSR", "dual, dense", "auto", "LinearSVC", "distance"],
           "Margin pursuit": ["columns", "l2", "Newton, reads", "seconds", "reached", "L-BFGS-B, evaluations",
                              "seconds", "reached", "ratio of seconds"]}

pytestmark = [pytest.mark.skipif(not SCRIPT.exists(), reason="the benchmarks are not beside the tests"),
              pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")]


@pytest.fixture(scope="module")
def tables():
    """{first words of the title: rows}, the first row the columns."""
    found, title = {}, None
    for line in python(SCRIPT, "--quick", limit=300, folders=[ROOT]).splitlines():
        if line.startswith("|-"):
            continue
        if line.startswith("|"):
            found[title].append([cell.strip() for cell in line.strip("|").split("|")])
        elif line:
            title = next((words for words in COLUMNS if line.startswith(words)), line)
            found[title] = []
    return found


def column(rows, number):
    return [float(row[number]) for row in rows[1:]]


def test_every_part_has_its_table_below_the_machine(tables):
    first, second, *titles = tables
    assert first.startswith("processor ") and " cores " in first
    assert "GB/s" in second and "GFLOP/s" in second and "load average" in second
    assert titles == list(COLUMNS)
    for title in titles:
        assert tables[title][0] == COLUMNS[title]
        assert all(len(row) == len(COLUMNS[title]) for row in tables[title]) and len(tables[title]) > 1


def test_passes(tables):
    rows = tables["Passes to"]
    assert [row[0] for row in rows[1:]] == ["2"] * 3 + [str(c) for c in range(1, 11)]          # digits
    for row in rows[1:]:
        counts = [float(count) for count in row[2].split(",")]
        assert len(set(counts)) == 1 and 3 <= counts[0] <= 100      # too few rows for a subset: the seed has no say
        assert 0 <= float(row[3]) <= 1e-4


def test_limits(tables):
    rows = tables["An evaluation over"]
    assert column(rows, 2) == pytest.approx([1, 0.5, 0.05, 0.01] * 2, rel=0.05)
    for row in rows[1:]:
        evaluation, dearest, memory, dsyrk = map(float, row[3:7])
        assert {"dsyrk": dsyrk, "memory": memory}[row[7]] == max(dsyrk, memory)     # both may print as 0.11
        assert float(row[8]) * float(row[9]) == pytest.approx(1, rel=1e-2) and evaluation > 0
        ratio, limit = float(row[10]), max(dsyrk, memory)             # all three as printed, to two decimals or more
        assert abs(ratio * dearest - limit) <= 0.006 * (1 + ratio + dearest)


def test_memory_and_size(tables):
    assert [3 < vectors < 20 for vectors in column(tables["Peak memory"], 2)] == [True]
    rows = tables["Growth"]
    assert column(rows, 0) == [1000, 3000, 9000] and all(3 <= count <= 30 for count in column(rows, 1))
    assert [row[4] == "-" for row in rows[1:]] == [True, False, False]


def test_l1(tables):
    rows = tables["One-vs-rest"][1:]
    assert [row[:2] for row in rows] == [["digits", "SmSVMClassifier"], ["drawn", "SmSVMClassifier"],
                                         ["drawn", "LinearSVC"]]
    assert rows[0][4] == "10 of 10" and rows[1][4] == "6 of 6" and "squared hinge" in rows[2][2]
    assert 10 < float(rows[0][5]) < 60 < float(rows[1][5]) < 100


def test_pursuit(tables):
    rows = tables["Margin pursuit"][1:]
    assert [(row[0], float(row[1])) for row in rows] == [(words, l2) for words in ("standardised", "[0, 1]")
                                                         for l2 in (1e-6, 1e-3)]
    for row in rows:
        assert 2 <= float(row[2]) <= 30 and float(row[4]) <= 1e-8
        assert float(row[5]) > 5 * float(row[2])
        reached, arrived = float(row[7]), not row[8].startswith("above ")
        assert reached <= 1e-8 if arrived else reached >= 1e-8


def test_peer_minimises_the_same_objective(monkeypatch):
    from sklearn.datasets import load_iris

    from cmargin import MarginPursuitClassifier

    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from compare_smsvm import PursuitInNumPy

    X, y = load_iris(return_X_y=True)
    y = np.where(y == 1, 1.0, -1.0)
    peer = PursuitInNumPy(X, y, 0.01)
    model = MarginPursuitClassifier(scale=1.0, l2=0.01, tol=1e-10, trace=False).fit(X, y)
    first = np.linalg.norm(peer(np.zeros(5))[1])
    at_optimum, gradient = PursuitInNumPy(X, y, 0.01)(np.append(model.coef_[0], model.intercept_))
    assert at_optimum == pytest.approx(model.objective_[0], rel=1e-12) and np.linalg.norm(gradient) < 1e-8 * first
    # the way there, by differences
    v, step = np.linspace(-1, 1, 5), 1e-6
    slopes = [(peer(v + step * e)[0] - peer(v - step * e)[0]) / (2 * step) for e in np.eye(5)]
    assert peer(v)[1] == pytest.approx(slopes, abs=1e-8)


def test_missing_set_is_one_sentence(bench_script, monkeypatch, tmp_path):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setenv("CMARGIN_DATA", "")                      # which the script sets, and this gives back
    printed = bench_script("compare_smsvm", "--data", tmp_path, "--part", "passes", "l1")
    sentences = [line for line in printed.splitlines() if "is not here" in line]
    assert [line.split()[:2] for line in sentences] == [["passes:", "covtype"], ["l1:", "mnist"]]
    assert "|" not in printed


def size_alone(n):
    return (n,)


def make_vectors(count, n):
    return len([np.ones(n) for _ in range(count)])


@pytest.mark.parametrize("count", [1, 5])
def test_peak_counts_vectors(monkeypatch, count):
    monkeypatch.syspath_prepend(str(LIGHT))                    # of the process that it starts
    from measure.report import peak_beyond

    n = 1_000_000
    peak = peak_beyond(partial(size_alone, n), partial(make_vectors, count))
    assert peak / (8 * n) == pytest.approx(count, abs=0.2)


def test_sparse_reads_are_few_and_linear_svc_is_not_below_the_optimum(tables):
    rows = tables["CSR rows"]
    assert all(2 < reads < 500 for reads in column(rows, 4)) and column(rows, 1) == [0.1, 1, 10, 100]
    assert all(distance > -1.1e-4 for distance in column(rows, 6))


def test_dense_rows_are_certified_and_linear_svc_is_not_below_the_optimum(tables):
    rows = tables["Dense float32 rows"][1:]
    assert len(rows) == 6 and all(float(distance) > -1.1e-4 for *_, distance in rows)
    for row in rows:
        assert all(float(cell) > 0 for way, cell in enumerate(row[2:6]) if way not in (1, 2))    # no gap in brackets
    assert {float(row[1]) for row in rows} == {1e-2, 1e-4, 1e-6}


def test_the_default_penalty_beside_others(bench_script):
    printed = bench_script("compare_penalty", "--sets", "breast cancer,covtype 1000", "--seeds", "100")
    _, _, row = printed.splitlines()                     # without a folder no sets of the race
    name, default, best, _, median, worst = (cell.strip() for cell in row.strip("|").split("|"))
    assert name == "breast cancer" and float(default) > 88 and float(median) == float(worst)
    assert float(median) == pytest.approx(float(default) - float(best), abs=0.11)


def test_wide_hinges_have_no_cliffs_along_their_penalties(bench_script):
    # seeds 5 and 20 had one each: 509 reads for 3, and 43,522 that certified nothing
    printed = [bench_script("cliffs", "--kind", "wide", "--seeds", seed, seed + 1) for seed in (5, 20)]
    assert [text.splitlines()[-1] for text in printed] == 2 * ["wide: 0 cliffs in 25 fits"]


def test_tall_separable_rows_have_no_cliffs_along_their_penalties(bench_script):
    # eight by the hinge with a penalised intercept: 53 reads where the median took 9
    text = bench_script("cliffs", "--kind", "separable", "--seeds", 0, 1, "--intercepts", "free", "penalised")
    assert text.splitlines()[-1] == "separable: 0 cliffs in 150 fits"


@pytest.mark.parametrize("kind, seed", [("text", 1), ("one_hot", 0)])
def test_hinges_on_sparse_rows_have_no_cliffs_along_their_penalties(bench_script, kind, seed):
    printed = bench_script("cliffs", "--kind", kind, "--seeds", seed, seed + 1, "--intercepts", "free", "penalised")
    assert printed.splitlines()[-1] == f"{kind}: 0 cliffs in 100 fits"


@pytest.mark.parametrize("seed", [0, 3])
def test_fits_with_l1_have_no_cliffs_along_l1_and_l2(bench_script, seed):
    # genes with l2 beside l1 had eleven: gaps of 0.02 to 0.5 after 4 s a fit
    printed = bench_script("cliffs", "--kind", "l1", "--seeds", seed, seed + 1)
    assert printed.splitlines()[-1] == "l1: 0 cliffs in 78 fits"


def test_a_cliff_is_four_times_the_median_and_ten_reads_or_no_certificate(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHES))
    from cliffs import is_cliff

    reads, gaps = np.array([2.0, 2, 2, 9, 11, 2]), np.array([1e-5, 1e-4, 2e-4, 0, 0, np.nan])
    assert is_cliff(reads, gaps).tolist() == [False, False, True, False, True, True]
