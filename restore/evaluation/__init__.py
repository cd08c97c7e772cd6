"""How well images are restored: tasks that damage them, metrics, baselines, and the evaluation that joins them."""
