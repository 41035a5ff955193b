"""A search over the rows of several ranks, or of partitions on workers.

The driver is told all labels and weights, once, and splits them; every place is told in which folds its rows are. From
there on all goes as over files (`cmargin._estimators.search.elsewhere`), but that places have their labels themselves,
and say the products of the rows held out.
"""

from types import SimpleNamespace

import numpy as np
from sklearn.base import clone

from cmargin._core.util._fp_control import StandardArithmetic
from cmargin._estimators.base import open_data
from cmargin._estimators.search.fits import Posed
from cmargin._estimators.search.folds import splits, warn_of_lacking
from cmargin._estimators.search.path_fold import SINGLE_FITS, PathFold, WholeRows, takes_paths
from cmargin._estimators.search.run import SearchRun
from cmargin._estimators.search.scoring import Scoring
from cmargin.data.shards.folds import FoldOfShards


def search_over_places(search, checked, X, y, sample_weight, comm, begin):
    """The attributes that `SmSVMClassifierCV` finds without a fit to all rows, whether there is to be one, and the run,
    None on all ranks but 0. ``checked()``: the grid, once the parameters are in order."""
    e = clone(search._estimator).set_params(l2=None, C=None, l1=0.0, class_weight=None, max_time=None)
    e._leaves_out_weightless = e._names_constants = False          # of rows that stay, places are those in memory
    run, grids = None, []
    with StandardArithmetic(), open_data(e, X, y, sample_weight, comm, lambda: grids.append(checked())) \
            as (source, _, _):
        if source is not None:
            run = _run(search, grids[0], source, None if search.max_time is None else begin + search.max_time)
            with search._keeps_scores(run):
                run.run()
                place = search._place(run)
            e.found_ = search._found(run, place) | _both_ways(search, run, run.grid.parameters(*place))
            del e.found_["scorer_"]              # every rank has its own: not all can be sent
            e.refits_ = search.refit
            e.coef_ = ()                         # by which ranks see that there is something to be shared
    names = {name: vars(e)[name] for name in ("n_features_in_", "feature_names_in_") if name in vars(e)}
    return e.found_ | names | {"scorer_": Scoring(search).scorer}, e.refits_, run


def _run(search, grid, source, deadline):
    """A `SearchRun` whose folds all places know."""
    if source.agreed.multilabel:
        raise ValueError(f"{type(search).__name__} takes no label indicator over several places yet; search for one "
                         "label at a time.")
    if not takes_paths(search._estimator, SimpleNamespace(y=source.agreed.classes), grid):
        raise ValueError(f"{SINGLE_FITS} does not go over several places yet.")
    codes, given = (np.concatenate(parts) for parts in zip(*source.call("told_labels"), strict=True))
    n, as_given = len(codes), source.agreed.total_weight / max(1, len(codes))
    weights = None if source.agreed.heaviest is None else given * as_given
    source.y = source.agreed.classes[codes]
    rows = np.broadcast_to(np.zeros(1, source.dtype), (n, source.n_features))      # for splitters, that ask for a shape
    routed = search._routed(rows, weights, None)
    posed = Posed(search._estimator, rows, source.y, source.agreed.classes, codes, weights, False, Scoring(search),
                  routed.scorer.score)
    run = SearchRun(search, posed, grid, splits(search.cv, rows, source.y, routed.splitter.split),
                    deadline=deadline, whole=WholeRows(posed, source))
    warn_of_lacking(posed.classes, source.y, codes, run.rows, of_all=not search.refit)
    folds = []
    for train, test in run.rows:
        problem = PathFold(run.whole, train, test).problem
        factors, positives = np.zeros(len(posed.classes)), []
        if problem is not None:                  # whatever makes its weights of those given is a factor by class
            before = np.bincount(train, minlength=n) * given
            after = before if problem.weights is None else problem.weights
            sums = [np.bincount(codes, of, len(posed.classes)) for of in (after, before)]
            np.divide(*sums, out=factors, where=sums[1] > 0)
            positives = [problem.there[problem.labels.of_problem(c)] for c in range(len(problem.labels))]
        folds.append(FoldOfShards.of(train, test, n, factors, positives))
    source.take_folds(folds)
    return run


def _both_ways(search, run, parameters):
    posed, best = run.posed, clone(search._estimator).set_params(**parameters)
    total = best._weights(posed.weights, run.whole.source, posed.classes, posed.codes)[1]
    return search._l2_and_C(best, total, posed.X.shape[1])
