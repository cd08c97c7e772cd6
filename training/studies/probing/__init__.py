"""Probe what a prior has learnt: its TAP solutions, their free energies and basins, and its receptive fields.

TAP machine (Tramel, Gabrié, Manoel, Caltagirone, Krzakala, PRX 2018), sec. VII.3 and Figs. 4-7.
"""
