/*
 * The status page: reads the JSON of "xet_status" at its own address every five
 * seconds.  A part is built again only if its data has changed, so that a screen
 * reader repeats nothing, and nothing closes while it is read.
 */

import { root } from "./api.js";
import { command, fill, formatBytes, formatNumber, h, icon, time }
    from "./dom.js";
import { header } from "./page/header.js";
import { plot, quantile } from "./plot.js";

const POLL = 5000;
const HOUR = 3600000;

/* Upper bounds of the durations in ms; the last bucket has none. */

const BOUNDS = [1, 5, 25, 100, 500, 1000, 5000, 30000, 120000];

const JOBS = { gc: "Garbage collection", scrub: "Check of the store",
    heal: "Repair of xorbs", orphans: "Search for orphans",
    backup: "Backup or rebuild", migration: "Migration of the schema" };

const byId = (id) => document.getElementById(id);
const write = (node, text) => {
    if (node.textContent !== text) {
        node.textContent = text;
    }
};

const parts = new Map();
let span = 24 * HOUR;
let last = null;


/* Returns the section of a part; false if its data has not changed. */

function section(id, title, data) {
    const text = JSON.stringify(data);
    let part = parts.get(id);

    if (!part) {
        part = { node: h("section", { class: "status-part", id,
            "aria-labelledby": `${id}-title` },
            h("h2", { id: `${id}-title` }, title), h("div")) };
        parts.set(id, part);
        byId("parts").append(part.node);
    }

    if (part.text === text) {
        return false;
    }

    part.text = text;

    return part.node.lastChild;
}


/* --- checks --------------------------------------------------------------- */

function showChecks(status) {
    const box = section("checks", "Health", status.checks);
    const state = status.checks.some((one) => one.state === "bad") ? "bad"
        : status.checks.some((one) => one.state === "none") ? "none" : "good";

    byId("summary").dataset.state = state;
    write(byId("summary"), status.summary);
    document.title = `${state === "bad" ? "! " : ""}Status – ${
        location.hostname}`;

    if (box) {
        fill(box, h("ul", { class: "checks panel" }, status.checks.map(check)));
    }
}


function check(one) {
    const symbols = { good: ["check", "Good"], bad: ["close", "Bad"],
        none: ["history", "Not known yet"] };

    return h("li", { class: "check", "data-name": one.name,
        "data-state": one.state }, icon(...symbols[one.state]),
    one.state === "bad" ? h("strong", {}, one.text) : h("span", {}, one.text),
    one.help && help(one.help));
}


/* The paragraph of docs/trouble.md that says what to do. */

function help(anchor) {
    const text = h("div", { class: "help" });
    const name = `docs/trouble.md#${anchor}`;
    const node = h("details", { ontoggle: async () => {
        if (node.open && !text.hasChildNodes()) {
            fill(text, await paragraph(anchor).catch(() => null)
                || h("p", {}, `See ${name}.`));
        }
    } }, h("summary", {}, `What to do: ${name}`), text);

    return node;
}


async function paragraph(anchor) {
    const response = await fetch(`${root}/-/trouble.md`);
    const slug = (title) => title.toLowerCase().replace(/[^\w -]/g, "")
        .replace(/ /g, "-");

    if (!response.ok) {
        return null;
    }

    for (const part of (await response.text()).split(/^#+ /m)) {
        const [title, ...lines] = part.split("\n");

        if (slug(title) === anchor) {
            return lines.join("\n").trim().split(/\n\n+/)
                .map((text) => h("p", {}, words(text)));
        }
    }

    return null;
}


/* Code and links of Markdown; a link names its document, which may be away. */

function words(text) {
    return text.split(/(`[^`]+`|\[[^\]]+\]\([^)]+\))/).map((word) => {
        const link = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(word);

        return link ? `${link[1]} (docs/${link[2].replace(/^#/, "trouble.md#")})`
            : word.startsWith("`") ? h("code", {}, word.slice(1, -1)) : word;
    });
}


/* --- endpoint ------------------------------------------------------------- */

function showEndpoint({ endpoint }) {
    const box = endpoint && section("endpoint", "Endpoint for clients",
        endpoint);

    if (box) {
        fill(box, command(`export ${endpoint.name}=${endpoint.url}`));
    }
}


/* --- plots ---------------------------------------------------------------- */

/* The points within the span; a last interval that is very short is merged. */

function selectPoints(history) {
    const n = history.time.length;
    const end = history.time[n - 1];
    const first = Math.max(0, history.time.findIndex((t) => t >= end - span));
    const merged = n - first > 2 && end - history.time[n - 2] < 15000;
    const sums = (values) => {
        const some = values.slice(first);

        some[0] = 0;

        if (merged) {
            some.splice(-2, 2, some[some.length - 2] + some[some.length - 1]);
        }

        return some;
    };
    const levels = (values) => {
        const some = values.slice(first);

        if (merged) {
            some.splice(-2, 1);
        }

        return some;
    };

    return { time: levels(history.time), sums, levels };
}


function rates(at, values) {
    return values.map((v, i) => (i === 0 ? null
        : v * 1000 / Math.max(1, at[i] - at[i - 1])));
}


function showPlots({ history }) {
    const box = section("plots", "Load", [history.time.length, span,
        Math.floor(Date.now() / 15000)]);

    if (!box) {
        return;
    }

    const { time: at, sums, levels } = selectPoints(history);
    const rate = (name, values) => ({ name, steps: true,
        values: rates(at, sums(values)) });
    const durations = history.durations.map(sums);
    const quantiles = (q) => at.map((_, i) => quantile(durations.map((one) =>
        one[i]), BOUNDS, q));

    fill(box, spans(), h("div", { class: "plots" },
        plot("Requests per second", at, Object.entries(history.requests)
            .map(([name, values]) => rate(name, values)), formatRate),
        plot("Bytes per second", at, [rate("Received", history.received),
            rate("Sent", history.sent)], (v) => `${formatBytes(v)}/s`),
        plot("Duration of requests", at, [
            { name: "Half of them", steps: true, values: quantiles(.5) },
            { name: "95 of 100", steps: true, values: quantiles(.95) }
        ], formatDuration),
        plot("Size of the store", at, [
            { name: "Stored", values: levels(history.stored) },
            { name: "Files", values: levels(history.files) }], formatBytes)));
}


function spans() {
    const button = (text, hours) => h("button", { type: "button",
        "aria-pressed": String(span === hours * HOUR), onclick: (event) => {
            span = hours * HOUR;
            showPlots(last);
            byId("plots").querySelectorAll("button")[hours === 1 ? 0 : 1]
                .focus();
            event.preventDefault();
        } }, text);

    return h("div", { class: "row plots-head", role: "group",
        "aria-label": "Time" }, h("span", { class: "soft small" },
        "A value is the mean of one minute, or of five."),
    h("div", { class: "row" }, button("1 hour", 1), button("24 hours", 24)));
}


function formatRate(v) {
    return `${v >= 10 || v === 0 ? Math.round(v) : Number(v.toPrecision(2))}/s`;
}


function formatDuration(ms) {
    return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
        : `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
}


/* --- jobs, figures, repos ------------------------------------------------- */

function showJobs({ jobs }) {
    const box = section("jobs", "Background jobs", jobs);

    if (box) {
        fill(box, jobs.length
            ? h("ul", { class: "jobs panel" }, jobs.map(showJob))
            : h("p", { class: "soft" }, "No background job has run yet."));
    }
}


function showJob(job) {
    const name = JOBS[job.name] || job.name;

    return h("li", { class: "job", "data-name": job.name },
        h("strong", {}, name),
        job.running && job.done !== undefined && [
            h("progress", { max: 1000, value: job.done, "aria-label": name }),
            h("span", {}, `${Math.floor(job.done / 10)} %`)],
        h("span", { class: "soft" }, job.running
            ? [job.held ? "running" : "waiting", job.started
                && [", started ", time(job.started)]]
            : job.ended ? ["ended ", time(job.ended)] : "has not ended yet"),
        job.note && h("p", { class: "small" }, job.note));
}


function showFigures(status) {
    const bytes = (v) => (v === undefined ? "unknown" : formatBytes(v));
    const number = (v) => (v === undefined ? "unknown" : formatNumber(v));
    const saved = status.xet_file_bytes === undefined ? undefined
        : Math.max(0, status.xet_file_bytes - status.xet_xorb_raw_bytes);
    const rows = [["files", "Files", number(status.xet_files)],
        ["file_bytes", "Logical size", bytes(status.xet_file_bytes)],
        ["xorbs", "Xorbs", number(status.xet_xorbs)],
        ["stored", "Stored size", bytes(status.xet_xorb_stored_bytes)],
        ["saved", "Saved by deduplication", bytes(saved)],
        ["metadata", "Hub metadata", bytes(status.xet_hub_metadata_bytes)],
        ["free", "Free disk space", bytes(status.xet_store_free_bytes)],
        ["uploads", "Uploads now", number(status.xet_uploads_in_flight)]];
    const box = section("figures", "Stored", rows);

    if (box) {
        fill(box, h("dl", { class: "facts" }, rows.map(([name, label, text]) =>
            h("div", {}, h("dt", {}, label),
                h("dd", { "data-name": name }, text)))));
    }
}


function showRepos({ repos }) {
    const box = repos && section("repos", "Largest repos", repos);

    if (box) {
        fill(box, h("div", { class: "scroll panel" },
            h("table", { class: "figures" },
                h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Repo"),
                    h("th", { scope: "col", class: "number" }, "Files"),
                    h("th", { scope: "col", class: "number" }, "Size"))),
                h("tbody", {}, repos.map((repo) => h("tr", {},
                    h("th", { scope: "row" }, repo.name),
                    h("td", { class: "number" }, formatNumber(repo.files)),
                    h("td", { class: "number" },
                        formatBytes(repo.bytes))))))));
    }
}


/* --- the page ------------------------------------------------------------- */

function showHeader({ endpoint }) {
    const box = byId("header");

    if (box.hasChildNodes()) {
        return;
    }

    fill(box, endpoint?.name === "HF_ENDPOINT"
        ? header({ page: "status" }, { go: (url) => location.assign(url) })
        : h("div", { class: "bar" }, h("span", { class: "brand" },
            h("img", { src: `${root}/-/icon.svg`, alt: "", width: 26,
                height: 26 }), "Xet server")));
}


function show(status) {
    const { version, nginx, schema } = status.xet_build_info;

    last = status;
    showHeader(status);
    showChecks(status);
    showEndpoint(status);
    showPlots(status);
    showJobs(status);
    showFigures(status);
    showRepos(status);
    fill(byId("footer"), h("p", { class: "soft" },
        `xet ${version}, nginx ${nginx}, schema ${schema}. Counting began `,
        time(status.xet_start_time_seconds * 1000), "."));
}


async function poll() {
    try {
        const response = await fetch("?format=json", { cache: "no-store" });
        const type = response.headers.get("Content-Type") || "";

        if (response.ok && type.startsWith("application/json")) {
            show(await response.json());
            write(byId("stale"), "");

        } else {
            write(byId("stale"), response.ok
                ? "Open this page at the location of xet_status."
                : `The server refuses the status: ${response.status}.`);
        }

    } catch {
        write(byId("stale"), "The server does not respond"
            + (last ? "; showing its last known state." : "."));
    }

    setTimeout(poll, POLL);
}

poll();
