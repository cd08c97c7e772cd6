"""The learners of conditional priors."""
