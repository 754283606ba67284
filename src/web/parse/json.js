/*
 * A strict parser of JSON.  Unlike JSON.parse() it keeps the order of keys and
 * every digit of long numbers, finds keys that occur twice, and limits the
 * depth, so that no file can exhaust the stack.
 *
 * Objects become Maps, arrays become Arrays, and a number that a double cannot
 * hold becomes an Exact.  Throws SyntaxError with the line of the fault.
 */

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPES = { "\"": "\"", "\\": "\\", "/": "/", b: "\b", f: "\f",
    n: "\n", r: "\r", t: "\t" };


/* A number as it is written in the file. */

export class Exact {
    constructor(text) {
        this.text = text;
    }

    toString() {
        return this.text;
    }
}


/*
 * Parses a text.  "depth" limits the nesting, "values" the number of values,
 * and "repeated" is called with each key that an object has twice.
 */

export function parseJson(text, options = {}) {
    const parser = new Parser(text, options);
    const value = parser.value(0);

    parser.skip();

    if (parser.at < text.length) {
        parser.fail("text follows the value");
    }

    return value;
}


class Parser {
    constructor(text, { depth = 200, values = 5e6, repeated = () => {} }) {
        Object.assign(this, { text, depth, left: values, repeated, at: 0 });
    }

    fail(reason) {
        const line = this.text.slice(0, this.at).split("\n").length;

        throw new SyntaxError(`${reason} in line ${line}`);
    }

    take(pattern) {
        pattern.lastIndex = this.at;

        const found = pattern.exec(this.text)?.[0];

        this.at += found ? found.length : 0;

        return found;
    }

    skip() {
        this.take(SPACE);
    }

    value(level) {
        this.skip();

        if (level > this.depth) {
            this.fail(`values are nested more than ${this.depth} deep`);
        }

        if (--this.left < 0) {
            this.fail("there are too many values");
        }

        switch (this.text[this.at]) {
        case "{":
            return this.object(level);
        case "[":
            return this.array(level);
        case "\"":
            return this.string();
        case "t":
            return this.word("true", true);
        case "f":
            return this.word("false", false);
        case "n":
            return this.word("null", null);
        default:
            return this.number();
        }
    }

    word(word, value) {
        if (!this.text.startsWith(word, this.at)) {
            this.fail("there is an unknown word");
        }

        this.at += word.length;

        return value;
    }

    number() {
        const text = this.take(NUMBER);

        if (!text) {
            this.fail(this.at < this.text.length ? "a value is missing"
                                                 : "the text ends early");
        }

        const number = Number(text);
        const plain = /^-?\d+$/.test(text);

        return plain ? (Number.isSafeInteger(number) ? number
                                                     : new Exact(text))
            : (String(number) === text ? number : new Exact(text));
    }

    string() {
        const parts = [];

        for (this.at++; ;) {
            parts.push(this.take(PLAIN));

            const end = this.text[this.at++];

            if (end === "\"") {
                return parts.length === 1 ? parts[0] : parts.join("");
            }

            if (end !== "\\") {
                this.at--;
                this.fail("a string does not end");
            }

            parts.push(this.escape());
        }
    }

    escape() {
        const letter = this.text[this.at++];

        if (letter === "u") {
            const digits = this.text.slice(this.at, this.at + 4);

            if (!/^[0-9a-fA-F]{4}$/.test(digits)) {
                this.fail("a string has a malformed escape");
            }

            this.at += 4;

            return String.fromCharCode(parseInt(digits, 16));
        }

        if (!Object.hasOwn(ESCAPES, letter)) {
            this.fail("a string has an unknown escape");
        }

        return ESCAPES[letter];
    }

    /* Tells whether another member follows, after the bracket or a comma. */

    more(end, first) {
        this.skip();

        const letter = this.text[this.at];

        if (letter === end) {
            this.at++;
            return false;
        }

        if (!first) {
            if (letter !== ",") {
                this.fail(letter ? "a comma is missing"
                                 : "the text ends early");
            }

            this.at++;
            this.skip();

            if (this.text[this.at] === end) {
                this.fail("nothing follows a comma");
            }
        }

        return true;
    }

    array(level) {
        const values = [];

        for (this.at++; this.more("]", values.length === 0);) {
            values.push(this.value(level + 1));
        }

        return values;
    }

    object(level) {
        const values = new Map();
        let first = true;

        for (this.at++; this.more("}", first); first = false) {
            if (this.text[this.at] !== "\"") {
                this.fail("a key is missing");
            }

            const key = this.string();

            this.skip();

            if (this.text[this.at++] !== ":") {
                this.at--;
                this.fail("a colon is missing");
            }

            if (values.has(key)) {
                this.repeated(key);
            }

            values.set(key, this.value(level + 1));
        }

        return values;
    }
}
