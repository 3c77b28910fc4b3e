<%doc>
Elements narrower than a byte, as lanes of a byte each: see clformats/kernels/codecs.py.
`from` and `to` are where a vector's bytes begin; `skip` are the bits before its first element.
With whole words at multiples of their size, `load_words` and `store_words`: four lanes in a word.
</%doc>\
<%!
from clformats.kernels.codecs import WORDS, parts
%>\
<%def name="element(c)">\

// One element: it may lie in two bytes.
static inline ${c.lane} load_${c.name}_1(__global const uchar *bytes, idx place)
{
    const long bit = (long)place * ${c.bits};
    __global const uchar *from = bytes + (bit >> 3);
    const uint skip = bit & 7;
% if 8 % c.bits:
    const uint both = from[0] | (skip > ${8 - c.bits} ? (uint)from[1] << 8 : 0u);
    const uchar x = both >> skip & ${(1 << c.bits) - 1};
% else:
    const uchar x = from[0] >> skip & ${(1 << c.bits) - 1};
% endif
    return as_${c.lane}((uchar)(${"(x ^ {0}) - {0}".format(1 << (c.bits - 1)) if c.is_signed else "x"}));
}
</%def>\
<%def name="load_each(c, width)">\

static inline ${c.lane}${width} load_${c.name}_${width}(__global const uchar *bytes, idx place)
{
    return (${c.lane}${width})(${", ".join(f"load_{c.name}_1(bytes, place + {k})" for k in range(width))});
}
</%def>\
<%def name="load(c, width)">\
<% n, count, of_bytes = str(width), width // c.elements, c.bytes_of(width) %>\

static inline ${c.lane}${n} load_${c.name}_${n}(__global const uchar *bytes, idx place)
{
<%
m = str(count) if count > 1 else ""
wide = c.word + m
sign = 1 << (c.bits - 1)
%>\
% if c.whole:
    __global const uchar *from = bytes + (place >> ${c.elements.bit_length() - 1})${f" * {c.nbytes}" if c.nbytes > 1 else ""};
% else:
    const long bit = (long)place * ${c.bits};
    __global const uchar *from = bytes + (bit >> 3);
    const uint skip = bit & 7;
% endif
% if c.nbytes == 1 and c.whole:
    ${wide} x = convert_${wide}(BYTES${of_bytes}(from));
% elif c.nbytes == 1:
    uchar${of_bytes} found = BYTES${of_bytes}(from);
    if (skip) {
        found = found >> (uchar)skip | BYTES${of_bytes}(from + 1) << (uchar)(8 - skip);
    }
    ${wide} x = convert_${wide}(found);
% else:
    ${wide} x;
% for k in range(count):
<% lane = f"x.s{k:x}" if count > 1 else "x" %>\
    ${lane} = ${" | ".join(f"({c.word})from[{k * c.nbytes + j}] << {8 * j}" for j in range(c.nbytes))};
% if not c.whole:
    ${lane} = skip ? (${lane} | (${c.word})from[${(k + 1) * c.nbytes}] << ${8 * c.nbytes}) >> skip : ${lane};
% endif
% endfor
% endif
% for shift, stay, move in c.steps():
    x = (x & (${c.word})${stay}) | (x << (${c.word})${shift} & (${c.word})${move});
% endfor
% if c.is_signed:
    return as_${c.lane}${n}((as_uchar${n}(x) ^ (uchar)${sign}) - (uchar)${sign});
% else:
    return as_${c.lane}${n}(x);
% endif
}
</%def>\
<%def name="together(c, width)">\
<%
count = width // c.elements
wide = c.word + (str(count) if count > 1 else "")
%>\

// Elements as the bytes that they share, each unit in a word.
static inline ${wide} together_${c.name}_${width}(${c.lane}${width} lanes)
{
    ${wide} x = as_${wide}(lanes & (${c.lane}${width})(${(1 << c.bits) - 1}));
% for shift, stay, move in reversed(c.steps()):
    x = (x & (${c.word})${stay}) | ((x & (${c.word})${move}) >> (${c.word})${shift});
% endfor
    return x;
}
</%def>\
<%def name="store(c, width)">\
<% count, of_bytes = width // c.elements, c.bytes_of(width) %>\
${together(c, width)}\

static inline void store_${c.name}_${width}(${c.lane}${width} lanes, __global uchar *bytes, idx place)
{
    __global uchar *to = bytes + (place >> ${c.elements.bit_length() - 1})${f" * {c.nbytes}" if c.nbytes > 1 else ""};
% if c.nbytes == 1:
    PUT_BYTES${of_bytes}(convert_uchar${of_bytes}(together_${c.name}_${width}(lanes)), to);
% else:
    const ${c.word}${count if count > 1 else ""} x = together_${c.name}_${width}(lanes);
% for k in range(count):
% for j in range(c.nbytes):
    to[${k * c.nbytes + j}] = (uchar)(${f"x.s{k:x}" if count > 1 else "x"} >> ${8 * j});
% endfor
% endfor
% endif
}
</%def>\
<%def name="load_words(c, width, kept)">\
<%
each, lanes = min(4, width), f"uint{width // 4 if width > 4 else ''}"
size, count = c.pieces(width)
word, mask = WORDS[size], f"{(1 << each * c.bits) - 1:#x}u"
vector = f"{word}{count}" if count in (2, 4) and size == 4 else ""
names = [f"w{k}" for k in range(count)]
texts = parts(width // each, each * c.bits, names, 8 * size)
sign = 1 << c.bits - 1
%>\

static inline ${c.lane}${width} load_${c.name}_${width}(__global const uchar *bytes, idx place)
{
    __global const ${vector or word} *from = (__global const ${vector or word} *)(bytes + (place >> ${c.elements.bit_length() - 1})${f" * {c.nbytes}" if c.nbytes > 1 else ""});
% if vector:
    const ${vector} w = *from;
% endif
    const uint ${", ".join(f"{w} = {f'w.s{k:x}' if vector else f'from[{k}]'}" for k, w in enumerate(names))};
% if not kept:
    const uint mine[] = {${", ".join(f"({text}) & {(1 << c.bits) - 1}u" for text in parts(width, c.bits, names, 8 * size))}};
    return (${c.lane}${width})(${", ".join(f"({c.lane})({f'(mine[{k}] ^ {sign}u) - {sign}u' if c.is_signed else f'mine[{k}]'})" for k in range(width))});
}
<% return "" %>\
% endif
    ${lanes} x = ${f"({lanes})(" if width > 4 else ""}${", ".join(f"({text}) & {mask}" for text in texts)}${")" if width > 4 else ""};
% for shift, stay, move in c.steps(each):
% if c.bits <= 4:
    x = (x | x << ${shift}u) & ${hex(int(stay[:-1], 16) | int(move[:-1], 16))}u;
% else:
    x = (x & ${stay}) | (x << ${shift}u & ${move});
% endif
% endfor
% if c.is_signed:
    x = (x + ${hex((128 - sign) * 0x01010101)}u) ^ ${hex((128 - sign) * 0x01010101)}u;
% endif
    return as_${c.lane}${width}(${"(ushort)x" if width == 2 else "x"});
}
</%def>\
<%def name="store_words(c, width)">\
<%
each, lanes = min(4, width), f"uint{width // 4 if width > 4 else ''}"
size, count = c.pieces(width)
word = WORDS[size]
vector = f"{word}{count}" if count in (2, 4) and size == 4 else ""
names = [f"x.s{k:x}" for k in range(width // each)] if width > 4 else ["x"]
texts = parts(count, 8 * size, names, each * c.bits)
%>\

static inline void store_${c.name}_${width}(${c.lane}${width} lanes, __global uchar *bytes, idx place)
{
    ${lanes} x = ${"convert_uint(as_ushort(lanes))" if width == 2 else f"as_{lanes}(lanes)"}${f" & {hex(((1 << c.bits) - 1) * 0x01010101)}u" if c.is_signed else ""};
% for shift, stay, move in reversed(c.steps(each)):
% if c.bits <= 4:
    x = (x | x >> ${shift}u) & ${hex(int(stay[:-1], 16) | int(move[:-1], 16) >> shift)}u;
% else:
    x = (x & ${stay}) | ((x & ${move}) >> ${shift}u);
% endif
% endfor
    __global ${vector or word} *to = (__global ${vector or word} *)(bytes + (place >> ${c.elements.bit_length() - 1})${f" * {c.nbytes}" if c.nbytes > 1 else ""});
% if vector:
    *to = (${vector})(${", ".join(texts)});
% else:
% for k, text in enumerate(texts):
    to[${k}] = (${word})(${text});
% endfor
% endif
}
</%def>\
<%def name="all(types, widths, streams, aligned, kept)">\
<%
target, wide = types.target, sorted({*widths} - {1})
counts = {w * c.bits // 8 for c in {*types.codecs, target} - {None} for w in wide if c.nbytes == 1 and w >= c.elements and not aligned}
%>\
% if counts:

#if defined(__clang__) && !defined(__NV_CL_C_VERSION) && !defined(CLFORMATS_PORTABLE)
#define VECTORS_OF_BYTES
#endif
#define BYTES(p) (*(p))
#define PUT_BYTES(v, p) (*(p) = (v))
% endif
% for count in sorted(counts - {1}):
#ifdef VECTORS_OF_BYTES
typedef uchar${count} bytes${count} __attribute__((aligned(1)));
#define BYTES${count}(p) (*(__global const bytes${count} *)(p))
#define PUT_BYTES${count}(v, p) (*(__global bytes${count} *)(p) = (v))
#else
#define BYTES${count}(p) vload${count}(0, p)
#define PUT_BYTES${count}(v, p) vstore${count}(v, 0, p)
#endif
% endfor
% for c in types.codecs:
${element(c)}\
% for width in wide if c.whole or not aligned else ():
${load_each(c, width) if width < c.elements else load_words(c, width, kept) if aligned else load(c, width)}\
% endfor
% endfor
% for width in sorted({1, *widths} if types.source else ()):
#define LOAD${width}(place) load_${types.source.name}_${width}(src, place)
% endfor
% for width in wide if target else ():
% if width >= target.elements:
${store_words(target, width) if aligned else store(target, width)}\
#define STORE${width}(v, place) store_${target.name}_${width}(v, dst, place)
<% word = {8: "ulong", 16: "uint4"}.get(width * target.bits // 8) %>\
% if streams and word:
#define STREAM${width}(v, place) STORE_STREAM(HIDDEN(as_${word}(convert_uchar${target.bytes_of(width)}(together_${target.name}_${width}(v)))), (__global ${word} *)(dst + ((place) >> ${target.elements.bit_length() - 1})))
% endif
% endif
% endfor
</%def>\
