"""Evidence, which is not installed: benchmarks, comparisons, races (`race`), the papers' tables (`experiments`).

Modules here know each other by their own names, as scripts and asv find them; so they are found by ``-m`` too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
