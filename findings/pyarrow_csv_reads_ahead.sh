#!/bin/sh
# pyarrow 26.0.1, pyarrow.csv.open_csv, "the streaming reader" for files larger than memory, with use_threads=False: when the first
# batch has been handed out and nothing more was asked for, some 34 blocks of text are in memory, whatever block_size is; and the
# memory_pool that the reader was given has none of them: they are in the default pool, so that a pool made to watch or to limit the
# reader sees fewer than two. A reader with blocks of 16 MB therefore keeps half a gigabyte, and the way to less is a smaller block.
#
#     blocks of 256 KiB: 33.0 in the default pool after one batch, 1.8 in the pool that was given
#     blocks of 1024 KiB: 34.0 in the default pool after one batch, 1.8 in the pool that was given
#
# Ends with 0 where this is still so (20 blocks and more, and fewer than 5), and with another status where it has changed.
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q pyarrow==26.0.1 >&2
cat > "$folder/check.py" <<'PYTHON'
import sys
import time

import pyarrow as pa
from pyarrow import csv

PATH = sys.argv[1]
with open(PATH, "w") as file:
    file.write(",".join(f"c{j}" for j in range(20)) + "\n")
    for _ in range(500_000):                     # some 90 MB
        file.write("0.123456," * 19 + "0.123456\n")

told = []
for block in (1 << 18, 1 << 20):
    default, given = pa.default_memory_pool(), pa.system_memory_pool()
    before = default.bytes_allocated(), given.bytes_allocated()
    reader = csv.open_csv(PATH, read_options=csv.ReadOptions(block_size=block, use_threads=False), memory_pool=given)
    batch = reader.read_next_batch()
    time.sleep(2)                                # what reads ahead has had its time
    held = [(pool.bytes_allocated() - at) / block for pool, at in zip((default, given), before)]
    print(f"blocks of {block >> 10} KiB: {held[0]:.1f} in the default pool after one batch, {held[1]:.1f} in the pool "
          "that was given")
    told.append(held)
    del batch, reader
    time.sleep(1)
sys.exit(0 if all(ahead > 20 and own < 5 for ahead, own in told) else 1)
PYTHON
"$folder/venv/bin/python" "$folder/check.py" "$folder/table.csv"
