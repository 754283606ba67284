/*
 * The queue of an upload: decides which files must be sent, sends a few at a
 * time, and makes the commit.
 *
 * An item is { file, source, path, size, state, sent, note, result }:
 *
 *   waiting   is to be checked and sent
 *   checking  is compared with the file that the repo has
 *   sending   is being sent
 *   retrying  waits before the next attempt; "note" says why
 *   ready     is in the storage, or small enough for the commit
 *   same      is in the repo already, with the same content
 *   ignored   is excluded by .gitignore of the repo
 *   failed    was given up; "note" says why
 *
 * run() may be called again after it has thrown, or after stop(): items that
 * are ready are not sent again.  After a reload of the page, files of at least
 * REMEMBERED bytes that were sent in this tab are recognised by path, size and
 * date.
 */

import { apiPath, encodeRev, send } from "./api.js";
import { commitFiles, hasFile, INLINE, INLINE_FILES, putFile }
    from "./upload_files.js";

const AT_ONCE = 3;
const COMPARED = 64 << 20;      /* larger files are sent, not compared */
const LOOK_UP = 256;            /* paths in a request */
const REMEMBERED = 1024 * 1024;
const RECORDS = 1000;
const IGNORE = 256 * 1024;


/*
 * Returns the SHA-256 of a file, or undefined for a large one, and in a page
 * over plain HTTP: the server recognises the content anyway when it is sent.
 */

async function sha256(file) {
    if (file.size > COMPARED || !crypto.subtle) {
        return undefined;
    }

    const digest = await crypto.subtle.digest("SHA-256",
        await file.arrayBuffer());

    return Array.from(new Uint8Array(digest),
        (byte) => byte.toString(16).padStart(2, "0")).join("");
}


export class Queue {
    constructor(repo, rev) {
        this.repo = repo;
        this.rev = rev;
        this.items = [];
        this.running = false;
        this.checked = false;
        this.phase = "";
        this.controller = new AbortController();
    }


    /* Replaces the files, of the form { file, source, path }. */

    set(files) {
        this.items = files.map((one) => ({ ...one, size: one.file.size,
            state: "waiting", sent: 0, note: "" }));
        this.checked = false;
    }


    count(...states) {
        return this.items.filter((one) => states.includes(one.state)).length;
    }


    /* Returns the bytes that are done, and all bytes. */

    progress() {
        let done = 0;
        let all = 0;

        for (const one of this.items) {
            if (one.state !== "ignored") {
                all += one.size;
                done += ["ready", "same"].includes(one.state) ? one.size
                                                              : one.sent;
            }
        }

        return { done, all };
    }


    stop() {
        this.controller.abort();
    }


    /* Checks and sends all files that are not ready. */

    async run() {
        this.controller = new AbortController();
        this.running = true;

        for (const one of this.items) {
            if (one.state === "failed") {
                Object.assign(one, { state: "waiting", sent: 0, note: "" });
            }
        }

        try {
            if (!this.checked) {
                this.phase = "Checking which files the repo has";
                await this.check();
                this.checked = true;
            }

            this.phase = "Uploading";
            this.waiting = this.items.filter((one) =>
                one.state === "waiting").values();

            const ends = await Promise.allSettled(Array.from(
                { length: AT_ONCE }, () => this.worker()));
            const errors = ends.map((end) => end.reason).filter(Boolean);

            if (errors.length) {
                throw errors.find((error) => error.name !== "AbortError")
                    || errors[0];
            }

        } finally {
            this.running = false;
            this.phase = "";
        }
    }


    async check() {
        const { repo, controller: { signal } } = this;
        let inline = 0;

        for (let i = 0; i < this.items.length; i += LOOK_UP) {
            const items = this.items.slice(i, i + LOOK_UP);

            await (repo.kind === "buckets" ? this.lookUp(items, signal)
                                           : this.ask(items, signal));
        }

        for (const one of this.items) {
            one.inline = repo.kind !== "buckets" && one.size <= INLINE
                && (one.size === 0 || inline++ < INLINE_FILES);
        }
    }


    /*
     * The server says which files .gitignore excludes, and which exist.  A
     * .gitignore of this upload counts instead of the one in the repo.
     */

    async ask(items, signal) {
        const { repo, rev } = this;
        const own = this.items.find((one) => one.path === ".gitignore"
            && one.size <= IGNORE);
        const said = await send("POST",
            apiPath(repo, `/preupload/${encodeRev(rev)}`),
            { files: items.map(({ path, size }) => ({ path, size })),
                gitIgnore: own && await own.file.text() }, { signal });
        const files = new Map(said.files.map((one) => [one.path, one]));
        const known = [];

        for (const one of items) {
            const file = files.get(one.path);

            if (file?.shouldIgnore) {
                one.state = "ignored";

            } else if (file?.oid) {
                known.push(one);
            }
        }

        if (known.length) {
            await this.lookUp(known, signal);
        }
    }


    async lookUp(items, signal) {
        const { repo, rev } = this;
        const rows = await send("POST", apiPath(repo, repo.kind === "buckets"
            ? "/paths-info" : `/paths-info/${encodeRev(rev)}`),
            { paths: items.map((one) => one.path) }, { signal });
        const files = new Map(rows.map((row) => [row.path, row]));

        for (const one of items) {
            const row = files.get(one.path);

            one.there = row?.type === "file" && row.size === one.size
                ? { sha256: row.lfs?.oid, hash: row.xetHash } : null;
        }
    }


    async worker() {
        const { signal } = this.controller;

        for (const one of this.waiting) {
            signal.throwIfAborted();

            try {
                await this.handle(one, signal);

            } catch (error) {
                if (signal.aborted) {
                    Object.assign(one, { state: "waiting", sent: 0, note: "" });
                    throw error;
                }

                Object.assign(one, { state: "failed", sent: 0,
                    note: error.message });

                /* the next files would fail for the same reason */

                if ([401, 403, 404, 413, 507].includes(error.status)) {
                    this.stop();
                    throw error;
                }
            }
        }
    }


    async handle(one, signal) {
        const { repo, rev } = this;

        one.state = "checking";

        if (one.there?.sha256
            && await sha256(one.file) === one.there.sha256)
        {
            one.state = "same";
            return;
        }

        const before = recall(repo, one);

        if (one.inline) {
            one.result = { file: one.file };

        } else if (before && await hasFile(repo, rev, before.hash, signal)) {
            one.result = before;

        } else {
            one.state = "sending";
            one.result = await putFile(repo, rev, one.file, { signal,
                onprogress: (sent) => {
                    Object.assign(one, { state: "sending", sent, note: "" });
                },
                onretry: ({ message, tried, tries }) => {
                    Object.assign(one, { state: "retrying", sent: 0,
                        note: `(${message}), ${tried} of ${tries}` });
                } });
            remember(repo, one);
        }

        one.state = one.there?.hash && one.there.hash === one.result.hash
            ? "same" : "ready";
    }


    /* Makes the commit; returns its id, or null if nothing has changed. */

    async commit(title) {
        const files = this.items.filter((one) => one.state === "ready")
            .map((one) => ({ path: one.path, mtime: one.file.lastModified,
                ...one.result }));

        if (files.length === 0) {
            return null;
        }

        this.controller = new AbortController();
        this.running = true;
        this.phase = "Committing";

        try {
            return await commitFiles(this.repo, this.rev,
                { title, files, signal: this.controller.signal });

        } catch (error) {
            if (/uploaded/.test(error.message)) {
                this.forget();
            }

            throw error;

        } finally {
            this.running = false;
            this.phase = "";
        }
    }


    /* The server has removed files that were sent long ago. */

    forget() {
        sessionStorage.removeItem(recordsKey(this.repo));

        for (const one of this.items) {
            if (one.state === "ready" && !one.inline) {
                Object.assign(one, { state: "waiting", sent: 0 });
            }
        }
    }
}


/* --- records -------------------------------------------------------------- */

const recordsKey = (repo) => `xet-sent:${repo.kind}/${repo.id}`;

const recordKey = ({ file, source }) =>
    `${source}|${file.size}|${file.lastModified}`;


function records(repo) {
    try {
        return JSON.parse(sessionStorage.getItem(recordsKey(repo))) || {};

    } catch {
        return {};
    }
}


function recall(repo, one) {
    return one.size >= REMEMBERED && records(repo)[recordKey(one)];
}


function remember(repo, one) {
    if (one.size < REMEMBERED) {
        return;
    }

    const { hash, sha256: sum, size } = one.result;
    const all = Object.entries(records(repo)).slice(-RECORDS + 1);

    all.push([recordKey(one), { hash, sha256: sum, size }]);

    try {
        sessionStorage.setItem(recordsKey(repo),
            JSON.stringify(Object.fromEntries(all)));

    } catch {
        /* the browser has no space: after a reload the file is sent again */
    }
}
