/*
 * Says which viewer a file gets, by its name and its first bytes, and decodes
 * text.
 */

const ENDINGS = new Map(Object.entries({
    safetensors: "safetensors", gguf: "gguf", zt: "ztensor",
    parquet: "parquet", ipynb: "notebook", md: "markdown",
    markdown: "markdown", json: "json", geojson: "json", webmanifest: "json",
    jsonl: "jsonl", ndjson: "jsonl", csv: "csv", tsv: "tsv", tab: "tsv",
    png: "image", jpg: "image", jpeg: "image", gif: "image", webp: "image",
    avif: "image", svg: "image", bmp: "image", ico: "image",
    wav: "audio", mp3: "audio", ogg: "audio", oga: "audio", opus: "audio",
    flac: "audio", m4a: "audio", aac: "audio",
    mp4: "video", webm: "video", mov: "video", ogv: "video", m4v: "video",
    mkv: "video", pdf: "pdf"
}));

/* Viewers of text: a file with other bytes is shown as binary. */

const TEXTS = ["notebook", "markdown", "json", "jsonl", "csv", "tsv"];


export function ending(name) {
    const at = name.lastIndexOf(".");

    return at > 0 ? name.slice(at + 1).toLowerCase() : "";
}


/*
 * Returns the encoding of a text, or null for other bytes.  A text may be cut
 * inside of a letter at the end.
 */

export function encodingOf(bytes) {
    if (bytes[0] === 0xff && bytes[1] === 0xfe) {
        return "utf-16le";
    }

    if (bytes[0] === 0xfe && bytes[1] === 0xff) {
        return "utf-16be";
    }

    let odd = 0;

    for (const byte of bytes) {
        if (byte === 0) {
            return null;
        }

        odd += byte < 32 && !(byte >= 7 && byte <= 13) && byte !== 27;
    }

    if (odd > bytes.length / 100) {
        return null;
    }

    try {
        new TextDecoder("utf-8", { fatal: true }).decode(bytes,
            { stream: true });
        return "utf-8";

    } catch {
        return looksWestern(bytes) ? "windows-1252" : null;
    }
}


/* A text in an old encoding has few letters beyond ASCII. */

function looksWestern(bytes) {
    let high = 0;

    for (const byte of bytes) {
        high += byte > 127;
    }

    return high < bytes.length * .3;
}


export function kindOf(name, bytes) {
    const magic = String.fromCharCode(...bytes.subarray(0, 8));

    if (magic.startsWith("GGUF")) {
        return "gguf";
    }

    if (magic.startsWith("PAR1")) {
        return "parquet";
    }

    if (/^ZTEN\d{4}/.test(magic) || magic === "\x89ZT2\r\n\x1a\n") {
        return "ztensor";
    }

    const kind = ENDINGS.get(ending(name));
    const text = encodingOf(bytes) !== null;

    if (kind && (!TEXTS.includes(kind) || text)) {
        return kind;
    }

    return text ? "text" : "binary";
}
