"""Leaving one out beside one fit: processor time as a multiple, rows known at each stage, and refits that agree.

    python asv_benches/compare_left_out.py [--data FOLDER] [--sets cells,noisy] [--losses hinge,...] [--refits 0]

Sets are those of `compare_paths.py`; l2 = 1e-5, one thread. ``--refits N``: so many rows, half of them at random and
half with the scores nearest 0, are fitted without, to 1e-7. Another prediction than the refit's is a disagreement,
unless the refit's score is so near 0 that its tolerance leaves the sign open.
"""

import argparse

import numpy as np
from compare_paths import rows, timed

from cmargin import SmSVMClassifier

L2, SURE = 1e-5, 3e-3            # a refit's score that is nearer 0 says nothing of its sign


def disagreements(model, X, y, found, n):
    """How many of the predictions of ``n`` rows are not those of refits without them."""
    rng, wrong = np.random.default_rng(0), 0
    some = [*rng.choice(len(y), n // 2, replace=False), *np.argsort(np.abs(model.decision_function(X)))[:n - n // 2]]
    for i in some:
        others = np.arange(len(y)) != i
        C = 1 / (L2 * len(y))    # the same l2 and N without the row
        refit = SmSVMClassifier(C=C, loss=model.loss, tol=1e-7, n_jobs=1).fit(X[others], y[others])
        score = refit.decision_function(X[i:i + 1])[0]
        wrong += abs(score) > SURE and refit.classes_[int(score > 0)] != found.predictions[i]
    return wrong


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--data", default=".")
    asked.add_argument("--sets", default="cells,noisy")
    asked.add_argument("--losses", default="hinge,squared_hinge,logistic")
    asked.add_argument("--refits", type=int, default=0)
    asked = asked.parse_args()
    print("set        loss            of a fit  seconds  of a fit   score    solved  known at each stage")
    for name in asked.sets.split(","):
        X, y = rows(name, asked.data)
        for loss in asked.losses.split(","):
            model = SmSVMClassifier(l2=L2, loss=loss, n_jobs=1)
            _, one = timed(model.fit, X, y)
            found, seconds = timed(model.leave_one_out, X, y)
            said = f"; {disagreements(model, X, y, found, asked.refits)} of {asked.refits} refits disagree" \
                if asked.refits else ""
            print(f"{name:10} {loss:14} {one:9.2f} {seconds:8.2f} {seconds / one:9.1f} {found.score:8.6f} "
                  f"{found.n_solved:8}  {found.stages}, {int(found.proven.sum())} of {len(y)} proven{said}", flush=True)


if __name__ == "__main__":
    main()
