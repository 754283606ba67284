/*
 * The head of all pages of a repo: its name, whether it is private, and the
 * tabs.  Also what these pages share: the description of the repo, and the
 * choice of a branch or tag.
 */

import { apiPath, encodeRev, get, mayWrite, pageUrl, root } from "./api.js";
import { copyButton, h, icon } from "./dom.js";
import { KINDS, plain, privateMark } from "./list.js";

/* Without "siblings": a repo may have 500,000 files. */

const FIELDS = ["author", "cardData", "createdAt", "lastModified", "private",
    "sha", "tags", "usedStorage"];
const FIELDS_OF = { models: ["pipeline_tag", "library_name"], datasets: [],
    spaces: ["sdk"] };


/* Reads the description of a repo, at a revision, without its files. */

export function readInfo(repo, rev, signal) {
    if (repo.kind === "buckets") {
        return get(apiPath(repo), undefined, signal);
    }

    return get(apiPath(repo, rev && rev !== "main"
        ? `/revision/${encodeRev(rev)}` : ""),
        { expand: [...FIELDS, ...FIELDS_OF[repo.kind]] }, signal);
}


/* Tells whether the caller may change the repo; false if that is unknown. */

export function mayChange(repo) {
    return mayWrite(ownerOf(repo)).catch(() => false);
}


export const ownerOf = (repo) => repo.id.split("/")[0];

export const nameOf = (repo) => repo.id.split("/").slice(1).join("/");

/* The value of "repo_type" in clients. */

export const typeOf = (repo) => KINDS[repo.kind].one;

const COMMIT = /^[0-9a-f]{40}$/i;

export const isCommit = (rev) => COMMIT.test(rev);

export const shortRev = (rev) => (isCommit(rev) ? rev.slice(0, 8) : rev);


/* Returns the head.  "tab" is "card", "tree", "commits" or "settings". */

export async function repoHead(repo, tab, info, rev = "main") {
    const owner = ownerOf(repo);
    const kind = KINDS[repo.kind];
    const bucket = repo.kind === "buckets";
    const at = rev || "main";
    const tabs = [!bucket && ["card", "Card", "file", pageUrl(repo)],
        ["tree", "Files", "folder", bucket ? pageUrl(repo)
            : pageUrl(repo, "tree", at)],
        !bucket && ["commits", "History", "history",
            pageUrl(repo, "commits", at)],
        await mayChange(repo) && ["settings", "Settings", "gear",
            pageUrl(repo, "settings")]].filter(Boolean);

    return h("div", { class: "repo-head" },
        h("p", { class: "soft small" }, icon(kind.icon), " ",
            h("a", { href: `${root}/${repo.kind}` }, kind.title)),
        h("div", { class: "row" }, h("h1", {},
            h("a", { href: `${root}/${encodeURIComponent(owner)}` }, owner),
            h("span", { class: "soft" }, "/"),
            h("a", { href: pageUrl(repo) }, nameOf(repo))),
        copyButton(repo.id, "Copy the name"),
        info?.private && privateMark()),
        h("nav", { class: "tabs", "aria-label": "Pages of this repo" },
            tabs.map(([name, text, symbol, href]) => h("a", { href,
                "aria-current": name === tab && "page" },
                icon(symbol), text))));
}


/*
 * Returns a <select> of branches and tags, as refs() of the API has them.
 * onpick(rev) is called with the choice.
 */

export function revSelect(refs, rev, onpick) {
    const known = [...refs.branches, ...refs.tags];
    const option = (one) => h("option", { value: one.name,
        selected: one.name === rev }, plain(one.name));
    const group = (label, rows) => rows.length > 0
        && h("optgroup", { label }, rows.map(option));
    const other = !known.some((one) => one.name === rev)
        && h("option", { value: rev, selected: true },
            isCommit(rev) ? `Commit ${shortRev(rev)}` : plain(rev));
    const select = h("select", { "aria-label": "Branch or tag",
        onchange: () => onpick(select.value) }, other,
        group("Branches", refs.branches), group("Tags", refs.tags));

    return h("span", { class: "rev" }, icon(refs.tags.some((one) =>
        one.name === rev) ? "tag" : "branch"), select);
}


export function readRefs(repo, signal) {
    return get(apiPath(repo, "/refs"), undefined, signal);
}


/* The path of a file or folder as links to its folders, after the repo. */

export function crumbs(repo, rev, path) {
    const words = path ? path.split("/") : [];
    const top = repo.kind === "buckets" ? pageUrl(repo)
        : pageUrl(repo, "tree", rev);

    return h("nav", { class: "crumbs", "aria-label": "Folders" },
        words.length ? h("a", { href: top }, nameOf(repo))
            : h("strong", {}, nameOf(repo)),
        words.map((word, i) => [h("span", { class: "soft" }, "/"),
            i === words.length - 1
                ? h("strong", { "aria-current": "page" }, plain(word))
                : h("a", { href: pageUrl(repo, "tree", rev,
                    words.slice(0, i + 1).join("/")) }, plain(word))]));
}
