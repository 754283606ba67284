#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# huggingface_hub fetches a snapshot of a repo of 3,000 small files, with and
# without Xet.  Measures wall seconds, and the CPU seconds of the client, of
# nginx and of PostgreSQL, which show the server's share.  No process is pinned
# to a processor.  The server has two workers, and all files are in memory.
#
#     perl t/bench/hub_snapshot.pl [files]
#
# Needs "make build tools cli" and huggingface_hub (t/clients/setup.sh).  Takes
# five minutes.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;
use Time::HiRes qw/ time /;

use Test::Xet;
use Test::Xet::Process qw/ build_dir root spew /;
use Test::Xet::Token;

my $files = shift || choose(3000, 30);
my $repeats = repeats(5);
my $python = build_dir() . '/clients/huggingface_hub/bin/python';

need_file($python, 't/clients/setup.sh');

bench_start("snapshot_download of $files files of 1 to 7 KiB, two workers",
	pin => 0);

my $dir = tempdir(CLEANUP => 1, -d '/dev/shm' ? (DIR => '/dev/shm') : ());
my $t = bench_server(pin => 0, workers => 2,
	http => Test::Xet::Token::token_directive(), locations => bench_hub());

$t->token_key();
$t->run();

my %size = fill();

timed({}, 'upload', "$dir/in");
$t->sql('VACUUM ANALYZE');

my @table = ([ 'snapshot_download', 'seconds', 'files/s', 'client, CPU s',
	'nginx, CPU s', 'PostgreSQL, CPU s', 'of the CPU time, %',
	'of the time, %' ]);

for my $mode ([ 'with Xet', {} ],
	[ 'without', { HF_HUB_DISABLE_XET => 1 } ])
{
	my %m;

	for my $round (0 .. $repeats) {
		my $out = "$dir/out";
		my ($wall, $client, $nginx, $pg)
			= timed($mode->[1], 'download', $out);

		same($out) if $round == 0;
		system('rm', '-rf', $out);

		next if $round == 0;

		push @{ $m{wall} }, $wall;
		push @{ $m{rate} }, $files / $wall;
		push @{ $m{client} }, $client;
		push @{ $m{nginx} }, $nginx;
		push @{ $m{pg} }, $pg;
		push @{ $m{cpu} }, 100 * ($nginx + $pg)
			/ ($nginx + $pg + $client);
		push @{ $m{share} }, 100 * ($nginx + $pg) / $wall;
	}

	push @table, [ $mode->[0], map { spread(@{ $m{$_} }) }
		qw/ wall rate client nginx pg cpu share / ];
	bench_row("snapshot of small files, $mode->[0]", [ map { 1000 * $_
		/ $files } @{ $m{wall} } ], 'ms a file', 'all CPU', [ map {
		$_ / 100 } @{ $m{cpu} } ], undef, 'less');
}

my ($alone) = (timed({}, 'none', ''))[1];

print "\n";
bench_table(@table);
printf("\nof the client's CPU time, %.2f s are the start of Python; \"of the"
	. " time\" is\nCPU time of the server for a second that the client"
	. " waits\n", $alone);

bench_end($t);

# --------------------------------------------------------------------------

# Commits the files, in 30 folders.  Returns { name => size }.

sub fill {
	my %made;

	for my $n (1 .. $files) {
		my $name = sprintf('d%02d/f%05d.txt', $n % 30, $n);
		my $size = 1024 + $n * 7919 % 6144;

		system('mkdir', '-p', sprintf('%s/in/d%02d', $dir, $n % 30))
			if $n <= 30;
		spew("$dir/in/$name", random_bytes($n, $size));
		$made{$name} = $size;
	}

	return %made;
}

sub same {
	my ($out) = @_;

	my @bad = grep { ($size{$_} // -1) != (-s "$out/$_" // -2) }
		sort keys %size;

	die scalar(@bad), " files are not there: $bad[0]\n" if @bad;
	system("cd '$dir/in' && find . -type f -exec cmp {} '$out/{}' \\;") == 0
		or die "other bytes came back\n";
}

# Runs a client with a new home folder, so that its caches are empty.  Returns
# seconds: wall time, and the CPU times of the client, of nginx and of
# PostgreSQL.

sub timed {
	my ($env, $verb, $folder) = @_;

	my $home = tempdir(CLEANUP => 1, DIR => $dir);

	local %ENV = (%ENV, HOME => $home, HF_HOME => $home,
		HF_XET_CACHE => "$home/xet", HF_ENDPOINT => $t->url(''),
		HF_TOKEN => 'hf_test', HF_HUB_DISABLE_TELEMETRY => 1,
		HF_HUB_DISABLE_PROGRESS_BARS => 1,
		HF_HUB_DISABLE_UPDATE_CHECK => 1, %$env);

	my @workers = $t->worker_pids();
	my $nginx = cpu_pids(@workers);
	my $pg = cpu_pids(pg_pids($t));
	my $own = (times)[2] + (times)[3];
	my $wall = time();

	system($python, root() . '/t/clients/hub_snapshot.py', $verb, $folder,
		'me/m') == 0 or die "$verb has failed\n";

	$wall = time() - $wall;
	$own = (times)[2] + (times)[3] - $own;

	my @cpu = (cpu_pids(@workers) - $nginx, cpu_pids(pg_pids($t)) - $pg);

	system('rm', '-rf', $home);

	return ($wall, $own, map { $_ / 1e6 } @cpu);
}
