#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# If one part of the system hangs, other requests are not delayed: a disk that
# completes no writes, another session's table lock, a PostgreSQL that accepts
# connections but does not respond, a resolver.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ free_port patience slurp /;

use IO::Socket::INET;
use Time::HiRes qw/ sleep time /;

Test::Xet->folder('calls of the file system that hang');

my $t = Test::Xet->new(workers => 1, threads => 2, stalls => 1);

$t->run();

my @files = map { $t->upload(random_bytes($_, 50000 + 1000 * $_),
	scheme => 'none') } 1 .. 4;
my $file = $files[0];
my $chunk = $file->{xorbs}[0]{chunks}[0]{hash};

sub plan_uri { return "/api/v2/reconstructions/$_[0]{hash}" }
sub file_uri { return "/api/v1/files/$_[0]{hash}" }

sub ask {
	my ($uri, %o) = @_;

	return $t->http_start($o{method} || 'GET', $uri, $o{headers} || {},
		$o{body}, close => 1, timeout => 60);
}

sub ask_xorb {
	my ($xorb) = @_;

	return ask("/api/v1/xorbs/default/$xorb->{hash}", method => 'POST',
		headers => { 'Content-Length' => length($xorb->{bytes}) },
		body => $xorb->{bytes});
}

sub health {
	my $r = $t->get('/api/v1/health');

	return $r->{status} == 200 ? $r->json()->{postgres} : undef;
}

# Checks that the response is 200, and arrives well before the test ends the
# hang.

sub served {
	my ($name, $r) = @_;

	ok($r->{status} == 200 && $r->{time} < patience(5), $name)
		or diag("$r->{status} in $r->{time} s");
}

# --------------------------------------------------------------------------
# a disk that completes no writes: more uploads than threads

my $stall = $t->stall();

$stall->hold('fdatasync');

# the health check reports the hanging disk, see t/ops/health.t

$t->allow(qr/xet: the store has not responded for 5 seconds/);

my @xorbs = map { make_xorb(random_bytes(100 + $_, 30000), sizes => [ 10000 ],
	scheme => 'none') } 1 .. 6;
my @posts = map { ask_xorb($_) } @xorbs;
my $put = ask('/api/v1/files', method => 'PUT', body => random_bytes(99, 1000),
	headers => { 'Content-Length' => 1000 });

ok($stall->wait_held('fdatasync', 2), 'all threads of uploads hang');

for (1 .. 2) {
	my $r = $t->get(file_uri($file), {}, timeout => 60);

	served('fdatasync: a file', $r);
	ok($r->{body} eq $file->{xorbs}[0]{bytes}
		|| length($r->{body}) == 51000, 'fdatasync: its bytes');
	served('fdatasync: a plan', $t->get(plan_uri($file)));
	served('fdatasync: a dedup answer',
		$t->get("/api/v1/chunks/default/$chunk"));
	served('fdatasync: life', $t->get('/api/v1/health/live'));
}

is($t->rows()->{xorbs}, @files, 'fdatasync: uploads wait');

$stall->release('fdatasync');
is(join(' ', map { $_->response('POST')->{status} } @posts),
	join(' ', (200) x @posts), 'fdatasync: and are taken');
is($put->response('PUT')->{status}, 200, 'fdatasync: a file by PUT, too');

# --------------------------------------------------------------------------
# uploads and reads share a pool only if the configuration says so

my ($good, $out) = $t->config_test(undef,
	directives => { xet_read_thread_pool => 'xet' });

ok($good, 'one pool for both');
like($out, qr/\[warn\].*"xet_read_thread_pool" is also the pool/,
	'nginx -t warns');

$t->write_conf(undef, main => 'thread_pool reads threads=1;',
	directives => { xet_read_thread_pool => 'reads' });
$t->reload();
is($t->get(file_uri($file))->{status}, 200, 'a pool of reads, named');
$t->write_conf(undef, main => '', directives => { xet_thread_pool => undef,
	xet_read_thread_pool => undef });
$t->reload();
is($t->get(file_uri($file))->{status}, 200, 'no pool named');

# --------------------------------------------------------------------------
# another session's lock: dedup queries wait for it, other requests do not

my $pg = '"' . $t->conninfo() . '"';

$t->write_conf(undef, directives => { xet_thread_pool => 'xet',
	xet_postgres => "$pg dedup_timeout=1s timeout=60s" });
$t->reload();
$t->get("/api/v1/chunks/default/$chunk");

my $lock = $t->pg_lock('xet.chunks');
my $from = $t->log_size();
my @asked = map { ask("/api/v1/chunks/default/$chunk") } 1 .. 3;

ok(wait_for(10, sub { $t->pg_blocked() }), 'lock: dedup queries wait');

for my $f (@files) {
	served('lock: a plan', $t->get(plan_uri($f)));
	served('lock: a file', $t->get(file_uri($f)));
}

is(join(' ', map { $_->response()->{status} } @asked), '404 404 404',
	'lock: in time they are misses');
like($t->log($from), qr/"chunk_find" failed, SQLSTATE 57014/, 'and logged');
is(health()->{dedup}{ready}, 1, 'the session is kept');

$from = $t->log_size();
$put = ask('/api/v1/files', method => 'PUT', body => random_bytes(98, 1000),
	headers => { 'Content-Length' => 1000 });
ok($t->wait_log(qr/"chunk_find" failed, SQLSTATE 57014/, 10, $from),
	'lock: a file by PUT');
$lock->unlock();
is($put->response('PUT')->{status}, 200, 'lock: and is stored as new');
is($t->get("/api/v1/chunks/default/$chunk")->{status}, 200,
	'unlocked: known again');

# PostgreSQL has also cancelled the statements that timed out

is($t->sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'xet'"
	. " AND state = 'active'"), 0, 'no statement runs in PostgreSQL');

# --------------------------------------------------------------------------
# a ping does not wait for a lock, and reports the state of PostgreSQL

$t->write_conf(undef, directives => { xet_postgres =>
	"$pg reads=2 writes=1 timeout=60s ping_timeout=2s" });
$t->reload();
wait_for(10, sub { health() });

$lock = $t->pg_lock('xet.files');
@asked = map { ask(plan_uri($_)) } @files, @files;
ok(wait_for(10, sub { $t->pg_blocked() }), 'all reads wait');

for (1 .. 3) {
	my $r = $t->get('/api/v1/health');

	served('lock: health', $r);
	cmp_ok($r->json()->{postgres}{read}{in_flight}, '==', @asked,
		'and what is in flight');
}

my $before = health()->{read}{oldest_ms};
ok(wait_for(10, sub { health()->{read}{oldest_ms} > $before }),
	'and how long');

$t->pg_freeze();

my $r = $t->get('/api/v1/health', {}, timeout => 60);

is($r->{status}, 503, 'frozen besides: health');
ok($r->{time} >= 1.9 && $r->{time} < patience(4), 'in its time')
	or diag("$r->{time} s");
$t->pg_thaw();
$lock->unlock();
is(join(' ', map { $_->response()->{status} } @asked),
	join(' ', (200) x @asked), 'unlocked: all are served');
ok(wait_for(10, sub { my $h = health(); $h && $h->{read}{oldest_ms} == 0 }),
	'and nothing is old');

# PostgreSQL freezes while sessions are idle: the timeout of a ping applies, not
# the timeout of a read

$t->pg_freeze();
$r = $t->get('/api/v1/health', {}, timeout => 60);
is($r->{status}, 503, 'frozen: health');
ok($r->{time} < patience(4), 'frozen: in the time of a ping')
	or diag("$r->{time} s");
$t->pg_thaw();
ok(wait_for(20, sub { health() }), 'thawed');

# --------------------------------------------------------------------------
# connection attempts that do not end: a worker can still exit

my $port = free_port();
my $silent = IO::Socket::INET->new(Listen => 128, ReuseAddr => 1,
	LocalAddr => '127.0.0.1', LocalPort => $port) or die "$!\n";

# these connections fill the backlog: further connections get no response at all

my $port_full = free_port();
my $full = IO::Socket::INET->new(Listen => 1, ReuseAddr => 1,
	LocalAddr => '127.0.0.1', LocalPort => $port_full) or die "$!\n";
my @backlog = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
	PeerPort => $port_full, Blocking => 0) } 1 .. 8;

sub established {
	my ($port) = @_;

	my $hex = sprintf('0100007F:%04X', $port);

	return scalar grep { (split ' ')[2] eq $hex }
		split(/\n/, slurp('/proc/net/tcp'));
}

# name => [ conninfo, check that the connection attempt hangs ]

my %hangs = (
	'a silent server' => [ "host=127.0.0.1 port=$port",
		sub { established($port) } ],
	'no answer at all' => [ "host=127.0.0.1 port=$port_full",
		sub { established($port_full) > @backlog } ],
	'a resolver' => [ 'host=db.invalid',
		sub { $stall->wait_held('getaddrinfo', 1, 0.1) } ],
	'a table that is locked' => [ $t->conninfo(),
		sub { $t->pg_blocked() } ]
);

$lock = $t->pg_lock('xet.migrations');

for my $name (sort keys %hangs) {
	my ($conninfo, $hanging) = @{ $hangs{$name} };

	$t->stop();
	$t->write_conf(undef, directives => { xet_postgres =>
		"\"$conninfo\" connect_timeout=60s timeout=60s" });

	for my $signal (qw/ TERM QUIT KILL HUP /) {
		if (!$t->nginx()->pid()) {
			$stall->hold('getaddrinfo') if $name eq 'a resolver';
			$t->nginx()->run();
		}

		ok(wait_for(10, $hanging), "$name: hangs");

		# a request also waits for the connection attempt

		my $c = $signal eq 'TERM' ? ask(plan_uri($file)) : undef;
		my $start = time();

		if ($signal eq 'KILL') {
			$t->kill_worker();

		} elsif ($signal eq 'HUP') {
			my @old = $t->reload();

			ok(wait_for(1, sub { !grep { my $pid = $_;
				grep { $_ == $pid } @old }
				$t->worker_pids(all => 1) }),
				"$name: HUP: the old worker ends");

		} else {
			ok($t->stop(signal => $signal, timeout => 10),
				"$name: $signal");
		}

		cmp_ok(time() - $start, '<', patience(1), "$name: $signal: at"
			. ' once');
	}

	my $start = time();

	ok($t->stop(), "$name: after a reload");
	cmp_ok(time() - $start, '<', patience(1), "$name: after a reload: at"
		. ' once');
	$stall->release('getaddrinfo');
}

# the first statement of a session hangs: it has a timeout, and the worker
# continues

$t->write_conf(undef, directives => { xet_postgres =>
	"$pg connect_timeout=1s" });
$from = $t->log_size();
$t->nginx()->run();
ok($t->wait_log(qr/connecting to PostgreSQL failed: no response to the first/,
	20, $from), 'a locked table: the log says it');
$lock->unlock();
ok(wait_for(20, sub { health() }), 'unlocked: connected by itself');
is($t->get(file_uri($file))->{status}, 200, 'and all is served');

$t->done();
