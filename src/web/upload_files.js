/*
 * Uploads and commits, for all pages that change files.
 *
 * putFile() sends the bytes of a file to the storage of a repo, and
 * commitFiles() gives files that were sent, or small contents, a path.  The
 * storage needs a token of its own, which the Hub issues for a repo: it is
 * kept in memory until five minutes before it expires.
 *
 * A request that fails because the server is busy or out of reach is repeated
 * up to TRIES times; "onretry" gets the reason, and when.  Storage that is on
 * another origin cannot be used: the policy of the pages forbids it.
 */

import { ApiError, apiPath, encodePath, encodeRev, filePath, list, request,
    send, token } from "./api.js";
import { dialog, field, h } from "./dom.js";

const TRIES = 5;
const STALLED = 120000;         /* ms without progress */
const BATCH = 1000;             /* operations in a batch of a bucket */

/* A file of at most this size is sent inside the commit. */

export const INLINE = 32 * 1024;
export const INLINE_FILES = 900;

const EMPTY = {
    size: 0, hash: "0".repeat(64),
    sha256: "e3b0c44298fc1c149afbf4c8996fb924"
        + "27ae41e4649b934ca495991b7852b855"
};

const access = new Map();


/* --- bytes ---------------------------------------------------------------- */

/*
 * Sends a File or Blob, and returns { hash, sha256, size }.  Options: signal;
 * onprogress(bytes sent); onretry({ message, tried, tries, seconds }).
 */

export async function putFile(repo, rev, file, options = {}) {
    const { signal, onprogress = () => {}, onretry } = options;

    if (file.size === 0) {
        return EMPTY;
    }

    return patiently(signal, onretry, async () => {
        const storage = await writeAccess(repo, rev, signal);

        try {
            return await putOnce(storage, file, signal, onprogress);

        } catch (error) {
            if (error.status === 401) {
                access.delete(storage.key);
                error.again = true;
            }

            if (error.status === 0 && !await readable(file)) {
                throw new ApiError(0, "unreadable", "The file cannot be read: "
                    + "it was changed, moved or deleted.");
            }

            throw error;
        }
    });
}


/* Tells whether the storage of a repo has a file that was sent before. */

export async function hasFile(repo, rev, hash, signal) {
    const storage = await writeAccess(repo, rev, signal);

    try {
        const response = await fetch(`${storage.url}/v1/files/${hash}`, {
            method: "HEAD", signal, credentials: "same-origin",
            headers: { Authorization: `Bearer ${storage.token}` } });

        return response.ok;

    } catch {
        signal?.throwIfAborted();
        return false;
    }
}


async function writeAccess(repo, rev, signal) {
    const key = `${repo.kind}/${repo.id}/${rev}`;
    const kept = access.get(key);

    if (kept && kept.as === token() && kept.until > Date.now()) {
        return kept;
    }

    const said = await send("GET", apiPath(repo, repo.kind === "buckets"
        ? "/xet-write-token" : `/xet-write-token/${encodeRev(rev)}`),
        undefined, { signal });
    const storage = { key, as: token(), token: said.accessToken,
        until: (said.exp - 300) * 1000,
        url: location.origin
            + new URL(said.casUrl).pathname.replace(/\/+$/, "") };

    access.set(key, storage);

    return storage;
}


async function readable(file) {
    try {
        await file.slice(0, 1).arrayBuffer();
        return true;

    } catch {
        return false;
    }
}


/* fetch() does not report the progress of an upload. */

function putOnce(storage, file, signal, onprogress) {
    return new Promise((resolve, reject) => {
        const xhr = new XMLHttpRequest();
        const abort = () => xhr.abort();
        let timer = 0;

        const alive = () => {
            clearTimeout(timer);
            timer = setTimeout(abort, STALLED);
        };

        xhr.open("PUT", `${storage.url}/v1/files`);
        xhr.setRequestHeader("Authorization", `Bearer ${storage.token}`);
        xhr.responseType = "json";

        xhr.upload.onprogress = (event) => {
            alive();
            onprogress(event.loaded);
        };

        xhr.onloadend = () => {
            clearTimeout(timer);
            signal?.removeEventListener("abort", abort);

            if (signal?.aborted) {
                reject(signal.reason);

            } else if (xhr.status === 200 && xhr.response?.hash) {
                onprogress(file.size);
                resolve(xhr.response);

            } else {
                reject(refused(xhr));
            }
        };

        if (signal?.aborted) {
            reject(signal.reason);
            return;
        }

        signal?.addEventListener("abort", abort);
        alive();
        xhr.send(file);
    });
}


function refused(xhr) {
    const said = xhr.response?.error;
    const error = new ApiError(xhr.status, said?.code || "",
        said?.message || (xhr.status
            ? `The server responded with ${xhr.status}.`
            : "The connection was lost."));

    if (xhr.status) {
        error.wait = Number(xhr.getResponseHeader("Retry-After")) || 0;
    }

    return error;
}


/* --- retries -------------------------------------------------------------- */

async function patiently(signal, onretry = () => {}, attempt) {
    for (let tried = 1; ; tried++) {
        try {
            return await attempt();

        } catch (error) {
            if (signal?.aborted) {
                throw signal.reason;
            }

            if (tried === TRIES || !mayRepeat(error)) {
                throw error;
            }

            const seconds = Math.min(60, error.wait || 2 ** (tried - 1));

            onretry({ tried: tried + 1, tries: TRIES, seconds,
                message: error.status || "no connection" });

            await pause(seconds * 1000, signal);
        }
    }
}


const mayRepeat = (error) => error.again || error.code === "unreachable"
    || (error instanceof ApiError && error.code !== "unreadable"
        && [0, 408, 429, 500, 502, 503, 504].includes(error.status));


function pause(ms, signal) {
    return new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, ms);

        signal?.addEventListener("abort", () => {
            clearTimeout(timer);
            reject(signal.reason);
        }, { once: true });
    });
}


/* --- commits -------------------------------------------------------------- */

/*
 * Commits files and deletions, and returns the id of the commit, or "" for a
 * bucket, which has no commits.
 *
 * A file is { path, file } with a Blob, or { path, size, sha256, hash, mtime }
 * after putFile().  A Blob of more than INLINE bytes is sent by putFile()
 * first.  A deletion is a path; one that ends with a slash is a folder, which
 * buckets do not have.  "parent" is the commit that the caller has seen: if
 * one of the files has changed since, this throws an error of status 412.
 */

export async function commitFiles(repo, rev, options) {
    const { title, description = "", files = [], deletions = [], parent,
        signal, onretry } = options;
    const sent = [];

    for (const one of files) {
        const inline = one.file && one.file.size <= INLINE
            && repo.kind !== "buckets";

        sent.push(!one.file || (inline && one.file.size) ? one
            : { ...one, ...await putFile(repo, rev, one.file,
                { signal, onretry }) });
    }

    if (repo.kind === "buckets") {
        await batch(repo, sent, deletions, signal, onretry);
        return "";
    }

    const lines = [line("header", { summary: title, description,
        parentCommit: parent || undefined })];

    for (const one of sent) {
        lines.push(one.sha256
            ? line("lfsFile", { path: one.path, algo: "sha256",
                oid: one.sha256, size: one.size })
            : line("file", { path: one.path, encoding: "base64",
                content: await base64(one.file) }));
    }

    for (const path of deletions) {
        lines.push(path.endsWith("/")
            ? line("deletedFolder", { path: path.slice(0, -1) })
            : line("deletedFile", { path }));
    }

    const said = await patiently(signal, onretry, () => send("POST",
        apiPath(repo, `/commit/${encodeRev(rev)}`), ndjson(lines),
        { signal }));

    return said.commitOid;
}


/* A batch that fails in part says which files it has not changed. */

async function batch(repo, files, deletions, signal, onretry) {
    const operations = [
        ...files.map((one) => ({ type: "addFile", path: one.path,
            xetHash: one.hash, mtime: one.mtime })),
        ...deletions.map((path) => ({ type: "deleteFile", path }))
    ].map((one) => `${JSON.stringify(one)}\n`);

    for (let i = 0; i < operations.length; i += BATCH) {
        const said = await patiently(signal, onretry, () => send("POST",
            apiPath(repo, "/batch"), ndjson(operations.slice(i, i + BATCH)),
            { signal }));

        if (said?.failed?.length) {
            const [first] = said.failed;

            throw new ApiError(422, "batch_failed", `${said.failed.length} of `
                + `${said.processed} files failed; ${first.path}: `
                + `${first.error}.`);
        }
    }
}


const line = (key, value) => `${JSON.stringify({ key, value })}\n`;

const ndjson = (lines) => new Blob(lines, { type: "application/x-ndjson" });


async function base64(blob) {
    const data = new Uint8Array(await blob.arrayBuffer());
    const parts = [];

    for (let i = 0; i < data.length; i += 8192) {
        parts.push(String.fromCharCode(...data.subarray(i, i + 8192)));
    }

    return btoa(parts.join(""));
}


/* --- deletions ------------------------------------------------------------ */

/*
 * Asks whether to delete a file, or a folder if the path ends with a slash,
 * and deletes it.  Returns true if it was deleted.
 */

export function deleteFile(repo, rev, path) {
    const folder = path.endsWith("/");
    const name = folder ? path.slice(0, -1) : path;
    const bucket = repo.kind === "buckets";
    const title = h("input", { name: "title", value: `Delete ${name}`,
        maxlength: 200, required: true, autocomplete: "off" });
    let done = false;

    const box = dialog(folder ? "Delete this folder?" : "Delete this file?",
        h("div", {},
            h("p", {}, h("code", {}, name)),
            h("p", { class: "soft" }, bucket
                ? "A bucket keeps no earlier versions: this cannot be undone."
                : "Earlier commits keep it."),
            !bucket && field("Commit message", title)),
        "Delete", async () => {
            await commitFiles(repo, rev, { title: title.value,
                deletions: bucket && folder ? await below(repo, name)
                                            : [path] });
            done = true;
        }, "danger");

    return new Promise((resolve) => {
        box.addEventListener("close", () => resolve(done));
    });
}


/* Returns the paths of the files in a folder of a bucket. */

async function below(repo, folder) {
    const paths = [];
    let page = await list(apiPath(repo, `/tree/${encodePath(folder)}`),
        { recursive: "true" });

    for (;;) {
        paths.push(...page.rows.filter((row) => row.type === "file"
            && row.path.startsWith(`${folder}/`)).map((row) => row.path));

        if (!page.next) {
            return paths;
        }

        page = await page.next();
    }
}


/* --- leaving -------------------------------------------------------------- */

/*
 * Asks before the caller leaves the page, as long as busy() returns true: by a
 * link, by closing the tab, or by "back", where the browser allows it.
 */

export function guard(signal, busy, question) {
    addEventListener("beforeunload", (event) => {
        if (busy()) {
            event.preventDefault();
        }
    }, { signal });

    document.addEventListener("click", (event) => {
        const link = event.target.closest?.("a[href]");

        if (link && !link.target && !link.hasAttribute("download") && busy()
            && !confirm(question))
        {
            event.preventDefault();
            event.stopPropagation();
        }
    }, { signal, capture: true });

    window.navigation?.addEventListener("navigate", (event) => {
        if (event.navigationType === "traverse" && event.cancelable && busy()
            && !confirm(question))
        {
            event.preventDefault();
        }
    }, { signal });
}


/* Returns { commit, size, etag } of a file, or null if there is none. */

export async function fileHead(repo, rev, path, signal) {
    try {
        const { headers } = await request("HEAD", filePath(repo, rev, path),
            { signal });

        return { commit: headers.get("X-Repo-Commit") || "",
            etag: headers.get("ETag"),
            size: Number(headers.get("X-Linked-Size")
                || headers.get("Content-Length")) };

    } catch (error) {
        if (error.status === 404 && error.code !== "RevisionNotFound"
            && error.code !== "RepoNotFound")
        {
            return null;
        }

        throw error;
    }
}
