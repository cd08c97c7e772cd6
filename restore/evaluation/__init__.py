"""How well images are restored: metrics, baselines, the evaluation that joins them, and studies."""
