#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# GET v2/file-chunk-hashes: responses match those that the core computes from
# the terms and chunks of the file.  The unit tests and the oracle (t/oracle)
# check the core.  Every parameter is tested at its limit and beyond it.
#
# "trap N" in names: docs/protocol.md numbers the traps.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ build_dir run_command /;

use JSON::PP ();

# 1,025 ranges do not fit into the default buffers

my $t = Test::Xet->new(workers => 2, log => 'info',
	http => 'large_client_header_buffers 4 72k;');

$t->run();
$t->fds_mark();

my $none = '0123456789abcdef' x 4;

sub ask {
	my ($file, $dirty, %o) = @_;

	return $t->http($o{method} || 'GET',
		"/api/v2/file-chunk-hashes/$file->{hash}",
		defined $dirty ? { 'X-Range-Dirty' => $dirty } : {});
}

# Returns what the core computes for a file; terms are lists of [ hash, length
# ].

sub want {
	my ($file, $dirty) = @_;

	my $in = $t->write_file('windows', join("\n",
		"windows $file->{size} $dirty",
		map({ ("term $_->{hash} -",
			map { "$_->{hash} $_->{raw_length}" }
				@{ $_->{chunks} }) } @{ $file->{parts} }),
		".\n"));

	my ($status, $out) = run_command([ build_dir()
		. '/tools/xet_subtree' ], stdin => $in);

	die "xet_subtree: $out" if $status;

	return JSON::PP::decode_json($out);
}

sub same {
	my ($name, $file, $dirty) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $r = ask($file, $dirty);
	my $json = $r->json();

	is($r->{status}, 200, "$name: status") or return;
	is($r->header_value('Content-Type'), 'application/json',
		"$name: type");
	is_deeply($json, want($file, $dirty), "$name: as the core computes it");

	my @windows = map { $_->{dirtyByteRange} } @{ $json->{windows} };

	is(scalar(@{ $json->{hashRanges} }), @windows + 1,
		"$name: ranges around the windows");

	# every term is either completely inside one range, or outside of all
	# ranges

	my ($at, $outside, $torn) = (0, 0, 0);

	for my $part (@{ $file->{parts} }) {
		my $start = $at;

		$at += $_->{raw_length} for @{ $part->{chunks} };

		my @in = grep { $_->[0] < $at && $_->[1] > $start } @windows;

		$outside++ if !@in;
		$torn++ if grep { $_->[0] > $start || $_->[1] < $at } @in;
	}

	is($torn, 0, "trap 36: $name: no window ends inside of a term");
	is(scalar(@{ $json->{gapVerification} }), $outside,
		"trap 36: $name: a hash for each term outside");
	unlike(join(' ', map { $_ ? keys %$_ : () }
		@{ $json->{hashRanges} }), qr/[A-Z]/,
		"trap 36: $name: names of members");

	return @windows;
}

sub refused {
	my ($name, $r, $status, $code) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is_deeply($r->refusal(), [ $status, 'application/json', $code ],
		$name);
}

# --------------------------------------------------------------------------
# three files: with a few terms, with 700 short terms in random order, and small

my $data = mix(1, 3000000);
my $file = $t->upload($data, xorb_chunks => 4);

$file->{parts} = $file->{xorbs};
is(scalar(@{ $file->{terms} }), scalar(@{ $file->{xorbs} }), 'terms');

my $xorb = $t->put_xorb(random_bytes(2, 2000 * 50), scheme => 'none',
	sizes => [ 50 ]);
my @terms = map { my $i = $_ * 37 % 1990; [ $i, $i + 1 + $_ % 5 ] } 0 .. 699;

my ($long, $r) = $t->put_file(map { [ $xorb, @$_ ] } @terms);

is($r->{body}, '{"result":1}', 'a file of 700 terms');

$long = { %$long, parts => [ map { {
	hash => $xorb->{hash}, chunks => [
		@{ $xorb->{chunks} }[$_->[0] .. $_->[1] - 1] ]
} } @terms ] };

my $small = $t->upload(random_bytes(3, 100));
$small->{parts} = $small->{xorbs};

# --------------------------------------------------------------------------
# valid requests

for my $name (qw/ some long small /) {
	my $f = { some => $file, long => $long, small => $small }->{$name};
	my $last = $f->{size} - 1;
	my $mid = int($f->{size} / 2);

	for my $dirty ('bytes=0-0', "bytes=$last-$last", "bytes=0-$last",
		"bytes=$mid-$mid", 'bytes=0-', 'bytes=-1', "bytes=$mid-"
		. (1 << 40), "bytes=$mid-$last,0-0", 'bytes=0-50,20-60,40-40',
		"bytes=0-0 , $mid-$mid,\t$last-$last", "BYTES=1-2",
		"bytes=,0-0,,$mid-$mid, ,", 'bytes=0-9223372036854775808',
		"bytes=0-0,$f->{size}-" . ($last + 100))
	{
		my @windows = same("$name, $dirty", $f, $dirty);

		is(scalar(grep { $_->[0] >= $_->[1]
			|| $_->[1] > $f->{size} } @windows), 0,
			"$name, $dirty: inside of the file");
	}
}

is(ask($file, 'bytes=0-0', method => 'HEAD')->{status}, 200, 'HEAD');

# --------------------------------------------------------------------------
# the maximum number of ranges, and one range more

sub ranges {
	my ($n) = @_;

	return 'bytes=' . join(',', map { my $at = $_ * 2500;
		"$at-" . ($at + 9) } 0 .. $n - 1);
}

same('1,024 ranges', $file, ranges(1024));
refused('1,025 ranges', ask($file, ranges(1025)), 400, 'invalid_range');

# --------------------------------------------------------------------------
# invalid requests

refused('no header', ask($file, undef), 400, 'invalid_range');
refused('two headers', ask($file, [ 'bytes=0-1', 'bytes=4-5' ]), 400,
	'invalid_range');

for my $dirty ('', 'bytes', 'bytes=', 'bytes=-', 'bytes=x', 'bytes=1',
	'bytes=2-1', 'bytes=,', 'bytes=1-2;3-4',
	'bytes = 1-2', 'lines=1-2', '1-2', 'bytes=+1-2',
	'bytes=1 -2', 'bytes=0x1-2', 'bytes=--1', 'bytes=1-2-3',
	'bytes=9223372036854775808-',
	'bytes=18446744073709551616-18446744073709551617',
	"bytes=$file->{size}-", "bytes=$file->{size}-9223372036854775807",
	'bytes=-0', "bytes=1-2\x80")
{
	refused("X-Range-Dirty: $dirty", ask($file, $dirty), 400,
		'invalid_range');
}

same('the largest number', $file, 'bytes=5-9223372036854775807');
same('the last byte', $file, "bytes=" . ($file->{size} - 1) . '-');

for my $hash ('x', substr($none, 1), "${none}0", substr($none, 1) . 'g',
	'0x' . substr($none, 2), substr($none, 1) . '%0a')
{
	refused("hash $hash", ask({ hash => $hash }, 'bytes=0-1'), 400,
		'invalid_hash');
}

refused('an unknown file', ask({ hash => $none }, 'bytes=0-1'), 404,
	'file_not_found');
refused('the hash of a xorb', ask($xorb, 'bytes=0-1'), 404, 'file_not_found');
refused('version 1', $t->get("/api/v1/file-chunk-hashes/$file->{hash}",
	{ 'X-Range-Dirty' => 'bytes=0-1' }), 404, 'no_route');

for my $method (qw/ POST PUT DELETE /) {
	my $r = ask($file, 'bytes=0-1', method => $method);

	refused($method, $r, 405, 'method_not_allowed');
	is($r->header_value('Allow'), 'GET, HEAD', "$method: Allow");
}

# --------------------------------------------------------------------------
# a small upload of long runs of one chunk: the size of the response is bounded

{
	my $x = make_xorb('a' x 60_000_000, large => 1, sizes => [ 32768 ]);
	my $n = @{ $x->{chunks} };

	is($t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})
		->{status}, 200, 'runs: a xorb');

	for my $case ([ 8 => 200 ], [ 200 => 422 ]) {
		my ($terms, $status) = @$case;
		my $shard = make_large_shard($x,
			[ [ map { [ 0, $n - 1 ] } 1 .. $terms ] ]);

		is($t->post('/api/v1/shards', \$shard->{bytes})->{status},
			200, "runs: $terms terms");

		my $r = ask({ hash => $shard->{files}[0]{hash} }, 'bytes=0-0');

		is($r->{status}, $status, "runs: $terms: status");
		cmp_ok(length($r->{body}), '<', 2_000_000,
			"runs: $terms: bytes");
		is($r->json()->{error}{code}, 'too_many_hashes',
			"runs: $terms: send the complete file")
			if $status == 422;
	}
}

# --------------------------------------------------------------------------
# the terms of the file change after the first batch is read

{
	my $x = make_xorb(random_bytes(1, 200000), large => 1,
		sizes => [ 1000 ]);
	my $shard = make_large_shard($x, [ [ map { [ $_ * 2 % 198,
		$_ * 2 % 198 + 1 ] } 1 .. 3000 ] ],
		each => '"verification":true,');

	is($t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})
		->{status}, 200, 'many terms: the xorb');
	is($t->post('/api/v1/shards', \$shard->{bytes})->{status}, 200,
		'many terms: the shard');

	my $many = { hash => $shard->{files}[0]{hash} };
	my $old = $t->sql('SELECT pg_get_functiondef('
		. "'xet.file_terms'::regproc)");
	my $other = 'AS $function$ SELECT size, first_offset - CASE WHEN'
		. ' first_byte > 0 THEN 1 ELSE 0 END, packed FROM'
		. ' xet.file_terms_real(file, first_byte, last_byte, any_repo,'
		. ' repo)'
		. ' $function$';

	is(ask($many, 'bytes=0-0')->{status}, 200, 'many terms');

	$t->sql($old =~ s/\bfile_terms\b(?!\$)/file_terms_real/gr);
	$t->sql($old =~ s/AS \$function\$.*/$other/sr);

	refused('other terms', ask($many, 'bytes=0-0'), 503, 'overloaded');

	$t->sql("$old; DROP FUNCTION xet.file_terms_real");
	is(ask($many, 'bytes=0-0')->{status}, 200, 'as before');
}

# the empty file, which has no bytes for a range

$t->upload('');
is(ask({ hash => '0' x 64 }, 'bytes=0-0')->{status}, 400, 'the empty file');

$t->done();
