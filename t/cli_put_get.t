#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet put and xet get: files of all sizes come back, in every way that they
# can be asked for; what the server has is not sent again.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
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

$t->done();
