#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# No two copies get the same copy id, from any worker, even if the database is
# restored or forked.  Uploads are refused while no copy ids are available.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ run_command spew wait_for /;

my $block = 256;
my $seed = 0;

my $t = Test::Xet->new(workers => 3, log => 'info',
	allow => [ qr/no copy ids today/ ]);
$t->run();

# Uploads a file that is new to the store.

sub file {
	my $data = random_bytes(++$seed, 100);

	return $t->put('/api/v1/files', \$data);
}

# Uploads n files on one connection; returns how often each status occurred.

sub put {
	my ($n) = @_;

	my $dir = $t->dir() . '/files';
	my %seen;

	mkdir($dir);
	spew("$dir/$_", random_bytes(++$seed, 100)) for 1 .. $n;
	spew("$dir/config", join("\n", 'silent', map {
		('next', 'silent', "upload-file = $dir/$_",
			'url = ' . $t->url('/api/v1/files'),
			'output = /dev/null', 'write-out = "%{http_code}\n"')
	} 1 .. $n) . "\n");

	$seen{$_}++ for split(/\n/, run_command([ 'curl', '--config',
		"$dir/config" ], timeout => 120));

	return \%seen;
}

sub copy_ids {
	return $t->sql('SELECT count(*), count(DISTINCT copy_id),'
		. ' count(DISTINCT copy_id >> 8),'
		. ' count(*) FILTER (WHERE copy_id = 0)'
		. ' FROM xet.xorbs');
}

sub take {
	my ($db) = @_;

	return $t->sql('SELECT xet.copy_ids_take()', $db ? (db => $db) : ());
}

sub asking {
	return $t->sql('SELECT count(*) FROM pg_stat_activity'
		. " WHERE state = 'active' AND query LIKE '%copy_ids_take%'"
		. ' AND pid <> pg_backend_pid()');
}

sub asleep {
	return $t->sql("SELECT count(*) FROM pg_stat_activity"
		. " WHERE wait_event = 'PgSleep' AND query ~ 'copy_ids_take'");
}

sub blocks {
	return $t->sql('SELECT next FROM xet.copy_ids');
}

# --------------------------------------------------------------------------
# workers

is_deeply(put(60), { 200 => 60 }, 'files by three workers');
like(copy_ids(), qr/^60\|60\|\d\|0$/, 'each with a copy id');

# a single worker, which needs another block from time to time

my $before = blocks();

$t->write_conf(undef, workers => 1);
$t->reload();
is_deeply(put(1), { 200 => 1 }, 'another worker');
cmp_ok(blocks(), '>', $before, 'another block');

$before = blocks();

is_deeply(put(2 * $block + 100), { 200 => 2 * $block + 100 }, 'files');
like(copy_ids(), qr/^(\d+)\|\1\|\d\|0$/, 'each with another copy id');
cmp_ok(blocks(), '>', $before, 'more blocks');

# --------------------------------------------------------------------------
# no copy ids are available

my $old = $t->sql("SELECT pg_get_functiondef('xet.copy_ids_take'::regproc)");

$t->sql('CREATE OR REPLACE FUNCTION xet.copy_ids_take() RETURNS bigint'
	. ' LANGUAGE plpgsql AS'
	. " \$\$ BEGIN RAISE 'no copy ids today'; END \$\$");

my $seen = put(4 * $block + 10);

is_deeply([ sort keys %$seen ], [ 200, 503 ], 'until no copy ids are left');
cmp_ok($seen->{200}, '>=', 3 * $block, 'the available copy ids are used');

my $none = file();

is($none->{status}, 503, 'nothing is stored without a copy id');
ok($none->header_value('Retry-After'), 'Retry-After');

$t->sql($old);

ok(wait_for(20, sub {
	file()->{status} == 200
}), 'copy ids are available again');

like(copy_ids(), qr/^(\d+)\|\1\|\d+\|0$/, 'no two copy ids are equal');

# a worker that has no copy ids when it starts

$t->sql('CREATE OR REPLACE FUNCTION xet.copy_ids_take() RETURNS bigint'
	. ' LANGUAGE plpgsql AS'
	. " \$\$ BEGIN RAISE 'no copy ids today'; END \$\$");
$t->reload();

is_deeply(put(1), { 503 => 1 }, 'a worker without copy ids stores nothing');

$t->sql($old);

ok(wait_for(20, sub {
	file()->{status} == 200
}), 'it stores once it has copy ids');

# an upload that arrives before its worker has copy ids waits for them

$t->pg_freeze();
$t->reload();

my $small = random_bytes(++$seed, 100);
my $early = $t->http_start('PUT', '/api/v1/files',
	{ 'Content-Length' => length($small) }, $small);

select(undef, undef, undef, 0.5);
$t->pg_thaw();

is($early->response('PUT', timeout => 20)->{status}, 200,
	'an upload before the first copy ids');
$early->close();

# the client half-closes its connection before the first copy ids arrive: nginx
# treats the client as gone

my $files = $t->sql('SELECT count(*) FROM xet.files');

$t->pg_freeze();
$t->reload();
$small = random_bytes(++$seed, 100);
$early = $t->http_start('PUT', '/api/v1/files',
	{ 'Content-Length' => length($small) }, $small);
$early->half_close();

select(undef, undef, undef, 0.5);
$t->pg_thaw();

is($early->response('PUT', timeout => 20)->{status}, 0,
	'the same, half-closed: no response');
$early->close();
is($t->sql('SELECT count(*) FROM xet.files'), $files, 'nothing is stored');

# more uploads than one block has copy ids arrive before the worker has its
# first block, while PostgreSQL is slow

$t->sql('ALTER FUNCTION xet.copy_ids_take() RENAME TO copy_ids_take_quickly');
$t->sql('CREATE FUNCTION xet.copy_ids_take() RETURNS bigint LANGUAGE plpgsql AS'
	. ' $$ BEGIN PERFORM pg_sleep(0.5);'
	. ' RETURN xet.copy_ids_take_quickly(); END $$');
$t->pg_freeze();
$t->reload();

my @early = map {
	$small = random_bytes(++$seed, 100);
	$t->http_start('PUT', '/api/v1/files',
		{ 'Content-Length' => length($small) }, $small)
} 1 .. $block + 150;

select(undef, undef, undef, 0.5);
$t->pg_thaw();

my %early;

$early{ $_->response('PUT', timeout => 30)->{status} }++ for @early;
is_deeply(\%early, { 200 => $block + 150 },
	'more uploads than a block has copy ids');
$_->close() for @early;

# a request for a block does not delay the exit of a worker if no upload waits
# for the block; before that, the last block requested by the earlier worker
# must arrive

ok(wait_for(20, sub { asking() == 0 }), 'all requested blocks have arrived');
$t->sql('CREATE OR REPLACE FUNCTION xet.copy_ids_take() RETURNS bigint LANGUAGE'
	. ' plpgsql AS $$ BEGIN IF (SELECT next FROM xet.copy_ids) > '
	. (blocks() + 0) . ' THEN PERFORM pg_sleep(120); END IF;'
	. ' RETURN xet.copy_ids_take_quickly(); END $$');
$t->reload();
is(file()->{status}, 200, 'a file, and then no more blocks');
ok(wait_for(10, sub { asleep() == 1 }), 'another block is requested');

my @old = $t->reload();

ok(wait_for(20, sub { !grep { kill(0, $_) } @old }),
	'a worker exits without the block');

$t->sql('DROP FUNCTION xet.copy_ids_take()');
$t->sql('ALTER FUNCTION xet.copy_ids_take_quickly() RENAME TO copy_ids_take');

# reads need no copy ids, even in a worker that starts while commits hang

my $known = file()->json()->{hash};

$t->pg()->synchronous('nobody');
$t->reload();

ok(wait_for(20, sub {
	$t->get("/api/v1/files/$known")->{status} == 200
}), 'reads work while nothing commits');

$t->pg()->synchronous('');

ok(wait_for(20, sub { file()->{status} == 200 }), 'writes work again');

# if the table has lost its row, no copy ids are issued

$t->sql('CREATE TABLE xet.copy_ids_were AS TABLE xet.copy_ids;'
	. ' DELETE FROM xet.copy_ids');
$t->allow(qr/xet\.copy_ids has no row/);
$t->reload();

is(file()->{status}, 503, 'no row: no copy ids');
like($t->log(), qr/xet\.copy_ids has no row/, 'no row: the log says so');

$t->sql('INSERT INTO xet.copy_ids TABLE xet.copy_ids_were;'
	. ' DROP TABLE xet.copy_ids_were');

ok(wait_for(20, sub { file()->{status} == 200 }), 'no row: copy ids again');

# --------------------------------------------------------------------------
# databases that continue from an earlier state

my $pg = $t->pg();

$t->stop();

# a database restored from a dump, while the original is still in use

my $dump = $t->dir() . '/xet.dump';

run_command([ $pg->bin() . '/pg_dump', '-Fc', '-n', 'xet', '-f', $dump,
	'-d', $t->conninfo() ]);
$pg->sql('CREATE DATABASE other', db => 'postgres');
run_command([ $pg->bin() . '/pg_restore', '-d',
	'host=' . $pg->socket_dir() . ' user=postgres dbname=other', $dump ]);

my %first;

$first{ take() }++ for 1 .. 50;
$first{ take('other') }++ for 1 .. 50;
is(keys(%first), 100, 'a dump: other blocks');

# a dump restored over the original: blocks that were taken after the dump are
# not issued again

$t->sql('DROP SCHEMA xet CASCADE');
run_command([ $pg->bin() . '/pg_restore', '-d', $t->conninfo(), $dump ]);
$first{ take() }++ for 1 .. 50;
is(keys(%first), 150, 'a restored dump: other blocks');

# a standby that lacks the latest blocks when it is promoted

my $late = $pg->copy($t->dir() . '/late', standby => 1);

$first{ take() }++ for 1 .. 50;

$late->start();
$late->promote();
ok(wait_for(20, sub {
	$late->sql('SELECT NOT pg_is_in_recovery()') eq 't'
}), 'a standby is promoted');

$first{ $late->sql('SELECT xet.copy_ids_take()') }++ for 1 .. 50;
is(keys(%first), 250, 'the standby issues other blocks');

$late->stop();

# a snapshot of the disk has the same history as the original; after
# copy_ids_anew() their blocks differ

my $snap = $pg->copy($t->dir() . '/snap');

$snap->start();
$snap->sql('SELECT xet.copy_ids_anew()');
$first{ $snap->sql('SELECT xet.copy_ids_take()') }++ for 1 .. 50;
$first{ take() }++ for 1 .. 50;
is(keys(%first), 350, 'a snapshot issues other blocks');

$snap->stop();

is(scalar(grep { $_ % $block || $_ < 0 || $_ >= 2 ** 32 } keys %first), 0,
	'all are valid blocks');

# copy_ids_take() needs no privilege on the table

$pg->sql('CREATE ROLE server LOGIN', db => 'postgres');
$t->sql('GRANT USAGE ON SCHEMA xet TO server');
like($t->sql("SET ROLE server; SELECT xet.copy_ids_take()"), qr/\d+$/,
	'a role without rights to the table');

$t->done();
