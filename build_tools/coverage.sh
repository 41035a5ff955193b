#!/usr/bin/env bash
# What the tests reach, of Python and of Cython, in one run: build the modules for gcov beside the checkout, in
# build/covered, and run pytest there under coverage (pip install 'coverage>=7.10'; gcc; a quarter of an hour):
#     build_tools/coverage.sh [-n 2 --dist loadfile, or other arguments of pytest]
# Counts of earlier runs are forgotten. The figures again, with the lines that nothing reached:
#     cd build/covered && python -m coverage report --skip-covered --show-missing
#     cd build/covered && python -m build_tools.gcov_report --missing
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/build_tools/beside.sh"
folder=$root/build/covered
copy_beside "$root" "$folder"
cd "$folder" || exit 1
CMARGIN_COVERAGE=1 python setup.py -q build_ext --inplace || exit 1
find . -name '*.gcda' -delete
rm -f .coverage*
export COVERAGE_RCFILE=$folder/build_tools/coverage.ini PYTHONPATH=$folder
[[ $# -gt 0 ]] || set -- -n 2 --dist loadfile
python -m coverage run -m pytest -p no:cacheprovider "$@"
failed=$?
python -m coverage combine -q
python -m coverage report | tail -1
python -m build_tools.gcov_report
exit $failed
