<%doc>
Lines that one tile begins and the next one ends: BEGIN_LINE says where a row starts in its line,
END_LINE stores the line across what was left of it and what is new.
</%doc>\
<%def name="functions(carry, types, width)">\
<%
unit = carry.unit
units = f"({f'{unit}_line'})({', '.join(map(str, range(carry.units)))})"
%>\

static inline void store_line(uint16 line, __global ${types.dst} *to)
{
% for k, part in enumerate(carry.parts):
    STORE${width}(as_${types.dst}${width}(line${part}), to${f" + {k * width}" if k else ""});
% endfor
}

// A line of memory lies across those of two tiles. To put lanes in an order known at run time only
// is one instruction; the order is read again for each use, because a compiler that sees it stay the
// same takes it apart.
#if defined(__has_builtin) && !defined(CLFORMATS_PORTABLE)
#if __has_builtin(__builtin_shufflevector)
#define CARRY
#endif
#endif
#ifdef CARRY
typedef ${unit} ${unit}_line __attribute__((ext_vector_type(${carry.units})));
#define UNITS ${units}
#define LINES_BEGUN(n) volatile ${unit}_line turn[n]; ${unit} before[n]

static inline uint16 across(uint16 left, uint16 right, ${unit} before, ${unit}_line turn)
{
    const ${unit}_line ends = __builtin_astype(UNITS >= before, ${unit}_line);
    const ${unit}_line mixed = __builtin_astype(left, ${unit}_line) & ends | __builtin_astype(right, ${unit}_line) & ~ends;
    return __builtin_astype(__builtin_shufflevector(mixed, turn), uint16);
}
#define BEGIN_LINE(to, k) (before[k] = ${carry.units} - ((uintptr_t)(to) & 63) / sizeof(${unit}), turn[k] = UNITS + before[k])
#define END_LINE(left, right, to, k) STORE_STREAM(across(left, right, before[k], turn[k]), (__global uint16 *)((uintptr_t)(to) & ~(uintptr_t)63))
#else
#define LINES_BEGUN(n)
#define BEGIN_LINE(to, k)
#define END_LINE(left, right, to, k) store_line(right, to)
#endif
</%def>\
