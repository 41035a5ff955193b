"""The compiled driver of the dual."""
