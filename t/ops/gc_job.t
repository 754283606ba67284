#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet_gc: the server runs the collector on its own, on one of two nodes at a
# time, despite killed workers, a restart of PostgreSQL and an unavailable
# store.  The collector deletes only unused data.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;

my $gc = { xet_gc => 'on grace=0s interval=1s' };

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 900);

# --------------------------------------------------------------------------
# the directive

for my $bad ([ 'maybe', qr/it must be "on", or "off" without further/ ],
	[ 'off grace=1d', qr/"off" without further/ ],
	[ 'on grace=x', qr/"grace=" of up to 3650d/ ],
	[ 'on rate=0', qr/"rate=" of 1 to 1000000/ ],
	[ 'on interval=10ms', qr/"interval=" of 1s to 366d/ ],
	[ 'on never', qr/invalid parameter "never"/ ])
{
	my $n = Test::Xet->new(directives => { xet_gc => $bad->[0] },
		beside => $t);
	my ($good, $out) = $n->config_test();

	ok(!$good, "xet_gc $bad->[0]");
	like($out, qr/$bad->[1].* in .*:\d+/, 'is refused with its line');
}

# --------------------------------------------------------------------------

$t->run();

my $kept = send_xorb($t, mix(1, 300_000));
my $file = register_file($t, [ [ $kept ] ]);
my @dead = map { send_xorb($t, random_bytes(100 + $_, 50_000)) } 1 .. 300;

my @nodes = map { Test::Xet->new(workers => 2, log => 'info', timeout => 900,
	directives => $gc, beside => $t) } 1 .. 2;

$_->run() for @nodes;

ok(wait_for(120, sub { total('copies') == 300 }), 'all unused copies are gone')
	or diag(chore('*'));
is(total('xorbs'), 300, 'counted once');
is(scalar($t->files_in_store()), 1, 'the files are gone');
is(total('copy_bytes'), sum(@dead), 'their bytes are reported');
whole('the rest is there');

is($t->sql("SELECT count(*) FROM xet.jobs WHERE name = 'gc'"), 1,
	'one of two nodes at a time');

# --------------------------------------------------------------------------
# workers are killed, and PostgreSQL restarts: the collection continues

{
	my $lock = $t->pg_lock('xet.gc_copies',
		'SHARE ROW EXCLUSIVE');
	my @more = map { send_xorb($t, random_bytes(500 + $_, 50_000)) }
		1 .. 60;

	ok(wait_for(60, sub { $t->pg_blocked() > 0 }), 'it waits for a lock');

	for (@nodes) {
		$_->allow(qr/exited on signal 9/);
		kill('KILL', $_->worker_pids());
	}

	$lock->unlock();

	ok(wait_for(180, sub { total('copies') == 360 }),
		'workers were killed: it continues') or diag(chore('*'));

	$_->allow(qr/PostgreSQL|server closed|terminating|connection/)
		for $t, @nodes;
	$t->pg_restart('immediate');

	ok(wait_for(60, sub { $t->get('/api/health')->{status} == 200 }),
		'PostgreSQL is back');

	send_xorb($t, random_bytes(900, 50_000));
	ok(wait_for(180, sub { files() == 1 }), 'and it continues')
		or diag(chore('*'));
	whole('the file is whole');
}

# --------------------------------------------------------------------------
# during a backup no copies are removed.  While the store is unavailable, the
# copies to be removed stay recorded.

{
	my $backup = $t->pg_session();

	$backup->run("SELECT pg_advisory_lock_shared(hashtext('xet.copies'),"
		. ' 0)');
	send_xorb($t, random_bytes(901, 50_000));

	ok(wait_for(60, sub { $t->sql('SELECT count(*) FROM xet.gc_copies')
		== 1 }), 'a copy waits for a backup');
	sleep(3);
	is(files(), 2, 'it is kept');

	$t->hide_store();

	$_->allow(qr/identity|is not the store|the folder|No such file/)
		for $t, @nodes;
	$backup->close();

	ok(wait_for(60, sub {
		grep { $_->log() =~ /job "gc" is waiting: the store does not/ }
			@nodes
	}), 'the store is away') or diag(chore('*'));
	is($t->sql('SELECT count(*) FROM xet.gc_copies'), 1, 'still recorded');

	$t->show_store();

	ok(wait_for(180, sub { files() == 1 }), 'it is back, and the copy goes')
		or diag(chore('*'));
	ok(wait_for(60, sub { $t->sql('SELECT count(*) FROM xet.gc_copies')
		== 0 }), 'and its record is gone');
	whole('the file is whole');
}

# --------------------------------------------------------------------------
# a grace period

{
	$_->stop() for @nodes;

	my $calm = Test::Xet->new(workers => 1, log => 'info', beside => $t,
		directives => { xet_gc => 'on grace=1d interval=1s' });

	send_xorb($t, random_bytes(902, 50_000));
	$calm->run();

	my $began = chore('started_at');

	ok(wait_for(120, sub { chore('finished_at IS NOT NULL AND started_at >'
		. " '$began'") eq 't' }), 'a run');
	is(files(), 2, 'within the grace nothing goes');

	$calm->stop();
}

$t->done();

# --------------------------------------------------------------------------

sub chore {
	return $t->sql("SELECT $_[0] FROM xet.jobs WHERE name = 'gc'");
}

# Returns the sum of a figure over all runs, including the current run.

sub total {
	my ($figure) = @_;

	return $t->sql("SELECT coalesce(sum((totals->>'$figure')::bigint"
		. " + CASE WHEN cursor IS NOT NULL"
		. " THEN (figures->>'$figure')::bigint ELSE 0 END), 0)"
		. " FROM xet.jobs WHERE name = 'gc'");
}

sub files { return scalar($t->files_in_store()) }

sub sum {
	my $n = 0;

	$n += length($_->{bytes}) for @_;

	return $n;
}

sub whole {
	my ($name) = @_;

	my $r = $t->get("/api/v1/files/$file->{hash}");

	ok($r->{body} eq $file->{data}, $name) or diag($r->summary());
}
