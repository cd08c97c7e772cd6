"""A training run: its folder, checkpoints, processes, judging, and the keeping of its prior."""
