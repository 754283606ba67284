# Copyright (C) the ngx_http_xet_module authors

# A proxy in front of a store, which injects faults.  t/lib/Test/Xet/S3Fault.pm
# runs it and sends the rules.
#
#     python3 s3_fault.py PORT UPSTREAM_PORT CONTROL [CERTIFICATE KEY]
#
# Bytes and headers pass unchanged, so that signatures stay valid.  CONTROL is
# a Unix socket for commands: each command and each response is a line of JSON.

import asyncio
import collections
import json
import re
import socket
import ssl
import struct
import sys
import time
import urllib.parse

PIECE = 65536
HEAD_MAX = 1 << 17
SEEN_MAX = 100000


class Cut(Exception):
    """Ends the connections to the client and to the store."""


class Rule:
    def __init__(self, number, said):
        self.number = number
        self.do = said['do']
        self.op = said.get('op')
        self.match = re.compile(said['match']) if said.get('match') else None
        self.skip = said.get('skip', 0)
        self.count = said.get('count')          # None: until cleared
        self.said = said
        self.used = 0
        self.cleared = False

    def takes(self, request):
        if self.op and self.op not in (request.method, request.op):
            return False

        if self.match and not self.match.search(request.target):
            return False

        if self.count is not None and self.used >= self.count:
            return False

        if self.skip > 0:
            self.skip -= 1
            return False

        self.used += 1

        return True

    def get(self, name, default=None):
        return self.said.get(name, default)


NO_RULE = Rule(0, {'do': 'pass'})


def operation(method, path, query, headers):
    """Returns the name of the operation in S3."""

    parts = path.split('/', 2)
    name = 'Object' if len(parts) > 2 and parts[2] else 'Bucket'

    if name == 'Bucket':
        if method == 'GET':
            return ('ListMultipartUploads' if 'uploads' in query
                    else 'ListObjectsV2' if 'list-type' in query
                    else 'ListObjects')

        return {'PUT': 'CreateBucket', 'DELETE': 'DeleteBucket',
                'HEAD': 'HeadBucket'}.get(method, method)

    if 'uploads' in query:
        return 'CreateMultipartUpload'

    copy = 'x-amz-copy-source' in headers

    if 'uploadId' in query:
        return {'PUT': 'UploadPartCopy' if copy else 'UploadPart',
                'POST': 'CompleteMultipartUpload',
                'DELETE': 'AbortMultipartUpload',
                'GET': 'ListParts'}.get(method, method)

    if copy:
        return 'CopyObject'

    return method.capitalize() + 'Object'


class Head:
    def __init__(self, raw):
        lines = raw.decode('latin-1').split('\r\n')

        self.raw = raw
        self.first = lines[0]
        self.headers = {}

        for line in lines[1:]:
            name, colon, value = line.partition(':')

            if colon:
                self.headers[name.strip().lower()] = value.strip()

    def chunked(self):
        return 'chunked' in self.headers.get('transfer-encoding', '').lower()

    def length(self):
        return int(self.headers.get('content-length', '0'))

    def closes(self):
        return (self.headers.get('connection', '').lower() == 'close'
                or ' HTTP/1.0' in self.first or self.first.startswith(
                    'HTTP/1.0'))


class Request(Head):
    def __init__(self, raw):
        super().__init__(raw)

        self.method, self.target = self.first.split(' ')[:2]
        self.path, _, query = self.target.partition('?')
        self.query = urllib.parse.parse_qs(query, keep_blank_values=True)
        self.op = operation(self.method, self.path, self.query, self.headers)
        self.status = 0
        self.rule = NO_RULE
        self.sent = 0           # body bytes sent to the store
        self.got = 0            # body bytes of the response sent to the client
        self.began = time.time()

    def record(self):
        return {'method': self.method, 'op': self.op, 'target': self.target,
                'headers': self.headers, 'status': self.status,
                'fault': self.rule.number, 'sent': self.sent,
                'got': self.got, 'began': self.began,
                'took': time.time() - self.began}


class Answer(Head):
    def __init__(self, raw):
        super().__init__(raw)
        self.status = int(self.first.split(' ')[1])

    def bare(self, request):
        return (request.method == 'HEAD' or self.status in (204, 304)
                or self.status < 200)


async def read_head(reader):
    """Returns None at the end of the connection."""

    try:
        return await reader.readuntil(b'\r\n\r\n')
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise Cut from None
        return None


async def pieces(reader, head, until_eof):
    """Yields the bytes of a body with its framing, and the number of bytes
    without framing."""

    if head.chunked():
        while True:
            line = await reader.readuntil(b'\r\n')
            size = int(line.split(b';')[0], 16)
            yield line, 0

            left = size

            while left:
                data = await reader.read(min(left, PIECE))

                if not data:
                    raise Cut

                left -= len(data)
                yield data, len(data)

            if size:
                yield await reader.readexactly(2), 0
                continue

            while True:                         # trailers
                line = await reader.readuntil(b'\r\n')
                yield line, 0

                if line == b'\r\n':
                    return

    elif 'content-length' in head.headers or not until_eof:
        left = head.length()

        while left:
            data = await reader.read(min(left, PIECE))

            if not data:
                raise Cut

            left -= len(data)
            yield data, len(data)

    else:
        while True:
            data = await reader.read(PIECE)

            if not data:
                return

            yield data, len(data)


class Body:
    """Forwards a body from one side to the other, with the rule's fault."""

    def __init__(self, way, rule, total):
        mine = rule.get('way', 'answer') == way

        self.cut = self.stall = self.flip = None
        self.rate = None

        if not mine:
            return

        at = rule.get('at', total // 2)

        if rule.do == 'cut':
            self.cut = at
        elif rule.do == 'stall':
            self.stall = at
        elif rule.do == 'flip':
            self.flip = min(at, max(total - 1, 0))
        elif rule.do == 'slow':
            self.rate = rule.get('rate', 65536)

    async def carry(self, source, writer, rule, account, wait):
        at = 0

        async for data, n in source:
            if n:
                data, rest = await self.broken(data, at, rule, wait)
                at += len(data)
                account(len(data))
            else:
                rest = False

            if self.rate and n:
                await wait(n / self.rate)

            writer.write(data)
            await writer.drain()

            if rest:
                raise Cut

        # a cut at or after the end of the body

        if self.cut is not None and at <= self.cut:
            raise Cut

    async def broken(self, data, at, rule, wait):
        """Returns the bytes to forward, and whether the body is cut there."""

        end = at + len(data)

        if self.flip is not None and at <= self.flip < end:
            data = bytearray(data)
            data[self.flip - at] ^= rule.get('mask', 1)
            data = bytes(data)

        if self.stall is not None and at <= self.stall <= end:
            self.stall = None
            await wait(rule.get('ms', 1000) / 1000)

        if self.cut is not None and self.cut < end:
            return data[:self.cut - at], True

        return data, False


class Proxy:
    def __init__(self, port, upstream, tls):
        self.port = port
        self.upstream = upstream
        self.tls = tls
        self.server = None
        self.writers = set()
        self.rules = {}
        self.known = {}                 # includes cleared rules
        self.number = 0
        self.zero()

    def zero(self):
        self.seen = collections.deque(maxlen=SEEN_MAX)
        self.connections = 0            # connections since zero()
        self.most = len(self.writers)   # maximum of concurrent connections
        self.busy = 0                   # requests in progress
        self.most_busy = 0
        self.sent = 0
        self.got = 0

    async def open(self):
        self.server = await asyncio.start_server(
            self.client, '127.0.0.1', self.port, limit=HEAD_MAX,
            ssl=self.tls, backlog=256)

    def shut(self):
        if self.server:
            self.server.close()
            self.server = None

    def drop(self):
        for writer in list(self.writers):
            reset(writer)

    def rule_for(self, request):
        for rule in self.rules.values():
            if rule.takes(request):
                return rule

        return NO_RULE

    async def client(self, reader, writer):
        self.writers.add(writer)
        self.connections += 1
        self.most = max(self.most, len(self.writers))

        try:
            while await self.one(reader, writer):
                pass
        except (Cut, OSError, asyncio.IncompleteReadError,
                asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    async def one(self, reader, writer):
        """Handles a request; returns whether the connection stays open."""

        raw = await read_head(reader)

        if raw is None:
            return False

        request = Request(raw)
        request.rule = self.rule_for(request)

        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)

        try:
            return await self.serve(request, reader, writer)
        except Cut:
            if request.rule.get('reset'):
                reset(writer)
            raise
        finally:
            self.busy -= 1
            self.seen.append(request.record())

    async def serve(self, request, reader, writer):
        rule = request.rule

        async def wait(seconds):
            await patient(seconds, reader,
                          lambda: rule.get('free') and rule.cleared)

        if rule.do == 'drop':
            raise Cut

        if rule.do == 'wait':
            await wait(rule.get('ms', 1000) / 1000)

        if rule.do == 'status' and not rule.get('done'):
            return await self.refuse(request, reader, writer)

        up_reader, up_writer = await asyncio.open_connection(
            '127.0.0.1', self.upstream, limit=HEAD_MAX)
        nodelay(up_writer)
        nodelay(writer)

        task = asyncio.ensure_future(
            self.ask(request, reader, up_writer, wait))

        try:
            return await self.answer(request, reader, writer, up_reader,
                                     task, wait)
        finally:
            task.cancel()
            up_writer.close()

    async def ask(self, request, reader, up_writer, wait):
        """Sends the request to the store."""

        def account(n):
            request.sent += n
            self.sent += n

        up_writer.write(request.raw)
        await up_writer.drain()

        body = Body('request', request.rule, request.length())
        await body.carry(pieces(reader, request, False), up_writer,
                         request.rule, account, wait)

    async def head_of_answer(self, up_reader, task):
        """Waits for the header of the response, or raises Cut if the request
        can't be sent."""

        head = asyncio.ensure_future(read_head(up_reader))

        try:
            while not head.done():
                await asyncio.wait(
                    {head} if task.done() else {head, task},
                    return_when=asyncio.FIRST_COMPLETED)

                # if the store has closed the connection, it may have sent an
                # error response before; if the client has closed the
                # connection, or a fault cuts it, the request ends

                if task.done() and not head.done() and task.exception():
                    if isinstance(task.exception(), ConnectionError):
                        await asyncio.wait({head}, timeout=2)

                    if not head.done():
                        raise Cut
        finally:
            if not head.done():
                head.cancel()

        raw = head.result()

        if raw is None:
            raise Cut

        return Answer(raw)

    async def answer(self, request, reader, writer, up_reader, task, wait):
        rule = request.rule

        def account(n):
            request.got += n
            self.got += n

        while True:
            answer = await self.head_of_answer(up_reader, task)

            if answer.status >= 200:
                break

            writer.write(answer.raw)
            await writer.drain()

        request.status = answer.status
        bare = answer.bare(request)

        if rule.do in ('lost', 'status'):
            if not bare:
                async for _ in pieces(up_reader, answer, True):
                    pass

            await task

            if rule.do == 'lost':
                raise Cut

            return await self.refuse(request, None, writer)

        if rule.do == 'hold':
            await wait(rule.get('ms', 1000) / 1000)

        said = ''.join(line + '\r\n' for line in rule.get('headers', [])
                       if rule.do == 'say')

        writer.write(answer.raw[:-2] + said.encode() + b'\r\n')
        await writer.drain()

        if not bare:
            body = Body('answer', rule, answer.length())
            await body.carry(pieces(up_reader, answer, True), writer, rule,
                             account, wait)

        # if the response came early, the rest of the request is discarded

        await asyncio.wait({task}, timeout=0.5)

        if not task.done() or task.exception():
            return False

        return not (request.closes() or answer.closes()
                    or not bare and not answer.chunked()
                    and 'content-length' not in answer.headers)

    async def refuse(self, request, reader, writer):
        """Sends the error response of a rule."""

        rule = request.rule
        status = rule.get('status', 500)
        code = rule.get('code', {500: 'InternalError', 503: 'SlowDown',
                                 507: 'InsufficientStorage',
                                 403: 'AccessDenied'}.get(status, 'Error'))
        early = rule.get('early')

        if reader and not early:
            if request.headers.get('expect'):
                writer.write(b'HTTP/1.1 100 Continue\r\n\r\n')

            async for _, n in pieces(reader, request, False):
                request.sent += n

        body = rule.get('body') or (
            '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>%s</Code>'
            '<Message>of the fault proxy</Message></Error>' % code)
        lines = ['HTTP/1.1 %d Fault' % status,
                 'Content-Type: application/xml',
                 'Content-Length: %d' % len(body.encode()),
                 'Date: ' + time.strftime('%a, %d %b %Y %H:%M:%S GMT',
                                          time.gmtime())]

        if rule.get('retry_after') is not None:
            lines.append('Retry-After: %s' % rule.get('retry_after'))

        lines += rule.get('headers', [])

        if early:
            lines.append('Connection: close')

        request.status = status
        writer.write('\r\n'.join(lines + ['', '']).encode())

        if request.method != 'HEAD':
            writer.write(body.encode())

        await writer.drain()

        return not (early or request.closes())

    # ----------------------------------------------------------------------
    # commands of the test

    async def control(self, reader, writer):
        while True:
            line = await reader.readline()

            if not line:
                break

            try:
                said = json.loads(line)
                result = await getattr(self, 'do_' + said.pop('command'))(
                    said)
            except Exception as error:
                result = {'error': '%s: %s' % (type(error).__name__, error)}

            writer.write(json.dumps(result).encode() + b'\n')
            await writer.drain()

        writer.close()

    async def do_add(self, said):
        self.number += 1
        rule = Rule(self.number, said)
        self.rules[self.number] = self.known[self.number] = rule

        return {'rule': self.number}

    async def do_clear(self, said):
        for number in [said['rule']] if said.get('rule') else list(self.rules):
            rule = self.rules.pop(number, None)

            if rule:
                rule.cleared = True

        return {}

    async def do_used(self, said):
        return {'used': self.known[said['rule']].used}

    async def do_zero(self, said):
        self.zero()

        return {}

    async def do_seen(self, said):
        return {'seen': list(self.seen)}

    async def do_stats(self, said):
        by_op = collections.Counter(one['op'] for one in self.seen)
        by_method = collections.Counter(one['method'] for one in self.seen)

        return {'requests': len(self.seen), 'op': by_op, 'method': by_method,
                'connections': self.connections, 'open': len(self.writers),
                'most_open': self.most, 'busy': self.busy,
                'most_busy': self.most_busy, 'sent': self.sent,
                'got': self.got}

    async def do_drop(self, said):
        self.drop()

        return {}

    async def do_close(self, said):
        self.shut()
        self.drop()

        return {}

    async def do_open(self, said):
        if not self.server:
            await self.open()

        return {}


def nodelay(writer):
    sock = writer.get_extra_info('socket')

    if sock is not None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def reset(writer):
    sock = writer.get_extra_info('socket')

    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                        struct.pack('ii', 1, 0))

    writer.transport.abort()


async def patient(seconds, reader, free):
    """Sleeps until free() is true; raises Cut if the client disconnects."""

    end = time.monotonic() + seconds

    while time.monotonic() < end and not free():
        if reader.at_eof():
            raise Cut

        await asyncio.sleep(min(0.05, max(end - time.monotonic(), 0)))


async def main():
    port, upstream, control = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    tls = None

    if len(sys.argv) > 5:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(sys.argv[4], sys.argv[5])

    proxy = Proxy(port, upstream, tls)

    await proxy.open()
    await asyncio.start_unix_server(proxy.control, control, limit=1 << 20)
    await asyncio.Event().wait()


asyncio.run(main())
