#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Real clients download a file that has 1,300 ranges of one xorb, more than fit
# into one entry of a reconstruction.  An entry has one range, a few, or the
# maximum; clients request the ranges of an entry one by one or in one request.

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
use List::Util qw/ max sum0 /;

my $MULTI = 'HF_XET_CLIENT_ENABLE_MULTIRANGE_FETCHING';

# headers with 512 ranges do not fit into the default buffers

my $t = Test::Xet->new(workers => 2, log => 'info',
	http => 'large_client_header_buffers 8 72k;'
		. 'log_format ranges "$status $uri $http_range";'
		. 'access_log %%DIR%%/ranges.log ranges;');

$t->run();

my $endpoint = $t->url('/api');
my $dir = tempdir(CLEANUP => 1);
my $file = Test::Xet::Hub::multi_file({ t => $t }, size => 2600 * 3000,
	chunk => 3000, step => 2);
my $size = length($file->{data});
my $sha256 = sha256_hex($file->{data});
my $seen = 0;

is($file->{ranges}, 1300, 'ranges of the file');

# Returns the number of ranges in each data request since the last call.

sub requests {
	my $log = $t->read_file('ranges.log');
	my @lines = split(/\n/, substr($log, $seen));

	$seen = length($log);

	is(scalar(grep { m!^\d+ /xorbs/! && !/^206 / } @lines), 0,
		'all data responses are 206');

	return map { m!^206 /xorbs/\S+ bytes=(.*)! ? 1 + ($1 =~ tr/,//) : () }
		@lines;
}

# conf/xet_bucket.conf only supports URLs with one range

for my $group (1, $t->s3() ? () : (8, 512)) {
	$t->write_conf(undef, server => "xet_url_ranges $group;");
	$t->reload();

	my $d = $t->reconstruct($file->{hash}, size => $size, twice => 0);
	my ($entries) = values %{ $d->{plan}{xorbs} };
	my @counts = map { scalar @{ $_->{ranges} } } @$entries;
	my $most = max(@counts);

	is_deeply($d->{errors}, [], "$group ranges an entry: no rule violated");
	is(sum0(@counts), 1300, "$group ranges an entry: all of them");
	cmp_ok(scalar(@counts), '>', 2,
		"$group ranges an entry: several entries");

	# with this many ranges, an entry is limited by the length of its URL

	cmp_ok($most, '>', 400,
		'512 ranges an entry: an entry with many ranges')
		if $group == 512;
	is_deeply([ grep { $_ != $group } @counts[0 .. $#counts - 1] ], [],
		"$group ranges an entry: all but the last") if $group < 512;

	for my $multi ('', 'true') {
		my $name = "hf_xet, $group an entry"
			. ($multi ? ', several at once' : '');

		requests();
		unlink("$dir/out");
		hf_xet({ env => { $MULTI => $multi || 'false' } }, 'download',
			'session', $endpoint, $file->{hash}, $size,
			"$dir/out");
		is(-e "$dir/out" && sha256_file("$dir/out"), $sha256,
			"$name: downloaded intact");

		my @ranges = requests();

		cmp_ok(sum0(@ranges), '>=', 1300, "$name: all ranges");
		is(max(0, @ranges), $multi ? $most : 1,
			"$name: ranges in a request");
	}

	my $got = hub_blob($endpoint, $file->{hash}, $size, '100000:2500000');
	my $name = "\@huggingface/hub, $group an entry";

	is($got->{whole}{sha256}, $sha256, "$name: whole");
	is($got->{stream}{sha256}, $sha256, "$name: stream");
	is($got->{slices}[0]{sha256}, sha256_hex(substr($file->{data}, 100000,
		2400000)), "$name: slice");
	is(max(0, requests()), $most, "$name: ranges in a request");
}

unlike($t->log(), qr/\[(error|crit|alert|emerg)\]/, 'no errors logged');

$t->done();
