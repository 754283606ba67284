#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The newest release of hf_xet, unmodified: both of its interfaces, sizes around
# every limit, a large mixed file, dedup of a second version, ranges, and many
# concurrent clients.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Real;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;

my $mib = 1048576;

my $t = Test::Xet->new(workers => 2, log => 'info',
	Test::Xet::Real::log_bytes());

$t->run();

my $endpoint = $t->url('/api');
my $dir = tempdir(CLEANUP => 1);

like(hf_xet({}, 'version')->{version}, qr/^1\.\d+/, 'client');

# --------------------------------------------------------------------------
# small files, both interfaces

my @sizes = (0, 1, 8191, 8192, 65537, 131072, 131073, $mib + 1);

for my $api (qw/ session legacy /) {
	my @files = map { make_mix("$dir/$api-$_", $_ + 1, $_) } @sizes;
	my $infos = hf_xet({}, 'upload', $api, $endpoint, @files);

	is(scalar(@{ $infos || [] }), scalar(@sizes), "$api: uploaded");

	for my $i (0 .. $#sizes) {
		my ($size, $file) = ($sizes[$i], $files[$i]);
		my $info = $infos->[$i];

		my $hash = hash_file(file_slice($file, 0, $size))->{hash};

		is($info->{hash}, $hash, "$api: hash of $size bytes");

		hf_xet({}, 'download', $api, $endpoint, $info->{hash}, $size,
			"$dir/out");
		is(sha256_file("$dir/out"), sha256_file($file),
			"$api: $size bytes: downloaded intact");
	}
}

# --------------------------------------------------------------------------
# 300 MiB of random data, text, bf16 and f32 tensors, and repeated runs

my $size = 300 * $mib;
my $first = make_mix("$dir/first", 7, $size);
my $machine = tempdir(CLEANUP => 1);

my $info = hf_xet({ machine => $machine }, 'upload', 'session', $endpoint,
	$first)->[0];

is($info->{size}, $size, 'mix: uploaded');
is($t->sql("select size from xet.files where encode(hash, 'hex') = '"
	. plain_hash($info->{hash}) . "'"), $size, 'mix: registered');

hf_xet({}, 'download', 'session', $endpoint, $info->{hash}, $size,
	"$dir/out");
is(sha256_file("$dir/out"), sha256_file($first), 'mix: downloaded intact');

# --------------------------------------------------------------------------
# 50 ranges at random positions

srand(11);

my @ranges = map {
	my $start = int(rand($size - 1));
	my $end = $start + 1 + int(rand(3 * $mib));
	[ $start, $end > $size ? $size : $end ]
} 1 .. 50;

my $got = hf_xet({}, 'range', $endpoint, $info->{hash}, $size,
	map { "$_->[0]:$_->[1]" } @ranges);

for my $i (0 .. $#ranges) {
	my ($start, $end) = @{ $ranges[$i] };

	is($got->[$i]{sha256}, sha256_hex(file_slice($first, $start, $end)),
		"range $start-$end");
}

# --------------------------------------------------------------------------
# a second version with 1 % inserted in the middle

my $second = "$dir/second";
my $half = $size / 2;
my $insert = $size / 100;

system("{ head -c $half $first; "
	. Test::Xet::Real::build() . "/tools/xet_make random 12 $insert; "
	. "tail -c +" . ($half + 1) . " $first; } > $second") == 0 or die;

my $before = uploaded($t);

$info = hf_xet({ machine => $machine }, 'upload', 'session', $endpoint,
	$second)->[0];

my $sent = uploaded($t) - $before;

diag(sprintf('second version: %.2f %% sent', 100 * $sent / $size));

cmp_ok($sent, '>', $insert * 0.9, 'second version: new data is sent');
cmp_ok($sent, '<', $size / 10, 'second version: less than 10 % is sent');

hf_xet({}, 'download', 'session', $endpoint, $info->{hash},
	$size + $insert, "$dir/out");
is(sha256_file("$dir/out"), sha256_file($second),
	'second version: downloaded intact');

# --------------------------------------------------------------------------
# a third version from another machine without a cache: global dedup

my $third = "$dir/third";

system("{ head -c $half $second; " . Test::Xet::Real::build()
	. "/tools/xet_make random 13 $insert; tail -c +" . ($half + 1)
	. " $second; } > $third") == 0 or die;

$before = uploaded($t);

$info = hf_xet({}, 'upload', 'session', $endpoint, $third)->[0];

$sent = uploaded($t) - $before;

diag(sprintf('from a second machine: %.2f %% sent', 100 * $sent / $size));

cmp_ok($sent, '<', $size / 10, 'second machine: less than 10 % is sent');

hf_xet({}, 'download', 'session', $endpoint, $info->{hash},
	$size + 2 * $insert, "$dir/out");
is(sha256_file("$dir/out"), sha256_file($third),
	'second machine: downloaded intact');

# --------------------------------------------------------------------------
# 8 uploads in parallel, and the same file from two clients at the same time

my @parallel = map { make_mix("$dir/parallel-$_", 100 + $_, 9 * $mib) } 1 .. 8;
my @running = map { hf_xet_start({}, 'upload', 'session', $endpoint, $_) }
	@parallel;
my @done = map { hf_xet_wait($_) } @running;

for my $i (0 .. 7) {
	hf_xet({}, 'download', 'session', $endpoint, $done[$i][0]{hash},
		9 * $mib, "$dir/out");
	is(sha256_file("$dir/out"), sha256_file($parallel[$i]),
		"parallel upload $i: downloaded intact");
}

my $same = make_mix("$dir/same", 200, 40 * $mib);

@done = map { hf_xet_wait($_) }
	map { hf_xet_start({}, 'upload', 'session', $endpoint, $same) } 1 .. 2;

ok($done[0] && $done[1], 'the same file twice at once');
is($done[0][0]{hash}, $done[1][0]{hash}, 'the same hash');

hf_xet({}, 'download', 'session', $endpoint, $done[0][0]{hash}, 40 * $mib,
	"$dir/out");
is(sha256_file("$dir/out"), sha256_file($same), 'downloaded intact');

# --------------------------------------------------------------------------

unlike($t->log(), qr/\[(error|crit|alert|emerg)\]/, 'no errors logged');

$t->done();
