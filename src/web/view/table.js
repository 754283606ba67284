/*
 * Shows CSV, TSV and JSON lines as a table, 200 rows at a time.  The file is
 * loaded in pieces as far as the rows need it.
 */

import { fill, formatNumber, h, notice } from "../dom.js";
import { Csv, separatorOf } from "../parse/csv.js";
import { Exact, parseJson } from "../parse/json.js";
import { choice, frame, moreButton, TextReader } from "./parts.js";
import { source } from "./text.js";

const STEP = 200;
const PIECES = 16;                    /* loaded for one step, at most */
const COLUMNS = 60;
const SHORT = 120;                    /* characters of a cell that is folded */
const CELL = 10000;
const LINE = 2 * 1024 * 1024;


export async function view(file, kind) {
    const title = { csv: "CSV", tsv: "TSV", jsonl: "JSON lines" }[kind];
    const { tools, body } = choice([
        ["Table", () => table(file, kind)],
        ["Source", () => source(file)]
    ], /^#L\d/.test(location.hash) ? 1 : 0);

    return frame(title, tools, body);
}


async function table(file, kind) {
    const rows = kind === "jsonl" ? new JsonRows(file)
        : new CsvRows(file, kind === "tsv" ? "\t" : "");
    const shown = new Table(rows, file);

    await shown.more();

    return shown.node;
}


/* --- rows ----------------------------------------------------------------- */

/*
 * A source of rows has load(), which reads a piece, rows, which are arrays of
 * texts, and columns, their names.
 */

class CsvRows {
    constructor(file, separator) {
        this.reader = new TextReader(file);
        this.separator = separator;
        this.columns = null;
    }

    get rows() {
        return this.csv?.rows || [];
    }

    get cut() {
        return this.csv?.cut;
    }

    async load() {
        const text = await this.reader.next();

        this.csv ||= new Csv(this.separator || separatorOf(text));
        this.csv.push(text);

        if (this.reader.done) {
            this.csv.end();
        }

        if (!this.columns && this.rows.length) {
            this.columns = this.rows.shift();
        }
    }
}


class JsonRows {
    constructor(file) {
        this.reader = new TextReader(file);
        this.columns = [];
        this.rows = [];
        this.rest = "";
        this.cut = false;
    }

    async load() {
        const lines = (this.rest + await this.reader.next()).split("\n");

        this.rest = this.reader.done ? "" : lines.pop();

        if (this.rest.length > LINE) {
            throw new RangeError("A line of this file has more than 2 MiB: "
                + "the table ends before it.");
        }

        for (const line of lines) {
            if (line.trim()) {
                this.rows.push(this.row(line));
            }
        }
    }

    row(line) {
        let value;

        try {
            value = parseJson(line.trim());

        } catch (error) {
            return Object.assign([line.slice(0, SHORT)],
                { problem: `not JSON: ${error.message.replace(/ in line 1$/,
                    "")}` });
        }

        const entries = value instanceof Map ? value : [["value", value]];
        const cells = [];

        for (const [key, one] of entries) {
            let at = this.columns.indexOf(key);

            if (at < 0 && this.columns.length < COLUMNS) {
                at = this.columns.push(key) - 1;
            }

            if (at < 0) {
                this.cut = true;

            } else {
                cells[at] = typeof one === "string" ? one
                    : JSON.stringify(plain(one));
            }
        }

        return Array.from(cells, (cell) => cell ?? "");
    }
}


/* Makes values of parseJson() ready for JSON.stringify(). */

function plain(value) {
    if (value instanceof Map) {
        return Object.fromEntries([...value].map(([key, one]) =>
            [key, plain(one)]));
    }

    return Array.isArray(value) ? value.map(plain)
        : value instanceof Exact ? Number(value.text) : value;
}


/* --- the table ------------------------------------------------------------ */

class Table {
    constructor(rows, file) {
        this.source = rows;
        this.file = file;
        this.count = 0;
        this.head = h("tr");
        this.body = h("tbody");
        this.below = h("div");
        this.problem = h("div");
        this.node = h("div", {}, h("div", { class: "scrolls", tabindex: 0,
            role: "region", "aria-label": "Rows of the file" },
        h("table", { class: "rows" }, h("thead", {}, this.head), this.body)),
        this.problem, this.below);
    }

    async more() {
        const { source: from } = this;

        try {
            for (let i = 0; i < PIECES && !from.reader.done
                && from.rows.length < STEP; i++)
            {
                await from.load();
            }

        } catch (error) {
            if (!(error instanceof RangeError)) {
                throw error;
            }

            from.ended = true;
            fill(this.problem, notice("bad", error.message));
        }

        this.add(from.rows.splice(0, STEP));
    }

    add(rows) {
        const { source: from } = this;
        const columns = (from.columns || []).slice(0, COLUMNS);
        const goesOn = from.rows.length > 0
            || (!from.reader.done && !from.ended);

        fill(this.head, h("th", { scope: "col" },
            h("span", { class: "hidden" }, "Row")),
        columns.map((name) => h("th", { scope: "col" }, cell(name))));

        this.body.append(...rows.map((row) => h("tr", {},
            h("th", { scope: "row" }, formatNumber(++this.count)),
            row.problem ? h("td", { class: "bad", colspan: Math.max(1,
                columns.length) }, `This line is ${row.problem}: ${row[0]}`)
                : Array.from({ length: Math.max(columns.length,
                    Math.min(row.length, COLUMNS)) }, (_, i) => h("td", {},
                    cell(row[i] ?? ""))))));

        fill(this.below, h("p", { class: "soft small view-more" },
            goesOn ? `The first ${formatNumber(this.count)} rows.`
                : `${formatNumber(this.count)} `
                    + `${this.count === 1 ? "row" : "rows"}.`,
            (from.cut || (from.columns?.length > COLUMNS))
                && " Long cells are cut, and some columns are left out."),
        goesOn && moreButton(`Show ${STEP} more rows`, () => this.more()));
    }
}


/* A long cell folds. */

function cell(text) {
    if (text.length <= SHORT) {
        return text;
    }

    return h("details", {}, h("summary", {}, `${text.slice(0, SHORT)}…`),
        text.slice(0, CELL), text.length > CELL && "…");
}
