/*
 * Reads the files that a caller has chosen or dropped, with their folders.
 *
 * Both functions return { files: [{ file, path }], skipped }.  Paths begin with
 * the name of a chosen folder.  The folder .git, and the cache of clients, are
 * skipped, as clients do.
 */

const MOST = 100000;


export function fromInput(input) {
    return sorted(Array.from(input.files, (file) =>
        ({ file, path: file.webkitRelativePath || file.name })));
}


/* The list of items is valid only until the event ends, so it is read first. */

export async function fromDrop(transfer) {
    const entries = Array.from(transfer.items, (item) =>
        item.webkitGetAsEntry?.()).filter(Boolean);
    const files = [];

    if (entries.length === 0) {
        return sorted(Array.from(transfer.files, (file) =>
            ({ file, path: file.name })));
    }

    for (const entry of entries) {
        await walk(entry, files);
    }

    return sorted(files);
}


async function walk(entry, files) {
    const path = entry.fullPath.replace(/^\/+/, "");

    if (files.length > MOST || unwanted(path)) {
        return;
    }

    if (entry.isFile) {
        files.push({ path, file: await new Promise((resolve, reject) =>
            entry.file(resolve, reject)) });
        return;
    }

    const reader = entry.createReader();

    /* the browser returns at most 100 entries at a time */

    for (;;) {
        const some = await new Promise((resolve, reject) =>
            reader.readEntries(resolve, reject));

        if (some.length === 0) {
            return;
        }

        for (const one of some) {
            await walk(one, files);
        }
    }
}


const unwanted = (path) => /(^|\/)(\.git|\.cache\/huggingface)(\/|$)/
    .test(path);


function sorted(all) {
    const files = all.filter((one) => !unwanted(one.path));

    if (files.length > MOST) {
        throw new Error("A commit can have at most 100,000 files. "
            + "Use the command hf upload for more.");
    }

    const { compare } = new Intl.Collator("en", { numeric: true });

    files.sort((a, b) => compare(a.path, b.path));

    return { files, skipped: all.length - files.length };
}


/* Returns what is wrong with the path of a file in a repo, or "". */

export function wrongPath(path) {
    const size = (text) => new TextEncoder().encode(text).length;
    const parts = path.split("/");

    if (!path) {
        return "Enter a file name.";
    }

    if (/[\u0000-\u001f\u007f]/.test(path)) {
        return "A path cannot contain control characters.";
    }

    if (parts.some((part) => ["", ".", ".."].includes(part))) {
        return "A path cannot begin or end with a slash, and cannot contain "
            + "empty parts, “.” or “..”.";
    }

    if (size(path) > 1024 || parts.some((part) => size(part) > 255)) {
        return "A path has at most 1,024 bytes, and each part at most 255.";
    }

    return "";
}
