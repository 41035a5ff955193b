"""In place of pandas, in programs that tests start (tests/support/started.py): scikit-learn loads it where it can."""

raise ImportError("pandas is left out of the programs that tests start")
