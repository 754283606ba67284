#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The health check returns 503 with the reason as text while PostgreSQL or the
# store fails, and 200 afterwards.  The test also covers the cost of many health
# requests, and the liveness check.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ run_command spew /;

use IO::Select;
use Time::HiRes qw/ sleep time /;

Test::Xet->folder('rights and mounts of a folder');

my $t = Test::Xet->new(workers => 1, log => 'info');
my $dir = $t->dir();

# A file system that the test can make full or unresponsive.

my $preload = $t->write_file('preload.c', <<'EOC');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/statvfs.h>
#include <unistd.h>

int
fstatvfs64(int fd, struct statvfs64 *st)
{
    int  (*next)(int, struct statvfs64 *), rc;

    while (access(DIR "/hangs", F_OK) == 0) {
        (void) usleep(10000);
    }

    *(void **) &next = dlsym(RTLD_NEXT, "fstatvfs64");
    rc = next(fd, st);

    if (access(DIR "/full", F_OK) == 0) {
        st->f_bavail = 1;
    }

    return rc;
}
EOC

my ($status, $out) = run_command([ $ENV{CC} || 'cc', '-shared', '-fPIC',
	"-DDIR=\"$dir\"", '-o', "$dir/preload.so", $preload, '-ldl' ]);
die $out if $status;

{
	local $ENV{LD_PRELOAD} = "$dir/preload.so";
	local $ENV{ASAN_OPTIONS} = join(':', $ENV{ASAN_OPTIONS} || (),
		'verify_asan_link_order=0');

	$t->run();
}

sub health {
	return $t->get('/api/health', {}, timeout => 30);
}

sub live {
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $r = $t->get('/api/v1/health/live');

	is_deeply([ $r->{status}, $r->json() ], [ 200, { status => 'ok' } ],
		"$_[0]: alive");
}

sub unwell {
	my ($r, $code, $message, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is_deeply([ $r->{status}, $r->json()->{error},
		$r->header_value('Retry-After') ],
		[ 503, { code => $code, message => $message }, 5 ], $name);
}

sub well {
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok(wait_for(20, sub { health()->{status} == 200 }),
		"$_[0]: well again");
}

# --------------------------------------------------------------------------
# no faults

my $r = health();

is($r->{status}, 200, 'well');
is($r->json()->{status}, 'ok', 'and says so');
live('well');
is($t->head('/api/health')->{status}, 200, 'HEAD');
is($t->head('/api/health/live')->{status}, 200, 'HEAD of life');

# --------------------------------------------------------------------------
# PostgreSQL

$t->allow(qr/connecting to PostgreSQL failed|terminating connection/);
$t->allow(qr/xet: 503 (?:database|storage)_unavailable/);

$t->pg_stop();
ok(wait_for(20, sub { health()->{status} == 503 }), 'no PostgreSQL');
unwell(health(), 'database_unavailable', 'the database is unavailable',
	'no PostgreSQL: why');
live('no PostgreSQL');
$t->pg_start();
well('PostgreSQL');

# --------------------------------------------------------------------------
# the store; each check result is cached for one second

my $failed = qr/\[crit\].*xet: open ".*" failed \(13: /;

$t->allow($failed);

SKIP: {
	skip 'the workers are root', 4 unless $> || Test::Xet::Nginx::user();

	chmod(0500, $t->store() . '/tmp');
	my $from = $t->log_size();
	my $start = time();

	ok(wait_for(20, sub { health()->{status} == 503 }), 'read-only');
	unwell(health(), 'storage_unavailable', q{the store is not writable},
		'read-only: why');
	live('read-only');

	health() for 1 .. 300;
	my $tried = () = substr($t->log(), $from) =~ /$failed/g;

	cmp_ok($tried, '<=', 1 + time() - $start,
		'a file a second, however many ask');

	chmod(0700, $t->store() . '/tmp');
	well('writable');
}

# a store folder that is missing, or without its disk

$t->allow(qr/xet: the folder ".*" is not the store of this database/);
$t->allow(qr/connecting to PostgreSQL failed: the .*store folder/);

my $identity = $t->store() . '/identity';

rename($t->store(), $t->store() . '.away') or die $!;
ok(wait_for(20, sub { health()->{status} == 503 }), 'no folder');
unwell(health(), 'storage_unavailable', 'the store folder is missing',
	'no folder: why');
mkdir($t->store()) or die $!;
sleep(1.1);
unwell(health(), 'storage_unavailable', 'the store folder has no'
	. ' identity; its disk may not be mounted', 'no disk: why');
live('no disk');
rmdir($t->store()) or die $!;
rename($t->store() . '.away', $t->store()) or die $!;
well('the folder is back');

# the folder now has another identity; new database sessions also detect this

rename($identity, "$identity.gone") or die $!;
spew($identity, '0' x 32 . "\n");
ok(wait_for(20, sub { health()->{status} == 503 }), 'another store');
unwell(health(), 'storage_unavailable',
	'the store does not belong to this database',
	'another store: why');
live('another store');
$t->pg_restart();
ok(wait_for(20, sub { health()->json()->{error}{code}
	eq 'storage_unavailable' }), 'another store: no session');
rename("$identity.gone", $identity) or die $!;
well('the store is back');

spew("$dir/full", '');
ok(wait_for(20, sub { health()->{status} == 503 }), 'full');
unwell(health(), 'storage_unavailable', 'no space left in the store',
	'full: why');
live('full');
unlink("$dir/full");
well('room');

# --------------------------------------------------------------------------
# a disk that does not respond blocks one thread, and no client for long

$t->allow(qr/\[crit\].*xet: the store has not responded for 5 seconds/);

spew("$dir/hangs", '');
ok(wait_for(20, sub { health()->{status} == 503 }), 'no answer');
unwell(health(), 'storage_unavailable', 'the store does not respond',
	'no answer: why');

my @c = map { $t->connect() } 1 .. 20;

$_->send("GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n") for @c;
is(scalar(grep { $_->response('GET', timeout => 20)->{status} == 503 } @c), 20,
	'many who ask');
live('no answer');
is($t->http('PUT', '/api/v1/files', {}, \random_bytes(1, 1000))->{status}, 200,
	'threads are left');

unlink("$dir/hangs");
well('it answers');

# requests whose clients have disconnected are dropped

spew("$dir/hangs", '');
select(undef, undef, undef, 1.1);

for my $c (splice(@c, 0, 10)) {
	$c->send("GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n");
	$c->abort();
}

live('some have left');
unlink("$dir/hangs");
well('others stay');

# --------------------------------------------------------------------------
# a request that waits for the store gets a response even across a reload

{
	sleep(1.5);

	my $from = $t->log_size();

	spew("$dir/hangs", '');

	my $c = $t->http_start('GET', '/api/v1/health', {});

	# a fixed timeout instead of patience(), because the probe itself waits
	# only 5 seconds

	ok(!IO::Select->new($c->{socket})->can_read(0.7), 'the store hangs');

	kill('HUP', $t->nginx()->pid());

	ok($t->wait_log(qr/gracefully shutting down/, 10, $from),
		'a reload meanwhile');
	sleep(0.5);
	unlink("$dir/hangs");

	my $r = $c->response('GET', timeout => 20);

	like($r->{status}, qr/^(?:200|503)$/, 'answered all the same')
		or diag($r->summary());
	$c->close();
	well('a reload');
}

$t->done();
