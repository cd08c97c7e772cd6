"""Measure how probable a prior finds images: exactly, or by annealed importance sampling."""
