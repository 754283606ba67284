#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures reconstructions of a file with very many terms that can't be joined.
# Measures the worker's memory, with fast and slow clients, for single and batch
# requests; and how much CPU time the event loop takes from one epoll_wait() to
# the next (loop_held.c).
#
#     perl t/bench/plans.pl [terms]
#
# Needs "make build tools cli" and a C compiler.  Takes two minutes, and 2 GB of
# disk.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;
use Time::HiRes qw/ sleep time /;

use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ root slurp spew /;

my $terms = shift || choose(1600000, 20000);
my $slow = choose(8, 2);

bench_start("reconstructions of $terms terms, one worker");

my $dir = tempdir(CLEANUP => 1);

chmod(0755, $dir);
spew("$dir/held", "\0" x 4096);
chmod(0666, "$dir/held");

system('cc', qw/ -O2 -shared -fPIC -o /, "$dir/held.so",
	root() . '/t/bench/loop_held.c') == 0 or die "cannot compile\n";

my $t = bench_server(pin => 0, store => 'disk');

{
	local $ENV{LD_PRELOAD} = "$dir/held.so";
	local $ENV{XET_LOOP_HELD} = "$dir/held";

	$t->run();
}

my $file = insert_file($t, 1, $terms, 1000);
my ($worker) = $t->worker_pids();
my ($one, $batch) = ("/api/v2/reconstructions/$file->{hash}",
	"/api/v1/reconstructions?file_id=$file->{hash}");

my @rows = [ '', 'first byte, s', 'all, s', 'MB', 'KiB before', 'at most',
	'after' ];
my @held = [ 'loop held', 'most, ms', 'above 1 ms', 'above 5 ms', 'of' ];

push @held, held('nobody', sub { sleep(choose(5, 0.2)) });
push @held, held('an answer', sub { whole('an answer', $one) });
push @held, held('a batch', sub { whole('a batch', $batch) });
push @held, held("$slow slow readers", sub { slowly("$slow slow readers",
	$one) });
push @held, held("$slow slow batches", sub { slowly("$slow slow batches",
	$batch) });

bench_table(@rows);
print "\n";
bench_table(@held);
bench_row('the loop at most, a response of very many terms', $held[2][1], 'ms',
	undef, undef, 1, 'less');
bench_row('memory at most, a response of very many terms', $rows[1][5] / 1024,
	'MiB', undef, undef, undef, 'less');

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

# Measures memory while all clients pause after the first bytes.

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

	sleep(choose(3, 0.2));

	my ($after, $most) = memory($worker);

	push @rows, [ $name, sprintf('%.2f', $first), '', '', $before, $most,
		$after ];

	$_->abort() for @c;
}

# Prints how long the event loop was blocked while $work ran.

sub held {
	my ($name, $work) = @_;

	# overwrites the file in place, because it is mapped

	open(my $out, '+<', "$dir/held") or die "$dir/held: $!\n";
	print $out "\0" x 4096;
	close($out);

	$work->();

	my ($most, $one, $five, $all) = unpack('Q4', slurp("$dir/held"));

	return [ $name, sprintf('%.2f', $most / 1000), $one, $five, $all ];
}
