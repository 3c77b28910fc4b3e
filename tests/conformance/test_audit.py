"""The audit of a log that the real oneDNN has written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import clformats as cf
from bench.peers import onednn

ROOT = Path(__file__).parent.parent.parent

# A process of its own: the library reads the variable once, and writes to the real standard output.
CHAIN = """
import numpy as np
from bench.peers.onednn import Desc, Reorder
DIMS = (2, 17, 9, 7)
formats = ["abcd", "acdb", "abcd", "aBcd16b", "aBcd16b", "abcd", "aBcd8b"]
descs = [Desc.by_tag(DIMS, "f32", tag) for tag in formats]
held = [np.zeros(d.span(), np.uint8) for d in descs]
for k in range(len(descs) - 1):
    Reorder(descs[k], descs[k + 1]).execute(held[k], held[k + 1])
"""


@pytest.mark.skipif(onednn.available() is not None, reason=onednn.available() or "oneDNN is there")
def test_a_log_of_the_real_library_is_audited(tmp_path: Path) -> None:
    variables = {"DNNL_VERBOSE": "1", "ONEDNN_VERBOSE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CHAIN],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    log = tmp_path / "run.log"
    log.write_text(done.stdout)
    report = cf.audit(log)
    assert len(report.findings) == 6
    assert (report.findings[0].src, report.findings[-1].dst) == ("abcd", "aBcd8b")
    needless = [(f.src, f.dst) for f in report.needless]
    assert ("aBcd16b", "aBcd16b") in needless
    # The last reorder alone leads from the first format to the last; a chain may be as fast.
    assert report.least <= report.findings[-1].seconds + 1e-12
    needed = [(f.src, f.dst) for f in report.findings if not f.needless]
    assert needed[0][0] == "abcd"
    assert needed[-1][1] == "aBcd8b"
