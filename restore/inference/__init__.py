"""Inference: restore pictures by what is known of their damage."""
