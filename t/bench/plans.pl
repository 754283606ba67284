#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Reconstructions of a file of very many terms, none of which touch: what they
# take of the worker's memory, read at once and by slow clients, alone and in a
# batch; and how long the event loop is held meanwhile, seen by a client that
# asks "return 200" all the time.
#
#     perl t/bench/plans.pl [terms]
#
# Needs "make build tools".  Two minutes, and 2 GB of disk.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use POSIX ();
use Time::HiRes qw/ sleep time /;

use Test::Xet;
use Test::Xet::Files;

my $terms = shift || 1600000;
my $slow = 8;

bench_start("reconstructions of $terms terms, one worker");

my $t = bench_server(pin => 0, store => 'disk', server =>
	'location = /200 { return 200; }');

$t->run();

my $file = insert_file($t, 1, $terms, 1000);
my ($worker) = $t->worker_pids();
my ($one, $batch) = ("/api/v2/reconstructions/$file->{hash}",
	"/api/v1/reconstructions?file_id=$file->{hash}");

my @rows = [ '', 'first byte, s', 'all, s', 'MB', 'KiB before', 'at most',
	'after' ];
my @held = [ 'loop held, ms', 'p50', 'p99', 'p99.9', 'most' ];

push @held, held('nobody', sub { sleep(5) });
push @held, held('an answer', sub { whole('an answer', $one) });
push @held, held('a batch', sub { whole('a batch', $batch) });
push @held, held("$slow slow readers", sub { slowly("$slow slow readers",
	$one) });
push @held, held("$slow slow batches", sub { slowly("$slow slow batches",
	$batch) });

bench_table(@rows);
print "\n";
bench_table(@held);

bench_end($t);

# --------------------------------------------------------------------------

sub whole {
	my ($name, $path) = @_;

	my ($before) = memory($worker);
	memory_reset($worker);

	my $url = $t->url($path);
	my $format = join(' ', map { "%{$_}" } qw/ http_code time_starttransfer
		time_total size_download /);
	my $out = `curl -s -o /dev/null -w '$format' '$url'`;
	my ($status, $first, $all, $size) = split(/ /, $out);

	die "$name: $out\n" unless $status == 200;

	my ($after, $most) = memory($worker);

	push @rows, [ $name, map({ sprintf('%.2f', $_) } $first, $all),
		int($size / 1000000), $before, $most, $after ];
}

# All of them have the first bytes, and take no more for a while.

sub slowly {
	my ($name, $path) = @_;

	my ($before) = memory($worker);
	memory_reset($worker);

	my $began = time();
	my @c = map { $t->http_start('GET', $path, {}, undef, rcvbuf => 4096,
		timeout => 600) } 1 .. $slow;

	for my $c (@c) {
		die "$name: nothing\n" unless $c->read_some(1000, 120);
	}

	my $first = time() - $began;

	sleep(3);

	my ($after, $most) = memory($worker);

	push @rows, [ $name, sprintf('%.2f', $first), '', '', $before, $most,
		$after ];

	$_->abort() for @c;
}

# How long each of many small requests took while work was done.

sub held {
	my ($name, $work) = @_;

	pipe(my $in, my $out) or die "pipe: $!\n";
	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0) {
		my $stop = 0;
		local $SIG{TERM} = sub { $stop = 1 };
		my $c = $t->connect();
		my @times;

		while (!$stop) {
			my $began = time();

			$c->exchange('GET', '/200');
			push @times, time() - $began;
			sleep(0.001);
		}

		@times = sort { $a <=> $b } @times;
		syswrite($out, join(' ', map { sprintf('%.2f',
			1000 * $times[int($_ * $#times)]) } 0.5, 0.99, 0.999,
			1));
		POSIX::_exit(0);
	}

	close($out);
	$work->();
	kill('TERM', $pid);

	my @times = split(/ /, <$in> // '');

	waitpid($pid, 0);

	return [ $name, @times ];
}
