/*
 * A page of the listing of a zTensor file, as the server sends it.  The server
 * has parsed the file and checked it; names, attributes and numbers are still
 * those of its author.
 *
 * A tensor has one component or several: a sparse matrix has values, indices
 * and pointers.  Each component becomes a row of its own.
 */

import { isCount, product, shorten } from "./error.js";
import { widthOf } from "./values.js";

const COMPONENTS = 64;


/*
 * Returns { container, version, count, next, attributes, warnings, tensors }.
 * Throws TypeError if the text is no such listing.
 */

export function parseListing(page) {
    if (!isObject(page) || !Array.isArray(page.objects)
        || !isCount(page.count))
    {
        throw new TypeError("The server sent a listing that this page does "
            + "not understand.");
    }

    return {
        container: String(page.container),
        version: String(page.version),
        count: page.count,
        next: isCount(page.next) ? page.next : null,
        attributes: isObject(page.attributes) ? page.attributes : {},
        warnings: [page.warnings || []].flat().map(String),
        tensors: page.objects.filter(isObject).flatMap(readObject)
    };
}


const isObject = (value) => typeof value === "object" && value !== null
    && !Array.isArray(value);


function readObject(object) {
    const name = String(object.name);
    const shape = Array.isArray(object.shape)
        ? object.shape.slice(0, 64).map(Number) : [];
    const parts = isObject(object.components)
        ? Object.entries(object.components).slice(0, COMPONENTS) : [];
    const count = product(shape);
    const notes = [object.status !== "ok" && String(object.status),
        object.format !== "dense" && String(object.format),
        ...[object.errors || []].flat().map(String)].filter(Boolean);

    return parts.filter(([, part]) => isObject(part)).map(([role, part], n) =>
        readPart({ name, shape, count, notes, many: parts.length > 1, n,
            i: object.i, ok: object.status === "ok" }, role, part));
}


/* The shape is that of the tensor: sparse parts are lists. */

function readPart(object, role, part) {
    const dtype = shorten(String(part.dtype), 32).toUpperCase();
    const size = isCount(part.length) ? part.length : 0;
    const decoded = isCount(part.decoded_length) ? part.decoded_length : null;
    const width = widthOf(dtype);
    const elements = width && decoded !== null ? Math.floor(decoded / width)
                                               : null;

    return {
        name: object.many ? `${object.name}.${role}` : object.name,
        dtype, size, role, i: object.i, ok: object.ok,
        shape: object.many && elements !== null ? [elements] : object.shape,
        count: object.many ? elements ?? 0
            : Number.isNaN(object.count) ? 0 : object.count,
        offset: isCount(part.offset) ? part.offset : null,
        encoding: String(part.encoding ?? "raw"),
        decoded,
        digest: typeof part.digest === "string" ? part.digest : "",
        notes: object.notes
    };
}
