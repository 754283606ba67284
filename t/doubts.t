#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Known files that are sent again by other terms, when copies that their old
# terms lead to are lost and nobody has noticed: all of them get the new terms,
# however many files and xorbs there are.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::Xet;
use Test::Xet::Files;

my $t = Test::Xet->new(workers => 1, log => 'info',
	directives => { xet_dedup_key => undef });

$t->run();
$t->allow(qr/is lost/, qr/is not there with its size/);

# --------------------------------------------------------------------------
# more lost copies than are noted at a time

{
	my ($n, $size) = (1100, 3000);
	my $all = random_bytes(7, $n * $size);
	my @hashes = map {
		my $data = substr($all, $_ * $size, $size);

		$t->http('PUT', '/api/v1/files', {}, \$data)->json()->{hash}
	} 0 .. $n - 1;

	unlink($t->store() . "/$_") or die "$_: $!\n" for $t->files_in_store();

	my $x = make_xorb($all, sizes => [ ($size) x $n ], large => 1);

	is($t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})
		->{status}, 200, 'many copies are lost: one xorb for all');

	my $shard = make_large_shard($x,
		[ map { [ [ $_, $_ + 1 ] ] } 0 .. $n - 1 ]);

	is($shard->{files}[5]{hash}, $hashes[5], 'the same files');
	is($t->post('/api/v1/shards', \$shard->{bytes})->{status}, 200,
		'sent again');
	is(unreadable(@hashes), '', 'all are readable');
}

# --------------------------------------------------------------------------
# one lost copy behind thousands of references to others

{
	my ($n, $k, $size) = (850, 10, 100);
	my @raw = map { random_bytes(50 + $_, $n * $size) } 1 .. $k;
	my @xorbs = map { send_xorb($t, $_, sizes => [ ($size) x $n ]) } @raw;
	my $shard = shard([ map { my $i = $_; [ map { [ $_, $i, $i + 1 ] }
		@xorbs ] } 0 .. $n - 1 ], @xorbs);

	is($t->post('/api/v1/shards', \$shard->{bytes})->{status}, 200,
		'many references: files');

	my $data = random_bytes(99, 3000);
	my $lost = send_xorb($t, $data, sizes => [ 3000 ]);
	my $last = register_file($t, [ [ $lost ] ]);

	unlink($t->xorb_file($lost->{hash})) or die;

	# all of it again, in two xorbs

	my (@again, @files);

	for my $part (0, 1) {
		my @i = map { $_ + $part * $n / 2 } 0 .. $n / 2 - 1;
		my $x = send_xorb($t, join('', map { my $i = $_;
			map { substr($_, $i * $size, $size) } @raw } @i)
			. ($part ? $data : ''), sizes => [
				($size) x ($n / 2 * $k), $part ? 3000 : () ]);

		push @again, $x;
		push @files, map { [ [ $x, $_ * $k, ($_ + 1) * $k ] ] }
			0 .. $n / 2 - 1;
		push @files, [ [ $x, $n / 2 * $k, $n / 2 * $k + 1 ] ] if $part;
	}

	my $second = shard(\@files, @again);

	is($second->{files}[$_]{hash}, $shard->{files}[$_]{hash},
		'the same file') for 3, 700;
	is($second->{files}[-1]{hash}, $last->{hash}, 'and the last one');
	is($t->post('/api/v1/shards', \$second->{bytes})->{status}, 200,
		'sent again');
	cmp_ok($t->sql('SELECT count(*) FROM xet.file_xorbs'), '>', 8192,
		'references');
	is(unreadable($last->{hash}, map { $_->{hash} }
		@{ $shard->{files} }[0, 1, 849]), '', 'readable');
}

$t->done();

# --------------------------------------------------------------------------

sub shard {
	my ($files, @xorbs) = @_;

	return make_shard({ files => [ map { { terms => [ map { {
		xorb => $_->[0]{hash}, start => $_->[1], end => $_->[2]
	} } @$_ ] } } @$files ],
		xorbs => [ map { { %$_, raw => '', bytes => '' } } @xorbs ] });
}

sub unreadable {
	my %n;

	$n{$t->get("/api/v1/files/$_")->{status}}++ for @_;
	delete $n{200};

	return join(' ', map { "$n{$_} times $_" } sort keys %n);
}
