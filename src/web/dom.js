/*
 * Elements, formats of numbers and dates, and the small parts that pages
 * share.  Text from users becomes text nodes only: nothing here parses HTML.
 */

const SVG = "http://www.w3.org/2000/svg";


/*
 * Creates an element.  A property "onclick" adds a listener, "class" and
 * others are attributes; true is an attribute without a value, and false, null
 * and undefined are none.  Children are nodes, strings, numbers, or arrays of
 * them; false, null and undefined are skipped.
 */

export function h(tag, props, ...children) {
    const node = document.createElement(tag);

    for (const [name, value] of Object.entries(props || {})) {
        if (value === false || value === null || value === undefined) {
            continue;
        }

        if (name.startsWith("on")) {
            node.addEventListener(name.slice(2), value);

        } else {
            node.setAttribute(name, value === true ? "" : String(value));
        }
    }

    node.append(...flat(children));

    return node;
}


function flat(children) {
    return children.flat(Infinity)
        .filter((one) => one !== false && one !== null && one !== undefined)
        .map((one) => (one instanceof Node ? one : String(one)));
}


/* Replaces the contents of a node, and returns the node. */

export function fill(node, ...children) {
    node.replaceChildren(...flat(children));
    return node;
}


/* Icons of 16 units, drawn with lines in the colour of the text. */

const ICONS = {
    folder: "M1.5 4V13h13V5.5H8L6.5 4z",
    file: "M3.5 1.5v13h9V5L9 1.5zM9 1.5V5h3.5",
    download: "M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11",
    copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
    check: "M3 8.5 6.5 12 13 4.5",
    branch: "M4.5 5v6M4.5 5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM4.5 14a1.5 "
        + "1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM11.5 6.5a1.5 1.5 0 1 0 0-3 1.5 "
        + "1.5 0 0 0 0 3zM11.5 6.5c0 3-4 2.5-7 4",
    history: "M2.5 8A5.5 5.5 0 1 0 4.5 3.8M2.5 2.5V5.5h3M8 5v3.5l2 1.5",
    compare: "M5 2.5v11M2.5 5 5 2.5 7.5 5M11 2.5v11M8.5 11l2.5 2.5 2.5-2.5",
    search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3.5 3.5",
    lock: "M3.5 7.5h9v6h-9zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5",
    user: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14.5c0-6 11-6 11 0",
    model: "M8 1.5 14 5v6l-6 3.5L2 11V5zM2 5l6 3.5L14 5M8 8.5v6",
    dataset: "M2.5 4c0-3 11-3 11 0v8c0 3-11 3-11 0zM2.5 4c0 3 11 3 11 0"
        + "M2.5 8c0 3 11 3 11 0",
    space: "M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5h-4.5z"
        + "M9 9h4.5v4.5H9z",
    bucket: "M2.5 3.5h11L12 14H4zM2.5 3.5c0 2 11 2 11 0",
    plus: "M8 3v10M3 8h10",
    upload: "M8 11V3M4.5 6.5 8 3l3.5 3.5M2.5 13.5h11",
    edit: "M2.5 13.5 3 10.5 10.5 3 13 5.5 5.5 13z",
    trash: "M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.5 9h7l.5-9",
    gear: "M8 10.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM8 1.5v2.3M8 12.2"
        + "v2.3M1.5 8h2.3M12.2 8h2.3M3.4 3.4 5 5M11 11l1.6 1.6M3.4 12.6 5 11"
        + "M11 5l1.6-1.6",
    tag: "M2.5 2.5H8L13.5 8 8 13.5 2.5 8zM5.2 5.2h.1",
    out: "M6.5 2.5h-4v11h4M6 8h7.5M10.5 5l3 3-3 3",
    close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
    up: "M4 10l4-4 4 4",
    down: "M4 6l4 4 4-4"
};


/* Returns an icon.  A label makes it visible to screen readers. */

export function icon(name, label) {
    const svg = document.createElementNS(SVG, "svg");
    const path = document.createElementNS(SVG, "path");

    svg.setAttribute("class", "icon");
    svg.setAttribute("viewBox", "0 0 16 16");
    path.setAttribute("d", ICONS[name]);
    svg.append(path);

    if (label) {
        svg.setAttribute("role", "img");
        svg.setAttribute("aria-label", label);

    } else {
        svg.setAttribute("aria-hidden", "true");
    }

    return svg;
}


/* --- formats -------------------------------------------------------------- */

export function formatBytes(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let i = 0;

    while (n >= 1024 && i < units.length - 1) {
        n /= 1024;
        i++;
    }

    return `${i && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}


/* Formats a number of parameters, as 7.2B or 124M. */

export function formatCount(n) {
    const units = ["", "K", "M", "B", "T"];
    let i = 0;

    while (n >= 1000 && i < units.length - 1) {
        n /= 1000;
        i++;
    }

    return `${i && n < 100 ? n.toFixed(1) : Math.round(n)}${units[i]}`;
}


export const formatNumber = (n) => n.toLocaleString("en");


/* Returns a day in words. */

export const dayOf = (date, zone) => new Date(date).toLocaleDateString("en",
    { weekday: "long", day: "numeric", month: "long", year: "numeric",
        timeZone: zone });


/* Returns a <time>, as "3 hours ago", with the date as its title. */

export function time(value) {
    const date = new Date(value);
    const steps = [["year", 31556952], ["month", 2629746], ["week", 604800],
        ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
    const past = (date - Date.now()) / 1000;
    const [unit, size] = steps.find(([, s]) => Math.abs(past) >= s)
        || ["second", 1];
    const text = new Intl.RelativeTimeFormat("en", { numeric: "auto" })
        .format(Math.round(past / size), unit);

    return h("time", { datetime: date.toISOString(),
        title: date.toLocaleString() }, text);
}


/* --- parts of pages ------------------------------------------------------- */

/* Returns a button that copies a text, and says so. */

export function copyButton(text, label = "Copy") {
    const button = h("button", { type: "button", class: "quiet copy",
        "aria-label": label, title: label, onclick: async () => {
            await copy(text);
            fill(button, icon("check"));
            announce("Copied.");
            setTimeout(() => fill(button, icon("copy")), 1500);
        } }, icon("copy"));

    return button;
}


/* navigator.clipboard is for https and localhost only. */

async function copy(text) {
    if (navigator.clipboard) {
        return navigator.clipboard.writeText(text);
    }

    const area = h("textarea", { class: "hidden" }, text);

    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
}


/* Returns lines to copy. */

export function command(text) {
    return h("div", { class: "command" }, h("pre", { tabindex: 0 }, text),
        copyButton(text, "Copy the command"));
}


/* Says something to screen readers. */

export function announce(text) {
    let node = document.getElementById("said");

    if (!node) {
        node = h("div", { id: "said", class: "hidden", "aria-live": "polite" });
        document.body.append(node);
    }

    node.textContent = text;
}


/* Returns a message: kind is "info", "good" or "bad". */

export function notice(kind, ...children) {
    return h("div", { class: `notice ${kind}`,
        role: kind === "bad" ? "alert" : "status" }, ...children);
}


/*
 * Opens a dialog.  Returns the element; close() closes it.  The form's
 * "onsubmit" may be async: while it runs, the buttons are disabled, and what it
 * throws is shown.  The dialog closes when it returns.
 */

export function dialog(title, body, label, onsubmit, kind = "main") {
    const problem = h("div");
    const button = h("button", { class: kind }, label);
    const form = h("form", { method: "dialog", onsubmit: async (event) => {
        event.preventDefault();
        fill(problem);
        button.disabled = true;

        try {
            await onsubmit(new FormData(form));
            box.close();

        } catch (error) {
            fill(problem, notice("bad", error.message));
        }

        button.disabled = false;
    } },
        h("h2", { id: "dialog-title" }, title), body, problem,
        h("div", { class: "row end" },
            h("button", { type: "button", class: "plain",
                onclick: () => box.close() }, "Cancel"), button));
    const box = h("dialog", { "aria-labelledby": "dialog-title",
        onclose: () => box.remove() }, form);

    document.body.append(box);
    box.showModal();

    return box;
}


/* A field of a form with its label. */

export function field(label, input, hint) {
    const id = `f${++field.count}`;

    input.id = id;

    if (hint) {
        input.setAttribute("aria-describedby", `${id}h`);
    }

    return h("div", { class: "field" }, h("label", { for: id }, label), input,
        hint && h("p", { class: "soft", id: `${id}h` }, hint));
}

field.count = 0;


/*
 * Returns a node that gets the result of a promise: until then it shows lines
 * of grey, and if it fails, the reason.
 */

export function later(promise, lines = 3) {
    const node = h("div", { class: "later", "aria-busy": "true" },
        Array.from({ length: lines }, () => h("div", { class: "grey" })));

    promise.then((result) => {
        node.removeAttribute("aria-busy");
        fill(node, result);

    }, (error) => {
        node.removeAttribute("aria-busy");

        if (error.name !== "AbortError") {
            fill(node, notice("bad", error.message));
        }
    });

    return node;
}


/* Pages that copy what they load first need the function itself. */

export { copy };
