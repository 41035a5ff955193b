"""The version, for modules that know nothing of what is above them."""

__version__ = "0.1.0"
