/*
 * Shows images, plays audio and video, and offers a PDF for download.
 *
 * The browser loads the file by its URL, in parts as it needs them.  Where the
 * service worker cannot add the token, and for SVG, whose type must be right,
 * the file is loaded into memory.  SVG is only shown as <img>, where it runs
 * no scripts.
 */

import { bytes, fileUrl } from "../api.js";
import { fill, formatBytes, h } from "../dom.js";
import { ending } from "../parse/kind.js";
import { works } from "../worker.js";
import { frame } from "./parts.js";

const LIMIT = 64 * 1024 * 1024;
const TYPES = { svg: "image/svg+xml", png: "image/png", jpg: "image/jpeg",
    jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp",
    avif: "image/avif", bmp: "image/bmp", ico: "image/x-icon",
    mp3: "audio/mpeg", wav: "audio/wav", ogg: "audio/ogg", oga: "audio/ogg",
    opus: "audio/ogg", flac: "audio/flac", m4a: "audio/mp4",
    aac: "audio/aac", mp4: "video/mp4", m4v: "video/mp4",
    webm: "video/webm", ogv: "video/ogg", mov: "video/quicktime",
    mkv: "video/x-matroska" };


export async function view(file, kind) {
    if (kind === "pdf") {
        return frame("PDF", null, message("A PDF is not shown here, since it "
            + "may contain programs. Download it to read it.", file));
    }

    const type = TYPES[ending(file.name)];
    const direct = works() && type !== TYPES.svg;

    if (!direct && file.size > LIMIT) {
        return frame(title(kind), null, message("This file is too large to "
            + "be shown without a service worker.", file));
    }

    const url = direct ? fileUrl(file.repo, file.rev, file.path)
        : await blobUrl(file, type);

    return kind === "image" ? image(file, url) : player(file, kind, url);
}


const title = (kind) => ({ image: "Image", audio: "Audio",
    video: "Video" }[kind]);


function message(text, file) {
    return h("div", { class: "empty" }, h("p", {}, text),
        h("a", { class: "button main", download: file.name,
            href: fileUrl(file.repo, file.rev, file.path, true) },
        "Download"));
}


/* The URL is valid until the caller leaves the page. */

async function blobUrl(file, type) {
    const data = await bytes(file.repo, file.at, file.path, undefined,
        undefined, file.signal);
    const url = URL.createObjectURL(new Blob([data], { type }));

    file.signal.addEventListener("abort", () => URL.revokeObjectURL(url));

    return url;
}


function image(file, url) {
    const info = h("span", { class: "soft small" }, formatBytes(file.size));
    const body = h("div", { class: "media" });
    const img = h("img", { src: url, alt: `The image ${file.name}`,
        onload: () => fill(info, img.naturalWidth > 0
            && `${img.naturalWidth} × ${img.naturalHeight} pixels · `,
        formatBytes(file.size)),
        onerror: () => fill(body, message(
            "The browser cannot show this image.", file)) });

    body.append(img);

    return frame("Image", info, body);
}


function player(file, kind, url) {
    const body = h("div", { class: "media" });

    body.append(h(kind, { src: url, controls: true, preload: "metadata",
        "aria-label": file.name, onerror: () => fill(body, message(
            `The browser cannot play this ${kind}.`, file)) }));

    return frame(title(kind), h("span", { class: "soft small" },
        formatBytes(file.size)), body);
}
