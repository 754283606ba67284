// Drives the real @huggingface/hub through a Hub for the tests.
//
//     node hub_ops.mjs NPM HUB REPO COMMAND ARGUMENT...
//
// Commands are those of hub_lib.mjs; prints one line of JSON.  One that is
// ended by SIGTERM, since it took too long, says what it was waiting for.

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

// Not left to Node: a download whose stream is not read to its last "done"
// keeps a timer in @huggingface/hub 2.17, and the process would never end.

state = "done";
process.stdout.write(JSON.stringify(answer) + "\n", () => process.exit(0));
