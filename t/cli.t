#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The command line: hashes as clients compute them, verdicts on xorbs and
# shards, exit codes.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::Xet::Bytes;
use Test::Xet::Process qw/ root spew /;

use File::Temp qw/ tempdir /;

my $xet = ($ENV{XET_BUILD} || root() . '/build') . '/xet';
my $dir = tempdir(CLEANUP => 1);

for my $size (0, 1, 8192, 131073, 3000000) {
	my $data = mix(3, $size);

	spew("$dir/file", $data);
	is(run('hash', "$dir/file"), hash_file($data)->{hash}
		. " $size $dir/file\n", "hash of $size bytes");
}

is($?, 0, 'hash: exit code');

my $xorb = make_xorb(mix(4, 500000));
my $chunks = @{ $xorb->{chunks} };

spew("$dir/$xorb->{hash}", $xorb->{bytes});
like(run('info', "$dir/$xorb->{hash}"),
	qr/: xorb\n +hash +$xorb->{hash}\n +chunks +$chunks\n/, 'xorb');
is($?, 0, 'xorb: exit code');

spew("$dir/" . 'ab' x 32, $xorb->{bytes});
like(run('info', "$dir/" . 'ab' x 32), qr/does not have the xorb hash/,
	'xorb under another name');
is($? >> 8, 1, 'xorb under another name: exit code');

my $shard = make_shard({ files => [ { terms => [ { xorb => $xorb->{hash},
	start => 0, end => $chunks, chunks => $xorb->{chunks} } ] } ],
	xorbs => [ $xorb ] });

spew("$dir/shard", $shard->{bytes});
like(run('info', "$dir/shard"), qr/file $shard->{files}[0]{hash}, 1 terms/,
	'shard');
is($?, 0, 'shard: exit code');

spew("$dir/shard", substr($shard->{bytes}, 0, 200));
run('info', "$dir/shard");
is($? >> 8, 1, 'cut shard: exit code');

run('info', "$dir/missing");
is($? >> 8, 3, 'missing file: exit code');
run();
is($? >> 8, 2, 'no verb: exit code');
run('nothing', 'x');
is($? >> 8, 2, 'unknown verb: exit code');
like(run('--help'), qr/^usage: xet .*^ +xet hash \[OPTION...\] FILE/ms, 'help');
is($?, 0, 'help: exit code');

done_testing();

sub run {
	my (@args) = @_;

	return scalar `$xet @args 2>&1`;
}
