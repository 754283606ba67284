
/*
 * Compares subtrees and windows with the packages of the reference client.
 *
 *     npm install --prefix DIR @huggingface/xetchunk-wasm@0.2.0 \
 *         @huggingface/hub@2.17.5 esbuild
 *     make tools
 *     node t/oracle/subtree.mjs build/tools/xet_subtree DIR [CASES [SEED]]
 *
 * CASES is 4000 by default.  Needs Node 18 or later.  Prints TAP, and the first
 * differences in full; exits with status 1 if there is any difference.
 *
 * 1. Runs of 0 to 3000 leaves, all flags, hashes with many, few, no or only
 *    natural cuts: the JSON of a subtree is the same as of MerkleHashSubtree,
 *    byte for byte.  This also holds if the run is joined from parts, some of
 *    them single leaves.
 * 2. Windows of simulated files, which have hashes and sizes but no data: the
 *    windows are those of the reference (chunk by chunk, then extended to
 *    terms), and the gaps those of MerkleHashSubtree.  Each clean term has a
 *    verification hash, and gaps and windows merge to the file hash.
 * 3. Edits of real bytes, with the code of @huggingface/hub that plans and
 *    composes edits: it accepts our responses, and composes the same file hash
 *    and verification hashes as for the edited file chunked from the start.
 *    The package does not export this code, so esbuild is needed to load it;
 *    without esbuild, part 3 is skipped.
 */

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import path from 'node:path';

const [tool, dir, cases = '4000', seed = '1'] = process.argv.slice(2);

if (dir === undefined) {
    console.error('usage: subtree.mjs TOOL DIR [CASES [SEED]]');
    process.exit(2);
}

const require = createRequire(path.resolve(dir, 'package.json'));
const xet = require('@huggingface/xetchunk-wasm');

let tests = 0;
let failed = 0;

function ok(cond, name) {
    console.log(`${cond ? 'ok' : 'not ok'} ${++tests} - ${name}`);
    failed += cond ? 0 : 1;
}

function differ(title, got, want) {
    if (differ.n++ < 3) {
        console.log(`# ${title}\n#   got  ${got}\n#   want ${want}`);
    }
}

differ.n = 0;


/* Returns the same numbers in every run: a mixed 32-bit Weyl sequence. */

let state = Number(seed) >>> 0;

function random(n) {
    state = (state + 0x9e3779b9) >>> 0;

    let z = state;

    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);

    return ((z ^ (z >>> 16)) >>> 0) % n;
}

function pick(list) {
    return list[random(list.length)];
}


/* The tool responds to the cases in order, with one line per case. */

const child = spawn(tool, [], { stdio: ['pipe', 'pipe', 'inherit'] });
const waiting = [];

createInterface({ input: child.stdout }).on('line', (line) => {
    waiting.shift()(line);
});

child.on('exit', (code) => {
    if (waiting.length) {
        console.error(`${tool} went away: ${code}`);
        process.exit(2);
    }
});

function ask(lines) {
    return new Promise((resolve) => {
        waiting.push(resolve);
        child.stdin.write(lines.join('\n') + '\n.\n');
    });
}

function leaf(chunk) {
    return `${xet.hashToHex(chunk.hash)} ${chunk.length}`;
}

function sum(chunks) {
    return chunks.reduce((total, chunk) => total + chunk.length, 0);
}


/*
 * Distributions of natural cuts: each function returns whether leaf i is a cut.
 */

const tails = [
    () => random(4) === 0,
    () => random(4) === 0,
    () => random(5) === 0,
    () => random(2) === 0,
    () => random(30) === 0,
    () => random(200) === 0,
    () => true,
    () => false,
    (i) => i % 5 === 0,
    (i) => i % 3 === 0,
    (i) => i % 7 === 0,
    (i) => i % 8 === 0,
    (i) => i % 2 === 0,
    (i) => i % 1000 < 970 ? false : i % 4 === 0,
    (i) => random(300) === 0 ? true : i % 6 === 0,
];

function run(n) {
    const natural = pick(tails);
    const chunks = [];
    const same = random(20) === 0;

    for (let i = 0; i < n; i++) {
        const hash = new Uint8Array(32);

        if (same && i) {
            chunks.push(chunks[0]);
            continue;
        }

        for (let k = 0; k < 32; k++) {
            hash[k] = random(256);
        }

        hash[24] = hash[24] & 0xfc | (natural(i) ? 0 : 1 + random(3));

        chunks.push({ hash, length: 1 + random(131072) });
    }

    return chunks;
}

function length() {
    return random(3) ? random(120) : random(3001);
}


async function subtrees() {
    let wrong = 0;

    for (let i = 0; i < Number(cases); i++) {
        const chunks = run(i < 200 ? i >> 2 : length());
        const [start, end] = [i & 1, i >> 1 & 1];

        const want = JSON.stringify(
            xet.MerkleHashSubtree.fromChunks(!!start, chunks, !!end));

        const got = await ask([`subtree ${start} ${end}`,
                               ...chunks.map(leaf)]);

        if (got !== want) {
            wrong++;
            differ(`case ${i}: ${chunks.length} leaves`, got, want);
        }
    }

    ok(wrong === 0, `${cases} subtrees`);
}


/* Joins parts; only some parts set the flags for the file's start and end. */

async function joins() {
    let wrong = 0, roots = 0;

    for (let i = 0; i < Number(cases); i++) {
        const chunks = run(length());
        const [start, end] = [i & 1, i >> 1 & 1];
        const lines = [`subtree ${start} ${end}`];
        const parts = [];

        let at = random(3) ? 0 : random(chunks.length + 1);
        let flag = at || random(2) ? 0 : start;

        chunks.slice(0, at).forEach((chunk, k) => {
            lines.push(leaf(chunk));
            parts.push([start && k === 0, [chunk], 0]);
        });

        do {
            const last = random(8) === 0;
            const next = last ? chunks.length : Math.min(chunks.length,
                at + pick([0, 1, random(12), random(100), random(1500)]));
            const closed = last && end && random(2);

            lines.push(`/ ${flag} ${closed ? 1 : 0}`,
                       ...chunks.slice(at, next).map(leaf));

            parts.push([at === 0 && start && parts.length === 0,
                        chunks.slice(at, next), last && end]);

            flag = 0;
            at = next;

            if (last) {
                break;
            }
        } while (true);

        const want = JSON.stringify(
            xet.MerkleHashSubtree.fromChunks(!!start, chunks, !!end));

        const got = await ask(lines);

        if (got !== want) {
            wrong++;
            differ(`join ${i}: ${chunks.length} leaves in ${parts.length}`,
                   got, want);
        }

        /* the reference client merges the parts to the same root */

        if (start && end) {
            const root = xet.MerkleHashSubtree.merge(parts.map(
                ([s, list, e]) => xet.MerkleHashSubtree.fromChunks(!!s, list,
                                                                   !!e)));
            const nodes = JSON.parse(got).nodes;

            if (xet.hashToHex(root.finalHash())
                !== (nodes.length ? nodes[0].hash : '0'.repeat(64)))
            {
                roots++;
                differ(`join ${i}: root`, got, JSON.stringify(root));
            }
        }
    }

    ok(wrong === 0, `${cases} subtrees joined from parts`);
    ok(roots === 0, 'roots of the merged parts');
}


/* Groups chunks into terms, and computes the byte boundaries of both. */

function layout(chunks, most) {
    const file = { chunks, terms: [], edges: [0], starts: [0] };

    for (let i = 0; i < chunks.length; ) {
        const n = Math.min(chunks.length - i, 1 + random(most));
        const term = chunks.slice(i, i + n);

        file.terms.push({
            chunks: term,
            start: file.edges.at(-1),
            end: file.edges.at(-1) + sum(term),
            verification: xet.hashToHex(
                xet.verificationHash(term.map((chunk) => chunk.hash))),
        });

        file.edges.push(file.terms.at(-1).end);
        i += n;
    }

    for (const chunk of chunks) {
        file.starts.push(file.starts.at(-1) + chunk.length);
    }

    file.size = file.starts.at(-1);

    return file;
}

function request(file, header, given) {
    const lines = [`windows ${file.size} ${header}`];

    for (const term of file.terms) {
        lines.push(`term ${given ? term.verification : '-'}`);
        lines.push(...term.chunks.map(leaf));
    }

    return ask(lines);
}


/*
 * Computes windows chunk by chunk, as the reference does, then extends them to
 * whole terms.
 */

function windows(file, dirty) {
    const found = [];
    let open = null, before = 0;

    file.chunks.forEach((chunk, i) => {
        const [start, end] = [file.starts[i], file.starts[i + 1]];

        if (dirty.some(([a, b]) => a < end && start < b)) {
            open ??= start;
            before = 0;
            return;
        }

        if (open !== null) {
            const stable = (size) => size >= 16384 && size < 122880;

            if (stable(before) && stable(chunk.length)) {
                found.push([open, end]);
                open = null;
            }

            before = chunk.length;
        }
    });

    if (open !== null) {
        found.push([open, file.size]);
    }

    const merged = [];

    for (const [a, b] of found) {
        const start = file.edges.filter((edge) => edge <= a).at(-1);
        const end = file.edges.find((edge) => edge >= b);

        if (merged.length && start <= merged.at(-1)[1]) {
            merged.at(-1)[1] = Math.max(end, merged.at(-1)[1]);

        } else {
            merged.push([start, end]);
        }
    }

    return merged;
}

function slice(file, start, end) {
    return file.chunks.filter(
        (_, i) => file.starts[i] >= start && file.starts[i] < end);
}

function answer(file, dirty) {
    const list = windows(file, dirty);
    const ranges = [];
    let at = 0;

    for (const [start, end] of [...list, [file.size, file.size]]) {
        const gap = xet.MerkleHashSubtree.fromChunks(
            at === 0, slice(file, at, start), start === file.size);

        ranges.push(gap.isEmpty ? null : gap);
        at = end;
    }

    return JSON.stringify({
        totalChunks: file.chunks.length,
        fileSize: file.size,
        windows: list.map((range) => ({ dirtyByteRange: range })),
        hashRanges: ranges,
        gapVerification: file.terms.filter(
            (term) => !list.some(([a, b]) => a < term.end && term.start < b))
            .map((term) => term.verification),
    });
}

const sizes = [
    () => 16384 + random(122880 - 16384),
    () => 1 + random(131072),
    () => pick([1, 16383, 16384, 65536, 122879, 122880, 131072]),
    () => random(40) ? 131072 : 65536,
];

async function numbers() {
    let wrong = 0, count = 0;

    for (let i = 0; i < Number(cases); i++) {
        const chunks = run(1 + length());
        const size = pick(sizes);

        chunks.forEach((chunk, k) => {
            chunks[k] = { hash: chunk.hash, length: size() };
        });

        const file = layout(chunks, pick([1, 3, 10, 50, 500, 3001]));
        const dirty = [];

        for (let k = 1 + random(pick([1, 2, 5, 40])); k; k--) {
            const start = random(file.size);
            const few = pick([1, 100, 200000, file.size]);
            const range = random(2)
                ? [start, start + 1 + random(few)]
                : [pick(file.edges.slice(0, -1)), pick(file.edges.slice(1))];

            if (range[0] < range[1]) {
                dirty.push(range);
            }
        }

        if (dirty.length === 0) {
            dirty.push([0, 1]);
        }

        const header = 'bytes=' + dirty.map(
            ([a, b]) => `${a}-${b - 1}`).join(',');
        const got = await request(file, header, i & 1);
        const want = answer(file, dirty);

        if (got !== want) {
            wrong++;
            differ(`windows ${i}: ${header}`, got, want);
            continue;
        }

        count += JSON.parse(got).windows.length;
    }

    ok(wrong === 0, `${cases} answers, ${count} windows`);
}


function chunked(bytes) {
    const chunker = xet.createChunker();
    const chunks = [...xet.nextBlock(chunker, bytes)];
    const last = xet.finalize(chunker);

    return last ? [...chunks, last] : chunks;
}

function content(size) {
    const bytes = Buffer.alloc(size);

    for (let at = 0; at < size; ) {
        const end = Math.min(size, at + 1 + random(1 << 20));
        const kind = random(6);

        /* noise, one line many times, or one byte many times */

        const line = 1 + random(5000);

        for (let i = at; i < end; i++) {
            bytes[i] = kind < 4 || (kind === 4 && i < at + line)
                       ? random(256) : kind === 4 ? bytes[i - line] : 0;
        }

        at = end;
    }

    return bytes;
}

function edits(file) {
    const list = [];
    const kind = random(5);

    if (kind === 0) {
        return [{ start: file.size, end: file.size,
                  insert: new Blob([content(1 + random(300000))]) }];
    }

    let at = 0;

    for (let k = 1 + random(4); k && at < file.size; k--) {
        const start = kind === 1 && k === 1 ? at
                      : at + random(file.size - at + 1);
        const end = Math.min(file.size,
                             start + pick([0, 1, 1000, random(400000)]));
        const same = random(3) === 0;

        if (list.length && start === at) {
            continue;
        }

        list.push({ start, end, insert: new Blob([
            content(same ? end - start : pick([0, 1, random(200000)]))]) });

        at = end;
    }

    /* omits edits that neither remove nor insert anything */

    return list.filter((edit) => edit.end > edit.start || edit.insert.size);
}


/* Tests one edit of real bytes with the client's code. */

async function edit(hub, i) {
    const bytes = content(1 + random(3 << 20));
    const file = layout(chunked(bytes), pick([1, 4, 12, 100]));
    const hash = xet.hashToHex(xet.fileHash(file.chunks));
    const original = Object.assign(new Blob([bytes]), { hash, start: 0 });
    const list = edits(file);

    if (list.length === 0) {
        return null;
    }

    const spliced = hub.SplicedBlob.create(original, list);

    const reply = (body) => ({ ok: true, json: async () => JSON.parse(body) });
    let body;

    const fetch = async (url, options) => {
        if (url.startsWith('token')) {
            return reply(JSON.stringify({ accessToken: 't', casUrl: 'cas',
                                          exp: Date.now() }));
        }

        if (url === `cas/v2/reconstructions/${hash}`) {
            return reply(JSON.stringify({ terms: file.terms.map(
                (term, k) => ({ hash: String(k),
                                unpacked_length: term.end - term.start,
                                range: { start: 0,
                                         end: term.chunks.length } })) }));
        }

        body = await request(file, options.headers['X-Range-Dirty'], i & 1);

        return reply(body);
    };

    const plan = await hub.planRangeEdit(spliced, original, {
        fetch, xetParams: { refreshWriteTokenUrl: `token${i}` } });

    const parts = [], pieces = [];

    for (const window of plan.windows) {
        if (window.effectiveEnd !== window.end) {
            throw new Error('a window ends inside a term');
        }

        const blob = new Blob(hub.windowSegments(window, original));
        const chunks = chunked(new Uint8Array(await blob.arrayBuffer()));

        pieces.push(chunks);
        parts.push(chunks.length === 0 ? [] : [{
            xorbId: `new${parts.length}`, indexStart: 0,
            indexEnd: chunks.length, length: sum(chunks),
            rangeHash: xet.hashToHex(
                xet.verificationHash(chunks.map((chunk) => chunk.hash))),
        }]);
    }

    const composed = hub.computeComposedFileHash(plan, pieces.map(
        (chunks) => chunks.map((chunk) => ({
            hash: xet.hashToHex(chunk.hash), length: chunk.length }))));

    const whole = chunked(new Uint8Array(await spliced.arrayBuffer()));
    const want = xet.hashToHex(xet.fileHash(whole));

    /* the terms of the new file, chunk by chunk */

    const terms = hub.composeRepresentation(plan, parts);
    let at = 0;

    for (const term of terms) {
        const end = at + term.indexEnd - term.indexStart;
        const chunks = whole.slice(at, end);

        if (sum(chunks) !== term.length || term.rangeHash !== xet.hashToHex(
            xet.verificationHash(chunks.map((chunk) => chunk.hash))))
        {
            throw new Error(`a term's verification hash: ${body}`);
        }

        at = end;
    }

    if (composed !== want || at !== whole.length) {
        throw new Error(`composed ${composed}, is ${want}: ${body}`);
    }

    return plan.windows.length;
}

async function hubcode() {
    let esbuild;

    try {
        esbuild = require('esbuild');

    } catch {
        console.log(`ok ${++tests} # skip no esbuild`);
        return;
    }

    const utils = path.join(path.resolve(dir),
                            'node_modules/@huggingface/hub/src/utils');

    const built = await esbuild.build({
        stdin: { contents: 'export * from "./rangeEdit";'
                           + 'export * from "./SplicedBlob";',
                 resolveDir: utils, loader: 'ts' },
        bundle: true, write: false, format: 'esm', platform: 'node',
    });

    const hub = await import('data:text/javascript;base64,'
        + Buffer.from(built.outputFiles[0].contents).toString('base64'));

    const n = Math.ceil(Number(cases) / 20);
    let wrong = 0, done = 0, count = 0;

    for (let i = 0; i < n; i++) {
        try {
            const found = await edit(hub, i);

            if (found !== null) {
                done++;
                count += found;
            }

        } catch (e) {
            wrong++;
            differ(`edit ${i}`, e.message, 'no error');
        }
    }

    ok(wrong === 0, `${done} edits by @huggingface/hub, ${count} windows`);
    ok(done > n / 2, 'most of them changed something');
}


await subtrees();
await joins();
await numbers();
await hubcode();

child.stdin.end();

console.log(`1..${tests}`);
process.exit(failed ? 1 : 0);
