#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The real hf_xet and xet read each other's files, and neither client resends
# data that the other client has sent.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Real;

use File::Temp qw/ tempdir /;

my $mib = 1048576;

my $t = Test::Xet->new(workers => 2, log => 'info',
	Test::Xet::Real::log_bytes());

$t->run();

my $endpoint = $t->url('/api');
my $dir = tempdir(CLEANUP => 1);

for my $size (0, 1, 131073, 70 * $mib) {
	my $file = make_mix("$dir/theirs", $size + 1, $size);
	my $theirs = hf_xet({}, 'upload', 'session', $endpoint, $file)->[0];

	my $r = xet($t, 'get', '-o', "$dir/out", $theirs->{hash});
	is($r->{code}, 0, "$size bytes of hf_xet: get") or diag($r->{err});
	is(sha256_file("$dir/out"), sha256_file($file), 'they come back');

	my $before = uploaded($t);

	$r = xet($t, 'put', '--json', $file);
	is($r->{json}[0]{hash}, $theirs->{hash}, 'put: the same hash');
	is($r->{json}[0]{new_bytes}, 0, 'put: nothing is new');
	is(uploaded($t), $before, 'put: nothing is sent');

	$file = make_mix("$dir/ours", $size + 2, $size);
	my $ours = xet($t, 'put', '--json', $file)->{json}[0];

	hf_xet({}, 'download', 'session', $endpoint, $ours->{hash}, $size,
		"$dir/out");
	is(sha256_file("$dir/out"), sha256_file($file),
		"$size bytes of ours: hf_xet downloads them");

	$before = uploaded($t);

	my $again = hf_xet({}, 'upload', 'session', $endpoint, $file)->[0];

	is($again->{hash}, $ours->{hash}, 'hf_xet: the same hash');
	cmp_ok(uploaded($t) - $before, '<=', $size / 20,
		'hf_xet: hardly anything is sent');
}

unlike($t->log(), qr/\[(error|crit|alert|emerg)\]/, 'no errors logged');

$t->done();
