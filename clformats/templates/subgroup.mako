<%doc>
A sub-group moves a tile of elements: rows are read as blocks, one element for each lane, exchanged
between the lanes, and written as blocks in the other order. A tile that is not whole is read and
written lane by lane.
</%doc>\
<%namespace file="prelude.mako" import="prelude"/>\
<%!
from textwrap import indent

from clformats.kernels.source import moved
%>\
<%
loads_halves = types.src == "half" and not types.moves_bits
loaded = "bits" if types.moves_bits else f"as_{types.src}(bits)"
if loads_halves:
    loaded = "half_of(bits)"
loaded = types.converted(loaded, "") if types.early else loaded
stored = "value" if types.early else types.converted("value", "")
stored = stored if types.moves_bits else f"as_{write.bits}({stored})"

def count(rows):
    return len(rows.registers) if len(rows.registers) > 1 else ""
%>\
<%def name="read_blocks()">\
% for rows in read.rows:
<%
function = f"intel_sub_group_block_read{read.function}{count(rows)}"
fetched = f"{function}({moved('src', rows.at)})"
%>\
% if count(rows):
const ${read.bits}${count(rows)} row${rows.registers[0]} = ${fetched};
% for j, r in enumerate(rows.registers):
v${r} = LOADED(row${rows.registers[0]}.s${j});
% endfor
% else:
v${rows.registers[0]} = LOADED(${fetched});
% endif
% endfor
</%def>\
<%def name="write_blocks()">\
% for rows in write.rows:
<%
values = ", ".join(f"STORED(v{r})" for r in rows.registers)
values = f"({write.bits}{count(rows)})({values})" if count(rows) else values
%>\
intel_sub_group_block_write${write.function}${count(rows)}(${moved("dst", rows.at)}, ${values});
% endfor
</%def>\
<%def name="single(side, what)">\
% for step, text in side.steps:
const idx ${step} = ${text};
% endfor
% for r in registers:
${f"if ({side.tests[r]}) " if side.tests[r] else ""}${what(r)};
% endfor
</%def>\
<%def name="either(side, blocks, what)">\
% if side.whole:
    if (${side.whole}) {
${indent(capture(blocks), "        ")}\
    } else {
${indent(capture(single, side, what), "        ")}\
    }
% else:
${indent(capture(blocks), "    ")}\
% endif
</%def>\
// ${title}
${prelude(types, wide)}\
% if loads_halves:

static inline float half_of(ushort bits)
{
    return vload_half(0, (const half *)&bits);
}
% endif

// From the bits in memory to a value on its way, and back.
#define LOADED(bits) ${loaded}
#define STORED(value) ${stored}

// Lanes whose bit is set give a and get it, the others b.
static inline void exchange(${types.work} *a, ${types.work} *b, const idx lane, const uint bit)
{
    const bool is_set = lane & bit;
    const ${types.work} taken = intel_sub_group_shuffle_xor(is_set ? *a : *b, bit);
    *a = is_set ? taken : *a;
    *b = is_set ? *b : taken;
}

__attribute__((intel_reqd_sub_group_size(${lanes}), reqd_work_group_size(${lanes}, 1, 1)))
__kernel void reorder(
    __global const ${read.bits} *restrict src, __global ${write.bits} *restrict dst,
    ${",\n    ".join(declarations)})
{
    const idx lane = (idx)get_sub_group_local_id();
% if starts:
    // Where the tile of this sub-group starts along each loop.
    idx rest = (idx)get_group_id(0);
% for variable, value, left in starts:
    const idx ${variable} = ${value};
% if left:
    rest = ${left};
% endif
% endfor
% endif
% for variable, value in guards:
    const idx ${variable} = ${value};
% endfor
    src += ${src_base};
    dst += ${dst_base};

    ${types.work} ${", ".join(f"v{r} = 0" for r in registers)};
${either(read, read_blocks, lambda r: f"v{r} = LOADED(src[{read.places[r]}])")}\

% for a, b, bit in exchanges:
    exchange(&${a}, &${b}, lane, ${bit});
% endfor
% if source_lane:
    const uint from = ${source_lane};
% for r in registers:
    v${r} = intel_sub_group_shuffle(v${r}, from);
% endfor
% endif

${either(write, write_blocks, lambda r: f"dst[{write.places[r]}] = STORED(v{r})")}\
}
