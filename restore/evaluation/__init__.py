"""How well images are restored: metrics, baselines, and the evaluation that joins them."""
