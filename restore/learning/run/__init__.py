"""What every training run has: its folder, checkpoints, processes, judging, and what becomes of its prior."""
