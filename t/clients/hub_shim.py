"""A small Hugging Face Hub for the tests, with the routes that clients use.

    hub_shim.py --port N --psql PROGRAM --conninfo CONNINFO
                --tokens [OWNER=]URL... [--data URL] [--npm DIR]

The first request for a repo creates it.  Repos are in memory: each path has a
Xet hash, or the bytes of a small file.  All revisions are the newest one.
Files of 1 KiB and more use Xet.

--tokens  the URL of tokens for the repos of OWNER, or of all other owners:
          xet-{read,write}-token gets them from "<URL>/<repo>/<scope>", a
          location of xet_token
--data    a data server, for two routes that inject faults: below /shim/expire
          the first request of each URL has an expiry in the past, below
          /shim/break the first response for each path is truncated
--psql    queries the server's database for the file of a SHA-256, because a
          commit only names the SHA-256
--npm     the folder with node_modules for browser.html, which a browser runs;
          GET /shim/result returns the result of the page once

GET /shim/calls returns the requests since the last call, as JSON.  The bytes of
Xet files are not available here: a client without support for Xet gets 403.
"""

import argparse
import base64
import hashlib
import http.client
import json
import mimetypes
import os
import re
import tempfile
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LFS_FROM = 1024
KINDS = "models|datasets|spaces"

lock = threading.Lock()
repos = {}
calls = []
seen = set()
results = []
args = None


class Repo:
    def __init__(self):
        self.files = {}
        self.commits = 0

    def sha(self):
        return hashlib.sha1(b"%d" % self.commits).hexdigest()


def repo_of(kind, name):
    with lock:
        return repos.setdefault((kind, name), Repo())


def owner_tokens(name):
    found = dict(t.split("=", 1) if not t.startswith("http") else ("", t)
                 for t in args.tokens)
    return found.get(name.split("/")[0], found.get(""))


def token(name, scope):
    url = "%s/%s/%s" % (owner_tokens(name), name, scope)

    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def reverse_words(text):
    """Converts plain hex to a hash string: each 8 bytes are reversed."""

    return "".join(bytes.fromhex(text[i:i + 16])[::-1].hex()
                   for i in range(0, 64, 16))


def visible(file_hash, name):
    minted = token(name, "read")
    request = urllib.request.Request(
        "%s/v1/files/%s" % (minted["casUrl"], file_hash), method="HEAD",
        headers={"Authorization": "Bearer " + minted["accessToken"]})

    try:
        with urllib.request.urlopen(request, timeout=30):
            return True

    except urllib.error.HTTPError:
        return False


def file_of_sha256(oid, name):
    """Finds a file of this SHA-256 that the repo's token can read.

    There may be several, because the JS client cuts chunks differently.
    """

    sql = ("select encode(hash, 'hex') || '|' || size from xet.files"
           " where sha256 = '\\x%s'" % oid)
    out = subprocess.run([args.psql, "-XAtq", "-d", args.conninfo, "-c", sql],
                         capture_output=True, text=True, check=True)

    for line in out.stdout.split():
        found, size = line.split("|")
        found = reverse_words(found)

        if visible(found, name):
            return {"xet": found, "size": int(size), "sha256": oid}

    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    # ---- responses

    def send(self, status, body=b"", kind="application/json", headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()

        with lock:
            calls.append([self.command, self.path, status,
                          self.headers.get("Range")])

        self.send_response(status)
        self.send_header("Content-Type", kind)

        headers = dict(headers)

        if "Content-Length" not in headers:
            headers["Content-Length"] = str(len(body))

        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Expose-Headers", "*")

        for name, value in headers.items():
            self.send_header(name, value)

        self.end_headers()

        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status, code):
        self.send(status, {"error": code}, headers={"X-Error-Code": code,
                                                    "X-Error-Message": code})

    def base(self):
        return "http://" + self.headers["Host"]

    # ---- requests

    def handle_any(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)

        if self.headers.get("Transfer-Encoding") == "chunked":
            self.body = self.read_chunked()

        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)

        for pattern, method in ROUTES:
            found = re.fullmatch(pattern, path)

            if found:
                method(self, *found.groups())
                return

        self.error(404, "NotFound")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any

    def do_OPTIONS(self):
        self.send(204, headers={"Access-Control-Allow-Headers": "*, "
                                "Authorization", "Access-Control-Allow-Methods":
                                "GET, HEAD, POST"})

    def read_chunked(self):
        body = b""

        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            body += self.rfile.read(size)
            self.rfile.readline()

            if size == 0:
                return body

    def json(self):
        return json.loads(self.body or b"{}")

    # ---- accounts and repos

    def calls(self):
        with lock:
            found = list(calls)
            calls.clear()

        self.send(200, found)

        with lock:
            calls.clear()

    def whoami(self):
        self.send(200, {"type": "user", "id": "1", "name": "alice",
                        "fullname": "Alice", "email": "a@example.com",
                        "orgs": [], "auth": {"type": "access_token",
                                             "accessToken": {
                                                 "displayName": "test",
                                                 "role": "write"}}})

    def create(self):
        asked = self.json()
        kind = asked.get("type") or "model"
        name = "%s/%s" % (asked.get("organization") or "alice", asked["name"])

        if "/" in asked["name"]:
            name = asked["name"]

        repo_of(kind + "s", name)
        self.send(200, {"url": "%s/%s" % (self.base(), name), "id": name,
                        "name": name})

    def info(self, kind, name, *_):
        repo = repo_of(kind, name)

        self.send(200, {
            "_id": "1", "id": name, "modelId": name, "author": "alice",
            "sha": repo.sha(), "private": False, "gated": False,
            "disabled": False, "downloads": 0, "likes": 0, "tags": [],
            "lastModified": "2026-01-01T00:00:00.000Z",
            "createdAt": "2026-01-01T00:00:00.000Z",
            "siblings": [{"rfilename": p} for p in sorted(repo.files)]})

    def entry(self, path, file):
        oid = hashlib.sha1(path.encode() + str(file).encode()).hexdigest()
        found = {"type": "file", "path": path, "size": file["size"],
                 "oid": oid}

        if "xet" in file:
            found["lfs"] = {"oid": file["sha256"], "size": file["size"],
                            "pointerSize": 134}
            found["xetHash"] = file["xet"]

        return found

    def tree(self, kind, name, _rev, below):
        files = repo_of(kind, name).files

        self.send(200, [self.entry(p, files[p]) for p in sorted(files)
                        if p.startswith(below or "")])

    def paths_info(self, kind, name, _rev):
        files = repo_of(kind, name).files

        if self.headers.get("Content-Type", "").startswith(
                "application/x-www-form"):
            paths = urllib.parse.parse_qs(self.body.decode())["paths"]
        else:
            paths = self.json()["paths"]

        self.send(200, [self.entry(p, files[p]) for p in paths if p in files])

    # ---- uploads

    def preupload(self, _kind, _name, _rev):
        self.send(200, {"files": [
            {"path": f["path"], "shouldIgnore": False,
             "uploadMode": "lfs" if f["size"] >= LFS_FROM else "regular"}
            for f in self.json()["files"]]})

    def batch(self, kind, name):
        asked = self.json()

        if "xet" not in asked.get("transfers", []):
            self.error(501, "OnlyXet")
            return

        kind = kind or "models"
        minted = token(name, "write")
        objects = []

        for item in asked["objects"]:
            href = "%s/api/%s/%s/xet-write-token/main" % (self.base(), kind,
                                                           name)
            objects.append({
                "oid": item["oid"], "size": item["size"],
                "actions": {"upload": {"href": href, "header": {
                    "X-Xet-Cas-Url": minted["casUrl"],
                    "X-Xet-Access-Token": minted["accessToken"],
                    "X-Xet-Token-Expiration": str(minted["exp"]),
                    "X-Xet-Session-Id": "shim"}}}})

        self.send(200, {"transfer": "xet", "objects": objects},
                  kind="application/vnd.git-lfs+json")

    def commit(self, kind, name, _rev):
        repo = repo_of(kind, name)
        files = dict(repo.files)

        for line in self.body.decode().splitlines():
            item = json.loads(line)
            key, value = item["key"], item["value"]

            if key == "file":
                inline = base64.b64decode(value["content"])
                files[value["path"]] = {"inline": inline, "size": len(inline)}

            elif key == "lfsFile":
                found = file_of_sha256(value["oid"], name)

                if found is None:
                    self.error(400, "LfsFileUnknownToCas")
                    return

                files[value["path"]] = found

            elif key == "deletedFile":
                files.pop(value["path"], None)

        with lock:
            repo.files = files
            repo.commits += 1

        url = "%s/%s/commit/%s" % (self.base(), name, repo.sha())
        self.send(200, {"success": True, "commitUrl": url,
                        "commitOid": repo.sha(), "hookOutput": ""})

    def token(self, _kind, name, scope, _rev):
        minted = token(name, scope)

        # the hf command reads the headers, all other clients read the body

        self.send(200, minted, headers={
            "X-Xet-Cas-Url": minted["casUrl"],
            "X-Xet-Access-Token": minted["accessToken"],
            "X-Xet-Token-Expiration": str(minted["exp"])})

    # ---- downloads

    def resolve(self, kind, name, rev, path):
        kind = kind or "models"
        repo = repo_of(kind, name)
        file = repo.files.get(path)

        if file is None:
            self.error(404, "EntryNotFound")
            return

        common = {"X-Repo-Commit": repo.sha()}

        if "xet" not in file:
            etag = hashlib.sha1(file["inline"]).hexdigest()
            self.send(200, file["inline"], "application/octet-stream",
                      {**common, "ETag": '"%s"' % etag,
                       "Content-Range": "bytes 0-%d/%d" % (file["size"] - 1,
                                                           file["size"])})
            return

        auth = "%s/api/%s/%s/xet-read-token/%s" % (self.base(), kind, name,
                                                   rev)
        info = "%s/v1/reconstructions/%s" % (token(name, "read")["casUrl"],
                                             file["xet"])
        common.update({
            "ETag": '"%s"' % file["sha256"],
            "X-Linked-ETag": '"%s"' % file["sha256"],
            "X-Linked-Size": str(file["size"]), "X-Xet-Hash": file["xet"],
            "Link": '<%s>; rel="xet-auth", <%s>; '
                    'rel="xet-reconstruction-info"' % (auth, info)})

        if self.command == "HEAD":
            common["Content-Length"] = str(file["size"])
            self.send(200, b"", "application/octet-stream", common)

        elif "vnd.xet-fileinfo" in self.headers.get("Accept", ""):
            self.send(200, {"hash": file["xet"]},
                      "application/vnd.xet-fileinfo+json", common)

        else:
            self.error(403, "SpeakXet")

    # ---- a browser

    def local(self, what, path):
        top = {"npm": args.npm, "file": tempfile.gettempdir(),
               "clients": os.path.dirname(os.path.abspath(__file__))}[what]
        full = os.path.realpath(path if what == "file"
                                else os.path.join(top, path[1:]))

        if os.path.commonpath([full, os.path.realpath(top)]) \
                != os.path.realpath(top) or not os.path.isfile(full):
            self.error(404, "NotFound")
            return

        kind = "text/javascript" if full.endswith(("js", "mjs")) \
            else mimetypes.guess_type(full)[0] or "application/octet-stream"

        with open(full, "rb") as file:
            self.send(200, file.read(), kind)

    def result(self):
        with lock:
            if self.command == "POST":
                results.append(json.loads(self.body))
                found = {}
            else:
                found = results.pop(0) if results else None

        self.send(200, found)

    # ---- faults

    def trouble(self, what):
        url = self.path[len("/shim/" + what):]
        path, _, query = url.partition("?")
        key = (what, url if what == "expire" else path)

        with lock:
            first = key not in seen
            seen.add(key)

        if what == "expire" and first:
            query = re.sub(r"\be=\d+", "e=1", query)

        server = urllib.parse.urlsplit(args.data)
        con = http.client.HTTPConnection(server.hostname, server.port)
        con.request(self.command, path + "?" + query, headers={
            n: v for n, v in self.headers.items()
            if n.lower() in ("range", "if-range")})
        answer = con.getresponse()
        body = answer.read()
        con.close()

        headers = {n: v for n, v in answer.getheaders()
                   if n.lower() in ("content-range", "etag")}
        kind = answer.getheader("Content-Type")

        if what == "break" and first and len(body) > 1:
            headers["Content-Length"] = str(len(body))
            self.close_connection = True
            body = body[:len(body) // 2]

        self.send(answer.status, body, kind, headers)


NAME = r"([\w.-]+/[\w.-]+)"
REPO = r"/api/(%s)/%s" % (KINDS, NAME)

ROUTES = [
    (r"/shim/calls", Handler.calls),
    (r"/shim/(expire|break)/.*", Handler.trouble),
    (r"/shim/(npm|file|clients)(/.*)", Handler.local),
    (r"/shim/result", Handler.result),
    (r"/api/whoami-v2", Handler.whoami),
    (r"/api/repos/create", Handler.create),
    (REPO + r"/preupload/([^/]+)", Handler.preupload),
    (REPO + r"/commit/([^/]+)", Handler.commit),
    (REPO + r"/xet-(read|write)-token/([^/]+)", Handler.token),
    (REPO + r"/tree/([^/]+)(?:/(.*))?", Handler.tree),
    (REPO + r"/paths-info/([^/]+)", Handler.paths_info),
    (REPO + r"(?:/revision/([^/]+))?", Handler.info),
    (r"(?:/(datasets|spaces))?/%s\.git/info/lfs/objects/batch" % NAME,
     Handler.batch),
    (r"(?:/(datasets|spaces))?/%s/resolve/([^/]+)/(.+)" % NAME,
     Handler.resolve),
]


def main():
    global args

    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--psql", required=True)
    parser.add_argument("--conninfo", required=True)
    parser.add_argument("--tokens", nargs="+", required=True)
    parser.add_argument("--data")
    parser.add_argument("--npm")
    args = parser.parse_args()

    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer(("127.0.0.1", args.port), Handler).serve_forever()


main()
