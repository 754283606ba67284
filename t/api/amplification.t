#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# What a request costs is bounded, whatever it asks for: for each route of the
# tables the statements, the pages that PostgreSQL looks at, its log, the rows
# that are written, and the memory of a worker for a client that takes
# nothing.  A new route needs a request here, and has the ceilings of a
# cheap one unless the table says otherwise (t/lib/Test/Xet/Amplify.pm).

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

	if (!$got) {
		ok(@{ $a->{routes}{$key}{versions} },
			"$key: nothing to ask for");
		next;
	}

	like($got->{status}, qr/^$most->{status}/, "$key: is answered")
		or diag($got->{answer}->summary());

	for my $what (qw/ statements buffers wal rows /) {
		cmp_ok($got->{$what}, '<=', $most->{$what}, "$key: $what");
	}

	next if $got->{got} < 100_000;

	# more of those whose bodies are read into a tree first

	my $held = $a->held($key, $key =~ /^GET/ ? 3 : 7);

	cmp_ok($held, '<=', $most->{held}, "$key: held by a slow client")
		if defined $held;
}

$t->done();
