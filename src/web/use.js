/*
 * The box "Use": commands that download a repo, a folder or a file, for hf,
 * Python and curl, to copy.
 *
 * Names of files and branches may contain everything that a shell interprets,
 * so each argument is quoted.
 */

import { apiPath, encodePath, fileUrl, root } from "./api.js";
import { command, fill, h } from "./dom.js";
import { nameOf, typeOf } from "./repo_head.js";

/* Characters that cannot be seen, or that change the direction of writing. */

const HIDDEN = new RegExp("[\\u0000-\\u001f\\u007f-\\u009f\\u061c"
    + "\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff]", "g");

let boxes = 0;


/* Quotes an argument for the shell: in single quotes, if it needs any. */

export function quote(text) {
    if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(text)) {
        return text;
    }

    if (text.search(HIDDEN) < 0) {
        return `'${text.replaceAll("'", "'\\''")}'`;
    }

    /* what cannot be seen is written as an escape of bash and zsh */

    return `$'${text.replace(/['\\]/g, "\\$&").replace(HIDDEN, escape)}'`;
}


function escape(char) {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}


/* A string of Python; JSON strings are strings of Python, too. */

function py(text) {
    return JSON.stringify(text).replace(HIDDEN, escape);
}


/* A name as a pattern of fnmatch that matches this name only. */

function literal(text) {
    return text.replace(/[[*?]/g, "[$&]");
}


/*
 * Returns the box for a repo, or a file or folder in it.  "library" is the
 * library_name of a model; "isPrivate" adds the token to commands of curl.
 */

export function use(repo, { rev = "main", path = "", library = "",
    isFolder = false, isPrivate = false } = {})
{
    const what = { repo, rev: rev || "main", path, library, isFolder,
        isPrivate, file: Boolean(path) && !isFolder };
    const tabs = [["hf", hf], ["Python", python], loader(what),
        ["curl", curl]].filter(Boolean);
    const id = `use${++boxes}`;
    const panel = h("div", { role: "tabpanel", id: `${id}p` });
    const pick = (i, focus) => {
        buttons.forEach((one, at) => {
            one.setAttribute("aria-selected", String(i === at));
            one.tabIndex = i === at ? 0 : -1;
        });

        panel.setAttribute("aria-labelledby", buttons[i].id);
        fill(panel, command(tabs[i][1](what)));
        focus && buttons[i].focus();
    };
    const step = (event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const at = buttons.indexOf(event.target);

        if (by && at >= 0) {
            event.preventDefault();
            pick((at + by + tabs.length) % tabs.length, true);
        }
    };
    const buttons = tabs.map(([name], i) => h("button", { type: "button",
        role: "tab", id: `${id}t${i}`, "aria-controls": `${id}p`,
        onclick: () => pick(i) }, name));

    pick(0);

    return h("section", { class: "use" }, h("h2", {}, what.file
        ? "Use this file" : path ? "Use this folder" : "Use"),
        h("div", { class: "use-tabs", role: "tablist", onkeydown: step },
            buttons), panel);
}


/* --- commands ------------------------------------------------------------- */

const endpoint = () => location.origin + root;

const setEndpoint = () => `export HF_ENDPOINT=${quote(endpoint())}`;


function hf({ repo, rev, path, isFolder, file }) {
    if (repo.kind === "buckets") {
        const url = `hf://buckets/${repo.id}`;
        const to = isFolder ? path.split("/").pop() : nameOf(repo);

        return `${setEndpoint()}\n${file
            ? `hf buckets cp ${quote(`${url}/${path}`)} .`
            : `hf buckets sync ${quote(url + (path && `/${path}`))} ${
                quote(`./${to}`)}`}`;
    }

    const words = ["hf download", quote(repo.id)];

    if (file && !path.startsWith("-")) {
        words.push(quote(path));
    }

    if (repo.kind !== "models") {
        words.push(`--repo-type ${typeOf(repo)}`);
    }

    if (rev !== "main") {
        words.push(`--revision ${quote(rev)}`);
    }

    if (path && isFolder) {
        words.push(`--include ${quote(`${literal(path)}/*`)}`);
    }

    words.push(`--local-dir ${quote(`./${nameOf(repo)}`)}`);

    if (file && path.startsWith("-")) {
        words.push(`-- ${quote(path)}`);
    }

    return `${setEndpoint()}\n${words.join(" ")}`;
}


const SET_PY = () =>
    `import os\nos.environ["HF_ENDPOINT"] = ${py(endpoint())}\n\n`;


function python({ repo, rev, path, isFolder, file }) {
    if (repo.kind === "buckets") {
        const url = `buckets/${repo.id}${path && `/${path}`}`;

        return SET_PY() + "from huggingface_hub import HfFileSystem\n\n"
            + `fs = HfFileSystem()\n${file ? `data = fs.read_bytes(${py(url)})`
                : `files = fs.find(${py(url)})`}`;
    }

    const name = file ? "hf_hub_download" : "snapshot_download";
    const words = [py(repo.id)];

    if (file) {
        words.push(py(path));
    }

    if (repo.kind !== "models") {
        words.push(`repo_type=${py(typeOf(repo))}`);
    }

    if (rev !== "main") {
        words.push(`revision=${py(rev)}`);
    }

    if (path && isFolder) {
        words.push(`allow_patterns=${py(`${literal(path)}/*`)}`);
    }

    return `${SET_PY()}from huggingface_hub import ${name}\n\n`
        + `path = ${name}(${words.length > 1 ? `\n    ${words.join(",\n    ")}`
            + "\n" : words[0]})`;
}


/* The tab of the library that loads the repo, if it is known. */

function loader({ repo, library, path }) {
    const libraries = { transformers, diffusers, "sentence-transformers":
        sentences };

    if (path) {
        return undefined;
    }

    if (repo.kind === "datasets") {
        return ["datasets", datasets];
    }

    return repo.kind === "models" && Object.hasOwn(libraries, library)
        ? [library, libraries[library]] : undefined;
}


function call(name, { repo, rev }) {
    return `${name}(${py(repo.id)}${rev === "main" ? ""
        : `, revision=${py(rev)}`})`;
}


function transformers(what) {
    return `${SET_PY()}from transformers import AutoModel, AutoTokenizer\n\n`
        + `tokenizer = ${call("AutoTokenizer.from_pretrained", what)}\n`
        + `model = ${call("AutoModel.from_pretrained", what)}`;
}


function diffusers(what) {
    return `${SET_PY()}from diffusers import DiffusionPipeline\n\n`
        + `pipe = ${call("DiffusionPipeline.from_pretrained", what)}`;
}


function sentences(what) {
    return `${SET_PY()}from sentence_transformers import SentenceTransformer`
        + `\n\nmodel = ${call("SentenceTransformer", what)}`;
}


function datasets(what) {
    return `${SET_PY()}from datasets import load_dataset\n\n`
        + `data = ${call("load_dataset", what)}`;
}


function curl({ repo, rev, path, isFolder, isPrivate, file }) {
    const auth = isPrivate ? "-H \"Authorization: Bearer $HF_TOKEN\" " : "";

    if (file) {
        const url = location.origin + fileUrl(repo, rev, path);
        const name = path.split("/").pop();

        /* -O takes the name from the URL, with its percent signs */

        return `curl -L ${auth}${encodePath(name) === name ? "-O"
            : `-o ${quote(`./${name}`)}`} ${quote(url)}`;
    }

    const tree = apiPath(repo, "/tree")
        + (repo.kind === "buckets" ? "" : `/${encodeURIComponent(rev)}`)
        + (isFolder && path ? `/${encodePath(path)}` : "");

    return `# the list of files\ncurl ${auth}${
        quote(`${endpoint()}${tree}?recursive=true`)}\n\n# a file\n`
        + `curl -L ${auth}-O ${quote(location.origin
            + fileUrl(repo, rev, isFolder && path ? `${path}/` : ""))}FILE`;
}
