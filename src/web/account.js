/*
 * Who the caller is, in the header: the button "Sign in", or a menu.
 *
 * States:
 *   asked       whoami has not been answered yet: nothing is shown
 *   anonymous   no token, and the server wants one: "Sign in"
 *   open        no token, and the server knows the caller without one: the
 *               menu, without "Sign out"
 *   signed in   a token that the server accepts: the menu
 *   refused     a token that the server no longer accepts
 *   unknown     the server is out of reach: its message is the title of the
 *               button "Sign in"
 */

import { dropToken, keepToken, request, root, token, whoami }
    from "./api.js";
import { dialog, field, fill, h, icon, notice } from "./dom.js";


/* Returns the node for the header. */

export function account() {
    const node = h("div", { id: "account", class: "account row" });

    const sign = (text, problem) => h("button", { type: "button",
        id: "sign-in", class: "main",
        onclick: () => signIn(problem) }, icon("user"), text);

    whoami().then((who) => {
        if (who) {
            fill(node, menu(who));

        } else if (token()) {
            fill(node, h("span", { class: "account-warning", role: "status" },
                "Your token is no longer valid."),
                sign("Sign in again", "Your token is no longer valid. It has "
                    + "expired, or was revoked."),
                h("button", { type: "button", onclick: out },
                    "Sign out"));

        } else {
            fill(node, sign("Sign in"));
        }

    }, (error) => {
        const button = sign("Sign in");

        button.title = error.message;
        fill(node, button);
    });

    return node;
}


/*
 * Signing in or out loads the document anew, so that nothing of the former
 * caller stays in memory: not a page, nor a token of a repo's storage.
 */

function out() {
    dropToken();
    location.reload();
}


/* --- the menu ------------------------------------------------------------- */

function menu(who) {
    const summary = h("summary", { "aria-label": `Account of ${who.name}` },
        icon("user"), h("span", { class: "account-name" }, who.name),
        icon("down"));
    const own = who.auth?.accessToken || {};
    const box = h("details", { onkeydown: (event) => {
        if (event.key === "Escape" && box.open) {
            box.open = false;
            summary.focus();
        }
    }, onfocusout: (event) => {
        if (event.relatedTarget && !box.contains(event.relatedTarget)) {
            box.open = false;
        }
    }, ontoggle: () => {
        if (box.open) {
            document.addEventListener("click", outside);
        } else {
            document.removeEventListener("click", outside);
        }
    } }, summary,
        h("div", { class: "account-menu" }, facts(who, own),
            h("a", { class: "button item",
                href: `${root}/${encodeURIComponent(who.name)}`,
                onclick: () => { box.open = false; } },
                icon("user"), "Your repos"),
            token() && h("button", { type: "button", class: "item",
                id: "sign-out", onclick: out },
                icon("out"), "Sign out")));

    const outside = (event) => {
        if (!box.contains(event.target)) {
            box.open = false;
        }
    };

    return box;
}


/* The server sends "scope" and "expiresAt" if it can; else only the role. */

function facts(who, own) {
    const rights = {
        read: "read", write: "read and write",
        delete: "read, write and delete repos",
        admin: "read, write, delete repos, change their visibility"
    };
    const orgs = (who.orgs || []).map((org) => org.name);
    const rows = [
        ["Name", who.name],
        ["Access", token() ? rights[own.scope || own.role] || own.role
            : "This server asks for no token"],
        orgs.length > 0 && ["Also owns", orgs.join(", ")],
        own.repo && ["Only for", own.repo],
        own.expiresAt && token()
            && ["Until", new Date(own.expiresAt).toLocaleString()]
    ];

    return h("dl", {}, rows.filter((row) => row && row[1]).map(([name, text]) =>
        [h("dt", {}, name), h("dd", {}, text)]));
}


/* --- signing in ----------------------------------------------------------- */

/* Asks for a token, and keeps it if the server accepts it. */

export function signIn(problem) {
    const input = h("input", { type: "password", name: "token",
        autocomplete: "off", spellcheck: "false", autocapitalize: "none",
        required: true });

    const body = h("div", {},
        problem && notice("bad", problem),
        field("Token", input,
            "It begins with hf_ or xet, or with eyJ."),
        h("fieldset", { class: "choices" }, h("legend", {}, "Keep the token"),
            h("label", {}, h("input", { type: "radio", name: "keep",
                value: "tab", checked: true }), h("span", {},
                "for this tab ", h("small", {},
                    "until you close it"))),
            h("label", {}, h("input", { type: "radio", name: "keep",
                value: "browser" }), h("span", {}, "for this browser ",
                h("small", {}, "until you sign out; not on a computer that "
                    + "others use")))),
        h("details", {}, h("summary", {}, "How do I get a token?"),
            h("p", { class: "soft" }, "Ask the operator of this server. The "
                + "operator issues a token for your name:"),
            h("pre", { tabindex: 0 }, "xet token --hf --key FILE \\\n"
                + "    --subject NAME --scope write --lifetime 30d")));

    const box = dialog("Sign in", body, "Sign in", async (data) => {
        const value = clean(data.get("token"));

        await check(value);
        keepToken(value, data.get("keep") === "browser");
        location.reload();
    });

    input.focus();

    return box;
}


/* People paste tokens with blanks, line breaks, or the word "Bearer". */

function clean(text) {
    const value = text.replace(/^\s*Bearer\s+/i, "").replace(/\s+/g, "");

    if (!/^[\x21-\x7e]+$/.test(value)) {
        throw new Error("This is not a token: it has other characters than "
            + "letters, digits and punctuation.");
    }

    return value;
}


async function check(value) {
    try {
        await request("GET", "/api/whoami-v2", { as: value });

    } catch (error) {
        if (error.status === 401) {
            throw new Error(/expired/i.test(error.code + error.message)
                ? "This token has expired. Ask the operator for a new one."
                : "The server does not accept this token. Check that you have "
                + "copied all of it.");
        }

        throw error;
    }
}
