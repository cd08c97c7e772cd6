"""The Python interface: denoise, complete, load, train and list_models."""

from restore.api.restoring import Restorer, complete, denoise, list_models, load
from restore.api.training import train

__all__ = ["Restorer", "complete", "denoise", "list_models", "load", "train"]
