<%doc>
A tile is loaded into registers r0, r1, ..., shuffled, and stored. The loops are the same for the
tiles that lie wholly inside the tensor and for those at its edges; the edges have a pass of their
own, because a compiler that sees both in one loop merges their stores and spoils them.
</%doc>\
<%namespace file="prelude.mako" import="prelude, items_alone"/>\
<%namespace name="lines" file="carry.mako"/>\
<%namespace name="keep" file="keep.mako"/>\
<%namespace name="ahead" file="ahead.mako"/>\
<%namespace name="stage" file="stage.mako"/>\
<%namespace name="edges" file="edges.mako"/>\
<%!
from textwrap import indent
from clformats.kernels.ahead import Box, Rows, Share
from clformats.schedule.network import in_turn


def joined_registers(register, count, size):
    """The registers that are interleaved with one."""
    apart = count // size
    return range(register % apart, count, apart)
%>\
<%
vector = f"{types.work}{width}"
patterns = [(f"{side}{n}", pattern) for n, s in enumerate(steps) for side, pattern in (("LOW", s.low), ("HIGH", s.high)) if pattern]
patterns += [(f"MIX{c}_{j}", pattern) for c, mix in enumerate(mixes) for j, pattern in enumerate(mix, 1)]
patterns += [(f"JOIN{n}", pattern) for n, pattern in enumerate(join_patterns)]
patterns += [(f"SPREAD{n}", pattern) for n, pattern in enumerate(spreads)]
%>\
<%def name="shuffles(word)">\
% for name, pattern in patterns:
% if word == "shuffle":
#define ${name}(a, b) __builtin_shufflevector(a, b, ${", ".join(map(str, pattern))})
% else:
#define ${name}(a, b) (${vector})(${", ".join(f"{'ab'[k // width]}.s{k % width:x}" for k in pattern)})
% endif
% endfor
</%def>\
<%def name="step(number, a, b=None)">\
% if b is None:
r${a} = LOW${number}(r${a}, r${a});
% else:
t = LOW${number}(r${a}, r${b});
r${b} = HIGH${number}(r${a}, r${b});
r${a} = t;
% endif
</%def>\
<%def name="mixed(registers)">\
{
% for c, mix in enumerate(mixes):
    ${vector} v${c} = MIX${c}_1(r${registers[0]}, r${registers[1]});
% for j in range(2, len(mixes)):
    v${c} = MIX${c}_${j}(v${c}, r${registers[j]});
% endfor
% endfor
% for c, register in enumerate(registers):
    r${register} = v${c};
% endfor
}
</%def>\
<%def name="bases(other=None)">\
% for name, value in starts:
const idx ${name} = ${other.start if other and other.name == name else value};
% endfor
</%def>\
<%def name="tile(load_texts, computed_texts, parts, given_ahead=None, collects=False)">\
<%
count = sum(len(lines) for _, lines in parts) + len(joins)
if isinstance(given_ahead, Box):
    ask = "ASK_NEXT" if given_ahead.turns == 1 else f"if (!(turn++ & {given_ahead.turns - 1})) ASK_NEXT"
    asked = [ask] * given_ahead.lines
elif isinstance(given_ahead, Rows):
    asked = ["ASK_NEXT"] * given_ahead.lines
elif isinstance(given_ahead, Share):
    asked = [f"PREFETCH({at});" for at in given_ahead.lines]
else:
    asked = []
shares = iter([asked[k * len(asked) // count : (k + 1) * len(asked) // count] for k in range(count)])
# Tiles at an edge are loaded and stored element by element.
taken, put = (mixes and apart, mixes and not apart) if load_texts is loads else (False, False)
%>\
% for o in operands:
const idx ${o.at} = ${o.base};
% endfor
__global const ${types.src} *from = src + (${src_base});
% if collects:
${types.dst} *to = held_at + (corner + ${staging.to});
% else:
__global ${types.dst} *to = dst + (${dst_base});
% endif
% if isinstance(given_ahead, Rows) and given_ahead.lines:
${ahead.rows_begun(given_ahead, types.src)}\
% elif isinstance(given_ahead, Rows):
${ahead.statements(given_ahead)}\
% elif isinstance(given_ahead, Share):
__global const ${types.src} *next = src + (${given_ahead.begin});
% endif
% if windows:
const ${vector} none = (${vector})(0);
${vector} ${", ".join(w.name for w in windows)};
if (${" && ".join(f"{w.place} + {width} <= src_end" for w in windows if w.is_far)}) {
% for w in windows:
    ${w.name} = ${w.load};
% endfor
} else {
% for w in windows:
    ${w.name} = load_window(src, ${w.place}, src_end);
% endfor
}
% endif
% if any(s.register is not None for s in steps):
${vector} t;
% endif
% for needed, store_texts in joins:
% for name, value in needed:
const ${vector} ${name} = ${value};
% endfor
% for one in next(shares):
${one}
% endfor
% for text in store_texts:
${text};
% endfor
% endfor
% for registers, lines in parts:
% for what, numbers in in_turn(steps, registers, [needed for needed, _ in lines], at_once=at_once):
% if what == "load":
${vector} r${numbers[0]} = ${load_texts[numbers[0]]};
% if taken and numbers[0] >= len(registers) - len(registers) // len(mixes):
${mixed(joined_registers(numbers[0], len(registers), len(mixes)))}\
% endif
% elif what == "step":
${step(*numbers)}\
% else:
<% needed, store_texts = lines[numbers[0]] %>\
% if put:
% for k in needed:
% if k < len(registers) // len(mixes):
${mixed(joined_registers(k, len(registers), len(mixes)))}\
% endif
% endfor
% endif
% if computed_texts:
% for k in needed:
const ${types.dst}${width} w${k} = ${computed_texts[k]};
% endfor
% endif
% for one in next(shares):
${one}
% endfor
% for text in store_texts:
${text.rstrip(";") + ";" if not text.endswith("}") else text}
% endfor
% endif
% endfor
% endfor
</%def>\
<%def name="visit(test, *texts)">\
${bases()}\
% if test:
% for g in guards:
const idx ${g.name} = ${g.base};
% endfor
if (${test}) {
${indent(capture(tile, *texts), "    ")}\
}
% else:
${tile(*texts)}\
% endif
</%def>\
<%def name="nest(nested, text, given_ahead=None)">\
<%
for level in reversed(nested):
    v = level.variable
    if v == "start" and given_ahead:
        text = capture(ahead.begun, given_ahead, types.src) + text
    on = f"++{v}" if level.step == "1" else f"{v} += {level.step}"
    text = f"for (idx {v} = {level.first}; {v} < {level.last}; {on}) {{\n{indent(text, '    ')}}}\n"
if not nested:
    text = "{\n" + indent(text, "    ") + "}\n"
%>\
${indent(text, "    ")}\
</%def>\
// ${title}
${prelude(types, wide, widths, streams, (width,) if computed else ())}\
% if asks:
${ahead.functions(asks)}\
% endif
% if patterns:
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLE
#endif
#endif
#ifdef HAS_SHUFFLE
${shuffles("shuffle")}\
#else
${shuffles("swizzle")}\
#endif
% endif
% if weaves:
#define TURN(v, bits) ((v) << (bits) | (v) >> (${types.dst_type.bits} - (bits)))
#define CHOOSE(a, b, mask) (((a) & ~(mask)) | ((b) & (mask)))
% endif
${edges.functions()}\
% if carry:
${(keep if carry.waiting else lines).functions(carry, types, width)}\
% endif
% if staging:
${stage.functions(staging, types, width)}\
% endif
% for name, formula in places:

// Where step q of a run lies on the side where it is not one.
#define ${name}(q) (${formula})
% endfor

${items_alone()}\
__kernel void reorder(
    __global const ${types.src} *restrict src, __global ${types.dst} *restrict dst${"".join(f",\n    {d}" for d in declarations)})
{
% for constant in constants:
    ${constant}
% endfor
% if outer or middle:
    idx rest = (idx)get_global_id(0);
% endif
% if middle:
% if outer:
    const idx chunks = (${middle.last} + chunk - 1) / chunk;
    const idx first = rest % chunks * chunk;
    rest /= chunks;
% else:
    const idx first = rest * chunk;
% endif
    const idx last = min(first + chunk, (idx)(${middle.last}));
% endif
% for level in reversed(outer[1:]):
    const idx ${level.variable} = rest % (${level.last});
    rest /= ${level.last};
% endfor
% if outer:
    const idx ${outer[0].variable} = rest;
% endif
% if carry and carry.waiting and not always_edge:
    uint16 kept[${carry.waiting}];
${indent(capture(keep.kept, inside, visit), "    ")}\
% elif carry and carry.size and not always_edge:
    ROWS_BEGUN(${len(carry.lines)}, ${carry.size});
${nest(loops[:-1], capture(lines.linked_rows, inside, bases, tile))}\
    END_RUN;
% elif carry and not always_edge:
${nest(loops[:-1], capture(lines.carried, inside, bases, tile))}\
% elif staging and not always_edge:
    uint16 stage[${staging.lines}];
    ${types.dst} *const held_at = (${types.dst} *)(stage + ${staging.front});
${indent(capture(stage.collected, inside, bases, nest, visit), "    ")}\
% elif not always_edge:
${nest(loops, capture(visit, inside, loads, computed, passes, asks), asks)}\
% endif
% if guards:
<% edge_asks = asks if always_edge and isinstance(asks, Box) else None %>\
${nest(edge_loops, capture(visit, "" if always_edge else f"!({inside})", edge_loads, edge_computed, [(range(len(loads)), edge_lines)], edge_asks), edge_asks)}\
% endif
}
