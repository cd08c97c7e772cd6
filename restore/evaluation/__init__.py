"""Evaluation: how well images are restored, how probable a prior finds them, and what it has learnt."""
