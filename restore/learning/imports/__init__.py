"""Binary RBMs that other programs have trained, made into priors."""
