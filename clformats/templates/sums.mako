<%namespace name="place" file="place.mako"/>\
<%!
from textwrap import indent
%>\
// ${dst}: the sums behind the elements, ${width} for each work-item.
typedef ${"long" if wide else "int"} idx;

__kernel void reorder(
    __global const char *unread, __global char *dst,
    ${",\n    ".join(declarations)})
{
    idx rest = (idx)get_global_id(0);
    if (rest >= items) {
        return;
    }

% if kept:
${indent(capture(place.numbers, kept), "    ")}\
% endif
% if first:
    // The last vector overlaps the one before.
    const idx first = ${first};
% endif

    // One sum for each lane.
% for n, k in vectors:
    int${n} sums${k} = 0;
% endfor
% for variable, size in over:
<% innermost = loop.last %>\
% if tail and innermost:
    {
    idx ${variable} = 0;
    for (; ${variable} < ${size}; ++${variable})
% else:
    for (idx ${variable} = 0; ${variable} < ${size}; ++${variable})
% endif
% endfor
    {
        __global const char *from = dst + (${at});
% for n, k in vectors:
        sums${k} += ${f"convert_int{n}(vload{n}(0, from + {k}))" if n else "*from"};
% endfor
    }
% if tail:
    __global const char *from = dst + (${at});
    for (idx k = 0; k < ${tail}; ++k) {
        sums0${".s0" if vectors[0][0] else ""} += from[k];
    }
    }
% endif
    int lanes[${width}];
% for n, k in vectors:
    ${f"vstore{n}(sums{k}, 0, lanes + {k})" if n else "lanes[0] = sums0"};
% endfor

% for variable, size in kept_lanes:
    for (int ${variable} = 0; ${variable} < ${size}; ++${variable})
% endfor
    {
% for name, value in indices:
        const idx ${name} = ${value};
% endfor
        int sum = 0;
% for variable, size in summed_lanes:
        for (int ${variable} = 0; ${variable} < ${size}; ++${variable})
% endfor
        {
            sum += lanes[${lane}];
        }
% if none_at:
        if (${none_at}) {
            sum = 0;
        }
% endif
% if counted:
        if (${counted})
% endif
        {
            // The elements before may leave them at any byte.
% for factor, start in stores:
            vstore4(as_char4((${number})(${factor} * sum)), ${sum_index}, dst + ${start});
% endfor
        }
    }
}
