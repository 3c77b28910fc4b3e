<%doc>
A tile is loaded into registers r0, r1, ..., shuffled, and stored. The loops are the same for the
tiles that lie wholly inside the tensor and for those at its edges; the edges have a pass of their
own, because a compiler that sees both in one loop merges their stores and spoils them.
</%doc>
<%namespace file="prelude.mako" import="prelude"/>
<%
vector = f"{types.work}{width}"
items = " && ".join(f"{g.name} >= {g.lo} && {g.name} + {g.span} < {g.hi}" if g.lo != "0" else f"{g.name} + {g.span} < {g.hi}" for g in guards)
moved = lambda base, by: base if by == "0" else f"{base} + {by}"
%>
<%def name="shuffle(step, side)">
<%
pattern = step.low if side == "LOW" else step.high
name = f"{side}{steps.index(step)}"
lane = lambda k: f"{'ab'[k // width]}.s{k % width:x}"
%>
#define ${name}(a, b) __builtin_shufflevector(a, b, ${", ".join(map(str, pattern))})
</%def>
<%def name="swizzle(step, side)">
<%
pattern = step.low if side == "LOW" else step.high
name = f"{side}{steps.index(step)}"
%>
#define ${name}(a, b) (${vector})(${", ".join(f"{'ab'[k // width]}.s{k % width:x}" for k in pattern)})
</%def>
<%def name="network()">
% for number, step in enumerate(steps):
% if step.register is None:
% for a in range(registers):
            r${a} = LOW${number}(r${a}, r${a});
% endfor
% else:
% for a in range(registers):
<% b = a | 1 << step.register %>
% if a != b:
            t = LOW${number}(r${a}, r${b});
            r${b} = HIGH${number}(r${a}, r${b});
            r${a} = t;
% endif
% endfor
% endif
% endfor
</%def>
<%def name="bases()">
% for name, value in starts:
            const idx ${name} = ${value};
% endfor
% for g in guards:
            const idx ${g.name} = ${g.base};
% endfor
</%def>
<%def name="pointers()">
            __global const ${types.src} *from = src + (${src_base});
            __global ${types.dst} *to = dst + (${dst_base});
</%def>
<%def name="walk(body)">
% if middle:
    for (idx ${middle.variable} = first; ${middle.variable} < last; ++${middle.variable}) {
% else:
    {
% endif
% if inner:
        for (idx ${inner.variable} = 0; ${inner.variable} < ${inner.count}; ++${inner.variable}) {
% else:
        {
% endif
${body()}
        }
    }
</%def>
<%def name="inside()">
${bases()}
% if guards:
            if (!(${items})) {
                continue;
            }
% endif
${pointers()}
            ${vector} ${", ".join(f"r{k}" for k in range(registers))};
% if any(s.register is not None for s in steps):
            ${vector} t;
% endif
% for k in range(registers):
% if load_lanes is None:
            r${k} = ${types.load(moved("from", loads[k]), width)};
% else:
            r${k} = (${vector})(${", ".join(types.load(moved(moved("from", loads[k]), lane), 1) for lane in load_lanes)});
% endif
% endfor
${network()}
% for k in range(registers):
% if store_lanes is not None:
% for l, lane in enumerate(store_lanes):
            ${types.store(f"r{k}.s{l:x}", moved(moved("to", stores[k]), lane), 1)};
% endfor
% elif nontemporal:
            ${types.store_nontemporal(f"r{k}", moved("to", stores[k]), width)};
% else:
            ${types.store(f"r{k}", moved("to", stores[k]), width)};
% endif
% endfor
</%def>
<%def name="edge()">
${bases()}
            if (${items}) {
                continue;
            }
${pointers()}
            ${vector} ${", ".join(f"r{k}" for k in range(registers))};
% if any(s.register is not None for s in steps):
            ${vector} t;
% endif
% for k in range(registers):
            r${k} = load_edge(${", ".join([moved("from", loads[k]), *(moved(g.name, by) for g, by in zip(guards, load_guards[k])), *edge_numbers, *strides_used(load_lanes)])});
% endfor
${network()}
% for k in range(registers):
            store_edge(${", ".join([f"r{k}", moved("to", stores[k]), *(moved(g.name, by) for g, by in zip(guards, store_guards[k])), *edge_numbers, *strides_used(store_lanes)])});
% endfor
</%def>
<%
names = [d.split()[-1] for d in declarations]
edge_numbers = [n for n in names if n[:2] in ("lo", "hi") or n.startswith("end")]
import re
def strides_used(lanes):
    return [n for n in names if "stride" in n and lanes and any(re.search(rf"\b{n}\b", lane) for lane in lanes)]
parameters = [f"idx {g.name}" for g in guards] + [f"idx {n}" for n in edge_numbers]
lane_index = lambda lanes: "l" if lanes is None else "lane_at[l]"
%>
// ${title}
${prelude(types, wide, (1, width), nontemporal)}
% if steps:
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLE
#endif
#endif
#ifdef HAS_SHUFFLE
% for step in steps:
${shuffle(step, "LOW")}
% if step.high:
${shuffle(step, "HIGH")}
% endif
% endfor
#else
% for step in steps:
${swizzle(step, "LOW")}
% if step.high:
${swizzle(step, "HIGH")}
% endif
% endfor
#endif
% endif
% if guards:
// Lanes that are no element read as zero; nothing outside the tensor is touched.
static inline ${vector} load_edge(
    __global const ${types.src} *p, ${", ".join(parameters + [f"idx {n}" for n in strides_used(load_lanes)])})
{
    ${types.work} lane[${width}];
% if load_lanes is not None:
    const idx lane_at[${width}] = {${", ".join(load_lanes)}};
% endif
    for (int l = 0; l < ${width}; ++l) {
        bool inside = true;
% for g in guards:
        const idx at_${g.name} = ${moved(g.name, g.load_lane or "0")};
        inside = inside && at_${g.name} >= ${g.lo} && at_${g.name} < ${g.hi};
% endfor
        lane[l] = 0;
        if (inside) {
            lane[l] = ${types.load(f"p + {lane_index(load_lanes)}", 1)};
        }
    }
    return vload${width}(0, lane);
}

// Lanes beyond the padding belong to no one and are left alone.
static inline void store_edge(
    ${vector} v, __global ${types.dst} *p, ${", ".join(parameters + [f"idx {n}" for n in strides_used(store_lanes)])})
{
    ${types.work} lane[${width}];
    vstore${width}(v, 0, lane);
% if store_lanes is not None:
    const idx lane_at[${width}] = {${", ".join(store_lanes)}};
% endif
    for (int l = 0; l < ${width}; ++l) {
        bool inside = true;
% for g in guards:
        inside = inside && ${moved(g.name, g.store_lane or "0")} < ${g.end};
% endfor
        if (inside) {
            ${types.store("lane[l]", f"p + {lane_index(store_lanes)}", 1)};
        }
    }
}
% endif

__kernel void reorder(
    __global const ${types.src} *restrict src, __global ${types.dst} *restrict dst,
    ${",\n    ".join(declarations)})
{
% if outer or middle:
    idx rest = (idx)get_global_id(0);
% endif
% if middle:
% if outer:
    const idx chunks = (${middle.count} + chunk - 1) / chunk;
    const idx first = rest % chunks * chunk;
    rest /= chunks;
% else:
    const idx first = rest * chunk;
% endif
    const idx last = min(first + chunk, (idx)(${middle.count}));
% endif
% for loop_ in reversed(outer[1:]):
    const idx ${loop_.variable} = rest % (${loop_.count});
    rest /= ${loop_.count};
% endfor
% if outer:
    const idx ${outer[0].variable} = rest;
% endif
${walk(inside)}
% if guards:
${walk(edge)}
% endif
}
