/*
 * What parsers of files share: the error for a malformed file, and arithmetic
 * that cannot overflow.  Nothing in parse/ uses the document: the tests run it
 * in Node.
 */


/* A file that does not have the format that its name claims. */

export class Invalid extends Error {
    constructor(format, reason) {
        super(`This is not a valid ${format} file: ${reason}.`);
        this.name = "Invalid";
        this.reason = reason;
    }
}


/*
 * Returns the product of the dimensions of a tensor, or NaN if a number cannot
 * hold it exactly.  A dimension of zero makes the product zero, wherever it is.
 */

export function product(shape) {
    let n = 1;

    if (shape.includes(0)) {
        return 0;
    }

    for (const one of shape) {
        n *= one;

        if (!Number.isSafeInteger(n)) {
            return NaN;
        }
    }

    return n;
}


/* Tells whether a value is an integer from 0 that a number holds exactly. */

export const isCount = (n) => Number.isSafeInteger(n) && n >= 0;


/* A text of a file, cut for a message. */

export function shorten(text, length = 60) {
    return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
