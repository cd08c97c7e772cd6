"""What learners compute with: statistics, gauges, and the likelihoods that have one."""
