#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Files written by the ztensor package, one release per container version: the
# server lists and verifies them, and returns the same tensors as the package
# reads.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ root slurp /;
use Test::Xet::Real;
use Test::Xet::Ztensor;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;
use JSON::PP ();

my %containers = ('1.1.1' => '1.1', '1.2.3' => '1.1', '2.1.2' => '2');

my $clients = Test::Xet::Real::build() . '/clients';
my $dir = tempdir(CLEANUP => 1);

my $t = Test::Xet->new(timeout => 300);

$t->run();

for my $release (sort keys %containers) {

	SKIP: {
		skip("no ztensor $release, run t/clients/setup.sh", 1)
			unless -d "$clients/ztensor-$release/ztensor";

		check($release);
	}
}

$t->done();


sub check {
	my ($release) = @_;

	my $path = "$dir/$release.zt";

	local $ENV{PYTHONPATH} = "$clients/ztensor-$release";

	my $text = qx{$clients/ztensor/bin/python \\
		@{[root()]}/t/clients/ztensor_write.py $path};

	is($?, 0, "$release: written") or return;

	my $tensors = JSON::PP->new()->utf8()->decode($text)->{tensors};
	my $hash = $t->upload(slurp($path))->{hash};
	my $list = $t->get("/api/v1/zt/$hash")->json();

	is($list->{container}, $containers{$release}, "$release: container");
	is($list->{count}, scalar(keys %$tensors), "$release: count");

	my %listed = map { $_->{name} => $_ } @{ $list->{objects} };

	for my $name (sort keys %$tensors) {
		my $object = $listed{$name};

		is_deeply($object && $object->{shape}, $tensors->{$name}{shape},
			"$release, $name: shape");

		utf8::encode(my $bytes = $name);

		my $r = $t->get("/api/v1/zt/$hash/data"
			. zt_args(name => $bytes, form => 'decoded'));

		is(sha256_hex($r->{body}), $tensors->{$name}{sha256},
			"$release, $name: bytes as the package reads them");

		my $c = $object->{components}{data};

		is(length($r->{body}), $c->{decoded_length},
			"$release, $name: decoded length");

		$r = $t->get("/api/v1/zt/$hash/data" . zt_args(name => $bytes));

		is(length($r->{body}), $c->{length},
			"$release, $name: stored length");
	}

	ok(grep({ $_->{components}{data}{encoding} ne 'raw' }
		@{ $list->{objects} }), "$release: some are compressed");

	my $json = $t->get("/api/v1/zt/$hash/verify")->json();

	ok($json->{ok}, "$release: verified");
	is($json->{checked}, scalar(keys %$tensors), "$release: all of them");
}
