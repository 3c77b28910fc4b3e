<%doc>
A work-group moves a box of elements: consecutive work-items read consecutive elements of the source,
and write consecutive elements of the destination. Between the two passes the box lies in local
memory; without local memory both passes are one.
</%doc>\
<%namespace file="prelude.mako" import="prelude"/>\
<%!
from textwrap import indent
%>\
<%
both = f"{types.work}{read.width if read.width > 1 else ''}"
result_type = f"{types.dst}{write.width if write.width > 1 else ''}"
element = " && ".join(tails + [g.inside for g in guards if g.inside])
inside = " && ".join(g.inside for g in guards if g.inside)
exists = " && ".join(tails + [g.exists for g in guards if g.exists])
%>\
<%def name="each(p)">\
const uint n = first + get_local_id(0);
% if p.count % group:
if (n >= ${p.count}) {
    break;
}
% endif
% if p.width > 1:
const uint e = n * ${p.width};
% endif
% for name, text in p.digits:
const idx ${name} = ${text};
% endfor
</%def>\
<%def name="load(test)">\
% if test:
${both} value = 0;
if (${test}) {
    value = ${loaded};
}
% else:
const ${both} value = ${loaded};
% endif
</%def>\
<%def name="guarded(*wanted)">\
% for g in guards:
% if any(getattr(g, name) for name in wanted):
const idx ${g.name} = ${g.value};
% endif
% endfor
</%def>\
<%def name="store()">\
% if result and inside:
${result_type} result = 0;
if (${inside}) {
    result = ${result};
}
% elif result:
const ${result_type} result = ${result};
% endif
${stored};
</%def>\
<%def name="where(test, text)">\
% if test:
if (${test}) {
${indent(text, "    ")}\
}
% else:
${text}\
% endif
</%def>\
// ${title}
${prelude(types, wide, {1, read.width, write.width}, computed=(1,) if result else (), aligned=True)}
__kernel __attribute__((reqd_work_group_size(${group}, 1, 1))) void reorder(
    __global const ${types.src} *restrict src, __global ${types.dst} *restrict dst${"".join(f",\n    {d}" for d in declarations)})
{
% for constant in constants:
    ${constant}
% endfor
% if places:
    __local ${types.work} kept[${places}];
% endif
% if starts:
    // Where the box of this work-group starts along each loop.
    idx rest = (idx)get_group_id(0);
% for name, value, left in starts:
    const idx ${name} = ${value};
% if left:
    rest = ${left};
% endif
% endfor
% endif
    src += ${src_base};
    dst += ${dst_base};
% for name, value in operands:
    const idx ${name} = ${value};
% endfor
% if places:

    for (uint first = 0; first < ${read.count}; first += ${group}) {
${indent(capture(each, read), "        ")}\
${indent(capture(guarded, "inside"), "        ")}\
${indent(capture(load, element), "        ")}\
% for k, place in enumerate(read.places):
        kept[${place}] = value${f".s{k:x}" if read.width > 1 else ""};
% endfor
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint first = 0; first < ${write.count}; first += ${group}) {
${indent(capture(each, write), "        ")}\
${indent(capture(guarded, "exists", *(["inside"] if result else [])), "        ")}\
${indent(capture(where, exists, capture(store)), "        ")}\
    }
% else:

    for (uint first = 0; first < ${write.count}; first += ${group}) {
${indent(capture(each, write), "        ")}\
${indent(capture(guarded, "inside", "exists"), "        ")}\
${indent(capture(where, exists, capture(load, inside) + capture(store)), "        ")}\
    }
% endif
}
