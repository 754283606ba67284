/*
 * The files that differ between a revision and an older state of the repo: a
 * revision ("?base="), or the last commit before a day ("?since=2026-01-31").
 */

import { ApiError, apiPath, encodePath, encodeRev, list, pageUrl }
    from "../api.js";
import { dayOf, formatNumber, h, later, notice } from "../dom.js";
import { plain } from "../list.js";
import { readInfo, repoHead, shortRev } from "../repo_head.js";
import { changes } from "../view/changes.js";


export async function show(route, signal) {
    const { repo, rev, args } = route;
    const since = args.get("since");
    const base = args.get("base");

    if (!since && !base) {
        throw new ApiError(400, "invalid_argument",
            "The address lacks the revision to compare with.");
    }

    const ask = (at, more) => list(apiPath(repo, `/commits/${encodeRev(at)}`),
        { limit: 1, ...more }, signal);
    const [info, now, then] = await Promise.all([readInfo(repo, rev, signal),
        ask(rev), since ? ask(rev, { until: since }) : ask(base)]);
    const [[to], [from]] = [now.rows, then.rows];

    return { title: `Changes · ${repo.id}`, body: h("div", {},
        await repoHead(repo, "commits", info, rev),
        headline(repo, { rev, since, to, from, count: now.total - then.total }),
        later(changes(repo, { to: to.id, from: from?.id, base: true, signal }),
            4)) };
}


function headline(repo, { rev, since, to, from, count }) {
    const link = (one) => h("a", { href: pageUrl(repo, "commit", one.id) },
        h("code", {}, shortRev(one.id)));

    return h("section", { class: "panel commit-head" },
        h("h2", {}, since ? `Changes since ${dayOf(since, "UTC")}`
            : `Changes since ${shortRev(from.id)}`),
        h("p", { class: "soft" }, from ? ["From ", link(from), " ",
            plain(from.title), " to "] : "From an empty repo to ", link(to),
        " ", plain(to.title)),
        since && h("p", {}, h("a", { href: pageUrl(repo, "commits", rev) },
            count === 1 ? "1 commit" : `${formatNumber(count)} commits`)),
        !since && from && to.id === from.id && notice("info",
            "Both revisions are the same commit."));
}
