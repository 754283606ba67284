#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# GET and HEAD of files as plain HTTP: the bytes, ranges at every boundary,
# conditions, names, digests, caches and permissions.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;

use MIME::Base64 qw/ encode_base64 /;

my $t = Test::Xet->new(
	workers => 2, timeout => 600,
	http => <<'EOC',
xet_token_key %%DIR%%/token.key;
    types {
        text/plain       txt;
        video/webm       webm;
        application/zip  zip;
    }
EOC
	server => <<'EOC');
location /small/ {
            xet_api;
            xet_api_base     /small;
            xet_auth         off;
            xet_read_buffer  128k;
        }

        location /three/ {
            xet_api;
            xet_api_base  /three;
            xet_auth      off;
            max_ranges    3;
        }

        location /whole/ {
            xet_api;
            xet_api_base  /whole;
            xet_auth      off;
            max_ranges    0;
        }

        location /token/ {
            xet_api;
            xet_api_base  /token;
            xet_auth      token;
            xet_access    store;
        }

        location /repo/ {
            xet_api;
            xet_api_base  /repo;
            xet_auth      token;
            xet_access    repo;
        }

        location ~ ^/mint/(?<scope>read|write|delete)/(?<repo>.*)$ {
            xet_token;
            xet_token_scope  $scope;
            xet_token_repo   $repo;
        }

        location /gzip/ {
            xet_api;
            xet_api_base  /gzip;
            xet_auth      off;
            gzip          on;
            gzip_types    text/plain;
        }

        location /paced/ {
            xet_api;
            xet_api_base  /paced;
            xet_auth      off;
            limit_rate    2m;
        }
EOC

$t->token_key();

$t->run();

my $none = '0123456789abcdef' x 4;
my $empty = '0' x 64;
my $c = $t->connect();

# Sends all requests on one connection: if a body does not have its declared
# length, the next response is wrong.

sub ask {
	my ($uri, $headers, $method) = @_;

	return $c->exchange($method // 'GET', $uri, $headers, undef,
		keep => 1);
}

sub uri { return "/api/v1/files/$_[0]->{hash}" . ($_[1] // '') }

# --------------------------------------------------------------------------
# a complete file

my $data = mix(1, 3_000_000);
my $up = $t->upload($data, xorb_chunks => 10);
my $file = { hash => $up->{hash}, size => length($data), data => $data };

my $r = ask(uri($file));

is($r->{status}, 200, 'GET');
ok($r->{body} eq $data, 'bytes');
is($r->header_value('Content-Length'), 3_000_000, 'Content-Length');
is($r->header_value('ETag'), "\"$file->{hash}\"", 'ETag');
is($r->header_value('Accept-Ranges'), 'bytes', 'Accept-Ranges');
is($r->header_value('Content-Type'), 'application/octet-stream', 'type');
is($r->header_value('Content-Range'), undef, 'no Content-Range');
is($r->header_value('Content-Disposition'), undef, 'no Content-Disposition');
is($r->header_value('X-Content-Type-Options'), 'nosniff', 'nosniff');
is($r->header_value('Cache-Control'), 'public, max-age=31536000, immutable',
	'Cache-Control');
is($r->header_value('Last-Modified'), undef, 'no Last-Modified');

for my $uri ("/api/files/$file->{hash}", "/small/v1/files/$file->{hash}",
	uri({ hash => uc $file->{hash} }))
{
	ok(ask($uri)->{body} eq $data, "the same bytes from $uri");
}

my $head = ask(uri($file), {}, 'HEAD');

is($head->{status}, 200, 'HEAD');
is($head->{body}, '', 'HEAD: no body');
is($head->header_value($_), $r->header_value($_), "HEAD: $_")
	for qw/ Content-Length ETag Accept-Ranges Content-Type Cache-Control /;

$r = ask(uri($file), { Range => 'bytes=0-1' }, 'HEAD');
is_deeply([ $r->{status}, $r->header_value('Content-Length') ],
	[ 200, 3_000_000 ], 'HEAD: Range is ignored');

for my $method (qw/ GET HEAD /) {
	$r = ask(uri({ hash => $none }), {}, $method);
	is($r->{status}, 404, "$method: unknown");
	is($r->header_value('Cache-Control'), 'no-store',
		"$method: unknown: no-store");
	is($r->json()->{error}{code}, 'file_not_found', 'code')
		if $method eq 'GET';

	$r = ask(uri({ hash => $empty }), {}, $method);
	is_deeply([ $r->{status}, $r->header_value('Content-Length'),
		$r->header_value('ETag') ], [ 200, 0, "\"$empty\"" ],
		"$method: the empty file");
}

is(ask("/api/v1/files/x$none")->{status}, 400, 'no hash');
is(ask("/api/v2/files/$file->{hash}")->{status}, 404, 'no v2');

# --------------------------------------------------------------------------
# a file of many pieces: after 8 MiB they are larger

{
	my @xorbs = map { send_xorb($t, mix(50 + $_, 900_000),
		scheme => $_ ? 'none' : 'lz4') } 0, 1;
	my $long = register_file($t, [ map { [ $xorbs[$_ % 2] ] } 1 .. 24 ]);
	my $r = ask(uri($long));

	is($long->{size}, 21_600_000, 'many pieces: size');
	ok($r->{body} eq $long->{data}, 'many pieces: bytes');

	$r = ask(uri($long), { Range => 'bytes=5-9999999,10000007-21599990' });

	my @parts = split(/\r\n--[^\r]+\r\n/, $r->{body});
	s/\A.*?\r\n\r\n//s for @parts;

	is($r->{status}, 206, 'many pieces: two ranges');
	ok($parts[1] eq substr($long->{data}, 5, 9_999_995),
		'many pieces: the first range');
	ok($parts[2] eq substr($long->{data}, 10_000_007, 11_599_984),
		'many pieces: the second range');
}

# --------------------------------------------------------------------------
# a chunk whose compression saves nothing: its LZ4 frame is as long as the
# chunk

{
	my $noise = random_bytes(60, 1000);
	my $chunk = $noise . 'a' x 30;
	my $frame = pack('V CCC V', 0x184d2204, 0x60, 0x40, 0x82,
		0x80000000 | 1000) . $noise . pack('V', 11)
		. "\x1fa\x01\x00\x05\x50aaaaa" . pack('V', 0);

	is(length($frame), length($chunk), 'nothing saved: length');

	my $xorb = make_xorb($chunk, scheme => 'none');
	my $length = substr(pack('V', length($chunk)), 0, 3);

	$xorb->{bytes} = "\0$length\x01$length$frame";

	my $r = $t->http('POST', "/api/v1/xorbs/default/$xorb->{hash}", {},
		\$xorb->{bytes});

	is($r->{status}, 200, 'nothing saved: the upload');

	my $plain = send_xorb($t, mix(61, 300_000), scheme => 'none',
		sizes => [ 70_000 ]);
	my $three = register_file($t, [ [ $plain ],
		[ { %$xorb, raw => $chunk } ], [ $plain ] ]);

	ok(ask(uri($three))->{body} eq $three->{data}, 'nothing saved: bytes');
}

# --------------------------------------------------------------------------
# requests for one range

my $n = $file->{size};

for (
	[ '0-0', 0, 0 ], [ '0-9', 0, 9 ], [ '0-', 0, $n - 1 ],
	[ '1-', 1, $n - 1 ], [ '1000000-1999999', 1000000, 1999999 ],
	[ ($n - 1) . '-', $n - 1, $n - 1 ],
	[ ($n - 1) . "-$n", $n - 1, $n - 1 ],
	[ "0-$n", 0, $n - 1 ], [ '0-' . ($n - 1), 0, $n - 1 ],
	[ '0-' . ($n - 2), 0, $n - 2 ],
	[ '0-9223372036854775807', 0, $n - 1 ],
	[ '-1', $n - 1, $n - 1 ], [ "-$n", 0, $n - 1 ],
	[ '-' . ($n - 1), 1, $n - 1 ], [ '-' . ($n + 1), 0, $n - 1 ],
	[ '-9223372036854775807', 0, $n - 1 ],
	[ '-70000', $n - 70000, $n - 1 ],
	[ "5-5,$n-", 5, 5 ], [ '-0,7-8', 7, 8 ],
	[ '0-1,', 0, 1 ], [ ',0-1', 0, 1 ], [ " , ,0-5,\t,", 0, 5 ],
	[ '1-9223372036854775808', 1, $n - 1 ],
	[ '1-' . '9' x 1000, 1, $n - 1 ],
	[ '-' . '9' x 1000, 0, $n - 1 ]
) {
	my ($range, $first, $last) = @$_;

	part_ok(ask(uri($file), { Range => "bytes=$range" }), $file, $first,
		$last, "bytes=$range");
}

part_ok(ask(uri($file), { Range => 'BYTES=1-2' }), $file, 1, 2, 'any case');

# ranges that select no bytes, and invalid lists of ranges

for my $range ("$n-", "$n-$n", ($n + 1) . '-', '-0', "$n-,-0",
	'9223372036854775807-', '9223372036854775808-', '1-0', '', '-', 'x',
	',', ' , ', '9' x 1000 . '-', '18446744073709551616-5',
	'0-1;2-3', '0', '0-1-2', '+1-2', '1 -2', '0x1-2')
{
	$r = ask(uri($file), { Range => "bytes=$range" });

	is($r->{status}, 416, "bytes=$range");
	is($r->header_value('Content-Range'), "bytes */$n", 'the size');
	is($r->json()->{error}{code}, 'range_not_satisfiable', 'code');
	is(join(' ', grep { defined } map { $r->header_value($_) }
		qw/ ETag Cache-Control Content-Disposition /), 'no-store',
		'no headers of the file');
}

$r = ask(uri({ hash => $empty }), { Range => 'bytes=0-' });
is_deeply([ $r->{status}, $r->header_value('Content-Range') ],
	[ 416, 'bytes */0' ], 'a range of the empty file');

# other range units are ignored

for my $range ('lines=0-1', 'bytes', 'bytes 0-1', '0-1', '') {
	$r = ask(uri($file), { Range => $range });
	is_deeply([ $r->{status}, length($r->{body}) ], [ 200, $n ],
		"Range: $range");
}

# --------------------------------------------------------------------------
# several ranges

for (
	[ '0-0,-1', [ 0, 0 ], [ $n - 1, $n - 1 ] ],
	[ "5-9 ,\t0-4", [ 5, 9 ], [ 0, 4 ] ],
	[ "0-1,$n-,2-3", [ 0, 1 ], [ 2, 3 ] ],
	[ '0-0,,2-3', [ 0, 0 ], [ 2, 3 ] ],
	[ ',,' x 200 . '0-0' . ',' x 300 . ' -1', [ 0, 0 ],
		[ $n - 1, $n - 1 ] ],
	[ '10-19,15-24', [ 10, 19 ], [ 15, 24 ] ],
	[ '0-999999,1000000-', [ 0, 999999 ], [ 1000000, $n - 1 ] ],
	[ '2000000-2999999,1000000-1999999,0-999999', [ 2000000, 2999999 ],
		[ 1000000, 1999999 ], [ 0, 999999 ] ],
	[ '0-1,70000-400000,-100000', [ 0, 1 ], [ 70000, 400000 ],
		[ $n - 100000, $n - 1 ] ],
	[ join(',', map { "$_-$_" } 0 .. 255), map { [ $_, $_ ] } 0 .. 255 ]
) {
	my ($range, @want) = @$_;

	parts_ok(ask(uri($file), { Range => "bytes=$range" }), $file, \@want,
		'bytes=' . substr($range, 0, 50));
}

$r = ask(uri($file, '?filename=x.zip'), { Range => 'bytes=0-0,2-2' });
is(join(' ', map { $_->{headers}{'content-type'} } @{ $r->parts() }),
	'application/zip application/zip', 'the parts have the type');

isnt(ask(uri($file), { Range => 'bytes=0-0,2-2' })
	->header_value('Content-Type'), $r->header_value('Content-Type'),
	'another boundary each time');

is(ask(uri($file), { Range => 'bytes=' . join(',', map { "$_-$_" }
	0 .. 256) })->{status}, 416, '257 ranges');

# ranges whose total exceeds the file: the response is the complete file

$r = ask(uri($file), { Range => 'bytes=0-,0-' });
is_deeply([ $r->{status}, length($r->{body}) ], [ 200, $n ],
	'the complete file twice');
is(ask(uri($file), { Range => 'bytes=0-0,0-' })->{status}, 200,
	'one byte more than the file');

# more ranges than max_ranges

parts_ok(ask("/three/files/$file->{hash}", { Range => 'bytes=0-1,3-4,6-7' }),
	$file, [ [ 0, 1 ], [ 3, 4 ], [ 6, 7 ] ], 'max_ranges: as many');
is(ask("/three/files/$file->{hash}", { Range => 'bytes=0-1,3-4,6-7,8-9' })
	->{status}, 416, 'max_ranges: one more');

$r = ask("/whole/files/$file->{hash}", { Range => 'bytes=0-1' });
is_deeply([ $r->{status}, scalar $r->header_value('Accept-Ranges') ],
	[ 200, undef ], 'max_ranges 0');

# --------------------------------------------------------------------------
# ranges at every boundary of chunks, of terms, of xorbs, and of one read

my $tiny = send_xorb($t, random_bytes(7, 300000), sizes => [ 100 ],
	scheme => 'none');
my $full = send_xorb($t, mix(8, 1_000_000), sizes => [ 131072 ]);
my $one = send_xorb($t, 'x', sizes => [ 1 ]);

my $knit = register_file($t, [ [ $one ], [ $full, 1, 3 ], [ $tiny, 5, 6 ],
	[ $tiny, 6, 8 ], [ $full ], [ $one ], [ $one ], [ $tiny, 0, 2 ],
	[ $full, 7, 8 ] ]);

for my $base (qw/ api small /) {
	my @wrong;

	for my $at (borders($knit)) {
		for ([ $at - 1, $at ], [ $at, $at ], [ $at - 1, $at - 1 ],
			[ 0, $at ], [ $at, $knit->{size} - 1 ])
		{
			my ($first, $last) = @$_;

			$r = ask("/$base/files/$knit->{hash}",
				{ Range => "bytes=$first-$last" });

			push @wrong, "$first-$last" if $r->{status} != 206
				|| $r->{error} || $r->{body}
				ne substr($knit->{data}, $first,
					$last - $first + 1);
		}
	}

	is("@wrong", '', "$base: borders of chunks and terms");
	ok(ask("/$base/files/$knit->{hash}")->{body} eq $knit->{data},
		"$base: the complete file");
}

# 3000 chunks in a term, of which at most 1024 are in memory at a time

my $long = register_file($t, [ [ $one ], [ $tiny ], [ $tiny, 1, 2900 ],
	[ $full, 0, 1 ] ]);

ok(ask(uri($long))->{body} eq $long->{data}, 'many chunks');

for my $chunk (1023, 1024, 1025, 2047, 2048, 2049, 2999, 3000) {
	my $at = (borders($long))[$chunk];

	part_ok(ask(uri($long), { Range => 'bytes=' . ($at - 150) . '-'
		. ($at + 150) }), $long, $at - 150, $at + 150,
		"around chunk $chunk");
}

parts_ok(ask(uri($long), { Range => 'bytes=250000-250009,100-109,1-1,-1' }),
	$long, [ [ 250000, 250009 ], [ 100, 109 ], [ 1, 1 ],
	[ $long->{size} - 1, $long->{size} - 1 ] ], 'to and fro');

# 700 terms, in segments of 256

my @terms = map { [ $full, $_ % 7, $_ % 7 + 1 ], [ $tiny, $_, $_ + 1 ] }
	0 .. 349;
my $many = register_file($t, \@terms);

$r = $t->get(uri($many), {}, timeout => 60);

is($many->{size}, 350 * 131072 + 350 * 100, 'many terms');
ok($r->{body} eq $many->{data}, 'many terms: all bytes');

for my $term (255, 256, 257, 511, 512, 513) {
	my $at = $many->{terms}[$term]{start};

	part_ok(ask(uri($many), { Range => 'bytes=' . ($at - 1) . "-$at" }),
		$many, $at - 1, $at, "around term $term");
}

parts_ok(ask(uri($many), { Range => 'bytes=-10,0-9,23000000-24000000,50-59' }),
	$many, [ [ $many->{size} - 10, $many->{size} - 1 ], [ 0, 9 ],
	[ 23000000, 24000000 ], [ 50, 59 ] ], 'from segment to segment');

# --------------------------------------------------------------------------
# conditions

my $etag = "\"$file->{hash}\"";
my $other = "\"$none\"";

for (
	[ 304, 'If-None-Match' => $etag ],
	[ 304, 'If-None-Match' => "W/$etag" ],
	[ 304, 'If-None-Match' => "$other, $etag" ],
	[ 304, 'If-None-Match' => '*' ],
	[ 304, 'If-None-Match' => $etag, Range => 'bytes=0-1' ],
	[ 304, 'If-None-Match' => $etag, 'If-Match' => $etag ],
	[ 200, 'If-None-Match' => $other ],
	[ 200, 'If-None-Match' => $file->{hash} ],
	[ 200, 'If-None-Match' => '' ],
	[ 200, 'If-Match' => $etag ],
	[ 200, 'If-Match' => '*' ],
	[ 200, 'If-Match' => "$other,$etag" ],
	[ 412, 'If-Match' => $other ],
	[ 412, 'If-Match' => "W/$etag" ],
	[ 412, 'If-Match' => '' ],
	[ 412, 'If-Match' => $other, 'If-None-Match' => $etag ],
	[ 412, 'If-Match' => $other, Range => 'bytes=0-1' ],
	[ 206, 'If-Match' => $etag, Range => 'bytes=0-1' ],
	[ 206, 'If-None-Match' => $other, Range => 'bytes=0-1' ],
	[ 206, 'If-Range' => $etag, Range => 'bytes=0-1' ],
	[ 200, 'If-Range' => $other, Range => 'bytes=0-1' ],
	[ 200, 'If-Range' => "W/$etag", Range => 'bytes=0-1' ],
	[ 200, 'If-Range' => 'Sat, 01 Jan 2028 00:00:00 GMT',
		Range => 'bytes=0-1' ],
	[ 200, 'If-Range' => $other, Range => "bytes=$n-" ],
	[ 416, 'If-Range' => $etag, Range => "bytes=$n-" ],
	[ 200, 'If-Range' => $etag ],
	[ 200, 'If-Modified-Since' => 'Sat, 01 Jan 2028 00:00:00 GMT' ],
	[ 200, 'If-Unmodified-Since' => 'Thu, 01 Jan 1970 00:00:00 GMT' ]
) {
	my ($status, @headers) = @$_;

	for my $method ('GET', "@headers" =~ /Range/ ? () : 'HEAD') {
		$r = ask(uri($file), \@headers, $method);

		is($r->{status}, $status, "$method @headers");

		is_deeply([ map { scalar $r->header_value($_) } qw/ ETag
			Cache-Control Content-Length Content-Type / ],
			[ $etag, 'public, max-age=31536000, immutable',
			undef, undef ], 'its headers') if $status == 304;
	}
}

is(ask(uri({ hash => $none }), { 'If-None-Match' => '*' })->{status}, 404,
	'a missing file, with a condition');

# --------------------------------------------------------------------------
# names and types

for (
	[ 'x.webm', 'video/webm', '"x.webm"' ],
	[ 'x.WebM', 'video/webm', '"x.WebM"' ],
	[ 'x.txt.unknown', 'application/octet-stream', '"x.txt.unknown"' ],
	[ 'x', 'application/octet-stream', '"x"' ],
	[ 'x.', 'application/octet-stream', '"x."' ],
	[ 'a%20b.zip', 'application/zip', '"a b.zip"' ],
	[ '..%2f..%2fx.txt', 'text/plain', '"_._.._x.txt"' ],
	[ 'x%0d%0aX-Evil:%201.txt', 'text/plain', '"x__X-Evil: 1.txt"' ],
	[ 'a%22b', 'application/octet-stream',
		"\"a_b\"; filename*=UTF-8''a%22b" ],
	[ 'm%c3%a4r.txt', 'text/plain',
		"\"m_r.txt\"; filename*=UTF-8''m%C3%A4r.txt" ],
	[ 'x' x 251 . '.txt', 'text/plain', '"' . 'x' x 251 . '.txt"' ]
) {
	my ($arg, $type, $name) = @$_;

	$r = ask(uri($file, "?filename=$arg"), { Range => 'bytes=0-9' });
	$arg = substr($arg, 0, 30);

	part_ok($r, $file, 0, 9, $arg);
	is($r->header_value('Content-Disposition'),
		"attachment; filename=$name", "$arg: name");
	is($r->header_value('Content-Type'), $type, "$arg: type");
	is($r->header_value('X-Evil'), undef, "$arg: no other header");
}

for my $arg ('', '%', '%4', '%zz', 'a%', '%ff', '%c3', '%c0%af', 'x' x 256) {
	$r = ask(uri($file, "?filename=$arg"));
	is($r->{status}, 400, 'refused: ' . substr($arg, 0, 30));
	is($r->json()->{error}{code}, 'invalid_filename', 'code');
}

$r = ask(uri($file, '?filename=x.txt'), { Range => "bytes=$n-" });
is_deeply([ $r->{status},
	scalar $r->header_value('Content-Disposition') ],
	[ 416, undef ], 'an error: no Content-Disposition');

# --------------------------------------------------------------------------
# digests: the server does not send a SHA-256 that only a shard claims

is($_->header_value('Repr-Digest'), undef, 'claimed: no digest')
	for ask(uri($file)), ask(uri($file), {}, 'HEAD');

$t->sql("UPDATE xet.files SET sha256_proven = true WHERE size = $n");

my $base64 = encode_base64(pack('H*', $up->{sha256}), '');

for (ask(uri($file)), ask(uri($file), {}, 'HEAD'),
	ask(uri($file), { Range => 'bytes=0-1' }))
{
	is($_->header_value('Repr-Digest'), "sha-256=:$base64:",
		"$_->{status}: Repr-Digest");
	is($_->header_value('Digest'), "sha-256=$base64", 'Digest');
}

is(ask(uri($file), { Range => "bytes=$n-" })->header_value('Repr-Digest'),
	undef, 'an error: no digest');

# --------------------------------------------------------------------------
# permissions: who may read a file, and who may cache it

sub bearer {
	my ($scope, $repo) = @_;

	return { Authorization => 'Bearer '
		. ask("/mint/$scope/$repo")->json()->{accessToken} };
}

my $public = 'public, max-age=31536000, immutable';
my $private = 'private, max-age=31536000, immutable';

for (
	[ 'api', {}, 200, $public ],
	[ 'api', { Cookie => 'a=b' }, 200, $private ],
	[ 'api', { Authorization => 'Basic eDp5' }, 200, $private ],
	[ 'token', {}, 401, 'no-store' ],
	[ 'token', bearer('read', 'a/a'), 200, $private ],
	[ 'repo', {}, 401, 'no-store' ],
	[ 'repo', bearer('read', 'a/a'), 404, 'no-store' ]
) {
	my ($base, $headers, $status, $cache) = @$_;

	$r = ask("/$base/v1/files/$file->{hash}", $headers);
	is_deeply([ $r->{status}, scalar $r->header_value('Cache-Control') ],
		[ $status, $cache ], "$base: $status "
		. join(' ', keys %$headers));
}

my $write = bearer('write', 'a/a');
my $mine = $t->upload(mix(3, 200000), base => '/repo/v1',
	headers => $write)->{hash};

for my $method (qw/ GET HEAD /) {
	$r = ask("/repo/files/$mine", bearer('read', 'a/a'), $method);
	is_deeply([ $r->{status}, scalar $r->header_value('Cache-Control') ],
		[ 200, 'private, no-cache' ], "$method: a file of the repo");

	is(ask("/repo/files/$mine", bearer('read', 'b/b'), $method)->{status},
		404, "$method: a file of another repo");
}

is(ask("/repo/files/$mine", { %{ bearer('read', 'b/b') },
	'If-None-Match' => "\"$mine\"" })->{status}, 404,
	'an ETag gives no access');
is(ask("/repo/files/$mine", $write, 'DELETE')->{status}, 403,
	'DELETE: by a writer');
is(ask("/repo/files/$mine", bearer('delete', 'a/a'), 'DELETE')->{status},
	204, 'DELETE');
is(ask("/repo/files/$mine", $write)->{status}, 404, 'gone');

# --------------------------------------------------------------------------
# nginx's filters

$r = $t->get("/gzip/files/$knit->{hash}?filename=x.txt",
	{ 'Accept-Encoding' => 'gzip' });
is($r->header_value('Content-Encoding'), 'gzip', 'gzip');
is($r->header_value('ETag'), "W/\"$knit->{hash}\"", 'gzip: a weak tag');
is($r->header_value('Accept-Ranges'), undef, 'gzip: no Accept-Ranges');

$r = ask("/gzip/files/$knit->{hash}?filename=x.txt", {
	'Accept-Encoding' => 'gzip', Range => 'bytes=5-6' });
part_ok($r, $knit, 5, 6, 'gzip: a range is not coded');

$r = $t->get("/paced/files/$file->{hash}", {}, timeout => 30);
ok($r->{body} eq $data && !$r->{error}, 'limit_rate');

$t->done();
