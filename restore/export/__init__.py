"""Priors as ONNX graphs with the solver inside, and the engine that runs them without torch."""
