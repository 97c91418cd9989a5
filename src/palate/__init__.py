"""palate: evaluate role-playing AI characters the way the person who talks to them would."""

__version__ = "0.1.0"
