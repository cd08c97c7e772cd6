"""Restoring with an exported graph in onnxruntime: no torch, and a start in a fraction of its time."""
