"""Learning: fit priors to images; recipes describe whole training runs."""
