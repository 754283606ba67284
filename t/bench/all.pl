#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Runs all benchmarks in at most 20 minutes, with smaller sizes and fewer
# repetitions than each by itself, and prints one table: the measured value;
# what the same run compares it with, such as "return 200" or another program;
# the ratio of both; the goal; the ratio in the last run; and a verdict.  Lists
# the rows that are at least 10 % worse than in the last run.
#
#     perl t/bench/all.pl [program ...]
#
# Writes to the folder "bench" of the build: the output of each program to
# NAME.out, and the results to results.json.  A run of all programs renames the
# last results to results.last.json; a run of some programs replaces their rows,
# which were disturbed, for example.  Two plots in docs show all results.
# Programs without results are listed with the reason.
#
#     XET_BENCH_MINUTES   20
#     XET_BENCH_SHORT     only shows that all works, as t/code/bench.t does
#
# Needs "make build tools cli bench-bins".

use warnings;
use strict;

use File::Temp qw/ tempdir /;
use FindBin;
use JSON::PP ();
use POSIX ();
use Time::HiRes qw/ time /;

use lib $FindBin::Bin, "$FindBin::Bin/../lib";

use Plot qw/ plot_goals plot_growth /;
use Programs qw/ programs /;
use Test::Xet::Process qw/ build_dir root slurp spew /;

my $short = $ENV{XET_BENCH_SHORT};
my $out = build_dir() . '/bench';
my $file = $short ? "$out/results.short.json" : "$out/results.json";
my $last = $file =~ s/json\z/last.json/r;
my $dir = tempdir(CLEANUP => 1);
my $end = time() + 60 * ($ENV{XET_BENCH_MINUTES} || 20);
my %only = map { $_ => 1 } @ARGV;
my (@rows, @missing);

$| = 1;
$ENV{XET_BENCH_QUICK} = 1;
$ENV{XET_BENCH_SECONDS} //= 1;

for my $p (programs(root(), build_dir(), $dir)) {
	next if %only && !$only{$p->{name}};

	my $left = int($end - time());

	if ($left < 20) {
		push @missing, "$p->{name}: no time was left";
		next;
	}

	my $began = time();
	my $why = run($p, $left < 300 ? $left : 300);

	printf("%-20s %4.0f s%s\n", $p->{name}, time() - $began,
		$why ? ", $why" : '');
	push @missing, "$p->{name}: $why" if $why;
}

my @before = before();
my %before = map { ("$_->{program} $_->{name}" => $_) } @before;

table();
save();

exit(@rows ? 0 : 1);

# --------------------------------------------------------------------------

# Returns why the program has no results.

sub run {
	my ($p, $seconds) = @_;

	my ($json, $log) = ("$dir/$p->{name}.json", "$out/$p->{name}.out");

	local $ENV{XET_BENCH_JSON} = $json;
	local $ENV{XET_BENCH_REPEATS} = $ENV{XET_BENCH_REPEATS} // $p->{repeats};

	delete $ENV{XET_BENCH_REPEATS} unless defined $ENV{XET_BENCH_REPEATS};

	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0) {
		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>', $log) or die "$log: $!\n";
		open(STDERR, '>&', \*STDOUT);
		exec('timeout', '-k', 10, $seconds, @{ $p->{command} })
			or POSIX::_exit(127);
	}

	waitpid($pid, 0);

	push @rows, map { JSON::PP::decode_json($_) }
		split(/\n/, slurp($json, 1) // '');

	my $status = $? >> 8 || $? & 127;

	return "stopped after $seconds s" if $status == 124;
	return "failed, see $log" if $status;
	return $1 if slurp($log) =~ /^(.*): nothing measured$/m;
	return undef;
}

sub before {
	my $old = slurp($file, 1) // return;

	return @{ JSON::PP::decode_json($old)->{rows} };
}

# A ratio, or the value if there is none.

sub figure {
	my ($row) = @_;

	return $row->{ratio} // $row->{value};
}

# How much worse a row is than in the last run, in percent.

sub worse {
	my ($row, $old) = @_;

	return 0 unless $old && $row->{better};

	my ($now, $then) = map { figure($_) } $row, $old;

	return 0 if $now <= 0 || $then <= 0;

	my $by = $row->{better} eq 'less' ? $now / $then : $then / $now;

	return 100 * ($by - 1);
}

sub met {
	my ($row) = @_;

	return $row->{better} eq 'less' ? figure($row) <= $row->{goal}
		: figure($row) >= $row->{goal};
}

sub table {
	my @table = [ 'row', 'measured', 'against', 'ratio', 'goal', 'last run',
		'verdict' ];
	my (@worse, %n);

	for my $row (@rows) {
		my $old = $before{"$row->{program} $row->{name}"};
		my $worse = worse($row, $old);
		my @verdict;

		if (defined $row->{goal}) {
			push @verdict, met($row) ? 'met' : 'missed';
			$n{$verdict[0]}++;
		}

		if ($worse >= 10) {
			push @verdict, sprintf('WORSE by %.0f %%', $worse);
			push @worse, "$row->{name}: $verdict[-1]";
		}

		$row->{verdict} = join(', ', @verdict);

		push @table, [ $row->{name}, short($row->{value})
			. " $row->{unit}", $row->{against} // '',
			short($row->{ratio}), defined $row->{goal}
			? ($row->{better} eq 'less' ? '<= ' : '>= ')
			. $row->{goal} : '', $old ? short(figure($old)) : '',
			$row->{verdict} ];
	}

	print "\n";
	show(@table);
	print "\n";
	printf("goals: %d met, %d missed\n", $n{met} // 0, $n{missed} // 0);
	print "worse than in the last run: $_\n" for @worse;
	print "not measured: $_\n" for @missing;
}

sub short {
	my ($v) = @_;

	return '' unless defined $v;
	return sprintf(abs($v) >= 100 ? '%.0f' : abs($v) >= 10 ? '%.1f'
		: abs($v) >= 0.1 ? '%.2f' : '%.3g', $v);
}

sub show {
	my (@table) = @_;

	my @width;

	for my $line (@table) {
		for my $i (0 .. $#$line) {
			my $n = length($line->[$i]);

			$width[$i] = $n if $n > ($width[$i] // 0);
		}
	}

	print join('  ', map { my $i = $_; sprintf('%-*s', $width[$i],
		$table[0][$i]) } 0 .. $#width) =~ s/\s+\z//r, "\n";

	for my $line (@table[1 .. $#table]) {
		print join('  ', map { sprintf($_ == 1 || $_ == 3 || $_ == 5
			? '%*s' : '%-*s', $width[$_], $line->[$_]) }
			0 .. $#width) =~ s/\s+\z//r, "\n";
	}
}

sub save {
	return unless @rows;

	my @all = @rows;

	if (%only) {
		my ($n, %place) = (0);

		$place{$_->{name}} = $n++ for programs(root(), build_dir(), $dir);

		@all = sort { $place{$a->{program}} <=> $place{$b->{program}} }
			@rows, grep { !$only{$_->{program}}
			&& defined $place{$_->{program}} } @before;

	} else {
		rename($file, $last) if -e $file;
	}

	spew($file, JSON::PP->new()->canonical()->pretty()->encode({
		date => POSIX::strftime('%Y-%m-%d', gmtime()),
		machine => machine(), rows => \@all, missing => \@missing }));
	print "results: $file\n";

	return if $short;

	spew(root() . '/docs/bench_goals.svg', plot_goals(@all));

	my $growth = plot_growth(@all);

	spew(root() . '/docs/bench_growth.svg', $growth) if $growth;
}

sub machine {
	my $text = slurp('/proc/cpuinfo');
	my ($model) = $text =~ /^model name\s*:\s*(.*)$/m;
	my $n = () = $text =~ /^processor\s*:/mg;

	return join(', ', $model // 'unknown', "$n CPUs",
		'load ' . (slurp('/proc/loadavg') =~ s/ .*//sr));
}
