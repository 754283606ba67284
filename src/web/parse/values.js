/*
 * Types of the elements of tensors: their width, and their values as text.
 *
 * Names are those of safetensors; TYPES also has the lower case names of
 * zTensor.
 */

const integer = (name, width) => ({ width, read: (view, at) =>
    String(view[`get${name}`](at, true)) });
const float = (width, read) => ({ width, read: (view, at) =>
    formatFloat(read(view, at)) });

const half = (view, at) => smallFloat(view.getUint16(at, true), 5, 10);
const brain = (view, at) => {
    const word = new DataView(new ArrayBuffer(4));

    word.setUint16(0, view.getUint16(at, true));

    return word.getFloat32(0);
};

const F32 = float(4, (view, at) => view.getFloat32(at, true));
const F64 = float(8, (view, at) => view.getFloat64(at, true));

export const TYPES = new Map(Object.entries({
    F64, F32, F16: float(2, half), BF16: float(2, brain),
    F8_E4M3: float(1, (view, at) => float8(view.getUint8(at))),
    F8_E5M2: float(1, (view, at) => smallFloat(view.getUint8(at), 5, 2)),
    I64: integer("BigInt64", 8), I32: integer("Int32", 4),
    I16: integer("Int16", 2), I8: integer("Int8", 1),
    U64: integer("BigUint64", 8), U32: integer("Uint32", 4),
    U16: integer("Uint16", 2), U8: integer("Uint8", 1),
    BOOL: { width: 1, read: (view, at) =>
        ["false", "true"][view.getUint8(at)] ?? "not 0 or 1" },
    C64: complex(F32), COMPLEX64: complex(F32), COMPLEX128: complex(F64)
}));


function complex(part) {
    return { width: 2 * part.width, read: (view, at) =>
        `${part.read(view, at)}, ${part.read(view, at + part.width)}i` };
}


/* Decodes a float of IEEE 754 with few bits. */

function smallFloat(bits, exponentBits, fractionBits) {
    const fraction = bits & (1 << fractionBits) - 1;
    const exponent = bits >> fractionBits & (1 << exponentBits) - 1;
    const sign = bits >> exponentBits + fractionBits ? -1 : 1;
    const bias = (1 << exponentBits - 1) - 1;
    const part = fraction / (1 << fractionBits);

    if (exponent === (1 << exponentBits) - 1) {
        return fraction ? NaN : sign * Infinity;
    }

    return exponent ? sign * 2 ** (exponent - bias) * (1 + part)
                    : sign * 2 ** (1 - bias) * part;
}


/* F8_E4M3 of the OCP has no infinity, and one NaN of each sign. */

function float8(bits) {
    if ((bits & 0x7f) === 0x7f) {
        return NaN;
    }

    const exponent = bits >> 3 & 15;
    const value = exponent ? 2 ** (exponent - 7) * (1 + (bits & 7) / 8)
                           : 2 ** -6 * (bits & 7) / 8;

    return bits & 0x80 ? -value : value;
}


function formatFloat(value) {
    if (Object.is(value, -0)) {
        return "-0";
    }

    return Number.isFinite(value) && value !== 0
        ? String(Number(value.toPrecision(6))) : String(value);
}


/* The width of an element in bytes, or undefined. */

export const widthOf = (type) => TYPES.get(type.toUpperCase())?.width;


/* Returns the first elements of a buffer as texts, or null. */

export function decodeValues(type, buffer, limit = 256) {
    const codec = TYPES.get(type.toUpperCase());

    if (!codec) {
        return null;
    }

    const view = new DataView(buffer);
    const count = Math.min(limit, Math.floor(buffer.byteLength / codec.width));

    return Array.from({ length: count }, (_, i) =>
        codec.read(view, i * codec.width));
}
