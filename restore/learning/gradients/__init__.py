"""What learners compute with: statistics, gauges, and likelihoods that have a gradient."""
