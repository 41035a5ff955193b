"""Forty fits have the bits that the table says, where the machine is one like that on which the table was made."""

import json
from pathlib import Path

import bits
import pytest

TABLE = Path(__file__).with_name("bits.json")


def test_forty_fits_have_the_bits_of_the_table():
    # `PYTHONPATH=.:tests/support python tests/system/test_bits.py` makes the table anew: say why in the commit.
    table = json.loads(TABLE.read_text())
    if table["machine"] != bits.fingerprint():
        pytest.skip("another machine, compiler or library")
    assert len(table["fits"]) == 40
    assert bits.hashes(few=True) == table["fits"]


if __name__ == "__main__":
    TABLE.write_text(json.dumps({"machine": bits.fingerprint(), "fits": bits.hashes(few=True)}, indent=1) + "\n")
