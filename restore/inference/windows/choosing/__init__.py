"""Which prior is to restore a large image, in which polarity, at which level of noise: as a sample of it says."""
