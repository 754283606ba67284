#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures the cost of the metrics: the worker's processor time per request with
# "xet_metrics", compared with an older module without metrics.  The modules are
# measured in alternation, so that other load of the machine affects both.
#
#     XET_BENCH_OLD=OLD.so perl t/bench/metrics.pl
#
# Without OLD.so, this module with "xet_metrics" is compared with this module
# without it.  Needs "make build tools cli".  Takes two minutes.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;

use Test::Xet;

my $pairs = repeats(7);
my $seconds = seconds(2);

need('wrk', 'wrk');
bench_start('requests with and without counting, one worker');

my $dir = tempdir(CLEANUP => 1);
my @servers;

for my $new (0, 1) {
	local $ENV{XET_TEST_MODULE} = $ENV{XET_BENCH_OLD}
		if !$new && $ENV{XET_BENCH_OLD};

	my $t = bench_server(server =>
		$new ? 'location = /metrics { xet_metrics; }' : '');

	$t->run();

	my (undef, $names) = bench_files($t, choose(1000, 100), $dir);

	push @servers, { t => $t, script => files_script($names),
		worker => ($t->worker_pids())[0] };
}

my %m;

for my $turn (bench_short() .. $pairs) {
	for my $what (qw/ live reconstruction /) {
		my @cpu = map { $_->{cpu}[0] } map { wrk(
			url => $_->{t}->url('/api/health/live'), c => 16,
			s => $seconds, pids => [ $_->{worker} ],
			$what eq 'live' ? () : (script => $_->{script})
		) } $turn % 2 ? @servers : reverse @servers;

		@cpu = reverse @cpu unless $turn % 2;

		next if $turn == 0;

		push @{ $m{$what}{old} }, $cpu[0];
		push @{ $m{$what}{new} }, $cpu[1];
		push @{ $m{$what}{more} }, $cpu[1] - $cpu[0];
		push @{ $m{$what}{ratio} }, $cpu[1] / $cpu[0];
	}
}

bench_heading("processor time of the worker for a request, us; $pairs pairs");
bench_table([ 'request', 'before', 'counting', 'more', 'ratio' ],
	map { [ $_, map { spread(@$_) }
		@{ $m{$_} }{qw/ old new more ratio /} ] } sort keys %m);

# how long a scrape blocks the event loop

my @scrape = map { wrk(url => $servers[1]{t}->url('/metrics'), c => 1,
	s => $seconds, pids => [ $servers[1]{worker} ])->{cpu}[0] }
	0 .. $pairs;

bench_note('a scrape, us', spread(@scrape[1 .. $pairs]));

bench_row("counting, $_", $m{$_}{new}, 'us CPU', 'without', $m{$_}{ratio},
	undef, 'less') for sort keys %m;
bench_row('a scrape of the metrics', [ @scrape[1 .. $pairs] ], 'us CPU', undef,
	undef, undef, 'less');

bench_end($_->{t}) for @servers;
