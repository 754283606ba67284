/*
 * What a commit changed: its message, and its files.
 */

import { ApiError, apiPath, encodeRev, list, pageUrl } from "../api.js";
import { copyButton, h, icon, later } from "../dom.js";
import { plain } from "../list.js";
import { readInfo, repoHead, shortRev } from "../repo_head.js";
import { changes } from "../view/changes.js";
import { byline } from "./commits.js";


export async function show(route, signal) {
    const { repo, rev } = route;
    const [info, page] = await Promise.all([readInfo(repo, rev, signal),
        list(apiPath(repo, `/commits/${encodeRev(rev)}`), { limit: 2 },
            signal)]);
    const [commit, parent] = page.rows;

    if (!commit) {
        throw new ApiError(404, "RevisionNotFound", "There is no such commit.");
    }

    return { title: `${commit.title} · ${repo.id}`, body: h("div", {},
        await repoHead(repo, "commits", info, commit.id),
        headline(repo, commit, parent),
        later(changes(repo, { to: commit.id, from: parent?.id, signal }),
            4)) };
}


function headline(repo, commit, parent) {
    const link = (one) => h("a", { href: pageUrl(repo, "commit", one.id) },
        h("code", {}, shortRev(one.id)));

    return h("section", { class: "panel commit-head" },
        h("h2", {}, plain(commit.title)),
        commit.message && h("p", { class: "message" }, plain(commit.message)),
        h("div", { class: "row soft small" },
            h("span", { class: "grow" }, byline(commit)),
            h("span", {}, "Commit ", h("code", {}, shortRev(commit.id)),
                copyButton(commit.id, "Copy the commit id")),
            parent && h("span", {}, "Parent ", link(parent)),
            h("a", { class: "button", href: pageUrl(repo, "tree", commit.id) },
                icon("folder"), "Files")));
}
