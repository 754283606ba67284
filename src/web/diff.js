/*
 * Differences between two texts, line by line: Myers' algorithm.
 *
 * Lines at both ends that are equal are set aside first.  If the rest differs
 * in more than LIMIT lines, all of it counts as removed and added, which is
 * longer than it need be, and still right.
 */

const LIMIT = 1500;


/*
 * Returns rows { sign, text, old, now }: sign is "-", "+" or " ", and the line
 * numbers begin at 1; a line that only one text has lacks the other number.
 */

export function diff(before, after) {
    const a = lines(before);
    const b = lines(after);
    let head = 0;
    let tail = 0;

    while (head < a.length && head < b.length && a[head] === b[head]) {
        head++;
    }

    while (tail < a.length - head && tail < b.length - head
        && a[a.length - 1 - tail] === b[b.length - 1 - tail])
    {
        tail++;
    }

    const signs = [" ".repeat(head),
        middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
        " ".repeat(tail)].join("");

    return numbered(signs, a, b);
}


/* A text without a line end at its end has a last line all the same. */

function lines(text) {
    const rows = text.split("\n");

    if (rows.at(-1) === "") {
        rows.pop();

    } else {
        rows.push(`${rows.pop()}\0`);
    }

    return rows;
}


function numbered(signs, a, b) {
    const rows = [];
    let i = 0;
    let j = 0;

    for (const sign of signs) {
        const raw = sign === "+" ? b[j] : a[i];
        const row = { sign, text: raw.replace(/\0$/, ""),
            open: raw.endsWith("\0") };

        if (sign !== "+") {
            row.old = ++i;
        }

        if (sign !== "-") {
            row.now = ++j;
        }

        rows.push(row);
    }

    return rows;
}


/*
 * Returns a string of signs, one for each row.  far[middle + k] is the largest
 * x that was reached on diagonal k; "trace" keeps these rows for the way back.
 */

function middle(a, b) {
    const max = Math.min(a.length + b.length, LIMIT);
    const far = new Int32Array(2 * max + 3);
    const zero = max + 1;
    const trace = [];

    for (let d = 0; d <= max; d++) {
        trace.push(far.slice(zero - d - 1, zero + d + 2));

        for (let k = -d; k <= d; k += 2) {
            let x = adds(far, zero, d, k) ? far[zero + k + 1]
                : far[zero + k - 1] + 1;

            while (x < a.length && x - k < b.length && a[x] === b[x - k]) {
                x++;
            }

            far[zero + k] = x;

            if (x >= a.length && x - k >= b.length) {
                return back(trace, a.length, b.length);
            }
        }
    }

    return "-".repeat(a.length) + "+".repeat(b.length);
}


/* Whether the step to diagonal k adds a line; otherwise it removes one. */

function adds(far, zero, d, k) {
    return k === -d || (k !== d && far[zero + k - 1] < far[zero + k + 1]);
}


function back(trace, x, y) {
    const signs = [];

    for (let d = trace.length - 1; d > 0; d--) {
        const far = trace[d];
        const zero = d + 1;
        const k = x - y;
        const added = adds(far, zero, d, k);
        const before = added ? k + 1 : k - 1;
        const fromX = far[zero + before];
        const fromY = fromX - before;

        while (x > fromX && y > fromY) {
            signs.push(" ");
            x--;
            y--;
        }

        signs.push(added ? "+" : "-");
        x = fromX;
        y = fromY;
    }

    signs.push(" ".repeat(x));

    return signs.reverse().join("");
}
