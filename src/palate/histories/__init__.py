"""Histories: a user's real, rated sessions, and their split into training and held-out parts."""

from palate.histories.files import read
from palate.histories.record import read_split, write_split
from palate.histories.split import HeldOutLabels, HeldOutSession, Split, split

__all__ = [
    "HeldOutLabels",
    "HeldOutSession",
    "Split",
    "read",
    "read_split",
    "split",
    "write_split",
]
