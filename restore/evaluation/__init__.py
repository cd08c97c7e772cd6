"""Evaluation: how well images are restored, beside simple filters, and how probable a prior finds them."""
