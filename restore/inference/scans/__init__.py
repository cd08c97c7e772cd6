"""Scans: read as ink and paper by their grey levels, and freed of their blur."""
