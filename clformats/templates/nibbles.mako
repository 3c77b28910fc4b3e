<%namespace file="prelude.mako" import="prelude"/>\
<%namespace name="place" file="place.mako"/>\
<%!
from textwrap import indent
%>\
<%def name="declared(widths)">\
% if src_name:

// Two elements of each byte, the low half first.
% for width in widths:
<% n = width // 2 if width > 2 else "" %>\
static inline ${types.src}${width} apart_${width}(uchar${n} pairs)
{
    uchar${width} halves;
    halves.even = pairs & (uchar)15;
    halves.odd = pairs >> (uchar)4;
% if src_name == "s4":
    halves = (halves ^ (uchar)8) - (uchar)8;
% endif
    return as_${types.src}${width}(halves);
}
% endfor

% endif
% for name in halves:

static inline ${"char" if name == "s4" else "uchar"} half_${name}(__global const uchar *bytes, idx at)
{
    const uchar value = bytes[at >> 1] >> ((at & 1) << 2) & 15;
    return ${"(char)((value ^ 8) - 8)" if name == "s4" else "value"};
}
% endfor
% if dst_name:
<% byte, lowest, highest = ("char", -8, 7) if dst_name == "s4" else ("uchar", 0, 15) %>\

// Saturated, in the low half of a byte.
% for n in ["", *widths]:
static inline uchar${n} narrow_${n or 1}(${types.dst}${n} x)
{
    return as_uchar${n}(clamp(as_${byte}${n}(x), (${byte}${n})(${lowest}), (${byte}${n})(${highest}))) & (uchar)15;
}
% endfor
% for width in widths:
<% n = width // 2 if width > 2 else "" %>\
static inline uchar${n} together_${width}(${types.dst}${width} x)
{
    const uchar${width} halves = narrow_${width}(x);
    return halves.even | halves.odd << (uchar)4;
}
% endfor
% endif
</%def>\
<%def name="move(width)">\
<%
pairs = f"vload{width // 2}(0, from + (i >> 1))" if width > 2 else "from[i >> 1]"
value = f"apart_{width}({pairs})" if src_name else types.load("from + i", width)
# What is loaded from bytes is converted already if that is early, what is stored to them else.
converted_by_load, converted_by_store = types.early and not src_name, not types.early and not dst_name
if not converted_by_load and not converted_by_store:
    value = types.converted(value, str(width) if width > 1 else "")
%>\
% if runs.computed:
const ${types.work}${width} value = ${value};
<% value = runs.computed[width] %>\
% endif
% if not dst_name:
${types.store(value, "to + i", width)};
% elif width > 2:
vstore${width // 2}(together_${width}(${value}), 0, to + (i >> 1));
% else:
to[i >> 1] = together_${width}(${value});
% endif
</%def>\
<%def name="move_one()">\
% if runs.computed:
const ${types.work} value = half_${src_name}(from, i);
${types.store(runs.computed[1], "to + i", 1)};
% else:
<% value = f"half_{src_name}(from, i)" %>\
${types.store(types.converted(value, "") if types.early else value, "to + i", 1)};
% endif
</%def>\
// ${title}
<% widths = runs.widths if runs is not None else () %>\
${prelude(types, wide, (1, *widths), computed=(1, *widths))}\
${declared(widths)}
__kernel void reorder(
    __global const ${"uchar" if src_name else types.src} *restrict src, __global ${"uchar" if dst_name else types.dst} *restrict dst,
    ${",\n    ".join(declarations)})
{
% if runs is not None:
    idx rest = (idx)get_global_id(0);
    const idx pieces = (count + ${runs.per_item} - 1) / ${runs.per_item};
    const idx first = rest % pieces * ${runs.per_item};
    const idx last = min(first + ${runs.per_item}, count);
    rest /= pieces;
% for variable, size in runs.loops[:-1]:
    const idx ${variable} = rest % ${size};
    rest /= ${size};
% endfor
% if runs.loops:
    const idx ${runs.loops[-1][0]} = rest;
% endif
    __global const ${"uchar" if src_name else types.src} *from = src + (${runs.src_base})${" / 2" if src_name else ""};
    __global ${"uchar" if dst_name else types.dst} *to = dst + (${runs.dst_base})${" / 2" if dst_name else ""};
    idx i = first;
% for width in widths:
    for (; i + ${width} <= last; i += ${width}) {
${indent(capture(move, width), "        ")}\
    }
% endfor
% if not dst_name:
    if (i < last) {
${indent(capture(move_one), "        ")}\
    }
% endif
% else:
    const idx item = (idx)get_global_id(0);
    if (item >= items) {
        return;
    }
% if dst_name:
    idx to = 0;
    uchar byte = 0;
    for (int k = 0; k < 2; ++k) {
        idx rest = 2 * item + k;
% else:
    {
        idx rest = item;
% endif

${indent(capture(place.indices, places["digits"], places["indices"]), "        ")}\
${indent(capture(place.skip, places["bounds"]), "        ")}\
${indent(capture(place.inside, places["bounds"]), "        ")}\

        ${types.stored} written = 0;
        if (inside) {
${indent(capture(place.logical, places["bounds"]), "            ")}\
% if src_name:
            const ${types.src} loaded = half_${src_name}(src, ${places["src_offset"]});
            const ${types.work} value = ${types.load("&loaded", 1)};
% else:
            const ${types.work} value = ${types.load(f"src + ({places['src_offset']})", 1)};
% endif
            written = ${places["computed"] or "value"};
        }
% if dst_name:
        ${types.dst} stored;
        ${types.store("written", "&stored", 1)};
        byte |= narrow_1(stored) << (4 * k);
        to = ${places["dst_offset"]};
    }
    dst[to >> 1] = byte;
% else:
        ${types.store("written", f"dst + ({places['dst_offset']})", 1)};
    }
% endif
% endif
}
