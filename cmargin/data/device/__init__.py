"""Rows that live on a device, as tensors of another library: torch, CuPy, or any namespace of the array API."""
