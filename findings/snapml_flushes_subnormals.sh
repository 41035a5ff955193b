#!/bin/sh
# snapml 1.17.2 (x86-64, Linux): `import snapml` switches the thread that imports it to flush-to-zero. Subnormal numbers
# are zero from then on, in NumPy too, and threads started from that thread inherit the setting; those that run already
# keep theirs. Nothing is said about it. Expected of an import: that the arithmetic of the process stays as it is.
#
# Output seen:
#     before: 1e-310
#     after: 0.0
#     thread started before the import: 1e-310
#     thread started after the import: 0.0
#
# Ends with 0 where this is still so, and with another status where it has changed.
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q snapml==1.17.2 scikit-learn==1.9.1 numpy==2.4.6 >&2
cat > "$folder/check.py" <<'PYTHON'
import queue
import threading
import warnings

import numpy as np

warnings.simplefilter("ignore")
asked, answers = queue.Queue(), queue.Queue()


def product():
    """1e-300 times 1e-10 in the words of this thread: another one might print zero for what is none."""
    return repr(float((np.full(1, 1e-300) * 1e-10)[0]))


def work():
    while asked.get():
        answers.put(product())


def answer_of(thread):
    asked.put(True)
    answer = answers.get()
    asked.put(False)
    thread.join()
    return answer


early = threading.Thread(target=work)
early.start()
print("before:", product())
import snapml  # noqa: E402, F401

print("after:", product())
print("thread started before the import:", answer_of(early))
late = threading.Thread(target=work)
late.start()
print("thread started after the import:", answer_of(late))
PYTHON
"$folder/venv/bin/python" "$folder/check.py" | tee "$folder/seen"
sed -n 's/^#     //p' "$0" | diff - "$folder/seen"
