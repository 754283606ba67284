// Operations of @huggingface/hub for the tests, in Node (hub_ops.mjs) and in a
// browser (browser.html).
//
//     operations(hub, hubUrl, repo, read, digest)[command](...args)
//
// hub is the package, read(file) returns the bytes of a file, digest(bytes)
// returns their SHA-256 as hex.  All results include the requests, as [method,
// path, status, bytes sent, Range]:
//
//     upload PATH FILE [PATH FILE]...
//     download PATH [START:END]...     SHA-256 of the file and of each range
//     edit PATH START:END:FILE...      replaces the bytes START to END by FILE,
//                                      or removes them if FILE is ""
//
// Each request is added to "started" when it begins; its status is set later.

function size(body) {
    return body?.byteLength ?? body?.size ?? body?.length ?? 0;
}

export function operations(hub, hubUrl, repo, read, digest, started = []) {
    const requests = [];

    async function logged(url, init) {
        const method = init?.method ?? "GET";
        const request = { method, path: new URL(url).pathname,
            at: Date.now() };

        started.push(request);

        const response = await fetch(url, init);

        request.status = response.status;
        requests.push([method, request.path, response.status,
            size(init?.body), new Headers(init?.headers).get("Range")]);

        return response;
    }

    const accessToken = globalThis.process?.env.HUB_TOKEN ?? "hf_test";
    const common = { repo, hubUrl, accessToken, fetch: logged };

    async function blob(file) {
        return new Blob(file ? [await read(file)] : []);
    }

    async function sha256(part) {
        return await digest(new Uint8Array(await part.arrayBuffer()));
    }

    async function find(path) {
        const found = await hub.downloadFile({ ...common, path });

        if (!found) {
            throw new Error(`no ${path}`);
        }

        return found;
    }

    async function upload(...args) {
        const files = [];

        for (let i = 0; i < args.length; i += 2) {
            files.push({ path: args[i], content: await blob(args[i + 1]) });
        }

        await hub.uploadFiles({ ...common, files });

        return { requests };
    }

    async function download(path, ...ranges) {
        const found = await find(path);
        const out = { sha256: await sha256(found), size: found.size,
            ranges: [], requests };

        for (const range of ranges) {
            const [start, end] = range.split(":").map(Number);

            out.ranges.push(await sha256(found.slice(start, end)));
        }

        return out;
    }

    async function edit(path, ...wanted) {
        const edits = [];

        for (const text of wanted) {
            const [start, end, file] = text.split(":");

            edits.push({ start: Number(start), end: Number(end),
                content: await blob(file) });
        }

        await hub.commit({ ...common, title: "edit", operations: [
            { operation: "edit", path, originalContent: await find(path),
                edits },
        ] });

        return { requests };
    }

    return { upload, download, edit };
}
