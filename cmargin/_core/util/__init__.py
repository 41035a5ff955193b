"""What several kernels lean on."""
