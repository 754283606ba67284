/*
 * The card of a repo: its README, the facts of its metadata, its size, and
 * how to use it.  A bucket has no card: its files are shown.
 *
 * The files are known from one page of the tree, so that a big repo costs no
 * more than a small one.  What takes longer, such as the number of parameters,
 * is added later.
 */

import { apiPath, bytes, encodeRev, list, pageUrl, request, root, whoami }
    from "../api.js";
import { fill, formatBytes, formatCount, formatNumber, h, icon, time }
    from "../dom.js";
import { plain, start } from "../list.js";
import { markdown, readmePanel, withoutFrontMatter } from "../markdown.js";
import { parseHeader } from "../parse/safetensors.js";
import { mayChange, ownerOf, readInfo, readRefs, repoHead }
    from "../repo_head.js";
import { use } from "../use.js";

const FILES = 1000;
const README_MAX = 1 << 20;

/* Headers of safetensors files: so many files, and bytes of a header. */

const SHARDS = 20;
const HEADER_MAX = 8 << 20;
const HEADER_FIRST = 64 << 10;


export async function show(route, signal, tools) {
    const { repo } = route;

    if (repo.kind === "buckets") {
        return (await import("./tree.js")).show(route, signal, tools);
    }

    const rev = "main";
    const [info, tree, refs] = await Promise.all([
        readInfo(repo, rev, signal),
        list(apiPath(repo, `/tree/${rev}`), { recursive: true, limit: FILES },
            signal),
        readRefs(repo, signal)]);
    const files = tree.rows.filter((row) => row.type === "file");
    const state = { repo, rev, info, files, refs, complete: !tree.next,
        signal };
    const readme = await findFile(state, "README.md");

    return { title: repo.id, body: h("div", {},
        await repoHead(repo, "card", info), marks(repo, info),
        h("div", { class: "columns" },
            h("div", { class: "columns-main" }, readme
                ? readmePanel("README.md", card(state, readme))
                : await noCard(state)),
            h("aside", { class: "columns-side", "aria-label": "Facts" },
                facts(state),
                files.length > 0 && use(repo, { rev,
                    library: info.library_name, isPrivate: info.private }))))
    };
}


/* Finds a file at the top, in the page of the tree or by its path. */

async function findFile({ repo, rev, files, complete, signal }, name) {
    const found = files.find((row) => row.path === name);

    if (found || complete) {
        return found;
    }

    const rows = await (await request("POST",
        apiPath(repo, `/paths-info/${encodeRev(rev)}`),
        { body: { paths: [name] }, signal })).json();

    return rows.find((row) => row.type === "file");
}


/* --- the README ----------------------------------------------------------- */

async function card(state, file) {
    const { repo, rev, signal } = state;
    const text = withoutFrontMatter(await readText(state, file));
    const node = await markdown(text, { repo, rev, signal });

    return [text.trim() ? node
        : h("p", { class: "soft" }, "The README has metadata and no text."),
    file.size > README_MAX && h("p", { class: "soft" },
        "This is the first MiB. ",
        h("a", { href: pageUrl(repo, "blob", rev, file.path) },
            "Open the file"), ".")];
}


async function readText({ repo, rev, signal }, file, max = README_MAX) {
    if (file.size === 0) {
        return "";
    }

    return new TextDecoder().decode(await bytes(repo, rev, file.path, 0,
        Math.min(file.size, max) - 1, signal));
}


/* What is shown if there is no README. */

async function noCard({ repo, rev, files, signal }) {
    const writes = await mayChange(repo);

    signal.throwIfAborted();

    if (files.length === 0) {
        return h("div", { class: "panel empty" },
            h("h2", {}, "This repo is empty"),
            writes ? [start(await whoami().catch(() => null), ownerOf(repo),
                [repo.kind], repo.id),
            h("a", { class: "button main",
                href: pageUrl(repo, "upload", rev) }, icon("upload"),
            "Upload files")]
                : h("p", { class: "soft" }, "Nobody has uploaded a file."));
    }

    return h("div", { class: "panel empty" },
        h("h2", {}, "This repo has no README.md"),
        h("p", { class: "soft" }, "A README tells others what the files are, "
            + "and how to use them."),
        h("div", { class: "row middle" },
            writes && h("a", { class: "button main",
                href: pageUrl(repo, "edit", rev, "README.md") }, icon("edit"),
            "Write a README"),
            h("a", { class: "button", href: pageUrl(repo, "tree", rev) },
                icon("folder"), "Show the files")));
}


/* --- metadata ------------------------------------------------------------- */

const strings = (value) => [value].flat()
    .filter((one) => typeof one === "string" && one !== "").slice(0, 20);


/* The metadata as chips: those that tags can filter are links. */

function marks(repo, info) {
    const data = info.cardData || {};
    const filter = (tag) => `${root}/${repo.kind}?filter=${
        encodeURIComponent(tag)}`;
    const chip = (label, text, href) => h(href ? "a" : "span",
        { class: "chip", href }, label && h("span", {}, `${label} `),
        h("strong", {}, plain(text)));
    const link = (kind) => (id) => chip(kind === "models" ? "base model"
        : "dataset", id, /^[\w.-]+\/[\w.-]+$/.test(id)
        ? pageUrl({ kind, id }) : undefined);
    const rows = [
        strings(info.pipeline_tag).map((one) => chip("", one, filter(one))),
        strings(info.library_name || info.sdk).map((one) =>
            chip("", one, filter(one))),
        strings(data.license).map((one) =>
            chip("license", one, filter(`license:${one}`))),
        strings(data.language).map((one) => chip("language", one)),
        strings(data.base_model).map(link("models")),
        strings(data.datasets).map(link("datasets")),
        strings(data.tags).map((one) => chip("", one, filter(one)))
    ].flat();

    return rows.length > 0 && h("div", { class: "row marks" }, rows);
}


/* --- facts ---------------------------------------------------------------- */

function facts(state) {
    const { repo, info, files, complete, refs, rev } = state;
    const size = files.reduce((sum, row) => sum + row.size, 0);
    const fact = (name, ...value) => [h("dt", {}, name),
        h("dd", {}, ...value)];
    const count = h("dd");
    const term = h("dt");
    const list = h("dl", { class: "repo-facts-list" },
        complete && fact("Size", formatBytes(size)),
        info.usedStorage > 0 && (!complete || info.usedStorage !== size)
            && fact("With all commits", formatBytes(info.usedStorage)),
        fact("Files", h("a", { href: pageUrl(repo, "tree", rev) },
            formatNumber(files.length) + (complete ? "" : " or more"))),
        info.lastModified && fact("Last change", h("a",
            { href: pageUrl(repo, "commits", rev) }, time(info.lastModified))),
        fact("Branches", names(repo, refs.branches)),
        refs.tags.length > 0 && fact("Tags", names(repo, refs.tags)));

    if (repo.kind === "models") {
        parameters(state).then((found) => {
            if (found) {
                fill(term, "Parameters");
                fill(count, found);
                list.prepend(term, count);
            }

        }, (error) => {
            if (error.name !== "AbortError") {
                fill(term, "Parameters");
                fill(count, h("span", { class: "soft" },
                    "not known: a header cannot be read"));
                list.prepend(term, count);
            }
        });
    }

    return list;
}


function names(repo, refs) {
    const rows = refs.slice(0, 5).map((one, i) => [i > 0 && ", ",
        h("a", { href: pageUrl(repo, "tree", one.name) }, plain(one.name))]);

    return [rows, refs.length > 5 && ` and ${refs.length - 5} more`];
}


/* --- parameters ----------------------------------------------------------- */

/*
 * Returns the number of parameters and their types, or undefined if the repo
 * has no weights in this format.  An index names the files of the model;
 * without one, the model is model.safetensors, or all such files at the top.
 */

async function parameters(state) {
    const index = await findFile(state, "model.safetensors.index.json");
    const shards = index ? await indexed(state, index)
        : atTop(state, await findFile(state, "model.safetensors"));

    if (!shards.length) {
        return undefined;
    }

    const sums = new Map();
    const used = shards.slice(0, SHARDS);

    for (let i = 0; i < used.length; i += 4) {
        const parts = await Promise.all(used.slice(i, i + 4).map((file) =>
            header(state, file)));

        for (const { dtype, count } of parts.flat()) {
            sums.set(dtype, (sums.get(dtype) || 0) + Number(count));
        }
    }

    const rows = [...sums].sort((a, b) => b[1] - a[1]);
    const total = rows.reduce((sum, row) => sum + row[1], 0);
    const more = shards.length > used.length;

    return total > 0 && [h("strong", {}, formatCount(total)),
        more && ` in the first ${used.length} of ${shards.length} files`,
        h("span", { class: "soft" }, rows.length === 1 ? `, ${rows[0][0]}`
            : ` (${rows.slice(0, 4).map(([type, n]) =>
                `${type} ${formatCount(n)}`).join(", ")})`)];
}


async function indexed(state, index) {
    if (index.size > HEADER_MAX) {
        return [];
    }

    const { weight_map: map } = JSON.parse(await readText(state, index,
        HEADER_MAX));
    const named = [...new Set(Object.values(map || {}))]
        .filter((name) => typeof name === "string");
    const known = new Map(state.files.map((row) => [row.path, row]));
    const found = [];

    for (const name of named) {
        found.push(known.get(name) || { path: name });
    }

    return found;
}


function atTop({ files }, model) {
    return model ? [model] : files.filter((row) =>
        /^[^/]+\.safetensors$/.test(row.path));
}


/*
 * Returns the tensors in a file.  Most headers are in the first part; a longer
 * one is read up to its end.
 */

async function header({ repo, rev, signal }, file) {
    const size = file.size ?? Infinity;

    if (size < 8) {
        throw new RangeError("The file has no header.");
    }

    let part = await bytes(repo, rev, file.path, 0,
        Math.min(size, HEADER_FIRST) - 1, signal);
    const length = Number(new DataView(part).getBigUint64(0, true));

    if (length > HEADER_MAX || 8 + length > size) {
        throw new RangeError("The header is too long.");
    }

    if (8 + length > part.byteLength) {
        part = await bytes(repo, rev, file.path, 0, 7 + length, signal);
    }

    return parseHeader(part.slice(8, 8 + length), size).tensors;
}
