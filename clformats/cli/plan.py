"""`clformats plan`: the format of every tensor of a network, at the least cost there is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from ..errors import Error, InvalidNetwork


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
        help="prices reorders that no record knows: bytes read and written a second (default: 10)",
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
    parser.add_argument("--json", metavar="FILE", help="write the plan as JSON")
    parser.add_argument("--onnx", metavar="FILE", help="write the plan as ONNX, with its reorders")
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
    print(plan)
    print(f"\n{plan.compare()}\n\n{plan.memory}")
    if args.why:
        print(f"\n{args.why}:")
        for other in plan.why(args.why):
            print(
                f"  {other.choice}: {other.seconds * 1e6:.4g} us, plan {other.more * 1e6:+.4g} us"
            )
    write(args.svg, plan.svg)
    write(args.dot, plan.to_dot)
    write(args.json, plan.to_json)
    if args.onnx:
        plan.to_onnx(args.onnx)
        print(f"wrote {args.onnx}")
    return 0


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise InvalidNetwork(f"{what}: got {text!r}, expected a number above 0")
    return number


def write(file: str | None, content: Callable[[], str]) -> None:
    """Write a file, if one was asked for. Raises `Error` where that fails."""
    if not file:
        return
    try:
        Path(file).write_text(content(), encoding="utf-8")
    except OSError as error:
        raise Error(f"cannot write {file}: {error.strerror}") from error
    print(f"wrote {file}")
