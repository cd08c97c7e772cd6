"""Parts of learners: statistics, centring, pseudo-likelihood, and the search for a hidden unit."""
