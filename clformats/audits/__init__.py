"""What the layouts of other engines cost them, by their own logs.

A log's operations become a network, whose cheapest plan says which reorders were needless.
"""

from __future__ import annotations

from .auditing import Finding, Report, audit

__all__ = ["Finding", "Report", "audit"]
