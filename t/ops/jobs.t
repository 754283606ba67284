#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# One worker of all nodes runs a background job.  After a crash, another worker
# continues the job at the recorded position.  Tested with two nodes, killed
# workers, reloads, a restart of PostgreSQL, and a locked table.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;

# A run takes long enough for these tests: 4.8 MB at 64 KiB per second.  A lease
# expires after 30 seconds.

my $slow = { xet_scrub => 'on rate=64k interval=1s' };

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 900,
	directives => $slow);

$t->run();
send_xorb($t, random_bytes($_, 120_000), sizes => [ 60_000 ]) for 1 .. 40;

my $other = Test::Xet->new(workers => 2, log => 'info', timeout => 900,
	directives => $slow, beside => $t);

$other->run();

sub chore {
	my ($columns, $name) = @_;

	return $t->sql("SELECT $columns FROM xet.jobs WHERE name = '"
		. ($name // 'scrub') . "'");
}

# Checks that the job makes progress.  The job's row is updated every five
# seconds; after a crash, work since the last update is repeated.

sub moves {
	my ($name, $from) = @_;

	my $at = $from // chore("coalesce(cursor, '')");

	ok(wait_for(60, sub { chore("coalesce(cursor, '')") ne $at }),
		"$name: it moves") or diag(chore('*'));
}

sub at { return chore("coalesce(nullif(cursor, ''), '0')::bigint") || 0 }

# --------------------------------------------------------------------------
# only one of two nodes runs the job

ok(wait_for(60, sub { at() > 0 }), 'a run is under way');

my $holder = chore("encode(holder, 'hex')");
my $turn = chore('turn');

moves('one node');
moves('one node, later');
is(chore("encode(holder, 'hex')"), $holder, 'the same node has the lease');
is(chore('turn'), $turn, 'nobody else took it');
is($t->sql('SELECT count(*) FROM xet.jobs_show() WHERE running AND held'
	. " AND name = 'scrub'"), 1, 'shown as running');

{
	my $started = chore('started_at');

	# sets a holder that is not one of the nodes, for a moment

	$t->sql("UPDATE xet.jobs SET turn = turn + 1,"
		. " holder = decode(md5('x'), 'hex'),"
		. " until = now() + interval '3 s' WHERE name = 'scrub'");
	ok(wait_for(60, sub {
		($t->log() . $other->log()) =~ /job "scrub" was taken over/
	}), 'the node that has lost the lease stops');
	ok(wait_for(60, sub { chore("holder <> decode(md5('x'), 'hex')")
		eq 't' }), 'an expired lease is taken');
	is(chore('started_at'), $started, 'the same run continues');
}

# --------------------------------------------------------------------------
# a worker is killed: the run continues, on either node

# Returns the node that took the lease last, according to its log.

sub owner {
	my $turn = chore('turn');

	return (grep {
		$_->log() =~ /job "scrub" starts at "\d*" in turn $turn\b/
	} $t, $other)[0];
}

{
	my $from = at();
	my $n = owner() or die "nobody has the lease\n";
	my $started = chore('started_at');

	$turn = chore('turn');
	$holder = chore("encode(holder, 'hex')");

	# kills all of the node's workers; its master is stopped, so no worker
	# is restarted for a while

	kill('STOP', $n->nginx()->pid());
	$n->allow(qr/exited on signal 9/);
	kill('KILL', $n->worker_pids());

	ok(wait_for(90, sub { chore('turn') > $turn }), 'killed: taken over');
	isnt(chore("encode(holder, 'hex')"), $holder,
		'killed: by the other node');
	cmp_ok(at(), '>=', $from, 'killed: from the cursor')
		if chore('started_at') eq $started;
	moves('killed');

	kill('CONT', $n->nginx()->pid());
	ok(wait_for(20, sub { $n->get('/api/health')->{status} == 200 }),
		'the killed node is back');
}

$other->stop();

# --------------------------------------------------------------------------
# a worker of the only node is killed, and the configuration is reloaded: the
# next worker belongs to the same node, and need not wait for the lease to end

ok(wait_for(90, sub { at() > 0 && chore('holder IS NOT NULL AND until > now()')
	eq 't' }), 'the one node has it');

for my $how (qw/ kill reload /) {
	my ($from, $started) = (at(), chore('started_at'));

	$turn = chore('turn');
	$holder = chore("encode(holder, 'hex')");
	$t->sql("UPDATE xet.jobs SET until = now() + interval '1 hour'"
		. " WHERE name = 'scrub'");

	if ($how eq 'kill') {
		$t->kill_worker('KILL', $_) for $t->worker_pids();

	} else {
		$t->reload();
	}

	ok(wait_for(60, sub { chore('turn') > $turn }), "$how: taken again");
	is(chore("encode(holder, 'hex')"), $holder, "$how: by the same node");
	cmp_ok(at(), '>=', $from, "$how: from the cursor")
		if chore('started_at') eq $started;
	moves($how);
}

# an old worker that still serves a client after a reload does not take the job

{
	my $c = $t->http_start('PUT', '/api/v1/files',
		{ 'Content-Length' => 10 }, 'a');

	$turn = chore('turn');

	my @old = $t->reload();

	ok(wait_for(60, sub { chore('turn') > $turn }), 'exiting: taken again');
	moves('exiting');

	$turn = chore('turn');
	moves('exiting, later');
	is(chore('turn'), $turn, 'exiting: the old worker keeps out of it');

	$c->send('bcdefghij');
	is($c->response('PUT', timeout => 30)->{status}, 200,
		'exiting: its client is served');
	$c->close();

	ok(wait_for(30, sub { !grep { kill(0, $_) } @old }),
		'exiting: the old worker has gone');
}

# --------------------------------------------------------------------------
# PostgreSQL

{
	my $from = at();

	$t->allow(qr/PostgreSQL/, qr/terminating connection/);
	$t->pg_restart();
	moves('PostgreSQL restarts');

	my $lock = $t->pg_lock('xet.jobs');

	ok($t->wait_log(qr/background job "scrub" is waiting: PostgreSQL/, 60),
		'the table is locked: it waits, and says so');
	is($t->get('/api/health')->{status}, 200, 'locked: health');

	my $data = mix(77, 200_000);

	is($t->http('PUT', '/api/v1/files', {}, \$data)->{status}, 200,
		'locked: uploads continue');
	$lock->unlock();
	moves('the lock is gone');
}

# --------------------------------------------------------------------------
# two concurrent holders are harmless, and a run ends only once

{
	$t->write_conf(undef, directives => {
		xet_scrub => 'on rate=1g interval=1s' });
	$t->reload();
	$other->write_conf(undef, directives => {
		xet_scrub => 'on rate=1g interval=1s' });
	$other->run();

	my $n = chore('turn');

	for (1 .. 60) {
		$t->sql("UPDATE xet.jobs SET until = now(), holder ="
			. " decode(md5('y'), 'hex')");
		select(undef, undef, undef, 0.05);
	}

	is($t->sql('SELECT count(*) FROM xet.xorbs'
		. ' WHERE damaged_at IS NOT NULL'), 0,
		'a lease that is torn away: nothing is marked');
	ok(wait_for(60, sub { chore('finished_at > now() - interval \'5 s\'')
		eq 't' }), 'a lease that is torn away: runs are completed');
}

# --------------------------------------------------------------------------
# no background jobs without a directive

{
	$other->stop();
	$t->write_conf(undef, directives => {});
	$t->reload();

	ok(wait_for(60, sub {
		chore('holder IS NULL OR until < now()') eq 't'
	}), 'off: the lease runs out');

	$turn = chore('turn');
	is($t->get('/api/health')->{status}, 200, 'off: health');
	select(undef, undef, undef, 3);
	is(chore('turn'), $turn, 'off: nobody takes it');
}

$t->done();
