#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Prints what a request costs the server.  For each route: the bytes that a
# client sends, the bytes of the response, CPU milliseconds of nginx and
# PostgreSQL, statements, 8 KiB pages that PostgreSQL accessed, KiB of WAL, rows
# written, and KiB that a worker holds for each of four clients that do not read
# their responses.  t/api/amplification.t sends the same requests and limits all
# columns except the CPU time.
#
#     perl t/bench/amplify.pl

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use Test::Xet;
use Test::Xet::Amplify;

my $a = Test::Xet::Amplify->new();
my @keys = $a->list();
my ($nginx, $pg) = (0, 0);

@keys = @keys[0 .. 2] if bench_short();

printf("%-44s %4s %8s %8s %6s %6s %4s %7s %6s %5s %6s\n", 'route', '',
	'sent, B', 'got, B', 'nginx', 'pg, ms', 'n', 'pages', 'WAL', 'rows', 'held');

for my $key (@keys) {
	my $got = $a->measure($key) or next;
	$nginx += 1000 * $got->{nginx};
	$pg += 1000 * $got->{postgres};

	my $held = $got->{got} < 100_000 ? undef : $a->held($key, 4);

	printf("%-44s %4d %8d %8d %6.0f %6.0f %4d %7d %6.1f %5d %6s\n", $key,
		@$got{qw/ status sent got /}, 1000 * $got->{nginx},
		1000 * $got->{postgres}, @$got{qw/ statements buffers wal
		rows /}, defined $held ? sprintf('%.0f', $held) : '-');
}

bench_row('all routes once, most expensive requests: nginx', $nginx, 'ms CPU');
bench_row('... PostgreSQL', $pg, 'ms CPU');

$a->t()->stop();
$a->t()->pg_stop();
