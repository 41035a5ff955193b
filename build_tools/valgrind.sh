#!/usr/bin/env bash
# memcheck over tests/support/small_fits.py, on the modules as they are built in the checkout; ten minutes and more:
#     build_tools/valgrind.sh [seconds for the fits]
# Only reports count whose stack goes through a module of cmargin: the interpreter, NumPy and OpenBLAS have their own.
# Python's allocator is left out, or a block of it would hide what lies beside an array. One thread of OpenBLAS, since
# valgrind runs threads in turn.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
report=$(mktemp)
trap 'rm -f "$report"' EXIT
export PYTHONPATH=$root:$root/tests PYTHONMALLOC=malloc OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive
valgrind --xml=yes --xml-file="$report" --error-limit=no --num-callers=40 --leak-check=no \
    python tests/support/small_fits.py "${1:-900}" || echo "the fits came to no end"
python -m build_tools.memcheck_report "$report"
