#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The unit tests of the core: one subtest for each program of "make unit".

###############################################################################

use warnings;
use strict;

use Test::More;

use Cwd qw/abs_path/;
use File::Basename qw/dirname/;

###############################################################################

# A program that hangs is stopped by its own timeout, not by the timeout of its
# caller.

use constant TIMEOUT => 300;

chdir(abs_path(dirname(__FILE__)) . '/../..') or die "chdir: $!\n";

my $build = $ENV{XET_BUILD} // 'build';

$ENV{UBSAN_OPTIONS} //= 'print_stacktrace=1';

my @sources = glob('t/unit/*/test_*.c');

die "no unit tests\n" unless @sources;
plan(tests => scalar @sources);

for my $source (@sources) {
	my ($name) = $source =~ m!^t/unit/(.*)\.c$!;

	subtest($name => sub { program("$build/unit/$name") });
}

###############################################################################

sub program {
	my ($path) = @_;

	if (!-x $path) {
		fail("$path is built");
		done_testing();
		return;
	}

	my $pid = open(my $out, '-|') // die "fork: $!\n";

	if ($pid == 0) {
		open(STDERR, '>&', \*STDOUT);
		open(STDIN, '<', '/dev/null');

		# an alarm survives exec, unlike signal handlers
		alarm(TIMEOUT);

		exec { $path } $path or die "exec $path: $!\n";
	}

	my ($n, $planned) = (0);

	while (my $line = <$out>) {
		chomp $line;

		if ($line =~ /^1\.\.(\d+)/) {
			$planned = $1;

		} elsif ($line =~ /^(not )?ok(?: \d+)?(?: - )?\s*(.*)/) {
			$n++;
			result($1, $2);

		} else {
			diag($line =~ s/^# ?//r);
		}
	}

	close($out);

	is($?, 0, 'exit status');
	is($n, $planned, 'results as planned');

	done_testing();
}

sub result {
	my ($not, $text) = @_;

	if ($text =~ /^(.*?)#\s*skip\S*\s*(.*)/i) {
		SKIP: {
			skip($2 || $1, 1);
		}

		return;
	}

	ok(!$not, $text =~ s/#/\\#/gr);
}

###############################################################################
