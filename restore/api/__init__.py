"""The Python interface: denoise, complete, batches, load, train and list_models."""

from restore.api.columns import batches
from restore.api.marks import find_marks
from restore.api.restoring import Restorer, complete, denoise, list_models, load
from restore.api.training import train

__all__ = ["Restorer", "batches", "complete", "denoise", "find_marks", "list_models", "load", "train"]
