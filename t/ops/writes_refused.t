#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# PostgreSQL responds, but its disk is full: health is 503 until writes work
# again, and reads continue.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

use Time::HiRes qw/ sleep /;

# Each worker knows only the result of its own last write.

my $t = Test::Xet->new(workers => 1, log => 'info');

$t->allow(qr/"write_probe" failed|"\w+" failed, SQLSTATE 53/);
$t->allow(qr/503 (?:writes_refused|database_unavailable)|is retried/);
$t->run();

my $file = $t->put('/api/v1/files', 'a file')->json()->{hash};

is(health(), 200, 'health') for 1 .. 4;

# PostgreSQL cannot write any more temporary files

full('64kB');
ok(wait_for(30, sub { health() == 503 }), 'full: 503');

my $r = $t->get('/api/v1/health');

ok(wait_for(30, sub {
	$r = $t->get('/api/v1/health');
	return $r->{status} == 503;
}), 'and again');
like($r->{body}, qr/writes_refused/, 'with the reason');
is($t->get("/api/v1/files/$file")->{body}, 'a file', 'reads continue');
is($t->get('/api/v1/health/live')->{status}, 200, 'and the node lives');

full('-1');
ok(wait_for(30, sub {
	my $good = 0;

	for (1 .. 6) {
		$good++ if health() == 200;
		sleep(0.2);
	}

	return $good == 6;
}), 'room again: 200');

# a held lock is not a failure

my $lock = $t->pg_lock('xet.files');

is(health(), 200, 'a lock: 200') for 1 .. 4;
$lock->unlock();

$t->done();

# --------------------------------------------------------------------------

sub health { return $t->get('/api/v1/health')->{status} }

sub full {
	my ($room) = @_;

	$t->sql("ALTER SYSTEM SET temp_file_limit = '$room'",
		user => 'postgres');
	$t->sql('SELECT pg_reload_conf()', user => 'postgres');
	sleep(1);
}
