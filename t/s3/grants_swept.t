#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Objects that were uploaded with grants but never committed: one sweep removes
# all old objects of this kind, however many there are.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::S3;

my $s3 = Test::Xet::S3->new();

plan(skip_all => $s3->name() . ' has no clock of its own')
	if !$s3->can('set_clock');

my $t = Test::Xet->new(s3 => $s3, workers => 1, log => 'info', directives => {
	xet_grants => 'on', xet_gc => 'on grace=1d interval=1s' });

$t->allow(qr/RequestTimeTooSkewed|clock/);
$t->run();
$t->let_age();

my $identity;

wait_for(20, sub {
	($identity) = grep { m!(?:^|/)identity\z! } keys %{ $s3->objects() };
}) or die "the store has no identity\n";

my $prefix = $identity =~ s/identity\z//r;

$s3->put($prefix . sprintf('staging/%064x.%032x', $_ % 7, $_), 'x')
	for 1 .. 600;
$s3->put($prefix . sprintf('staging/ours/%064x.%032x', 1, 1), 'x');

# objects that are less than a day old

sweep();

is(staged(), 601, 'young: all are there');

# the store's clock is a day ahead

$s3->set_clock(90000);
sweep();
$s3->set_clock(0);

is(staged(), 0, 'old: none is left by one sweep');

$t->done();

# --------------------------------------------------------------------------

# Requests a sweep, and waits until its end is recorded.

sub sweep {
	$t->sql("SELECT xet.job_now('orphans')");

	ok(wait_for(60, sub {
		return $t->sql('SELECT count(*) FROM xet.jobs WHERE'
			. " name = 'orphans' AND started_at IS NOT NULL");
	}), 'a sweep');
}

sub staged {
	return scalar grep { m!(?:^|/)staging/! } keys %{ $s3->objects() };
}
