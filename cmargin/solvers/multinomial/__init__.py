"""The optimum of the penalised multinomial objective."""
