#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Time::HiRes qw/ time /;

use Test::Xet::Bytes;
use Test::Xet::Soak;

$| = 1;

my $seed = $ENV{SEED} || int(rand(1 << 30));
my $steps = $ENV{STEPS} || 1 << 40;
my $seconds = $ENV{SECONDS} || 120;
my %without = map { $_ => 1 } split(/[,\s]+/, $ENV{WITHOUT} // '');
my $mode = $ENV{MODE} || ($seed % 4 ? 'repo' : 'store');
my @only = split(/,/, $ENV{ONLY} // '');

Test::Xet::Bytes::serve();

my $s = Test::Xet::Soak->new(seed => $seed, repos => $mode eq 'repo',
	without => \%without, part_steps => 300,
	subjects => [ qw/ a b c / ], verbose => $ENV{VERBOSE});

my $started = time();
my $n = 0;

print "seed $seed, $mode\n";

for (my $i = 0; $i < (@only || $steps); $i++) {
	my $step = @only ? $only[$i] : $i + 1;

	last if time() > $started + $seconds;

	eval { $s->step($step); 1 } or do {
		my $e = $@;

		print ref $e ? "VIOLATION $e->{class} at step $e->{step}: "
			. "$e->{text}\n" : "died at step $step: $e";
		print "$_\n" for $s->history(ref $e ? $e : { about => [] });
		$s->finish();
		exit(1);
	};

	$n++;
}

printf "%d steps in %d s, seed %d\n", $n, time() - $started, $seed;
$s->finish();
