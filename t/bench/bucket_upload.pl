#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures the CPU time that all threads of the server need to upload a 64 MiB
# xorb to a bucket.  The result is compared with the sum of two parts: the core
# verifies the same bytes in memory, and a minimal client sends them to the same
# store by PUT.  This client is t/tools/xet_s3.c, which signs the bytes and uses
# one connection.  curl is measured, too; it does not sign the bytes and works
# only with s3_sink.pl.  The store is s3_sink.pl, or a server of Test::Xet::S3.
#
#     XET_BENCH_OLD=OLD.so perl t/bench/bucket_upload.pl [STORE]
#
# With OLD.so, an older module is measured in alternation with this one.
#
# Temporary files are in the folder of the test, or in XET_BENCH_TEMP: tmpfs
# pages cost more CPU time than ext4 pages.
#
# Needs "make build tools cli bench-bins".  Takes a minute.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;
use Sink;

use File::Temp qw/ tempdir /;
use IO::Handle;
use IO::Socket::INET;
use IPC::Open2;
use Time::HiRes qw/ time /;

use Test::Xet;
use Test::Xet::Process qw/ build_dir slurp /;
use Test::Xet::S3;

my @kinds = ([ 'stored', 'random, stored' ], [ 'lz4', 'text, LZ4' ],
	[ 'bg4', 'bf16, BG4+LZ4' ]);
my $verify = build_dir() . '/bench/bench_xorb_verify';
my $client = build_dir() . '/tools/xet_s3';
my $part = 16 << 20;
my $buffer = 262144;
my $repeats = repeats(7);
my $name = $ARGV[0] // 'sink';
my $sink = $name eq 'sink';

for ($verify, $client) {
	die "no $_: run make tools bench-bins first\n" unless -x;
}

bench_start('upload to a bucket: xorbs of 64 MiB, one worker');
bench_note('store', $name);
bench_note('temp', $ENV{XET_BENCH_TEMP} // 'the folder of the test');

my $dir = tempdir('xbodies-XXXXXX', CLEANUP => 1,
	-d '/dev/shm' ? (DIR => '/dev/shm') : (TMPDIR => 1));

system("$verify $buffer 1 $dir > /dev/null") == 0 or die "$verify: $?\n";

my %bodies;

for my $file (glob("$dir/*.*")) {
	my ($kind, $hash) = $file =~ m!/(\w+)\.(\w+)$! or die $file;

	$bodies{$kind} = { file => $file, data => \slurp($file),
		uri => "/api/v1/xorbs/default/$hash" };
}

chmod(0755, $dir);

my $s3 = $sink ? Sink->new(dir => "$dir/s3")
	: Test::Xet::S3->new(server => $name, dir => "$dir/s3");
my %t = (upload => server());

if ($ENV{XET_BENCH_OLD}) {
	local $ENV{XET_TEST_MODULE} = $ENV{XET_BENCH_OLD};

	$t{before} = server(beside => $t{upload},
		store => 'disk');
}

pin($_, load_cpu()) for $s3->processes();

my @whole = bare(64 << 20);
my @parts = bare($part);
my $puts = 0;

my @ratios = [ 'CPU against', 'verify + PUT', 'verify + PUT in parts',
	'verify + curl', $t{before} ? 'before: verify + PUT' : () ];
my @rows = [ 'CPU ms a xorb', 'upload', 'verify', 'PUT', 'PUT in parts',
	'curl', $t{before} ? 'upload before' : () ];
my @walls = [ 'MB/s', 'upload' ];

for (@kinds) {
	my ($kind, $what) = @$_;
	my %m;

	for (bench_short() .. $repeats) {
		my %one = (verify => verify($kind), put => put(\@whole, $kind),
			parts => put(\@parts, $kind),
			$sink ? (curl => curl($kind)) : ());

		my $wall;

		($one{before}) = upload($t{before}, $kind) if $t{before};
		($one{upload}, $wall) = upload($t{upload}, $kind);
		next if $_ == 0;

		push @{ $m{$_} }, $one{$_} for keys %one;
		push @{ $m{"by_$_"} }, $one{upload}
			/ ($one{verify} + $one{$_})
			for grep { $one{$_} } qw/ put parts curl /;
		push @{ $m{by_before} }, $one{before}
			/ ($one{verify} + $one{put}) if $t{before};
		push @{ $m{rate} }, length(${ $bodies{$kind}{data} }) / 1e3
			/ $wall;
	}

	my @before = $t{before} ? 'before' : ();

	push @ratios, [ $what, map { spread(@{ $m{"by_$_"} || [] }) }
		qw/ put parts curl /, @before ];
	push @rows, [ $what, map { spread(@{ $m{$_} || [] }) }
		qw/ upload verify put parts curl /, @before ];
	push @walls, [ $what, spread(@{ $m{rate} }) ];
	bench_row("upload to a bucket, $what", $m{upload}, 'ms CPU',
		'verify + PUT', $m{by_put}, undef, 'less');
}

bench_heading("$repeats repetitions");
bench_table(@ratios);
print "\n";
bench_table(@rows);
print "\n";
bench_table(@walls);

for (\@whole, \@parts) {
	close($_->[1]);
	waitpid($_->[0], 0);
}

bench_end($_) for grep { $_ } @t{qw/ before upload /};
$s3->stop();

# --------------------------------------------------------------------------

sub server {
	my (%o) = @_;

	my $t = bench_server($o{beside} ? () : (s3 => $s3), %o,
		directives => { xet_xorb_max_size => '80m' },
		s3_params => 'timeout=60s connections=4 part=16m');

	move_temp($t, $ENV{XET_BENCH_TEMP})
		if $ENV{XET_BENCH_TEMP} && !$o{beside};
	$t->run();
	pin($_, load_cpu()) for $o{beside} ? () : pg_pids($t);

	return $t;
}

# Moves the server's temporary files to another folder.

sub move_temp {
	my ($t, $folder) = @_;

	my $temp = $t->dir() . '/xet_temp';

	my $made = tempdir('xtemp-XXXXXX', DIR => $folder, CLEANUP => 1);

	chmod(0777, $made);
	symlink($made, $temp) or die "$temp: $!\n";
}

# Returns the CPU and wall milliseconds of one upload.

sub upload {
	my ($t, $kind) = @_;

	my $data = $bodies{$kind}{data};
	my ($worker) = $t->worker_pids();

	$t{upload}->sql('TRUNCATE xet.xorbs, xet.files, xet.staged CASCADE');

	my $cpu = cpu_us($worker);
	my $wall = time();
	my $c = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
		PeerPort => $t->port()) or die "connect: $@\n";

	syswrite($c, "POST $bodies{$kind}{uri} HTTP/1.1\r\nHost: localhost\r\n"
		. "Connection: close\r\nContent-Length: " . length($$data)
		. "\r\n\r\n");

	for (my $sent = 0; $sent < length($$data);) {
		$sent += syswrite($c, $$data, 1 << 20, $sent)
			// die "cannot send: $!\n";
	}

	sysread($c, my $in, 65536);
	$in =~ m!^HTTP/1.1 200 ! or die "refused: $in\n";

	$wall = time() - $wall;

	return ((cpu_us($worker) - $cpu) / 1000, $wall * 1000);
}

sub verify {
	my ($kind) = @_;

	my $cpu = server_cpu();
	my $out = `taskset -c $cpu $verify $buffer 3 $bodies{$kind}{file}`;

	return (split(' ', (split(/\n/, $out))[-1]))[5];
}

# Starts xet_s3 with a given part size; it reads commands from a pipe.

sub bare {
	my ($size) = @_;

	my $pid = open2(my $out, my $in, 'taskset', '-c', server_cpu(),
		$client, 'url=' . $s3->url(), 'endpoint=' . $s3->endpoint(),
		'region=' . $s3->region(), 'credentials='
		. $s3->credentials(), 'timeout=60000', 'connections=1',
		"part=$size", '--');

	$in->autoflush(1);

	return ($pid, $in, $out);
}

sub put {
	my ($bare, $kind) = @_;

	my ($pid, $in, $out) = @$bare;
	my $cpu = cpu_us($pid);

	print $in 'upload bare', ++$puts, " $bodies{$kind}{file}\n";

	while (my $line = <$out>) {
		last if $line =~ /^OK/;
		die "PUT: $line" unless $line =~ /^begun/;
	}

	return (cpu_us($pid) - $cpu) / 1000;
}

sub curl {
	my ($kind) = @_;

	my $n = 3;
	my @before = times;

	system('taskset', '-c', server_cpu(), 'curl', '-s', '-f', '-H',
		'x-amz-content-sha256: UNSIGNED-PAYLOAD', '-H', 'Expect:',
		'--aws-sigv4', 'aws:amz:' . $s3->region() . ':s3', '--user',
		$s3->key() . ':' . $s3->secret(), map { ('-o', '/dev/null',
			'-T', $bodies{$kind}{file}, $s3->endpoint()
			. '/xet/curl' . ++$puts) } 1 .. $n) == 0
		or die "curl: $?\n";

	my @after = times;

	return 1000 * ($after[2] + $after[3] - $before[2] - $before[3]) / $n;
}
