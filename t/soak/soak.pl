#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Requests of several tenants at once, in an order that a seed gives, against
# a model of who may read what:
#
#     make soak SECONDS=3600 SEED=1 SANITIZE=address
#
# Two nodes of two workers each have one store and one database.  Three
# subjects with tokens, and one without, send xorbs in all encodings, shards
# and files, break off, delete files and whole repos, read in ranges, slowly, in
# a line on one connection, through SSI, auth_request and mirror; they ask for
# dedup and grants, and try to register what they know the hash of only, and to
# delete with tokens that do not say so.  In half of all seeds of mode repo a
# fourth one uses a location without repos, for which the store itself holds
# what he registers.
#
# Meanwhile workers are killed, nginx is reloaded, sessions of PostgreSQL are
# ended and it is restarted, files of the store are cut, flipped and removed,
# and the store is another, empty folder for a while.  "xet gc" has one node
# collect beside the requests, and is killed in the middle; in a third of all
# seeds xet_gc collects all the time, without a grace, on one node or on both; in
# another third a node scrubs.  Audit log and metrics are on.
#
# What must hold (Test::Xet::Soak::Model has the rules):
#
#     readable  what was acknowledged is readable by those who could read it,
#               until we damage it, and again once it is acknowledged again
#     bytes     never other bytes than were sent, by no way, under no URL
#     privacy   nobody reads or registers what he neither has sent nor sees
#     told      nobody is told of it: refusals are alike for what is there and
#               what is not, dedup answers name no chunk that is not his
#     refused   what is right is accepted; where a collector or a deletion has
#               come between it may have to be sent again, and is told so
#     deleted   what is deleted is gone with the answer, on both nodes, for
#               whom it concerns, until it is registered again
#     left      in the end, when all is collected, there are no xorbs that no
#               file needs, no copies without a row, no notes; and nothing at
#               all when all files are deleted
#     verify    "xet verify --store" finds nothing but what we have damaged
#     gc        a collector ends well, whatever happens beside it
#     metrics   parse, and counters never go back, by whatever is killed
#     audit     whole lines, and one for each deletion
#     answers   each request is answered once, on its connection, in its order
#     log       no alert, no report of a sanitizer, no worker that died
#
# A run is a number of steps.  Each draws its own random numbers from the seed
# and its number, and files and xorbs follow from the seed too, so any subset
# of steps can be run again: what is chosen never depends on an answer.  The
# times at which things happen to the server are not ours, so where a
# violation is a race, a seed finds it again often, not always.
#
# A violation ends the run with what the log has on its object, and then the
# steps are made fewer, as long as they show it (SHRINK=0: not).
#
#     SEED      a number; random
#     SECONDS   how long, 120
#     STEPS     how many steps, endless
#     ONLY      these steps, 3,17,22
#     MODE      repo, token or store, by the seed; see the model
#     WITHOUT   operations and faults to leave out, a list; "encodings" is for
#               one encoding a xorb, "filters" for no gzip and the like, which
#               a third of all seeds have
#     BREAK     stay, look, lock, needed, copies, delete or notes: takes a
#               guard out of the database, to be found
#     VERBOSE   prints every answer
#     SHRINK    0
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

# Those that know of them are nginx-address and the like.

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

# Fewer steps that show the same class of violation, each try in a new server:
# those on record for the object alone, or else halves, quarters and so on.

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
