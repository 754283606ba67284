# Copyright (C) the ngx_http_xet_module authors

"""Runs operations of a client as rows of a table.  Prints each as JSON, a line.

    row(name, function, want)

want is the expected result of the function, or a function that checks the
result, or the expected exception, from raises().  A failed row contains the
actual result, or the traceback.
"""

import json
import traceback


class Refused:
    """An expected exception: its exact class, its status and its text."""

    def __init__(self, cls, status, text):
        self.cls = cls
        self.status = status
        self.text = text

    def is_met_by(self, e):
        if type(e) is not self.cls or self.text not in str(e):
            return False

        return self.status is None \
            or e.response.status_code == self.status


def raises(cls, status=None, text=""):
    return Refused(cls, status, text)


def tell(**line):
    print(json.dumps(line), flush=True)


def row(name, function, want=None):
    try:
        got = function()

    except Exception as e:
        if isinstance(want, Refused) and want.is_met_by(e):
            tell(row=name, ok=True)
            return None

        tell(row=name, ok=False, said=traceback.format_exc(limit=-4))
        return None

    if isinstance(want, Refused):
        ok = False

    elif callable(want):
        ok = bool(want(got))

    else:
        ok = want is None or got == want

    tell(row=name, ok=ok, said="" if ok else repr(got)[:2000])

    return got


def end():
    tell(end=True)
