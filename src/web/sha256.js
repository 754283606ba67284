/*
 * SHA-256 of files.  crypto.subtle is fast, but it needs the complete file in
 * memory, and a page over https or of localhost.  Other files are read and
 * hashed in parts, at about 80 MB/s.
 */

const PART = 512 * 1024;
const NATIVE = 64 * 1024 * 1024;
const K = new Int32Array(64);
const START = new Int32Array(8);


/* The constants are the fractions of roots of the first primes. */

function constants() {
    let n = 0;

    for (let prime = 2; n < 64; prime++) {
        let divisor = 2;

        while (divisor * divisor <= prime && prime % divisor) {
            divisor++;
        }

        if (divisor * divisor <= prime) {
            continue;
        }

        if (n < 8) {
            START[n] = fraction(Math.sqrt(prime));
        }

        K[n++] = fraction(Math.cbrt(prime));
    }
}


const fraction = (x) => Math.floor((x - Math.floor(x)) * 2 ** 32);

constants();


/* Adds complete blocks of 64 bytes, from the position "at" up to "end". */

function add(sum, words, data, at, end) {
    const view = new DataView(data.buffer, data.byteOffset);

    for (; at + 64 <= end; at += 64) {
        for (let i = 0; i < 16; i++) {
            words[i] = view.getInt32(at + 4 * i);
        }

        for (let i = 16; i < 64; i++) {
            const x = words[i - 15];
            const y = words[i - 2];

            const s = (x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3;
            const t = (y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10;

            words[i] = (words[i - 16] + s | 0) + (words[i - 7] + t | 0) | 0;
        }

        rounds(sum, words);
    }

    return at;
}


function rounds(sum, words) {
    let a = sum[0] | 0, b = sum[1] | 0, c = sum[2] | 0, d = sum[3] | 0;
    let e = sum[4] | 0, f = sum[5] | 0, g = sum[6] | 0, i = sum[7] | 0;

    for (let n = 0; n < 64; n++) {
        const s = (e >>> 6 | e << 26) ^ (e >>> 11 | e << 21)
            ^ (e >>> 25 | e << 7);
        const t = (a >>> 2 | a << 30) ^ (a >>> 13 | a << 19)
            ^ (a >>> 22 | a << 10);
        const x = ((i + s | 0) + (e & f ^ ~e & g) | 0) + (K[n] + words[n] | 0)
            | 0;
        const y = t + (a & b ^ a & c ^ b & c) | 0;

        i = g; g = f; f = e; e = d + x | 0;
        d = c; c = b; b = a; a = x + y | 0;
    }

    sum[0] += a; sum[1] += b; sum[2] += c; sum[3] += d;
    sum[4] += e; sum[5] += f; sum[6] += g; sum[7] += i;
}


/*
 * Returns the SHA-256 of a Blob in hexadecimal.  "onpart" gets the number of
 * bytes that were read.
 */

export async function sha256(blob, signal, onpart = () => {}) {
    if (globalThis.crypto?.subtle && blob.size <= NATIVE) {
        const sum = await crypto.subtle.digest("SHA-256",
            await blob.arrayBuffer());

        signal?.throwIfAborted();
        onpart(blob.size);

        return hex(new Uint8Array(sum), 2);
    }

    return parts(blob, signal, onpart);
}


const hex = (numbers, digits) => Array.from(numbers,
    (x) => (x >>> 0).toString(16).padStart(digits, "0")).join("");


export async function parts(blob, signal, onpart) {
    const sum = START.slice();
    const words = new Int32Array(64);
    let rest = new Uint8Array(0);

    /* all parts but the last are multiples of 64 bytes */

    for (let at = 0; at < blob.size; at += PART) {
        const data = new Uint8Array(
            await blob.slice(at, at + PART).arrayBuffer());

        signal?.throwIfAborted();
        rest = data.subarray(add(sum, words, data, 0, data.length));
        onpart(at + data.length);
    }

    const last = new Uint8Array(rest.length < 56 ? 64 : 128);
    const view = new DataView(last.buffer);

    last.set(rest);
    last[rest.length] = 0x80;
    view.setUint32(last.length - 8, Math.floor(blob.size / 2 ** 29));
    view.setUint32(last.length - 4, blob.size * 8 % 2 ** 32);
    add(sum, words, last, 0, last.length);

    return hex(sum, 8);
}
