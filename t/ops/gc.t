#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet gc and the collector that it starts: which files, xorbs and copies are
# deleted, and why others are kept.  In the meantime, clients send shards, known
# files and known xorbs, and a backup and a second xet gc run.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Collector;
use Test::Xet::Files;
use Test::Xet::Process qw/ slurp spew /;

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 900);

$t->run();
$t->let_age();

my %pg = (env => { XET_POSTGRES => $t->conninfo(),
	XET_STORE => $t->conf_store() });

# --------------------------------------------------------------------------
# nothing to do

my $r = gc();

is($r->{code}, 0, 'an empty store') or diag($r->{err});
is_deeply([ @{ $r->{json}[0] }{qw/ files xorbs copies orphans /} ],
	[ 0, 0, 0, 0 ], 'nothing');

# --------------------------------------------------------------------------
# a file is deleted, and then its xorbs that no other file needs

my $shared = send_xorb($t, mix(1, 600_000));
my $own = send_xorb($t, mix(2, 600_000));

my $one = register_file($t, [ [ $shared ], [ $own ] ]);
my $two = register_file($t, [ [ $shared, 1 ] ]);

is(gc('--grace', '0s')->{json}[0]{xorbs}, 0, 'what files need stays');
is(notes('xorbs'), 0, 'and its temporary rows are gone');

is(forget($one), 1, 'deleted');
is($t->get("/api/v1/files/$one->{hash}")->{status}, 404, 'at once');
is(forget($one), 0, 'twice');

$r = gc('--dry-run', '--grace', '0s');

is_deeply([ @{ $r->{json}[0] }{qw/ dry_run files file_bytes xorbs /} ],
	[ JSON::PP::true, 1, $one->{size}, 1 ], 'a dry run')
	or diag($r->{out}, $r->{err});
is($r->{json}[0]{xorb_bytes}, length($own->{bytes}), 'with its bytes');
is(scalar($t->copies($own->{hash})), 1, 'does nothing');

$r = gc('--dry-run');
is_deeply([ @{ $r->{json}[0] }{qw/ files xorbs young /} ], [ 1, 0, 1 ],
	'the same with grace');

like(xet(undef, { %pg }, 'gc', '--dry-run')->{out},
	qr/^1 deleted file, \d+ bytes$/m, 'as text');

$r = gc();
is_deeply([ @{ $r->{json}[0] }{qw/ files xorbs copies /} ], [ 1, 0, 0 ],
	'the file, and its xorb later');
is($t->sql('SELECT count(*) FROM xet.file_xorbs'), 1, 'without references');

# clients remember the xorbs that the server has advertised

ok(advertise($own), 'advertised');

$r = gc('--grace', '12h');
is($r->{json}[0]{xorbs}, 0, 'it is too young');

$t->sql("UPDATE xet.gc_xorbs SET since = since - interval '13 hours'");
$r = gc('--grace', '12h');
is_deeply([ @{ $r->{json}[0] }{qw/ xorbs advertised /} ], [ 0, 1 ],
	'it was advertised today');

$t->sql("UPDATE xet.gc_xorbs SET since = since - interval '13 days';"
	. " UPDATE xet.xorbs SET advertised_on = advertised_on - 13");
$r = gc('--grace', '12d');
is_deeply([ @{ $r->{json}[0] }{qw/ xorbs copies copy_bytes /} ],
	[ 1, 1, length($own->{bytes}) ], 'and goes with its file')
	or diag($r->{out}, $r->{err});
is(scalar($t->copies($own->{hash})), 0, 'there is no file');
is(notes('xorbs') + notes('files') + notes('copies'), 0, 'no temporary rows');

whole($two, 'the other is whole');
is(verify()->{code}, 0, 'and the store');

# --------------------------------------------------------------------------
# a deleted file that is sent again is a new file, with new and existing xorbs

send_xorb($t, $own->{raw});
is(register_file($t, [ [ $shared ], [ $own ] ])->{hash}, $one->{hash},
	'sent again');
whole($one, 'there again');

# --------------------------------------------------------------------------
# a xorb without a shard so far, and a xorb that was sent again

my $alone = send_xorb($t, mix(3, 300_000));

is(gc('--grace', '1h')->{json}[0]{xorbs}, 0, 'a shard may follow');
$t->sql("UPDATE xet.gc_xorbs SET since = since - interval '2 days'");
send_xorb($t, $alone->{raw});
is(gc('--grace', '1d')->{json}[0]{advertised}, 1,
	'a shard for a resent xorb may follow');
is(gc('--grace', '0s')->{json}[0]{xorbs}, 1, 'without grace it goes');

# a xorb is advertised on a UTC date, in any time zone of a session: at any
# time, the date in one of these zones differs from the UTC date

{
	my $x = send_xorb($t, mix(8, 100_000));

	for my $zone ('Pacific/Kiritimati', 'Etc/GMT+12') {
		my $set = "SET timezone = '$zone'; ";

		$t->sql('UPDATE xet.xorbs SET advertised_on = NULL');
		$t->sql($set . "SELECT xet.xorb_advertised(ARRAY['\\x"
			. plain_hash($x->{hash}) . "'::bytea])");
		is($t->sql('SELECT advertised_on = (now() AT TIME ZONE'
			. " 'UTC')::date FROM xet.xorbs WHERE advertised_on IS"
			. ' NOT NULL'), 't', "$zone: the day of UTC");
		is($t->sql($set . "SELECT recorded FROM xet.xorb_get('\\x"
			. plain_hash($x->{hash}) . "', true, '', NULL)"), 't',
			"$zone: already recorded");

		# the xorb was advertised two days ago.  One grace period begins
		# an hour before the end of that day, and the other one an hour
		# after the end.

		$t->sql('UPDATE xet.xorbs SET advertised_on = advertised_on'
			. ' - 2; UPDATE xet.gc_xorbs SET since = since'
			. " - interval '9 days'");

		for my $hour (1, -1) {
			my $grace = 'extract(epoch FROM now() - (date_trunc('
				. "'day', now(), 'UTC') - interval '1 day'))"
				. "::bigint + $hour * 3600";

			is($t->sql($set . 'SELECT advertised FROM'
				. " xet.gc_preview($grace)"),
				$hour > 0 ? 1 : 0, "$zone: advertised, $hour");
			is($t->sql($set . 'BEGIN; SELECT xorbs, advertised FROM'
				. " xet.gc_xorbs($grace, 10); ROLLBACK"),
				$hour > 0 ? '0|1' : '1|0',
				"$zone: collected, $hour");
		}
	}

	is(gc('--grace', '0s')->{json}[0]{xorbs}, 1, 'it goes');
}

# --------------------------------------------------------------------------
# orphans

# the bucket reports the age of an object

my $orphan = 'xorbs/default/ab/' . 'ab' x 32 . '.00000001';

$t->put_copy($orphan, 'x');
is(gc()->{json}[0]{orphans}, 0, 'a young orphan may get its row');

sub age { utime((time() - 90000) x 2, map { $t->store() . "/$_" } @_) }

SKIP: {
	skip('nobody can make an object old', 3) if $t->s3();

	age($orphan);
	$t->sql('UPDATE xet.xorbs SET created_at = created_at'
		. " - interval '3 days'");
	$r = gc();
	is_deeply([ @{ $r->{json}[-1] }{qw/ orphans orphans_left /} ], [ 0, 1 ],
		'nor is one removed that the database does not know of');
	$t->sql('UPDATE xet.xorbs SET created_at = now()');
	is(gc()->{json}[0]{orphans}, 1, 'an old one is removed');
	ok(!defined $t->copy_bytes($orphan), 'it is gone');
}

$t->remove_copy($orphan) if $t->s3();

# --------------------------------------------------------------------------
# a backup keeps copies

{
	my $x = send_xorb($t, mix(4, 300_000));
	my $backup = $t->pg_session();

	$backup->send('SELECT pg_advisory_lock_shared('
		. "hashtext('xet.copies'), 0)");
	ok(wait_for(10, sub { backups() == 1 }), 'a backup');

	$r = gc('--grace', '0s');
	is_deeply([ @{ $r->{json}[0] }{qw/ xorbs copies waiting /} ],
		[ 1, 0, 1 ], 'its row goes, and its file waits');
	is(scalar($t->copies($x->{hash})), 1, 'for the backup');

	is(verify('--orphans')->{json}[-1]{orphans}, 0, 'it is no orphan');
	is(verify()->{json}[-1]{orphans}, 0, 'nor is it for one who reads all');

	# a rebuild takes the same lock, and may insert the missing row of a
	# copy

	$t->put_copy($orphan, 'x');
	age($orphan, $t->copies($x->{hash})) unless $t->s3();
	$r = gc();
	is(scalar($t->copies($x->{hash})), 1, 'nor for one who removes');
	like($r->{err}, qr/a row are kept/, 'which is said');
	is($r->{json}[0]{orphans}, 0, 'orphans of a rebuild are left');
	ok(defined $t->copy_bytes($orphan), 'they are there');

	# the same xorb, sent again in the meantime, gets a second copy

	send_xorb($t, $x->{raw});
	is(scalar($t->copies($x->{hash})), 2, 'two copies');

	$backup->close();
	ok(wait_for(10, sub { backups() == 0 }), 'the backup has ended');

	my $f = register_file($t, [ [ $x ] ]);
	is_deeply([ @{ gc('--grace', '0s')->{json}[0] }{qw/ copies orphans /} ],
		[ 1, $t->s3() ? 0 : 1 ], 'one is removed, and an orphan');
	is(scalar($t->copies($x->{hash})), 1, 'and one is not');
	whole($f, 'the right one');
}

# --------------------------------------------------------------------------
# a folder that is not the store

{
	my $x = send_xorb($t, mix(5, 100_000));

	collector($t)->allow(qr/identity|is not the store|the folder|No such/);
	$r = collect($t, grace => '0s', before => sub {
		ok(wait_for(10, sub { collector($t)->get('/api/health')
			->{status} == 200 }), 'a server');
		$t->hide_store();
	});
	is($r->{code}, 3, 'the disk is not there');
	like($r->{err}, qr/the store does not belong/, 'is said');
	is(notes('copies'), 1, 'its row stays');

	$t->show_store();

	is(gc('--grace', '0s')->{json}[0]{copies}, 1, 'it is back');
}

# --------------------------------------------------------------------------
# the collector skips locked rows, and does not wait for them

{
	my $x = send_xorb($t, mix(6, 100_000));
	my $y = send_xorb($t, mix(7, 100_000));
	my $f = register_file($t, [ [ $y ] ]);
	my $hold = $t->pg_session();

	forget($f);

	$hold->send("BEGIN; SELECT id FROM xet.xorbs WHERE hash = '\\x"
		. plain_hash($x->{hash}) . "' FOR KEY SHARE; SELECT id FROM"
		. " xet.files WHERE hash IS NULL FOR KEY SHARE");
	ok(wait_for(10, sub { $t->sql("SELECT count(*) FROM pg_stat_activity"
		. " WHERE state = 'idle in transaction'") == 1 }), 'locks');

	$r = gc('--grace', '0s');
	is_deeply([ @{ $r->{json}[0] }{qw/ files xorbs busy /} ], [ 0, 0, 2 ],
		'are passed over') or diag($r->{out}, $r->{err});

	$hold->close();
	ok(wait_for(10, sub { gc('--grace', '0s')->{json}[0]{xorbs} == 2 }),
		'until they are gone');
}

# --------------------------------------------------------------------------
# repos

$t->sql("SELECT xet.repo_create('a'), xet.repo_create('b')");

my $mine = upload_repo('a', 11);

is($t->sql("SELECT xet.repo_add('b', '\\x$mine->{plain}')"), 't',
	'in two repos');
$t->sql("UPDATE xet.files SET held = false WHERE id = $mine->{id}");

is(forget($mine), 2, 'the store does not delete what repos have');
is($t->sql("SELECT xet.repo_forget('a', '\\x$mine->{plain}')"), 't',
	'one lets go');
is(gc('--grace', '0s')->{json}[0]{files}, 0, 'one still has it');
is($t->sql("SELECT xet.repo_delete('b')"), 't', 'the other is deleted');
$r = gc('--grace', '0s');
is_deeply([ @{ $r->{json}[0] }{qw/ files xorbs copies /} ], [ 1, 1, 1 ],
	'then it goes') or diag($r->{out});

# --------------------------------------------------------------------------
# a file with very many references is deleted in steps, and is not found in the
# meantime

SKIP: {
	skip('each copy costs a request', 5) if $t->s3();

	my $many = insert_file($t, 77, 60000, 30000);

	rows('many', 30000);
	$t->sql("INSERT INTO xet.file_xorbs (file_id, xorb_id, chunks)"
		. " SELECT f.id, x.id, '{[0,1)}' FROM xet.files f, xet.xorbs x"
		. " WHERE f.size = $many->{size} AND x.raw_size = 1",
		timeout => 180);

	is(forget($many), 1, 'a large file');
	is($t->sql('SELECT files, refs FROM xet.gc_files(1)'), '0|20235',
		'a part of it');
	is($t->sql('SELECT files, refs FROM xet.gc_files(1)'), '1|10000',
		'the rest');

	$r = gc('--grace', '0s', '--rate', 1000000);
	is($r->{json}[0]{xorbs}, 30000, 'its xorbs');
}

# --------------------------------------------------------------------------
# two concurrent runs, an interrupted run, and a server that exits during a run

{
	# in a bucket each copy costs a request

	my $n = $t->s3() ? 400 : 2000;

	rows('two', $n);

	my $second;
	my $first = collect($t, grace => '0s', meanwhile => sub {
		$second = xet(undef, { %pg }, 'gc', '--json');
	});

	is($_->{code}, 0, 'two at once') or diag($_->{err}) for $first, $second;
	is($first->{json}[0]{xorbs}, $n, 'all of it');
	is($first->{json}[0]{copies}, $n, 'and nothing is counted twice');

	rows('three', 500);

	$r = collect($t, grace => '0s', rate => 20, meanwhile => sub {
		my ($slow) = @_;

		ok(wait_for(30, sub { my $n = $t->sql('SELECT count(*) FROM'
			. ' xet.gc_xorbs'); $n > 0 && $n < 500 }),
			'a slow one');
		kill('TERM', $slow->{pid});
	});

	is($r->{code}, 130, 'is interrupted');
	like($r->{err}, qr/interrupted; the server continues/, 'is said');
	cmp_ok(tiny(), '>', 0, 'in the middle');
	is(gc('--grace', '0s')->{code}, 0, 'by another server');
	is(tiny(), 0, 'and the run is completed');
}

is(verify()->{code}, 0, 'the store is right in the end');
is($t->sql('SELECT count(*) FROM xet.gc_copies') + notes('files'), 0,
	'no temporary rows are left');

# --------------------------------------------------------------------------
# wrong usage

is(xet(undef, { %pg }, 'gc', @$_)->{code}, 2, "@$_") for [ '--grace', 'x' ],
	[ '--older', '1h' ], [ '--rate', 0 ], [ 'operand' ];

$r = xet(undef, { %pg }, 'gc');
is($r->{code}, 3, 'no server');
like($r->{err}, qr/no server collects; set "xet_gc on"/, 'is said');

# --------------------------------------------------------------------------
# another store replaces the folder during a sweep

SKIP: {
	skip('nobody can make an object old', 7) if $t->s3();

	my $path = $t->store() . '/xorbs/default/ee/' . 'ee' x 32 . '.00000007';
	my $identity = $t->store() . '/identity';
	my $ours = slurp($identity);

	spew($path, 'x');
	utime((time() - 90000) x 2, $path);

	$t->sql('ALTER FUNCTION xet.orphans(bytea[], integer[])'
		. ' RENAME TO orphans_was;'
		. ' CREATE FUNCTION xet.orphans(a bytea[], b integer[])'
		. ' RETURNS TABLE (hash bytea, copy_id integer)'
		. ' LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3);'
		. ' RETURN QUERY SELECT * FROM xet.orphans_was(a, b); END $$');

	my $r = collect($t, meanwhile => sub {
		ok(wait_for(30, sub { !-e $path }),
			'in the middle: in quarantine');
		spew($identity, '22' x 16 . "\n");
	});

	is($r->{code}, 3, 'in the middle: an error');
	like($r->{err}, qr/does not belong to this database/,
		'in the middle: why');

	my @aside = glob($t->store() . '/tmp/orphan.*');

	is(scalar(@aside), 1, 'in the middle: nothing is removed');

	spew($identity, $ours);
	$t->sql('DROP FUNCTION xet.orphans; ALTER FUNCTION'
		. ' xet.orphans_was(bytea[], integer[]) RENAME TO orphans');
	is(gc()->{json}[0]{orphans}, 1, 'in the middle: the next one does it');
	ok(!-e $aside[0] && !-e $path, 'in the middle: it is gone');
}

$t->done();

# --------------------------------------------------------------------------

sub gc {
	my (@args) = @_;

	return xet(undef, { %pg }, 'gc', '--json', @args)
		if grep { $_ eq '--dry-run' } @args;

	return collect($t, map { s/^--//r } @args);
}

# Returns the number of one-byte xorbs that are left.

sub tiny { return $t->sql('SELECT count(*) FROM xet.xorbs WHERE raw_size = 1') }

sub verify {
	return xet(undef, { %pg }, 'verify', '--json', '--store',
		$t->conf_store(),
		@_);
}

sub whole {
	my ($file, $name) = @_;

	my $r = $t->get("/api/v1/files/$file->{hash}");

	ok($r->{body} eq $file->{data}, $name) or diag($r->summary());
}

# Creates one-byte xorbs, as rows only.

sub rows {
	my ($name, $n) = @_;

	$t->sql(<<"EOF_SQL", timeout => 180);
INSERT INTO xet.xorbs (hash, chunk_count, raw_size, stored_size, chunk_hashes,
                       raw_ends, stored_ends)
SELECT sha256(('$name' || i)::bytea), 1, 1, 1, sha256('x'), '\\x01000000',
       '\\x01000000'
  FROM generate_series(1, $n) AS i
EOF_SQL
}

sub backups {
	return $t->sql('SELECT count(*) FROM pg_locks'
		. " WHERE locktype = 'advisory' AND mode = 'ShareLock'");
}

sub notes {
	return $t->sql("SELECT count(*) FROM xet.gc_$_[0]");
}

sub forget {
	my ($file) = @_;

	return $t->sql("SELECT xet.file_delete('\\x"
		. ($file->{plain} // plain_hash($file->{hash})) . "')");
}

sub advertise {
	my ($xorb) = @_;

	return $t->sql("SELECT xet.xorb_advertised(ARRAY['\\x"
		. plain_hash($xorb->{hash}) . "'::bytea])");
}

sub upload_repo {
	my ($repo, $seed) = @_;

	my $file = $t->upload(mix($seed, 200_000));
	my $plain = plain_hash($file->{hash});
	my $id = $t->sql("SELECT id FROM xet.files WHERE hash = '\\x$plain'");

	$t->sql("SELECT xet.repo_add('$repo', '\\x$plain')");

	return { %$file, plain => $plain, id => $id };
}
