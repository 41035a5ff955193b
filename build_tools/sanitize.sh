#!/usr/bin/env bash
# Build the modules with AddressSanitizer and UndefinedBehaviorSanitizer beside the checkout and run pytest on them:
#     build_tools/sanitize.sh [FOLDER] [arguments of pytest]
# FOLDER (default: build/sanitized) keeps the build; what git tracks is copied there anew. gcc or clang; minutes.
#
# Leaks are not looked for: the interpreter keeps what it has until the end. Python's own allocator is left out, or a
# block of it would hide what lies beside an array. Threads are ours to see; OpenBLAS and libgomp themselves are not.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$root/build/sanitized
if [[ ${1-} && ${1-} != -* && ${1-} != tests* ]]; then folder=$1; shift; fi
mkdir -p "$folder"
git -C "$root" ls-files -z | tar -C "$root" --null -T - -c | tar -C "$folder" --skip-old-files -x
git -C "$root" ls-files -z | while IFS= read -r -d '' file; do
    cmp -s "$root/$file" "$folder/$file" || cp "$root/$file" "$folder/$file"
done
cd "$folder"
CMARGIN_SANITIZE=address,undefined python setup.py -q build_ext --inplace
if [[ $# -eq 0 ]]; then set -- -q -p no:cacheprovider; fi
export LD_PRELOAD="$(${CC:-cc} -print-file-name=libasan.so) $(${CC:-cc} -print-file-name=libubsan.so)"
export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc PYTHONPATH=$folder
python -m pytest "$@"
