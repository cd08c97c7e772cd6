"""Learners fit priors to images; `fit` drives them, recipes describe a whole training run."""
