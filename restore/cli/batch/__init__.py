"""Restore many files into files: what is to be done, the work, and the reports on it."""
