/*
 * The page that edits a text file, or creates one.
 *
 * States: a new file, whose path can be entered; an existing file; a file that
 * cannot be edited here (too large, or no text); a conflict, after another
 * commit has changed the file.
 *
 * A textarea knows only line feeds, so the line ends of the file are kept
 * aside, and each line that was not edited gets its own back.
 */

import { bytes, fileUrl, mayWrite, pageUrl, send } from "../api.js";
import { copyButton, field, fill, formatBytes, h, icon, notice }
    from "../dom.js";
import { plain } from "../list.js";
import { ownerOf, readInfo, repoHead } from "../repo_head.js";
import { commitFiles, fileHead, guard } from "../upload_files.js";
import { wrongPath } from "../upload_pick.js";

const LARGEST = 1024 * 1024;
const SINGULAR = { models: "model", datasets: "dataset", spaces: "space" };


export async function show(route, signal, { go }) {
    const { repo, rev, path } = route;
    const bucket = repo.kind === "buckets";
    const [info, allowed] = await Promise.all([readInfo(repo, rev, signal),
        mayWrite(ownerOf(repo))]);
    const top = await repoHead(repo, "tree", info, rev);
    const page = (title, body) => ({ title, body: h("div", {}, top, body) });

    if (!allowed) {
        return page("Edit", notice("bad", "You cannot change this repo. Sign "
            + "in with a token that can write to the name space "
            + `${ownerOf(repo)}.`));
    }

    if (!bucket && /^[0-9a-f]{40}$/i.test(rev)) {
        return page("Edit", notice("info", "You cannot edit a file of an "
            + "earlier commit. ", h("a", { href: pageUrl(repo, "edit", "main",
                path) }, "Edit the file on the branch main")));
    }

    const folder = path === "" || path.endsWith("/");
    const head = folder ? null : await fileHead(repo, rev, path, signal);
    const old = head ? await read(repo, rev, path, head, signal) : "";

    if (old === null) {
        return page(`Edit ${path}`, refuse(route, head));
    }

    const editor = new Editor(route, head, old, go);

    guard(signal, () => editor.changed(),
        "You have not committed your changes. Leave the page without them?");

    return page(head ? `Edit ${path}` : "New file", editor.body);
}


/* Returns the text of a file, or null if it cannot be edited. */

async function read(repo, rev, path, head, signal) {
    if (head.size > LARGEST) {
        return null;
    }

    try {
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
            .decode(await bytes(repo, head.commit || rev, path, undefined,
                undefined, signal));

    } catch (error) {
        if (error instanceof TypeError) {
            return null;
        }

        throw error;
    }
}


function refuse({ repo, rev, path }, head) {
    return h("div", { class: "empty" }, h("h2", {}, plain(path)),
        h("p", {}, head.size > LARGEST
            ? `The file has ${formatBytes(head.size)}; only files of up to `
                + "1 MiB can be edited here. "
            : "The file is not a text in UTF-8. ",
        "Download the file, and upload the new version."),
        h("div", { class: "row upload-choose" },
            h("a", { class: "button", href: fileUrl(repo, rev, path, true) },
                icon("download"), "Download"),
            h("a", { class: "button", href: pageUrl(repo, "upload", rev,
                path.split("/").slice(0, -1).join("/")) }, icon("upload"),
            "Upload")));
}


class Editor {
    constructor({ repo, rev, path }, head, old, go) {
        Object.assign(this, { repo, rev, path, head, old, go });
        this.busy = false;
        this.problem = h("div");
        this.text = h("textarea", { class: "edit-text", spellcheck: "false",
            autocapitalize: "none", autocomplete: "off",
            "aria-label": "Text of the file", "aria-describedby": "edit-keys",
            onkeydown: (event) => this.key(event),
            oninput: () => this.update() });
        this.text.value = old;
        this.start = this.text.value;
        this.name = h("input", { value: path, required: true,
            autocomplete: "off", autocapitalize: "none", spellcheck: "false",
            placeholder: "folder/README.md", oninput: () => this.update() });
        this.title = h("input", { maxlength: 200, autocomplete: "off" });
        this.button = h("button", { class: "main", id: "edit-commit" },
            repo.kind === "buckets" ? "Save" : "Commit");
        this.form = h("form", { onsubmit: (event) => {
            event.preventDefault();
            this.commit();
        } }, this.parts());
        this.body = h("div", { class: "edit" }, this.form);
        this.update();
    }


    parts() {
        const { repo, rev, path, head } = this;

        return [
            h("h2", {}, head ? "Edit " : "New file", head && h("a", {
                href: pageUrl(repo, "blob", rev, path) }, plain(path)),
            repo.kind !== "buckets" && [" on ", icon("branch"), " ",
                plain(rev)]),
            !head && field("Path", this.name),
            h("div", { class: "row edit-bar" },
                h("span", { class: "soft small grow", id: "edit-keys" },
                    "Tab indents. To leave the text by keyboard, press "
                    + "Escape, then Tab."),
                h("label", { class: "row small" }, h("input", {
                    type: "checkbox", onchange: (event) =>
                        this.text.classList.toggle("wrap",
                            event.target.checked) }), "Wrap lines")),
            this.text,
            h("div", { class: "edit-commit panel" },
                repo.kind !== "buckets" && field("Commit message", this.title),
                this.problem,
                h("div", { class: "row end" },
                    h("a", { class: "button", href: head
                        ? pageUrl(repo, "blob", rev, path) : pageUrl(repo) },
                    "Cancel"), this.button))
        ];
    }


    target() {
        return this.head ? this.path
            : this.name.value.trim().replace(/^\/+/, "");
    }


    changed() {
        return !this.busy && this.text.value !== this.start;
    }


    update() {
        const name = this.target().split("/").pop();

        this.title.placeholder = this.head ? `Update ${name}`
            : `Create ${name || "a file"}`;
        this.button.disabled = Boolean(this.head) && !this.changed();
    }


    /* Tab indents, until Escape was pressed. */

    key(event) {
        if (event.key === "Escape") {
            this.leaves = true;
            return;
        }

        if (event.key === "Tab" && !this.leaves && !event.shiftKey
            && !event.ctrlKey && !event.altKey && !event.metaKey)
        {
            event.preventDefault();

            /* the only way that keeps the browser's "undo" */

            if (!document.execCommand("insertText", false, this.indent())) {
                this.text.setRangeText(this.indent(), this.text.selectionStart,
                    this.text.selectionEnd, "end");
            }

            this.update();

        } else if (event.key !== "Tab" && event.key !== "Shift") {
            this.leaves = false;
        }
    }


    indent() {
        const found = /^(\t|  +)\S/m.exec(this.start)?.[1];

        return found === "\t" ? "\t" : found && found.length < 4 ? "  "
                                                                  : "    ";
    }


    async commit() {
        const path = this.target();
        const wrong = wrongPath(path);

        if (wrong) {
            fill(this.problem, notice("bad", wrong));
            return;
        }

        fill(this.problem);
        this.button.disabled = true;

        try {
            const text = withLineEnds(this.old, this.text.value);

            await this.check(path, text);
            await this.send(path, text);

        } catch (error) {
            if (error.status === 412) {
                this.conflict(path);
            } else {
                fill(this.problem, notice("bad", error.message));
            }
        }

        this.busy = false;
        this.button.disabled = false;
    }


    /* The server refuses a README.md with broken metadata. */

    async check(path, text) {
        const { repo } = this;

        if (path === "README.md" && repo.kind !== "buckets") {
            try {
                await send("POST", "/api/validate-yaml",
                    { content: text, repoType: SINGULAR[repo.kind] });

            } catch (error) {
                error.message = "The metadata at the beginning of README.md "
                    + `cannot be read: ${error.message}.`;
                throw error;
            }
        }
    }


    async send(path, text) {
        const { repo, rev, head, go } = this;

        /* a new file must not replace one, and a bucket has no parents */

        if (!head || repo.kind === "buckets") {
            const now = await fileHead(repo, rev, path);

            if ((now?.etag || null) !== (head?.etag || null)) {
                const error = new Error();

                error.status = 412;
                throw error;
            }
        }

        await commitFiles(repo, rev, { title: this.title.value.trim()
                || this.title.placeholder,
            parent: head?.commit,
            files: [{ path, file: new Blob([text]), mtime: Date.now() }] });

        this.busy = true;
        go(pageUrl(repo, "blob", rev, path));
    }


    /* Nothing is written, and the text stays in the page. */

    conflict(path) {
        const { repo, rev } = this;

        fill(this.problem, notice("bad",
            h("p", {}, this.head
                ? "Another commit has changed this file since you opened it. "
                    + "Your text was not committed, and is still above. Copy "
                    + "the text, and put your changes into the new version."
                : "There is a file of this name already. Enter another path, "
                    + "or copy your text, and edit the existing file."),
            h("div", { class: "row" },
                h("span", {}, "Copy your text:"),
                copyButton(this.text.value, "Copy your text"),
                h("a", { target: "_blank", rel: "noopener",
                    href: pageUrl(repo, "blob", rev, path) },
                "Show the new version in another tab"),
                h("a", { href: pageUrl(repo, "edit", rev, path) },
                    "Edit the new version"))));
    }
}


/* --- line ends ------------------------------------------------------------ */

/*
 * Returns the new text with the line ends of the old one.  Lines at the
 * beginning and at the end that are equal keep theirs; the lines in between
 * get the most frequent line end.
 */

export function withLineEnds(old, text) {
    const before = lines(old);
    const after = lines(text);
    const ends = before.filter((one) => one.end).map((one) => one.end);
    const most = ["\n", "\r\n", "\r"].map((end) =>
        [ends.filter((one) => one === end).length, end])
        .reduce((a, b) => (b[0] > a[0] ? b : a))[1];

    const shorter = Math.min(before.length, after.length);
    let first = 0;
    let last = 0;

    while (first < shorter && before[first].text === after[first].text) {
        first++;
    }

    while (last < shorter - first && before.at(-1 - last).text
        === after.at(-1 - last).text)
    {
        last++;
    }

    return after.map((one, i) => {
        const same = i < first ? before[i]
            : i >= after.length - last ? before.at(i - after.length) : null;

        return one.text + (one.end && (same?.end || most));
    }).join("");
}


function lines(text) {
    const found = [];

    for (const [, line, end] of text.matchAll(/([^\r\n]*)(\r\n|\r|\n|$)/g)) {
        found.push({ text: line, end });

        if (!end) {
            break;
        }
    }

    return found;
}
