#!/usr/bin/env bash
# Build the modules with sanitizers beside the checkout, in build/sanitized-KIND, and run pytest on them; gcc, minutes:
#     build_tools/sanitize.sh address|thread [arguments of pytest]
#
# address: AddressSanitizer and UndefinedBehaviorSanitizer. Leaks are not looked for: the interpreter keeps what it has
# until the end. Python's own allocator is left out, or a block of it would hide what lies beside an array.
# thread: ThreadSanitizer. libgomp's barriers are unknown to it, and every parallel region would be a fault; LLVM's
# OpenMP takes libgomp's place, and its libarcher tells of them (Debian: libomp-14-dev; OMP_LIBRARIES is their folder).
# What is not compiled here, NumPy and OpenBLAS too, is not looked at.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
kind=${1:?address or thread}
shift
source "$root/build_tools/beside.sh"
folder=$root/build/sanitized-$kind
copy_beside "$root" "$folder"
cd "$folder"
library() { "${CC:-cc}" -print-file-name="lib$1.so"; }
if [[ $kind == thread ]]; then
    sanitize=thread preload="$(library tsan) ${OMP_LIBRARIES:=/usr/lib/llvm-14/lib}/libomp.so.5"
    export OMP_TOOL_LIBRARIES=$OMP_LIBRARIES/libarcher.so TSAN_OPTIONS=ignore_noninstrumented_modules=1
else
    sanitize=address,undefined preload="$(library asan) $(library ubsan)"
    export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1
    export UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc
fi
CMARGIN_SANITIZE=$sanitize python setup.py -q build_ext --inplace
LD_PRELOAD=$preload PYTHONPATH=$folder python -m pytest -p no:cacheprovider "$@"
