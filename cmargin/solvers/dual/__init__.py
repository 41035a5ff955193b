"""SmSVM's dual: sweeps over its variables."""
