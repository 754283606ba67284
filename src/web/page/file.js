/*
 * The page of a file: where it is, what can be done with it, its contents in a
 * viewer, and its hashes.
 *
 * The first 64 KiB select the viewer (parse/kind.js).  All later parts are
 * read from the same commit, so that a new commit cannot mix two files.
 */

import { apiPath, ApiError, bytes, encodeRev, filePath, fileUrl, pageUrl,
    request, send } from "../api.js";
import { announce, copy, copyButton, fill, formatBytes, h, icon, later,
    notice, time } from "../dom.js";
import { plain } from "../list.js";
import { Invalid } from "../parse/error.js";
import { encodingOf, kindOf } from "../parse/kind.js";
import { crumbs, isCommit, mayChange, readInfo, repoHead }
    from "../repo_head.js";
import { use } from "../use.js";
import { about } from "../view/binary.js";
import { works } from "../worker.js";

const FIRST = 64 * 1024;
const COPIED = 2 * 1024 * 1024;
const COUNTED = 1024 * 1024 * 1024;
const EDITED = 1024 * 1024;
const IN_MEMORY = 64 * 1024 * 1024;

/* The module in view/ for each kind of file. */

const VIEWERS = { text: "text", markdown: "text", json: "json", csv: "table",
    tsv: "table", jsonl: "table", image: "media", audio: "media",
    video: "media", pdf: "media", notebook: "notebook",
    safetensors: "safetensors", gguf: "gguf", ztensor: "ztensor",
    parquet: "parquet", binary: "binary" };


export async function show(route, signal, { go }) {
    const { repo, rev, path } = route;
    const [entry, info, write] = await Promise.all([
        findEntry(repo, rev, path, signal), readInfo(repo, rev, signal),
        mayChange(repo)]);

    if (entry.type !== "file") {
        go(pageUrl(repo, "tree", rev, path), true);
        return { title: path, body: h("div") };
    }

    const file = await openFile(route, entry, signal);
    const kind = kindOf(file.name, file.head);

    return { title: `${plain(file.name)} · ${repo.id}`, body: h("div", {},
        await repoHead(repo, "tree", info, rev),
        h("div", { class: "file" },
            h("div", { class: "row" }, crumbs(repo, rev, path),
                copyButton(path, "Copy the path")),
            bar(file, write, go),
            file.size > 0 ? later(view(file, kind), 6) : h("div",
                { class: "panel empty soft" }, "This file is empty."),
            h("div", { class: "file-below" }, about(file,
                kind === "binary" && file.size <= COUNTED),
                use(repo, { rev, path, isPrivate: info?.private })))) };
}


async function findEntry(repo, rev, path, signal) {
    const rest = repo.kind === "buckets" ? "" : `/${encodeRev(rev)}`;
    const found = await send("POST", apiPath(repo, `/paths-info${rest}`),
        repo.kind === "buckets" ? { paths: [path] }
            : { paths: [path], expand: true }, { signal });
    const entry = found.find((one) => one.path === path);

    if (!entry) {
        throw new ApiError(404, "EntryNotFound", "There is no such file.");
    }

    return entry;
}


/* Returns the file for the viewers, with its first bytes. */

async function openFile({ repo, rev, path }, entry, signal) {
    const at = path.lastIndexOf("/");
    const file = { repo, rev, path, entry, signal, at: rev,
        name: path.slice(at + 1), dir: path.slice(0, Math.max(at, 0)),
        size: entry.size, hash: entry.xetHash, head: new Uint8Array() };

    if (file.size > 0) {
        await readHead(file);
    }

    file.encoding = encodingOf(file.head);
    file.read = (first, last) => read(file, first, last);

    return file;
}


async function readHead(file) {
    const { repo, rev, path, signal } = file;
    const response = await request("GET", filePath(repo, rev, path),
        { headers: { Range: `bytes=0-${FIRST - 1}` }, signal });

    if (response.status !== 206) {
        await response.body?.cancel();
        throw new ApiError(response.status, "no_range",
            "The server does not send parts of this file.");
    }

    const total = /\/(\d+)$/.exec(response.headers.get("Content-Range"));
    const { headers } = response;

    file.size = total ? Number(total[1]) : file.size;
    file.hash = headers.get("X-Xet-Hash") || file.hash;
    file.at = repo.kind !== "buckets" && headers.get("X-Repo-Commit") || rev;
    file.head = new Uint8Array(await response.arrayBuffer());
}


/* Reads bytes from first to last inclusive, which must be in the file. */

async function read(file, first, last) {
    if (first < 0 || last < first || last >= file.size) {
        throw new RangeError("These bytes are not in the file.");
    }

    if (last < file.head.length) {
        return file.head.slice(first, last + 1).buffer;
    }

    const data = await bytes(file.repo, file.at, file.path, first, last,
        file.signal);

    if (data.byteLength !== last - first + 1) {
        throw new ApiError(0, "short", "The server sent less than requested. "
            + "Load the page anew.");
    }

    return data;
}


/* --- above the viewer ----------------------------------------------------- */

function bar(file, write, go) {
    const { repo, rev, path, entry } = file;
    const said = h("div");
    const url = new URL(fileUrl(repo, rev, path), location.origin).href;
    const text = file.encoding !== null && file.size > 0;

    return h("div", { class: "file-bar" }, h("div", { class: "row" },
        h("div", { class: "grow soft small" }, formatBytes(file.size),
            lastChange(repo, entry)),
        repo.kind !== "buckets" && h("a", { class: "button",
            href: pageUrl(repo, "commits", rev, path) }, icon("history"),
        "History"),
        text && file.size <= COPIED && copier("Copy text", said,
            () => copyText(file)),
        copier("Copy URL", said, () => copy(url)),
        isBranch(repo, rev) && write && [
            text && file.size <= EDITED && repo.kind !== "buckets" && h("a",
                { class: "button", href: pageUrl(repo, "edit", rev, path) },
                icon("edit"), "Edit"),
            h("button", { type: "button", class: "danger", onclick: () =>
                remove(file, said, go) }, icon("trash"), "Delete")],
        download(file, said)), said);
}


/* A commit cannot be changed. */

const isBranch = (repo, rev) => repo.kind === "buckets"
    || !isCommit(rev);


function lastChange(repo, { lastCommit, uploadedAt, mtime }) {
    if (lastCommit) {
        return [" · ", h("a", { href: pageUrl(repo, "commit", lastCommit.id) },
            lastCommit.title || lastCommit.id.slice(0, 8)), " ",
        time(lastCommit.date)];
    }

    return (uploadedAt || mtime) && [" · uploaded ",
        time(uploadedAt || mtime)];
}


async function copyText(file) {
    const data = await file.read(0, file.size - 1);

    await copy(new TextDecoder(file.encoding).decode(data));
}


function copier(label, said, run) {
    const button = h("button", { type: "button", onclick: () => tell(said,
        async () => {
            await run();
            fill(button, icon("check"), label);
            announce("Copied.");
            setTimeout(() => fill(button, icon("copy"), label), 1500);

            return null;
        }) }, icon("copy"), label);

    return button;
}


/* Runs something, and shows what it returns, or why it failed. */

async function tell(node, run) {
    fill(node);

    try {
        fill(node, await run());

    } catch (error) {
        if (error.name !== "AbortError") {
            fill(node, notice("bad", error.message));
        }
    }
}


async function remove({ repo, rev, path, dir }, said, go) {
    await tell(said, async () => {
        const { deleteFile } = await import("../upload_files.js");

        if (await deleteFile(repo, rev, path)) {
            go(pageUrl(repo, "tree", rev, dir));
        }
    });
}


/*
 * The browser downloads by itself.  Where no service worker adds the token,
 * the page loads the file, if it is small.
 */

function download(file, said) {
    const { repo, rev, path, name } = file;

    return h("a", { class: "button main", download: name,
        href: fileUrl(repo, rev, path, true), onclick: (event) => {
            if (!works()) {
                event.preventDefault();
                tell(said, () => downloadByPage(file));
            }
        } }, icon("download"), "Download");
}


async function downloadByPage({ repo, at, path, name, size, signal }) {
    if (size > IN_MEMORY) {
        return notice("bad", "Without a service worker the page cannot "
            + "download private files of this size. Use hf download.");
    }

    const data = await bytes(repo, at, path, undefined, undefined, signal);
    const url = URL.createObjectURL(new Blob([data]));

    h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);

    return null;
}


/* --- the viewer ----------------------------------------------------------- */

/* A file that does not have its format is shown as text or as bytes. */

async function view(file, kind) {
    try {
        const { view: make } = await import(`../view/${VIEWERS[kind]}.js`);

        return await make(file, kind);

    } catch (error) {
        const refused = error instanceof Invalid || error instanceof RangeError
            || (kind === "ztensor" && error.status);

        if (!refused || kind === "binary") {
            throw error;
        }

        const { view: make } = await import("../view/binary.js");

        return [notice("bad", kind === "ztensor" && error.status === 422
            ? `This is not a valid zTensor file: ${error.message}.`
            : error.message), await make(file)];
    }
}
