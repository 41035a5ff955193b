"""Binary problems on the same rows, by the products of the rows with each other."""
