<%doc>
The index source of one tensor `t` (clformats.index.tensor.Tensor). Where sizes come from kernel
arguments, or from shape_info, functions take them in front of the coordinates, under the names that
they have in the kernel, and a macro of the function's name passes them on.
</%doc>\
<%
letters = t.letters
coordinates = ", ".join(letters)
typed = ", ".join(f"{kind} {c}" for c in letters)
pointers = ", ".join(f"{kind} *{c}" for c in letters)
%>\
<%def name="function(result, name, parameters)">\
% if t.parameters:
static inline ${result} ${p}_${name.lower()}(${p}_PARAMETERS, ${parameters})
% else:
static inline ${result} ${p}_${name}(${parameters})
% endif
{
${caller.body()}\
}
% if t.parameters:
<% names = ", ".join(parameter.split()[-1].lstrip("*") for parameter in parameters.split(",")) %>\
#define ${p}_${name}(${names}) ${p}_${name.lower()}(${p}_ARGUMENTS, ${names})
% endif
</%def>\
% for line in head:
// ${line}
% endfor
% if vector and vector.value in ("double", "half"):

#pragma OPENCL EXTENSION cl_khr_fp${"64" if vector.value == "double" else "16"} : enable
% endif
% if t.parameters:

// the parameters of a kernel or function that uses what follows, and how they are passed on
#define ${p}_PARAMETERS ${", ".join(t.parameters)}
#define ${p}_ARGUMENTS ${", ".join(t.arguments)}
% endif
% for title, defines in t.defines:
% if defines:

// ${title}
% for name, value in defines.items():
#define ${name} ${value}
% endfor
% endif
% endfor

// The offset of an element, in elements.
<%self:function result="${kind}" name="INDEX" parameters="${typed}">\
    return ${t.offset};
</%self:function>\

// The same for coordinates of any value: each is taken modulo its size first.
<%self:function result="${kind}" name="INDEX_SAFE" parameters="${typed}">\
    return ${p}_INDEX(${", ".join(f"{c} % {n}" for c, n in wrapped)});
</%self:function>\

// The coordinates of the element at an offset; false where there is none, but padding or a gap.
<%self:function result="bool" name="COORDS" parameters="${kind} offset, ${pointers}">\
${steps(inverse, "    ")}\
% if behind:
    if (${tail}) {
${steps(behind, "        ")}\
    }
% endif
    return ${" && ".join(inside)};
</%self:function>\
% if pixel:

// The pixel in which an element lies.
% for name, value in pixel.axes:
<%self:function result="int" name="${name}" parameters="${typed}">\
    return (int)(${value});
</%self:function>\
% endfor

// The components of a pixel, 0 where no element lies.
<%self:function result="float4" name="PADDED" parameters="float4 value, ${typed}">\
    const ${kind} components = ${pixel.channels};
    const ${kind} at = ${p}_INDEX(${coordinates})${f" - {t.offset0}" if str(t.offset0) != "0" else ""};
    ${kind} ${", ".join(f"at_{c}" for c in letters)};
    float lanes[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    vstore4(value, 0, lanes);
    for (uint lane = 0; lane < 4; ++lane) {
        if (lane >= components || !${p}_COORDS(at / components * components + lane${f" + {t.offset0}" if str(t.offset0) != "0" else ""}, ${", ".join(f"&at_{c}" for c in letters)})) {
            lanes[lane] = 0.0f;
        }
    }
    return vload4(0, lanes);
</%self:function>\

% if pixel.sampled:
__constant sampler_t ${p}_SAMPLER = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
% endif
<%
where = pixel.at(p, coordinates)
sampled = f"{p}_SAMPLER, {where}" if pixel.sampled else where
%>\
#define ${p}_PIXEL(image, ${coordinates}) (${pixel.load % f"read_image{pixel.function}(image, {sampled})"})
#define ${p}_STORE_PIXEL(value, image, ${coordinates}) write_image${pixel.function}(image, ${where}, ${pixel.store % f"{p}_PADDED(value, {coordinates})"})
% if pixel.function == "f":
#ifdef cl_khr_fp16
#define ${p}_PIXEL_HALF(image, ${coordinates}) read_imageh(image, ${sampled})
#endif
% endif
% endif
<%def name="steps(inverse, indent)">\
% if len(inverse.steps) > 1 or inverse.rest:
${indent}${kind} rest = offset${f" - {t.offset0}" if str(t.offset0) != "0" else ""};
% for step in inverse.steps:
% if step.stride is None:
${indent}const ${kind} ${step.name} = rest;
% else:
${indent}const ${kind} ${step.name} = rest / ${step.stride};
${indent}rest %= ${step.stride};
% endif
% endfor
% else:
${indent}const ${kind} ${inverse.steps[0].name} = offset${f" - {t.offset0}" if str(t.offset0) != "0" else ""};
% endif
% for c, value in zip(t.letters, inverse.coordinates):
${indent}*${c} = ${value};
% endfor
</%def>\
% if vector:
<%
w, value = vector.width, f"{vector.value}{vector.width}"
lanes = vector.name(letters)
at = f"{p}_INDEX({coordinates})"
one_part = len(vector.parts) == 1
c, size = letters[vector.parts[0].dim], t.sizes[vector.parts[0].dim]
def step(part):
    """The place of a lane along a part's dimension."""
    if one_part:
        return "lane"
    inner = f"lane / {part.every}" if part.every > 1 else "lane"
    return inner if part is vector.parts[0] else f"{inner} % {part.width}"
places = {part.dim: f"{letters[part.dim]} + {step(part)}" for part in vector.parts}
one_at = f"{p}_INDEX({', '.join(places.get(k, x) for k, x in enumerate(letters))})"
valid = " && ".join(f"{places[part.dim]} < {t.sizes[part.dim]}" for part in vector.parts if part.tail)
def test(part):
    numbers = ", ".join(str(k // part.every % part.width) for k in range(w))
    return f"(uint{w})({numbers}) + {'(uint)' * (kind == 'ulong')}{letters[part.dim]} >= (uint){t.sizes[part.dim]}"
tests = [test(part) for part in vector.parts if part.tail]
joined = tests[0] if len(tests) == 1 else " | ".join(f"({one})" for one in tests)
beyond = joined if vector.mask == "int" else f"convert_{vector.mask}{w}({joined})"
about = " x ".join(f"{part.width} neighbours along {letters[part.dim]}" for part in vector.parts)
begin = " and ".join(dict.fromkeys(str(part.width) for part in vector.parts))
zeroed = f"select(%s, ({value})(0), beyond)"
load = f"vload_half{w}(0, src + {at})" if vector.is_half else f"vload{w}(0, src + {at})"
store = f"vstore_half{w}_rte(%s, 0, dst + {at})" if vector.is_half else f"vstore{w}(%s, 0, dst + {at})"
one = f"vload_half({one_at}, src)" if vector.is_half else f"src[{one_at}]"
set_one = f"vstore_half_rte(lanes[lane], {one_at}, dst)" if vector.is_half else f"dst[{one_at}] = lanes[lane]"
%>\

// ${about}, from a multiple of ${begin} on. Lanes beyond the tensor are 0\
${"; stored as 0 they fill the block up" if vector.whole else ", and not stored" if vector.tail else ""}.
<%self:function result="${value}" name="LOAD_${lanes}" parameters="__global const ${vector.memory} *src, ${typed}">\
% if vector.whole and vector.tail:
    const ${vector.mask}${w} beyond = ${beyond};
    return ${zeroed % load};
% elif vector.whole or (vector.dense and not vector.tail):
    return ${load};
% else:
% if vector.dense:
    if (${c} + ${w} <= ${size}) {
        return ${load};
    }
% endif
    ${vector.value} lanes[${w}];
    for (uint lane = 0; lane < ${w}; ++lane) {
        lanes[lane] = ${f"{valid} ? {one} : 0" if vector.tail else one};
    }
    return vload${w}(0, lanes);
% endif
</%self:function>\

<%self:function result="void" name="STORE_${lanes}" parameters="${value} value, __global ${vector.memory} *dst, ${typed}">\
% if vector.whole and vector.tail:
    const ${vector.mask}${w} beyond = ${beyond};
    ${store % (zeroed % "value")};
% elif vector.whole or (vector.dense and not vector.tail):
    ${store % "value"};
% else:
% if vector.dense:
    if (${c} + ${w} <= ${size}) {
        ${store % "value"};
        return;
    }
% endif
    ${vector.value} lanes[${w}];
    vstore${w}(value, 0, lanes);
% if one_part or not vector.tail:
    for (uint lane = 0; lane < ${w}${f" && {valid}" if vector.tail else ""}; ++lane) {
        ${set_one};
    }
% else:
    for (uint lane = 0; lane < ${w}; ++lane) {
        if (${valid}) {
            ${set_one};
        }
    }
% endif
% endif
</%self:function>\
% endif
