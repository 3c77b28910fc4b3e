"""`clformats plan`: the format of every tensor of a network, at the least cost there is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidNetwork
from ..files.destination import destination
from .arguments import write_text

if TYPE_CHECKING:
    from ..networks import FormatPlan


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `plan` to the command line."""
    parser = subparsers.add_parser(
        "plan",
        help="the format of every tensor of a network, planned and proven",
        description="Choose a format for every tensor of an ONNX model, so that its kernels and "
        "the reorders between them together cost the least. What the kernels can do is a table in "
        "CSV or JSON, or a Python file that defines `kernels`, a clformats.Kernels.",
        epilog="example:  clformats plan model.onnx --kernels kernels.csv --svg plan.svg",
    )
    parser.add_argument("model", metavar="MODEL", help="an ONNX model")
    parser.add_argument("--kernels", metavar="FILE", required=True, help="what the kernels can do")
    parser.add_argument("--costs", metavar="FILE", help="costs of reorders, as Costs.save wrote")
    parser.add_argument(
        "--bandwidth",
        metavar="GB/S",
        help="prices reorders that no record knows by bytes read and written a second (default: by "
        "the time that the reorders of clformats take by its cost model)",
    )
    parser.add_argument("--batch", metavar="N", help="the batch, where the model leaves it open")
    parser.add_argument(
        "--fix",
        metavar="VALUE=FORMAT",
        action="append",
        default=[],
        help="the format of an input, an output or another value; may be repeated",
    )
    parser.add_argument("--why", metavar="NODE", help="tell what each choice of a node would cost")
    parser.add_argument("--svg", metavar="FILE", help="write a picture")
    parser.add_argument("--dot", metavar="FILE", help="write a graph for Graphviz")
    parser.add_argument(
        "--json", metavar="FILE", nargs="?", const="-",
        help="write the plan as JSON; without FILE to the terminal, and nothing else",
    )  # fmt: skip
    parser.add_argument("--onnx", metavar="FILE", help="write the plan as ONNX, with its reorders")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plan, print, and write the files."""
    from ..networks import Costs, Kernels, Network, propagate

    batch = None if args.batch is None else int(_number(args.batch, "--batch"))
    network = Network.from_onnx(args.model, batch=batch)
    for text in args.fix:
        name, equals, fmt = text.rpartition("=")
        if not equals:
            raise InvalidNetwork(f"--fix {text}: expected VALUE=FORMAT, such as data=nchw")
        network.fix(name, fmt)
    costs = Costs.load(args.costs) if args.costs else Costs()
    if args.bandwidth is not None:
        costs.bandwidth = 1e9 * _number(args.bandwidth, "--bandwidth")
    plan = propagate(network, Kernels.load(args.kernels), reorder_cost=costs)
    tell = args.json != "-"
    if tell:
        _tell(plan, args.why)
    write(args.svg, plan.svg, force=args.force, tell=tell)
    write(args.dot, plan.to_dot, force=args.force, tell=tell)
    write(args.json, lambda: plan.to_json() + "\n", force=args.force)
    if args.onnx:
        with destination(Path(args.onnx), [Path(args.model)], companions=(), force=args.force) as f:
            plan.to_onnx(f)
        if tell:
            print(f"wrote {args.onnx}")
    return 0


def _tell(plan: FormatPlan, why: str | None) -> None:
    print(plan)
    print(f"\n{plan.compare()}\n\n{plan.memory}")
    if not why:
        return
    print(f"\n{why}:")
    for other in plan.why(why):
        print(f"  {other.choice}: {other.seconds * 1e6:.4g} us, plan {other.more * 1e6:+.4g} us")


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise InvalidNetwork(f"{what}: got {text!r}, expected a number above 0")
    return number


def write(file: str | None, content: Callable[[], str], *, force: bool, tell: bool = True) -> None:
    """Write a file, if one was asked for. Raises `Error` where that fails."""
    if file:
        write_text(file, content(), force=force, tell=tell)
