#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures reads of xorb ranges by signed URLs: from a bucket through
# conf/xet_bucket.conf with a warm cache, compared with the same bytes from a
# folder.  Two servers of one worker each are measured in alternation on one
# processor.  The object store is s3_sink.pl, which gets no requests once the
# cache is warm.
#
#     perl t/bench/bucket_read.pl
#
# Needs "make build tools cli".  Takes two minutes.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;
use Sink;

use File::Temp qw/ tempdir /;

use Test::Xet;
use Test::Xet::Process qw/ spew /;

my $repeats = repeats(5);
my $seconds = seconds(2);
my $urls = choose(4096, 64);
my $size = choose(64, 8) << 20;
my $xorbs = choose(4, 1);
my $expires = time() + 86400;

need('wrk', 'wrk');
bench_start('ranges from a warm cache of a bucket, one worker');

my $dir = tempdir('xbench-XXXXXX', CLEANUP => 1,
	-d '/dev/shm' ? (DIR => '/dev/shm') : (TMPDIR => 1));

chmod(0755, $dir);

my $s3 = Sink->new(dir => "$dir/s3", keep => $size);

# both servers get a descriptor cache, as docs/trouble.md recommends

my $open = 'open_file_cache max=10000 inactive=10m;'
	. ' open_file_cache_valid 10m;';
my %t = (folder => bench_server(http => $open),
	bucket => bench_server(s3 => $s3, http => $open));

cache_in_memory();
$_->run() for values %t;

my $noise = random_bytes(1, 1 << 20);
my @hashes = map { sprintf('%02x', 0xa0 + $_) x 32 } 1 .. $xorbs;

fill($_) for @hashes;

my %worker = map { $_ => ($t{$_}->worker_pids())[0] } keys %t;
my @ratios = [ 'bucket : folder', 'bytes a second', 'bytes a CPU second' ];
my @rows = [ 'CPU us a request', 'folder', 'bucket' ];
my @rates = [ 'MB/s', 'folder', 'bucket' ];

for (
	[ '4 KiB, 32 clients', 4096, 32 ],
	[ '64 KiB, 32 clients', 65536, 32 ],
	[ '1 MiB, 8 clients', 1 << 20, 8 ],
	bench_short() ? () : ([ '8 MiB, 8 clients', 8 << 20, 8 ],
		[ '60 MiB, 4 clients', 60 << 20, 4 ]),
) {
	my ($name, $length, $c) = @$_;
	my %script = map { $_ => script($_, $length) } keys %t;
	my (%m, @fast, @cheap);

	for my $n (bench_short() .. $repeats) {
		my %got;

		for my $from ($n % 2 ? qw/ folder bucket / : qw/ bucket folder /)
		{
			$got{$from} = wrk(url => $t{$from}->url('/'),
				script => $script{$from}, c => $c,
				s => $seconds, pids => [ $worker{$from} ]);
		}

		next if $n == 0;

		for (keys %got) {
			push @{ $m{$_}{cpu} }, $got{$_}{cpu}[0];
			push @{ $m{$_}{rate} }, $got{$_}{rps} * $length / 1e6;
		}

		push @fast, $m{bucket}{rate}[-1] / $m{folder}{rate}[-1];
		push @cheap, $m{folder}{cpu}[-1] / $m{bucket}{cpu}[-1];
	}

	push @ratios, [ $name, spread(@fast), spread(@cheap) ];
	push @rows, [ $name, map { spread(@{ $m{$_}{cpu} }) }
		qw/ folder bucket / ];
	push @rates, [ $name, map { spread(@{ $m{$_}{rate} }) }
		qw/ folder bucket / ];
	bench_row("bucket's cache, $name", $m{bucket}{cpu}, 'us CPU',
		'a folder: bytes a CPU second', \@cheap, undef, 'more');
}

bench_heading("$urls signed ranges of $xorbs xorbs of 64 MiB,"
	. " $repeats runs of $seconds s");
bench_table(@ratios);
print "\n";
bench_table(@rows);
print "\n";
bench_table(@rates);

bench_end($_) for values %t;
$s3->stop();

# --------------------------------------------------------------------------

sub cache_in_memory {
	my $cache = $t{bucket}->dir() . '/cache';

	mkdir("$dir/cache");
	chmod(0777, "$dir/cache");
	symlink("$dir/cache", $cache) or die "$cache: $!\n";
}

# Writes the same bytes to the folder and to the bucket.

sub fill {
	my ($hash) = @_;

	my $path = '/xorbs/default/' . substr($hash, 0, 2) . "/$hash";
	my $data = join('', ($noise) x ($size >> 20));
	my $file = $t{folder}->store() . $path;

	mkdir($file =~ s!/[^/]*\z!!r);
	spew($file, $data);
	chmod(0644, $file);

	$s3->must('PUT', "a/prefix$path", body => $data);
}

# Signs a URL as described in src/core/access/xet_access.h, with the key of the
# test harness.

sub signed {
	my ($hash, $first, $last) = @_;

	my $text = 'default/' . substr($hash, 0, 2)
		. "/$hash?r=$first-$last&e=$expires&k=k1";

	return "/xorbs/$text&s=" . url_mac($text, derived_key("\x5e" x 32));
}

# Writes a wrk script, and sends each of its requests once, so that all slices
# are in the cache.

sub script {
	my ($from, $length) = @_;

	my $name = $t{$from}->dir() . "/urls$length";
	my (@lines, %warm);

	srand(7);

	for (1 .. $urls) {
		my $hash = $hashes[rand(@hashes)];
		my $first = int(rand($size - $length));
		my $last = $first + $length - 1;

		push @lines, signed($hash, $first, $last) . " $first-$last";
	}

	spew($name, join("\n", @lines) . "\n");

	for my $hash (@hashes) {
		my $last = $size - 1;

		get($from, signed($hash, 0, $last), "0-$last");
	}

	get($from, split(' ', $lines[0]));

	return wrk_script($name, <<'EOL');
      local url, range = line:match("(%S+) (%S+)")
      local request = wrk.format("GET", url, { Range = "bytes=" .. range })
EOL
}

sub get {
	my ($from, $url, $range) = @_;

	my $r = $t{$from}->get($url, { Range => "bytes=$range" });
	my ($first, $last) = split(/-/, $range);
	my $length = $last - $first + 1;

	die "$from: $url: $r->{status}\n" if $r->{status} != 206
		|| length($r->{body}) != $length;

	my $want = substr($noise, $first % (1 << 20))
		. join('', ($noise) x ($length / (1 << 20) + 1));

	die "$from: other bytes\n" if $r->{body} ne substr($want, 0, $length);
}
