"""The real oneDNN is wanted here; without it these tests are skipped, with the reason."""

from __future__ import annotations

import pytest

from bench.peers import onednn


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = onednn.available()
    if reason:
        for item in items:
            # The comparison with Intel's macros has another judge and its own reason to skip.
            if "conformance" in item.path.parts and "openvino" not in item.path.name:
                item.add_marker(pytest.mark.skip(reason=reason))
