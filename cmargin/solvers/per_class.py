"""What passes over one-vs-rest problems share: random streams, how much is done at a time, where a class begins."""

import numpy as np

SLICE_NUMBERS = 3e8            # read between two checks for Ctrl-C: about 0.1 s on one core
STEP_OVERHEAD = 150            # numbers that cost as much as the fixed part of a step
STREAM_WORDS = 4               # of the state of one random stream
NUMBERS_PER_THREAD = 2e5       # less than that is done before a second thread has woken up


def worthwhile_threads(n_threads, numbers):
    """Threads for a region that reads so many numbers; the bits do not depend on it."""
    return int(max(1, min(n_threads, numbers // NUMBERS_PER_THREAD)))


def class_streams(entropy, n_classes):
    """State of one random stream per class (xoshiro256++); class c's does not depend on the number of classes."""
    words = np.random.SeedSequence(entropy).generate_state(STREAM_WORDS * n_classes, np.uint64)
    return words.reshape(n_classes, STREAM_WORDS)


def constant_score(loss, share):
    """Score whose posterior is ``share``: the best intercept before any feature is seen, f^-1(share)."""
    share = np.clip(share, 1e-9, 1 - 1e-9)
    if loss == "logistic":
        return np.log(share / (1 - share))
    if loss == "squared":
        return 2 * share - 1
    return np.where(share >= 0.5, (2 * share - 1) / (1 - share), (2 * share - 1) / share)
