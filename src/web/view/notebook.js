/*
 * Shows a Jupyter notebook: its cells in order, with outputs that are text,
 * PNG or JPEG.  Outputs of HTML and JavaScript are never shown.
 */

import { fill, formatBytes, formatNumber, h, notice } from "../dom.js";
import { parseJson } from "../parse/json.js";
import { choice, frame, moreButton, readText } from "./parts.js";
import { colours, source } from "./text.js";

const LIMIT = 8 * 1024 * 1024;
const STEP = 100;
const OUTPUT = 20000;
const IMAGES = ["image/png", "image/jpeg"];


export async function view(file) {
    if (file.size > LIMIT || /^#L\d/.test(location.hash)) {
        return frame("Notebook", null, file.size > LIMIT && notice("info",
            `Notebooks over ${formatBytes(LIMIT)} are shown as source.`),
        await source(file));
    }

    let cells;

    try {
        const root = parseJson((await readText(file)).replace(/^\ufeff/, ""));

        if (!(root instanceof Map) || !Array.isArray(root.get("cells"))) {
            throw new SyntaxError("it has no cells");
        }

        cells = listOf(root.get("cells"));
        cells.language = language(root);

    } catch (error) {
        return frame("Notebook", null, notice("bad",
            `This is not a valid notebook: ${error.message}.`),
        await source(file));
    }

    const { tools, body } = choice([
        ["Cells", () => showCells(file, cells)],
        ["Source", () => source(file)]
    ]);

    return frame("Notebook", tools, body);
}


const listOf = (value) => (Array.isArray(value)
    ? value.filter((one) => one instanceof Map) : []);


/* A text of a notebook is a string, or an array of lines. */

function textOf(value) {
    return [value].flat().filter((one) => typeof one === "string").join("");
}


function language(root) {
    const [info, kernel] = ["language_info", "kernelspec"].map((key) =>
        root.get("metadata")?.get?.(key));

    return textOf(info?.get?.("name")) || textOf(kernel?.get?.("language"))
        || "python";
}


function showCells(file, cells) {
    const list = h("div", { class: "notebook" });
    const below = h("div");
    let shown = 0;

    function more() {
        const part = cells.slice(shown, shown + STEP);

        shown += part.length;
        list.append(...part.map((cell) => showCell(file, cell,
            cells.language)));
        fill(below, shown < cells.length && moreButton("Show more cells "
            + `(${formatNumber(cells.length - shown)} are left)`, more));
    }

    more();

    return [cells.length === 0 && h("p", { class: "empty" },
        "This notebook has no cells."), list, below];
}


function showCell(file, cell, name) {
    const type = textOf(cell.get("cell_type"));
    const text = textOf(cell.get("source"));

    if (type === "markdown") {
        const body = h("div", { class: "cell cell-text" }, text);

        import("../markdown.js").then(async ({ markdown }) => fill(body,
            await markdown(text, { repo: file.repo, rev: file.rev,
                dir: file.dir }))).catch(() => {});

        return body;
    }

    const count = cell.get("execution_count");

    return h("div", { class: "cell" },
        code(text, type === "code" ? name : "", Number.isSafeInteger(count)
            ? `In ${count}` : "In"),
        listOf(cell.get("outputs")).map(showOutput));
}


function code(text, name, label) {
    const pre = h("pre", { tabindex: 0, "aria-label": label }, text);

    colour(pre, text, name).catch(() => {});

    return h("div", { class: "cell-code" },
        h("span", { class: "cell-label soft small", "aria-hidden": "true" },
            label), pre);
}


async function colour(pre, text, name) {
    const lines = text.split("\n");
    const nodes = [...lines];

    for await (const { at, fragments } of colours(lines, name)) {
        nodes.splice(at, fragments.length, ...fragments);
    }

    if (nodes[0] instanceof Node) {
        fill(pre, nodes.map((line, i) => [i > 0 && "\n", line]));
    }
}


function showOutput(output) {
    const type = textOf(output.get("output_type"));

    if (type === "stream") {
        return block(textOf(output.get("text")),
            output.get("name") === "stderr" ? "warns" : "");
    }

    if (type === "error") {
        return block(textOf(listOfTexts(output.get("traceback")))
            || `${textOf(output.get("ename"))}: `
                + textOf(output.get("evalue")), "fails");
    }

    const data = output.get("data");

    return data instanceof Map ? showData(data) : null;
}


const listOfTexts = (value) => (Array.isArray(value)
    ? value.map((line) => `${line}\n`) : value);


function showData(data) {
    for (const type of IMAGES) {
        const coded = textOf(data.get(type)).replace(/\s+/g, "");

        if (coded && /^[A-Za-z0-9+/]+={0,2}$/.test(coded)) {
            return h("div", { class: "cell-output" }, h("img", {
                src: `data:${type};base64,${coded}`,
                alt: textOf(data.get("text/plain")).slice(0, 200)
                    || "An output of this cell" }));
        }
    }

    const text = textOf(data.get("text/plain"))
        || textOf(data.get("text/latex")) || textOf(data.get("text/markdown"));

    return text ? block(text, "") : h("p", { class: "cell-output soft small" },
        "This output is of a kind that is not shown.");
}


/* Texts have codes for colours of a terminal. */

function block(text, kind) {
    const clean = text.slice(0, OUTPUT)
        .replace(/\u001b\[[0-9;]*[A-Za-z]/g, "");

    return h("pre", { class: `cell-output ${kind}`, tabindex: 0 }, clean,
        text.length > OUTPUT && "\n… The output is cut.");
}
