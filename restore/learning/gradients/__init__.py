"""What learners compute with: statistics, centring, pseudo-likelihood, and the search for a hidden unit."""
