#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Repeatedly kills a primary and promotes its synchronous standby, during
# uploads, reads and data URLs:
#
#     perl t/soak/failover.pl ROUNDS=200 SEED=1
#
# In each round all processes of the primary are killed at a time that the seed
# determines, and the standby is promoted immediately or some seconds later.
# The killed server returns as a standby, by pg_rewind or as a new base backup.
# What must hold:
#
#     history  all bytes of acknowledged files can be read, at the end of the
#              round and at the end of the run
#     reads    of such files return 200 or 503 and never 404
#     data     signed URLs always return 206
#     writes   succeed again at most 15 seconds after the promotion
#
# The last line of the output has the totals.  Each violation prints a line and
# makes the exit code 1.
#
#     UPLOADS=N READS=N  number of processes; default 2 and 1
#     STANDBY=0          reads use only the primary
#     LATE=N             one round out of N is promoted late; default 8
#     SECONDS=N          ends after N seconds, with the rounds done so far

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Time::HiRes qw/ time /;

use Test::Xet;
use Test::Xet::Failover;

my %env = (ROUNDS => 200, SEED => 1, UPLOADS => 2, READS => 1, STANDBY => 1,
	LATE => 8, SECONDS => 0, map { /^(\w+)=(.*)/ ? ($1 => $2) : () } @ARGV);

srand($env{SEED});
$| = 1;

my $t = Test::Xet->new(workers => 2, log => 'warn', timeout => 7200,
	pg_conf => Test::Xet::Failover::pg_conf());
my $f = Test::Xet::Failover->new($t, rewind => 1, uploads => $env{UPLOADS},
	reads => $env{READS}, standby => $env{STANDBY});

exit(main());

sub main {
	my (@writes, %sum, $bad);
	my $end = $env{SECONDS} && time() + $env{SECONDS};

	print "seed $env{SEED}\n";

	$f->start();
	$f->load();

	for my $n (1 .. $env{ROUNDS}) {
		last if $end && time() > $end;

		my $late = rand() < 1 / $env{LATE} ? 1 + rand(4) : 0;
		my $r = $f->round(before => rand(0.8), away => $late);

		$bad += violation($n, $_)
			for map({ "lost $_" } @{ $r->{lost} }),
			map({ "read $_" } @{ $r->{reading} }),
			$r->{errors} ? "data URLs: $r->{errors} failed" : ();

		my $writes = $r->{writes};

		$bad += violation($n, 'no uploads for ' . ($writes // 60)
			. ' s')
			if !defined $writes || $writes - $late > 15;

		push @writes, $writes - $late if defined $writes;
		$sum{rounds}++;
		$sum{$_} += $r->{$_} || 0 for qw/ data errors /;

		printf "round %d: uploads after %.2f s, %d acknowledged\n", $n,
			$writes // -1, $r->{acknowledged};
	}

	my $all = $f->stop();

	$bad += violation('the end', $_)
		for map({ "lost @$_" } @{ $all->{lost} }),
		map({ "read $_" } @{ $all->{reading} });

	@writes = sort { $a <=> $b } @writes;

	printf "%d rounds, %d files acknowledged, %d lost; uploads again %.2f s"
		. " behind the promotion, %.2f s at worst; %d data URLs, %d"
		. " failed; %d violations\n", $sum{rounds} || 0,
		$all->{acknowledged}, scalar @{ $all->{lost} },
		$writes[@writes / 2] // -1, $writes[-1] // -1, $sum{data} || 0,
		$sum{errors} || 0, $bad || 0;

	$t->stop();
	$_->kill() for grep { $_ } $f->primary(), $f->follower();
	$t->remove();

	return $bad ? 1 : 0;
}

sub violation {
	my ($where, $what) = @_;

	print "VIOLATION in round $where: $what\n";

	return 1;
}
