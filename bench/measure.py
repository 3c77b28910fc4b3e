"""The benchmark measures as the tuner does."""

from clformats.tuning.measure import QUICK, Settings, Slot, Times, race, sampled, timed

__all__ = ["QUICK", "Settings", "Slot", "Times", "race", "sampled", "timed"]
