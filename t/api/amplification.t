#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The cost of a request is bounded, whatever the request asks for.  For each
# route of the module the test measures the statements, the pages that
# PostgreSQL reads, its log, and the rows written.  It also measures the
# worker's memory while a client does not read.  A new route needs a request in
# this test.  Its limits are those of a cheap route, unless it has a row in
# t/lib/Test/Xet/Amplify.pm.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Amplify;

my $a = Test::Xet::Amplify->new();
my $t = $a->t();
my @keys = $a->list();

cmp_ok(scalar @keys, '>', 60, 'routes');
is(join(', ', $a->strange()), '', 'no row without a route');

for my $key (@keys) {
	my $most = $a->ceiling($key);
	my $got = $a->measure($key);

	# a session that was just opened reads catalogs to plan its statements

	$got = $a->measure($key)
		if $got && $key =~ /^GET/ && $got->{buffers} > $most->{buffers};

	if (!$got) {
		ok(@{ $a->{routes}{$key}{versions} },
			"$key: no request for it");
		next;
	}

	like($got->{status}, qr/^$most->{status}/, "$key: status")
		or diag($got->{answer}->summary());

	for my $what (qw/ statements buffers wal rows /) {
		cmp_ok($got->{$what}, '<=', $most->{$what}, "$key: $what");
	}

	next if $got->{got} < 100_000;

	# some routes parse the complete body before they act, so a request
	# other than GET is measured with more clients

	my $held = $a->held($key, $key =~ /^GET/ ? 3 : 7);

	cmp_ok($held, '<=', $most->{held}, "$key: KiB for a slow client")
		if defined $held;
}

$t->done();
