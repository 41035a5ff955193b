"""Whether a version is slower than another: by a share and by an amount, both at once.

    python -m asv_benches.regress OLD.json NEW.json [--share 1.3]

OLD and NEW are files that `asv run` left under asv_benches/results, of the same machine. A benchmark is worse where it
is worse by more than the share and by more than the amount of its unit below: small times jitter by large shares, large
ones by large amounts. Ends with 1 where something is worse or fails that did not, else with 0.
"""

import argparse
import sys

from asv_benches.recorded import read

SHARE = 1.3
AMOUNTS = {"seconds": 1e-3, "s": 1e-3, "ns": 2.0, "ms": 1.0, "bytes": 4e6, "passes": 1.0, "times": 0.1, "share": 0.01,
           "of the limit": 0.05, "bytes a row": 1.0}
MORE_IS_BETTER = ("accuracy", "share_of")


def is_worse(old, new, unit, name, share=SHARE):
    """Whether ``new`` is worse than ``old``, numbers of one benchmark; without an amount the share decides."""
    if any(word in name for word in MORE_IS_BETTER):
        if "accuracy" in name:                   # 1.3 times as many errors
            old, new = 1 - old, 1 - new
        else:
            old, new = new, old
    return new > share * old and new - old > AMOUNTS.get(unit, 0.0)


def compare(old, new, share=SHARE):
    """Lines on what is worse, and the number of values compared; ``old`` and ``new`` as from `read`."""
    lines, count = [], 0
    for key in sorted(old.keys() & new.keys()):
        before, after = old[key], new[key]
        if before.value is None:
            continue
        count += 1
        if after.value is None:
            lines.append(f"{before.name} {' '.join(before.parameters)}: failed")
        elif is_worse(before.value, after.value, before.unit, before.name, share):
            lines.append(f"{before.name} {' '.join(before.parameters)}: {before.value:.4g} -> {after.value:.4g} "
                         f"{before.unit}")
    return lines, count


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m asv_benches.regress", description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--share", type=float, default=SHARE, help=f"default: {SHARE}")
    options = parser.parse_args(argv)
    lines, count = compare(read(options.old), read(options.new), options.share)
    print("\n".join([*lines, f"{len(lines)} of {count} are worse"]))
    return 1 if lines or not count else 0


if __name__ == "__main__":
    sys.exit(main())
