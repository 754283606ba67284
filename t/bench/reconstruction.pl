#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures "GET v2/reconstructions" of a file of 20 terms in 20 xorbs, for the
# first time and again from xet_plan_cache, compared with its parts: the same
# statement, sent by a minimal pipelined client to the same PostgreSQL, and
# "return 200" by the same nginx with a body of the same size.  nginx and
# PostgreSQL share one processor and the load has the other one, so the time of
# a request is the sum of its parts.
#
#     perl t/bench/reconstruction.pl
#
# Needs "make build tools cli bench-bins", a C compiler and libpq.  Takes two
# minutes.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;

use Test::Xet;
use Test::Xet::Process qw/ build_dir module_table root slurp /;

my $repeats = repeats(5);
my $seconds = seconds(2);
my $files = choose(10000, 100);

need('wrk', 'wrk');
bench_start('reconstructions of 20 terms, one worker');

my $dir = tempdir(CLEANUP => 1);
my $loop = "$dir/pg_pipeline";
my $source = root() . '/t/bench/pg_pipeline.c';

system("cc -std=c99 -D_GNU_SOURCE -O2 -I\$(pg_config --includedir)"
	. " -o $loop $source -lpq") == 0 or die "cannot compile $source\n";

# the SQL of the statement that the module prepares

my ($statement) = map { $_->{sql} } grep { $_->{name} eq 'file_terms_all' }
	@{ module_table('statements') } or die "no statement\n";

my $t = server(9000);
my ($body, $hashes) = bench_files($t, $files, $dir);

# now that the size of a response is known, "return 200" gets the same size

$t->write_conf(undef, server => constant(length($body)));
$t->reload();

my ($worker) = $t->worker_pids();

# the same files, from the cache of plans

my $again = bench_server(beside => $t, store => 'shared',
	http => 'xet_plan_cache zone=plans:256m valid=1h;');

$again->run();

my ($cached) = $again->worker_pids();
my %m;

for (bench_short() .. $repeats) {
	for my $depth (32, 1) {
		pin($_, server_cpu()) for pg_pids($t);

		my $r = wrk(url => $t->url('/'), c => $depth, s => $seconds,
			script => files_script($hashes),
			pids => [ $worker, [ pg_pids($t) ] ]);
		my $c = wrk(url => $t->url('/200'), c => $depth,
			s => $seconds, pids => [ $worker ]);
		my $q = bare($depth);
		my $k = wrk(url => $again->url('/'), c => $depth,
			s => $seconds, script => files_script($hashes),
			pids => [ $cached ]);

		next if $_ == 0;

		my $limit = 1 / (1 / $c->{rps} + 1 / $q->{rps});
		my $into = $m{$depth} ||= {};

		push @{ $into->{rps} }, $r->{rps};
		push @{ $into->{const} }, $c->{rps};
		push @{ $into->{bare} }, $q->{rps};
		push @{ $into->{limit} }, $limit;
		push @{ $into->{by_limit} }, $r->{rps} / $limit;
		push @{ $into->{by_const} }, $r->{rps} / $c->{rps};
		push @{ $into->{by_bare} }, $r->{rps} / $q->{rps};
		push @{ $into->{again} }, $k->{cpu}[0];
		push @{ $into->{again_by_const} }, $k->{rps} / $c->{rps};

		push @{ $into->{"r_$_"} }, $r->{$_} for qw/ p50 p99 /;
		push @{ $into->{"c_$_"} }, $c->{$_} for qw/ p50 p99 /;
		push @{ $into->{"q_$_"} }, $q->{$_} for qw/ p50 p99 /;

		push @{ $into->{nginx} }, $r->{cpu}[0];
		push @{ $into->{pg} }, $r->{cpu}[1];
		push @{ $into->{const_cpu} }, $c->{cpu}[0];
		push @{ $into->{client} }, $q->{client};
		push @{ $into->{server} }, $q->{server};

		next if $depth == 1;

		my $plan = plan();

		push @{ $into->{plan} }, $plan;
		push @{ $into->{rest} }, $r->{cpu}[0] - $c->{cpu}[0]
			- $q->{client} - $plan;
	}
}

report();

$again->stop();
bench_end($t);

# --------------------------------------------------------------------------

sub server {
	my ($size) = @_;

	my $server = bench_server(server => constant($size));

	$server->run();

	return $server;
}

# nginx accepts no configuration word of more than 4 KiB.

sub constant {
	my ($size) = @_;

	my @lines;

	for (my $n = 0; $size > 0; $n++) {
		my $part = $size > 3000 ? 3000 : $size;

		push @lines, "    set \$part$n \"" . 'x' x $part . '";';
		$size -= $part;
	}

	return join("\n        ", '',
		'location = /200 {',
		'    default_type application/json;', @lines,
		'    return 200 "' . join('', map { "\$part$_" } 0 .. $#lines)
			. '";',
		'}');
}

sub bare {
	my ($depth, @more) = @_;

	my $cpu = load_cpu();
	my ($conninfo, $sql) = map { s/'/'\\''/gr } $t->conninfo(), $statement;
	my $out = `taskset -c $cpu $loop '$conninfo' '$sql' $depth $seconds \\
		@more`;

	my @v = $out =~ m!^([\d.]+)\ queries/s,\ p50\ ([\d.]+),\ p99\ ([\d.]+),
		.*client\ ([\d.]+),\ server\ ([\d.]+)\ .*\ 1040\ bytes!x;

	die "pg_pipeline: $out\n" unless @v;

	return { rps => $v[0], p50 => $v[1], p99 => $v[2], client => $v[3],
		server => $v[4] };
}

# Returns the microseconds that the core needs for a plan with 20 xorbs.

sub plan {
	my $cpu = server_cpu();
	my $program = build_dir() . '/bench/bench_plan';
	my $out = `taskset -c $cpu $program 0.03`;

	return $1 if $out =~ /^20 xorbs, v2\s+\d+\s+([\d.]+)/m;
	die "$program: $out\n";
}

sub report {
	my ($m, $one) = @m{32, 1};
	my $size = length($body);
	my $line = sub { my $h = shift; map { spread(@{ $h->{$_} }) } @_ };

	for ([ 32, $m ], [ 1, $one ]) {
		my ($n, $v) = @$_;

		bench_row("reconstruction, 20 terms, $n at once", $v->{nginx},
			'us nginx', 'return 200 + statement, requests/s',
			$v->{by_limit}, 0.75, 'more');
		bench_row("... again, from xet_plan_cache, $n at once",
			$v->{again}, 'us nginx', 'return 200, requests/s',
			$v->{again_by_const}, 0.80, 'more');
	}

	bench_heading("$files files, answers of $size bytes, $repeats runs of"
		. " $seconds s");
	bench_note('statement', $statement);
	print "\n";
	bench_table(
		[ 'requests/s against', 'return 200', 'bare statement',
			'both together' ],
		[ '32 in flight', $line->($m,
			qw/ by_const by_bare by_limit /) ],
		[ '1 in flight', $line->($one,
			qw/ by_const by_bare by_limit /) ],
		map({ [ "$_->[0] in flight, from the cache",
			$line->($_->[1], 'again_by_const'), '', '' ] }
			[ 32, $m ], [ 1, $one ]));
	print "\n";
	bench_table(
		[ 'a second', 'reconstructions', 'return 200',
			'bare statement', 'both together' ],
		[ '32 in flight', $line->($m, qw/ rps const bare limit /) ],
		[ '1 in flight', $line->($one, qw/ rps const bare limit /) ]);
	print "\n";
	bench_table(
		[ 'us, 1 in flight', 'reconstruction', 'return 200',
			'bare statement' ],
		[ 'p50', $line->($one, qw/ r_p50 c_p50 q_p50 /) ],
		[ 'p99', $line->($one, qw/ r_p99 c_p99 q_p99 /) ]);
	print "\n";
	bench_table(
		[ 'CPU us a request, 32 in flight', '' ],
		[ 'nginx', $line->($m, 'nginx') ],
		[ '  of it "return 200"', $line->($m, 'const_cpu') ],
		[ 'nginx, from the cache', $line->($m, 'again') ],
		[ '  of it libpq, as in the bare client',
			$line->($m, 'client') ],
		[ '  of it plan, JSON, signatures (bench_plan)',
			$line->($m, 'plan') ],
		[ '  the rest', $line->($m, 'rest') ],
		[ 'PostgreSQL', $line->($m, 'pg') ],
		[ '  the bare statement', $line->($m, 'server') ]);

	my $batch = bare(32, 32);

	printf("\none sync for 32 statements: %.0f a second, client %.1f,"
		. " server %.1f us\n", @$batch{qw/ rps client server /});
}
