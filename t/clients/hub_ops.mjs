// Runs operations of the real @huggingface/hub on a Hub, for the tests.
//
//     node hub_ops.mjs NPM HUB REPO COMMAND ARGUMENT...
//
// The commands are in hub_lib.mjs.  Prints one line of JSON.  On SIGTERM, which
// tests send to a command that takes too long, it prints its open requests.

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

const began = Date.now();
const started = [];
let state = "at work";

process.on("SIGTERM", () => {
    console.error(`${command}: ${state} after ${Date.now() - began} ms, open: `
        + process.getActiveResourcesInfo().join(" "));

    for (const r of started) {
        console.error(`${r.at - began} ms: ${r.method} ${r.path} `
            + (r.status ?? "no answer"));
    }

    process.exit(124);
});

const run = operations(hub, hubUrl, repo, readFileSync, digest, started);

const answer = await run[command](...args);

// Exits explicitly: in @huggingface/hub 2.17, a download whose stream is not
// read until "done" leaves a timer, and Node would never exit.

state = "done";
process.stdout.write(JSON.stringify(answer) + "\n", () => process.exit(0));
