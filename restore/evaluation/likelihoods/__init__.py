"""How probable a prior finds images: exactly, by annealed importance sampling, by TAP, and by pseudo-likelihood."""
