"""What clDNN calls the dimensions of tensors in its kernels, and its formats in its macros."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import InvalidFormat
from ..formats import registry, text
from ..formats.format import Format

COUNTS = {"b": "BATCH_NUM", "f": "FEATURE_NUM", "r": "ROI_NUM", "g": "GROUPS_NUM", "o": "OFM_NUM",
          "i": "IFM_NUM"} | {c: f"SIZE_{c.upper()}" for c in "vuwzyx"}  # fmt: skip
PITCHES = {"b": "BATCH_PITCH", "f": "FEATURE_PITCH", "r": "ROI_PITCH", "g": "GROUPS_PITCH",
           "o": "OFM_PITCH", "i": "IFM_PITCH"}  # fmt: skip
PITCHES |= {c: f"{c.upper()}_PITCH" for c in "vuwzyx"}

# Where the kernels call a format otherwise than the rest of clDNN does.
IN_KERNELS = {
    **dict.fromkeys(("bs_fs_fsv8_bsv8", "bs_xs_xsv8_bsv8"), "bs_f_bsv8__af8"),
    **dict.fromkeys(("bs_fs_fsv8_bsv16", "bs_xs_xsv8_bsv16"), "bs_f_bsv16__af8"),
    "lstm_weights_dio": "dlstm_dir_io",
    # The same digits as another format, but not the same word.
    **{name: name for name in ("bs_f_bsv16__af8", "b_fs_yx_32fp")},
}


def letters_of(fmt: Format) -> str:
    """ClDNN's letters of a format's dimensions, in logical order; of generic tags as data.

    Raises `InvalidFormat` for ranks and roles that clDNN has none for.
    """
    if set(fmt.letters) <= set(COUNTS):
        return fmt.letters
    weights = fmt.role == "weights"
    head = ("goi" if fmt.letters.startswith("g") else "oi") if weights else "bf"
    spatial = fmt.ndims - len(head)
    if fmt.role == "rnn" or not 0 <= spatial <= (3 if weights else 6):
        raise InvalidFormat(
            f"clDNN has no tensors of {fmt.ndims} dimensions {', '.join(fmt.dims)}: expected data "
            f"(b, f, and up to 6 more) or weights (g, o, i, and up to 3 more)"
        )
    return head + "vuwzyx"[6 - spatial :]


def coordinates_of(letters: str) -> str:
    """The letters of the arguments of index macros: at least b, f, y, x or o, i, y, x."""
    return letters if "x" in letters or "y" in letters else letters + "yx"


def layout_of(fmt: Format) -> str:
    """The format in names of macros: ``B_FS_YX_FSV16``; `identifier` if clDNN has no name."""
    listed = registry.listed("cldnn")
    name = next((n for n in (fmt.cldnn, fmt.name) if n in listed), fmt.cldnn or fmt.name)
    if fmt.name in IN_KERNELS:
        name = IN_KERNELS[fmt.name]
    elif fmt.cldnn is None and name not in listed:
        return identifier(name)  # oneDNN has tags that differ only in capitals
    return re.sub("(?<=[0-9])X(?=[0-9])", "x", identifier(name).upper())


def identifier(name: str) -> str:
    """The name of a format in C: ``nh_Cw_4c`` of ``nh|Cw|4c``, ``k_div_8_n_k_mod_8_dims_kn``."""
    words = {"/": " div ", "%": " mod ", "~": " rev ", "(": " of ", ")": " end ", "|": " bar "}
    if text.is_digits(name):
        return "_".join(re.sub(r"[/%~()|]", lambda m: words[m[0]], name).split())
    return re.sub(r"\W", "_", name)


def is_plain(fmt: Format) -> bool:
    """Whether the format is only an order of the dimensions: clDNN's SIMPLE."""
    layout = fmt.structure
    whole = all(d.size is None and len(d.dims) == 1 and not d.flip for d in layout.digits)
    return whole and set(layout.align) == {1} and layout.tail is None and fmt.kind == "blocked"


def formats_of_cldnn() -> Iterator[Format]:
    """Every listed clDNN format whose tensors are in buffers."""
    every = map(Format, registry.listed("cldnn"))
    return (fmt for fmt in every if fmt.kind in ("blocked", "wino"))
