#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Two minutes of t/soak/soak.pl, under ASan: half of them with tenants that
# are kept apart, the rest without.  Each run has another seed; a failure
# prints it, and which steps show it.

use warnings;
use strict;

use Test::More tests => 4;

use FindBin;

my $build = $ENV{XET_BUILD} || "$FindBin::Bin/../build";
my $nginx = "$build/nginx-address/nginx";

# seconds of each mode

my %modes = (repo => 60, token => 30, store => 30);

ok(-x $nginx, 'nginx under ASan: make nginx-address');

for my $mode (sort keys %modes) {
	my ($status, @out) = soak($mode);

	is($status, 0, "$mode: no violation") or diag(@out);
	note($out[0], $out[-1]);
}

sub soak {
	my ($mode) = @_;

	my $pid = open(my $out, '-|') // die "fork: $!\n";

	if ($pid == 0) {
		open(STDERR, '>&', \*STDOUT);
		%ENV = (%ENV, MODE => $mode, SECONDS => $modes{$mode},
			XET_TEST_NGINX => $nginx, XET_TEST_MODULE => '');
		exec($^X, "$FindBin::Bin/soak/soak.pl");
	}

	my @lines;

	# at once, so that a run that is cut off has told what it found

	while (my $line = <$out>) {
		print STDERR "# $mode: $line" if $line =~ /^(?:seed|VIOLATION)/;
		push @lines, $line;
	}

	close($out);

	return ($?, @lines);
}
