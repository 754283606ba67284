/*
 * Shows JSON as a tree that folds, or as its source.  Values are created when
 * their parent is opened, a hundred at a time.
 */

import { fill, formatNumber, h, notice } from "../dom.js";
import { parseJson } from "../parse/json.js";
import { choice, frame, moreButton, readText } from "./parts.js";
import { source } from "./text.js";

const LIMIT = 2 * 1024 * 1024;
const STEP = 100;
const OPEN = 40;                      /* opened if so many values, or fewer */
const TEXT = 2000;


export async function view(file) {
    if (file.size > LIMIT || /^#L\d/.test(location.hash)) {
        return frame("JSON", null, await source(file));
    }

    const repeated = [];
    let value;

    try {
        value = parseJson((await readText(file)).replace(/^\ufeff/, ""),
            { repeated: (key) => repeated.push(key) });

    } catch (error) {
        return frame("JSON", null, notice("bad",
            `This is not a valid JSON file: ${error.message}.`),
        await source(file));
    }

    const { tools, body } = choice([
        ["Tree", () => h("div", { class: "json" }, repeated.length > 0
            && notice("info", `The key "${repeated[0].slice(0, 60)}" occurs `
                + "twice in one object: the last value is shown."),
        jsonTree(value))],
        ["Source", () => source(file)]
    ]);

    return frame("JSON", tools, body);
}


/* Returns the tree of a value of parseJson(). */

export function jsonTree(value) {
    return node(null, value, 0);
}


function node(key, value, level) {
    const name = key !== null && [h("span", { class: "json-key" }, key), ": "];

    if (!(value instanceof Map) && !Array.isArray(value)) {
        return h("div", { class: "json-leaf" }, name, scalar(value));
    }

    const count = value.size ?? value.length;
    const what = value instanceof Map ? (count === 1 ? "key" : "keys")
        : (count === 1 ? "value" : "values");
    const body = h("div", { class: "json-body" });
    const details = h("details", { ontoggle: () => {
        if (details.open && !body.firstChild) {
            fill(body, children(value, level + 1));
        }
    } }, h("summary", {}, name, value instanceof Map ? "{ … }" : "[ … ]",
        h("span", { class: "soft small" },
            ` ${formatNumber(count)} ${what}`)), body);

    if (level < 2 && count <= OPEN) {
        fill(body, children(value, level + 1));
        details.open = true;
    }

    return details;
}


/* Returns nodes for the members, and a button for those that follow. */

function children(value, level) {
    const members = value.entries();
    const list = h("div");
    const below = h("div");
    const count = value.size ?? value.length;
    let shown = 0;

    function more() {
        for (let i = 0; i < STEP && shown < count; i++, shown++) {
            const [key, member] = members.next().value;

            list.append(node(String(key), member, level));
        }

        fill(below, shown < count && moreButton(
            `Show more (${formatNumber(count - shown)} are left)`, more));
    }

    more();

    return [list, below];
}


function scalar(value) {
    if (typeof value !== "string") {
        return h("span", { class: "json-value" }, String(value));
    }

    const cut = value.length > TEXT;

    return h("span", { class: "json-text" },
        JSON.stringify(cut ? value.slice(0, TEXT) : value),
        cut && h("span", { class: "soft" },
            ` … ${formatNumber(value.length)} characters`));
}
