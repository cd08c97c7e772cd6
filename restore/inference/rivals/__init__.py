"""What knows nothing of pictures, and what a prior therefore has to predict better than."""
