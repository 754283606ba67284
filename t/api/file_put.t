#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# PUT of files as plain bytes.  A file gets the hash that a Xet client would
# give it, and reconstructions return the file.  Chunks that the store already
# has are not stored again, whoever uploaded them.  A faulty request registers
# nothing.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ build_dir run_command /;
use Test::Xet::Real;

use Digest::SHA qw/ sha256 sha256_hex sha512_base64 /;
use File::Temp qw/ tempdir /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;
use Time::HiRes qw/ sleep /;

my $mib = 1048576;
my $zero = '0' x 64;
my $route = '/api/v1/files';

my $http2 = Test::Xet::Nginx::version() =~ /--with-http_v2_module/
	&& `curl -V 2>&1` =~ /^Features:.* HTTP2\b/m;

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 600,
	pg_params => 'lock_timeout=5m',
	http => 'log_format bytes "$request_method $uri $status '
		. '$request_length $http_user_agent";'
		. 'access_log %%DIR%%/bytes.log bytes;'
		. Test::Xet::Token::token_directive(),
	server => ($http2 ? 'listen 127.0.0.1:%%PORT_8082%% http2;' : '')
		. Test::Xet::Token::token_location() . <<'EOC');

        location /small/ {
            xet_api;
            xet_api_base /small;
            xet_auth off;
            client_max_body_size 1m;
            error_page 413 @xet_error;
        }

        location ~ ^/(wide|narrow)/ {
            xet_api;
            xet_api_base /$1;
            xet_auth token;
            xet_access repo;
            client_max_body_size 8m;

            location ~ ^/narrow/ {
                xet_api;
                xet_api_base /narrow;
                xet_dedup_scope repo;
            }

            location ~ ^/wide/ {
                xet_api;
                xet_api_base /wide;
            }
        }
EOC

$t->token_key();
$t->run();

my $seed = 0;
my $dir = tempdir(CLEANUP => 1);

# Uploads a file by PUT, checks the response, and returns it.

sub file {
	my ($data, %o) = @_;

	my $r = $t->http($o{method} || 'PUT', $o{uri} || $route,
		$o{headers} || {}, ref $data ? $data : \$data, timeout => 60,
		%o);

	return $r->json() if $r->{status} == 200 && !$r->{error};

	diag("$r->{status} $r->{body}" . ($r->{error} // ''));
	return {};
}

# Checks the fields of the response, and reads the file back.

sub is_file {
	my ($got, $data, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $size = length($data);

	is_deeply([ sort keys %$got ], [ qw/ deduplicated_bytes hash new_bytes
		sha256 size / ], "$name: members");
	is($got->{hash}, hash_file($data)->{hash}, "$name: hash");
	is($got->{sha256}, sha256_hex($data), "$name: SHA-256");
	is($got->{size}, $size, "$name: size");
	is($got->{new_bytes} + $got->{deduplicated_bytes}, $size,
		"$name: bytes in total");

	return unless $size;

	my $d = $t->download($got->{hash}, size => $size, twice => 0);

	is("@{ $d->{errors} } $d->{status}", ' 200', "$name: rules");
	ok(($d->{data} // '') eq $data, "$name: is downloaded");
	ok($t->get("$route/$got->{hash}", {}, timeout => 60)->{body} eq $data,
		"$name: by GET");
}

sub plain {
	return join('', map { unpack('H*', reverse(pack('H*', $_))) }
		unpack('(a16)4', $_[0]));
}

sub row {
	return scalar $t->sql("SELECT size, term_count, encode(sha256, 'hex')"
		. " FROM xet.files WHERE hash = '\\x" . plain($_[0]) . "'");
}

sub digest {
	return 'sha-256=:' . encode_base64($_[0], '') . ':';
}

# Runs curl with these arguments; returns the response as JSON.

sub curl {
	my (@args) = @_;

	my ($status, $out) = run_command([ 'curl', '-sS', '--max-time', 300,
		@args ], timeout => 300);

	diag("curl $status: $out") if $status;

	return eval { JSON::PP::decode_json($out) } || {};
}

# --------------------------------------------------------------------------
# sizes, methods, transfers

for my $size (1, 12, 8191, 8192, 8193, 65537, 131071, 131072, 131073,
	$mib + 1)
{
	my $data = random_bytes(++$seed, $size);
	my $got = file($data);

	is_file($got, $data, "$size bytes");
	is($got->{new_bytes}, $size, 'all bytes are new');
	is(row($got->{hash}), "$size|1|" . sha256_hex($data), 'its row');

	for my $o ([ uri => '/api/files' ], [ method => 'POST' ],
		[ chunked => 1 ], [ chunked => 7000 ], [ expect => 1 ])
	{
		my $again = file($data, @$o);

		is("$again->{hash} $again->{new_bytes}", "$got->{hash} 0",
			"known, @$o");
	}
}

my $rows = $t->rows();

for my $o ([], [ chunked => 1 ], [ expect => 1 ]) {
	my $got = file('', @$o);

	is_file($got, '', "nothing @$o");
	is($got->{hash}, $zero, 'the hash of the empty file');
}

is_deeply($t->rows(), $rows, 'the empty file stores nothing');
is($t->head("$route/$zero")->header_value('Content-Length'), 0,
	'the empty file exists');

my $slow = mix(++$seed, 300000);
is_file(file($slow, trickle => 10000, pause => 0.005), $slow, 'slowly');

for my $case ([ 'GET', $route, 405 ], [ 'DELETE', $route, 405 ],
	[ 'PUT', "$route/$zero", 405 ], [ 'PUT', '/api/v2/files', 404 ])
{
	my ($method, $uri, $status) = @$case;
	my $r = $t->http($method, $uri, {}, $method eq 'PUT' ? 'x' : undef);

	is($r->{status}, $status, "$method $uri");
	is($r->header_value('Allow'), 'POST, PUT', 'Allow')
		if $status == 405 && $uri eq $route;
}

# --------------------------------------------------------------------------
# data that the store already has

my $base = mix(++$seed, 30 * $mib);
my $got = file($base);
is_file($got, $base, '30 MiB');

my $insert = random_bytes(++$seed, 100000);
my $second = substr($base, 0, 9 * $mib) . $insert . substr($base, 9 * $mib);

$got = file($second);
is_file($got, $second, 'with an insertion');
cmp_ok($got->{new_bytes}, '<', 500000, 'only new bytes are stored');
cmp_ok($got->{new_bytes}, '>=', 100000, 'all new bytes');

# data that clients have uploaded as xorbs before, and the reverse order

my $other = mix(++$seed, 5 * $mib);
my $file = $t->upload($other);
$got = file($other);
is("$got->{hash} $got->{new_bytes}", "$file->{hash} 0", 'uploaded before');

# a file that repeats its own data, in long and in short parts

my $part = random_bytes(++$seed, 3 * $mib);
$got = file($part x 5);
is_file($got, $part x 5, 'five times the same');
cmp_ok($got->{new_bytes}, '<', 3.5 * $mib, 'is stored once');

$got = file("\0" x (20 * $mib));
is_file($got, "\0" x (20 * $mib), 'zeros');
cmp_ok($got->{new_bytes}, '<=', 2 * $mib, 'few bytes are stored');
cmp_ok((split(/\|/, row($got->{hash})))[1], '<', 150, 'in few terms');

# alternating known and new chunks: using all known chunks would fragment the
# file

my @known = @{ hash_file($base)->{chunks} };
my $noise = random_bytes(++$seed, 30 * $mib);
my @fresh = @{ hash_file($noise)->{chunks} };
my ($pos, $at, $mixed) = (0, 0, '');

for my $i (0 .. 250) {
	$mixed .= substr($base, $pos, $known[$i]{raw_length})
		. substr($noise, $at, $fresh[$i]{raw_length});
	$pos += $known[$i]{raw_length};
	$at += $fresh[$i]{raw_length};
}

$got = file($mixed);
is_file($got, $mixed, 'in pieces');
cmp_ok((split(/\|/, row($got->{hash})))[1], '<', 200, 'not many terms');

# the same file in several concurrent uploads

my $same = random_bytes(++$seed, 2 * $mib);
my %answers;

my @c = map { $t->http_start('PUT', $route, { 'Content-Length' => 2 * $mib },
	substr($same, 0, $mib)) } 1 .. 6;
$_->send(substr($same, $mib)) for @c;

for (@c) {
	my $r = $_->response('PUT', timeout => 30);
	$answers{"$r->{status} " . ($r->json()->{hash} // '')}++;
	$_->close();
}

is_deeply(\%answers, { '200 ' . hash_file($same)->{hash} => 6 },
	'six at once');

# --------------------------------------------------------------------------
# what the client declares about the content

my $data = random_bytes(++$seed, 200000);
my $hash = hash_file($data)->{hash};
my $sha256 = sha256($data);
my $wrong = sha256('wrong');

$rows = $t->rows();

my @bad = (
	[ 'digest_mismatch', 'Repr-Digest' => digest($wrong) ],
	[ 'digest_mismatch', 'Content-Digest' => digest($wrong) ],
	[ 'digest_mismatch', 'Repr-Digest' => 'sha-512=:'
		. sha512_base64($data) . '==:, ' . digest($wrong) ],
	[ 'hash_mismatch', 'X-Xet-Hash' => $zero ],
	[ 'hash_mismatch', 'X-Xet-Hash' => unpack('H*', $sha256) ],
	[ 'invalid_hash', 'X-Xet-Hash' => substr($hash, 1) ],
	[ 'invalid_hash', 'X-Xet-Hash' => "${hash}0" ],
	[ 'invalid_hash', 'X-Xet-Hash' => '' ],
	[ 'invalid_hash', 'X-Xet-Hash' => [ $hash, $hash ] ],
	[ 'invalid_digest', 'Repr-Digest' => unpack('H*', $sha256) ],
	[ 'invalid_digest', 'Repr-Digest' => 'sha-256=:AAAA:' ],
	[ 'invalid_digest', 'Repr-Digest' => 'sha-256='
		. encode_base64($sha256, '') ],
	[ 'invalid_digest', 'Repr-Digest' => '' ],
	[ 'invalid_digest', 'Repr-Digest' => [ (digest($sha256)) x 2 ] ],
	[ 'invalid_digest', 'Repr-Digest' => digest($sha256),
		'Content-Digest' => digest($wrong) ],
	[ 'no_partial_put', 'Content-Range' => 'bytes 0-199999/400000' ]
);

for my $case (@bad) {
	my ($code, %headers) = @$case;

	for my $o ([], [ chunked => 50000 ]) {
		my $r = $t->http('PUT', $route, \%headers, \$data, @$o);

		is("$r->{status} " . ($r->json()->{error}{code} // ''),
			"400 $code", join(' ', %headers, @$o));
	}
}

# all routes refuse a body with a content coding, since the coded bytes would be
# stored as the file

for my $case ([ PUT => $route ], [ POST => $route ],
	[ POST => '/api/v1/shards' ], [ POST => "/api/v1/xorbs/default/$hash" ],
	[ POST => '/api/v1/telemetry' ])
{
	my ($method, $uri) = @$case;

	for my $coding ('gzip', 'zstd', 'gzip, identity', 'identities',
		[ 'identity', 'br' ])
	{
		my $r = $t->http($method, $uri,
			{ 'Content-Encoding' => $coding }, \$data);

		is("$r->{status} " . $r->json()->{error}{code},
			'415 unsupported_content_encoding', "$method $uri: "
			. (ref $coding ? "@$coding" : $coding));
		is($r->header_value('Accept-Encoding'), 'identity',
			'Accept-Encoding: identity');
	}
}

is_deeply($t->rows(), $rows, 'nothing was registered');

for my $coding ('identity', 'Identity', '') {
	is(file($data, headers => { 'Content-Encoding' => $coding })->{hash},
		$hash, "Content-Encoding: $coding");
}

$rows = $t->rows();

my $r = $t->http('PUT', $route, { 'X-Xet-Hash' => 'x' }, \$data, expect => 1);
is($r->{status}, 400, 'malformed, before the body is read');

for my $headers ({ 'Repr-Digest' => digest($sha256) },
	{ 'X-Xet-Hash' => uc $hash },
	{ 'Content-Digest' => digest($sha256), 'X-Xet-Hash' => $hash,
		'Repr-Digest' => 'md5=:AAAA:' })
{
	is(file($data, headers => $headers)->{hash}, $hash,
		join(' ', %$headers));
}

# readers get the computed SHA-256, whatever a shard has claimed earlier

is($t->get("$route/$hash")->header_value('Repr-Digest'), digest($sha256),
	'its SHA-256 is proven');

$t->sql("UPDATE xet.files SET sha256 = '\\x" . 'ab' x 32 . "', sha256_proven = "
	. "false WHERE sha256 = '\\x" . unpack('H*', $sha256) . "'");
is($t->get("$route/$hash")->header_value('Repr-Digest'), undef,
	'a claim is not returned');
is(file($data)->{sha256}, unpack('H*', $sha256), 'put again');
is($t->get("$route/$hash")->header_value('Repr-Digest'), digest($sha256),
	'the claim was replaced');

for my $headers ({ 'Repr-Digest' => digest(sha256('')) },
	{ 'X-Xet-Hash' => $zero })
{
	is(file('', headers => $headers)->{hash}, $zero,
		'an empty body, as declared');
}

$r = $t->put($route, '', { 'Repr-Digest' => digest($sha256) });
is($r->{status}, 400, 'an empty body, declared otherwise');

# --------------------------------------------------------------------------
# limits

for my $o ([], [ chunked => 100000 ]) {
	$r = $t->http('PUT', '/small/v1/files', {},
		random_bytes(++$seed, 2 * $mib), @$o);
	is("$r->{status} " . $r->json()->{error}{code}, '413 body_too_large',
		"too large @$o");

	my $most = random_bytes(++$seed, $mib);
	is(file($most, uri => '/small/v1/files', @$o)->{new_bytes}, $mib,
		"not too large @$o");
}

my $c = $t->http_start('PUT', $route, { 'Transfer-Encoding' => 'chunked' },
	"5\r\nabcde\r\nnonsense\r\n");
$r = $c->response('PUT');
is($r->{status}, 400, 'broken framing');
$c->close();

# --------------------------------------------------------------------------
# repos: who may write and read, and what dedup reveals

my $mine = random_bytes(++$seed, 3 * $mib);
my ($reader, $writer, $stranger) = map { $t->auth(split(m!/!, $_, 2)) }
	qw! read/a/a write/a/a write/b/b !;

$rows = $t->rows();
is($t->put('/wide/v1/files', $mine)->{status}, 401, 'no token');
is($t->put('/wide/v1/files', $mine, $reader)->{status}, 403,
	'a token to read');
is_deeply($t->rows(), $rows, 'nothing was registered');

$got = file($mine, uri => '/wide/v1/files', headers => $writer);
is($got->{new_bytes}, 3 * $mib, 'a: new');

my $uri = "/v1/reconstructions/$got->{hash}";

is($t->get("/wide$uri", $reader)->{status}, 200, 'a: has the file');
is($t->get("/wide$uri", $stranger)->{status}, 404, 'b: does not have it');

my $longer = $mine . random_bytes(++$seed, 100000);

$got = file($longer, uri => '/narrow/v1/files', headers => $stranger);
is($got->{deduplicated_bytes}, 0, 'b: learns nothing of a');

$longer .= random_bytes(++$seed, 200000);
$got = file($longer, uri => '/narrow/v1/files', headers => $stranger);
cmp_ok($got->{deduplicated_bytes}, '>', 2.8 * $mib,
	'deduplicated against its own file');
is($t->get("/narrow/v1/reconstructions/$got->{hash}", $stranger)->{status},
	200, 'b: has the file');

$got = file($mine, uri => '/wide/v1/files', headers => $stranger);
cmp_ok($got->{new_bytes}, '<', 200000,
	'b: the same file, dedup in the store');
is($t->get("/wide$uri", $stranger)->{status}, 200, 'b: has it now');

# --------------------------------------------------------------------------
# an upload is aborted after two complete xorbs: two retries, one after the
# other, both use the two xorbs

$data = random_bytes(++$seed, 150 * $mib);
$rows = $t->rows();

$c = $t->http_start('PUT', $route, { 'Content-Length' => length($data) });
ok($c->send(substr($data, 0, 140 * $mib), timeout => 60), 'most of a file');
ok(wait_for(20, sub { $t->rows()->{xorbs} == $rows->{xorbs} + 2 }),
	'its first two xorbs are stored');
$c->abort();

ok(wait_for(10, sub { !$t->temp_files() }), 'nothing else is left');
is($t->rows()->{files}, $rows->{files}, 'no file');

$got = file($data);
is($got->{hash}, hash_file($data)->{hash}, 'the retry');
cmp_ok($got->{deduplicated_bytes}, '>', 127 * $mib,
	'deduplicated against both');
is($t->rows()->{xorbs}, $rows->{xorbs} + 3, 'three in all');

# a worker that is killed in the middle of the body

$data = random_bytes(++$seed, 100 * $mib);
$rows = $t->rows();
$c = $t->http_start('PUT', $route, { 'Content-Length' => length($data) });
$c->send(substr($data, 0, 90 * $mib), timeout => 60);
ok(wait_for(20, sub { $t->rows()->{xorbs} == $rows->{xorbs} + 1 }),
	'a xorb of another file');

$t->kill_worker('KILL', $_) for $t->worker_pids();
ok($c->closed(), 'the workers die');
$c->close();
is($t->rows()->{files}, $rows->{files}, 'no file');

$got = file($data);
is($got->{hash}, hash_file($data)->{hash}, 'the retry');
cmp_ok($got->{deduplicated_bytes}, '>', 63 * $mib,
	'deduplicated against the xorb');

my $d = $t->download($got->{hash}, size => length($data), twice => 0);
ok($d->{data} eq $data, 'the download');
undef $d;
undef $data;

# --------------------------------------------------------------------------
# PostgreSQL delays a xorb: the server reads the body only until its buffers are
# full.  If the client disconnects then, nothing is stored; if it waits, it gets
# its response.

sub held_up {
	return wait_for(20, sub { $t->sql('SELECT count(*)'
		. " FROM pg_stat_activity WHERE usename = 'xet'"
		. " AND wait_event_type = 'Lock'") });
}

$data = random_bytes(++$seed, 100 * $mib);
$rows = $t->rows();

my $lock = $t->pg_lock('xet.xorbs');

$c = $t->http_start('PUT', $route, { 'Content-Length' => length($data) },
	undef, timeout => 2);
ok(!$c->send($data), 'the body is not read further');
ok(held_up(), 'a statement waits');
$c->abort();
sleep(0.3);
$lock->unlock();

ok(wait_for(20, sub { !$t->temp_files() }), 'nothing is left');
is($t->rows()->{files}, $rows->{files}, 'no file');

$data = random_bytes(++$seed, 20 * $mib);
$lock = $t->pg_lock('xet.chunks');

$c = $t->http_start('PUT', $route, { 'Content-Length' => length($data) },
	substr($data, 0, $mib));
ok(held_up(), 'a query waits');
ok(!$c->closed(0.3), 'the upload waits');
$lock->unlock();
$c->send(substr($data, $mib));

$r = $c->response('PUT', timeout => 30);
is("$r->{status} " . $r->json()->{sha256}, '200 ' . sha256_hex($data),
	'and succeeds');
$c->close();

# --------------------------------------------------------------------------
# HTTP/2; the length is unknown if the body comes from a pipe

SKIP: {
	skip('no HTTP/2', 2) unless $http2;

	my $h2 = $t->url($route, 8082);
	my $big = make_mix("$dir/h2", 21, 20 * $mib);
	my $sum = sha256_file($big);

	is(curl('--http2-prior-knowledge', '-T', $big, $h2)->{sha256}, $sum,
		'HTTP/2');

	open(my $pipe, '-|', "cat $big | curl -sS --http2-prior-knowledge"
		. " --max-time 60 -T - $h2") or die "curl: $!\n";
	my $answer = eval { JSON::PP::decode_json(join('', <$pipe>)) } || {};
	is($answer->{sha256}, $sum, 'HTTP/2 without a length');
	close($pipe);
}

# --------------------------------------------------------------------------
# PostgreSQL is down

$t->allow(qr/PostgreSQL|database|connection to server/);
$t->pg_stop();

$r = $t->put($route, random_bytes(++$seed, 500000));
is("$r->{status} " . $r->json()->{error}{code}, '503 database_unavailable',
	'without a database');
ok($r->header_value('Retry-After'), 'Retry-After');

$t->pg_start();
ok(wait_for(20, sub { $t->get('/api/health')->{status} == 200 }),
	'PostgreSQL is back');

$data = random_bytes($seed, 500000);
is_file(file($data), $data, 'and takes the file');

# --------------------------------------------------------------------------
# large files, by curl; memory does not grow

my $size = 300 * $mib;
my $large = make_mix("$dir/large", 7, $size);
my $url = $t->url($route);

curl('-T', make_mix("$dir/warm", 6, 70 * $mib), $url);

my @before = map { $t->rss($_) } $t->worker_pids();

$got = curl('-T', $large, $url);
is($got->{sha256}, sha256_file($large), '300 MiB by curl');

my $grown = 0;
my $i = 0;

for my $pid ($t->worker_pids()) {
	my $by = $t->rss($pid) - $before[$i++];
	$grown = $by if $by > $grown;
}

cmp_ok($grown, '<', 12 * 1024, 'memory does not grow with the file');

$hash = $got->{hash};
$got = curl('-X', 'POST', '-T', $large, '-H', 'Transfer-Encoding: chunked',
	$url);
is($got->{hash}, $hash, 'again, without a length');
cmp_ok($got->{new_bytes}, '<', $size / 100, 'few bytes are new');

# --------------------------------------------------------------------------
# hf_xet and PUT upload the same data, in both orders

my $endpoint = $t->url('/api');
my $sent = uploaded($t);
my $info = hf_xet({}, 'upload', 'session', $endpoint, $large)->[0];

is($info->{hash}, $hash, 'hf_xet: the same hash');
cmp_ok(uploaded($t) - $sent, '<', $size / 100,
	'hf_xet: sends few bytes after curl');

hf_xet({}, 'download', 'session', $endpoint, $hash, $size, "$dir/out");
is(sha256_file("$dir/out"), sha256_file($large), 'hf_xet: the download');

make_mix($large, 8, $size);
$info = hf_xet({}, 'upload', 'session', $endpoint, $large)->[0];
$got = curl('-T', $large, $url);

is($got->{hash}, $info->{hash}, 'curl: the same hash');
cmp_ok($got->{new_bytes}, '<', $size / 100,
	'curl: few bytes are new after hf_xet');

$t->done();
