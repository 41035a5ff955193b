"""Diagnostics of margins and posteriors: arrays in, arrays out, estimators never needed."""
