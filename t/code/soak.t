#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Runs t/soak/soak.pl for two minutes, under ASan, half of the time with
# isolated tenants; and t/soak/hub.pl for half a minute.  Each run has a new
# seed, and a failure prints the seed and the steps that reproduce it.  One more
# run removes a guard, and must fail.

use warnings;
use strict;

use Test::More tests => 7;

use FindBin;

my $build = $ENV{XET_BUILD} || "$FindBin::Bin/../../build";
my $nginx = "$build/nginx-address/nginx";

# seconds per mode; each run needs some additional time to end

my %modes = (repo => 50, token => 25, store => 25);

ok(-x $nginx, 'nginx under ASan: make nginx-address');

for my $mode (sort keys %modes) {
	my ($status, @out) = soak($mode);

	is($status, 0, "$mode: no violation") or diag(@out);
	note($out[0], $out[-1]);
}

# names, permissions and bytes of a Hub

{
	my ($status, @out) = soak('hub', SECONDS => 30);

	is($status, 0, 'hub: no violation') or diag(@out);
	note($out[0], $out[-1]);
}

# the effect of a seed depends on timing, so a seed may not show the fault on a
# busy machine

my ($status, @out);

for my $seed (2 .. 5) {
	($status, @out) = soak('repo', BREAK => 'look', SEED => $seed,
		STEPS => 60, SHRINK => 0);
	last if $status >> 8 == 1;
}

is($status >> 8, 1, 'without a guard: the run fails')
	or diag(@out);
like(join('', @out), qr/^VIOLATION readable, .* 404 /m,
	'and reports a missing file');

sub soak {
	my ($mode, %o) = @_;

	my $pid = open(my $out, '-|') // die "fork: $!\n";

	if ($pid == 0) {
		open(STDERR, '>&', \*STDOUT);
		%ENV = (%ENV, MODE => $mode, SECONDS => $modes{$mode},
			XET_TEST_NGINX => $nginx, XET_TEST_MODULE => '',
			%o);
		exec($^X, "$FindBin::Bin/../soak/"
			. ($mode eq 'hub' ? 'hub.pl' : 'soak.pl'));
	}

	my @lines;

	# prints immediately, so that an interrupted run has reported its
	# findings

	while (my $line = <$out>) {
		print STDERR "# $mode: $line"
			if !%o && $line =~ /^(?:seed|VIOLATION)/;
		push @lines, $line;
	}

	close($out);

	return ($?, @lines);
}
