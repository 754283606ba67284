#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Real clients that need a Hub, with tokens: the hf command of huggingface_hub,
# @huggingface/hub, and an old hf_xet; "make clients" tests more clients.
# Clients of a Hub fall back silently from Xet to other protocols, so each test
# checks the requests, too.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Hub;
use Test::Xet::Real;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;

my $mib = 1048576;

my $t = Test::Xet->new(conf => '', workers => 2, log => 'info');

Test::Xet::Hub::prepare($t);
$t->run();

my $hub = Test::Xet::Hub->new($t);
my $dir = tempdir(CLEANUP => 1);
my $build = Test::Xet::Real::build();

my $size = 8 * $mib;
my $file = make_mix("$dir/file", 1, $size);
my $second = insert_into($file, $size / 2, make_mix("$dir/new", 2, 100000));

# --------------------------------------------------------------------------
# hf

ok($hub->hf('', 'upload', 'alice/f', $file, 'w.bin'), 'hf: upload')
	or diag($hub->{printed});

my @r = $hub->requests();

is(asked('POST', qr!^/api/v1/xorbs/default/!, 200, @r), 1, 'hf: a xorb');
is(asked('POST', qr!^/api/v2/shards$!, 200, @r), 1, 'hf: a shard');
is(scalar(grep { $_->{server} ne 'alice' } @r), 0, 'hf: the right server');

my @calls = $hub->calls();

is(scalar(grep { $_->[1] =~ m!/xet-write-token/main$! } @calls), 1,
	'hf: a write token');
is(scalar(grep { $_->[1] =~ m!/commit/main$! && $_->[2] == 200 } @calls), 1,
	'hf: a commit');

ok($hub->hf('', 'download', 'alice/f', 'w.bin', '--local-dir', "$dir/one"),
	'hf: download') or diag($hub->{printed});
is(sha256_file("$dir/one/w.bin"), sha256_file($file), 'hf: downloaded intact');

@r = $hub->requests();

cmp_ok(asked('GET', qr!^/api/v2/reconstructions/!, 200, @r), '>', 0,
	'hf: a reconstruction');
cmp_ok(asked('GET', qr!^/xorbs/!, 206, @r), '>', 0, 'hf: data');

# another machine uploads a new version and a small file

mkdir("$dir/folder") or die;
rename($second, "$dir/folder/w.bin") or die;
$second = "$dir/folder/w.bin";
system("echo small > $dir/folder/small.txt") == 0 or die;

ok($hub->hf('', 'upload', 'alice/f', "$dir/folder", '.'), 'hf: a folder')
	or diag($hub->{printed});

my $sent = xorb_bytes($hub->requests());

cmp_ok($sent, '>', 50000, 'hf, dedup: new data is sent');
cmp_ok($sent, '<', $size / 5, 'hf, dedup: and not much else');

ok($hub->hf('', 'download', 'alice/f', '--local-dir', "$dir/all"),
	'hf: snapshot') or diag($hub->{printed});
is(sha256_file("$dir/all/w.bin"), sha256_file($second),
	'hf: new version downloaded intact');
is(-s "$dir/all/small.txt", 6, 'hf: the small file, too');
cmp_ok(asked('GET', qr!^/api/v2/reconstructions/!, 200, $hub->requests()),
	'>', 0, 'hf: with a reconstruction');

# faults during the download

for my $owner (qw/ expire break old /) {
	ok($hub->hf('', 'upload', "$owner/f", $file, 'w.bin'),
		"hf, $owner: upload") or diag($hub->{printed});
	$hub->calls();

	ok($hub->hf('', 'download', "$owner/f", 'w.bin', '--local-dir',
		"$dir/$owner"), "hf, $owner: download")
		or diag($hub->{printed});
	is(sha256_file("$dir/$owner/w.bin"), sha256_file($file),
		"hf, $owner: downloaded intact");

	@r = $hub->requests();

	if ($owner eq 'expire') {
		cmp_ok(asked('GET', qr!^/xorbs/!, 403, @r), '>', 0,
			'hf, expire: a request was refused');
	}

	if ($owner eq 'break') {
		ok(scalar(grep { $_->[1] =~ m!^/shim/break/! } $hub->calls()),
			'hf, break: a response was truncated');
	}

	if ($owner eq 'old') {
		cmp_ok(asked('GET', qr!^/api/v2/!, 404, @r), '>', 0,
			'hf, old: version 2 was requested');
		cmp_ok(asked('GET', qr!^/api/v1/reconstructions/!, 200, @r),
			'>', 0, 'hf, old: version 1 was used');
	}
}

# a reader may neither write, nor see other users' repos

ok(!$hub->hf('', 'download', 'alice/none', 'w.bin', '--local-dir',
	"$dir/none"), 'hf: another repo has no such file');

# --------------------------------------------------------------------------
# @huggingface/hub

$hub->requests();

ok($hub->node('alice/n', 'upload', 'w.bin', $file), 'node: upload');
@r = $hub->requests();
is(asked('POST', qr!^/api/v1/shards$!, 200, @r), 1, 'node: a shard');
cmp_ok(xorb_bytes(@r), '<', $size / 2,
	'node, dedup: data sent by hf is not sent again');

my $got = $hub->node('alice/n', 'download', 'w.bin', '70000:2000001');

is($got->{sha256}, sha256_file($file), 'node: downloaded intact');
is($got->{ranges}[0], sha256_hex(file_slice($file, 70000, 2000001)),
	'node: a range');
cmp_ok(asked('GET', qr!^/xorbs/!, 206, $hub->requests()), '>', 1,
	'node: from the store');

ok($hub->node('alice/n', 'upload', 'v2.bin', $second),
	'node: a new version');

$sent = xorb_bytes($hub->requests());

cmp_ok($sent, '<', $size / 5, "node, dedup: not much is sent");
is($hub->node('alice/n', 'download', 'v2.bin')->{sha256},
	sha256_file($second), 'node: new version downloaded intact');

# each edit changes the result of the previous one: [ start, end, new bytes ]

my $data = file_slice($file, 0, $size);
my $seed = 10;

for (
	[ 'overwrite', [ 5000000, 5000100, 100 ] ],
	[ 'insert', [ 3000000, 3000000, 70000 ] ],
	[ 'append', [ 'end', 'end', 50000 ] ],
	[ 'delete', [ 1000000, 1200000, 0 ] ],
	[ 'several', [ 0, 10, 7 ], [ 4000000, 4100000, 0 ],
		[ 6000000, 6000000, 1000 ], [ 'end', 'end', 10 ] ])
{
	my ($name, @edits) = @$_;
	my $end = length($data);
	my $new = $data;
	my @args;

	for my $e (reverse @edits) {
		my ($from, $to) = map { $_ eq 'end' ? $end : $_ } @$e[0, 1];
		my $piece = $e->[2]
			? make_mix("$dir/piece$seed", $seed++, $e->[2]) : '';

		substr($new, $from, $to - $from) = $piece
			? file_slice($piece, 0, $e->[2]) : '';
		unshift @args, "$from:$to:$piece";
	}

	$hub->requests();
	ok($hub->node('alice/n', 'edit', 'w.bin', @args), "edit, $name");

	@r = $hub->requests();

	is(asked('GET', qr!^/api/v2/file-chunk-hashes/!, 200, @r), 1,
		"edit, $name: chunk hashes");
	cmp_ok(xorb_bytes(@r), '<', $size / 5, "edit, $name: little is sent");
	is($hub->node('alice/n', 'download', 'w.bin')->{sha256},
		sha256_hex($new), "edit, $name: the right bytes");

	$data = $new;
}

# --------------------------------------------------------------------------
# the routes of an old hf_xet: /chunk, /xorb, /shard

my $python = (glob("$build/clients/hf_xet-1.1.9/bin/python"))[0] || '';

die "no old hf_xet, run t/clients/setup.sh\n" unless -x $python;

my $third = make_mix("$dir/third", 30, $size);
my $o = { python => $python };

$hub->requests();

my $info = hf_xet($o, 'upload', 'legacy', $hub->endpoint('plain'),
	$third);

is($info->[0]{size}, $size, 'hf_xet 1.1: upload');
hf_xet($o, 'download', 'legacy', $hub->endpoint('plain'),
	$info->[0]{hash}, $size, "$dir/out");
is(sha256_file("$dir/out"), sha256_file($third),
	'hf_xet 1.1: downloaded intact');

@r = $hub->requests();

is(asked('POST', qr!^/api/xorbs?/!, 200, @r), 1,
	'hf_xet 1.1: route of xorbs');
is(asked('POST', qr!^/api/shards?/!, 200, @r), 1,
	'hf_xet 1.1: route of shards');
cmp_ok(asked('GET', qr!^/api/reconstructions?/!, 200, @r), '>', 0,
	'hf_xet 1.1: route of reconstructions');

# --------------------------------------------------------------------------

unlike($t->log(), qr/\[(crit|alert|emerg)\]/, 'no alerts logged');

# --------------------------------------------------------------------------
# connections that break during an upload: the workers are killed while they
# wait for a xorb's row, and hf continues with new workers

my $fourth = make_mix("$dir/fourth", 40, $size);
my $lock = $t->pg_lock('xet.xorbs');
my $fh = $hub->hf_start('', 'upload', 'alice/broken', $fourth, 'w.bin');

ok(wait_for(60, sub { $t->pg_blocked() }), 'hf, upload interrupted: waits');
$hub->requests();
$t->kill_worker('KILL', $_) for $t->worker_pids();
$lock->unlock();

ok($hub->hf_wait($fh), 'hf, upload interrupted: continues')
	or diag($hub->{printed});
cmp_ok(asked('POST', qr!^/api/v1/xorbs/default/!, 200, $hub->requests()),
	'>', 0, 'hf, upload interrupted: a xorb is sent again');
ok($hub->hf('', 'download', 'alice/broken', 'w.bin', '--local-dir',
	"$dir/broken"), 'hf, upload interrupted: download')
	or diag($hub->{printed});
is(sha256_file("$dir/broken/w.bin"), sha256_file($fourth),
	'hf, upload interrupted: downloaded intact');

# hf itself is killed, and started again

my $fifth = make_mix("$dir/fifth", 50, $size);
my $machine = tempdir(CLEANUP => 1);

$lock = $t->pg_lock('xet.xorbs');

$fh = $hub->hf_start($machine, 'upload', 'alice/killed', $fifth, 'w.bin');

ok(wait_for(60, sub { $t->pg_blocked() }), 'hf killed: waits');
$hub->hf_kill($fh);
$lock->unlock();

ok(wait_for(20, sub { !$t->temp_files() }),
	'hf killed: no temporary files left');
ok($hub->hf($machine, 'upload', 'alice/killed', $fifth, 'w.bin'),
	'hf killed: run again') or diag($hub->{printed});
ok($hub->hf($machine, 'download', 'alice/killed', 'w.bin', '--local-dir',
	"$dir/killed"), 'hf killed: download') or diag($hub->{printed});
is(sha256_file("$dir/killed/w.bin"), sha256_file($fifth),
	'hf killed: downloaded intact');

$hub->stop();
$t->done();

# --------------------------------------------------------------------------

# Counts requests; an epoch (/e<digits>) after /api does not matter.

sub asked {
	my ($method, $uri, $status, @requests) = @_;

	return scalar(grep { $_->{method} eq $method
		&& $_->{uri} =~ s!^/api/e\d+/!/api/!r =~ $uri
		&& $_->{status} == $status } @requests);
}
