/*
 * The dialog that creates a repo or a bucket.
 */

import { encodePath, pageUrl, send, whoami } from "./api.js";
import { dialog, field, h, notice } from "./dom.js";
import { signIn } from "./account.js";

const SINGULAR = {
    models: "model", datasets: "dataset", spaces: "space", buckets: "bucket"
};

/* Owners that are the beginning of other URLs of the server. */

const TAKEN = ["api", "buckets", "cas", "datasets", "kernels", "metrics",
    "models", "oauth", "settings", "spaces", "status", "v1", "v2", "xorbs"];


/* Opens the dialog, and goes to the new repo. */

export async function newRepo({ go, kind = "models" }) {
    const who = await whoami().catch(() => null);

    if (!who) {
        return signIn("Sign in to create a repo.");
    }

    if (who.auth?.accessToken?.role === "read") {
        return refuse(who);
    }

    const owners = [who.name, ...(who.orgs || []).map((org) => org.name)];
    const kinds = h("select", { name: "kind" },
        Object.entries(SINGULAR).map(([value, text]) => h("option",
            { value, selected: value === kind },
            text[0].toUpperCase() + text.slice(1))));
    const owner = h("select", { name: "owner" },
        owners.map((name) => h("option", { value: name }, name)));
    const name = h("input", { name: "name", required: true, maxlength: 96,
        autocomplete: "off", autocapitalize: "none", spellcheck: "false",
        oninput: () => name.setCustomValidity(wrongName(name.value)) });

    const box = dialog("New repo", h("div", {},
        field("Kind", kinds), field("Owner", owner),
        field("Name", name, "Letters, digits, “-”, “_” and “.”"),
        visibility()), "Create", async (data) => {
        const repo = { kind: data.get("kind"),
            id: `${data.get("owner")}/${data.get("name")}` };

        await create(repo, data.get("visibility") === "private");
        go(pageUrl(repo));
    });

    name.focus();

    return box;
}


function refuse(who) {
    return dialog("New repo", notice("bad", `The token of ${who.name} can only `
        + "read. To create a repo, sign in with a token that can write."),
        "Close", async () => {});
}


/* Radio buttons for the visibility of a repo. */

export function visibility(isPrivate = false, legend = "") {
    const choice = (value, label, text, checked) => h("label", {},
        h("input", { type: "radio", name: "visibility", value, checked }),
        h("span", {}, `${label} `, h("small", {}, text)));

    return h("fieldset", { class: "choices" },
        h("legend", { class: legend }, "Visibility"),
        choice("public", "Public", "everyone who may read this server",
            !isPrivate),
        choice("private", "Private", "only its owner", isPrivate));
}


async function create(repo, isPrivate) {
    const [organization, name] = repo.id.split("/");
    const kind = SINGULAR[repo.kind];

    try {
        if (repo.kind === "buckets") {
            await send("POST", `/api/buckets/${encodePath(repo.id)}`,
                { private: isPrivate });

        } else {
            await send("POST", "/api/repos/create", { name, organization,
                type: kind, private: isPrivate });
        }

    } catch (error) {
        if (error.status === 409) {
            throw new Error(`The ${kind} ${repo.id} exists already. Choose `
                + "another name.");
        }

        throw error;
    }
}


/* Returns what is wrong with the name of a repo, or "", as the server does. */

export function wrongName(name) {
    if (!name) {
        return "Enter a name.";
    }

    if (name.length > 96) {
        return "A name has at most 96 characters.";
    }

    if (/[^A-Za-z0-9._-]/.test(name)) {
        return "A name has only letters, digits, “-”, “_” and “.”.";
    }

    if (/^[-.]|[-.]$/.test(name)) {
        return "A name cannot begin or end with “-” or “.”.";
    }

    if (/--|\.\./.test(name)) {
        return "A name cannot contain “--” or “..”.";
    }

    return /\.git$/i.test(name) ? "A name cannot end with “.git”." : "";
}


/* Returns what is wrong with "owner/name", or "". */

export function wrongId(id) {
    const parts = id.split("/");

    if (parts.length !== 2) {
        return "Enter the owner and the name, as in owner/name.";
    }

    if (TAKEN.includes(parts[0].toLowerCase())) {
        return `“${parts[0]}” cannot be the name of an owner.`;
    }

    return wrongName(parts[0]) || wrongName(parts[1]);
}
