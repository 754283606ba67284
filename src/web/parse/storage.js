/*
 * Counts the parts of a file as it is stored.  A file consists of terms, each
 * a range of chunks of a xorb; the server says for each xorb which of its
 * bytes have these chunks.
 */


/*
 * Counts the parts of a reconstruction (v2).  Ranges of chunks end before
 * "end", ranges of bytes include it.
 */

export function countParts({ terms = [], xorbs = {} }) {
    const ranges = new Map();
    let stored = 0;
    let all = 0;

    for (const { hash: name, range } of terms) {
        all += range.end - range.start;

        if (!ranges.has(name)) {
            ranges.set(name, []);
        }

        ranges.get(name).push([range.start, range.end]);
    }

    for (const parts of Object.values(xorbs)) {
        stored += covered(parts.flatMap((part) => part.ranges.map((one) =>
            [one.bytes.start, one.bytes.end + 1])));
    }

    let once = 0;

    for (const list of ranges.values()) {
        once += covered(list);
    }

    return { terms: terms.length, xorbs: ranges.size, stored,
        repeated: { all, again: all - once } };
}


/* Returns how much is covered by ranges that may overlap. */

function covered(ranges) {
    let end = 0;
    let sum = 0;

    for (const [from, to] of ranges.sort((a, b) => a[0] - b[0])) {
        sum += Math.max(0, to - Math.max(from, end));
        end = Math.max(end, to);
    }

    return sum;
}
