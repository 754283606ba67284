#!/usr/bin/env python3

# Copyright (C) the ngx_http_xet_module authors

# A TLS connection that a test controls with commands on standard input, one per
# line: "send HEX"; "read" (prints the received bytes in hex, as a line);
# "notify" (sends close_notify, then closes the connection); "close" (closes it
# without close_notify); "reset".
#
#     tls_raw.py PORT PROTOCOL

import socket
import ssl
import struct
import sys


def main():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([sys.argv[2]])

    raw = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
    tls = context.wrap_socket(raw, suppress_ragged_eofs=True)

    print(tls.selected_alpn_protocol(), flush=True)

    for line in sys.stdin:
        word, _, data = line.strip().partition(' ')

        if word == 'send':
            tls.sendall(bytes.fromhex(data))

        elif word == 'read':
            tls.settimeout(20)
            print(tls.recv(65536).hex(), flush=True)

        elif word == 'notify':
            tls.settimeout(0.2)

            try:
                tls.unwrap()
            except OSError:
                pass

            return tls.close()

        elif word == 'close':
            return tls.detach() and None

        elif word == 'reset':
            tls.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                           struct.pack('ii', 1, 0))
            return tls.close()


main()
