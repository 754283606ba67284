/*
 * Requests to the API of this server, with the token of the caller, and the
 * URLs of repos and files.
 *
 * The token is in sessionStorage, for this tab, or in localStorage, for this
 * browser.  It is sent in the header Authorization to this origin only, and is
 * in no URL.  The service worker (sw.js) asks this page for the token when the
 * browser itself requests a file: an image, a video, a download.
 *
 * A repo is { kind: "models" | "datasets" | "spaces" | "buckets", id }.
 */

/* The path of the Hub on this server, "" at the top: /hub/-/api.js is "/hub". */

export const root = new URL(import.meta.url).pathname.replace(/\/-\/.*$/, "");

const KEY = "xet-token";


export class ApiError extends Error {
    constructor(status, code, message) {
        super(message);
        this.status = status;
        this.code = code;
    }
}


/* Reads the token, or "" if the caller is not signed in. */

export function token() {
    return sessionStorage.getItem(KEY) || localStorage.getItem(KEY) || "";
}


/* Keeps the token, in the browser or for this tab only. */

export function keepToken(value, inBrowser) {
    dropToken();
    (inBrowser ? localStorage : sessionStorage).setItem(KEY, value);
}


export function dropToken() {
    sessionStorage.removeItem(KEY);
    localStorage.removeItem(KEY);
    asked = null;
}


/*
 * Sends a request, and returns the Response, whose status is below 400.  The
 * path begins at the Hub ("/api/models"); "query" has values of arguments,
 * where an array repeats one.  A body that is neither a string nor a Blob is
 * sent as JSON.  Throws ApiError; its status is 0 if the server is out of
 * reach.
 */

export async function request(method, path, options = {}) {
    const { query, body, headers = {}, signal, as = token() } = options;
    const url = new URL(root + path, location.origin);

    for (const [name, value] of Object.entries(query || {})) {
        for (const one of [value].flat()) {
            if (one !== undefined && one !== null && one !== "") {
                url.searchParams.append(name, one);
            }
        }
    }

    if (url.origin !== location.origin) {
        throw new ApiError(0, "other_origin", "The URL is of another server.");
    }

    const init = { method, headers: { ...headers }, signal,
        credentials: "same-origin" };

    if (as) {
        init.headers.Authorization = `Bearer ${as}`;
    }

    if (typeof body === "string" || body instanceof Blob) {
        init.body = body;

    } else if (body !== undefined) {
        init.body = JSON.stringify(body);
        init.headers["Content-Type"] = "application/json";
    }

    let response;

    try {
        response = await fetch(url, init);

    } catch (error) {
        if (error.name === "AbortError") {
            throw error;
        }

        throw new ApiError(0, "unreachable",
            "The server is out of reach. Try again later.");
    }

    if (response.status >= 400) {
        throw await refusal(response);
    }

    return response;
}


async function refusal(response) {
    let code = response.headers.get("X-Error-Code") || "";
    let message = response.headers.get("X-Error-Message") || "";

    try {
        const said = await response.json();

        code = said.error?.code || code;
        message = said.error?.message || message
            || (typeof said.error === "string" ? said.error : "");

    } catch {
        /* an error of a proxy, without JSON */
    }

    return new ApiError(response.status, code,
        message || `The server responded with ${response.status}.`);
}


export async function get(path, query, signal) {
    return (await request("GET", path, { query, signal })).json();
}


export async function send(method, path, body, options = {}) {
    const response = await request(method, path, { ...options, body });
    const text = await response.text();

    return text ? JSON.parse(text) : null;
}


/*
 * Reads a list that the server sends in pages.  Returns { rows, next }, where
 * next() reads the next page in the same form, or is null at the end; total is
 * the header X-Total-Count, if there is one.
 */

export async function list(path, query, signal) {
    const response = await request("GET", path, { query, signal });
    const link = response.headers.get("Link") || "";
    const url = /<([^>]+)>;\s*rel="next"/.exec(link)?.[1];
    const total = response.headers.get("X-Total-Count");
    let next = null;

    if (url) {
        const at = new URL(url, location.origin);
        const rest = at.pathname.slice(root.length) + at.search;

        next = () => list(rest, undefined, signal);
    }

    return { rows: await response.json(), next,
        total: total === null ? undefined : Number(total) };
}


/*
 * Returns bytes of a file, from first to last inclusive, as an ArrayBuffer.
 * Both may be undefined: the complete file.  Throws if the server sends more
 * than was asked for.
 */

export async function bytes(repo, rev, path, first, last, signal) {
    const headers = first === undefined ? {}
        : { Range: `bytes=${first}-${last}` };
    const response = await request("GET", filePath(repo, rev, path),
        { headers, signal });

    if (first !== undefined && response.status !== 206) {
        await response.body?.cancel();
        throw new ApiError(response.status, "no_range",
            "The server does not send parts of this file.");
    }

    return response.arrayBuffer();
}


let asked = null;

/* Asks who the caller is: the answer of whoami-v2, or null. */

export function whoami() {
    asked ||= request("GET", "/api/whoami-v2").then((r) => r.json())
        .catch((error) => {
            if (error.status === 401 || error.status === 403) {
                return null;
            }

            asked = null;
            throw error;
        });

    return asked;
}


/* Tells whether the caller may change the repos of an owner. */

export async function mayWrite(owner) {
    const who = await whoami();
    const name = owner.toLowerCase();

    return Boolean(who) && who.auth?.accessToken?.role !== "read"
        && (who.name.toLowerCase() === name
            || who.orgs.some((org) => org.name.toLowerCase() === name));
}


/* --- URLs ----------------------------------------------------------------- */

export const encodeRev = (rev) => encodeURIComponent(rev);

export const encodePath = (path) =>
    path.split("/").map(encodeURIComponent).join("/");


/* The path of a repo in the API, and below it. */

export function apiPath(repo, rest = "") {
    return `/api/${repo.kind}/${encodePath(repo.id)}${rest}`;
}


/* The path of a repo's page from the top of the Hub, as in URLs of the API. */

function pagePath(repo) {
    return (repo.kind === "models" ? "/" : `/${repo.kind}/`)
        + encodePath(repo.id);
}


/*
 * The URL of a page of a repo: verb is "", "tree", "blob", "commits",
 * "commit", "compare", "settings", "upload", or "edit".  Buckets have no
 * revisions.
 */

export function pageUrl(repo, verb = "", rev = "", path = "") {
    return root + pagePath(repo) + (verb ? `/${verb}` : "")
        + (verb && rev && repo.kind !== "buckets" ? `/${encodeRev(rev)}` : "")
        + (path ? `/${encodePath(path)}` : "");
}


/* The path of a file's bytes, for request(). */

export function filePath(repo, rev, path) {
    return pagePath(repo) + "/resolve"
        + (repo.kind === "buckets" ? "" : `/${encodeRev(rev)}`)
        + `/${encodePath(path)}`;
}


/* The URL of a file's bytes; a download if asked for. */

export function fileUrl(repo, rev, path, download = false) {
    return root + filePath(repo, rev, path) + (download ? "?download=true"
                                                        : "");
}
