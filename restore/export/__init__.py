"""Priors as files for others: ONNX graphs with the solver inside, and bundles to share."""
