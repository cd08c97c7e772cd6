"""Measure how probable a prior finds images: exactly, by annealing, by TAP, or by pseudo-likelihood."""
