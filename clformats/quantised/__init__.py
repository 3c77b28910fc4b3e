"""Types whose values share parameters: fields, layouts, and rules to quantise.

A *quantised type* is fields over grouped dims and a formula; a *layout* of it is digits for each
field, down to the bit. types.txt and layouts.txt are the tables; docs/quantised.md teaches it.
"""

from .desc import QuantisedDesc
from .inference import Inferred, infer, infer_pairs
from .types import QuantisedType, layouts, type_names

__all__ = [
    "Inferred",
    "QuantisedDesc",
    "QuantisedType",
    "infer",
    "infer_pairs",
    "layouts",
    "type_names",
]
