/*
 * Loads the libraries of the Debian packages that the pages use, from /-/lib/:
 *
 *   marked.js     global "marked"     Markdown to HTML
 *   purify.js     global "DOMPurify"  HTML without scripts
 *   highlight.js  global "hljs"       colours of source code
 *
 * A page works without a library: Markdown is shown as text, and source code
 * in one colour.  load() then returns undefined.
 */

import { root } from "./api.js";

const GLOBALS = { marked: "marked", purify: "DOMPurify", highlight: "hljs" };
const loaded = new Map();

/* Scripts have fixed URLs: those of GLOBALS, and the service worker. */

const policy = window.trustedTypes?.createPolicy("xet", {
    createScriptURL: url
}) || { createScriptURL: url };


function url(name) {
    if (name === "sw") {
        return `${root}/-/sw.js`;
    }

    if (!Object.hasOwn(GLOBALS, name)) {
        throw new TypeError(`there is no library "${name}"`);
    }

    return `${root}/-/lib/${name}.js`;
}


/* Returns the URL of a script, for the browser's functions that load one. */

export const scriptUrl = (name) => policy.createScriptURL(name);


export function load(name) {
    if (!loaded.has(name)) {
        loaded.set(name, new Promise((resolve) => {
            const script = document.createElement("script");

            script.src = scriptUrl(name);
            script.onload = () => resolve(window[GLOBALS[name]]);
            script.onerror = () => resolve(undefined);
            document.head.append(script);
        }));
    }

    return loaded.get(name);
}
