#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Concurrent requests of several tenants, in a random order that depends only on
# a seed, checked against a model of who may read which data:
#
#     make soak SECONDS=3600 SEED=1 SANITIZE=address
#
# Two nodes with two workers each share one store and one database.  Three
# subjects with tokens, and one without, send xorbs in all encodings, shards and
# files, abort requests, and delete files and whole repos.  They read ranges,
# slowly, pipelined on one connection, through SSI, auth_request and mirror.
# They send dedup and grant requests.  They try to register files of which they
# know only the hash, and to delete files with tokens that do not permit it.  In
# half of all seeds of mode repo a fourth subject uses a location without repos:
# the files that this subject registers belong to the store itself.
#
# At the same time workers are killed, nginx is reloaded, PostgreSQL sessions
# are terminated, PostgreSQL is restarted, store files are truncated, damaged by
# a bit flip and removed, and an empty folder replaces the store for a while.
# "xet gc" makes one node collect garbage during the requests, and is killed
# halfway.  In a third of all seeds xet_gc collects all the time, without a
# grace period, on one node or on both nodes; in another third a node scrubs.
# Audit log and metrics are on.
#
# What must hold (Test::Xet::Soak::Model has the rules):
#
#     readable  acknowledged data is readable by those who could read it, until
#               the run damages it, and again after the next acknowledgement
#     bytes     no route and no URL ever returns bytes that differ from those
#               sent
#     privacy   nobody can read or register data that they may not read and did
#               not send
#     told      nobody can detect such data: rejections are the same for
#               existing and missing data, dedup responses name no foreign chunk
#     refused   valid requests are accepted; after a concurrent collection or
#               deletion the response may ask for a retry
#     deleted   after the response, the affected callers can't read deleted data
#               on either node, until it is registered again
#     left      a final collection leaves no unneeded xorb, no copy without a
#               row, and no pending row for the collector; after all files are
#               deleted, it leaves nothing
#     verify    "xet verify --store" finds only damage that the run caused
#     gc        each "xet gc" succeeds in spite of the faults
#     metrics   can be parsed; counters never decrease, even if a process dies
#     audit     complete lines, and one for each deletion
#     answers   each request gets one response, on its connection, in order
#     log       no alerts, no sanitizer reports, no crashed worker
#
# A run is a number of steps.  The random numbers of a step depend only on the
# seed and the step's number; files and xorbs derive from the seed, too.
# Therefore any subset of steps can be run again: no choice depends on a
# response.  The timing of server events varies, so a seed does not always
# reproduce a race.
#
# A violation ends the run and prints the log lines about the affected object.
# Then the run is repeated with fewer and fewer steps that still reproduce the
# violation, unless SHRINK=0.
#
#     SEED      a number; by default random
#     SECONDS   duration, 120
#     STEPS     number of steps, unlimited
#     ONLY      these steps, for example 3,17,22
#     MODE      repo, token or store, by default from the seed; see the model
#     WITHOUT   a list of operations and faults to leave out; "encodings": each
#               xorb has one encoding; "filters": no gzip and sub_filter, which
#               a third of all seeds use
#     BREAK     stay, look, lock, needed, copies, delete or notes: removes one
#               of the database's safeguards; the run must find a violation
#     VERBOSE   prints every response
#     SHRINK    0: do not reduce the steps
#
# t/code/soak.t runs it for two minutes, under ASan.

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Time::HiRes qw/ time /;

use Test::Xet::Bytes;
use Test::Xet::Soak;

$| = 1;

my %env = (SECONDS => 120, STEPS => 0, ONLY => '', WITHOUT => '',
	VERBOSE => 0, SHRINK => 1, BREAK => '', map { $_ => $ENV{$_} }
	grep { defined $ENV{$_} && $ENV{$_} ne '' }
	qw/ SEED SECONDS STEPS ONLY MODE WITHOUT VERBOSE SHRINK BREAK /);

$env{SEED} //= int(rand(1 << 30));
$env{MODE} //= (qw/ repo repo token store /)[$env{SEED} % 4];

# Builds with sanitizers are named nginx-address and the like.

$ENV{ASAN_OPTIONS} //= 'detect_leaks=0:detect_odr_violation=0';
$ENV{UBSAN_OPTIONS} //= 'print_stacktrace=1';
$ENV{TSAN_OPTIONS} //= "suppressions=$FindBin::Bin/tsan.supp";

my $violation = run() // exit(0);

exit(2) unless ref $violation;

if ($env{SHRINK}) {
	my @steps = shrink($violation);

	print 'again: ONLY=' . join(',', @steps) . " SEED=$env{SEED}"
		. " MODE=$env{MODE} WITHOUT=$env{WITHOUT}\n";
}

exit(1);

# --------------------------------------------------------------------------

sub run {
	my @only = split(/,/, $env{ONLY});
	my %without = map { $_ => 1 } split(/,/, $env{WITHOUT});

	print "seed $env{SEED}, mode $env{MODE}\n";

	Test::Xet::Bytes::serve();

	my $soak = Test::Xet::Soak->new(seed => $env{SEED},
		mode => $env{MODE}, break => $env{BREAK}, without => \%without, part_steps => 300,
		subjects => [ qw/ a b c / ], verbose => $env{VERBOSE});

	print "$soak->{chores}\n" if $soak->{chores};

	my $end = time() + $env{SECONDS};
	my ($n, $found) = (0);

	while (time() < $end && (@only || !$env{STEPS} || $n < $env{STEPS})) {
		my $step = $env{ONLY} ne '' ? shift(@only) : $n + 1;

		last unless defined $step;

		$found = attempt($soak, sub { $soak->step($step) });
		last if $found;
		$n++;
	}

	$found ||= attempt($soak, sub { $soak->last_step() });

	print "$_\n" for $soak->summary();
	print "$n steps without a violation\n" unless $found;

	$soak->finish();

	return $found;
}

sub attempt {
	my ($soak, $code) = @_;

	return undef if eval { $code->(); 1 };

	my $e = $@;

	if (!ref $e) {
		print "the soak itself fails at step $soak->{step}: $e";
		print "$_\n" for $soak->history();
		return 'failed';
	}

	print "VIOLATION $e->{class}, step $e->{step}: $e->{text}\n";
	print "    $_\n" for $soak->history(@{ $e->{about} });
	print "    $_\n" for $soak->said();

	return $e;
}

# Finds fewer steps that reproduce the same class of violation.  Each attempt
# starts new servers.  The first attempt runs only the steps logged for the
# object; later attempts leave out a half of the steps, then a quarter, etc.

sub shrink {
	my ($of) = @_;

	my @steps = $env{ONLY} ne '' ? split(/,/, $env{ONLY})
		: (1 .. $of->{step});
	my %related = map { $_ => 1 } @{ $of->{steps} || [] }, $of->{step};
	my $tries = 24;

	@steps = grep { $_ <= $of->{step} } @steps;

	my @few = grep { $related{$_} } @steps;
	@steps = @few if @few < @steps && $tries-- && shows($of, @few);

	for (my $n = 2; $tries > 0 && @steps > 1 && $n <= 2 * @steps; ) {
		my $size = int((@steps + $n - 1) / $n);
		my $fewer;

		for (my $at = 0; $at < @steps && $tries > 0; $at += $size) {
			my @try = @steps;
			splice(@try, $at, $size);

			next unless @try && $tries-- && shows($of, @try);

			$fewer = \@try;
			last;
		}

		@steps = @$fewer if $fewer;
		$n *= 2 unless $fewer;
	}

	return @steps;
}

sub shows {
	my ($of, @steps) = @_;

	my $pid = open(my $out, '-|') // die "fork: $!\n";

	if ($pid == 0) {
		%ENV = (%ENV, %env, SHRINK => 0, VERBOSE => 0, STEPS => 0,
			ONLY => join(',', @steps));
		exec($^X, $0);
	}

	my @lines = <$out>;
	close($out);

	return scalar grep { /^VIOLATION $of->{class},/ } @lines;
}
