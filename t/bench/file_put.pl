#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures a PUT of a 1 GiB file: CPU time, throughput, memory; and a second PUT
# of the same file, which is then in the store.  The CPU time is compared with
# the core, which does the same work in memory (chunking, hashing, SHA-256,
# compression into xorbs), and with nginx's dav module, which stores the file.
#
# Throughput is also measured with two processors, and calculated for four: then
# a PUT takes as long as its longest serial part (SHA-256, or finding the ends of
# chunks), or a quarter of all CPU time if that is longer, of nginx, PostgreSQL
# and curl.  The processors are assumed to be as busy as the two were.
#
#     perl t/bench/file_put.pl [MiB]
#
# Needs "make build tools cli bench-bins" and curl.  Takes three minutes, and 3
# GiB of memory for the store and the file.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;
use JSON::PP ();
use List::Util qw/ max /;
use Time::HiRes qw/ time /;

use Test::Xet::Process qw/ build_dir /;

my $mib = $ARGV[0] || choose(1024, 8);
my $size = $mib << 20;
my $buffer = 262144;
my $repeats = repeats(5);
my $core = build_dir() . '/bench/bench_ingest';
my $make = build_dir() . '/tools/xet_make';
my @kinds = ([ 'random', 'random' ], [ 'mix', 'mix of tensors and text' ]);

die "no $core: run make bench-bins first\n" unless -x $core;

bench_start("PUT of a file of $mib MiB, one worker");

my $dir = tempdir('xfiles-XXXXXX', CLEANUP => 1,
	-d '/dev/shm' ? (DIR => '/dev/shm') : (TMPDIR => 1));

my $t = bench_dav_server(0, store => 'tmpfs');
my ($worker) = $t->worker_pids();
my (@by, @cpu, @rate, @sha, @parts, @memory);

push @by, [ 'CPU of a PUT against', 'the core', 'dav PUT', 'both together',
	'again, against the core without compression' ];
push @cpu, [ 'CPU ms', 'PUT', 'again', 'core', 'dav PUT', 'PostgreSQL' ];
push @rate, [ 'one client, MB/s', 'PUT', 'again', 'dav PUT',
	'PUT, two processors', 'four, calculated' ];
push @sha, [ 'of the MB/s of SHA-256', 'one processor', 'two',
	'four, calculated' ];
push @parts, [ 'the core, CPU ms', 'chunk', 'with hashes', 'SHA-256',
	'chunk and compress', 'all' ];
push @memory, [ 'worker, MiB', 'resident before', 'at most' ];

for (@kinds) {
	my ($kind, $name) = @$_;
	my $file = "$dir/$kind";

	system("$make $kind 1 $size > $file") == 0 or die "$make: $?\n";

	my $m = measure($kind, $file);

	push @by, [ $name, map { spread(@{ $m->{$_} }) }
		qw/ by_core by_dav by_both again_by / ];
	push @cpu, [ $name, map { spread(@{ $m->{$_} }) }
		qw/ cpu again core dav_cpu pg / ];
	push @rate, [ $name, map { spread(@{ $m->{$_} }) }
		qw/ rate again_rate dav_rate two_rate four_rate / ];
	push @sha, [ $name, map { spread(@{ $m->{$_} }) }
		qw/ by_sha256 two four / ];
	push @parts, [ $name, map { spread(@{ $m->{$_} }) }
		qw/ chunk chunk+hash sha256 chunk+compress core / ];
	push @memory, [ $name, map { sprintf('%.1f', $_ / 1024) }
		@{ $m->{memory} } ];
	bench_row("PUT of a file, $name", $m->{cpu}, 'ms CPU', 'core + dav PUT',
		$m->{by_both}, undef, 'less');
	bench_row("PUT of a file, $name: rate", $m->{rate}, 'MB/s',
		'SHA-256 alone', $m->{by_sha256}, undef, 'more');
	bench_row("PUT of a file, $name: two processors", $m->{two_rate},
		'MB/s', 'SHA-256 alone', $m->{two}, undef, 'more');
	bench_row("PUT of a file, $name: four, calculated", $m->{four_rate},
		'MB/s', 'SHA-256 alone', $m->{four}, 0.85, 'more');

	unlink($file);
}

bench_heading("store on tmpfs, $repeats repetitions");
bench_table(@by);
print "\n";
bench_table(@cpu);
print "\n";
bench_table(@parts);
print "\n";
bench_table(@rate);
print "\n";
bench_table(@sha);
print "\n";
bench_table(@memory);

bench_end($t);

unless (bench_quick()) {
	$t = bench_dav_server(0, store => 'disk');
	($worker) = $t->worker_pids();

	on_disk();

	bench_end($t);
}

# --------------------------------------------------------------------------

# Returns the CPU milliseconds of the worker and of PostgreSQL, and the wall
# seconds.

sub put {
	my ($uri, $file, $json) = @_;

	my @pg = pg_pids($t);
	my $cpu = cpu_us($worker);
	my $pg = cpu_pids(@pg);
	my $wall = time();

	my $out = `curl -sS -T $file @{[ $t->url($uri) ]}`;

	$wall = time() - $wall;
	$cpu = cpu_us($worker) - $cpu;
	$pg = cpu_pids(@pg) - $pg;

	die "curl: $? $out\n" if $? || $json && $out !~ /"hash"/;

	return ($cpu / 1000, $wall, $pg / 1000,
		$json ? JSON::PP::decode_json($out) : undef);
}

sub core {
	my ($file) = @_;

	my $cpu = server_cpu();
	my %ms = map { /^(\S+)\s+([\d.]+) ms/ ? ($1 => $2) : () }
		`taskset -c $cpu $core $buffer $file`;

	return \%ms;
}

# Each repetition measures all cases, so that other load of the machine affects
# all cases.

sub measure {
	my ($kind, $file) = @_;

	my %m;

	for (bench_short() .. $repeats) {
		bench_reset($t);
		memory_reset($worker);

		my ($before) = memory($worker);
		my ($cpu, $wall, $pg) = put('/api/v1/files', $file, 1);
		my (undef, $most) = memory($worker);
		my ($again, $again_wall, undef, $got) =
			put('/api/v1/files', $file, 1);

		die "stored again: $got->{new_bytes}\n"
			if $got->{new_bytes} > $size / choose(50, 2);

		bench_reset($t);

		my ($dav, $dav_wall) = put("/dav/$kind", $file);
		unlink($t->store() . "/dav/$kind");

		my $c = core($file);
		my $two = two($file, $c);

		next if $_ == 0;

		push @{ $m{$_} }, $two->{$_} for keys %$two;
		push @{ $m{$_} }, $c->{$_} for keys %$c;
		push @{ $m{core} }, $c->{all};
		push @{ $m{cpu} }, $cpu;
		push @{ $m{again} }, $again;
		push @{ $m{dav_cpu} }, $dav;
		push @{ $m{pg} }, $pg;
		push @{ $m{by_core} }, $cpu / $c->{all};
		push @{ $m{by_dav} }, $cpu / $dav;
		push @{ $m{by_both} }, $cpu / ($c->{all} + $dav);
		push @{ $m{again_by} }, $again
			/ ($c->{'chunk+hash'} + $c->{sha256});
		push @{ $m{rate} }, $size / 1e6 / $wall;
		push @{ $m{by_sha256} }, $c->{sha256} / 1000 / $wall;
		push @{ $m{again_rate} }, $size / 1e6 / $again_wall;
		push @{ $m{dav_rate} }, $size / 1e6 / $dav_wall;
		$m{memory} = [ $before, $most ];
	}

	return \%m;
}

# Measures a PUT with two processors; calculates it for four.

sub two {
	my ($file, $c) = @_;

	pin($worker, join(',', server_cpu(), load_cpu()));
	bench_reset($t);

	my $curl = (times)[2] + (times)[3];
	my ($cpu, $wall, $pg) = put('/api/v1/files', $file, 1);

	$curl = (times)[2] + (times)[3] - $curl;
	pin($worker, server_cpu());

	my $all = ($cpu + $pg) / 1000 + $curl;
	my $busy = $all / 2 / $wall;
	my $four = max($c->{sha256} / 1000, $c->{chunk} / 1000, $all / 4)
		/ ($busy > 1 ? 1 : $busy);

	return { two_rate => $size / 1e6 / $wall,
		four_rate => $size / 1e6 / $four,
		two => $c->{sha256} / 1000 / $wall,
		four => $c->{sha256} / 1000 / $four };
}

# A throttled disk would dominate this result, so the cost of writing the same
# bytes without the module is printed, too.

sub on_disk {
	my (@rate, @plain);
	my $file = "$dir/random";
	my $copy = $t->store() . '/plain';

	system("$make random 1 $size > $file") == 0 or die "$make: $?\n";

	for (1 .. choose(3, 1)) {
		bench_reset($t);

		my (undef, $wall) = put('/api/v1/files', $file, 1);
		push @rate, $size / 1e6 / $wall;

		my $start = time();
		system('dd', "if=$file", "of=$copy", 'bs=256k',
			'conv=fdatasync', 'status=none') == 0 or die "dd: $?\n";
		push @plain, $size / 1e6 / (time() - $start);

		unlink($copy);
	}

	bench_heading('store on disk, random');
	bench_table([ 'MB/s', 'PUT (durable)', 'dd, fdatasync' ],
		[ 'one after another', spread(@rate), spread(@plain) ]);
}
