#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A commit names files by their SHA-256.  The server verifies such a claim by
# reading the file, once for all commits with a claim about this file.  For a
# caller's false claims, it reads no more bytes than the caller has uploaded.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ slurp /;
use Test::Xet::Table;
use Test::Xet::Token;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth off;'), workers => 1);

$t->token_key();
$t->run();

my $json = JSON::PP->new()->canonical();
my $lie = sha256_hex('what nobody has');
my $times = 24;

is($t->post('/api/repos/create', '{"name":"m"}')->{status}, 200, 'a repo');

my $cas = { Authorization => 'Bearer ' . $t->get(
	'/api/models/me/m/xet-write-token/main')->json()->{accessToken} };

# a file of many MiB, for which one xorb was sent

my $data = mix(1, 8 << 20);
my $xorb = make_xorb($data);
my $n = 0;

is($t->post("/cas/v1/xorbs/default/$xorb->{hash}", \$xorb->{bytes}, $cas)
	->{status}, 200, 'a xorb');

# --------------------------------------------------------------------------
# many concurrent claims

my $file = claim($times, $lie);
my $before = bytes_read();
my @all = map { $_->response() } map { start_commit("f$_", $lie,
	$file->{size}) } 1 .. 6;
my $read = bytes_read() - $before;

is(join(' ', map { $_->{status} } @all), join(' ', (400) x 6),
	'six commits with a false SHA-256');
like($all[$_]->json()->{error}, qr/not uploaded|not have the SHA-256/,
	'the response says why') for 0 .. 5;
diag("$file->{size} bytes, read $read for six commits");
cmp_ok($read, '<', 1.5 * $file->{size}, 'the file was read once');
is($t->sql('SELECT count(*) FROM xet.hub_proofs'), 0, 'no reader is left');

# --------------------------------------------------------------------------
# several commits in sequence, each with the same claim

$before = bytes_read();

for (1 .. 3) {
	claim($times, $lie);
	is(start_commit("g$_", $lie, $file->{size})->response()->{status}, 400,
		'the same again');
}

cmp_ok(bytes_read() - $before, '<', $file->{size} / 2, 'reads nothing');

my $digest = $t->sql('SELECT encode(sha256, \'hex\') FROM xet.files'
	. ' WHERE sha256_proven');

claim($times, $digest);
is(start_commit('right', $digest, $file->{size})->response()->{status}, 200,
	'the right SHA-256, by now');
cmp_ok(bytes_read() - $before, '<', $file->{size} / 2, 'reads nothing');

# two concurrent valid claims, for two repos

is($t->sql('SELECT bytes FROM xet.hub_vain'), $file->{size},
	'bytes read for a false claim are recorded once');

my $right = sha256_hex($data x 3);

$file = claim(3, $right);
$before = bytes_read();
@all = map { $_->response() } map { start_commit("r$_", $right,
	$file->{size}) } 1 .. 4;
is(join(' ', map { $_->{status} } @all), join(' ', (200) x 4),
	'four commits of one new file');
cmp_ok(bytes_read() - $before, '<', 1.9 * $file->{size}, 'it was read once');
is($t->sql('SELECT bytes FROM xet.hub_vain'), $times * length($data),
	'a valid claim is not recorded');

# --------------------------------------------------------------------------
# a caller whose false claims have caused more reads than the caller has
# uploaded

$t->sql('UPDATE xet.hub_vain SET bytes = bytes + 5368709120');
$file = claim(4, $lie);
$before = bytes_read();

my $r = start_commit('late', $lie, $file->{size})->response();

is("$r->{status} " . $r->json()->{details}{code}, '429 too_many_claims',
	'one lie too many');
is(start_commit('known', $right, 3 * length($data))->response()->{status},
	200, 'a known SHA-256 is still accepted');
cmp_ok(bytes_read() - $before, '<', $file->{size} / 2, 'nothing is read');
$t->sql("UPDATE xet.hub_vain SET day = day - 1");
is(start_commit('late', $lie, $file->{size})->response()->{status}, 400,
	'on the next day');
is($t->sql('SELECT bytes FROM xet.hub_vain'), $file->{size},
	'the day has its own record');

# after a worker dies in the middle of a commit, other commits wait for a while

$file = claim(5, sha256_hex($data x 5));
$t->sql("INSERT INTO xet.hub_proofs SELECT id, 'another', '', size,"
	. " now() + interval '3 s' FROM xet.files WHERE size = $file->{size}");

my $c = start_commit('waits', sha256_hex($data x 5), $file->{size});

is($c->response()->{status}, 200, 'a commit after one whose worker is gone');

$t->done();

# --------------------------------------------------------------------------

# Returns a file that repeats the xorb this many times, and the claim about it.

sub claim {
	my ($times, $sha256) = @_;

	my $shard = make_shard({ files => [ { sha256 => $sha256,
		verification => JSON::PP::true, terms => [ map { {
			xorb => $xorb->{hash}, start => 0,
			end => scalar @{ $xorb->{chunks} } } } 1 .. $times ] }
		], xorbs => [ $xorb ] });
	my $r = $t->post('/cas/v1/shards', \$shard->{bytes}, $cas);

	die $r->summary() if $r->{status} != 200;

	return { %{ $shard->{files}[0] }, size => $times * length($data) };
}

sub start_commit {
	my ($path, $sha256, $size) = @_;

	my $body = join('', map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 's' } },
		{ key => 'lfsFile', value => { path => $path, algo => 'sha256',
			oid => $sha256, size => $size } });

	return $t->http_start('POST', '/api/models/me/m/commit/main', {
		'Content-Length' => length($body) }, $body, timeout => 120);
}

# Returns the number of bytes that the worker has read, from disk or page cache.

sub bytes_read {
	my $sum = 0;

	for my $pid ($t->worker_pids()) {
		my $io = slurp("/proc/$pid/io");

		$sum += $1 if $io =~ /^rchar: (\d+)/m;
	}

	return $sum;
}
