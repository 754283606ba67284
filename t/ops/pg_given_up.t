#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Sessions whose worker is killed: PostgreSQL ends them early.  Connections that
# a firewall has dropped: the kernel detects them early.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ free_port slurp /;

use IO::Socket::INET;

my $t = Test::Xet->new(workers => 1);

$t->run();

my $file = $t->upload(random_bytes(5, 100000), scheme => 'none');
my $uri = "/api/v2/reconstructions/$file->{hash}";

# --------------------------------------------------------------------------
# A worker is killed while its statement waits for a lock, and PostgreSQL ends
# the session immediately.  Otherwise the statement would wait until its
# timeout, and with constant requests such sessions would accumulate.

$t->allow(qr/exited on signal 9/);
$t->stop();
$t->write_conf(undef, directives => { xet_postgres => '"' . $t->conninfo()
	. '" timeout=300s write_timeout=300s' });
$t->run();

for my $case ([ 'a read', 'xet.files', 'GET', $uri ],
	[ 'a write', 'xet.xorbs', 'POST',
		"/api/v1/xorbs/default/$file->{xorbs}[0]{hash}" ])
{
	my ($name, $table, $method, $uri) = @$case;
	my $body = $method eq 'POST' ? $file->{xorbs}[0]{bytes} : undef;
	my $lock = $t->pg_lock($table);
	my $c = $t->http_start($method, $uri, defined $body
		? { 'Content-Length' => length($body) } : {}, $body);

	ok(wait_for(10, sub { $t->pg_blocked() }), "$name waits for a lock");
	$t->kill_worker('KILL');
	ok(wait_for(10, sub { !$t->pg_blocked() }),
		"$name: PostgreSQL ends it, too");

	$lock->unlock();
	$c->close();
	ok(wait_for(20, sub { $t->get('/api/v1/health')->{status} == 200 }),
		"$name: healthy again");
}

# --------------------------------------------------------------------------
# a connection that a firewall drops silently: the kernel probes it after half a
# minute, not after two hours

my $port = free_port();
my $silent = IO::Socket::INET->new(Listen => 64, ReuseAddr => 1,
	LocalAddr => '127.0.0.1', LocalPort => $port) or die "$!\n";

$t->stop();
$t->write_conf(undef, directives => { xet_postgres =>
	"\"host=127.0.0.1 port=$port\" connect_timeout=20s" });
$t->run();

my $c = $t->http_start('GET', $uri, {});
my @timers;

ok(wait_for(15, sub { @timers = timers($port) }), 'a session begins');
ok(wait_for(15, sub {
	@timers = timers($port);
	@timers && !grep { $_->[0] != 2 || $_->[1] > 31 } @timers
}), 'and idle connections are probed')
	or diag(map { "timer $_->[0], $_->[1] s\n" } @timers);

$c->close();
close($silent);

$t->done();

# Returns the timers of connections to a port: their kinds (2 is keepalive), and
# the remaining seconds.

sub timers {
	my $to = sprintf('0100007F:%04X', $_[0]);

	return map { [ hex($_->[0]), hex($_->[1]) / 100 ] }
		map { [ split(/:/, $_->[5]) ] }
		grep { $_->[2] eq $to && $_->[3] eq '01' }
		map { [ split(' ') ] } split(/\n/, slurp('/proc/net/tcp'));
}
