"""Priors as files to share: ONNX graphs that contain the solver, and bundles."""
