<%doc>
A work-group moves a tile of elements: consecutive work-items read consecutive vectors of the source,
and write consecutive vectors of the destination. Between the two passes the tile lies in local
memory; without local memory both passes are one. What is not there is read from the tensor's start,
so that no load waits for a test, and all loads of a work-item are on their way together.
</%doc>\
<%namespace file="prelude.mako" import="prelude, trades, when"/>\
<%!
from textwrap import indent
%>\
<%
load, store = read["pass"], write["pass"]
lanes = load.width if places else store.width
both = f"{types.work}{lanes if lanes > 1 else ''}"
number, step, end = numbers
result_type = f"{types.dst}{store.width if store.width > 1 else ''}"
computes = any(move.result for move in write["moves"])
runs = write["runs"]
%>\
<%def name="digits(texts)">\
% for name, text in texts:
const idx ${name} = ${text};
% endfor
</%def>\
<%def name="unit(p, first)">\
const uint n = ${first} + (uint)get_local_id(0);
const uint e = n${f" * {p.width}" if p.width > 1 else ""};
${digits(p.digits)}\
</%def>\
<%def name="fetch()">\
${unit(load, number)}\
% for j, lane in enumerate(read["lanes"]):
const idx at${j} = ${f"{lane.test} ? {lane.at} : 0" if lane.test else lane.at};
% endfor
held[k] = ${read["loaded"]};
</%def>\
<%def name="taken()">\
${both} value = held[k];
% for j, lane in enumerate(read["lanes"]):
% if lane.inside and len(read["lanes"]) > 1:
<% count = len(lane.part) - 1 %>\
value.${lane.part} = ${lane.inside} ? value.${lane.part} : (${types.work}${count if count > 1 else ""})(0);
% elif lane.inside:
value = ${lane.inside} ? value : (${both})(0);
% endif
% endfor
% for k in range(len(swaps)):
value = SWAP${k}(value);
% endfor
</%def>\
<%def name="keep()">\
${unit(load, number)}\
${taken()}\
${when(read["counted"], "".join(f"{place} = {what};\n" for place, what in read["kept"]))}\
</%def>\
<%def name="put(move)">\
% if move.result and move.inside:
${result_type} result = 0;
if (${move.inside}) {
    result = ${move.result};
}
% elif move.result:
const ${result_type} result = ${move.result};
% endif
${move.stored};
</%def>\
<%def name="puts()">\
% for move in write["moves"]:
% if move.exists or computes:
${f"if ({move.exists}) " if move.exists else ""}{
${indent(capture(put, move), "    ")}\
}
% else:
${capture(put, move)}\
% endif
% endfor
</%def>\
<%def name="second()">\
% for kind, name, value in write["fetched"]:
const ${kind} ${name} = ${value};
% endfor
${capture(puts)}\
</%def>\
<%def name="put_runs()">\
const uint row = n / ${runs.count} * ${runs.size};
idx at, end = ${runs.size};
{
    const uint e = row;
${indent(capture(digits, runs.first), "    ")}\
    at = ${runs.at};
% for end in runs.ends:
    end = min(end, (idx)(${end}));
% endfor
% if runs.exists:
    end = ${runs.exists} ? end : 0;
% endif
}
// A run begins anywhere: its first vector may begin before it, and its last one end behind it.
idx within = (idx)(n % ${runs.count} * ${runs.wide}) - (at & ${runs.wide - 1});
if (within >= 0 && within + ${runs.wide} <= end) {
    const uint e = row + (uint)within;
${indent(capture(digits, runs.whole[0]), "    ")}\
    ${runs.whole[1]};
} else {
    const idx last = min(within + ${runs.wide}, end);
    #pragma unroll 1
    for (within = max(within, (idx)0); within < last; ++within) {
        const uint e = row + (uint)within;
${indent(capture(digits, runs.one[0]), "        ")}\
        ${runs.one[1]};
    }
}
</%def>\
// ${title}
${prelude(types, wide, {1, load.width if places else store.width // len(read["lanes"]), store.width, lanes}, computed=(store.width,) if computes else (), aligned=True, kept=bool(places), anywhere=anywhere)}
${trades(types, both, exchanges, swaps)}\
__kernel __attribute__((reqd_work_group_size(${group}, 1, 1))) void reorder(
    __global const ${types.buffers[0]} *restrict src, __global ${types.buffers[1]} *restrict dst${"".join(f",\n    {d}" for d in declarations)})
{
% for constant in constants:
    ${constant}
% endfor
% if places:
    __local ${types.work} kept[${places}] __attribute__((aligned(64)));
% endif
% if starts:
    // Where the tile of this work-group starts along each loop.
% for kind, name, value in starts:
    const ${kind} ${name} = ${value};
% endfor
% endif
    const idx src_at = ${src_base};
% if anywhere:
<%
kind = "uchar" if anywhere.bits == 8 else "ushort"
after = [(j * anywhere.bits, f"src_words * {anywhere.each} + {j}") for j in range(anywhere.each - 1)]
rest = [f"({at} < {anywhere.end} ? (uint)((__global const {kind} *)src)[{at}] << {shift} : 0)" for shift, at in after]
%>\
    // The whole words of the source, and the elements after them.
    const idx src_words = ${anywhere.end} / ${anywhere.each};
    const uint src_rest = ${" | ".join(rest) if anywhere.has_rest else "0"};
% endif
    ${"const idx dst_at =" if types.target or runs else "dst +="} ${dst_base};
% for name, value in bases:
    const idx ${name} = ${value};
% endfor
    ${both} held[${at_once}];
% for one in shared:
<% name, rounds = one.name, -(-one.count // group) %>\
    // Many elements share a value.
    __local ${types.real} kept_${name}[${one.count}] __attribute__((aligned(64)));
    ${types.real} held_${name}[${rounds}];
    #pragma unroll
    for (uint k = 0; k < ${rounds}; ++k) {
        const uint i = k * ${group} + (uint)get_local_id(0);
        const idx at = ${f"{one.test} ? {one.at} : 0" if one.test else one.at};
        held_${name}[k] = ${one.value};
    }
% endfor

% if chunks > 1:
    for (uint begin = 0; begin < ${end}; begin += ${step}) {
% else:
    {
        const uint begin = 0;
% endif
        #pragma unroll
        for (uint k = 0; k < ${at_once}; ++k) {
${indent(capture(fetch), "            ")}\
        }
% for statement in traded:
        ${statement}
% endfor
        #pragma unroll
        for (uint k = 0; k < ${at_once}; ++k) {
% if places:
${indent(capture(keep), "            ")}\
% else:
${indent(capture(unit, store, "begin + k * " + str(group)), "            ")}\
% for name, text in load.digits:
% if (name, text) not in store.digits:
            const idx ${name} = ${text};
% endif
% endfor
${indent(capture(taken), "            ")}\
${indent(capture(puts), "            ")}\
% endif
        }
    }
% for one in shared:
<% name, rounds = one.name, -(-one.count // group) %>\
    #pragma unroll
    for (uint k = 0; k < ${rounds}; ++k) {
        const uint i = k * ${group} + (uint)get_local_id(0);
        ${f"if (i < {one.count}) " if one.count % group else ""}kept_${name}[i] = held_${name}[k];
    }
% endfor
% if places:
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (uint first = 0; first < ${store.count}; first += ${group}) {
% if runs:
        const uint n = first + (uint)get_local_id(0);
${indent(capture(when, write["counted"], capture(put_runs)), "        ")}\
% else:
${indent(capture(unit, store, "first"), "        ")}\
${indent(capture(when, write["counted"], capture(second)), "        ")}\
% endif
    }
% endif
}
