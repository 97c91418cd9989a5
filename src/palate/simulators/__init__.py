"""Simulated users: what each kind is told, the profile of a person, and flags on what they say."""

from palate.simulators.facts import Facts, measured
from palate.simulators.hygiene import HYGIENE_RULES, flags
from palate.simulators.profile import Profile, ProfileProvenance, freeze, read_profile, save_profile
from palate.simulators.simulator import Simulator, SimulatorRecord, same_adapters
from palate.simulators.writing import write_profile

__all__ = [
    "HYGIENE_RULES",
    "Facts",
    "Profile",
    "ProfileProvenance",
    "Simulator",
    "SimulatorRecord",
    "flags",
    "freeze",
    "measured",
    "read_profile",
    "same_adapters",
    "save_profile",
    "write_profile",
]
