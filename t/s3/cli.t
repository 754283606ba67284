#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The command-line tool with a bucket: verify, gc, rebuild, backup and restore
# work as with a folder.  A backup of a folder can be restored to a bucket, and
# vice versa.

use warnings;
use strict;

use Test::More;


use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Collector;
use Test::Xet::Files;
use Test::Xet::Process qw/ build_dir /;
use Test::Xet::S3Fault;

my $t = Test::Xet->new(s3 => 1, log => 'info', timeout => 900);

$t->run();
$t->let_age();

my $s3 = $t->s3();
my $store = $t->conf_store();
my %pg = (env => { XET_POSTGRES => $t->conninfo(), XET_STORE => $store });
my $prefix = 'a/prefix/';

my $data = mix(1, 3_000_000);
my $file = $t->upload($data, xorb_chunks => 8);
my $plain = mix(2, 400_000);

is($t->put('/api/v1/files', \$plain)->{status}, 200, 'a plain file');

my @copies = copies();

cmp_ok(scalar(@copies), '>', 3, 'copies');

# --------------------------------------------------------------------------
# values of --store

for ([ 's3://xet' => qr/needs endpoint=URL and credentials=FILE/ ],
	[ "$store connections=0" => qr/parameter "connections=0"; expected/ ],
	[ "$store timeout=1h" => qr/parameter "timeout=1h"/ ],
	[ "$store part=1m" => qr/parameter "part=1m"/ ],
	[ "$store condition=maybe" => qr/parameter "condition=maybe"/ ],
	[ "$store what" => qr/parameter "what"/ ],
	[ $store =~ s/credentials=\S+/credentials=/r =>
		qr/parameter "credentials="/ ],
	[ $store =~ s!credentials=\S+!credentials=/none!r => qr!/none! ])
{
	my ($text, $like) = @$_;
	my $r = xet(undef, { %pg }, 'verify', '--store', $text);

	is($r->{code}, 2, 'exit code');
	like($r->{err}, $like, "refused: $like");
	unlike($r->{err}, qr/\Q@{[ $s3->secret() ]}\E/, 'no secret');
}

is(xet(undef, { %pg }, 'verify', '--store',
	$store =~ s!s3://xet!s3://other!r)->{code}, 4, 'no such bucket');
is(xet(undef, { %pg }, 'verify', '--store',
	$store =~ s!/a/prefix!/elsewhere!r)->{code}, 3, 'no store there');

# --------------------------------------------------------------------------
# verify

my $r = verify('--sha256');

is($r->{code}, 0, 'verify') or diag($r->{err}, $r->{out});
is_deeply([ @{ $r->{json}[-1] }{qw/ xorbs files faults orphans proven /} ],
	[ scalar(@copies), 2, 0, 0, 2 ], 'all of it');
is(verify('--parallel', 20)->{code}, 0, 'many at once');

my $one = $copies[1];
my $good = $s3->get($one)->{body};
my $hash = ($one =~ m!([0-9a-f]{64})\.!)[0];

my $bad = $good;
substr($bad, length($bad) / 2, 1) ^= "\x01";
$s3->put($one, $bad);

$r = verify();
is($r->{code}, 1, 'damage');
is($r->{json}[0]{name}, $hash, 'of that xorb');
is($t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NOT NULL'), 1,
	'it is marked');

$s3->put($one, substr($good, 0, -1));
like(verify()->{json}[0]{fault}, qr/has \d+ bytes instead of \d+/, 'cut');

$s3->delete($one);
like(verify()->{json}[0]{fault}, qr/the file is missing/, 'missing');

$s3->put($one, $good);
is(verify()->{code}, 0, 'repaired');
is($t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NOT NULL'), 0,
	'it is not marked any more');

# if the store does not respond, no copies are reported as missing

{
	my $fault = fault();

	$fault->add(op => 'GetObject', match => $hash, do => 'status',
		status => 503);
	$r = verify('--store', at($fault));
	is($r->{code}, 4, 'a store that does not answer');
	is($t->sql('SELECT count(*) FROM xet.xorbs'
		. ' WHERE damaged_at IS NOT NULL'), 0, 'nothing is marked');
}

# --------------------------------------------------------------------------
# the age of orphans is measured by the store's clock

my $orphan = $prefix . 'xorbs/default/ab/' . 'ab' x 32 . '.00000001';
my $young = $prefix . 'xorbs/default/ab/' . 'ab' x 32 . '.00000002';

$s3->put($_, 'orphan') for $orphan, $young;
sleep(2);

is(verify('--orphans')->{json}[-1]{orphans}, 2, 'orphans');
is(collect($t)->{json}[-1]{orphans}, 0, 'too young for gc');

# old orphans are deleted: see t/cluster/nodes_bucket.t

$s3->delete($_) for $orphan, $young;

# an interrupted multipart upload

{
	$s3->must('POST', $copies[0], query => { uploads => '' });

	# moto reports 2010 as the start time of all uploads

	is(scalar(() = $s3->uploads()), 1, 'an upload in parts');
	is(collect($t)->{code}, 0, 'gc');
	is(scalar(() = $s3->uploads()), 0, 'an old one is dropped');
}

# --------------------------------------------------------------------------
# gc

my $alone = send_xorb($t, mix(3, 300_000));

is(scalar(copies()), @copies + 1, 'a xorb without files');
$r = collect($t, grace => '0s');
is($r->{code}, 0, 'gc') or diag($r->{err});
is_deeply([ @{ $r->{json}[-1] }{qw/ xorbs copies /} ], [ 1, 1 ], 'it goes');
is_deeply([ copies() ], [ @copies ], 'and its object');
is($t->sql('SELECT count(*) FROM xet.gc_copies'), 0, 'no note is left');

# --------------------------------------------------------------------------
# backups to a folder and to a bucket; each is restored to a folder and a bucket

my $folder = $t->dir() . '/backup';
my $bucket = $store =~ s!/a/prefix!/backup!r;

for my $to ($folder, $bucket) {
	my $what = $to eq $folder ? 'folder' : 'bucket';

	$r = xet(undef, { %pg }, 'backup', '--json', $to);
	is($r->{code}, 0, "backup to a $what") or diag($r->{err});
	is_deeply([ @{ $r->{json}[0] }{qw/ files copies new lost /} ],
		[ 2, scalar(@copies), scalar(@copies), 0 ], "all of it: $what");

	is($t->put('/api/v1/files', \mix(length($to), 100_000))->{status},
		200, 'another file');
	@copies = copies();

	$r = xet(undef, { %pg }, 'backup', '--json', $to);
	is($r->{json}[0]{new}, 1, "and what is new: $what")
		or diag($r->{err});
	is(xet(undef, { %pg }, 'backup', '--verify', $to)->{code}, 0,
		"it is whole: $what");

	$t->sql("DELETE FROM xet.files WHERE size = 100000");
	collect($t, grace => '0s');
	@copies = copies();

	$r = xet(undef, { %pg }, 'backup', '--json', '--keep', 1, $to);
	is($r->{json}[0]{removed}, 1, "one generation is kept: $what")
		or diag($r->{err}, $r->{out});

	restored($what, $to);
}

like(xet(undef, { %pg }, 'backup', $store)->{err}, qr/is the store itself/,
	'not into the store');
like(xet(undef, { %pg }, 'backup', $store =~ s!/prefix!!r)->{err},
	qr/is neither empty nor a backup/, 'nor into something else');

# --------------------------------------------------------------------------
# rebuild

{
	my $n = $t->sql('SELECT count(*) FROM xet.xorbs');

	$t->sql('DELETE FROM xet.files; DELETE FROM xet.xorbs;'
		. ' TRUNCATE xet.gc_xorbs, xet.gc_files, xet.gc_copies');

	$r = xet(undef, { %pg }, 'rebuild', '--json');
	is($r->{code}, 0, 'rebuild') or diag($r->{err});
	is($r->{json}[0]{added}, $n, 'rows for all copies')
		or diag($r->{out});
	is($t->sql('SELECT count(*) FROM xet.xorbs'), $n, 'they are there');
	$r = verify();
	is_deeply([ @{ $r->{json}[-1] }{qw/ xorbs faults /} ], [ $n, 0 ],
		'verified');

	# the rebuild has renamed recent copies, because a server is running

	is($t->upload($data, xorb_chunks => 8)->{hash}, $file->{hash},
		'sent again');
	ok($t->download($file->{hash}, size => length($data))->{data} eq $data,
		'the file is there');
}

$t->done();


sub verify {
	return xet(undef, { %pg }, 'verify', '--json', '--postgres',
		$t->conninfo(), (grep { $_ eq '--store' } @_)
		? () : ('--store', $store), @_);
}

sub copies {
	my @names = grep { m!/xorbs/! } sort keys %{ $s3->objects($prefix) };

	return @names;
}

# Returns a proxy to the store that injects faults.

sub fault { return Test::Xet::S3Fault->new($s3) }

sub at {
	my ($fault) = @_;

	return $store =~ s/endpoint=\S+/'endpoint=' . $fault->endpoint()/er
		=~ s/timeout=\S+/timeout=2s/r;
}

# Restores into another database, with a folder or a bucket, and starts a
# server.

sub restored {
	my ($what, $from) = @_;

	for my $kind (0, 1) {
		my $n = Test::Xet->new(s3 => $kind);
		my $name = "restored from a $what to a "
			. ($kind ? 'bucket' : 'folder');
		my $to = $n->conf_store();

		$n->pg()->start();

		$r = xet(undef, { env => { XET_STORE => $to,
			XET_POSTGRES => $n->conninfo() } }, 'restore',
			'--json', '--sql', build_dir() . '/sql', $from);
		is($r->{code}, 0, $name) or diag($r->{err});
		is_deeply([ @{ $r->{json}[0] }{qw/ copies lost others /} ],
			[ scalar(@copies), 0, 0 ], "$name: copies");

		$n->run();

		my $d = $n->download($file->{hash}, size => length($data));

		ok($d->{data} eq $data, "$name: the file");
		is(xet(undef, { env => { XET_POSTGRES => $n->conninfo() } },
			'verify', '--store', $to)->{code}, 0,
			"$name: verified");

		$r = xet(undef, { env => { XET_STORE => $to,
			XET_POSTGRES => $n->conninfo() } }, 'restore',
			'--sql', build_dir() . '/sql', $from);
		is($r->{code}, 3, "$name: not once more, over a server");
		$n->stop();
		$n->pg_stop();
	}
}
