#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures "GET files" of a 1 GiB file with several buffer sizes, and the memory
# of a thousand slow clients.  For comparison, the core decodes the same file in
# memory, nginx sends the same bytes from a plain file, and a bare loop reads,
# decodes and sends them.
#
#     perl t/bench/file_get.pl
#
# Needs "make build tools cli bench-bins", curl, and 1.5 GB in /dev/shm.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw/ sleep time /;

use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ build_dir slurp spew /;

my $repeats = repeats(5);
my $gib = choose(1024, 8) << 20;
my @buffers = bench_quick() ? '1m' : qw/ 128k 256k 512k 1m /;
my ($default) = grep { $buffers[$_] eq '1m' } 0 .. $#buffers;
my $slow = choose(1000, 10);

need('curl', 'curl');
bench_start('a file of 1 GiB by plain HTTP, one worker');

my $t = bench_server(
	connections => 4096, locations => '', server => join("\n        ",
		'location /plain/ {', '    alias %%STORE%%/plain/;', '}',
		'location /api/ {', '    xet_api;', '    xet_auth off;',
		'    client_max_body_size 80m;', '}', map { (
		"location /$_/ {", '    xet_api;', "    xet_api_base /$_;",
		'    xet_auth off;', "    xet_read_buffer $_;", '}' )
		} @buffers)
);

$t->run();

my ($worker) = $t->worker_pids();
my $bodies = $t->dir() . '/bodies';

mkdir($bodies);
mkdir($t->store() . '/plain');
system(build_dir() . "/bench/bench_xorb_verify 65536 1 $bodies >/dev/null")
	== 0 or die "bench_xorb_verify\n";

my @cpu = [ 'CPU of a GET against', 'decoding', 'a plain file',
	'both together', 'a bare loop' ];
my @rates = [ 'MB/s', 'GET', 'plain file', 'decoding, 1 CPU' ];
my @sizes = [ 'CPU s a GiB, xet_read_buffer', @buffers ];
my %files;

for my $kind (qw/ stored lz4 bg4 /) {
	my ($body) = glob("$bodies/$kind.*");
	my $file = $files{$kind} = store($body);
	my (%s, %rate);

	for my $run (bench_short() .. $repeats) {
		my $decode = decode($body, $file->{size}, load_cpu());
		my $loop = bare_loop($body, $file->{size});
		my @got = map { fetch($_, $file) } "/plain/$kind",
			map { "/$_/files/$file->{hash}" } @buffers;

		next if $run == 0;

		my ($plain, @ours) = @got;
		my $ours = $ours[$default];
		my $scale = (1 << 30) / $file->{size};

		push @{ $s{decode} }, $ours->{cpu} / $decode;
		push @{ $s{plain} }, $ours->{cpu} / $plain->{cpu};
		push @{ $s{both} }, $ours->{cpu}
			/ ($decode + $plain->{cpu});
		push @{ $s{loop} }, $ours->{cpu} / $loop;
		push @{ $s{"buffer$_"} }, $ours[$_]{cpu} * $scale
			for 0 .. $#ours;
		push @{ $rate{ours} }, $file->{size} / 1e6 / $ours->{time};
		push @{ $rate{plain} }, $file->{size} / 1e6 / $plain->{time};
		push @{ $rate{decode} }, $file->{size} / 1e6 / $decode;
	}

	unlink($t->store() . "/plain/$kind");

	push @cpu, [ $kind, map { spread(@{ $s{$_} }) }
		qw/ decode plain both loop / ];
	push @rates, [ $kind, map { spread(@{ $rate{$_} }) }
		qw/ ours plain decode / ];
	push @sizes, [ $kind, map { spread(@{ $s{"buffer$_"} }) }
		0 .. $#buffers ];
	bench_row("GET of a file, $kind", $s{"buffer$default"}, 's CPU a GiB',
		'decoding + plain file', $s{both}, 1.15, 'less');
	bench_row("GET of a file, $kind, and a bare loop",
		$s{"buffer$default"}, 's CPU a GiB', 'pread, decode, write',
		$s{loop}, undef, 'less');
}

bench_heading("one client, $repeats runs, worker and threads on one CPU");
bench_table(@cpu);
print "\n";
bench_table(@rates);
print "\n";
bench_table(@sizes);

unless (bench_quick()) {
	bench_heading("$slow clients that have read some KiB and then nothing");
	bench_table([ 'xet_read_buffer', 'KiB a client', 'another GET, ms' ],
		map { slow_readers($_) } @buffers);
}

bench_end($t);

# --------------------------------------------------------------------------

# Stores a file that repeats the chunks of a xorb up to 1 GiB, and a plain file
# with the same bytes.

sub store {
	my ($path) = @_;

	my ($kind, $hash) = $path =~ m!(\w+)\.([0-9a-f]{64})\z!;
	my $bytes = slurp($path);
	my $info = xorb_info($bytes);
	my $raw = decode_xorb($bytes);
	my $times = int($gib / length($raw)) || 1;

	my $r = $t->http('POST', "/api/v1/xorbs/default/$hash", {}, \$bytes,
		timeout => 60);
	die "$r->{status} $r->{body}\n" if $r->{status} != 200;

	open(my $out, '>', $t->store() . "/plain/$kind") or die "$!\n";
	print $out $raw for 1 .. $times;
	close($out) or die "$!\n";

	return register_file($t, [ map { [ { %$info, hash => $hash,
		bytes => '' } ] } 1 .. $times ], data => 0);
}

# Returns the CPU seconds of decoding a file; with a port, of also reading it
# and sending it there.

sub decode {
	my ($body, $size, $cpu, @port) = @_;

	my $out = join(' ', 'taskset -c', $cpu, build_dir()
		. "/bench/bench_chunk_decode $body $size", @port);

	return `$out` =~ /^DECODE \d+ (\S+)/m ? $1 : die "$out: $?\n";
}

# The same work as a GET, in one thread, which sends to a process on the other
# processor.

sub bare_loop {
	my ($body, $size) = @_;

	my $listen = IO::Socket::INET->new(Listen => 1,
		LocalAddr => '127.0.0.1') or die "listen: $!\n";
	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0) {
		pin($$, load_cpu());

		my $from = $listen->accept() or POSIX::_exit(1);
		my $bytes;

		1 while sysread($from, $bytes, 1 << 20);
		POSIX::_exit(0);
	}

	my $cpu = decode($body, $size, server_cpu(), $listen->sockport());

	waitpid($pid, 0);

	return $cpu;
}

# Returns the wall seconds of one download, and the worker's CPU seconds.

sub fetch {
	my ($uri, $file) = @_;

	my $url = $t->url($uri);
	my $before = cpu_us($worker);
	my $curl = 'taskset -c ' . load_cpu() . ' curl -sS -o /dev/null'
		. " -w '%{http_code} %{size_download} %{time_total}' '$url'";
	my $got = `$curl`;
	my ($status, $size, $time) = split(/ /, $got);

	die "$uri: $got\n" if $status != 200 || $size != $file->{size};

	return { time => $time, cpu => (cpu_us($worker) - $before) / 1e6 };
}

sub slow_readers {
	my ($buffer) = @_;

	# first allocates the memory that threads and the allocator keep, so
	# that it is not counted

	fetch("/$buffer/files/$files{bg4}{hash}", $files{bg4});

	my ($before) = memory($worker);
	my @clients = map {
		$t->http_start('GET', "/$buffer/files/$files{bg4}{hash}", {},
			undef, rcvbuf => 4096, timeout => 60)
	} 1 .. $slow;

	$_->read_some(4096, 10) for @clients;
	sleep(choose(2, 0.2));

	my ($after) = memory($worker);
	my $begin = time();
	my $r = $t->get("/$buffer/files/$files{bg4}{hash}",
		{ Range => 'bytes=1000000-1004095' });
	my $ms = (time() - $begin) * 1000;

	die "$r->{status}\n" if $r->{status} != 206;

	$_->abort() for @clients;
	sleep(choose(1, 0.2));

	return [ $buffer, sprintf('%.0f', ($after - $before) / $slow),
		sprintf('%.1f', $ms) ];
}
