# Copyright (C) the ngx_http_xet_module authors

# An object store for tests: moto's S3, with checks of signatures, clocks and
# checksums (s3_check.py), and with persistent connections.
#
#     python s3_moto.py PORT KEYS REGION [ADDRESS]
#
# KEYS has the format of the credentials file of the AWS tools; each profile in
# it has full access.  If a section [clock] has "seconds", the clock is ahead by
# this number, for signatures and in the Date header.  Objects are in memory, so
# the store is not restarted in tests; signals control it:
#
#     USR1  closes the port and resets all connections
#     USR2  opens the port again
#     HUP   reads KEYS again

import configparser
import http.server
import io
import os
import signal
import socket
import socketserver
import struct
import sys
import threading
import time
import traceback

# bucket names may be in paths, or in host names below these domains

os.environ.setdefault('AWS_ACCESS_KEY_ID', 'unused')
os.environ.setdefault('AWS_SECRET_ACCESS_KEY', 'unused')
os.environ['TEST_SERVER_MODE'] = 'true'

from moto.moto_server.werkzeug_app import (             # noqa: E402
    MotoRequestHandler, create_backend_app)
from werkzeug.test import run_wsgi_app                  # noqa: E402
from werkzeug.wsgi import get_input_stream              # noqa: E402

import s3_check                                         # noqa: E402

SIGNALS = {signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM,
           signal.SIGINT}


class Handler(MotoRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True
    timeout = 300

    def run_wsgi(self):
        environ = self.make_environ()
        body = get_input_stream(environ).read()
        request = s3_check.Request(self.command, self.path,
                                   self.headers.items(), body)

        try:
            s3_check.check(request, self.server.keys, self.server.region,
                           time.time() + self.server.clock)
        except s3_check.Refused as refused:
            self.refuse(refused)
            return

        try:
            answer = self.ask(environ, body)
        except Exception as error:
            self.refuse(self.fault(request, error))
        else:
            self.answer(*answer)

    def ask(self, environ, body):
        environ['wsgi.input'] = io.BytesIO(body)
        environ['CONTENT_LENGTH'] = str(len(body))
        environ.pop('HTTP_TRANSFER_ENCODING', None)

        # moto checks whether the object exists, and then writes: without the
        # lock, concurrent requests would defeat If-None-Match; and a list fails
        # if an object is removed while moto reads the names

        with self.server.lock:
            parts, status, headers = run_wsgi_app(self.server.app, environ,
                                                  buffered=True)

        return int(status.split()[0]), list(headers), b''.join(parts)

    def fault(self, request, error):
        """Converts an exception of moto: it does not handle a part of an
        upload that does not exist any more."""

        if isinstance(error, KeyError) and error.args[0] in dict(
                request.query).values():
            return s3_check.Refused(404, 'NoSuchUpload', 'The specified '
                                    'multipart upload does not exist.')

        traceback.print_exc()

        return s3_check.Refused(500, 'InternalError', 'moto: %s' % error)

    def refuse(self, refused):
        self.answer(refused.status, [('Content-Type', 'application/xml')],
                    refused.body())

    def answer(self, status, headers, body):
        said = {name.lower(): value for name, value in headers}
        bare = self.command == 'HEAD' or status in (204, 304)

        self.send_response(status)

        for name, value in headers:
            if name.lower() not in ('date', 'server', 'connection',
                                    'content-length', 'transfer-encoding'):
                self.send_header(name, value)

        if status not in (204, 304):
            self.send_header('Content-Length',
                             said.get('content-length', '0') if bare
                             else str(len(body)))

        if self.headers.get('Connection', '').lower() == 'close':
            self.send_header('Connection', 'close')

        self.end_headers()

        if not bare:
            self.wfile.write(body)

    def date_time_string(self, timestamp=None):
        return super().date_time_string(time.time() + self.server.clock)

    # werkzeug would log terminal escape codes, and the signature in a URL

    def log_request(self, code='-', size='-'):
        print('%s %s %s' % (self.command, self.path.partition('?')[0],
                            int(code)), flush=True)

    def log(self, type, message, *args):
        print(message % args, flush=True)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    ssl_context = None
    multithread = True
    multiprocess = False

    keys = {}
    clock = 0
    region = ''
    app = create_backend_app('s3')
    lock = threading.Lock()

    def __init__(self, port, address='127.0.0.1'):
        self.open = set()
        super().__init__((address, port), Handler)

    def log(self, type, message, *args):
        print(message % args, flush=True)

    def process_request(self, request, client_address):
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def start(self):
        threading.Thread(target=self.serve_forever, args=(0.02,),
                         daemon=True).start()

    def reset(self):
        self.shutdown()
        self.server_close()

        for request in list(self.open):
            try:
                request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   struct.pack('ii', 1, 0))
                request.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def read_keys(file):
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(file)

    Server.clock = parser.getint('clock', 'seconds', fallback=0)
    Server.keys = {
        part['aws_access_key_id']: (part['aws_secret_access_key'],
                                    part.get('aws_session_token', ''))
        for part in (parser[name] for name in parser.sections()
                     if name != 'clock')}


def main():
    port, keys, region, address = int(sys.argv[1]), *sys.argv[2:5]

    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)

    read_keys(keys)
    Server.region = region

    server = Server(port, address)
    server.start()

    while True:
        got = signal.sigwait(SIGNALS)

        if got == signal.SIGHUP:
            read_keys(keys)

        elif got == signal.SIGUSR1:
            if server:
                server.reset()
                server = None

        elif got == signal.SIGUSR2:
            if not server:
                server = Server(port, address)
                server.start()

        else:
            os._exit(0)


main()
