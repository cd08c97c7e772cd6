"""log Z of priors: exactly, or by annealed importance sampling."""
