# Copyright (C) the ngx_http_xet_module authors

# Checks that a real object store makes before it handles a request, and that
# moto does not make: the signature (AWS Signature Version 4, in the header or
# in the URL), its time and scope, the SHA-256 of the signed body, and declared
# checksums.  Uses only the standard library, except for checksums, and no code
# under test.

import base64
import binascii
import calendar
import hashlib
import hmac
import re
import time
import urllib.parse

from awscrt import checksums

SKEW = 15 * 60                  # maximum clock difference, in seconds
WEEK = 7 * 24 * 3600            # maximum validity of a URL, in seconds

ALGORITHM = 'AWS4-HMAC-SHA256'
UNSIGNED = 'UNSIGNED-PAYLOAD'

SUMS = {
    'sha256': lambda body: hashlib.sha256(body).digest(),
    'sha1': lambda body: hashlib.sha1(body).digest(),
    'crc32': lambda body: binascii.crc32(body).to_bytes(4, 'big'),
    'crc32c': lambda body: checksums.crc32c(body).to_bytes(4, 'big'),
    'crc64nvme': lambda body: checksums.crc64nvme(body).to_bytes(8, 'big'),
}


class Refused(Exception):
    """An error response to a request that fails a check."""

    def __init__(self, status, code, message, **more):
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.more = more

    def body(self):
        more = ''.join('<%s>%s</%s>' % (name, value, name)
                       for name, value in self.more.items())

        return ('<?xml version="1.0" encoding="UTF-8"?>\n'
                '<Error><Code>%s</Code><Message>%s</Message>%s'
                '<RequestId>0</RequestId></Error>'
                % (self.code, self.message, more)).encode()


class Request:
    """The received header, with the target not decoded, and the body."""

    def __init__(self, method, target, headers, body):
        path, _, query = target.partition('?')

        self.method = method
        self.path = path
        self.query = urllib.parse.parse_qsl(query, keep_blank_values=True,
                                            errors='surrogateescape')
        self.headers = {}
        self.body = body

        # headers of the same name are joined with a comma

        for name, value in headers:
            name = name.lower()
            value = re.sub(' +', ' ', value.strip())
            self.headers[name] = (self.headers[name] + ',' + value
                                  if name in self.headers else value)

    def get(self, name):
        return self.headers.get(name, '')


class Signed:
    """The signature of a request, with its parameters."""

    def __init__(self, credential, names, signature, date, token, expires):
        parts = credential.split('/')

        if len(parts) != 5 or parts[3:] != ['s3', 'aws4_request']:
            raise Refused(400, 'AuthorizationHeaderMalformed',
                          'The credential is malformed')

        self.key, self.day, self.region = parts[:3]
        self.names = names.split(';')
        self.signature = signature
        self.date = date
        self.token = token
        self.expires = expires

        try:
            self.time = calendar.timegm(time.strptime(date, '%Y%m%dT%H%M%SZ'))
        except ValueError:
            raise Refused(403, 'AccessDenied',
                          'A valid x-amz-date is required') from None

        if self.day != date[:8]:
            raise Refused(400, 'AuthorizationHeaderMalformed',
                          'The date of the credential is another one')

    @classmethod
    def of_header(cls, request):
        text = request.get('authorization')
        algorithm, _, rest = text.partition(' ')
        parts = dict(part.strip().partition('=')[::2]
                     for part in rest.split(','))

        if algorithm != ALGORITHM or set(parts) != {
                'Credential', 'SignedHeaders', 'Signature'}:
            raise Refused(400, 'AuthorizationHeaderMalformed',
                          'The authorization header is malformed')

        return cls(parts['Credential'], parts['SignedHeaders'],
                   parts['Signature'], request.get('x-amz-date'),
                   request.get('x-amz-security-token'), None)

    @classmethod
    def of_query(cls, request):
        query = dict(request.query)

        try:
            algorithm, *parts, expires = [query['X-Amz-' + name] for name in (
                'Algorithm', 'Credential', 'SignedHeaders', 'Signature',
                'Date', 'Expires')]
            seconds = int(expires)
        except (KeyError, ValueError):
            algorithm, seconds = '', 0

        if algorithm != ALGORITHM or not 1 <= seconds <= WEEK:
            raise Refused(400, 'AuthorizationQueryParametersError',
                          'The parameters of the signature are malformed')

        return cls(*parts, query.get('X-Amz-Security-Token', ''), seconds)


def encode(text, safe=''):
    return urllib.parse.quote(text, safe='-_.~' + safe,
                              errors='surrogateescape')


def canonical(request, signed, payload):
    path = urllib.parse.unquote(request.path, errors='surrogateescape')
    query = sorted((encode(name), encode(value))
                   for name, value in request.query
                   if name != 'X-Amz-Signature' or signed.expires is None)

    return '\n'.join([
        request.method, encode(path, '/'),
        '&'.join('%s=%s' % pair for pair in query),
        ''.join('%s:%s\n' % (name, request.get(name))
                for name in signed.names),
        ';'.join(signed.names), payload])


def signature(secret, signed, text):
    def sign(key, part):
        return hmac.new(key, part.encode(), hashlib.sha256).digest()

    key = ('AWS4' + secret).encode()

    for part in (signed.day, signed.region, 's3', 'aws4_request'):
        key = sign(key, part)

    digest = hashlib.sha256(text.encode('utf-8', 'surrogateescape'))
    scope = '/'.join([signed.day, signed.region, 's3', 'aws4_request'])

    return sign(key, '\n'.join([ALGORITHM, signed.date, scope,
                                digest.hexdigest()])).hex()


def check_time(signed, now):
    if signed.expires is None:
        if abs(now - signed.time) > SKEW:
            raise Refused(403, 'RequestTimeTooSkewed',
                          'The difference between the request time and the '
                          'current time is too large.')

    elif now > signed.time + signed.expires:
        raise Refused(403, 'AccessDenied', 'Request has expired')

    elif signed.time > now + SKEW:
        raise Refused(403, 'AccessDenied', 'Request is not yet valid')


# A client with a signed request must not be able to add headers to the request.

def check_names(request, signed):
    needed = {'host'} | {name for name in request.headers
                         if name.startswith('x-amz-')
                         and name != 'x-amz-content-sha256'}

    if signed.expires is None:
        needed |= {'x-amz-content-sha256'}

    lacking = needed - set(signed.names)

    if lacking:
        raise Refused(403, 'AccessDenied', 'There were headers present in the '
                      'request which were not signed',
                      HeadersNotSigned=', '.join(sorted(lacking)))


def payload_of(request, signed):
    payload = request.get('x-amz-content-sha256')

    if payload:
        return payload

    if signed.expires is None:
        raise Refused(400, 'InvalidRequest', 'Missing required header for '
                      'this request: x-amz-content-sha256')

    return UNSIGNED


def check_body(request, payload):
    if re.fullmatch('[0-9a-f]{64}', payload):
        if hashlib.sha256(request.body).hexdigest() != payload:
            raise Refused(400, 'XAmzContentSHA256Mismatch', 'The provided '
                          "'x-amz-content-sha256' header does not match what "
                          'was computed.')

    elif payload != UNSIGNED and not payload.startswith('STREAMING-'):
        raise Refused(400, 'InvalidArgument',
                      'x-amz-content-sha256 must be a valid one')

    md5 = request.get('content-md5')

    if md5 and md5 != base64.b64encode(
            hashlib.md5(request.body).digest()).decode():
        raise Refused(400, 'BadDigest', 'The Content-MD5 you specified did '
                      'not match what we received.')

    # in CompleteMultipartUpload the checksum belongs to the object

    if request.method != 'PUT' or payload.startswith('STREAMING-'):
        return

    for name, function in SUMS.items():
        said = request.get('x-amz-checksum-' + name)

        if said and said != base64.b64encode(function(request.body)).decode():
            raise Refused(400, 'BadDigest', 'The %s you specified did not '
                          'match the calculated checksum.' % name.upper())


def check(request, keys, region, now):
    """keys: { access key: (secret, session token or '') }"""

    # a browser's preflight request is not signed

    if request.method == 'OPTIONS':
        return

    if request.get('authorization'):
        signed = Signed.of_header(request)
    elif any(name.startswith('X-Amz-') for name, _ in request.query):
        signed = Signed.of_query(request)
    else:
        raise Refused(403, 'AccessDenied', 'Access Denied')

    if signed.key not in keys:
        raise Refused(403, 'InvalidAccessKeyId', 'The AWS Access Key Id you '
                      'provided does not exist in our records.')

    secret, token = keys[signed.key]
    payload = payload_of(request, signed)
    text = canonical(request, signed, payload)

    if not hmac.compare_digest(signature(secret, signed, text),
                               signed.signature):
        raise Refused(403, 'SignatureDoesNotMatch', 'The request signature we '
                      'calculated does not match the signature you provided.')

    if signed.region != region:
        raise Refused(400, 'AuthorizationHeaderMalformed',
                      "The region '%s' is wrong; expecting '%s'"
                      % (signed.region, region), Region=region)

    if token != signed.token:
        raise Refused(400, 'InvalidToken',
                      'The provided token is malformed or otherwise invalid.')

    check_time(signed, now)
    check_names(request, signed)
    check_body(request, payload)
