"""Compiled Newton steps of the penalised multinomial objective."""
