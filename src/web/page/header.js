/*
 * The header of all pages: the name of the product, the kinds of repos, a
 * field that searches all repos, and who is signed in.
 *
 * The pages of home have a search field of their own, so the header has none
 * there.
 */

import { account } from "../account.js";
import { root } from "../api.js";
import { h, icon } from "../dom.js";

const KINDS = [["models", "Models"], ["datasets", "Datasets"],
    ["spaces", "Spaces"], ["buckets", "Buckets"]];


export function header(route, { go }) {
    const kind = route.kind || route.repo?.kind;
    const link = ([name, text]) => h("a", { href: `${root}/${name}`,
        "aria-current": kind === name && "page" }, text);

    return [h("div", { class: "bar" },
        h("a", { class: "brand", href: `${root}/` },
            h("img", { src: `${root}/-/icon.svg`, alt: "", width: 26,
                height: 26 }), "Xet Hub"),
        h("nav", { class: "kinds", "aria-label": "Kinds of repos" },
            KINDS.map(link)),
        h("div", { class: "grow" }),
        route.page !== "home" && searchForm(go),
        account())];
}


function searchForm(go) {
    const input = h("input", { type: "search", name: "search",
        placeholder: "Search repos", "aria-label": "Search repos",
        autocomplete: "off", spellcheck: "false" });

    return h("form", { class: "find", role: "search", onsubmit: (event) => {
        event.preventDefault();

        const words = input.value.trim();

        go(`${root}/${words ? `?search=${encodeURIComponent(words)}` : ""}`);
    } }, icon("search"), input);
}
