/*
 * The history of a branch, tag or commit, or of a file or folder in it: the
 * commits by day.
 */

import { apiPath, encodePath, encodeRev, list, pageUrl, root }
    from "../api.js";
import { announce, copyButton, dayOf, fill, formatNumber, h, icon, notice,
    time }
    from "../dom.js";
import { plain } from "../list.js";
import { crumbs, readInfo, readRefs, repoHead, revSelect, shortRev }
    from "../repo_head.js";

const PAGE = 50;


export async function show(route, signal, { go }) {
    const { repo, rev, path } = route;
    const [info, refs, page] = await Promise.all([
        readInfo(repo, rev, signal), readRefs(repo, signal),
        list(apiPath(repo, `/commits/${encodeRev(rev)}`
            + (path && `/${encodePath(path)}`)), { limit: PAGE }, signal)]);
    const state = { repo, rev, rows: page.rows, next: page.next,
        node: h("div") };

    draw(state);

    return { title: `History · ${repo.id}`, body: h("div", {},
        await repoHead(repo, "commits", info, rev),
        h("div", { class: "row tree-bar" },
            revSelect(refs, rev, (name) =>
                go(pageUrl(repo, "commits", name, path))),
            path ? h("div", { class: "grow" }, crumbs(repo, rev, path))
                : h("span", { class: "grow soft" }, page.total === 1
                    ? "1 commit" : `${formatNumber(page.total)} commits`),
            path ? h("a", { class: "button", href: pageUrl(repo, "commits",
                rev) }, "All commits") : since(repo, rev)),
        state.rows.length === 0 && notice("info", "No commit has changed ",
            h("code", {}, plain(path)), "."),
        state.node) };
}


/* Links to what has changed since a day; a day begins at midnight in UTC. */

function since(repo, rev) {
    const link = (text, days) => h("a", { class: "button", href:
        `${pageUrl(repo, "compare", rev)}?since=`
        + new Date(Date.now() - days * 864e5).toISOString().slice(0, 10) },
    text);

    return h("div", { class: "row" }, h("span", { class: "soft" },
        "Changes since"), link("yesterday", 1), link("last week", 7),
    link("last month", 30));
}


function draw(state) {
    const days = new Map();

    for (const commit of state.rows) {
        const day = dayOf(commit.date);

        days.set(day, [...(days.get(day) || []), commit]);
    }

    fill(state.node, [...days].map(([day, commits]) =>
        h("section", { class: "day" }, h("h2", {}, day),
            h("ul", { class: "commits panel" }, commits.map((commit) =>
                line(state, commit))))),
    state.next && more(state));
}


function line({ repo, rev }, commit) {
    return h("li", { class: "commit" },
        h("div", { class: "commit-text" },
            h("a", { href: pageUrl(repo, "commit", commit.id) },
                plain(commit.title)),
            h("div", { class: "soft small" }, byline(commit))),
        h("div", { class: "row commit-id" },
            h("code", {}, shortRev(commit.id)),
            copyButton(commit.id, "Copy the commit id"),
            h("a", { class: "button quiet", title: "Show what changed since",
                "aria-label": `Show what changed since ${shortRev(commit.id)}`,
                href: `${pageUrl(repo, "compare", rev)}?base=${commit.id}` },
            icon("compare")),
            h("a", { class: "button quiet", title: "Show the files",
                "aria-label": `Show the files at ${shortRev(commit.id)}`,
                href: pageUrl(repo, "tree", commit.id) }, icon("folder"))));
}


/* Who made a commit, and when. */

export function byline(commit) {
    const users = (commit.authors || []).map((one) => one.user)
        .filter((user) => typeof user === "string" && user);

    return [users.map((user, i) => [i > 0 && ", ",
        h("a", { href: `${root}/${encodeURIComponent(user)}` },
            plain(user))]), users.length > 0 && " · ", time(commit.date)];
}


function more(state) {
    const problem = h("div");
    const button = h("button", { type: "button", class: "plain",
        onclick: async () => {
            const before = state.rows.length;

            button.disabled = true;
            fill(problem);

            try {
                const page = await state.next();

                state.rows.push(...page.rows);
                state.next = page.next;
                draw(state);
                state.node.querySelectorAll(".commit-text > a")[before]
                    ?.focus();
                announce(`${page.rows.length} more commits`);

            } catch (error) {
                button.disabled = false;
                fill(problem, error.name !== "AbortError"
                    && notice("bad", error.message));
            }
        } }, "Show more");

    return h("div", { class: "more" }, problem, button);
}
