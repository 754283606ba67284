#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The collector, with uploads, deletions, damage, and crashes of processes and
# of PostgreSQL between any two of its steps: ten thousand rounds of
# t/soak/gc.pl.  Then the rounds run again with one of the collector's checks
# disabled, and must detect that a file is lost.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Process qw/ patience /;

my $rounds = $ENV{XET_TEST_ROUNDS} || 10000;
my $seed = $ENV{XET_TEST_SEED} || 1;

my ($code, $out) = rounds(ROUNDS => $rounds, SEED => $seed);

is($code, 0, "$rounds rounds, seed $seed") or diag($out);
like($out, qr/^$rounds rounds without a violation/m, 'all of them');

for my $what ('uploads', 'deletes', 'files collected', 'xorbs collected',
	'copies removed', 'orphans', 'heals', 'deaths', 'kills of PostgreSQL')
{
	like($out, qr/\b[1-9]\d* \Q$what\E\b/, "with $what");
}

for my $n ($seed .. $seed + 3) {
	($code, $out) = rounds(ROUNDS => $rounds, SEED => $n, BREAK => 'needs');
	last if $code;
}

is($code, 1, 'without a guard') or diag($out);
like($out, qr/^VIOLATION .*acknowledged in round \d+: it is not (?:there|his)/m,
	'a file is lost');

done_testing();

# --------------------------------------------------------------------------

sub rounds {
	my (%o) = @_;

	local $SIG{ALRM} = sub { die "the rounds take too long\n" };
	alarm(patience(900));

	my $args = join(' ', map { "$_=$o{$_}" } sort keys %o);
	my $out = `$^X $FindBin::Bin/../soak/gc.pl $args 2>&1`;

	alarm(0);

	return ($? >> 8, $out);
}
