"""`clformats audit`: what the layouts of an engine cost, by its own log."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .arguments import add_json, print_json

if TYPE_CHECKING:
    from ..audits import Report


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `audit` to the command line."""
    parser = subparsers.add_parser(
        "audit",
        help="which reorders of a log are needless, and what the least possible is",
        description="Read oneDNN's verbose log (version 1.3 and later), OpenVINO's runtime model "
        "(XML) or TensorRT's layers (JSON), and tell what each reorder costs, which are needless, "
        "what the least possible is by the log's own costs, and what to change first.",
        epilog="example:  ONEDNN_VERBOSE=1 ./my_program > run.log; clformats audit run.log",
    )
    parser.add_argument("log", metavar="LOG", help="the file")
    parser.add_argument("--svg", metavar="FILE", help="draw the least possible plan")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    from ..audits import audit
    from .plan import write

    report = audit(args.log)
    write(args.svg, report.plan.svg, force=args.force, tell=not args.json)
    if args.json:
        return print_json(data(report))
    print(report)
    return 0


def data(report: Report) -> dict[str, object]:
    """The report, of types that JSON has; times in seconds, or in the log's other unit."""
    return {
        "kind": report.kind, "unit": report.unit, "total": report.seconds,
        "reorders": report.reorder_seconds, "least": report.least,
        "findings": [f._asdict() for f in report.findings], "changes": list(report.changes),
    }  # fmt: skip
