// Runs XetBlob of the real @huggingface/hub for the tests.
//
//     node hub_blob.mjs NPM ENDPOINT HASH SIZE [START:END]...
//
// Downloads the file in one piece, as a stream, and in slices; prints one line
// of JSON with the SHA-256 of each.  XetBlob needs a Hub's token URL, so this
// script also serves a token route.

import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [npm, endpoint, hash, size, ...ranges] = process.argv.slice(2);

const require = createRequire(pathToFileURL(npm + "/package.json"));
const hub = await import(pathToFileURL(require.resolve("@huggingface/hub")));

const server = createServer((req, res) => {
    res.setHeader("Content-Type", "application/json");
    res.end(JSON.stringify({
        casUrl: endpoint,
        exp: Math.floor(Date.now() / 1000) + 3600,
        accessToken: "none",
    }));
});

await new Promise((done) => server.listen(0, "127.0.0.1", done));

const requests = [];

function blob() {
    return new hub.__internal_XetBlob({
        refreshUrl: `http://127.0.0.1:${server.address().port}/token`,
        hash,
        size: Number(size),
        fetch: async (url, init) => {
            const response = await fetch(url, init);
            requests.push([new URL(url).pathname.split("/").at(-2),
                response.status]);
            return response;
        },
    });
}

function result(bytes) {
    return {
        length: bytes.byteLength,
        sha256: createHash("sha256").update(bytes).digest("hex"),
    };
}

async function stream() {
    const pieces = [];

    for await (const piece of blob().stream()) {
        pieces.push(piece);
    }

    return Buffer.concat(pieces);
}

const out = {
    whole: result(new Uint8Array(await blob().arrayBuffer())),
    stream: result(await stream()),
    slices: [],
};

for (const range of ranges) {
    const [start, end] = range.split(":").map(Number);
    const part = blob().slice(start, end);

    out.slices.push(result(new Uint8Array(await part.arrayBuffer())));
}

out.statuses = [...new Set(requests.map((r) => r[1]))].sort();

// as in hub_ops.mjs: pending timers of the package would keep Node running

process.stdout.write(JSON.stringify(out) + "\n", () => process.exit(0));
