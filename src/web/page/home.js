/*
 * All repos that the caller may see: of every kind at the top of the Hub, or
 * of one kind, with search.
 */

import { root } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { KINDS, browser, newButton } from "../list.js";


export async function show(route, signal, { go }) {
    const { args, kind } = route;
    const kinds = kind ? [kind] : Object.keys(KINDS);
    const title = kind ? KINDS[kind].title : "Repos";
    const tabs = h("nav", { class: "tabs", "aria-label": "Kinds of repos" });
    const drawTabs = (words) => fill(tabs, [["", "All"],
        ...Object.entries(KINDS).map(([name, one]) => [name, one.title])]
        .map(([name, text]) => h("a", {
            href: `${root}/${name}${words
                ? `?search=${encodeURIComponent(words)}` : ""}`,
            "aria-current": (kind || "") === name && "page" },
            name && icon(KINDS[name].icon), text)));

    drawTabs(args.get("search") || "");

    return { title, body: h("div", {},
        h("div", { class: "row head-row" },
            h("h1", { class: "grow" }, title), newButton(go, kind)),
        tabs,
        await browser({ args, signal, kinds, go, onsearch: drawTabs })) };
}
