"""Restoring with an exported graph in onnxruntime: no torch, and a start in a fraction of its time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime

from restore.description import Description
from restore.errors import ModelError, shown
from restore.export.contract import OBSERVED, Facts
from restore.marginals import Marginals, Status
from restore.zoo import GRAPH, WEIGHTS, describe

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

# onnxruntime's own messages are for its developers; what they say comes in its exceptions too.
FATAL_ONLY = 4


@dataclass(frozen=True)
class OnnxEngine:
    """A prior with its solver in onnxruntime, ready to restore; as in `restore.restoration.PictureEngine`."""

    facts: Facts
    session: InferenceSession

    @classmethod
    def load(cls, place: Path) -> OnnxEngine:
        """The graph in a prior's folder, or a file of `restore export`.

        Raises:
            ModelError: if it is damaged, no export of ours, made from other weights than lie beside it, or if its
                tensors are said to lie outside its folder.
        """
        path = place / GRAPH if place.is_dir() else place
        options = onnxruntime.SessionOptions()
        options.log_severity_level = FATAL_ONLY
        try:
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as fault:  # onnxruntime's exceptions have no common base
            raise ModelError(f"{shown(path)}: {_reason(fault)}; get the file again, or export it again") from fault
        facts = Facts.from_metadata(session.get_modelmeta().custom_metadata_map, shown(path))
        _check_interface(session, facts, shown(path))
        if place.is_dir():
            _check_weights(place, facts)
        return cls(facts, session)
