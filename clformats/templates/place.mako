<%doc>From the number of a place in the destination to the logical index of the element there.</%doc>\
<%def name="numbers(digits, kind='const idx')">\
// The digits of the destination, innermost first.
% for variable, size in digits[:-1]:
${kind} ${variable} = rest % ${size};
rest /= ${size};
% endfor
${kind} ${digits[-1][0]} = rest;
</%def>\
<%def name="physical(values)">\
// The physical index along each dimension, and whether an element lies there.
% for name, value in values:
const idx ${name} = ${value};
% endfor
</%def>\
<%def name="skip(bounds, leave='return')">\
if (${" || ".join(f"{p} >= {end}" for p, lo, hi, end in bounds if end)}) {
    ${leave};
}
</%def>\
<%def name="holds(bounds)">${" && ".join(f"{p} >= {lo} && {p} < {hi}" if lo != "0" else f"{p} < {hi}" for p, lo, hi, end in bounds)}</%def>\
<%def name="logical(bounds, names=())">\
% for d, (p, lo, hi, end) in enumerate(bounds):
const idx ${names[d] if names else f"i{d}"} = ${p}${"" if lo == "0" else f" - {lo}"};
% endfor
</%def>\
