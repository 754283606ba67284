// Operations of @huggingface/hub on a Hub, in Node (hub_table.mjs) and in a
// browser (hub_page.html).  Each reports a row in the format of hub_row.py.
//
//     await rows(hub, command, { tell, hubUrl, accessToken, folder, other })
//
// hub is the package; tell() is called with each row; folder is the cache
// folder, undefined in a browser.  "refused" also needs other, the token of
// another user: accessToken belongs to alice, who owns alice/open with a file
// f.txt, and alice/secret.

let hub, tell, hubUrl, accessToken, folder, other;

const big = new Uint8Array(3000000);

for (let i = 0; i < big.length; i++) {
    big[i] = (i * 7919 + (i >> 8) * 31) & 255;
}

// want is the expected value, a function that checks the value, or the expected
// error, from refused().

class Refused {
    constructor(status) {
        this.status = status;
    }
}

function refused(status) {
    return new Refused(status);
}

function good(got, want) {
    if (want instanceof Function) {
        return Boolean(want(got));
    }

    return want === undefined
        || JSON.stringify(got) === JSON.stringify(want);
}

async function row(name, work, want) {
    let got;

    try {
        got = await work();

    } catch (e) {
        const ok = want instanceof Refused && e instanceof hub.HubApiError
            && e.statusCode === want.status;

        tell({ row: name, ok, said: ok ? "" : `${e.statusCode} ${e.stack}` });
        return;
    }

    const ok = !(want instanceof Refused) && good(got, want);

    tell({ row: name, ok,
        said: ok ? "" : (JSON.stringify(got) ?? "undefined").slice(0, 2000) });
}

async function all(generator) {
    const found = [];

    for await (const x of generator) {
        found.push(x);
    }

    return found;
}

async function paths(args) {
    const found = await all(hub.listFiles(args));

    return found.map((x) => x.path).sort();
}

async function text(blob) {
    return blob === null ? null : await blob.text();
}

async function isBig(blob) {
    const bytes = new Uint8Array(await blob.arrayBuffer());

    return bytes.length === big.length && bytes.every((x, i) => x === big[i]);
}

function file(path, content) {
    return { path, content: new Blob(content === "" ? [] : [content]) };
}

function isCommit(r) {
    return r.commit.oid.length === 40;
}

async function repos() {
    const repo = "me/js";
    const o = { hubUrl, accessToken, repo };

    await row("whoAmI", () => hub.whoAmI(o), (r) => r.name === "me");
    await row("createRepo", () => hub.createRepo({ ...o,
        visibility: "private" }), (r) => r.repoUrl === `${hubUrl}/me/js`);
    await row("createRepo: twice is 409", () => hub.createRepo(o),
        refused(409));
    const made = { ...o, repo: { type: "dataset", name: "me/js-made" } };

    await row("createRepo: with files", () => hub.createRepo({ ...made,
        files: [{ path: "a b.txt", content: new Blob(["first"]) },
            { path: "d/e0", content: new ArrayBuffer(0) },
            { path: "d/big", content: big.slice(0, 300000).buffer }] }),
        (r) => r.id === "me/js-made");
    await row("createRepo: with files: listFiles", () => paths({ ...made,
        recursive: true }), ["a b.txt", "d", "d/big", "d/e0"]);
    await row("createRepo: with files: downloadFile", async () => [
        await text(await hub.downloadFile({ ...made, path: "a b.txt" })),
        (await hub.downloadFile({ ...made, path: "d/big" })).size],
        ["first", 300000]);
    await row("createRepo: with files: countCommits", () =>
        hub.countCommits({ ...made, revision: "main" }), 1);
    await row("createRepo: with files: twice is 409", () => hub.createRepo({
        ...made, files: [{ path: "b", content: new Blob(["b"]) }] }),
        refused(409));
    await row("createRepo: with files: deleteRepo", () =>
        hub.deleteRepo(made));
    await row("repoExists", async () => [await hub.repoExists(o),
        await hub.repoExists({ ...o, repo: "me/no" })], [true, false]);

    await row("uploadFiles: by Xet", () => hub.uploadFiles({ ...o,
        useXet: true, files: [file("big.bin", big), file("e0", ""),
            file("d/e/a b.txt", "odd")] }), isCommit);
    await row("uploadFiles: by LFS", () => hub.uploadFiles({ ...o,
        useXet: false, files: [file("lfs.bin", "by LFS"), file("e1", "")] }),
        isCommit);
    await row("uploadFile", () => hub.uploadFile({ ...o,
        file: file("one", "1") }), isCommit);
    await row("uploadFilesWithProgress", async () => (await all(
        hub.uploadFilesWithProgress({ ...o, files: [file("two", "22")] }))
        ).some((e) => e.event === "phase"), true);

    await row("modelInfo", () => hub.modelInfo({ name: repo, hubUrl,
        accessToken }), (r) => r.name === repo && r.private);
    await row("listModels", async () => (await all(hub.listModels({ hubUrl,
        accessToken, search: { owner: "me" } }))).map((x) => x.name),
        (r) => r.includes(repo));
    await row("listFiles: recursive", () => paths({ ...o, recursive: true }),
        ["big.bin", "d", "d/e", "d/e/a b.txt", "e0", "e1", "lfs.bin", "one",
            "two"]);
    await row("listFiles: a folder", () => paths({ ...o, path: "d/e" }),
        ["d/e/a b.txt"]);
    await row("pathsInfo", () => hub.pathsInfo({ ...o, paths: ["lfs.bin"],
        expand: true }), (r) => r[0].size === 6 && r[0].lastCommit);
    await row("fileExists", async () => [
        await hub.fileExists({ ...o, path: "one" }),
        await hub.fileExists({ ...o, path: "no" })], [true, false]);
    await row("fileDownloadInfo", () => hub.fileDownloadInfo({ ...o,
        path: "big.bin" }), (r) => r.size === big.length && r.xet);

    await row("downloadFile: by Xet", async () => await isBig(
        await hub.downloadFile({ ...o, path: "big.bin", xet: true })), true);
    await row("downloadFile: without", async () => await isBig(
        await hub.downloadFile({ ...o, path: "big.bin", xet: false })), true);
    await row("downloadFile: a part", async () => {
        const blob = await hub.downloadFile({ ...o, path: "big.bin" });
        const part = new Uint8Array(
            await blob.slice(1000000, 1000100).arrayBuffer());

        return part.length === 100
            && part.every((x, i) => x === big[1000000 + i]);
    }, true);
    await row("downloadFile: small", async () => await text(
        await hub.downloadFile({ ...o, path: "lfs.bin" })), "by LFS");
    await row("downloadFile: empty", async () => await text(
        await hub.downloadFile({ ...o, path: "e0" })), "");
    await row("downloadFile: raw", async () => await text(
        await hub.downloadFile({ ...o, path: "one", raw: true })), "1");
    await row("downloadFile: one that is not there", () => hub.downloadFile({
        ...o, path: "no" }), null);

    await revisions(o);

    await row("commit: edit", async () => hub.commit({ ...o, title: "edit",
        operations: [{ operation: "edit", path: "big.bin",
            originalContent: await hub.downloadFile({ ...o,
                path: "big.bin" }),
            edits: [{ start: 10, end: 20, content: new Blob(["new"]) }] }] }),
        isCommit);
    await row("commit: edit: what it has made", async () => {
        const blob = await hub.downloadFile({ ...o, path: "big.bin" });

        return [blob.size, await blob.slice(10, 13).text()];
    }, [big.length - 7, "new"]);
    await row("commit: parentCommit of long ago", async () => {
        const commits = await all(hub.listCommits({ ...o }));

        await hub.uploadFile({ ...o, file: file("one", "late"),
            parentCommit: commits.at(-1).oid });
    }, refused(412));
    await row("deleteFile", () => hub.deleteFile({ ...o, path: "one" }),
        isCommit);
    await row("deleteFiles", () => hub.deleteFiles({ ...o,
        paths: ["two", "e0", "e1"] }), isCommit);
    await row("listFiles: after it", () => paths({ ...o, recursive: true }),
        ["big.bin", "d", "d/e", "d/e/a b.txt", "lfs.bin"]);

    if (folder) {
        await row("snapshotDownload", () => hub.snapshotDownload({ ...o,
            cacheDir: folder }), (r) => r.startsWith(folder));
    }

    await row("a repo that is not there", () => hub.modelInfo({
        name: "me/no", hubUrl, accessToken }), refused(404));
    await row("a revision that is not there", () => paths({ ...o,
        revision: "no" }), refused(404));
    await row("deleteRepo", () => hub.deleteRepo(o));
    await row("deleteRepo: it is gone", () => hub.repoExists(o), false);
    await row("createRepo: with files that can't be", () =>
        hub.createRepo({ ...o, files: [file("a", "a"), file("a/b", "b")] }),
        refused(400));
    await row("createRepo: refused, it is not there", () => hub.repoExists(o),
        false);
    await row("datasets: createRepo, uploadFile, downloadFile, deleteRepo",
        async () => {
            const d = { ...o, repo: { type: "dataset", name: "me/jd" } };

            await hub.createRepo(d);
            await hub.uploadFile({ ...d, file: file("x.csv", "a,b") });

            const got = await text(await hub.downloadFile({ ...d,
                path: "x.csv" }));

            await hub.deleteRepo(d);
            return got;
        }, "a,b");
}

async function revisions(o) {
    await row("createBranch", () => hub.createBranch({ ...o,
        branch: "refs-pr/1" }));
    await row("createBranch: twice is 409", () => hub.createBranch({ ...o,
        branch: "refs-pr/1" }), refused(409));
    await row("listFiles: a revision with a slash, as it is", () => paths({
        ...o, path: "d/e", revision: "refs-pr/1", expand: true }),
        ["d/e/a b.txt"]);
    await row("downloadFile: of a revision", async () => await text(
        await hub.downloadFile({ ...o, path: "one",
            revision: "refs-pr/1" })), "1");
    await row("listCommits", async () => (await all(hub.listCommits({ ...o,
        revision: "main" }))).length, 5);
    await row("countCommits", () => hub.countCommits({ ...o,
        revision: "main" }), 5);
    await row("deleteBranch", () => hub.deleteBranch({ ...o,
        branch: "refs-pr/1" }));
}

async function buckets() {
    const repo = { type: "bucket", name: "me/jb" };
    const o = { hubUrl, accessToken, repo };

    await row("createRepo: a bucket", () => hub.createRepo(o),
        (r) => r.id !== undefined);
    await row("createRepo: a bucket twice is 409", () => hub.createRepo(o),
        refused(409));
    await row("uploadFiles: to a bucket", () => hub.uploadFiles({ ...o,
        files: [file("d/big.bin", big), file("small", "small"),
            file("empty", "")] }));
    await row("listFiles: of a bucket", async () => (await paths({ ...o,
        recursive: true })).filter((p) => p !== "d"),
        ["d/big.bin", "empty", "small"]);
    await row("pathsInfo: of a bucket", () => hub.pathsInfo({ ...o,
        paths: ["small"] }), (r) => r[0].size === 5);
    await row("downloadFile: of a bucket", async () => await isBig(
        await hub.downloadFile({ ...o, path: "d/big.bin" })), true);
    await row("downloadFile: of a bucket, without Xet", async () => await
        isBig(await hub.downloadFile({ ...o, path: "d/big.bin",
            xet: false })), true);
    await row("copyFile: in a bucket", async () => {
        await hub.copyFile({ ...o, source: { repo, path: "small" },
            destination: { repo, path: "copy" } });

        return await text(await hub.downloadFile({ ...o, path: "copy" }));
    }, "small");
    await row("copyFolder: from a repo", async () => {
        const model = { ...o, repo: "me/js" };

        await hub.createRepo(model);
        await hub.uploadFiles({ ...model, files: [file("f/1", "1"),
            file("f/2", "2")] });
        await hub.copyFolder({ ...o, source: { repo: "me/js", path: "f" },
            destination: { repo, path: "g" } });
        await hub.deleteRepo(model);

        return await paths({ ...o, path: "g" });
    }, ["g/1", "g/2"]);
    await row("deleteFiles: of a bucket", async () => {
        await hub.deleteFiles({ ...o, paths: ["copy", "empty", "g/1",
            "g/2"] });

        return (await paths({ ...o, recursive: true }))
            .filter((p) => p !== "d");
    }, ["d/big.bin", "small"]);
    await row("deleteRepo: a bucket", () => hub.deleteRepo(o));
    await row("deleteRepo: it is gone", () => hub.repoExists(o), false);
}

// Operations on alice's repos without her token.  Only reads of public repos
// succeed.

async function refusals() {
    const bob = { hubUrl, accessToken: other };
    const nobody = { hubUrl };
    const open = "alice/open", secret = "alice/secret";
    const bucket = { type: "bucket", name: "alice/bk" };

    for (const [name, who, status] of [["bob", bob, 403],
        ["nobody", nobody, 401]])
    {
        const at = (repo, more) => ({ ...who, repo, ...more });

        await row(`${name}: modelInfo`, () => hub.modelInfo({ ...who,
            name: secret }), refused(404));
        await row(`${name}: listFiles`, () => paths(at(secret)),
            refused(404));
        await row(`${name}: listCommits`, () => all(hub.listCommits(
            at(secret))), refused(404));
        await row(`${name}: pathsInfo`, () => hub.pathsInfo(at(secret,
            { paths: ["f.txt"] })), refused(404));
        await row(`${name}: downloadFile`, () => hub.downloadFile(at(secret,
            { path: "f.txt" })), refused(404));
        await row(`${name}: repoExists, fileExists`, async () => [
            await hub.repoExists(at(secret)),
            await hub.fileExists(at(secret, { path: "f.txt" }))],
            [false, false]);
        await row(`${name}: checkRepoAccess`, () => hub.checkRepoAccess(
            at(secret)), refused(404));
        await row(`${name}: listModels`, async () => (await all(
            hub.listModels({ ...who, search: { owner: "alice" } })))
            .map((x) => x.name).includes(secret), false);
        await row(`${name}: listFiles of a bucket`, () => paths(at(bucket)),
            refused(404));
        await row(`${name}: downloadFile of a bucket`,
            () => hub.downloadFile(at(bucket, { path: "f.txt" })),
            refused(404));
        await row(`${name}: downloadFile of an open repo`, async () =>
            await text(await hub.downloadFile(at(open,
                { path: "f.txt" }))), "open");

        for (const useXet of [true, false]) {
            await row(`${name}: uploadFiles, Xet ${useXet}`, () =>
                hub.uploadFiles(at(open, { useXet,
                    files: [file("js", "js")] })), refused(status));
        }

        await row(`${name}: deleteFile`, () => hub.deleteFile(at(open,
            { path: "f.txt" })), refused(status));
        await row(`${name}: createBranch`, () => hub.createBranch(at(open,
            { branch: "js" })), refused(status));
        await row(`${name}: deleteRepo`, () => hub.deleteRepo(at(open)),
            refused(status));
        await row(`${name}: createRepo`, () => hub.createRepo(
            at("alice/js")), refused(status));
    }

    await row("a token that is none", () => hub.whoAmI({ hubUrl,
        accessToken: "hf_junk" }), refused(401));
    await row("alice: downloadFile", async () => await text(
        await hub.downloadFile({ hubUrl, accessToken, repo: secret,
            path: "f.txt" })), "the bytes of a secret");
}

export async function rows(theHub, command, options) {
    hub = theHub;
    ({ tell, hubUrl, accessToken, folder, other } = options);

    await { repos, buckets, refused: refusals }[command]();
    tell({ end: true });
}
