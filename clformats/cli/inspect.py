"""`clformats inspect`: the tensors of a model file, their types, layouts and sizes."""

from __future__ import annotations

import argparse
from collections import Counter

from ..files.checkpoints import read_safetensors
from ..files.gguf import read_gguf
from ..files.stored import StoredTensor
from ..pictures.words import columns
from .arguments import add_json, print_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `inspect` to the command line."""
    parser = subparsers.add_parser(
        "inspect",
        help="the tensors of a .gguf or .safetensors file",
        description="List the tensors of a model file: name, descriptor (type, layout, sizes) "
        "and bytes, then the bytes of each type. GPTQ, AWQ, compressed-tensors, gpt-oss and "
        "ModelOpt checkpoints are told by config.json or quantize_config.json beside a "
        ".safetensors file: the tensors of a matrix are one there. Needs the package gguf (pip "
        "install 'clformats[gguf]') or safetensors.",
        epilog="example:  clformats inspect model.gguf",
    )
    parser.add_argument("file", metavar="FILE", help="a .gguf or .safetensors file")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table, or JSON."""
    read = read_safetensors if args.file.endswith(".safetensors") else read_gguf
    tensors = list(read(args.file).values())
    if args.json:
        return print_json([
            {"name": t.name, "type": t.kind, "dims": list(t.dims), "desc": _text(t) or None,
             "nbytes": t.nbytes, "note": t.note or None}
            for t in tensors
        ])  # fmt: skip
    rows = [(t.name, _text(t) or f"{t.kind}: {t.note}", f"{t.nbytes:,}") for t in tensors]
    print("\n".join(columns(rows)))
    total: Counter[str] = Counter()
    for t in tensors:
        total[t.kind] += t.nbytes
    kinds = ", ".join(f"{kind} {size:,}" for kind, size in total.most_common())
    print(f"{len(tensors)} tensors, {sum(total.values()):,} bytes: {kinds}")
    for note in dict.fromkeys(t.note for t in tensors if t.desc is not None and t.note):
        print(note)
    return 0


def _text(tensor: StoredTensor) -> str:
    return "" if tensor.desc is None else str(tensor.desc)
