/*
 * The repos of an owner: of every kind, or of one kind.
 */

import { root } from "../api.js";
import { copyButton, h, icon } from "../dom.js";
import { KINDS, browser, newButton } from "../list.js";


export async function show(route, signal, { go }) {
    const { args, owner } = route;
    const kind = Object.hasOwn(KINDS, args.get("kind") || "")
        ? args.get("kind") : "";
    const kinds = kind ? [kind] : Object.keys(KINDS);
    const name = encodeURIComponent(owner);
    const tab = (one, text) => h("a", {
        href: `${root}/${name}${one ? `?kind=${one}` : ""}`,
        "aria-current": kind === one && "page" },
        one && icon(KINDS[one].icon), text);

    return { title: owner, body: h("div", {},
        h("div", { class: "row head-row" },
            h("h1", {}, icon("user"), " ", owner),
            copyButton(owner, "Copy the name"), h("div", { class: "grow" }),
            newButton(go, kind || undefined)),
        h("nav", { class: "tabs", "aria-label": "Kinds of repos" },
            tab("", "All"), Object.entries(KINDS).map(([one, { title }]) =>
                tab(one, title))),
        await browser({ args, signal, kinds, owner, go })) };
}
