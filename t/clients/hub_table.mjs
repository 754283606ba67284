// Runs the rows of hub_rows.mjs in Node.
//
//     node hub_table.mjs NPM repos|buckets|refused HUB TOKEN FOLDER [TOKEN]

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { rows } from "./hub_rows.mjs";

const [npm, command, hubUrl, accessToken, folder, other]
    = process.argv.slice(2);

const require = createRequire(pathToFileURL(npm + "/package.json"));
const hub = await import(pathToFileURL(require.resolve("@huggingface/hub")));

function tell(line) {
    process.stdout.write(JSON.stringify(line) + "\n");
}

await rows(hub, command, { tell, hubUrl, accessToken, folder, other });

// Exits explicitly, see hub_ops.mjs.

process.stdout.write("", () => process.exit(0));
