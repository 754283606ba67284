#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The clock of PostgreSQL was two days fast for a while, so the database
# contains times in the future.  Nothing waits for these times, and nothing is
# deleted early because of them.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

my $t = Test::Xet->new(workers => 1);
my $node = "'\\x" . '0c' x 16 . "'";
my $other = "'\\x" . '0d' x 16 . "'";
my $later = "now() + interval '2 days'";

$t->run();

ok($t->put('/api/v1/files', mix(1, 100_000))->{status} == 200, 'a file');

# the sweep for orphans

is(due(), 't', 'a sweep is due');
$t->sql('SELECT xet.orphans_found(NULL, true)');
is(due(), 'f', 'not again on the same day');
$t->sql("UPDATE xet.jobs SET started_at = $later WHERE name = 'orphans'");
is(due(), 't', 'one of the day after tomorrow is none');
$t->sql("DELETE FROM xet.jobs WHERE name = 'orphans'");

# leases, and the start times of background jobs

$t->sql("SELECT * FROM xet.job_take('t', $node, '60000', '30000')");
cmp_ok(take($other), '>', 20000, 'a valid lease is respected');
$t->sql("UPDATE xet.jobs SET until = $later WHERE name = 't'");
is(take($other), 0, 'a lease of two days is none');
$t->sql("SELECT xet.job_done('t', $other, (SELECT turn FROM xet.jobs"
	. " WHERE name = 't'), '{}', NULL)");
cmp_ok(take($node), '>', 50000, 'a run has just been');
$t->sql("UPDATE xet.jobs SET started_at = $later WHERE name = 't'");
is(take($node), 0, 'a run of the day after tomorrow is none');

# heals

my ($id, $copy_id) = split(/\|/,
	$t->sql('SELECT id, copy_id FROM xet.xorbs LIMIT 1'));

$t->sql("UPDATE xet.xorbs SET damaged_at = now() WHERE id = $id");
is(heals(), 1, 'a heal');
$t->sql("SELECT xet.heal_later('$id', $copy_id)");
is(heals(), 0, 'a heal that waits');
$t->sql("UPDATE xet.heals SET next_at = $later");
is(heals(), 1, 'a heal that waits for two days does not');
$t->sql("SELECT xet.heal_later('$id', $copy_id)");
is(heals(), 0, 'and waits as others when it was tried');
$t->sql('UPDATE xet.xorbs SET damaged_at = NULL');

# the sweep keeps files that are younger than the newest row, because they may
# belong to uploads in progress; rows with a time in the future are ignored

$t->sql("UPDATE xet.xorbs SET created_at = $later");
cmp_ok($t->sql('SELECT newest - extract(epoch FROM now()) FROM'
	. ' xet.orphans_from()'), '<=', 0, 'no copy is newer than now');

# entries that are deleted by age: entries with a time in the future are kept

$t->sql("INSERT INTO xet.acts (act, at, said) VALUES ($node, $later, '1')");
$t->sql('SELECT xet.sweep()');
is($t->sql('SELECT count(*) FROM xet.acts'
	. " WHERE act = $node"), 1, 'nothing is deleted early');
$t->sql("UPDATE xet.acts SET at = now() - interval '2 days'");
$t->sql('SELECT xet.sweep()');
is($t->sql('SELECT count(*) FROM xet.acts'), 0, 'but when it is old');

$t->done();

# --------------------------------------------------------------------------

sub due { return $t->sql('SELECT due FROM xet.orphans_due(false)') }

sub take {
	return $t->sql("SELECT wait FROM xet.job_take('t', $_[0], '60000',"
		. " '30000')");
}

sub heals { return $t->sql("SELECT count(*) FROM xet.heal_next('0')") }
