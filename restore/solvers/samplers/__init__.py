"""Samplers: slow, and exact in the long run."""
