#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The routes of zTensor files: arguments, pages, bytes and their headers,
# reconstructions, verification, and cached results.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Ztensor;

use Digest::SHA qw/ sha256_base64 sha256_hex /;
use JSON::PP ();

my $t = Test::Xet->new(workers => 2, timeout => 300);

$t->run();

my $none = '0123456789abcdef' x 4;

sub zt {
	my ($hash, $route, @args) = @_;

	return $t->get("/api/v1/zt/$hash$route" . zt_args(@args));
}

sub kept {
	return $t->sql('select count(*) from xet.zt_files');
}

# --------------------------------------------------------------------------
# a file with every feature, over several chunks

my $big = random_bytes(7, 400000);
my $csr = [ [ 'values', { data => 'v' x 8 } ],
	[ 'indices', { dtype => 'u16', data => "\0\0\1\0" } ],
	[ 'indptr', { dtype => 'u16', data => "\0\0\1\0\2\0" } ] ];

my $file = zt_file([
	[ 'a/b', { shape => [ 2 ], data => 'abcdefgh' } ],
	[ "a\0b", { shape => [ 1 ], data => '....' } ],
	[ 'big', { shape => [ 1000, 100 ], data => $big,
		digest => 'sha256:' . sha256_hex($big),
		attributes => [ kind => cbor_text('weight') ] } ],
	[ '', { shape => [], data => 'scal' } ],
	[ 'csr', { format => 'sparse_csr', shape => [ 2, 4 ],
		components => $csr } ],
	[ 'empty', { shape => [ 0, 5 ], data => '' } ],
	[ 'only', { format => 'mine', shape => [ 1 ],
		components => [ [ 'blob', { data => 'blob' } ] ] } ],
	[ 'wrong', { shape => [ 3 ], data => 'wrong-length' . 'x' } ],
], attributes => [ by => cbor_text('test'), n => cbor_uint(3) ]);

my $hash = $t->upload($file->{bytes})->{hash};

my $r = zt($hash, '');
my $list = $r->json();

is($r->{status}, 200, 'listed');
is($r->header_value('Content-Type'), 'application/json', 'type');
is($list->{file}, $hash, 'its hash');
is($list->{size}, length($file->{bytes}), 'its size');
is($list->{count}, 8, 'count');
is($list->{next}, undef, 'one page');
is_deeply($list->{attributes}, { by => 'test', n => 3 }, 'attributes');
is_deeply($list->{objects}[2]{attributes}, { kind => 'weight' },
	'attributes of an object');
is($list->{manifest}{offset}, $file->{manifest}, 'manifest');
is_deeply([ map { $_->{name} } @{ $list->{objects} } ],
	[ 'a/b', "a\0b", 'big', '', 'csr', 'empty', 'only', 'wrong' ], 'names');
is_deeply([ map { $_->{status} } @{ $list->{objects} } ],
	[ ('ok') x 6, 'unsupported', 'invalid' ], 'verdicts');
is_deeply($list->{objects}[7]{errors}, [ 'length_mismatch' ], 'reasons');

$r = $t->head("/api/v1/zt/$hash");
is($r->{status}, 200, 'HEAD');
is($r->header_value('X-Zt-Objects'), 8, 'HEAD: count');
is($r->header_value('X-Zt-Container'), '1.1', 'HEAD: container');

# the second request reads the cached listing

wait_for(10, sub { kept() == 1 });

is(zt($hash, '')->{body}, zt($hash, '')->{body}, 'the same response again');
is(zt($hash, '')->json()->{attributes}{n}, 3, 'with attributes');

# pages

my @seen;
my $after;

for (1 .. 10) {
	my $page = zt($hash, '', limit => 3, after => $after)->json();

	push @seen, map { $_->{i} } @{ $page->{objects} };
	$after = $page->{next};
	last unless defined $after;
}

is_deeply(\@seen, [ 0 .. 7 ], 'in pages of three');
is(zt($hash, '', after => 7)->json()->{next}, undef, 'after the last');
is_deeply(zt($hash, '', after => '18446744073709551615')->json()->{objects},
	[], 'after the largest number');
is_deeply([ map { $_->{name} }
	@{ zt($hash, '', prefix => 'a')->json()->{objects} } ],
	[ 'a/b', "a\0b" ], 'prefix');
is_deeply([ map { $_->{name} }
	@{ zt($hash, '', format => 'sparse_csr')->json()->{objects} } ],
	[ 'csr' ], 'format');
is(zt($hash, '', limit => 1, prefix => 'a')->json()->{next}, 0,
	'more with the prefix');
is(zt($hash, '', limit => 2, prefix => 'a')->json()->{next}, undef,
	'no more with the prefix');

# --------------------------------------------------------------------------
# one object

is(zt($hash, '/object', name => 'a/b')->json()->{i}, 0, 'by name');
is(zt($hash, '/object', name => "a\0b")->json()->{i}, 1, 'a zero byte');
is(zt($hash, '/object', name => '')->json()->{i}, 3, 'the empty name');
is(zt($hash, '/object', i => 4)->json()->{name}, 'csr', 'by number');
is_deeply([ sort keys %{ zt($hash, '/object', i => 4)->json()
	->{components} } ], [ qw/ indices indptr values / ], 'roles');
is_deeply(zt($hash, '/object', name => 'big')->json()->{attributes},
	{ kind => 'weight' }, 'attributes');

is(zt($hash, '/object', name => 'a')->code(), '404 no_such_object',
	'no name');
is(zt($hash, '/object', i => 8)->code(), '404 no_such_object', 'no number');
is(zt($hash, '/object', i => '18446744073709551615')->code(),
	'404 no_such_object', 'the largest number');

# --------------------------------------------------------------------------
# arguments

for (
	[ '/object', '', 'none' ],
	[ '/object', '?name=a&i=0', 'both' ],
	[ '/data', '?name=a&i=0', 'both, for data' ],
	[ '/verify', '?name=a&i=0', 'both, to verify' ],
	[ '/verify', '?role=data', 'a role alone' ],
	[ '/data', '?name=%4', 'half an escape' ],
	[ '/data', '?name=%zz', 'no escape' ],
	[ '/data', '?nam=a', 'a wrong key' ],
	[ '/data', '?i=x', 'no number' ],
	[ '/data', '?i=0&i=0', 'twice' ],
	[ '/data', '?i=0&form=raw', 'a wrong form' ],
	[ '/data', '?i=0&rows=1', 'wrong rows' ],
	[ '/reconstruction', '?i=0&rows=1:2', 'rows of a reconstruction' ],
	[ '', '?limit=0', 'limit 0' ],
	[ '', '?limit=10001', 'limit past the end' ],
	[ '', '?name=a', 'a name of a listing' ],
) {
	my ($route, $args, $what) = @$_;

	is($t->get("/api/v1/zt/$hash$route$args")->code(),
		'400 invalid_query', "arguments: $what");
}

is(zt($hash, '', limit => 10000)->code(), 200, 'the largest page');
is(zt($hash, '/data', i => 0, rows => '0:1,0:1')->code(),
	'501 unsupported_rows', 'rows of another dimension');
is($t->get("/api/v1/zt/$hash/nothing")->code(), '404 no_route',
	'no route');
is($t->get('/api/v1/zt/xyz')->code(), '400 invalid_hash', 'no hash');
is($t->get('/api/v1/zt/xyz/data?i=0')->code(), '400 invalid_hash',
	'no hash, for data');
is($t->post("/api/v1/zt/$hash", '')->code(), '405 method_not_allowed',
	'POST');
is(zt($none, '')->code(), '404 file_not_found', 'no file');
is(zt($none, $_, i => 0)->code(), '404 file_not_found', "no file: $_")
	for qw! /object /data /reconstruction /verify !;

# --------------------------------------------------------------------------
# data

$r = zt($hash, '/data', name => 'a/b');

is($r->{body}, 'abcdefgh', 'data');
is($r->header_value('Content-Type'), 'application/octet-stream', 'data: type');
is($r->header_value('Content-Length'), 8, 'data: length');
is($r->header_value('ETag'), "\"$hash.64.8.s\"", 'data: ETag');
is($r->header_value('X-Zt-Dtype'), 'f32', 'data: dtype');
is($r->header_value('X-Zt-Shape'), '2', 'data: shape');
is($r->header_value('X-Zt-Format'), 'dense', 'data: format');
is($r->header_value('X-Zt-Encoding'), 'raw', 'data: encoding');
is($r->header_value('X-Zt-File-Range'), '64-71', 'data: offset');

my $etag = $r->header_value('ETag');

ok(zt($hash, '/data', name => 'big')->{body} eq $big, 'a large component');
is(zt($hash, '/data', name => 'csr', role => 'indptr')->{body},
	$csr->[2][1]{data}, 'a role');
is(zt($hash, '/data', name => 'only')->{body}, 'blob', 'the only role');
is(zt($hash, '/data', name => '', form => 'decoded')->{body}, 'scal',
	'form=decoded of raw data');
is(zt($hash, '/data', name => '')->header_value('X-Zt-Shape'), '',
	'the shape of a scalar');

$r = zt($hash, '/data', name => 'csr');
is($r->code(), '400 role_required', 'a role is required');
is_deeply($r->json()->{error}{roles}, [ qw/ values indices indptr / ],
	'the roles are named');
is(zt($hash, '/data', name => 'csr', role => 'data')->code(),
	'404 no_such_component', 'no such role');
ok(!defined scalar zt($hash, '/data', name => 'big')
	->header_value('Repr-Digest'), 'no digest before it is verified');
is(zt($hash, '/data', name => 'wrong')->code(), '422 length_mismatch',
	'an invalid object');

sub range {
	my ($name, $range, %headers) = @_;

	return $t->get("/api/v1/zt/$hash/data" . zt_args(name => $name),
		{ Range => "bytes=$range", %headers });
}

for (
	[ '0-0', 0, 1 ], [ '-1', -1, 1 ], [ '399999-', 399999, 1 ],
	[ '65530-131080', 65530, 65551 ], [ '399000-999999', 399000, 1000 ],
	[ '0-399999', 0, 400000 ],
) {
	my ($range, $start, $len) = @$_;

	$r = range('big', $range);

	is($r->{status}, 206, "range $range");
	ok($r->{body} eq substr($big, $start, $len), "range $range: bytes");

	$start += 400000 if $start < 0;

	is($r->header_value('Content-Range'),
		sprintf('bytes %d-%d/400000', $start, $start + $len - 1),
		"range $range: Content-Range");
}

$r = range('big', '400000-');
is($r->{status}, 416, 'a range past the end');
is($r->header_value('Content-Range'), 'bytes */400000', 'its length');

$r = range('big', '0-1,399998-399999');
is($r->{status}, 206, 'two ranges');
like($r->header_value('Content-Type'), qr!^multipart/byteranges!, 'multipart');

is(range('a/b', '0-1', 'If-Range' => $etag)->{status}, 206, 'If-Range');
is(range('a/b', '0-1', 'If-Range' => '"x"')->{status}, 200,
	'If-Range, another tag');
is($t->get("/api/v1/zt/$hash/data?i=0", { 'If-None-Match' => $etag })
	->{status}, 304, 'If-None-Match');

$r = zt($hash, '/data', name => 'empty');
is($r->{status}, 200, 'an empty component');
is($r->header_value('Content-Length'), 0, 'an empty component: length');
is(range('empty', '0-0')->{status}, 416, 'an empty component: a range');

$r = $t->head("/api/v1/zt/$hash/data?i=2");
is($r->header_value('Content-Length'), 400000, 'HEAD of data');

# rows

for ([ '0:1', 0, 400 ], [ '10:12', 4000, 800 ], [ '998:', 399200, 800 ],
	[ ':2', 0, 800 ], [ '5:5', 2000, 0 ], [ '0:1000', 0, 400000 ])
{
	my ($rows, $start, $len) = @$_;

	$r = zt($hash, '/data', name => 'big', rows => $rows);

	is($r->{status}, 200, "rows $rows");
	ok($r->{body} eq substr($big, $start, $len), "rows $rows: bytes");
}

is(zt($hash, '/data', name => 'big', rows => '0:1001')->code(),
	'416 range_not_satisfiable', 'rows past the end');
is(zt($hash, '/data', name => '', rows => '0:1')->code(),
	'422 decode_unavailable', 'rows of a scalar');
is(zt($hash, '/data', name => 'csr', role => 'values', rows => '0:1')
	->code(), '422 decode_unavailable', 'rows of a sparse object');
is($t->get("/api/v1/zt/$hash/data?name=big&rows=1:2",
	{ Range => 'bytes=4-7' })->{body}, substr($big, 404, 4),
	'a range of rows');

# --------------------------------------------------------------------------
# the reconstruction is that of the component's range in the file

sub plan_of {
	my ($path, $range) = @_;

	my $r = $t->get("/api/$path", $range
		? { Range => sprintf('bytes=%s-%s', @$range) } : {});

	# URLs contain a time

	my $text = JSON::PP->new()->canonical()->encode($r->json());

	$text =~ s/"url":"[^"?]*\K[^"]*//g;

	return "$r->{status} $text";
}

my $place = $file->{offset}{'big/data'};

for my $v (1, 2) {
	for ([ undef, 0, 399999 ], [ [ 1000, 200000 ], 1000, 200000 ],
		[ [ 399999, 400001 ], 399999, 399999 ])
	{
		my ($range, $first, $last) = @$_;

		is(plan_of("v$v/zt/$hash/reconstruction?name=big", $range),
			plan_of("v$v/reconstructions/$hash",
				[ $place + $first, $place + $last ]),
			"reconstruction v$v, $first-$last");
	}
}

is($t->get("/api/v1/zt/$hash/reconstruction?name=big",
	{ Range => 'bytes=400000-' })->code(), '416 range_not_satisfiable',
	'past the end');
is_deeply(zt($hash, '/reconstruction', name => 'empty')->json()->{terms},
	[], 'of an empty component');

# --------------------------------------------------------------------------
# verification

$r = zt($hash, '/verify', name => 'big');
is($r->json()->{objects}[0]{components}{data}, 'verified', 'verified');
ok($r->json()->{ok}, 'ok');
is($r->json()->{bytes}, 400000, 'bytes');

$r = zt($hash, '/verify')->json();
is($r->{checked}, 10, 'all components');
ok(!$r->{ok}, 'one object is invalid');
is_deeply([ map { $_->{i} } @{ $r->{objects} } ], [ 0 .. 7 ], 'in order');
is(zt($hash, '/verify', i => 4, role => 'indptr')->json()->{checked}, 1,
	'one role');
is(zt($hash, '/verify', i => 4, role => 'data')->code(),
	'404 no_such_component', 'no such role');
is(zt($hash, '/verify', i => 8)->code(), '404 no_such_object',
	'no such object');

# several batches in parallel

my @many = map { [ sprintf('t%04d', $_), { shape => [ 1 ],
	data => pack('V', $_), digest => 'sha256:'
	. sha256_hex(pack('V', $_ == 777 ? 0 : $_)) } ] } 0 .. 999;
my $many = $t->upload(zt_file(\@many)->{bytes})->{hash};

$r = zt($many, '/verify')->json();
is($r->{checked}, 1000, 'a thousand components');
ok(!$r->{ok}, 'not ok');
is_deeply([ map { $_->{i} } grep { $_->{components}{data} ne 'verified' }
	@{ $r->{objects} } ], [ 777 ], 'one mismatch');
is($r->{objects}[777]{components}{data}, 'mismatch',
	'the mismatch is reported');

# the second request does not read the file

wait_for(10, sub { $t->sql('select count(*) from xet.zt_reports') == 1008 });

is_deeply(zt($many, '/verify')->json(), $r, 'the same result again');

$t->sql("update xet.zt_reports set report = '\\x0000' where object = 777");
is(zt($many, '/verify', i => 777)->json()->{objects}[0]{components}{data},
	'verified', 'from the cached result');

$t->sql("update xet.zt_reports set report = '\\xff00' where object = 777");
is(zt($many, '/verify', i => 777)->json()->{objects}[0]{components}{data},
	'mismatch', 'an invalid cached result is replaced');

# the response has the component's digest

my $digest = 'sha-256=:' . sha256_base64($big) . '=:';

is(zt($hash, '/data', name => 'big')->header_value('Repr-Digest'), $digest,
	'the verified digest');
is(range('big', '0-9')->header_value('Repr-Digest'), $digest,
	'also with a range');
ok(!defined scalar zt($hash, '/data', name => 'big', rows => '0:1')
	->header_value('Repr-Digest'), 'but not of other components');
ok(!defined scalar zt($many, '/data', i => 777)
	->header_value('Repr-Digest'), 'nor of a mismatch');

# components that share the same bytes: each one is read and checked

my $tied = zt_file([ [ 'first', { shape => [ 2 ], data => 'tiedtied' } ],
	map { [ "tied$_", { shape => [ 2 ], data => '', offset => 64,
		length => 8, digest => 'crc32c:0x00000000' } ] } 0 .. 9 ]);

$r = zt($t->upload($tied->{bytes})->{hash}, '/verify')->json();
is(scalar(grep { $_->{components}{data} eq 'mismatch' }
	@{ $r->{objects} }), 10, 'shared bytes are read again');

# --------------------------------------------------------------------------
# cached results

wait_for(10, sub { kept() == 3 });

$t->sql("update xet.zt_files set verdict = '\\x00'");
is(zt($hash, '')->code(), 200, 'a damaged verdict is replaced');

wait_for(10, sub {
	$t->sql("select count(*) from xet.zt_files where verdict <> '\\x00'")
});

is(zt($hash, '')->json()->{count}, 8, 'the new verdict is cached');

$t->sql('delete from xet.zt_files');

my @c = map { $t->http_start('GET', "/api/v1/zt/$many?limit=1") } 1 .. 8;
my %bodies = map { $_->response()->{body} => 1 } @c;

is(scalar(keys %bodies), 1, 'eight first requests at once');

# without PostgreSQL there are no cached results, and all requests still succeed

$t->pg_stop();
$r = zt($hash, '/data', i => 0);
is($r->{status}, 503, 'no PostgreSQL');
ok($r->header_value('Retry-After'), 'Retry-After');
$t->pg_start();

wait_for(10, sub { zt($hash, '/data', i => 0)->{body} eq 'abcdefgh' });

$t->done();
