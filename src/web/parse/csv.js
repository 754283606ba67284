/*
 * A parser of CSV and TSV that gets the text piece by piece.
 *
 *     const table = new Csv(",");
 *
 *     table.push(text);        as often as there is more
 *     table.end();             after the last piece
 *     table.rows               the rows until now, arrays of texts
 *
 * A row may end with LF, CR or CRLF.  Inside of quotes, two quotes are one.
 * Cells and rows beyond the limits are cut, and "cut" is set: a file of one
 * long line needs no more memory than the limits allow.
 */

const CELL = 10000;
const COLUMNS = 1000;


export class Csv {
    constructor(separator) {
        this.separator = separator;
        this.rows = [];
        this.cut = false;
        this.quoted = false;        /* inside of quotes */
        this.before = "";           /* a quote or CR at the end of a piece */
        this.row = [];
        this.cell = "";
        this.fresh = true;          /* the cell has no letter */
    }

    /* Tells whether the text ends inside of quotes or of a row. */

    get open() {
        return this.quoted || !this.fresh || this.row.length > 0;
    }

    push(text) {
        for (const letter of text) {
            this.letter(letter);
        }
    }

    letter(letter) {
        const before = this.before;

        this.before = "";

        if (before === "\r" && letter === "\n") {
            return;
        }

        if (before === "\"") {
            if (letter === "\"") {
                return this.add(letter);
            }

            this.quoted = false;
        }

        if (this.quoted) {
            if (letter === "\"") {
                this.before = letter;
                return undefined;
            }

            return this.add(letter);
        }

        if (letter === "\"" && this.fresh) {
            this.quoted = true;
            this.fresh = false;

        } else if (letter === this.separator) {
            this.endCell();
            this.fresh = true;

        } else if (letter === "\n" || letter === "\r") {
            this.before = letter === "\r" ? letter : "";
            this.endRow();

        } else {
            this.add(letter);
        }

        return undefined;
    }

    add(letter) {
        this.fresh = false;

        if (this.cell.length < CELL) {
            this.cell += letter;

        } else {
            this.cut = true;
        }
    }

    endCell() {
        if (this.row.length < COLUMNS) {
            this.row.push(this.cell);

        } else {
            this.cut = true;
        }

        this.cell = "";
    }

    /* A row without any letter is an empty line. */

    endRow() {
        if (!this.fresh || this.row.length > 0) {
            this.endCell();
            this.rows.push(this.row);
        }

        this.row = [];
        this.cell = "";
        this.fresh = true;
    }

    end() {
        this.before = "";
        this.quoted = false;
        this.endRow();
    }
}


/* Guesses what separates cells: the most frequent mark of the first line. */

export function separatorOf(text) {
    const line = /^[^\n\r]*/.exec(text.slice(0, 10000))[0]
        .replace(/"[^"]*"/g, "");
    const count = (mark) => line.split(mark).length;

    return [",", ";", "\t", "|"].reduce((best, mark) =>
        (count(mark) > count(best) ? mark : best));
}
