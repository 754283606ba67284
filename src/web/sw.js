/*
 * The service worker: adds the header Authorization to requests for files that
 * the browser makes by itself, such as images and downloads.
 *
 * It keeps no token: for each request it asks the page that makes the request,
 * or, for a download, any page of this Hub.  It stores no response.
 */

const root = new URL(self.location.href).pathname.replace(/\/-\/.*$/, "");


self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) =>
    event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
    const { request } = event;
    const url = new URL(request.url);

    if (request.method !== "GET" || url.origin !== self.location.origin
        || !url.pathname.startsWith(`${root}/`)
        || !/\/(resolve|raw)\//.test(url.pathname)
        || request.headers.has("Authorization"))
    {
        return;
    }

    event.respondWith(answer(event));
});


async function answer(event) {
    const { request } = event;
    const token = await ask(event.clientId);

    if (!token) {
        return fetch(request);
    }

    const headers = new Headers(request.headers);

    headers.set("Authorization", `Bearer ${token}`);

    return fetch(request.url, { headers, signal: request.signal,
        credentials: "omit", mode: "same-origin", redirect: "follow",
        cache: "no-store" });
}


/* Asks the pages for the token, one after another; "" after two seconds. */

async function ask(id) {
    const pages = await self.clients.matchAll({ type: "window" });

    pages.sort((a, b) => (b.id === id) - (a.id === id));

    for (const page of pages) {
        const token = await new Promise((resolve) => {
            const { port1, port2 } = new MessageChannel();

            port1.onmessage = (event) => resolve(event.data);
            setTimeout(() => resolve(""), 2000);
            page.postMessage("token", [port2]);
        });

        if (token) {
            return token;
        }
    }

    return "";
}
