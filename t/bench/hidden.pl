#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures whether the response time reveals that a file exists in a repo that
# the caller can't read: requests for this file and for a missing file alternate
# on one connection.
#
#     perl t/bench/hidden.pl
#
# Needs "make build tools cli".  Takes half a minute.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use JSON::PP ();
use Time::HiRes qw/ time /;

use Test::Xet;

my $repeats = repeats(5);
my $each = choose(2000, 100);

bench_start('hidden and missing files, one worker');

my $t = bench_server(Test::Xet::Token::repos());

$t->token_key();
$t->run();

my @hidden = map { $t->upload(mix($_, 300000),
	headers => $t->auth('write', 'b'))->{hash} } 1 .. 50;
my @missing = map { join('', map { sprintf('%02x', ($_ * 7 + 11) % 256) }
	$_ .. $_ + 31) } 1 .. 50;

my $c = $t->connect();
my $headers = $t->auth('read', 'a');

my @rows = [ 'route', 'hidden, us', 'missing, us', 'difference, us',
	'spread of one, us' ];

for my $route ('GET /api/v2/reconstructions/', 'HEAD /api/v1/files/') {
	my ($method, $path) = split(/ /, $route);
	my (%medians, @difference, @wide);

	for (bench_short() .. $repeats) {
		my %times;

		for my $i (1 .. $each) {
			for my $kind (qw/ hidden missing /) {
				my $hash = $kind eq 'hidden' ? $hidden[$i % 50]
					: $missing[$i % 50];
				my $began = time();
				my $r = $c->exchange($method, "$path$hash",
					$headers);

				push @{ $times{$kind} },
					1e6 * (time() - $began);
				die "$route: $r->{status}\n"
					if $r->{status} != 404;
			}
		}

		next unless $_;

		my %m = map { $_ => median(@{ $times{$_} }) } keys %times;
		my @sorted = sort { $a <=> $b } @{ $times{missing} };

		push @{ $medians{$_} }, $m{$_} for keys %m;
		push @difference, $m{hidden} - $m{missing};
		push @wide, $sorted[@sorted * 0.9] - $sorted[@sorted * 0.1];
	}

	push @rows, [ $route, map { spread(@$_) } @medians{qw/ hidden
		missing /}, \@difference, \@wide ];
	bench_row("hidden and missing: $route", \@difference, 'us apart',
		'the spread of one', abs(median(@difference)) / median(@wide));
}

bench_heading("medians of $each requests each, by turns");
bench_table(@rows);
print "\nspread: from the tenth to the ninetieth of a hundred requests\n";
bench_end($t);
