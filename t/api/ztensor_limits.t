#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Each limit of zTensor files, with the exact maximum and with one more; error
# codes that no reference file produces; damage in a file of 300 tensors.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Ztensor;

my $t = Test::Xet->new(
	workers => 2, timeout => 300,
	server => <<'EOF');

        location /small/ {
            xet_api;
            xet_auth            off;
            xet_api_base        /small;
            xet_ztensor_limits  objects=3 components=5 roles=2 rank=2 name=8
                                depth=6 page=2 decode=64 verify=64;
        }

        location /tight/ {
            xet_api;
            xet_auth            off;
            xet_api_base        /tight;
            xet_ztensor_limits  manifest=1k attributes=8 keys=16 window=1k;
        }
EOF

$t->run();

sub put { return $t->upload($_[0])->{hash} }

sub verdict {
	my ($bytes, $base) = @_;

	return $t->get(($base // '/api') . '/v1/zt/' . put($bytes))->code();
}

# Makes a file of objects with these names, four bytes each.

sub named {
	return zt_file([ map { [ $_, { shape => [ 1 ],
		data => '1234' } ] } @_ ])->{bytes};
}

# Makes a file of objects with these numbers of components.

sub parts {
	my $n = 0;

	return zt_file([ map { [ 'o' . $n++, { shape => [], format => 'x',
		components => [ map { [ "c$_", {} ] } 1 .. $_ ] } ] } @_ ])
		->{bytes};
}

# Makes a file with these attributes in its root.

sub attributes {
	return zt_file([], attributes => [ @_ ])->{bytes};
}

# --------------------------------------------------------------------------
# limits

for (
	[ 'objects', 'too_many_objects', named('a' .. 'c'), named('a' .. 'd') ],
	[ 'components', 'too_many_components', parts(2, 2, 1), parts(2, 2, 2) ],
	[ 'roles', 'too_many_components', parts(2), parts(3) ],
	[ 'name', 'name_too_long', named('x' x 8), named('x' x 9) ],
	[ 'depth', 'nesting_too_deep', attributes(a => "\x81" x 3 . "\0"),
		attributes(a => "\x81" x 6 . "\0") ],
) {
	my ($what, $code, $last, $past) = @$_;

	is(verdict($last, '/small'), '200', "$what: the maximum");
	is(verdict($past, '/small'), "422 $code", "$what: one more");
	is(verdict($past), '200', "$what: within default limits");
}

is(verdict(attributes(map { $_ => cbor_uint(0) } 1 .. 16), '/tight'),
	'200', 'keys: the maximum');
is(verdict(attributes(map { $_ => cbor_uint(0) } 1 .. 17), '/tight'),
	'422 too_many_keys', 'keys: one more');

my $rank = zt_file([ [ 'two', { shape => [ 1, 1 ], data => '1234' } ],
	[ 'three', { shape => [ 1, 1, 1 ], data => '1234' } ] ])->{bytes};

my $r = $t->get('/small/v1/zt/' . put($rank))->json();
is_deeply([ map { $_->{errors} } @{ $r->{objects} } ],
	[ [], [ 'rank_too_large' ] ], 'rank');

my $three = put(named('a' .. 'c'));

is($t->get("/small/v1/zt/$three?limit=2")->code(), '200', 'page: the maximum');
is($t->get("/small/v1/zt/$three?limit=3")->code(), '400 invalid_query',
	'page: one more');
is(scalar(@{ $t->get("/small/v1/zt/$three")->json()->{objects} }), 2,
	'page: the default');

for my $n (64, 65) {
	my $hash = put(zt_file([ [ 'a', { shape => [ $n ], dtype => 'u8',
		data => 'x' x $n } ] ])->{bytes});
	my $want = $n == 64 ? '200' : '413 verify_too_large';

	is($t->get("/small/v1/zt/$hash/verify")->code(), $want, "verify: $n");
	is($t->get("/small/v1/zt/$hash/verify?i=0")->code(), $want,
		"verify: $n, by number");
}

# one frame with one RLE block, and its length in the frame header

for my $n (64, 65) {
	my $frame = "\x28\xb5\x2f\xfd\x20" . pack('C', $n)
		. substr(pack('V', $n << 3 | 3), 0, 3) . 'r';
	my $hash = put(zt_file([ [ 'a', { shape => [ $n ], dtype => 'u8',
		encoding => 'zstd', data => $frame } ] ])->{bytes});

	$r = $t->get("/small/v1/zt/$hash/data?i=0&form=decoded");

	is($r->code(), $n == 64 ? '200' : '413 decode_too_large',
		"decode: $n");
	is($t->get("/api/v1/zt/$hash/data?i=0&form=decoded")->{body}, 'r' x $n,
		"decode: $n, by others");
	is($t->get("/api/v1/zt/$hash/data?i=0")->header_value('Content-Type'),
		'application/zstd', "decode: $n, stored");
}

# four bytes, and then a frame without content: the limit also applies to the
# stored size

for my $n (64, 65) {
	my $frame = zstd_frame('1234');

	$frame .= "\x50\x2a\x4d\x18" . pack('V', $n - length($frame) - 8);
	$frame .= 's' x ($n - length($frame));

	my $hash = put(zt_file([ [ 'a', { shape => [ 4 ], dtype => 'u8',
		encoding => 'zstd', data => $frame } ] ])->{bytes});

	for my $coding ('gzip', 'zstd') {
		$r = $t->get("/small/v1/zt/$hash/data?i=0&form=decoded",
			{ 'Accept-Encoding' => $coding });

		is($r->code(), $n == 64 ? '200' : '413 decode_too_large',
			"decode: $n stored, $coding");
	}

	is($t->get("/api/v1/zt/$hash/data?i=0&form=decoded")->{body}, '1234',
		"decode: $n stored, by others");
	is($t->get("/small/v1/zt/$hash/data?i=0")->{body}, $frame,
		"decode: $n stored, as it is");
}

# components of two MiB are streamed; a window of 4 KiB exceeds a limit of 1 KiB

my $frame = "\x28\xb5\x2f\xfd\x00\x10"
	. join('', map { substr(pack('V', 4096 << 3 | 2 | ($_ == 511)), 0, 3)
		. pack('C', $_ & 0xff) } 0 .. 511);
my $zstd = zt_file([ [ 'a', { shape => [ 2 << 20 ], dtype => 'u8',
	encoding => 'zstd', data => $frame } ] ]);
my $hash = put($zstd->{bytes});
my $want = join('', map { pack('C', $_ & 0xff) x 4096 } 0 .. 511);

$r = $t->get("/api/v1/zt/$hash/data?i=0&form=decoded");
is($r->{status}, 200, 'window: wide enough');
is($r->header_value('Content-Length'), 2 << 20, 'window: length');
is($r->header_value('Accept-Ranges'), 'none', 'window: no ranges');
ok($r->{body} eq $want, 'window: bytes');
is($t->get("/tight/v1/zt/$hash/data?i=0&form=decoded")->code(),
	'413 window_too_large', 'window: too narrow');

$r = $t->get("/api/v1/zt/$hash/data?i=0&form=decoded",
	{ Range => 'bytes=0-9' });
is($r->{status}, 200, 'a range of decoded data is ignored');
is(length($r->{body}), 2 << 20, 'the complete data is sent');
is($t->get("/api/v1/zt/$hash/data?i=0&form=decoded",
	{ 'If-None-Match' => $r->header_value('ETag') })->{status}, 304,
	'a condition is not ignored');
is($t->head("/api/v1/zt/$hash/data?i=0&form=decoded")
	->header_value('Content-Length'), 2 << 20, 'HEAD of decoded data');

# a client that accepts zstd gets the frames, unless a window exceeds 8 MiB

sub coded {
	my ($hash, %headers) = @_;

	return $t->get("/api/v1/zt/$hash/data?i=0&form=decoded",
		{ 'Accept-Encoding' => 'gzip, zstd', %headers });
}

$r = coded($hash);
is($r->header_value('Content-Encoding'), 'zstd', 'coded');
is($r->header_value('Content-Type'), 'application/octet-stream',
	'coded: its type');
is($r->header_value('Vary'), 'Accept-Encoding', 'coded: Vary');
ok($r->{body} eq $frame, 'coded: the stored frames');
like($r->header_value('ETag'), qr/\.z"\z/, 'coded: another ETag');

$r = coded($hash, Range => 'bytes=4-7');
is($r->{body}, substr($frame, 4, 4), 'coded: a range of the frames');

$r = coded($hash, Range => 'bytes=9999-');
is($r->code(), '416 range_not_satisfiable', 'coded: past the end');
ok(!defined scalar $r->header_value('Content-Encoding'),
	'coded: an error is not coded');

$r = coded($hash, 'Accept-Encoding' => 'gzip, zstd;q=0');
ok(!defined scalar $r->header_value('Content-Encoding'), 'coded: not accepted');
ok($r->{body} eq $want, 'coded: then decoded');

for ([ "\x68", 'zstd' ], [ "\x69", undef ]) {
	my ($window, $coding) = @$_;

	my $eight = "\x28\xb5\x2f\xfd\x00$window\x43\0\0x";

	$r = coded(put(zt_file([ [ 'a', { shape => [ 8 ], dtype => 'u8',
		encoding => 'zstd', data => $eight } ] ])->{bytes}));

	is(scalar $r->header_value('Content-Encoding'), $coding,
		'coded: the largest window') if $coding;
	ok($r->{body} eq 'x' x 8, 'coded: a larger window is decoded')
		unless $coding;
}

is(coded(put(zt_file([ [ 'a', { shape => [ 8 ], dtype => 'u8',
	encoding => 'zstd', data => 'no frame' } ] ])->{bytes}))->code(),
	'422 bad_zstd', 'coded: no frames');

# truncated in the middle: the server detects this after it has sent a part

my $cut = put(zt_file([ [ 'a', { shape => [ 2 << 20 ], dtype => 'u8',
	encoding => 'zstd', data => substr($frame, 0, 1500) } ] ])->{bytes});

$t->allow(qr/a decoded component was truncated/);

$r = $t->get("/api/v1/zt/$cut/data?i=0&form=decoded");
ok($r->{error} || length($r->{body}) < 2 << 20,
	'truncated data: a truncated response');

is($t->get("/api/v1/zt/$cut/verify")->json()->{objects}[0]{errors}[0],
	'bad_zstd', 'truncated data does not verify');

is(verdict(named(map { "name$_" } 0 .. 20), '/tight'),
	'413 manifest_over_server_limit', 'manifest');

$r = $t->get('/tight/v1/zt/' . put(attributes(long =>
	cbor_text('x' x 10))))->json();

is($r->{attributes}, undef, 'attributes');
is_deeply($r->{warnings}, [ 'attributes_not_echoed' ], 'a warning is returned');

# --------------------------------------------------------------------------
# files that can't be listed

is(verdict('not a zTensor file at all'), '422 not_ztensor',
	'not a zTensor file');
is(verdict('short'), '422 too_short', 'a short file');
is(verdict(''), '422 too_short', 'the empty file');
is(verdict('ZTEN1000' . zt_footer(0)), '422 empty_manifest', 'no manifest');
is(verdict('ZTEN1000' . zt_footer(1 << 30)), '422 manifest_out_of_bounds',
	'the largest manifest, out of bounds');
is(verdict('ZTEN1000' . zt_footer((1 << 30) + 1)), '422 manifest_too_large',
	'one byte more');
is(verdict('ZTEN1000' . 'x' x 10 . zt_footer(18)),
	'422 manifest_overlaps_header', 'overlaps the header');

# --------------------------------------------------------------------------
# 300 tensors, damaged; the core's own tests damage every byte

my @tensors = map { [ sprintf('w.%03d', $_), { shape => [ 16 ],
	data => "\0" x 64 } ] } 0 .. 299;
my $sound = zt_file(\@tensors);
my %codes;
my $faults = 0;

sub ask {
	my ($bytes) = @_;

	my $hash = put($bytes);

	for my $route ('', '/object?name=w.150', '/data?i=299', '/verify?i=7') {
		my $r = $t->get("/api/v1/zt/$hash$route");

		$faults++ if $r->{error} || $r->{status} >= 500;
		$codes{$r->code()}++;
	}
}

for my $i (0 .. 19) {
	ask(substr($sound->{bytes}, 0, length($sound->{bytes}) * $i / 20));
}

for my $i (0 .. 39) {
	my $bytes = $sound->{bytes};
	my $manifest = length($bytes) - $sound->{manifest};

	my $at = $i < 8 ? $i : $sound->{manifest} + int($manifest * $i / 40);

	substr($bytes, $at, 1) ^= chr(0xff);
	ask($bytes);
}

is($faults, 0, 'damage causes no 5xx');
ok($codes{'200'} && $codes{'422 bad_manifest'}, 'any verdict')
	or diag(explain(\%codes));

is(scalar(grep { !$_ } $t->worker_pids()), 0, 'no worker has died');

# --------------------------------------------------------------------------
# invalid configurations

for my $limits ('', 'objects=0', 'objects=x', 'objects', 'rank=65',
	'depth=33', 'window=3000', 'manifest=2g', 'page=0', 'nothing=1',
	'name=17k')
{
	my ($ok, $text) = $t->config_test(undef, server => <<"EOF");

        location /wrong/ {
            xet_api;
            xet_auth            off;
            xet_ztensor_limits  $limits;
        }
EOF

	ok(!$ok, "refused: '$limits'");
	like($text, $limits eq '' ? qr/invalid number of arguments/
		: qr/invalid parameter "\Q$limits\E" in .*:\d+/,
		"the error has a line: '$limits'");
}

$t->done();
