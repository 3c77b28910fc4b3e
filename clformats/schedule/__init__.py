"""From two descriptors to a schedule. Pure: runs and is tested without a device."""
