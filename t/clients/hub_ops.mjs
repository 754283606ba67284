// Drives the real @huggingface/hub through a Hub for the tests.
//
//     node hub_ops.mjs NPM HUB REPO COMMAND ARGUMENT...
//
// Commands are those of hub_lib.mjs; prints one line of JSON.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { operations } from "./hub_lib.mjs";

const [npm, hubUrl, repo, command, ...args] = process.argv.slice(2);

const require = createRequire(pathToFileURL(npm + "/package.json"));
const hub = await import(pathToFileURL(require.resolve("@huggingface/hub")));

function digest(bytes) {
    return createHash("sha256").update(bytes).digest("hex");
}

const run = operations(hub, hubUrl, repo, readFileSync, digest);

console.log(JSON.stringify(await run[command](...args)));
