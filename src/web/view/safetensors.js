/*
 * Shows the header of a safetensors file, and the first values of tensors.
 */

import { headerLength, parseHeader } from "../parse/safetensors.js";
import { formatBytes } from "../dom.js";
import { tensorView } from "../tensors.js";
import { frame } from "./parts.js";


export async function view(file) {
    const start = file.size >= 8 ? await file.read(0, 7) : new ArrayBuffer(0);
    const length = headerLength(start, file.size);
    const { metadata, tensors, warnings } = parseHeader(
        await file.read(8, 7 + length), file.size);

    return frame("Safetensors", null, tensorView({ tensors, warnings,
        metadata: [...metadata],
        about: [["Header", formatBytes(length)]],
        read: ({ offset, size }, n) => file.read(offset,
            offset + Math.min(n, size) - 1) }));
}
