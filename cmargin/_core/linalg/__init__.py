"""BLAS and LAPACK, called directly."""
