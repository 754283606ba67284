#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Each program of t/bench works: it runs with tiny sizes for about a second,
# ends with success, and reports results that are numbers.  A program whose
# clients or tools are not installed is skipped by name.

use warnings;
use strict;

use Test::More;

use File::Temp qw/ tempdir /;
use FindBin;
use JSON::PP ();
use Time::HiRes qw/ time /;

use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../bench";

use Programs qw/ programs /;
use Test::Xet::Process qw/ build_dir root run_command slurp /;

my ($root, $build) = (root(), build_dir());
my $dir = tempdir(CLEANUP => 1);

$ENV{XET_BENCH_SHORT} = 1;
delete @ENV{qw/ XET_BENCH_NET XET_BENCH_OLD XET_BENCH_HUB XET_BENCH_HFD
	XET_BENCH_CAS XET_BENCH_QUICK XET_BENCH_REPEATS XET_BENCH_SECONDS /};

plan(skip_all => 'make bench-bins has not run')
	unless -x "$build/bench/bench_xorb_verify";

my @programs = programs($root, $build, $dir);
my %listed = map { $_->{name} => 1 } @programs;

# parts of others, and the program that runs all

my %other = map { $_ => 1 } qw/ s3_sink.pl all.pl /;

is_deeply([ grep { !$listed{$_} && !$other{$_} } map { s!.*/!!r =~ s/\.c\z//r }
	glob("$root/t/bench/*.pl $root/t/bench/bench_*.c") ], [],
	'all programs are in t/bench/Programs.pm');

# two at a time, because most of them wait for their server to start

my %pid;

for my $p (@programs) {
	reap() if keys %pid >= 2;

	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0) {
		$ENV{XET_BENCH_JSON} = "$dir/$p->{name}.json";

		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>', "$dir/$p->{name}.out") or die "$!\n";
		open(STDERR, '>&', \*STDOUT);
		exec('timeout', 100, @{ $p->{command} });
	}

	$p->{began} = time();
	$pid{$pid} = $p;
}

reap() while %pid;

for my $p (@programs) {
	subtest($p->{name} => sub { check($p) });
}

done_testing();

# --------------------------------------------------------------------------

sub reap {
	my $pid = wait();

	my $p = delete $pid{$pid} or return;

	@$p{qw/ status took /} = ($?, time() - $p->{began});
}

sub check {
	my ($p) = @_;

	note(sprintf('%.1f s', $p->{took}));

	my $out = slurp("$dir/$p->{name}.out");
	my ($missing) = $out =~ /^(.*): nothing measured$/m;

	plan(skip_all => "$p->{name}: $missing")
		if $p->{status} == 0 && defined $missing;

	is($p->{status}, 0, 'exits with success') or diag($out);

	my @rows = map { JSON::PP::decode_json($_) }
		split(/\n/, slurp("$dir/$p->{name}.json", 1) // '');

	cmp_ok(scalar @rows, '>', 0, 'has results');

	my @bad = grep {
		my $row = $_;
		!length($row->{name} // '') || !number($row->{value})
			|| grep { defined $row->{$_} && !number($row->{$_}) }
				qw/ ratio goal /
	} @rows;

	is_deeply(\@bad, [], 'each result has a name and finite numbers');

	my %seen;

	is_deeply([ grep { $seen{$_}++ } map { $_->{name} } @rows ], [],
		'no two results have the same name');
	done_testing();
}

sub number { return ($_[0] // '') =~ /\A-?\d+(?:\.\d+)?(?:e[-+]?\d+)?\z/i }
