/*
 * The page that uploads files and folders to a repo or a bucket.
 *
 * States: nothing is chosen; files are chosen; the upload runs; it is paused,
 * or some files have failed; the files are committed.  upload_queue.js does
 * the work, and this page shows it four times a second.
 */

import { mayWrite, pageUrl } from "../api.js";
import { announce, fill, field, formatBytes, formatNumber, h, icon, notice }
    from "../dom.js";
import { plain } from "../list.js";
import { ownerOf, readInfo, repoHead } from "../repo_head.js";
import { guard } from "../upload_files.js";
import { fromDrop, fromInput, wrongPath } from "../upload_pick.js";
import { Queue } from "../upload_queue.js";

const ROWS = 100;
const STATES = {
    waiting: "Waiting", checking: "Comparing", sending: "Sending",
    retrying: "Retrying", ready: "Uploaded", same: "Unchanged",
    ignored: "Ignored by .gitignore", failed: "Failed"
};

/* Files that need attention come first. */

const ORDER = ["failed", "retrying", "sending", "checking", "waiting",
    "ready", "same", "ignored"];


export async function show(route, signal, { go }) {
    const { repo, rev } = route;
    const title = `Upload to ${repo.id}`;

    const [info, allowed] = await Promise.all([readInfo(repo, rev, signal),
        mayWrite(ownerOf(repo))]);
    const top = await repoHead(repo, "tree", info, rev);

    if (!allowed) {
        return { title, body: h("div", {}, top, notice("bad", "You cannot "
            + "change this repo. Sign in with a token that can write to the "
            + `name space ${ownerOf(repo)}.`)) };
    }

    const page = new Page(route, signal, go);

    guard(signal, () => page.queue.running,
        "Files are being uploaded. Leave the page, and stop the upload?");
    signal.addEventListener("abort", () => page.leave());

    return { title, body: h("div", { class: "upload" }, top,
        h("h2", {}, "Upload files", repo.kind !== "buckets"
            && [" to ", icon("branch"), " ", plain(rev)]), page.body) };
}


class Page {
    constructor({ repo, rev, path }, signal, go) {
        Object.assign(this, { repo, rev, signal, go });
        this.queue = new Queue(repo, rev);
        this.chosen = [];
        this.skipped = 0;
        this.rows = new Map();
        this.shown = ROWS;
        this.said = h("div");
        this.total = h("div");
        this.list = h("div");
        this.buttons = h("div", { class: "row end upload-buttons" });
        this.folder = h("input", { value: path, spellcheck: "false",
            autocomplete: "off", placeholder: "the top of the repo",
            oninput: () => this.place() });
        this.keep = h("input", { type: "checkbox",
            onchange: () => this.place() });
        this.message = h("input", { maxlength: 200, autocomplete: "off",
            placeholder: "Upload files" });
        this.drop = this.dropZone();
        this.form = h("div", { class: "upload-form", hidden: true });
        this.body = h("div", {}, this.drop, this.form, this.said, this.total,
            this.buttons, this.list);
        this.options();
    }


    options() {
        this.keepLabel = h("label", { class: "row upload-keep" }, this.keep,
            "Keep the name of the chosen folder");

        fill(this.form, field("Target folder", this.folder), this.keepLabel,
            this.repo.kind !== "buckets"
                && field("Commit message", this.message));
    }


    dropZone() {
        const files = h("input", { type: "file", multiple: true,
            class: "hidden", id: "upload-files", tabindex: -1,
            "aria-label": "Files",
            onchange: () => this.take(() => fromInput(files), files) });
        const folder = h("input", { type: "file", webkitdirectory: true,
            class: "hidden", id: "upload-folder", tabindex: -1,
            "aria-label": "Folder",
            onchange: () => this.take(() => fromInput(folder), folder) });
        const zone = h("div", { class: "upload-drop",
            ondragover: (event) => {
                event.preventDefault();
                zone.classList.add("over");
            },
            ondragleave: () => zone.classList.remove("over"),
            ondrop: (event) => {
                event.preventDefault();
                zone.classList.remove("over");
                this.take(() => fromDrop(event.dataTransfer));
            } },
            h("p", { class: "upload-icon" }, icon("upload")),
            h("p", {}, "Drag files or folders here, or"),
            h("div", { class: "row upload-choose" },
                h("button", { type: "button", onclick: () => files.click() },
                    icon("file"), "Choose files"),
                h("button", { type: "button", onclick: () => folder.click() },
                    icon("folder"), "Choose a folder")),
            files, folder);

        return zone;
    }


    /* Adds files to those that were chosen before. */

    async take(read, input) {
        fill(this.said);

        try {
            const reading = read();

            if (reading instanceof Promise) {
                fill(this.said, notice("info", "Reading the folder …"));
            }

            const { files, skipped } = await reading;
            const all = new Map(this.chosen.map((one) => [one.path, one]));

            for (const one of files) {
                all.set(one.path, one);
            }

            this.chosen = [...all.values()];
            this.skipped += skipped;
            fill(this.said);

            if (files.length === 0) {
                fill(this.said, notice("info", "There are no files in it."));
            }

        } catch (error) {
            fill(this.said, notice("bad", error.message));
        }

        if (input) {
            input.value = "";
        }

        this.place();
    }


    /* Gives each chosen file its path in the repo. */

    place() {
        const folder = this.folder.value.trim().replace(/^\/+|\/+$/g, "");
        const tops = new Set(this.chosen.map(({ path }) =>
            path.includes("/") ? path.slice(0, path.indexOf("/")) : ""));
        const single = tops.size === 1 && !tops.has("");
        const strip = single && !this.keep.checked;

        this.keepLabel.hidden = !single;
        this.queue.set(this.chosen.map(({ file, path }) => {
            const rest = strip ? path.slice(path.indexOf("/") + 1) : path;

            return { file, source: path,
                path: folder ? `${folder}/${rest}` : rest };
        }));

        this.rows.clear();
        this.shown = ROWS;
        this.form.hidden = this.chosen.length === 0;
        this.message.placeholder = this.suggestion();
        this.ready();
    }


    suggestion() {
        const { items } = this.queue;

        return items.length === 1 ? `Upload ${items[0].path}`.slice(0, 200)
            : `Upload ${items.length} files`;
    }


    /* Shows the choice before the upload. */

    ready() {
        const { items } = this.queue;
        const wrong = items.find((one) => wrongPath(one.path));
        const size = this.queue.progress().all;

        if (items.length === 0) {
            fill(this.total);
            fill(this.list);
            fill(this.buttons);
            return;
        }

        fill(this.total, h("p", { class: "upload-count" },
            h("strong", {}, files(items.length)), `, ${formatBytes(size)}`,
            this.skipped > 0 && h("span", { class: "soft" },
                `; ${files(this.skipped)} in .git or .cache left out`)),
            wrong && notice("bad", `${plain(wrong.path)}: `
                + wrongPath(wrong.path)));
        fill(this.buttons,
            h("button", { type: "button", onclick: () => {
                this.chosen = [];
                this.skipped = 0;
                this.place();
            } }, "Clear"),
            h("button", { type: "button", class: "main", id: "upload-start",
                disabled: Boolean(wrong), onclick: () => this.start() },
                icon("upload"), "Upload"));
        this.draw();
    }


    /* --- while it runs ---------------------------------------------------- */

    async start() {
        const { queue } = this;

        this.drop.hidden = this.form.hidden = true;
        this.samples = [];
        fill(this.said);
        fill(this.buttons,
            h("button", { type: "button", onclick: () => queue.stop() },
                "Pause"));
        this.timer = setInterval(() => this.tick(), 250);

        try {
            await queue.run();
            this.tick();

            const failed = queue.count("failed");

            if (failed) {
                this.halted(`${files(failed)} could not be uploaded.`, true);
            } else {
                await this.finish();
            }

        } catch (error) {
            if (error.name === "AbortError") {
                this.halted("", false);
            } else {
                this.halted(error.message, false);
            }

        } finally {
            clearInterval(this.timer);
            this.tick();
        }
    }


    leave() {
        clearInterval(this.timer);
        this.queue.stop();
    }


    /* Offers to continue after a pause or a failure. */

    halted(why, some) {
        fill(this.said, why
            ? notice("bad", sentence(why),
                " Files that were uploaded are not sent again.")
            : notice("info", "The upload is paused. Files that are complete "
                + "are not sent again; a file that was interrupted starts "
                + "over."));
        fill(this.buttons,
            h("button", { type: "button", onclick: () => this.back() },
                "Change the choice"),
            some && h("button", { type: "button", onclick: () =>
                this.finish().catch((error) => this.halted(error.message)) },
                "Commit the others"),
            h("button", { type: "button", class: "main", id: "upload-again",
                onclick: () => this.start() }, why ? "Try again" : "Continue"));
    }


    back() {
        this.drop.hidden = false;
        fill(this.said);
        this.place();
    }


    async finish() {
        const { queue, repo, rev } = this;
        const same = queue.count("same");

        fill(this.buttons);

        const title = this.message.value.trim() || this.suggestion();
        const commit = await queue.commit(title);
        const sent = queue.count("ready");
        const tree = this.folder.value.trim().replace(/^\/+|\/+$/g, "");

        announce("The upload is complete.");
        fill(this.said, notice("good",
            h("p", {}, commit === null ? "Nothing has changed: the repo has "
                + "these files already." : `${files(sent)} uploaded.`,
            commit !== null && same > 0 && ` ${files(same)} unchanged.`),
            h("div", { class: "row" },
                commit && h("a", { id: "upload-commit",
                    href: pageUrl(repo, "commit", commit) }, "Show the commit"),
                h("a", { href: tree ? pageUrl(repo, "tree", rev, tree)
                    : rev === "main" || !rev ? pageUrl(repo)
                    : pageUrl(repo, "tree", rev) }, "Show the files"))));
        fill(this.buttons, h("button", { type: "button", onclick: () => {
            this.chosen = [];
            this.message.value = "";
            this.back();
        } }, "Upload more"));
    }


    /* --- progress --------------------------------------------------------- */

    tick() {
        const { queue } = this;
        const { done, all } = queue.progress();
        const now = Date.now();
        const { samples } = this;

        samples.push([now, done]);

        while (samples.length > 2 && now - samples[0][0] > 5000) {
            samples.shift();
        }

        const [[since, before]] = samples;
        const rate = Math.max(0, (done - before) / Math.max(1, now - since)
            * 1000);
        const bar = h("progress", { max: all || 1, value: all ? done : 1,
            "aria-label": "All files" });

        fill(this.total, bar, h("p", { class: "upload-count" },
            h("strong", {}, queue.phase || (queue.count("failed") ? "Stopped"
                : done < all ? "Paused" : "Complete")),
            ` · ${formatNumber(queue.count("ready", "same"))} of `
            + `${files(queue.items.length - queue.count("ignored"))}`
            + ` · ${formatBytes(done)} of ${formatBytes(all)}`,
            queue.phase === "Uploading" && rate > 0 && done < all
                && ` · ${formatBytes(rate)}/s · `
                    + left((all - done) / rate)));
        this.draw();
    }


    /* Shows the first rows, in the order of their states. */

    draw() {
        const { items } = this.queue;
        const some = [];

        for (const state of ORDER) {
            for (const one of items) {
                if (one.state === state && some.push(one) >= this.shown) {
                    break;
                }
            }

            if (some.length >= this.shown) {
                break;
            }
        }

        if (!this.table?.isConnected) {
            this.table = h("ul", { class: "upload-list panel",
                "aria-label": "Files" });
            this.more = h("p", { class: "row" });
            fill(this.list, this.table, this.more);
        }

        const nodes = some.map((one) => this.row(one));

        if (nodes.length !== this.table.children.length
            || nodes.some((node, i) => this.table.children[i] !== node))
        {
            fill(this.table, nodes);
        }

        if (items.length - some.length !== this.rest) {
            this.rest = items.length - some.length;
            fill(this.more, this.rest > 0 && h("button", { type: "button",
                onclick: () => {
                    this.shown += ROWS;
                    this.draw();
                } }, `Show more (${formatNumber(this.rest)})`));
        }
    }


    /* Returns the row of a file, with its present state. */

    row(one) {
        let row = this.rows.get(one);

        if (!row) {
            row = { bar: h("progress", { max: one.size || 1,
                "aria-label": one.path }), text: h("span") };
            row.node = h("li", {},
                h("span", { class: "upload-name" },
                    plain(one.path)),
                h("span", { class: "soft upload-size" },
                    formatBytes(one.size)), row.text, row.bar);
            this.rows.set(one, row);
        }

        const key = `${one.state} ${one.sent} ${one.note}`;

        if (row.key !== key) {
            row.key = key;
            row.bar.value = one.sent;
            row.bar.hidden = !["sending", "retrying"].includes(one.state);
            row.text.className = `upload-state ${one.state}`;
            row.text.textContent = describe(one);
        }

        return row.node;
    }
}


function describe(one) {
    if (one.state === "sending" && one.size) {
        return one.sent >= one.size ? "Finishing"
            : `${Math.floor(100 * one.sent / one.size)} %`;
    }

    return STATES[one.state] + (one.note
        ? (one.state === "failed" ? ": " : " ") + one.note : "");
}


const files = (n) => (n === 1 ? "1 file" : `${formatNumber(n)} files`);


const sentence = (text) => text[0].toUpperCase() + text.slice(1)
    + (/[.!?]$/.test(text) ? "" : ".");


function left(seconds) {
    if (seconds < 60) {
        return `${Math.ceil(seconds)} s left`;
    }

    if (seconds < 5400) {
        return `${Math.ceil(seconds / 60)} min left`;
    }

    return `${(seconds / 3600).toFixed(1)} h left`;
}
