"""Solvers with messages over edges."""
