/*
 * Registers the service worker, which adds the caller's token to requests that
 * the browser makes by itself: images, videos, downloads.
 *
 * Without a service worker (in a page over plain HTTP that is not localhost),
 * open() loads a file of a private repo into memory.
 */

import { root, token } from "./api.js";
import { scriptUrl } from "./lib.js";

let active = false;


export function openFiles() {
    if (!navigator.serviceWorker) {
        return;
    }

    navigator.serviceWorker.addEventListener("message", (event) => {
        if (event.data === "token") {
            event.ports[0].postMessage(token());
        }
    });

    navigator.serviceWorker.register(scriptUrl("sw"),
        { scope: `${root}/` }).catch(() => {});

    navigator.serviceWorker.ready.then(() => {
        active = Boolean(navigator.serviceWorker.controller);
    });

    navigator.serviceWorker.addEventListener("controllerchange", () => {
        active = true;
    });
}


/* Tells whether a URL of a file may be given to the browser as it is. */

export const works = () => active || !token();
