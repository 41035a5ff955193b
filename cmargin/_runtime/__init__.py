"""What serves any fit, whatever it computes: BLAS held to one thread, memory of threads, the time, what is here."""
