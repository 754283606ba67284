"""Compares xet_token with PyJWT: each verifies tokens that the other mints.

    pip install 'pyjwt[crypto]'
    make tools
    python t/oracle/tokens.py [build/tools/xet_token]

Each run creates keys of all kinds.  Each side must accept the tokens of the
other, with the same claims.  If PyJWT refuses a token (wrong key, signature of
another algorithm, no signature), xet_token must refuse it too.  PyJWT mints
with all four algorithms, xet_token with HS256 and EdDSA.  Public keys are
passed as PEM files and as JWK sets.  Compact tokens are compared with those of
compact(), an independent implementation.  Prints a line for each check; exits
with 1 if one has failed.
"""

import base64
import hashlib
import hmac
import json
import os
import random
import subprocess
import sys
import tempfile
import time

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

ALGS = ("HS256", "EdDSA", "ES256", "RS256")
ROUNDS = 50

failed = 0


def check(good, what):
    global failed

    failed += not good
    print("%s - %s" % ("ok" if good else "not ok", what))


class Keys:
    """One key of each algorithm, and its files."""

    def __init__(self, work, name, rsa_bits=2048):
        self.work, self.name = work, name
        self.private = {
            "HS256": os.urandom(random.choice((32, 33, 64, 65, 200))),
            "EdDSA": ed25519.Ed25519PrivateKey.generate(),
            "ES256": ec.generate_private_key(ec.SECP256R1()),
            "RS256": rsa.generate_private_key(65537, rsa_bits),
        }
        self.public = {alg: key if alg == "HS256" else key.public_key()
                       for alg, key in self.private.items()}

    def write(self, kind, alg, data):
        path = os.path.join(self.work, "%s-%s-%s" % (self.name, kind, alg))

        with open(path, "wb") as f:
            f.write(data)

        return path

    def pem(self, alg):
        return self.write("public", alg, self.public[alg].public_bytes(
            serialization.Encoding.PEM,
            serialization.PublicFormat.SubjectPublicKeyInfo))

    def private_pem(self, alg):
        return self.write("private", alg, self.private[alg].private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption()))

    def jwk(self, alg):
        jwk = get_default_algorithms()[alg].to_jwk(self.public[alg],
                                                   as_dict=True)
        jwk.pop("key_ops", None)

        return dict(jwk, kid=alg, use="sig")

    def as_pem(self):
        options = ["--secret", "HS256",
                   self.write("secret", "HS256", self.private["HS256"])]

        for alg in ALGS[1:]:
            options += ["--pem", alg, self.pem(alg)]

        return options

    def as_jwks(self):
        keys = [self.jwk(alg) for alg in ALGS[1:]]
        random.shuffle(keys)

        return self.as_pem()[:3] + ["--jwks", self.write(
            "jwks", "all", json.dumps({"keys": keys}).encode())]


def run(tool, verb, options, stdin=""):
    return subprocess.run(
        [tool, verb] + [str(option) for option in options], input=stdin,
        stdout=subprocess.PIPE, check=True, encoding="utf-8",
    ).stdout.splitlines()


def claims(now):
    text = "".join(random.choice("abcXYZ019 \"\\/<>\u00e4\u20ac\U0001f600")
                   for _ in range(random.randrange(1, 40)))
    out = {"exp": now + random.randrange(100, 10 ** 9),
           "scope": random.choice(("read", "write", "read write", "delete",
                                   "write delete read"))}

    if random.random() < 0.7:
        out["sub"] = text

    if random.random() < 0.7:
        out["repo"] = random.choice(("a/b", "org/name_1.0-x", "x"))

    if random.random() < 0.5:
        out["nbf"] = now - random.randrange(1, 10 ** 6)

    if random.random() < 0.5:
        out["iat"] = now - random.randrange(1, 10 ** 6)

    if random.random() < 0.3:
        out["more"] = {"nested": [1, 2.5, None, text]}

    return out


def expected(c):
    out = {"exp": c["exp"], "nbf": c.get("nbf", 0), "iat": c.get("iat", 0),
           "scope": next(word for word in ("delete", "write", "read")
                         if word in c["scope"].split())}

    out.update((name, c[name]) for name in ("sub", "repo") if name in c)

    return out


def there(tool, keys, options, what):
    """PyJWT mints, xet_token verifies."""

    now = int(time.time())

    for alg in ALGS:
        given = [dict(claims(now), iss="hub", aud=random.choice(
            ("cas", ["cas"], ["x", "cas"]))) for _ in range(ROUNDS)]
        tokens = [jwt.encode(
            c, keys.private[alg], alg,
            random.choice((None, {"kid": alg}, {"typ": "at+jwt"})),
            sort_headers=random.random() < 0.5) for c in given]

        lines = run(tool, "verify", options + ["--iss", "hub", "--aud", "cas",
                                               "--now", now],
                    "\n".join(tokens) + "\n")
        good = sum(line[:3] == "ok "
                   and json.loads(line[3:]) == expected(c)
                   for line, c in zip(lines, given))

        check(good == ROUNDS, "%s by PyJWT, %s: %d of %d"
              % (alg, what, good, ROUNDS))


def signers(keys):
    return {
        "HS256": ["--secret", "HS256", keys.as_pem()[2]],
        "EdDSA": ["--private", "EdDSA", keys.private_pem("EdDSA")],
    }


def back(tool, keys):
    """xet_token mints JWT, PyJWT verifies."""

    now = int(time.time())

    for alg, options in signers(keys).items():
        good = 0

        for _ in range(ROUNDS):
            c = claims(now)
            c.pop("more", None)
            c["scope"] = random.choice(("read", "write", "delete"))
            args = options + ["--iss", "hub", "--aud", "cas"]

            for name in ("exp", "nbf", "iat", "sub", "repo"):
                if name in c:
                    args += ["--" + name, c[name]]

            if c["scope"] != "read":
                args.append("--" + c["scope"])

            token, = run(tool, "mint", args + ["--jwt"])
            got = jwt.decode(token, keys.public[alg], [alg], audience="cas",
                             issuer="hub")
            good += (got == dict(c, iss="hub", aud="cas")
                     and jwt.get_unverified_header(token)
                     == {"alg": alg, "typ": "JWT", "kid": alg})

        check(good == ROUNDS, "%s by xet_token: %d of %d"
              % (alg, good, ROUNDS))


DIGITS = ("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
          "abcdefghijklmnopqrstuvwxyz")
LENGTHS = (0, 2, 3, 5, 6, 7, 9, 10, 11)


def base62(data):
    out = ""

    for i in range(0, len(data), 8):
        block = data[i:i + 8]
        number = int.from_bytes(block, "big")
        digits = []

        for _ in range(LENGTHS[len(block)]):
            number, digit = divmod(number, 62)
            digits.insert(0, DIGITS[digit])

        out += "".join(digits)

    return out


def compact(key, alg, c, first=None, more=b""):
    """The form that src/core/access/xet_token_compact.c describes."""

    def sha(text):
        return hashlib.sha256(text.encode()).digest()

    has, rest = 0, c["exp"].to_bytes(7, "big")

    for i, name in enumerate(("iat", "nbf", "iss", "aud", "sub", "repo")):
        if name not in c:
            continue

        has |= 1 << i

        if i < 2:
            rest += c[name].to_bytes(7, "big")

        elif i < 4:
            rest += sha(c[name])[:8]

        else:
            text = c[name].encode()
            rest += (bytes([len(text)]) if name == "sub" else b"") + text

    if first is None:
        first = ("read", "write", "delete", "admin").index(c["scope"])

    body = sha(alg)[:4] + bytes([first, has]) + rest + more
    text = b"xet token 1\n" + body

    return "xet1" + base62(body + (
        hmac.new(key, text, hashlib.sha256).digest() if alg == "HS256"
        else key.sign(text)))


def compact_both(tool, keys):
    """Compact tokens: each side mints the same text, xet_token verifies."""

    now = int(time.time())

    for alg, options in signers(keys).items():
        good, same = 0, 0

        for _ in range(ROUNDS):
            c = claims(now)
            c.pop("more", None)
            c["scope"] = random.choice(("read", "write", "delete"))
            c["sub"] = c.get("sub", "")[:12]
            token = compact(keys.private[alg], alg,
                            dict(c, iss="hub", aud="cas"))
            args = options + ["--iss", "hub", "--aud", "cas"]

            for name in ("exp", "nbf", "iat", "sub", "repo"):
                if name in c:
                    args += ["--" + name, c[name]]

            if c["scope"] != "read":
                args.append("--" + c["scope"])

            same += run(tool, "mint", args) == [token]
            line, = run(tool, "verify", options + ["--iss", "hub", "--aud",
                                                   "cas", "--now", now],
                        token + "\n")
            good += (line[:3] == "ok "
                     and json.loads(line[3:]) == expected(c))

        check(same == ROUNDS, "%s, compact: the same text: %d of %d"
              % (alg, same, ROUNDS))
        check(good == ROUNDS, "%s, compact: %d of %d" % (alg, good, ROUNDS))


def compact_refused(tool, keys, others):
    now = int(time.time())
    good = {"exp": now + 600, "scope": "read"}

    for alg, options in signers(keys).items():
        mine, other = keys.private[alg], others.private[alg]
        token = compact(mine, alg, good)

        for text, want in (
                (token, "ok "),
                (compact(other, alg, good), "TOKEN_SIGNATURE"),
                (compact(mine, alg, dict(good, exp=now - 1)),
                 "TOKEN_EXPIRED"),
                (compact(mine, alg, dict(good, nbf=now + 600)),
                 "TOKEN_EARLY"),
                (compact(mine, alg, good, first=8), "TOKEN_CLAIMS"),
                (compact(mine, alg, good, more=b"x"), "TOKEN_CLAIMS"),
                (compact(mine, alg, dict(good, repo="a/../b")),
                 "TOKEN_CLAIMS"),
                ("xet2" + token[4:], "TOKEN_SYNTAX"),
                (token + "0", "TOKEN_S"),
                (token[:-1], "TOKEN_S"),
                (token[:4] + "zzzzzzzzzzz" + token[15:], "TOKEN_SYNTAX")):
            line, = run(tool, "verify", options + ["--now", now],
                        text + "\n")
            check(line.startswith(want), "%s, compact: %s: %s"
                  % (alg, want, line))


def refused(tool, keys, others):
    """Tokens that both sides must refuse, with the expected statuses."""

    now = int(time.time())
    good = {"exp": now + 600, "scope": "read"}
    cases = []

    for alg in ALGS:
        cases += [
            (jwt.encode(good, others.private[alg], alg), "TOKEN_SIGNATURE"),
            (jwt.encode(dict(good, exp=now - 1), keys.private[alg], alg),
             "TOKEN_EXPIRED"),
            (jwt.encode(dict(good, nbf=now + 600), keys.private[alg], alg),
             "TOKEN_EARLY"),
            (jwt.encode(good, keys.private[alg], alg, {"kid": "other"}),
             "TOKEN_KEY"),
            (jwt.encode(good, keys.private[alg], alg, {"crit": ["x"]}),
             "TOKEN_CRIT"),
            (jwt.encode(dict(good, exp=str(now + 600)), keys.private[alg],
                        alg), "TOKEN_CLAIMS"),
            (jwt.encode({"scope": "read"}, keys.private[alg], alg),
             "TOKEN_CLAIMS"),
            (jwt.encode({"exp": now + 600}, keys.private[alg], alg),
             "TOKEN_SCOPE"),
        ]

    cases += [
        (jwt.encode(good, None, "none"), "TOKEN_ALG"),
        (jwt.encode(good, keys.private["HS256"] * 2, "HS512"), "TOKEN_ALG"),
        (jwt.encode(good, keys.private["RS256"], "RS512"), "TOKEN_ALG"),
        (jwt.encode(good, keys.private["RS256"], "PS256"), "TOKEN_ALG"),
    ]

    # PyJWT refuses a PEM file as a secret, so by_hand() signs the token

    for alg in ALGS[1:]:
        with open(keys.pem(alg), "rb") as f:
            token = by_hand(f.read(), good)

        cases.append((token, "TOKEN_SIGNATURE"))

    lines = run(tool, "verify", keys.as_pem() + ["--now", now],
                "\n".join(token for token, _ in cases) + "\n")

    check(len(lines) == len(cases), "%d answers" % len(lines))

    for line, (token, want) in zip(lines, cases):
        header = token.split(".")[0]
        header = base64.urlsafe_b64decode(header + "=" * (-len(header) % 4))
        check(line == want, "%s: %s" % (header.decode(), line))


def by_hand(secret, payload):
    def encode(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    text = (encode(b'{"alg":"HS256","typ":"JWT"}') + b"."
            + encode(json.dumps(payload).encode()))

    return (text + b"." + encode(hmac.new(secret, text, hashlib.sha256)
                                 .digest())).decode()


def main():
    tool = sys.argv[1] if len(sys.argv) > 1 else "build/tools/xet_token"

    with tempfile.TemporaryDirectory() as work:
        keys = Keys(work, "ours")
        others = Keys(work, "others", 3072)

        there(tool, keys, keys.as_pem(), "PEM")
        there(tool, keys, keys.as_jwks(), "JWK set")
        there(tool, others, others.as_jwks(), "JWK set, RSA of 3072 bits")
        back(tool, keys)
        compact_both(tool, keys)
        compact_refused(tool, keys, others)
        refused(tool, keys, others)

    print("PyJWT %s: %s" % (jwt.__version__,
                            "%d failed" % failed if failed else "all agree"))

    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
