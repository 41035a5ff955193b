"""Random problems against an independent solver, hostile input, and concurrent fits: `python -m tests.campaign`."""
