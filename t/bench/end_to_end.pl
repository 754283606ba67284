#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The real hf_xet uploads and downloads a 300 MiB file.  Measures MB/s, and the
# CPU seconds of the client, of nginx and of PostgreSQL, with the store in
# memory and on disk.  There are two workers; no process is pinned to a
# processor.
#
#     perl t/bench/end_to_end.pl
#
# Needs "make build tools cli" and hf_xet (t/clients/setup.sh).  Takes two
# minutes.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;
use Time::HiRes qw/ time /;

use Test::Xet;
use Test::Xet::Real;

my $repeats = repeats(5);
my $size = choose(300, 4) << 20;

need_file(Test::Xet::Real::build() . '/venv/bin/python',
	't/clients/setup.sh');
bench_start('hf_xet, a file of 300 MiB, two workers', pin => 0);
bench_note('client', 'hf_xet ' . hf_xet({}, 'version')->{version});

# the client's own files are in memory

my $dir = tempdir(CLEANUP => 1, -d '/dev/shm' ? (DIR => '/dev/shm') : ());
my $file = make_mix("$dir/mix", 1, $size);
my $sum = sha256_file($file);

my (@speed, @cpu, @share);

push @speed, [ 'MB/s', 'upload', 'download', 'cores busy, up',
	'cores busy, down' ];
push @cpu, [ 'CPU seconds', 'client', 'nginx', 'PostgreSQL' ];
push @share, [ 'CPU of the server for 1 of the client', 'upload',
	'download' ];

for my $where (bench_short() || bench_quick() ? 'tmpfs' : qw/ tmpfs disk /) {
	my %m = measure($where);
	my ($up, $down) = @m{qw/ up down /};

	push @share, [ "store on $where", spread(@{ $up->{share} }),
		spread(@{ $down->{share} }) ];
	for ([ 'upload', $up ], [ 'download', $down ]) {
		my ($what, $v) = @$_;

		bench_row("hf_xet, $what, $where", $v->{rate}, 'MB/s',
			'CPU of the client', $v->{share}, undef, 'less');
	}

	push @speed, [ "store on $where", spread(@{ $up->{rate} }),
		spread(@{ $down->{rate} }), spread(@{ $up->{cores} }),
		spread(@{ $down->{cores} }) ];
	push @cpu, [ "$where: upload", map { spread(@$_) }
			@$up{qw/ client nginx pg /} ],
		[ "$where: download", map { spread(@$_) }
			@$down{qw/ client nginx pg /} ];
}

my $alone = (timed(undef, 'version'))[1];

bench_heading("each of $repeats uploads is to an empty store");
bench_table(@share);
print "\n";
bench_table(@speed);
print "\n";
bench_table(@cpu);
printf("\nof the client's, %.2f s are the start of Python\n", $alone);

# --------------------------------------------------------------------------

sub measure {
	my ($where) = @_;

	my $t = bench_server(store => $where, pin => 0, workers => 2);
	my %m;

	$t->run();

	for (0 .. $repeats) {
		my $out = "$dir/out";

		bench_reset($t);

		my ($wall, $client, $nginx, $pg, $answer) = timed($t, 'upload',
			'session', $t->url('/api'), $file);
		note(\%m, 'up', $wall, $client, $nginx, $pg) if $_;

		my $hash = $answer->[0]{hash};

		($wall, $client, $nginx, $pg) = timed($t, 'download',
			'session', $t->url('/api'), $hash, $size, $out);
		note(\%m, 'down', $wall, $client, $nginx, $pg) if $_;

		die "other bytes came back\n" if !$_
			&& sha256_file($out) ne $sum;
		unlink($out);
	}

	bench_end($t);

	return %m;
}

sub note {
	my ($m, $what, $wall, $client, $nginx, $pg) = @_;

	push @{ $m->{$what}{rate} }, $size / 1e6 / $wall;
	push @{ $m->{$what}{client} }, $client;
	push @{ $m->{$what}{nginx} }, $nginx;
	push @{ $m->{$what}{pg} }, $pg;
	push @{ $m->{$what}{share} }, ($nginx + $pg) / $client;
	push @{ $m->{$what}{cores} }, ($client + $nginx + $pg) / $wall;
}

# Runs a client.  Returns seconds: wall time, and the CPU times of the client,
# of nginx and of PostgreSQL.

sub timed {
	my ($t, @args) = @_;

	my @workers = $t ? $t->worker_pids() : ();
	my $nginx = cpu_pids(@workers);
	my $pg = $t ? cpu_pids(pg_pids($t)) : 0;
	my $own = (times)[2] + (times)[3];
	my $wall = time();

	my $answer = hf_xet({}, @args);

	$wall = time() - $wall;
	$own = (times)[2] + (times)[3] - $own;

	die "hf_xet @args has failed\n" unless $answer;

	return ($wall, $own, (cpu_pids(@workers) - $nginx) / 1e6,
		$t ? (cpu_pids(pg_pids($t)) - $pg) / 1e6 : 0, $answer);
}
