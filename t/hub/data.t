#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Packages that are built on huggingface_hub, with this server as the Hub:
# datasets, transformers and safetensors, unmodified releases.  These packages
# send and fetch all data by Xet.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Real;
use Test::Xet::Table;

my $python = Test::Xet::Real::build() . '/clients/datasets/bin/python';

die "no client in $python, run t/clients/setup.sh\n" unless -x $python;

my $t = Test::Xet->new(Test::Xet::Table::hub(), timeout => 900);

$t->token_key();
$t->run();

my $table = Test::Xet::Table->new($t);

for my $package (qw/ datasets transformers safetensors /) {
	$table->script($package, {}, $python, 'hub_data.py', $package,
		$table->machine());

	my @r = $table->requests();

	cmp_ok(Test::Xet::Table::sent(qr!^/cas/.*/xorbs/!, @r), '>', 0,
		"$package: sent by Xet");
	is(Test::Xet::Table::sent(qr!^/api/lfs/!, @r), 0,
		"$package: sent by nothing else");
	cmp_ok(scalar(grep { $_->[1] =~ m!^/cas/.*/reconstructions/! } @r),
		'>', 0, "$package: fetched by Xet");
}

$t->done();
