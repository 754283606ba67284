#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Two concurrent first runs of xet store copy, each held at a critical point.
# Two runs that copy one store both succeed.  If two runs copy two stores, one
# run succeeds and the other run reports why it failed.  If source and target
# are one store with two names, both runs are refused.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Process qw/ slurp /;
use Test::Xet::S3;
use Test::Xet::S3Fault;

Test::Xet->folder('it begins with two folders');

my %conf = (s3 => 0, workers => 1, log => 'info');
my @t = map { Test::Xet->new(%conf) } 0, 1;
my $s3 = Test::Xet::S3->new(dir => $t[0]->dir() . '/s3');

# one proxy to the bucket for each run, so that each run can be held separately

my @way = map { Test::Xet::S3Fault->new($s3) } 0, 1;

$_->run() for @t;

for my $i (0, 1) {
	send_xorb($t[$i], mix(10 * $i + $_, 100_000)) for 1 .. 3;
}

my @identity = map { slurp($_->store() . '/identity') } @t;

isnt($identity[0], $identity[1], 'two stores');

# --------------------------------------------------------------------------
# two runs copy one store: both wait for a table lock, and are released together

for my $case ([ 'xet.store', 'bucket' ], [ 'xet.xorbs', 'bucket' ],
	[ 'xet.store', 'folder' ], [ 'xet.xorbs', 'folder' ])
{
	my ($table, $kind) = @$case;

	for my $round (1 .. 3) {
		my $name = "$kind, $table, round $round";
		my $prefix = "one-$table-$round" =~ tr/./-/r;
		my @to = $kind eq 'bucket' ? map { bucket($prefix, $_) } 0, 1
			: ($t[0]->dir() . "/$prefix") x 2;
		my $gate = $t[0]->pg_session();

		$gate->run('BEGIN');
		$gate->run("LOCK TABLE $table IN ACCESS EXCLUSIVE MODE");

		my @runs = map { start(0, $_) } @to;

		ok(wait_for(20, sub { $t[0]->pg_blocked() >= 2 }),
			"$name: both wait");
		$gate->run('COMMIT');
		$gate->close();

		my @r = map { xet_wait($_) } @runs;

		is_deeply([ map { $_->{code} } @r ], [ 0, 0 ],
			"$name: both come to their end")
			or diag(map { $_->{err} } @r);
		whole($name, 0, $to[0]);
		ok(!exists $s3->objects("$prefix/")->{"$prefix/copying"}
			&& !-e "$to[0]/copying", "$name: no mark is left");
	}
}

# the first run is held before it writes, until the other run has ended

{
	my $r = beside(0, 0, 'late', PutObject => 'late/copying');

	is_deeply([ codes($r) ], [ 0, 0 ], 'one is late: both')
		or diag(errors($r));
	whole('one is late', 0, bucket('late', 0));
	is(object('late/copying'), undef, 'one is late: no mark is left');
}

# --------------------------------------------------------------------------
# two stores are copied into one target

my $one = join('|', 'is a different store',
	'is the target of a copy from another store',
	'is neither empty nor a store');

# the second run starts and ends while the first run is held: before the first
# run has written its mark, its copies or its identity

for my $case ([ 'before its mark', PutObject => 'copying' ],
	[ 'at its copies', PutObject => 'xorbs' ],
	[ 'before the identity', PutObject => 'identity' ])
{
	my ($where, @rule) = @$case;
	my $prefix = 'two-' . ($where =~ tr/ /-/r);

	for my $first (0, 1) {
		my $name = "two stores, $first is held $where";
		my $at = "$prefix-$first";
		my $r = beside($first, 1 - $first, $at, $rule[0],
			"$at/$rule[1]");

		alone($name, $at, $first, $r);
	}
}

for my $round (1 .. 3) {
	my $at = "both-$round";
	my @rules = map { hold($_, 'PutObject', "$at/copying", 1000) } 0, 1;
	my @runs = map { start($_, bucket($at, $_)) } 0, 1;
	my @r = map { xet_wait($_) } @runs;

	is_deeply([ map { $way[$_]->used($rules[$_]) } 0, 1 ], [ 1, 1 ],
		"both have seen nothing, $round");
	alone("both have seen nothing, $round", $at, 0, \@r);
	$_->clear() for @way;
}

# the target is a folder: both runs are released together

for my $round (1 .. 3) {
	my $to = $t[0]->dir() . "/both-$round";
	my @gates = map { $_->pg_session() } @t;

	$_->run('BEGIN') for @gates;
	$_->run('LOCK TABLE xet.store IN ACCESS EXCLUSIVE MODE') for @gates;

	my @runs = map { start($_, $to) } 0, 1;

	wait_for(20, sub { !grep { !$_->pg_blocked() } @t });
	$_->run('COMMIT') for @gates;
	$_->close() for @gates;

	my @r = map { xet_wait($_) } @runs;
	my ($won) = grep { defined $r[$_]{code} && $r[$_]{code} == 0 } 0, 1;

	is(scalar(grep { ($_->{code} // 1) == 0 } @r), 1,
		"folder, round $round: one works") or diag(errors(\@r));
	whole("folder, round $round", $won, $to) if defined $won;
	like($r[1 - ($won // 0)]{err}, qr/$one/,
		"folder, round $round: and one says why");
}

# --------------------------------------------------------------------------
# two runs of "xet store copy" whose target is the source under another name:
# each run writes the object "copying" as its mark, and removes it when it fails

for my $case ([ 'the other run has ended', 2000, 0 ],
	[ 'the mark of the other run', 1000, 2500 ])
{
	my ($name, @ms) = @$case;
	my $from = bucket('late', undef);
	my @rules = map { $ms[$_] ? hold($_, 'PutObject', 'late/copying',
		$ms[$_], 'hold') : () } 0, 1;
	my @runs = start(0, bucket('late', 0), $from);

	ok(wait_for(20, sub { defined object('late/copying') }),
		"itself, $name: there is a mark");
	push @runs, start(0, bucket('late', 1), $from);

	my @r = map { xet_wait($_) } @runs;

	is_deeply([ map { $way[$_]->used($rules[$_]) } 0 .. $#rules ],
		[ (1) x @rules ], "itself, $name: held");
	is_deeply([ map { $_->{code} } @r ], [ 2, 2 ],
		"itself, $name: both are refused") or diag(errors(\@r));
	like($_->{err}, qr/source and target are the same store/,
		"itself, $name: which is said") for @r;
	is(object('late/copying'), undef, "itself, $name: no mark is left");
	is(object('late/identity'), $identity[0], "itself, $name: the store");
	$_->clear() for @way;
}

whole('the source by another name', 0, bucket('late', 0));

$t[0]->done();

# --------------------------------------------------------------------------

sub bucket {
	my ($prefix, $way) = @_;

	my $at = defined $way ? $way[$way] : $s3;

	return join(' ', $s3->url() . "/$prefix",
		'endpoint=' . $at->endpoint(), 'region=' . $s3->region(),
		'credentials=' . $s3->credentials(), 'path_style');
}

# Starts a run of one of the stores.

sub start {
	my ($store, $to, $from) = @_;

	return xet_start(undef,
		{ env => { XET_POSTGRES => $t[$store]->conninfo() } },
		'store', 'copy', '--json', '--from',
		$from // $t[$store]->store(), '--to', $to);
}

sub hold {
	my ($way, $op, $match, $ms, $do) = @_;

	return $way[$way]->add(op => $op, match => $match, ms => $ms,
		do => $do || 'wait', count => 1);
}

# Holds the first run at a request until the second run has ended.

sub beside {
	my ($first, $second, $at, $op, $match) = @_;

	my $rule = hold(0, $op, $match, 3000);
	my $held = start($first, bucket($at, 0));

	ok(wait_for(20, sub { $way[0]->used($rule) }), "$at: one is held")
		or diag(xet_wait($held)->{err});

	my $other = xet_wait(start($second, bucket($at, 1)));
	my $r = [ xet_wait($held), $other ];

	$way[0]->clear();

	return $r;
}

sub codes { return map { $_->{code} } @{ $_[0] } }
sub errors { return map { $_->{err} } @{ $_[0] } }

sub object {
	my ($name) = @_;

	return exists $s3->objects($name)->{$name}
		? $s3->get($name)->{body} : undef;
}

# Checks that exactly one run succeeds, and that the target becomes a copy of
# its store.  $r has the result of the run of store $first, then of the other
# run.

sub alone {
	my ($name, $at, $first, $r) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my ($won, @more) = grep { defined $r->[$_]{code}
		&& $r->[$_]{code} == 0 } 0, 1;

	ok(defined $won && !@more, "$name: one works") or diag(errors($r));

	$won //= 0;
	like($r->[1 - $won]{err}, qr/$one/, "$name: the other one says why");

	my $store = $won ? 1 - $first : $first;

	is(object("$at/identity"), $identity[$store], "$name: its identity");
	is(object("$at/copying"), undef, "$name: no mark is left");
	whole($name, $store, bucket($at, 0));
}

sub whole {
	my ($name, $store, $at) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $r = xet(undef, { env => {
		XET_POSTGRES => $t[$store]->conninfo() } }, 'verify',
		'--store', $at);

	is($r->{code}, 0, "$name: the store is whole")
		or diag($r->{out}, $r->{err});
}
