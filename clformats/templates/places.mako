<%doc>
Index source and three kernels over it: coordinates to offsets, offsets to coordinates, and the
offsets of all elements. `sizes` are the parameters that the source takes from its kernel; `signed`
is the type of the arrays, in which -1 says that there is none.
</%doc>\
<%
unsigned = f"u{signed}"
more = f", {sizes}" if sizes else ""
pointers = ", ".join(f"&{c}" for c in letters)
%>\
${source}
__kernel void offsets(
    __global const ${signed} *coordinates, __global ${signed} *out, const ulong count${more})
{
    const size_t item = get_global_id(0);
    if (item >= count) {
        return;
    }
% for k, c in enumerate(letters):
    const ${unsigned} ${c} = coordinates[${len(letters)} * item + ${k}];
% endfor
    const bool inside = ${" && ".join(f"{c} < T_SIZE_{c.upper()}" for c in letters)};
    out[item] = inside ? (${signed})T_INDEX(${", ".join(letters)}) : -1;
}

__kernel void coordinates(
    __global const ${signed} *offsets, __global ${signed} *out, const ulong count${more})
{
    const size_t item = get_global_id(0);
    if (item >= count) {
        return;
    }
    ${unsigned} ${", ".join(letters)};
    const bool found = offsets[item] >= 0 && T_COORDS(offsets[item], ${pointers});
% for k, c in enumerate(letters):
    out[${len(letters)} * item + ${k}] = found ? (${signed})${c} : -1;
% endfor
}

__kernel void offset_map(__global ${signed} *out, const ulong count${more})
{
    const size_t item = get_global_id(0);
    if (item >= count) {
        return;
    }
    ${unsigned} rest = item;
% for c in reversed(letters):
    const ${unsigned} ${c} = rest % T_SIZE_${c.upper()};
    rest /= T_SIZE_${c.upper()};
% endfor
    out[item] = T_INDEX(${", ".join(letters)});
}
