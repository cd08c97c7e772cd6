"""Evaluation: scores of restored images next to simple filters, and likelihoods of priors."""
