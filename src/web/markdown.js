/*
 * Renders Markdown of a repo: "marked" makes HTML of it, DOMPurify removes
 * what could act, and then links and images are changed to those of this Hub.
 * Without these libraries the text is shown as it is.
 *
 * Images of other servers would tell those servers who reads the page, and the
 * Content-Security-Policy blocks them: a link replaces each.
 */

import { apiPath, encodeRev, fileUrl, filePath, pageUrl, request, root }
    from "./api.js";
import { h, later } from "./dom.js";
import { load } from "./lib.js";
import { works } from "./worker.js";

const CLEAN = {
    RETURN_DOM_FRAGMENT: true, USE_PROFILES: { html: true },
    FORBID_TAGS: ["form", "button", "select", "textarea", "option", "style",
        "iframe", "object", "embed", "dialog", "meta", "link", "base",
        "source", "track", "area", "map", "fieldset", "label", "slot",
        "template"],
    FORBID_ATTR: ["style", "id", "name", "class", "srcset", "action",
        "formaction", "target", "background", "poster", "autoplay", "for",
        "tabindex", "accesskey", "contenteditable", "role"],
    ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false
};

/* Images are loaded into memory up to this size, where that is necessary. */

const IMAGE_MAX = 8 << 20;

/* So many links are looked up, to know whether they mean a folder. */

const LINKS_MAX = 100;


/* Takes the metadata from the beginning of a README. */

export function withoutFrontMatter(text) {
    const end = /^---[ \t]*\r?$/gm;

    if (!/^\ufeff?---[ \t]*\r?\n/.test(text)) {
        return text;
    }

    end.lastIndex = text.indexOf("\n") + 1;

    return end.exec(text) ? text.slice(end.lastIndex).replace(/^\r?\n/, "")
        : text;
}


/*
 * Returns a node with the text rendered.  "dir" is the folder of the text in
 * the repo, "" at the top.
 */

export async function markdown(text, { repo, rev, dir = "", signal }) {
    const [marked, purify] = await Promise.all([load("marked"),
        load("purify")]);

    if (!marked || !purify?.isSupported) {
        return h("pre", { class: "markdown-text" }, text);
    }

    const body = clean(purify, marked.parse(text, { gfm: true,
        headerIds: false, mangle: false }));
    const place = { repo, rev, dir, signal, body, lookUp: [] };

    headings(place);
    links(place);
    media(place);
    boxes(place);
    await folders(place);

    return h("div", { class: "markdown" }, body);
}


/*
 * Returns the nodes of HTML that are safe, in a document that loads no images.
 * They are never made text again, so nothing can change their meaning.
 *
 * DOMPurify 2.4.1 of Debian 12 (deb12u1) reads a variable "shadowNode" that a
 * backport declared in another function, and throws.  The test there repeats
 * one that each node passes, so any node of depth 1 will do for it.
 */

function clean(purify, html) {
    try {
        return purify.sanitize(html, CLEAN);

    } catch (error) {
        if (!(error instanceof ReferenceError)) {
            throw error;
        }
    }

    window.shadowNode = { __depth: 1 };

    try {
        return purify.sanitize(html, CLEAN);

    } finally {
        delete window.shadowNode;
    }
}


/* --- parts of the text ---------------------------------------------------- */

/* Headings get ids, with a prefix, so that no text takes an id of the page. */

function headings({ body }) {
    const seen = new Map();

    for (const node of body.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
        const slug = node.textContent.trim().toLowerCase()
            .replace(/[^\p{L}\p{N}\p{M} _-]/gu, "").replaceAll(" ", "-");
        const count = seen.get(slug) || 0;

        seen.set(slug, count + 1);
        node.id = `h-${slug}${count ? `-${count}` : ""}`;
    }
}


function links(place) {
    for (const node of place.body.querySelectorAll("a")) {
        const href = node.getAttribute("href");

        if (href !== null) {
            const to = target(place, href);

            if (to.href) {
                node.setAttribute("href", to.href);

            } else {
                node.removeAttribute("href");
            }

            if (to.out) {
                node.rel = "noreferrer noopener";
                node.target = "_blank";
            }

            if (to.path && !to.folder) {
                place.lookUp.push({ node, ...to });
            }
        }
    }
}


/*
 * Returns what an address in the text means: { href, out, path, folder }.
 * out: another server; path: a file or folder of the repo.
 */

function target({ repo, rev, dir }, text) {
    const address = text.trim();

    if (address.startsWith("#")) {
        return { href: `#h-${decode(address.slice(1)).toLowerCase()}` };
    }

    if (/^(https?:)?\/\//i.test(address) || /^mailto:/i.test(address)) {
        return { href: address, out: true };
    }

    if (/^[a-z][a-z0-9+.-]*:/i.test(address)) {
        return {};
    }

    if (address.startsWith("/")) {
        return { href: root + address };
    }

    const [, plainPath, hash] = /^([^?#]*)(?:\?[^#]*)?(#.*)?$/s.exec(address)
        || [undefined, "", ""];
    const path = join(dir, decode(plainPath));
    const folder = plainPath.endsWith("/") || path === "";

    return { href: pageUrl(repo, folder ? "tree" : "blob", rev, path)
        + (hash ? `#h-${decode(hash.slice(1))}` : ""), path, folder };
}


function decode(text) {
    try {
        return decodeURIComponent(text);

    } catch {
        return text;
    }
}


/* Joins a folder and a relative path; ".." above the repo stays at its top. */

function join(dir, path) {
    const words = dir ? dir.split("/") : [];

    for (const word of path.split("/")) {
        if (word === "..") {
            words.pop();

        } else if (word !== "" && word !== ".") {
            words.push(word);
        }
    }

    return words.join("/");
}


/* Images, sound and video: those of the repo are shown. */

function media(place) {
    for (const node of place.body.querySelectorAll("img, video, audio")) {
        const src = node.getAttribute("src") || "";
        const alt = node.getAttribute("alt") || "";

        if (/^data:image\//i.test(src) && node.localName === "img") {
            continue;
        }

        const to = target(place, src);

        if (!to.path || to.folder) {
            node.replaceWith(instead(node, to, src, alt));
            continue;
        }

        if (node.localName === "img") {
            node.alt = alt || nameOf(to.path);
            node.loading = "lazy";
            node.decoding = "async";

        } else {
            node.controls = true;
            node.preload = "none";
        }

        if (works()) {
            node.src = fileUrl(place.repo, place.rev, to.path);

        } else {
            node.removeAttribute("src");
            fromMemory(node, place, to.path);
        }
    }
}


const nameOf = (path) => path.split("/").pop();


/* What is shown instead of an image of another server. */

function instead(node, to, src, alt) {
    const text = alt || decode(src.split(/[?#]/)[0].split("/").pop())
        || "image";

    if (node.closest("a") || !to.out) {
        return document.createTextNode(text);
    }

    return h("a", { href: to.href, rel: "noreferrer noopener",
        target: "_blank", title: "An image of another server" }, text);
}


/* Loads a file with the caller's token, for a browser that cannot. */

async function fromMemory(node, { repo, rev, signal }, path) {
    const types = { svg: "image/svg+xml", png: "image/png", gif: "image/gif",
        jpg: "image/jpeg", jpeg: "image/jpeg", webp: "image/webp",
        avif: "image/avif", mp4: "video/mp4", webm: "video/webm",
        mp3: "audio/mpeg", wav: "audio/wav", ogg: "audio/ogg" };
    const type = types[path.split(".").pop().toLowerCase()];

    try {
        const response = await request("GET", filePath(repo, rev, path),
            { signal });

        if (Number(response.headers.get("Content-Length")) > IMAGE_MAX) {
            await response.body?.cancel();
            return;
        }

        node.src = URL.createObjectURL(new Blob(
            [await response.arrayBuffer()], { type }));

    } catch {
        /* the text of "alt" is shown */
    }
}


/* Wide tables scroll by themselves; boxes to tick become signs. */

function boxes({ body }) {
    for (const node of body.querySelectorAll("table")) {
        const around = h("div", { class: "scroll", tabindex: 0 });

        node.replaceWith(around);
        around.append(node);
    }

    for (const node of body.querySelectorAll("input")) {
        node.replaceWith(node.type === "checkbox"
            ? node.hasAttribute("checked") ? "☑ " : "☐ " : "");
    }
}


/* Links whose name does not look like a file's may mean folders: ask. */

async function folders({ repo, rev, signal, lookUp }) {
    const open = lookUp.filter((one) => !/\.[^./]+$/.test(one.path))
        .slice(0, LINKS_MAX);

    if (open.length === 0) {
        return;
    }

    try {
        const rows = await (await request("POST", apiPath(repo, "/paths-info"
            + (repo.kind === "buckets" ? "" : `/${encodeRev(rev)}`)),
        { body: { paths: [...new Set(open.map((one) => one.path))] },
            signal })).json();
        const names = new Set(rows.filter((row) => row.type === "directory")
            .map((row) => row.path));

        for (const { node, path } of open) {
            if (names.has(path)) {
                node.href = pageUrl(repo, "tree", rev, path);
            }
        }

    } catch (error) {
        if (error.name === "AbortError") {
            throw error;
        }
    }
}


/*
 * Returns a panel with the name of a README and its text, a promise of nodes.
 * The heading that the URL names is there later than the page, so it is
 * scrolled to here.
 */

export function readmePanel(name, text) {
    const node = later(text, 5);

    text.then(() => setTimeout(() => {
        const id = decode(location.hash.slice(1));

        if (id.startsWith("h-")) {
            node.querySelector(`#${CSS.escape(id)}`)?.scrollIntoView();
        }
    }), () => {});

    return h("section", { class: "readme" },
        h("h2", { class: "readme-name" }, name), h("div", {}, node));
}
