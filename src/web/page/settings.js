/*
 * The settings of a repo: visibility, name, branches and tags, deletion.
 *
 * Buckets have no branches.  Each section is a form of its own, and shows in
 * place what the server responds.  The server decides what a token may do;
 * this page only explains a refusal.
 */

import { apiPath, encodeRev, mayWrite, pageUrl, root, send } from "../api.js";
import { announce, dialog, field, fill, h, icon, notice } from "../dom.js";
import { visibility, wrongId } from "../new_repo.js";
import { plain } from "../list.js";
import { ownerOf, readInfo, readRefs, repoHead } from "../repo_head.js";

const SINGULAR = {
    models: "model", datasets: "dataset", spaces: "space", buckets: "bucket"
};
const SHOWN = 50;


export async function show(route, signal, { go, render }) {
    const { repo } = route;
    const title = `Settings of ${repo.id}`;
    const [info, refs, allowed] = await Promise.all([
        readInfo(repo, "main", signal),
        repo.kind === "buckets" ? null : readRefs(repo, signal),
        mayWrite(ownerOf(repo))
    ]);
    const top = await repoHead(repo, "settings", info);

    if (!allowed) {
        return { title, body: h("div", {}, top, notice("bad", "You cannot "
            + "change this repo. Sign in with a token that can write to the "
            + `name space ${ownerOf(repo)}.`)) };
    }

    const context = { repo, go, render, info };

    return { title, body: h("div", {}, top, h("div", { class: "settings" },
        visible(context),
        refs && branches(context, refs),
        refs && tags(context, refs),
        moving(context),
        deleting(context))) };
}


/* --- parts ---------------------------------------------------------------- */

/*
 * A section with a form.  "act" may be async; what it throws is shown.  A
 * refusal names the scope that the token needs.
 */

function section(title, children, label, act, options = {}) {
    const { scope, kind = "", after = [] } = options;
    const problem = h("div");
    const button = h("button", { class: kind }, label);

    return h("section", {
        class: `panel${kind === "danger" ? " dangerous" : ""}` },
        h("h2", {}, title), after,
        h("form", { onsubmit: async (event) => {
            const by = event.submitter || button;

            event.preventDefault();
            by.disabled = true;
            fill(problem);

            try {
                await act(new FormData(event.target), problem);

            } catch (error) {
                fill(problem, notice("bad", explain(error, scope)));
            }

            by.disabled = false;
        } }, children, problem, label && button));
}


function explain(error, scope) {
    if (error.status === 403 && scope && !/scope/.test(error.message)) {
        return `${error.message}. This needs a token with the scope `
            + `“${scope}”; the operator of the server issues it.`;
    }

    return error.message;
}


/* --- visibility ----------------------------------------------------------- */

function visible({ repo, info }) {
    return section("Visibility", [
        visibility(info.private, "hidden"),
        h("p", { class: "soft small" }, "A change revokes the tokens and URLs "
            + "that clients have for this repo. Clients fetch new ones.")
    ], "Save", async (data, said) => {
        const isPrivate = data.get("visibility") === "private";

        await send("PUT", apiPath(repo, "/settings"), { private: isPrivate });
        fill(said, notice("good", `The ${SINGULAR[repo.kind]} is now `
            + `${isPrivate ? "private" : "public"}.`));
    }, { scope: "admin" });
}


/* --- branches and tags ---------------------------------------------------- */

function branches(context, { branches: rows }) {
    const { repo, render } = context;
    const name = h("input", { name: "name", required: true, maxlength: 255,
        autocomplete: "off", autocapitalize: "none", spellcheck: "false" });

    return section("Branches", h("div", { class: "settings-form" },
        field("New branch", name),
        field("Begins at", start(rows)),
        h("button", {}, icon("plus"), "Create branch")),
    "", async (data) => {
        await send("POST", apiPath(repo, `/branch/${encodeRev(data.get("name")
            .trim())}`), { startingPoint: data.get("start").trim() });
        announce("The branch was created.");
        render();
    }, { after: refList(context, rows, "branch") });
}


function tags(context, { tags: rows, branches: heads }) {
    const { repo, render } = context;
    const name = h("input", { name: "name", required: true, maxlength: 255,
        autocomplete: "off", autocapitalize: "none", spellcheck: "false" });

    return section("Tags", h("div", { class: "settings-form" },
        field("New tag", name),
        field("At", start(heads)),
        field("Message", h("input", { name: "message", maxlength: 200,
            autocomplete: "off" })),
        h("button", {}, icon("plus"), "Create tag")),
    "", async (data) => {
        await send("POST", apiPath(repo, `/tag/${encodeRev(data.get("start")
            .trim())}`), { tag: data.get("name").trim(),
            message: data.get("message").trim() || undefined });
        announce("The tag was created.");
        render();
    }, { after: refList(context, rows, "tag") });
}


/* The name of a branch, or the id of a commit. */

function start(rows) {
    return h("input", { name: "start", required: true, autocomplete: "off",
        value: rows.some((row) => row.name === "main") ? "main"
            : rows[0]?.name || "", spellcheck: "false",
        placeholder: "branch or commit", autocapitalize: "none" });
}


function refList(context, rows, kind, shown = SHOWN) {
    const list = h("div");

    const draw = () => fill(list,
        rows.length === 0 && h("p", { class: "soft" }, "There are no tags."),
        h("ul", {}, rows.slice(0, shown).map((row) => refRow(context, row,
            kind))),
        rows.length > shown && h("p", {}, h("button", { type: "button",
            onclick: () => {
                shown += SHOWN;
                draw();
            } }, `Show more (${rows.length - shown})`)));

    draw();

    return list;
}


function refRow({ repo, render }, row, kind) {
    return h("li", {}, icon(kind),
        h("a", { class: "grow", href: pageUrl(repo, "tree", row.name) },
            plain(row.name)),
        row.message && h("span", { class: "soft small" },
            plain(row.message)),
        h("a", { class: "hash soft",
            href: pageUrl(repo, "commit", row.targetCommit) },
        row.targetCommit.slice(0, 7)),
        (kind === "tag" || row.name !== "main") && h("button", {
            type: "button", class: "quiet", title: `Delete ${row.name}`,
            "aria-label": `Delete the ${kind} ${row.name}`,
            onclick: () => dialog(`Delete the ${kind} ${row.name}?`,
                h("p", {}, kind === "tag" ? "The commit stays readable."
                    : "Its commits stay readable only by their full ids."),
                "Delete", async () => {
                    await send("DELETE", apiPath(repo,
                        `/${kind}/${encodeRev(row.name)}`));
                    announce(`The ${kind} was deleted.`);
                    render();
                }, "danger") }, icon("trash")));
}


/* --- name ----------------------------------------------------------------- */

function moving({ repo, go }) {
    const target = h("input", { name: "target", value: repo.id, required: true,
        autocomplete: "off", autocapitalize: "none", spellcheck: "false",
        oninput: () => target.setCustomValidity(wrongId(target.value.trim()))
    });

    return section("Name", [
        field("Owner and name", target, "URLs of the old name lead to the new "
            + "one, until another repo gets the old name.")
    ], "Move", async (data) => {
        const id = data.get("target").trim();

        if (id === repo.id) {
            throw new Error("This is the present name. Enter another one.");
        }

        await send("POST", "/api/repos/move", { fromRepo: repo.id, toRepo: id,
            type: SINGULAR[repo.kind] });
        announce("The repo was moved.");
        go(pageUrl({ kind: repo.kind, id }));
    }, { scope: "admin" });
}


/* --- deletion ------------------------------------------------------------- */

function deleting({ repo, go }) {
    const kind = SINGULAR[repo.kind];
    const [organization, name] = repo.id.split("/");

    return section(`Delete this ${kind}`, h("p", {}, "All files"
        + (repo.kind === "buckets" ? "" : ", commits, branches and tags")
        + ` of ${repo.id} are deleted. This cannot be undone.`),
    "Delete …", async () => {
        const typed = h("input", { autocomplete: "off", spellcheck: "false",
            autocapitalize: "none" });

        dialog(`Delete ${repo.id}?`, field("Type the name of the "
            + `${kind}, ${repo.id}`, typed), `Delete this ${kind}`,
        async () => {
            if (typed.value.trim() !== repo.id) {
                throw new Error("The name differs. Nothing was deleted.");
            }

            try {
                await (repo.kind === "buckets"
                    ? send("DELETE", apiPath(repo))
                    : send("DELETE", "/api/repos/delete",
                        { name, organization, type: kind }));

            } catch (error) {
                throw new Error(explain(error, "delete"));
            }

            announce(`The ${kind} was deleted.`);
            go(`${root}/${encodeURIComponent(organization)}`, true);
        }, "danger");
        typed.focus();
    }, { kind: "danger" });
}
