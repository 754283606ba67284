#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures reads while other clients misbehave: reconstructions of 20 terms
# before and during a thousand uploads that stop halfway, a thousand bodies sent
# at one byte per second, a thousand requests sent at one header line per
# second, and floods of headers.  For comparison, "return 200" is measured with
# the same worker: it shows the effect on nginx and the machine alone.
#
#     perl t/bench/abuse.pl
#
# Needs "make build tools cli".  Takes twelve minutes.  The misbehaving clients
# get the processor time that the readers do not use.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use Errno;
use File::Temp qw/ tempdir /;
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw/ sleep time /;

use Test::Xet;
use Test::Xet::Process qw/ reap /;

my $repeats = repeats(9);
my $seconds = seconds(1);
my $n = choose(1000, 10);
my $floods = choose(20, 2);

need('wrk', 'wrk');
bench_start('reconstructions while others misbehave, one worker');

my $dir = tempdir(CLEANUP => 1);

my $t = bench_server(connections => 8192,
	main => "worker_rlimit_nofile 16384;\n",
	server => 'location = /200 { return 200 "ok"; }')->run();

my (undef, $names) = bench_files($t, choose(10000, 100), $dir);
my $xorb = make_xorb(random_bytes(2, 1 << 20));
my $path = "/api/v1/xorbs/default/$xorb->{hash}";

my ($worker) = $t->worker_pids();
my %m;

my @kinds = (
	[ 'idle', "$n idle uploads, half sent", \&idle ],
	[ 'bodies', "$n bodies, a byte a second", \&bodies ],
	[ 'lines', "$n heads, a line a second", \&lines ],
	[ 'flood', "$floods floods of headers", \&flood ],
	[ 'all', 'all at once', \&all ]
);

for my $run (bench_short() .. $repeats) {
	for my $kind (@kinds) {
		my ($name, undef, $abuse) = @$kind;

		my %one = (before => [ measure() ]);
		my $pid = misbehave($abuse);

		$one{during} = [ measure() ];
		($one{rss}) = memory($worker);
		$one{connections} = connections();

		kill('KILL', $pid);
		reap($pid, 10);
		quiet();

		next if $run == 0;

		for my $when (qw/ before during /) {
			my ($r, $c) = @{ $one{$when} };

			push @{ $m{$name}{"$when $_"} }, $r->{$_}
				for qw/ p50 p99 rps /;
			push @{ $m{$name}{"$when c_$_"} }, $c->{$_}
				for qw/ p50 p99 rps /;
			push @{ $m{$name}{"$when cpu"} }, $r->{cpu}[0];
			push @{ $m{$name}{"$when c_cpu"} }, $c->{cpu}[0];
		}

		for my $q (qw/ p50 p99 /) {
			push @{ $m{$name}{"by $q"} }, $one{during}[0]{$q}
				/ $one{before}[0]{$q};
			push @{ $m{$name}{"by c_$q"} }, $one{during}[1]{$q}
				/ $one{before}[1]{$q};
		}

		push @{ $m{$name}{rss} }, $one{rss} / 1024;
		push @{ $m{$name}{connections} }, $one{connections};
	}
}

report();
bench_end($t);

# --------------------------------------------------------------------------
# readers

sub measure {
	return map {
		wrk(url => $t->url($_->[0]), c => 8, s => $seconds,
			script => $_->[1], pids => [ $worker ])
	} [ '/', files_script($names) ], [ '/200', '' ];
}

sub connections {
	my $port = sprintf('%04X', $t->port());
	my $count = 0;

	open(my $in, '<', '/proc/net/tcp') or die "/proc/net/tcp: $!\n";

	while (<$in>) {
		$count++ if /^\s*\d+: \w+:$port \w+:\w+ 01 /;
	}

	return $count;
}

sub quiet {
	wait_for(60, sub { connections() == 0 && !$t->temp_files() })
		or die "connections are left\n";
}

# --------------------------------------------------------------------------
# misbehaving clients, which run in another process; it reports when they have
# started

sub misbehave {
	my ($abuse) = @_;

	pipe(my $in, my $out) or die "pipe: $!\n";

	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0) {
		$SIG{$_} = 'DEFAULT' for qw/ INT TERM HUP ALRM /;
		$SIG{PIPE} = 'IGNORE';
		POSIX::nice(19);
		close($in);

		eval {
			$abuse->(sub { syswrite($out, '.') });
			1;
		} or print "misbehaving failed: $@";

		POSIX::_exit(1);
	}

	close($out);
	sysread($in, my $ready, 1) or die "nobody misbehaves\n";

	return $pid;
}

sub dial {
	return IO::Socket::INET->new(Proto => 'tcp', PeerAddr => '127.0.0.1',
		PeerPort => $t->port(), Timeout => 20)
		|| die "connect: $@\n";
}

sub head {
	my ($length) = @_;

	return "POST $path HTTP/1.1\r\nHost: localhost\r\n"
		. "Content-Length: $length\r\n\r\n";
}

# Sends the whole text, however long the server takes.

sub say_all {
	my ($socket, $text) = @_;

	my $pos = 0;

	while ($pos < length($text)) {
		$pos += syswrite($socket, $text, 65536, $pos)
			// die "send: $!\n";
	}
}

sub start {
	my ($text) = @_;

	return map {
		my $socket = dial();
		say_all($socket, $text);
		$socket->blocking(0);
		$socket;
	} 1 .. $n;
}

# Sends half of a body, which is more than the server buffers, so the server
# verifies and writes what it has received.

sub start_idle {
	return start(head(length($xorb->{bytes}))
		. substr($xorb->{bytes}, 0, length($xorb->{bytes}) / 2));
}

sub start_bodies { return start(head(length($xorb->{bytes})) . 'x') }
sub start_lines { return start("GET / HTTP/1.1\r\nHost: localhost\r\n") }

# Once a second, sends each group's text on all its sockets, then calls $next.

sub drip {
	my ($next, @groups) = @_;

	while (1) {
		my $end = time() + 1;

		for (@groups) {
			my ($text, @sockets) = @$_;
			syswrite($_, $text) for @sockets;
		}

		$next->($end);
	}
}

sub pause {
	my ($end) = @_;
	my $left = $end - time();
	sleep($left) if $left > 0;
}

sub idle {
	my ($begun) = @_;
	my @sockets = start_idle();
	$begun->();
	sleep(1) while 1;
}

sub bodies {
	my ($begun) = @_;
	my @sockets = start_bodies();
	$begun->();
	drip(\&pause, [ 'x', @sockets ]);
}

sub lines {
	my ($begun) = @_;
	my @sockets = start_lines();
	$begun->();
	drip(\&pause, [ "X-Line: x\r\n", @sockets ]);
}

# Sends header lines until the server rejects the request; then starts again.

sub flood {
	my ($begun) = @_;
	my $flood = flooding();
	$begun->();
	$flood->(time() + 1) while 1;
}

sub flooding {
	my $text = "GET / HTTP/1.1\r\nHost: localhost\r\n"
		. join('', map { "X-Line-$_: " . 'x' x 60 . "\r\n" } 1 .. 9000);
	my %at;

	return sub {
		my ($end) = @_;

		while (time() < $end) {
			for (keys(%at) + 1 .. $floods) {
				my $socket = dial();
				$socket->blocking(0);
				$at{$socket} = [ $socket, 0 ];
			}

			my $all = IO::Select->new(map { $_->[0] } values %at);

			for my $socket ($all->can_write(0.05)) {
				my $c = $at{$socket};
				my $sent = syswrite($socket, $text, 65536,
					$c->[1]);

				$c->[1] += $sent // 0;

				next if defined $sent
					? $c->[1] < length($text)
					: $!{EAGAIN} || $!{EINTR};

				close($socket);
				delete $at{$socket};
			}
		}
	};
}

sub all {
	my ($begun) = @_;
	my @idle = start_idle();
	my @bodies = start_bodies();
	my @lines = start_lines();
	my $flood = flooding();

	$begun->();
	drip($flood, [ 'x', @bodies ], [ "X-Line: x\r\n", @lines ]);
}

# --------------------------------------------------------------------------

sub report {
	bench_row("reconstructions while: $_->[1]", $m{$_->[0]}{'during p99'},
		'us, p99', 'p99 before', $m{$_->[0]}{'by p99'}, undef, undef)
		for @kinds;

	bench_heading("8 connections, $repeats runs of $seconds s each, by"
		. ' turns before and during');

	bench_table(
		[ 'reconstructions', 'p50 us before', 'during',
			'p99 us before', 'during', 'p99 during/before' ],
		map {
			my ($name, $title) = @$_;
			[ $title, map { spread(@{ $m{$name}{$_} }) }
				'before p50', 'during p50', 'before p99',
				'during p99', 'by p99' ]
		} @kinds);
	print "\n";
	bench_table(
		[ '"return 200"', 'p50 us before', 'during', 'p99 us before',
			'during', 'p99 during/before' ],
		map {
			my ($name, $title) = @$_;
			[ $title, map { spread(@{ $m{$name}{$_} }) }
				'before c_p50', 'during c_p50', 'before c_p99',
				'during c_p99', 'by c_p99' ]
		} @kinds);
	print "\n";
	bench_table(
		[ 'a second', 'reconstructions before', 'during',
			'"return 200" before', 'during' ],
		map {
			my ($name, $title) = @$_;
			[ $title, map { spread(@{ $m{$name}{$_} }) }
				'before rps', 'during rps', 'before c_rps',
				'during c_rps' ]
		} @kinds);
	print "\n";
	bench_table(
		[ 'CPU us of the worker, for each', 'reconstruction before',
			'during', '"return 200" before', 'during' ],
		map {
			my ($name, $title) = @$_;
			[ $title, map { spread(@{ $m{$name}{$_} }) }
				'before cpu', 'during cpu', 'before c_cpu',
				'during c_cpu' ]
		} @kinds);
	print "\n";
	bench_table(
		[ 'what the worker holds', 'connections', 'MiB' ],
		map {
			my ($name, $title) = @$_;
			[ $title, map { spread(@{ $m{$name}{$_} }) }
				'connections', 'rss' ]
		} @kinds);
}
