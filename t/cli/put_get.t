#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet put and xet get: files of all sizes, with all forms of requests; data that
# the server already has is not resent.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ slurp spew /;
use Test::Xet::Real qw/ file_slice make_mix sha256_file /;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;

my $mib = 1048576;

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 600,
	http => 'log_format bytes "$request_method $uri $status '
		. '$request_length $bytes_sent";'
		. 'access_log %%DIR%%/bytes.log bytes;');

$t->run();

my $dir = tempdir(CLEANUP => 1);

# --------------------------------------------------------------------------
# sizes around every limit

for my $size (0, 1, 8191, 8192, 8193, 65536, 131072, 131073, $mib + 1,
	9 * $mib, 20 * $mib + 7)
{
	my $data = $size <= 2 * $mib ? mix($size + 1, $size) : undef;

	if (defined $data) {
		spew("$dir/file", $data);
	} else {
		make_mix("$dir/file", $size, $size);
	}

	my $r = xet($t, 'put', '--json', "$dir/file");
	my $j = $r->{json}[0];

	is($r->{code}, 0, "put of $size bytes");
	is($r->{err}, '', "put of $size bytes says nothing");
	is($j->{size}, $size, 'size');
	is($j->{hash}, hash_file(slurp("$dir/file"))->{hash}, 'hash');
	is($j->{sha256}, sha256_file("$dir/file"), 'sha256');
	is($j->{new_bytes} + $j->{deduplicated_bytes}, $size, 'all counted');

	$r = xet($t, 'get', '--json', '-o', "$dir/out", $j->{hash});
	is($r->{code}, 0, "get of $size bytes") or diag($r->{err});
	is(sha256_file("$dir/out"), $j->{sha256}, 'it comes back');
	is($r->{json}[0]{size}, $size, 'its size');

	$r = xet($t, 'get', '-o', '-', $j->{hash});
	is(sha256_hex($r->{out}), $j->{sha256}, 'by a pipe');

	$r = xet($t, 'put', '--json', "$dir/file");
	is($r->{json}[0]{new_bytes}, 0, 'put again: nothing is new');
	is($r->{json}[0]{hash}, $j->{hash}, 'the same hash');
}

is_deeply([ glob("$dir/*.xet-*") ], [], 'nothing is left beside');

# --------------------------------------------------------------------------
# many files in one command, duplicates, and one file that does not exist

my @files = map { make_mix("$dir/many-$_", 50 + $_, 300000 + $_) } 1 .. 20;

my $shards = uploads('shards');
my $r = xet($t, 'put', '--json', @files, $files[0], "$dir/missing");

is($r->{code}, 3, 'a file is missing');
is($r->{err}, "xet: $dir/missing: No such file or directory\n", 'reported');
is(scalar(@{ $r->{json} }), 21, 'the others are there');
is($r->{json}[20]{new_bytes}, 0, 'the same file again');
is(uploads('shards'), $shards + 1, 'in one shard');

for my $j (@{ $r->{json} }[0, 7, 20]) {
	xet($t, 'get', '-o', "$dir/out", $j->{hash});
	is(sha256_file("$dir/out"), sha256_file($j->{file}), "$j->{file}");
}

# from a pipe

$r = xet($t, { stdin => $files[3] }, 'put', '--json', '-');
is($r->{json}[0]{sha256}, sha256_file($files[3]), 'put of a pipe');

# --------------------------------------------------------------------------
# ranges, compared with the complete file

my $size = 40 * $mib + 12345;
make_mix("$dir/ranges", 77, $size);
my $hash = xet($t, 'put', '--json', "$dir/ranges")->{json}[0]{hash};

srand(5);

my @ranges = ([ 0, 0 ], [ 0, $size - 1 ], [ $size - 1, $size - 1 ],
	[ 16 * $mib - 1, 16 * $mib ], map {
		my $first = int(rand($size));
		[ $first, $first + int(rand($size - $first)) ];
	} 1 .. 6);

for my $range (@ranges) {
	my ($first, $last) = @$range;
	my $sha256 = sha256_hex(file_slice("$dir/ranges", $first, $last + 1));

	xet($t, 'get', '--range', "$first-$last", '-o', "$dir/out", $hash);
	is(sha256_file("$dir/out"), $sha256, "range $first-$last");

	$r = xet($t, 'get', '--range', "$first-$last", '-o', '-', $hash);
	is(sha256_hex($r->{out}), $sha256, "range $first-$last by a pipe");
}

$r = xet($t, 'get', '--json', '--range', '-100', '-o', "$dir/out", $hash);
is(slurp("$dir/out"), file_slice("$dir/ranges", $size - 100, $size),
	'the last bytes');
is($r->{json}[0]{size}, 100, 'their size');
ok(!$r->{json}[0]{verified}, 'bytes are not verified');

xet($t, 'get', '--range', ($size - 7) . '-', '-o', "$dir/out", $hash);
is(-s "$dir/out", 7, 'an open range');

is(xet($t, 'get', '--range', "$size-", '-o', "$dir/out", $hash)->{code}, 1,
	'a range behind the end');
is(-s "$dir/out", 7, 'the target is left alone');
is(xet($t, 'get', '--range', '7', '-o', "$dir/out", $hash)->{code}, 2,
	'no range');

# --------------------------------------------------------------------------
# a progress bar: only on a terminal, and not with --quiet

SKIP: {
	skip 'no script(1)', 2 unless -x '/usr/bin/script';

	local $ENV{XET_ENDPOINT} = $t->url('/api');
	my $get = Test::Xet::Cli::binary() . " get -o $dir/out $hash";

	like(scalar `script -qec '$get' /dev/null < /dev/null`,
		qr!\r\e\[K\S+ +\[[#.]{24}\] +\d+% +[\d.]+/42.0 MB.*\r\e\[K$!s,
		'a progress bar');
	is(scalar `script -qec '$get --quiet' /dev/null < /dev/null`, '',
		'none with --quiet');
}

# --------------------------------------------------------------------------
# 300 MiB, and a second version with 1 % inserted in the middle

$size = 300 * $mib;
make_mix("$dir/first", 7, $size);

$r = xet($t, 'put', '--json', "$dir/first");
is($r->{json}[0]{size}, $size, '300 MiB: uploaded') or diag($r->{err});
$hash = $r->{json}[0]{hash};

xet($t, 'get', '-o', "$dir/out", $hash);
is(sha256_file("$dir/out"), $r->{json}[0]{sha256}, '300 MiB: comes back');

my ($half, $insert) = ($size / 2, $size / 100);

system("{ head -c $half $dir/first; "
	. Test::Xet::Real::build() . "/tools/xet_make random 12 $insert; "
	. 'tail -c +' . ($half + 1) . " $dir/first; } > $dir/second") == 0
	or die;

my $before = uploads('bytes');

$r = xet($t, 'put', '--json', "$dir/second");

my $sent = uploads('bytes') - $before;

diag(sprintf('second version: %.2f %% sent', 100 * $sent / $size));

cmp_ok($sent, '>', $insert * 0.9, 'second version: new data are sent');
cmp_ok($sent, '<', $size / 40, 'second version: hardly more');
cmp_ok($r->{json}[0]{deduplicated_bytes}, '>', $size * 0.98,
	'second version: reported');

xet($t, 'get', '-o', "$dir/out", $r->{json}[0]{hash});
is(sha256_file("$dir/out"), sha256_file("$dir/second"),
	'second version: comes back');

# --------------------------------------------------------------------------
# repetitive files: 64 MiB of zeros, and one MiB that is repeated 60 times

system("head -c " . 64 * $mib . " /dev/zero > $dir/zeros") == 0 or die;
$r = xet($t, 'put', '--json', "$dir/zeros");
cmp_ok($r->{json}[0]{new_bytes}, '<', 2 * $mib, 'zeros: own repeats');

make_mix("$dir/unit", 99, 3 * $mib);
system("for i in 1 2 3 4 5 6 7 8 9 10; do cat $dir/unit; done > $dir/again")
	== 0 or die;
$r = xet($t, 'put', '--json', "$dir/again");
cmp_ok($r->{json}[0]{new_bytes}, '<', 5 * $mib, 'repeats: sent once');

xet($t, 'get', '-o', "$dir/out", $r->{json}[0]{hash});
is(sha256_file("$dir/out"), sha256_file("$dir/again"), 'repeats: come back');

# --------------------------------------------------------------------------
# other forms of data URLs: a URL for several ranges, a URL for a complete xorb

for my $directives ({ xet_url_ranges => 8 }, { xet_url_mode => 'cacheable' },
	{ xet_url_mode => 'cacheable', xet_url_ranges => 8 })
{
	my $form = join(' ', %$directives);

	$t->write_conf(undef, directives => $directives);
	$t->reload();

	is(xet($t, 'get', '-o', "$dir/out", $r->{json}[0]{hash})->{code}, 0,
		$form);
	is(sha256_file("$dir/out"), sha256_file("$dir/again"),
		"$form: comes back");
}

# --------------------------------------------------------------------------

unlike($t->log(), qr/\[(error|crit|alert|emerg)\]/, 'no errors logged');

$t->done();

# --------------------------------------------------------------------------

# Returns the bytes of xorb uploads so far, or the number of shards.

sub uploads {
	my ($what) = @_;

	my ($sum, $n) = (0, 0);

	for (split(/\n/, $t->read_file('bytes.log'))) {
		$sum += $1 if m!^POST \S*/xorbs/\S+ 200 (\d+) !;
		$n++ if m!^POST \S*/shards 200 !;
	}

	return $what eq 'bytes' ? $sum : $n;
}
