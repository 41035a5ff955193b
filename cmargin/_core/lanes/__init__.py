"""Many binary problems side by side, a lane of a vector each."""
