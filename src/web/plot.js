/*
 * Plots of the status page: lines over time, as SVG.  The text is HTML beside
 * the lines, so it has the size of other text on any screen.
 */

import { h } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const HEIGHT = 160;


function svg(tag, props, ...children) {
    const node = document.createElementNS(SVG, tag);

    for (const [name, value] of Object.entries(props)) {
        node.setAttribute(name, value);
    }

    node.append(...children);

    return node;
}


/*
 * Returns a <figure>.  "time" has the ends of the intervals in ms; lines are
 * [{ name, values, steps }], where a value belongs to the interval that ends at
 * its time; null means that the value is unknown.  With steps, the line stays at
 * a value for the whole interval.  format() writes a value.
 */

export function plot(title, time, lines, format) {
    const known = lines.map((line) => line.values.filter((v) => v !== null));
    const most = Math.max(0, ...known.flat());
    const now = (i) => (known[i].length ? known[i][known[i].length - 1] : null);
    const text = (i) => (known[i].length
        ? `${format(now(i))}, at most ${format(Math.max(...known[i]))}`
        : "no data");
    const begin = new Date(time[0]);
    const label = `${title} since ${clock(begin)}. ${lines.map((line, i) =>
        `${line.name}: now ${text(i)}.`).join(" ")}`;

    return h("figure", { class: "panel plot" },
        h("figcaption", {}, h("h3", {}, title)),
        h("div", { class: "plot-box" },
            svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
                preserveAspectRatio: "none", "aria-label": label },
            ...lines.map((line, i) => svg("path", { class: `line-${i + 1}`,
                d: path(time, line, most) }))),
            h("span", { class: "plot-top small soft", "aria-hidden": "true" },
                format(most)),
            h("div", { class: "plot-ends small soft", "aria-hidden": "true" },
                h("span", {}, clock(begin)), h("span", {}, "now"))),
        h("ul", { class: "small", "aria-hidden": "true" },
            lines.map((line, i) => h("li", {},
                svg("svg", { class: "plot-key", viewBox: "0 0 28 12" },
                    svg("path", { class: `line-${i + 1}`, d: "M0 6H28" })),
                h("span", {}, h("strong", {}, line.name), ` ${text(i)}`)))));
}


function clock(date) {
    return date.toLocaleTimeString("en-GB", { hour: "2-digit",
        minute: "2-digit" });
}


/* Unknown values leave a gap. */

function path(time, line, most) {
    const first = time[0];
    const length = Math.max(1, time[time.length - 1] - first);
    const x = (i) => ((time[i] - first) / length * WIDTH).toFixed(1);
    const y = (v) => (HEIGHT - 2 - v / (most || 1) * (HEIGHT - 30)).toFixed(1);
    let text = "";
    let open = false;

    for (let i = line.steps ? 1 : 0; i < time.length; i++) {
        const v = line.values[i];

        if (v === null) {
            open = false;
            continue;
        }

        if (line.steps) {
            text += `${open ? "L" : "M"}${x(i - 1)} ${y(v)}H${x(i)}`;

        } else {
            text += `${open ? "L" : "M"}${x(i)} ${y(v)}h.1`;
        }

        open = true;
    }

    return text;
}


/*
 * Returns the time in ms below which a share q of the requests ended, from
 * their numbers in buckets with these upper bounds; null without requests.
 * Between two bounds the times are taken as evenly spread.
 */

export function quantile(counts, bounds, q) {
    const total = counts.reduce((a, b) => a + b, 0);
    let rest = total * q;

    if (total === 0) {
        return null;
    }

    for (let i = 0; i < bounds.length; i++) {
        if (rest <= counts[i]) {
            const low = i ? bounds[i - 1] : 0;

            return low + (bounds[i] - low) * rest / counts[i];
        }

        rest -= counts[i];
    }

    return bounds[bounds.length - 1];
}
