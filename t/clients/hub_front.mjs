// Copyright (C) the ngx_http_xet_module authors

// The life of a repo, with @huggingface/hub, at one URL of a Hub.  Prints a row
// for each step, in the format of hub_row.py.
//
//     node hub_front.mjs FOLDER REPO NPM HUB TOKEN

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, repo, npm, hubUrl, accessToken] = process.argv.slice(2);

const require = createRequire(pathToFileURL(npm + "/package.json"));
const hub = await import(pathToFileURL(require.resolve("@huggingface/hub")));

const o = { hubUrl, accessToken, repo };
const moved = repo + "-moved";
const big = randomBytes(3000000);

function tell(line) {
    process.stdout.write(JSON.stringify(line) + "\n");
}

async function row(row, work) {
    try {
        const got = await work();

        tell({ row, ok: got !== false, said: String(got) });

    } catch (e) {
        tell({ row, ok: false, said: `${e.statusCode} ${e.stack}` });
    }
}

function same(bytes) {
    return Buffer.compare(Buffer.from(bytes), big) === 0;
}

async function download(xet) {
    const blob = await hub.downloadFile({ ...o, path: "d e/big.bin", xet });

    return same(await blob.arrayBuffer());
}

async function snapshot(name) {
    const path = await hub.snapshotDownload({ ...o,
        cacheDir: `${folder}/${name}` });

    return same(readFileSync(`${path}/d e/big.bin`))
        && existsSync(`${path}/config.json`);
}

// @huggingface/hub has no function for it.

async function move() {
    const response = await fetch(`${hubUrl}/api/repos/move`, {
        method: "POST", body: JSON.stringify({ fromRepo: repo,
            toRepo: moved }),
        headers: { Authorization: `Bearer ${accessToken}`,
            "Content-Type": "application/json" } });

    return response.ok;
}

await row("createRepo", async () =>
    (await hub.createRepo(o)).repoUrl === `${hubUrl}/${repo}`);
await row("uploadFiles: by Xet", () => hub.uploadFiles({ ...o, useXet: true,
    files: [{ path: "d e/big.bin", content: new Blob([big]) },
        { path: "config.json", content: new Blob(["{}"]) }] }));
await row("uploadFiles: by LFS", () => hub.uploadFiles({ ...o, useXet: false,
    files: [{ path: "lfs.bin", content: new Blob([big.slice(9)]) }] }));
await row("downloadFile: by Xet", () => download(true));
await row("downloadFile: without", () => download(false));
await row("snapshotDownload", () => snapshot("1"));
await row("createBranch", () => hub.createBranch({ ...o, branch: "a/b" }));
await row("move", move);
await row("downloadFile: by Xet, by the old name", () => download(true));
await row("downloadFile: by the old name", () => download(false));
await row("snapshotDownload: by the old name", () => snapshot("2"));
await row("deleteRepo", () => hub.deleteRepo({ ...o, repo: moved }));
await row("deleteRepo: it is gone", async () => !await hub.repoExists(o));
tell({ end: true });

// Exits explicitly, see hub_ops.mjs.

process.stdout.write("", () => process.exit(0));
