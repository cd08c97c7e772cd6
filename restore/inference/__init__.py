"""Inference: from what is known of the damage of pictures to restored ones."""
