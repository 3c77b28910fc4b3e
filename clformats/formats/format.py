"""`Format`: a named, unsized memory format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from string import ascii_lowercase
from typing import get_args

from ..errors import InvalidArgument, InvalidFormat, expect, expect_int
from . import names, registry, tags, text
from .digits import Digit, Layout
from .names import ABSTRACT, GrammarError, Kind, Parsed, Role
from .spelling import by_structure, spelled
from .sums import Sums


class Format:
    """A memory format: how the elements of a tensor of any size are arranged in memory.

    ``Format("b_fs_yx_fsv16")`` reads clDNN names, oneDNN tags and their domain names
    (``"nChw16c"``, ``"aBcd16b"``); meta tags such as ``"aBx16b"`` need ``ndims``. A name need not
    be listed: every name that the grammars of `clformats.formats.names` can read is a format.
    ``":i4"`` after a clDNN name means the order of 4-bit elements, where clDNN has another one.
    ``"any"`` (to be chosen later) and ``"undef"`` (of the empty descriptor) have no digits.

    The digits themselves are a format too, as `clformats.formats.text` reads them: ``"k/8 n k%8"``.
    ``dims``, here ``"kn"``, is the logical order of letters of one's own. Bars say where an image
    is cut: ``"n h | c/4 w | c%4"`` has rows, columns and components; for short ``"nh|Cw|4c"``.

    ``kind`` is one of these two, or ``"blocked"``, a layout of values in a buffer; ``"wino"``, a
    layout of Winograd-transformed values; ``"rnn_packed"``, recurrent weights packed for matrix
    products; ``"image"``, pixels of an OpenCL image, whose digits count as if its rows were
    contiguous.

    Two formats are equal if their kind and structure are equal, whatever their names:
    ``Format("nChw16c") == Format("b_fs_yx_fsv16")``.
    Raises `InvalidFormat`.
    """

    __slots__ = ("__dict__", "image", "kind", "layout", "letters", "name", "role", "sums")

    def __init__(
        self, name: str | Format, ndims: int | None = None, dims: Iterable[str] | None = None
    ) -> None:
        if not isinstance(name, str | Format):
            raise InvalidFormat(
                f"a format is given by its name (str), got {name!r}"
                f"{'; Format.from_layout makes one of a layout' * isinstance(name, Layout)}"
            )
        ndims = None if ndims is None else expect_int(ndims, "ndims")
        self.kind: Kind = "blocked"
        self.role: Role = "generic"
        """What it is for: ``"data"``, ``"weights"``, ``"rnn"`` or ``"generic"``."""
        self.letters = ""
        self.layout: Layout | None = None
        self.image: tuple[int, ...] | None = None
        """How many digits each axis of an image has; see `clformats.formats.names.Parsed`."""
        self.sums: Sums | None = None
        letters = None if dims is None else _letters(dims)
        self.name = registry.concrete(str(name), ndims)
        """The spelling that ``str`` gives; ``Format(f.name) == f``."""
        if self.name in ("any", "undef"):
            self.kind = "any" if self.name == "any" else "undef"
            return
        if isinstance(name, Format) and letters is None:
            parsed = name.parsed
        else:
            parsed = registry.parse(self.name, letters)
            if letters or text.is_digits(self.name):
                self.name = spelled(parsed)
        self.layout, self.letters, self.role = parsed.layout, parsed.letters, parsed.role
        self.kind, self.image, self.sums = parsed.kind, parsed.image, parsed.sums
        if ndims not in (None, self.ndims):
            raise InvalidFormat(
                f"{self.name!r} has {self.ndims} dimensions ({' '.join(self.dims)}), "
                f"got ndims={ndims}"
            )

    @classmethod
    def from_layout(cls, layout: Layout, image: tuple[int, ...] | None = None) -> Format:
        """The format of a layout; ``image`` as the attribute. Raises `InvalidFormat`."""
        expect(layout, Layout, "layout")
        expect(image, tuple | None, "image")
        kind: Kind = "blocked" if image is None else "image"
        try:
            parsed = Parsed(layout, ABSTRACT[: layout.ndims], "generic", kind, image)
        except GrammarError as error:
            said = f"no image has the axes {image} of {layout.digits}: {error}"
            raise InvalidFormat(said) from None
        return cls.of(parsed)

    @classmethod
    def of(cls, parsed: Parsed) -> Format:
        """The format of digits with their letters, by the shortest name."""
        return cls(spelled(parsed))

    @property
    def parsed(self) -> Parsed:
        """The layout, letters, role and kind together."""
        return Parsed(self.structure, self.letters, self.role, self.kind, self.image, self.sums)

    @property
    def structure(self) -> Layout:
        """The layout; raises `InvalidFormat` for ``any`` and ``undef``, which have none."""
        if self.layout is None:
            raise InvalidFormat(
                f"the format {self.name!r} has no layout yet; choose a concrete one"
            )
        return self.layout

    @property
    def dims(self) -> tuple[str, ...]:
        """The letters of the logical dimensions, in logical order."""
        return tuple(self.letters)

    @property
    def ndims(self) -> int:
        """The rank; 0 for ``any`` and ``undef``."""
        return len(self.letters)

    @property
    def digits(self) -> tuple[Digit, ...]:
        """The digits, outermost first; empty for ``any`` and ``undef``."""
        return self.layout.digits if self.layout else ()

    @cached_property
    def onednn(self) -> str | None:
        """OneDNN's tag for this structure, or None if no tag can express it."""
        if self.layout is None or self.kind != "blocked":
            return None
        return tags.print_onednn(self.layout)

    @cached_property
    def cldnn(self) -> str | None:
        """ClDNN's name for this structure and role, or None where it has none.

        A listed name wins over one that only the grammar gives. Generic tags are read as data.
        ``:i4`` after a name is an addition of this library: it means elements of 4 bits.
        """
        if self.layout is None or self.role == "rnn":
            return None
        role = "weights" if self.role == "weights" else "data"
        if self.name in registry.listed("cldnn") and self.name not in registry.RENAMED:
            return self.name
        if self.kind != "blocked":
            return None
        known = by_structure().get((self.layout, role, self.letters.startswith("g")))
        if known:
            return known
        letters = names.cldnn_letters(self.ndims, role, grouped=self.letters.startswith("g"))
        printed = names.print_cldnn(self.layout, letters) if letters else None
        # bs_fs_fsv8_bsv16 would be the name of a layout that splits f; clDNN uses it for another.
        taken = printed is not None and registry.parse(printed).layout != self.layout
        return None if taken else printed

    def as_weights(self, *, grouped: bool = False) -> Format:
        """The weights format by which clDNN reads a filter of this data format.

        The bytes stay: b is read as o and f as i, or, if ``grouped``, b, f, z as g, o, i. A
        weights format is returned unchanged. Raises `InvalidFormat` if clDNN has none:
        `clformats.formats.registry.AS_WEIGHTS` is its table.
        """
        expect(grouped, bool, "grouped")
        if self.role == "weights":
            return self
        table = registry.AS_GROUPED_WEIGHTS if grouped else registry.AS_WEIGHTS
        for name in (self.name, self.cldnn):
            if name in table:
                return Format(table[name])
        raise InvalidFormat(
            f"clDNN uses no tensor of format {self.name} as {'grouped ' * grouped}weights: "
            f"expected one of {', '.join(table)}"
        )

    @property
    def note(self) -> str:
        """A remark on what the letters of the name do not show, or the empty string."""
        return registry.NOTES.get(self.name, "")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Format):
            return NotImplemented
        return (self.kind, self.image, self.layout) == (other.kind, other.image, other.layout)

    def __hash__(self) -> int:
        return hash((self.kind, self.image, self.layout))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Format({self.name!r})"


def _letters(dims: Iterable[str]) -> str:
    """The letters of the logical dimensions. Raises `InvalidFormat`."""
    expect(dims, Iterable, "dims")
    given = list(dims)
    if not given or not set(given) <= set(ascii_lowercase) or len(set(given)) != len(given):
        raise InvalidFormat(f"got dims={dims!r}: expected a different small letter for each, as kn")
    return "".join(given)


def formats(role: str | None = None, ndims: int | None = None) -> Iterator[Format]:
    """Every listed format, clDNN's names first; ``role`` and ``ndims`` select some of them."""
    expect(role, str | None, "role")
    if role not in (None, *get_args(Role)):
        raise InvalidArgument(f"role: got {role!r}, expected {', '.join(get_args(Role))} or None")
    rank = None if ndims is None else expect_int(ndims, "ndims")
    every = map(Format, registry.all_names())
    return (f for f in every if role in (None, f.role) and rank in (None, f.ndims))
