<%doc>
Tiles at an edge: masks of the lanes that are elements, loads that end where the source does, and
stores of a part of a vector. See clformats/kernels/edges.py.
</%doc>\
<%!
from clformats.kernels.edges import Load, mask_numbers
%>\
<%def name="mask_function(function, type, guards_, side)">\
static inline ${type} ${function}(${", ".join([f"idx {g.name}" for g in guards_] + [f"idx {n}" for n in mask_numbers(guards_)])})
{
    ${type} result = -1;
% for g in guards_:
    const ${"long" if wide else "int"}${width} at_${g.name} = ${g.name} + (${"long" if wide else "int"}${width})(${", ".join(map(str, getattr(g, side)))});
% if g.lo != "0":
    result &= convert_${type}(at_${g.name} >= ${g.lo});
% endif
    result &= convert_${type}(at_${g.name} < ${g.hi});
% endfor
    return result;
}
</%def>\
<%def name="functions()">\
<%
vector, mask = f"{types.work}{width}", f"{types.mask}{width}"
given = [g.name for g in masked] + mask_numbers(masked)
parameters = [f"idx {n}" for n in given]
%>\
% if masked or Load.KEPT in ways:
#define KEEP(v, mask) as_${vector}(as_${mask}(v) & (mask))
% endif
% if masked:

// Which lanes of a load are elements.
${mask_function("elements", mask, masked, "load_lanes")}\
% endif
% if zeroed:

// Which lanes of a store are elements.
${mask_function("written", f"{types.stored_mask}{width}", zeroed, "store_lanes")}\
% endif
% if masks_computed:
#define KEEP_STORED(v, mask) as_${types.dst}${width}(as_${types.stored_mask}${width}(v) & (mask))
% endif
% for o in gathered:

// An operand lane by lane; what is no element is read from somewhere in it.
static inline ${types.real}${width} edge_${o.name}(
    ${types.declared(o.operand)}, idx at, idx last${"".join(f", idx {n}" for n in o.strides)})
{
    const idx lane_at[${width}] = {${", ".join(o.offsets[0])}};
    ${types.real} lane[${width}];
    for (int l = 0; l < ${width}; ++l) {
        lane[l] = ${types.load_from("values", o.operand, "clamp(at + lane_at[l], (idx)0, last)", 1)};
    }
    return vload${width}(0, lane);
}
% endfor
% if Load.CHECKED in ways:

// Lanes that are no element read as zero. Near the ends of the buffer single elements are read.
static inline ${vector} load_edge(
    __global const ${types.src} *src, idx at, idx src_end, ${", ".join(parameters + [f"idx {n}" for n in lane_strides])})
{
    const ${mask} inside = elements(${", ".join(given)});
    __global const ${types.src} *from = src + at;
    if (at >= 0 && at + ${lane_offsets[-1]} < src_end) {
        return KEEP(${gathered_load}, inside);
    }
    const idx lane_at[${width}] = {${", ".join(lane_offsets)}};
    ${types.mask} is_inside[${width}];
    ${types.work} lane[${width}];
    vstore${width}(inside, 0, is_inside);
    for (int l = 0; l < ${width}; ++l) {
        lane[l] = 0;
        if (is_inside[l]) {
            lane[l] = ${types.load("from + lane_at[l]", 1)};
        }
    }
    return vload${width}(0, lane);
}
% endif
% if windows:

// A vector of the source, of which nothing is read beyond its end.
static inline ${vector} load_window(__global const ${types.src} *src, idx at, idx src_end)
{
    ${types.work} lane[${width}];
    for (int l = 0; l < ${width}; ++l) {
        lane[l] = 0;
        if (at + l < src_end) {
            lane[l] = ${types.load("src + at + l", 1)};
        }
    }
    return vload${width}(0, lane);
}
% endif
% if counted:

// The first count lanes; those beyond the padding belong to no one and are left alone.
static inline void store_part(${types.stored}${piece} v, __global ${types.dst} *to, idx count)
{
    if (count >= ${piece}) {
        ${types.store("v", "to", piece)};
        return;
    }
% for half in [w for w in (8, 4, 2, 1) if w < piece]:
    if (count > 0 && (count & ${half})) {
        ${types.store("v.s" + "0123456789abcdef"[:half], "to", half)};
        v = v.s${("0123456789abcdef"[half:piece] + "0" * half)[:piece]};
        to += ${half};
    }
% endfor
}
% endif
</%def>\
