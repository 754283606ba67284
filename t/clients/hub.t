#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The real @huggingface/hub: XetBlob downloads files that hf_xet has uploaded,
# in one piece, as a stream and in slices.  An entry of a reconstruction has one
# range or several.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Hub;
use Test::Xet::Real;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;

my $mib = 1048576;

my $t = Test::Xet->new(workers => 2, log => 'info');

$t->run();

my $endpoint = $t->url('/api');
my $dir = tempdir(CLEANUP => 1);

my @sizes = (0, 1, 8191, 8192, 65537, 131072, 131073, $mib + 1,
	300 * $mib);
my @files = map { make_mix("$dir/$_", $_ + 1, $_) } @sizes;
my $infos = hf_xet({}, 'upload', 'session', $endpoint, @files);

# a file whose terms alternate between xorbs, so a xorb has several ranges

my $own = Test::Xet::Hub::multi_file({ t => $t });
my $data = $own->{data};

# conf/xet_bucket.conf only supports URLs with one range

for my $ranges (1, $t->s3() ? () : 8) {
	$t->write_conf(undef, server => "xet_url_ranges $ranges;");
	$t->reload();

	# the large file is downloaded only once

	for my $i (0 .. ($ranges == 1 ? $#sizes : $#sizes - 1)) {
		my ($size, $file) = ($sizes[$i], $files[$i]);

		my @slices = map { slice($size, $_) } 1 .. 5;
		my $got = hub_blob($endpoint, $infos->[$i]{hash}, $size,
			map { "$_->[0]:$_->[1]" } @slices);

		my $name = "$size bytes, $ranges ranges an entry";
		my $sha256 = sha256_file($file);

		is($got->{whole}{sha256}, $sha256, "$name: whole");
		is($got->{stream}{sha256}, $sha256, "$name: stream");
		is_deeply([ map { $_->{sha256} } @{ $got->{slices} } ],
			[ map { sha256_hex(file_slice($file, @$_)) } @slices ],
			"$name: slices");
	}

	my $got = hub_blob($endpoint, $own->{hash}, length($data),
		'100000:1500000');

	is($got->{whole}{sha256}, sha256_hex($data),
		"own file, $ranges ranges an entry: whole");
	is($got->{slices}[0]{sha256},
		sha256_hex(substr($data, 100000, 1400000)),
		"own file, $ranges ranges an entry: slice");
}

unlike($t->log(), qr/\[(error|crit|alert|emerg)\]/, 'no errors logged');

$t->done();

sub slice {
	my ($size, $seed) = @_;

	srand($seed);

	my $start = int(rand($size));
	my $end = $start + 1 + int(rand(2 * $mib));

	return [ $start, $end > $size ? $size : $end ];
}
