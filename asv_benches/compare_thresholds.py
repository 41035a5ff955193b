"""Thresholds of labels chosen on held-out rows beside 0: F1 of all labels together, and the mean of the labels.

    python asv_benches/compare_thresholds.py FILE [FILE ...] [--seeds 2,3,4] [--labels 150]

Files are svmlight text with several labels a row, or of the extreme classification repository, as `cmargin fit` reads
them. Rows, to length 1, are dealt out: half to train a squared hinge (C=1) on, a fifth to choose by, the others to
judge by. Of more labels than ``--labels`` so many are drawn.
"""

import argparse
import os
import warnings

import numpy as np
from sklearn.metrics import f1_score
from sklearn.preprocessing import normalize

from cmargin import SmSVMClassifier
from cmargin.cli.labels import indicator_of
from cmargin.data.files.tagged import read_tagged
from cmargin.margins import label_thresholds, ndcg_at_k, precision_at_k


def judged(X, y, seed, n_labels):
    """P@1 and nDCG@5, and (F1 of all labels together, mean of the labels) at 0 and at the thresholds of two rules."""
    rng = np.random.default_rng(seed)
    y = y[:, rng.permutation(y.shape[1])[:n_labels]]
    train, chosen_by, judges = np.split(rng.permutation(len(y)), [len(y) // 2, 7 * len(y) // 10])
    model = SmSVMClassifier(C=1.0, loss="squared_hinge", tol=1e-2).fit(X[train], y[train])
    held_out, scores = (model.decision_function(X[rows]) for rows in (chosen_by, judges))
    rules = [0.0, label_thresholds(held_out, y[chosen_by], least_f1=0.0), label_thresholds(held_out, y[chosen_by])]
    found = [[f1_score(y[judges], scores > t, average=mean, zero_division=0) for mean in ("micro", "macro")]
             for t in rules]
    return precision_at_k(scores, y[judges], 1), ndcg_at_k(scores, y[judges], 5), found


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("files", nargs="+")
    asked.add_argument("--seeds", default="2,3,4")
    asked.add_argument("--labels", type=int, default=150)
    asked = asked.parse_args()
    warnings.simplefilter("ignore", UserWarning)             # of labels that no training row has
    print("set                seed    P@1 nDCG@5   F1 of all, mean of labels: at 0   best F1   label_thresholds")
    for path in asked.files:
        tagged = read_tagged(path, False)
        X, y = normalize(tagged.X), indicator_of(path, tagged)[0].toarray()
        for seed in map(int, asked.seeds.split(",")):
            first, five, found = judged(X, y, seed, asked.labels)
            print(f"{os.path.basename(path):18} {seed:4} {100 * first:6.1f} {100 * five:6.1f}   "
                  + "   ".join(f"{100 * of_all:5.1f} {100 * mean:5.1f}" for of_all, mean in found), flush=True)


if __name__ == "__main__":
    main()
