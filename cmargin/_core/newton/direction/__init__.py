"""Where a Newton step goes: factors, conjugate gradients, models with an l1 term."""
