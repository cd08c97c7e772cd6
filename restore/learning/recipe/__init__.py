"""Recipes: a whole training run as one TOML file, written by hand or by a plan."""
