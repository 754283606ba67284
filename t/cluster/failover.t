#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A primary fails during uploads and reads, and a synchronous standby replaces
# it.  No acknowledged data are lost, writes resume without a restart of nginx,
# and data URLs work all the time.  The test also covers a primary that stays
# up but refuses writes, and commits whose wait for the standby is cancelled.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Failover;
use Test::Xet::Process qw/ patience /;

use Time::HiRes qw/ sleep time /;

my $t = Test::Xet->new(workers => 2, log => 'info',
	pg_conf => Test::Xet::Failover::pg_conf());
my $f = Test::Xet::Failover->new($t, rewind => 1);

$f->start();
$f->load();

for my $n (1 .. 4) {
	my $r = $f->round(away => $n == 3 ? 3 : 0);
	my $after = defined $r->{writes} ? $r->{writes} : 'never';

	ok(defined $r->{writes} && $r->{writes} < patience(15),
		"round $n: writes work again") or diag("$after s");
	cmp_ok($r->{acknowledged}, '>', 0,
		"round $n: $r->{acknowledged} files were acknowledged");
	is_deeply($r->{lost}, [], "round $n: all files exist");
	is_deeply($r->{reading}, [], "round $n: reads were right or 503");
	cmp_ok($r->{data}, '>', 0, "round $n: $r->{data} data URLs");
	is($r->{errors}, 0, "round $n: all data URLs worked");
	note("writes after $after s");
}

# --------------------------------------------------------------------------
# the old primary stays up, but refuses writes: nginx closes its sessions

{
	my ($old, $new) = ($f->primary(), $f->follower());
	my $killed = time();

	my $from = $t->log_size();

	$old->sql('ALTER SYSTEM SET default_transaction_read_only = on',
		db => 'postgres');
	$old->sql('SELECT pg_reload_conf()', db => 'postgres');
	ok(wait_for(5, sub { $old->sql('SHOW default_transaction_read_only')
		eq 'on' }), 'no writes are accepted');

	my $put = $t->put('/api/v1/files', 'nobody takes it', {},
		timeout => 30);

	is($put->{status}, 503, 'an upload meanwhile');
	is(scalar $put->header_value('Retry-After'), 5, 'Retry-After');

	# detected by the upload's statement, or by a ping before it

	like($t->log($from), qr/is retried: .*read-only transaction(?#
		)|does not accept writes;/, 'the old primary is detected');

	$new->promote();

	my $writes = $f->wait_writes($killed, 30);

	ok(defined $writes && $writes < patience(15),
		'uploads go to the new primary') or diag($writes // 'never');
	cmp_ok($new->sql('SELECT count(*) FROM xet.files'), '>',
		$old->sql('SELECT count(*) FROM xet.files'),
		'and only to the new one');

	my $end = $f->stop();

	cmp_ok($end->{acknowledged}, '>', 10,
		"$end->{acknowledged} files in all");
	is_deeply($end->{lost}, [], 'no file was lost');
	is_deeply($end->{reading}, [], 'no file was ever missing');

	$old->kill();
	$f->{primary} = $new;
	$f->follow($old->{dir});
}

# --------------------------------------------------------------------------
# the machine of the primary hangs: it neither refuses connections nor responds

{
	my ($old, $new) = ($f->primary(), $f->follower());
	my $hung = time();
	my $from = $t->log_size();

	$old->freeze();
	$new->promote();

	my $writes = $f->wait_writes($hung, 40);

	ok(defined $writes && $writes < patience(15),
		'uploads work while a machine hangs')
		or diag($writes // 'never');
	note("writes after $writes s") if $writes;
	like($t->log($from), qr/closing \d+ PostgreSQL session/,
		'its sessions were closed');

	$old->thaw();
	$old->kill();
	$f->{primary} = $new;
	$f->follow($old->{dir});
}

# --------------------------------------------------------------------------
# a commit waits for the standby until the test cancels the wait

{
	my ($primary, $standby) = ($f->primary(), $f->follower());
	my $body = 'waits for a standby' x 1000;

	my $waits = sub { return scalar $primary->sql('SELECT count(*) FROM'
		. " pg_stat_activity WHERE wait_event = 'SyncRep'") };

	$standby->freeze();
	$standby->freeze(backends => 1);
	CORE::kill('STOP', $_)
		for Test::Xet::Process::children($standby->pid());

	my $c = $t->http_start('PUT', '/api/v1/files',
		{ 'Content-Length' => length($body) }, $body);

	ok(wait_for(10, sub { $waits->() }), 'a commit waits for the standby');

	# cancels the wait of each statement of the upload

	my $r;
	my $end = time() + patience(20);

	while (!$r && time() < $end) {
		$primary->sql("SELECT pg_cancel_backend(pid) FROM"
			. " pg_stat_activity WHERE wait_event = 'SyncRep'");
		my $got = eval { $c->response('PUT', timeout => 0.5) };
		$r = $got if $got && $got->{status};
	}

	is($r && $r->{status}, 503, 'the upload is not acknowledged');
	$c->close();

	# a retry must not acknowledge data that only the primary has

	$c = $t->http_start('PUT', '/api/v1/files',
		{ 'Content-Length' => length($body) }, $body);

	ok(wait_for(10, sub { $waits->() }), 'a retry waits as well');

	CORE::kill('CONT', $_) for $standby->pid(),
		Test::Xet::Process::children($standby->pid());
	$standby->thaw();

	is($c->response('PUT', timeout => 30)->{status}, 200,
		'acknowledged when the standby has it');
}

$f->follower()->kill();
$f->primary()->kill();
$t->done();
