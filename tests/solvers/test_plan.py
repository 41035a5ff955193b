"""Which way a SmSVM fit goes, told without data: a table of 200 cases, its prices, and the numbers it goes by."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import cmargin
from cmargin import SmSVMClassifier
from cmargin.data.loss import Loss
from cmargin.data.stats import DataStats
from cmargin.solvers import cost, plan, prices
from cmargin.solvers.newton.subset import shares
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.plan import Outcome, ProblemStats, next_stage
from cmargin.solvers.problem import Settings
from cmargin.solvers.slnd_plan import SoftmaxStats, TrialStats, chosen_by_trials, next_softmax_stage, next_trial

PACKAGE = Path(cmargin.__file__).parent
ROOT = PACKAGE.parent
NOTEBOOK = ROOT / "doc" / "lab-notebook"
# Shape and place of the rows; problem; what the user chose; what probes tell and how stages end
INPUTS = ("rows", "cols", "entries", "itemsize", "sparse", "place", "contiguous",
          "loss", "l2", "l1", "columns", "n_problems", "warm",
          "solver", "search", "growth", "max_passes", "smoothing",
          "light", "felt", "kappa", "moved", "counted",
          "dual", "gap", "products", "subset", "width", "certify")


def about(case):
    place = case["place"]
    stats = DataStats(case["rows"], case["cols"], case["entries"], case["itemsize"], case["sparse"], place,
                      place in ("files", "workers"), case["contiguous"])
    problem = ProblemStats(Loss(case["loss"]), ElasticNet(case["l2"], case["l1"]),
                           *(case[name] for name in ("columns", "n_problems", "warm")))
    settings = Settings(max_passes=case["max_passes"], smoothing=case["smoothing"], linear_solver=case["solver"],
                        line_search=case["search"], subset_growth=case["growth"])
    return stats, problem, settings


def outcome(stage, case):
    """As ``case`` has it."""
    if stage.kind == "probe":
        answers = {"row_lengths": (7 * case["light"] * case["l2"] * case["rows"], 7), "penalty_counts": (case["felt"],),
                   "length_ratio": (case["kappa"], 500), "without_margin": (case["moved"],),
                   "class_sizes": (case["counted"], 0), "own_part": (case.get("own", 0.0), 0.0)}
        return Outcome("probe", what=stage.what, numbers=answers[stage.what])
    return Outcome(stage.kind, case.get(stage.kind, "done"), stage.what, gap=case["gap"], smoothing=case["width"])


def way(case):
    """What is decided, stage by stage, probes left out."""
    given = about(case)
    plan.refuse(given[1], given[2], given[0])
    outcomes, stages = [], []
    while (stage := next_stage(*given, outcomes)) is not None:
        outcomes.append(outcome(stage, case))
        if stage.kind != "probe":
            stages.append([stage.kind, stage.start, stage.smoothing, rounded(stage.reads), stage.on_trial,
                           stage.products, list(stage.sampled or ()), stage.columns, stage.working_set])
        assert len(outcomes) < 12 and stage.reason
    return stages


def prices_of(case):
    stats = about(case)[0]
    return [rounded(price) for smooth in (False, True)
            for price in (prices.reads_of_newton(stats, smooth), prices.price_of_evaluation(stats, smooth),
                          *prices.sampled_reads(stats))]


def rounded(number):
    return float(f"{number:.12g}") if np.isfinite(number) else "inf"


TABLE = [(dict(zip(INPUTS, case, strict=True)), answers, stages) for case, answers, stages in
         json.loads(Path(__file__).with_name("plan_table.json").read_text())]


def test_ways_and_prices_are_those_of_the_table():
    # recorded when the ways were still chosen in nine files: none of 6,000 such cases was another. Since then sparse
    # rows have their price of a reduced problem, and few of them are left to the dual, but for the last passes
    assert len(TABLE) == 200 and len({" ".join(stage[0] for stage in stages) for _, _, stages in TABLE}) > 15
    for case, answers, stages in TABLE:
        assert (prices_of(case), way(case)) == (answers, stages), case


def test_the_plan_of_a_fit_is_its_way_where_all_goes_well():
    stats = DataStats(100_000, 30, 3_000_000, 8, False, "memory", False, True)
    problem, settings = ProblemStats(Loss("hinge"), ElasticNet(1e-4), 31), Settings()
    stages = plan.plan(stats, problem, settings)
    assert [stage.what or stage.kind for stage in stages] == ["class_sizes", "subset", "newton"]
    assert stages[-1].start == "last" and stages[-1].working_set
    for case, _, _ in TABLE:
        given = about(case)
        answers = plan.plan(*given)
        assert 0 < len(answers) < 8 and answers[-1].kind in ("dual", "products", "newton", "published", "certify")


@pytest.mark.parametrize("kind, status", [("dual", "skipped"), ("products", "skipped"), ("subset", "skipped")])
def test_a_stage_that_a_checkpoint_has_behind_it_is_followed_by_another(kind, status):
    for case, _, stages in TABLE:
        if kind in [stage[0] for stage in stages]:
            given, outcomes = about(case), []
            while (stage := next_stage(*given, outcomes)) is not None and stage.kind != kind:
                outcomes.append(outcome(stage, case))
            assert next_stage(*given, [*outcomes, Outcome(kind, status)]) is not None


# ---------------------------------------------------------------- the numbers

def constants(path):
    """Lines, from 0, and names of the upper-case constants of a module that are numbers, or tuples of numbers."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign):
            kinds = {type(part.value) for part in ast.walk(node.value) if isinstance(part, ast.Constant)}
            names = [part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            if kinds & {int, float} and not kinds & {str, bytes}:
                yield from ((node.lineno - 1, name) for name in names if name.isupper())


def test_every_number_that_chooses_has_a_unit_and_evidence():
    path = Path(cost.__file__)
    lines, found = path.read_text().splitlines(), list(constants(path))
    assert len(found) == len({name for _, name in found}) <= 124
    for line, name in found:
        assert lines[line].partition("#")[2].strip(), f"{name} has no unit"
        above = line - 1
        while not lines[above].startswith("#"):                           # others under the same sentence
            above -= 1
        text = []
        while lines[above].startswith("# ") and not lines[above].startswith("# ---"):
            text.insert(0, lines[above][2:])
            above -= 1
        words = [word.strip("(),;:.`") for word in " ".join(text).split()]
        assert text[-1].endswith("."), f"{name}: no sentence above it"
        where = [word for word in words if word.endswith((".md", ".py"))]
        assert where and all((ROOT / word).exists() or (NOTEBOOK / word).exists() for word in where), name


def compiled_constants(text):
    """Names of the upper-case constants of a .pyx, .pxd or .h that are numbers, and of numbers of such structs."""
    named = re.compile(r"\b([A-Z][A-Z0-9_]+) = [^=,]*\d")
    for line in text.splitlines():
        code = line.partition("#")[0] if not line.startswith("#define") else re.sub(r"^#define (\w+)", r"\1 =", line)
        if re.match(r"\s*(cdef (double|float|int|Py_ssize_t) )?[A-Z][A-Z0-9_]+ = ", code) and '"' not in code:
            yield from named.findall(code)
        struct = re.match(r"cdef (\w+) ([A-Z][A-Z0-9_]+) = \1\((.*)\)", code)
        if struct is not None:
            yield from (f"{struct[2]}.{field}" for field in re.findall(r"(\w+)=[^,]*\d", struct[3]))


# Numbers beside their formulas, by kind: those that tune a solver; those of the paper whose method it is; and others,
# which lay out memory, share out work, mark, or say what rounding is. What chooses between ways belongs to `cost`.
BESIDE_A_FORMULA = json.loads(Path(__file__).with_name("constants_beside_formulas.json").read_text())


def test_no_other_module_has_numbers_that_choose():
    found, known = {}, {}
    for layer in ("data", "solvers", "_estimators"):
        for path in (PACKAGE / layer).rglob("*.py"):
            if path != Path(cost.__file__):
                found[path.relative_to(PACKAGE).as_posix()] = {name for _, name in constants(path)}
    for path in (path for ending in ("pyx", "pxd", "h") for path in (PACKAGE / "_core").rglob(f"*.{ending}")):
        found[path.relative_to(PACKAGE).as_posix()] = set(compiled_constants(path.read_text()))
    for kind in BESIDE_A_FORMULA.values():
        for path, names in kind.items():
            known.setdefault(path, set()).update(names.split())
    found = {path: names for path, names in found.items() if names}
    assert found == known, "a new number: does it choose between ways? Then it belongs to solvers/cost.py"


def test_no_more_numbers_choose_and_tune_than_there_were():
    # a new one takes the place of another
    tuning = [name for kind, files in BESIDE_A_FORMULA.items() if kind.startswith("tunes ")
              for names in files.values() for name in names.split()]
    assert len(tuning) + len(list(constants(Path(cost.__file__)))) <= 318


def test_a_fit_that_ends_on_a_subset_after_the_dual_reports_its_own_objective(monkeypatch):
    # the objective was that of the dual's last point, beside the weights of the subset
    monkeypatch.setattr(cost, "SUBSET_FROM_ROWS", 40)
    monkeypatch.setattr(cost, "SUBSET_ROWS_PER_COLUMN", 0.2)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6))
    y = rng.choice([-1, 1], 400)
    with pytest.warns(ConvergenceWarning):
        model = SmSVMClassifier(linear_solver="dual", l2=1e-6, max_passes=2.5, fit_intercept=False).fit(X, y)
    w = model.coef_[0]
    exact = np.maximum(0, 1 - y * (X @ w)).mean() + 5e-7 * w @ w
    assert np.isnan(model.history_["objective"]).any()                    # it was on a subset
    assert model.objective_[0] == pytest.approx(exact, rel=1e-9)


def test_a_subset_takes_a_tenth_with_a_quarter_of_it_for_a_rare_class_and_fewer_rows_where_none_is_rare():
    of_rare, of_others = shares(1_000, 99_000, 10)
    assert of_rare * 1_000 == 1_000 and of_rare * 1_000 + of_others * 99_000 == 10_000
    assert shares(99_000, 1_000, 10) == (of_others, of_rare)
    of_all, of_none = shares(100_000, 0, 10)                              # sqrt(10,000 * 20 * 10)
    assert 1_414 <= of_all * 100_000 < 1_415 and of_none == 0
    assert shares(20_000, 0, 200)[0] == cost.SUBSET_SHARE                 # a tenth is fewer than the formula says


# ---------------------------------------------------------------- SLND

FEW = SoftmaxStats(1000, 10, 20, False, 200, True)


@pytest.mark.parametrize("problem, answers, kinds", [
    (FEW, {}, ["passes", "path"]),
    (FEW, {"path": "left"}, ["passes", "path", "refit"]),
    (FEW, {"passes": "stopped"}, ["passes"]),
    (replace(FEW, has_tail=True), {}, ["passes", "refit", "again"]),      # CSR rows carry the tail
    (replace(FEW, has_tail=True, has_all=False), {}, ["passes", "refit"]),
    (replace(FEW, has_tail=True, steady=False), {}, ["passes", "refit"]),
    (replace(FEW, has_tail=True, n_rows=60_000, n_held=2000), {}, ["passes"]),
    (replace(FEW, n_rows=9000, width=500), {}, ["passes", "path"]),
    (replace(FEW, width=5000), {}, ["passes", "path"]),                   # rows of more columns, too
    (replace(FEW, n_rows=60_000, n_held=2000), {}, ["passes"]),           # a path is dear, and hardly any rows are held
    (replace(FEW, n_rows=40_000, n_held=2000), {}, ["passes", "refit"]),
    (replace(FEW, n_held=0), {}, ["optimum"]),
    (replace(FEW, n_held=0, warm=True), {"passes": "stopped"}, ["passes"]),
    (replace(FEW, n_held=0, chooses=False), {"passes": "stopped"}, ["passes"]),
    (replace(FEW, n_rows=39, n_held=0), {"passes": "stopped"}, ["passes"]),      # too few to choose a strength
    (replace(FEW, n_rows=19, n_held=0), {}, ["optimum"]),                 # fewer than columns
    (replace(FEW, has_all=False), {}, ["passes", "refit"]),
])
def test_the_stages_of_multinomial_passes(problem, answers, kinds):
    outcomes = []
    while (stage := next_softmax_stage(problem, outcomes)) is not None:
        outcomes.append(Outcome(stage.kind, answers.get(stage.kind, "done"), numbers=(problem.n_held,)))
        assert stage.reason and len(outcomes) < 5
    assert [outcome.kind for outcome in outcomes] == kinds


OPEN = TrialStats(True, True, 7, rank_is_open=True, low_will_do=True)
ONE_CLASS = TrialStats(False, True, 7)


# what is tried, "rank@step" of a rank and "@step" beside the last one, "+" where that is taken; and what is chosen
@pytest.mark.parametrize("problem, tried, chosen", [
    (OPEN, "1@2+ 7@2 @4 @1", (1, 2)),                                     # all that a fit as expected tries
    (OPEN, "1@2+ 7@2+ @4+ @8+ @16+ @8", (7, 16)),                         # 16 is the largest
    (OPEN, "1@2+ 7@2 @4 " + " ".join(f"@{2.0**-k:g}+" for k in range(7)), (1, 1 / 64)),
    (OPEN, "1@2+ 7@2 @4+ @8 @2+ @1+ @0.5", (1, 1)),                       # no longer step after a shorter one
    (replace(OPEN, low_will_do=False), "7@2+ 1@2+ @4 @1", (1, 2)),        # one direction beside the first is large
    (replace(OPEN, rank=1), "1@2+ @4 @1", (1, 2)),
    (replace(OPEN, rank_is_open=False), "7@2+ @4 @1", (7, 2)),
    (replace(OPEN, step=0.3), "1@0.3+ 7@0.3+", (7, 0.3)),                 # asked for: the rank alone is tried
    (replace(OPEN, step=0.3, rank_is_open=False), "", (7, 0.3)),
    (replace(OPEN, judged=False), "", (1, 1)),                            # nothing judges
    (replace(OPEN, judged=False, sparse=True), "", (7, 1)),
    (replace(OPEN, sparse=True), "1@2+ 7@2 @4 @1", (1, 2)),
    (ONE_CLASS, "7@0.1+ @0.2 @0.05", (7, 0.1)),
    (ONE_CLASS, "7@0.1+ @0.2+ @0.4+ @0.8+ @1.6+ @3.2+ @6.4+ @3.2+ @1.6", (7, 3.2)),
    (ONE_CLASS, "7@0.1+ @0.2 @0.05+ @0.025+ @0.0125+", (7, 0.0125)),
    (replace(ONE_CLASS, judged=False), "", (7, 0.1)),
])
def test_the_trials_for_rank_and_step(problem, tried, chosen):
    wanted, outcomes = tried.split(), []
    while (stage := next_trial(problem, outcomes)) is not None:
        word = f"{stage.rank if stage.what == 'rank' else ''}@{stage.step:g}"
        assert len(outcomes) < len(wanted) and word == wanted[len(outcomes)].rstrip("+") and stage.reason
        outcomes.append(Outcome("probe", "taken" if wanted[len(outcomes)].endswith("+") else "left", stage.what,
                                numbers=(stage.rank, stage.step)))
    assert len(outcomes) == len(wanted) and chosen_by_trials(problem, outcomes) == chosen
