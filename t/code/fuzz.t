#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Every fuzz target runs over its corpus, without libFuzzer: inputs that once
# failed are tested again, and targets that no longer build are noticed.

###############################################################################

use warnings;
use strict;

use Test::More;

use Cwd qw/abs_path/;
use File::Basename qw/dirname/;

###############################################################################

chdir(abs_path(dirname(__FILE__)) . '/../..') or die "chdir: $!\n";

my $build = $ENV{XET_BUILD} // 'build';

$ENV{UBSAN_OPTIONS} //= 'print_stacktrace=1';

my @sources = glob('t/fuzz/fuzz_*.c');

die "no fuzz targets\n" unless @sources;
plan(tests => 2 * @sources);

for my $source (@sources) {
	my ($noun) = $source =~ m!/fuzz_(.*)\.c$!;
	my @files = grep { -f } glob("t/fuzz/corpus/$noun/*");

	cmp_ok(scalar @files, '>', 0, "$noun corpus");

	my ($status, @out) = replay("$build/fuzz-replay/fuzz_$noun",
		"t/fuzz/corpus/$noun");

	is(join(' ', $status, $out[-1] // ''),
		'0 ' . scalar(@files) . ' files', "$noun replay")
		or diag(join("\n", @out));
}

###############################################################################

sub replay {
	my (@command) = @_;

	my $pid = open(my $out, '-|') // die "fork: $!\n";

	if ($pid == 0) {
		open(STDERR, '>&', \*STDOUT);
		alarm(300);
		exec { $command[0] } @command or die "exec $command[0]: $!\n";
	}

	chomp(my @lines = <$out>);
	close($out);

	return ($?, @lines);
}

###############################################################################
