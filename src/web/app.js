/*
 * Chooses the page for the URL, and shows it between header and footer.
 *
 * A page is a module in page/ that exports show(route, signal), which returns
 * { title, body }, or a promise of them.  It may throw ApiError: the router
 * shows what happened.  The signal is aborted when the caller leaves the page.
 *
 * Links inside the Hub do not load a new document: the router listens for
 * clicks, and changes the history of the browser.
 */

import { root, token } from "./api.js";
import { fill, h, icon, later, notice } from "./dom.js";
import { header } from "./page/header.js";
import { openFiles } from "./worker.js";

const KINDS = ["models", "datasets", "spaces", "buckets"];
const main = document.getElementById("main");

let leave = new AbortController();
let shown = "";                        /* path and arguments of the page */


/*
 * Splits the path of a page: { page, kind, repo, owner, rev, path, args }.
 * Segments are decoded one by one, since a revision may contain "%2F".
 */

export function parse(url) {
    const words = url.pathname.slice(root.length).split("/").filter(Boolean)
        .map(decode);
    const args = url.searchParams;

    if (words.length === 0) {
        return { page: "home", args };
    }

    const typed = KINDS.includes(words[0]);
    const kind = typed ? words.shift() : "models";

    if (words.length === 0) {
        return { page: "home", kind, args };
    }

    if (words.length === 1) {
        return { page: "owner", owner: words[0], args,
            kind: typed ? kind : undefined };
    }

    const repo = { kind, id: `${words[0]}/${words[1]}` };
    const verb = words[2] || "";
    const rest = words.slice(3);
    const rev = kind === "buckets" ? "" : rest.shift() || "main";

    return { page: { "": "repo", tree: "tree", blob: "file",
        commits: "commits", commit: "commit", compare: "compare",
        settings: "settings",
        upload: "upload", edit: "edit" }[verb] || "none",
        repo, rev, path: rest.join("/"), args };
}


function decode(word) {
    try {
        return decodeURIComponent(word);

    } catch {
        return word;
    }
}


/* Goes to a page of the Hub, or shows the same page anew. */

export function go(url, replace = false) {
    history[replace ? "replaceState" : "pushState"](null, "", url);
    return render();
}


export async function render() {
    const route = parse(new URL(location.href));

    shown = location.pathname + location.search;
    leave.abort();
    leave = new AbortController();

    const { signal } = leave;

    fill(document.getElementById("header"), header(route, { go }));
    fill(main, later(new Promise(() => {})));

    try {
        const page = await import(`./page/${route.page}.js`);
        const { title, body } = await page.show(route, signal, { go, render });

        if (signal.aborted) {
            return;
        }

        document.title = `${title} – ${location.hostname}`;
        fill(main, body);
        scrollTo(0, 0);
        focusTarget();

    } catch (error) {
        if (signal.aborted || error.name === "AbortError") {
            return;
        }

        document.title = location.hostname;
        fill(main, failure(error, route));
    }
}


/* Scrolls to the element that the URL names, as a browser does by itself. */

function focusTarget() {
    const name = decode(location.hash.slice(1));

    if (name) {
        document.getElementById(name)?.scrollIntoView();

    } else if (main.dataset.seen) {
        main.focus({ preventScroll: true });
    }

    main.dataset.seen = "yes";
}


function failure(error, route) {
    const texts = {
        401: ["Sign in", token() ? "Your token is no longer valid."
            : "This server asks for a token."],
        403: ["Not allowed", error.message],
        404: ["Not found", route.repo
            ? "There is no such page, or you may not see it."
            : "There is no such page."],
        0: ["Out of reach", error.message],
        503: ["Not now", "The server is busy. Try again in a moment."]
    };
    const [title, text] = texts[error.status]
        || ["That did not work", error.message];

    return h("div", { class: "empty" }, h("h1", {}, title), h("p", {}, text),
        (error.status === 401 || (!token()
            && [403, 404].includes(error.status))) && h("p", {},
            "Private repos are shown to those who are signed in. ",
            h("button", { class: "main", onclick: () =>
                document.getElementById("sign-in")?.click() }, "Sign in")),
        (error.status === 0 || error.status >= 500)
            && h("button", { class: "plain", onclick: render }, "Try again"));
}


/* --- the browser ---------------------------------------------------------- */

document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");

    if (!link || event.defaultPrevented || event.button !== 0
        || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey
        || link.target || link.hasAttribute("download"))
    {
        return;
    }

    const url = new URL(link.href);

    if (url.origin !== location.origin
        || !url.pathname.startsWith(`${root}/`) || isFile(url)
        || (url.hash && url.pathname === location.pathname
            && url.search === location.search))
    {
        return;
    }

    event.preventDefault();
    go(url.href);
});

addEventListener("popstate", () => {
    if (shown !== location.pathname + location.search) {
        render();
    }
});


/* Files and the API are not pages. */

function isFile(url) {
    const path = url.pathname.slice(root.length);

    return /^\/(api|cas|-)\//.test(path)
        || /\/(resolve|raw)\//.test(path);
}


fill(document.getElementById("footer"), h("p", { class: "soft" },
    icon("bucket"), " A Xet storage server. ",
    h("a", { href: `${root}/` }, "All repos")));

openFiles();

render().catch((error) => fill(main, notice("bad", error.message)));
