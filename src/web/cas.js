/*
 * Requests to the Xet storage of this server: how a file is stored, and the
 * tensors of a zTensor file.
 *
 * These routes need a token of the repo, which the Hub issues to those who may
 * read the repo.  It is kept in memory until shortly before it expires.
 */

import { apiPath, ApiError, encodeRev, get, request, root, token }
    from "./api.js";

const tokens = new Map();


/* Returns { path, accessToken }: path is the URL of the storage, as a path. */

async function access({ repo, at, signal }) {
    const rest = "/xet-read-token"
        + (repo.kind === "buckets" ? "" : `/${encodeRev(at)}`);
    const key = apiPath(repo, rest);
    const caller = token();
    const known = tokens.get(key);

    if (known?.caller === caller && known.exp > Date.now() / 1000 + 60) {
        return known;
    }

    const { casUrl, accessToken, exp } = await get(key, undefined, signal);
    const fresh = { path: casPath(casUrl), accessToken, exp, caller };

    tokens.set(key, fresh);

    return fresh;
}


/*
 * Returns a path for request(), which begins at the Hub: a storage beside the
 * Hub is reached by "/..".  The page may be behind a proxy with another port.
 */

function casPath(casUrl) {
    const url = new URL(casUrl, location.origin);

    if (url.hostname !== location.hostname) {
        throw new ApiError(0, "other_origin", "The files of this repo are "
            + `stored by another server: ${url.host}.`);
    }

    const path = url.pathname.replace(/\/$/, "");

    return root && path.startsWith(`${root}/`) ? path.slice(root.length)
        : "/..".repeat(root.split("/").length - 1) + path;
}


/* Sends a GET for a file, below the URL of the storage. */

export async function cas(file, path, options = {}) {
    const { path: base, accessToken } = await access(file);

    return request("GET", base + path, { signal: file.signal, ...options,
        as: accessToken });
}


/* Reads a response of up to so many bytes; the rest is not requested. */

export async function readSome(response, limit) {
    const parts = [];
    const reader = response.body.getReader();
    let size = 0;

    while (size < limit) {
        const { done, value } = await reader.read();

        if (done) {
            break;
        }

        parts.push(value);
        size += value.length;
    }

    await reader.cancel();

    return new Blob(parts).slice(0, limit).arrayBuffer();
}
