package Programs;

# Copyright (C) the ngx_http_xet_module authors

# The benchmarks, in the order in which t/bench/all.pl runs them: those with
# goals first.  t/code/bench.t runs all of them, too, for a second each.

use warnings;
use strict;

use parent qw/ Exporter /;

our @EXPORT_OK = qw/ programs /;

# A name without a dot is a C program.  "args" and "repeats" are for a run of
# all programs in 20 minutes.

my @programs = (
	{ name => 'reconstruction.pl', repeats => 2 },
	{ name => 'data_url.pl', repeats => 2 },
	{ name => 'upload.pl', repeats => 1 },
	{ name => 'file_put.pl', repeats => 2, args => [ 256 ] },
	{ name => 'small_put.pl', repeats => 2, args => [ 500 ] },
	{ name => 'file_get.pl', repeats => 1 },
	{ name => 'hub.pl', repeats => 2, args => [ 20_000 ] },
	{ name => 'prove.pl', repeats => 1, args => [ 512, 1000 ] },
	{ name => 'ztensor.pl', repeats => 1 },
	{ name => 'growth.pl', args => [ '1e6' ] },
	{ name => 'peers.pl', repeats => 2 },
	{ name => 'plans.pl', args => [ 400_000 ] },
	{ name => 'neighbour.pl', args => [ 2 ] },
	{ name => 'end_to_end.pl', repeats => 2 },
	{ name => 'bench_xorb_verify' },
	{ name => 'bench_chunk_decode', needs_xorb => 1 },
	{ name => 'bench_chunker' },
	{ name => 'bench_ingest' },
	{ name => 'bench_mac' },
	{ name => 'bench_plan' },
	{ name => 'bucket_upload.pl', repeats => 2 },
	{ name => 'bucket_read.pl', repeats => 2 },
	{ name => 'bucket_many.pl', repeats => 3 },
	{ name => 'bucket_share.pl' },
	{ name => 'metrics.pl', repeats => 3 },
	{ name => 'standby.pl', repeats => 2 },
	{ name => 'hidden.pl', repeats => 2 },
	{ name => 'hub_snapshot.pl', repeats => 1, args => [ 300 ] },
	{ name => 'edge.pl' },
	{ name => 'pages.pl', repeats => 3 },
	{ name => 'dedup_sent.pl', args => [ 64, 100 ] },
	{ name => 'abuse.pl', repeats => 1 },
	{ name => 'amplify.pl' }
);

# $root is the folder of the sources, $build that of the programs, $dir an empty
# folder for files that programs need.  Returns the list with the commands.  In
# short mode, the scripts choose their sizes themselves.

sub programs {
	my ($root, $build, $dir) = @_;

	return map {
		my $c = $_->{name} !~ /\./;
		my @args = $ENV{XET_BENCH_SHORT} ? () : @{ $_->{args} || [] };

		+{ %$_, command => [ $c ? "$build/bench/$_->{name}"
			: ($^X, "$root/t/bench/$_->{name}"),
			$_->{needs_xorb} ? xorb($build, $dir) : (), @args ] };
	} @programs;
}

# Makes a xorb.  Returns its file, and how many bytes of its chunks to decode.

sub xorb {
	my ($build, $dir) = @_;

	local $ENV{XET_BENCH_SHORT} = 1;
	local $ENV{XET_BENCH_JSON};

	delete $ENV{XET_BENCH_JSON};
	system("$build/bench/bench_xorb_verify 65536 1 $dir > /dev/null") == 0
		or die "bench_xorb_verify: $?, run make bench-bins first\n";

	return ((glob("$dir/lz4.*"))[0], 64 << 20);
}

1;
