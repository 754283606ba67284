#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# An upload hangs before its row is inserted.  In the meantime a sweep of
# another node finds the copy without a row, and removes the copy.  PostgreSQL
# refuses the row once, and nothing is acknowledged.  The test does this in a
# folder and in a bucket, with shortened ages.  It also covers an upload that is
# so slow that its first part reaches such an age.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ build_dir run_command slurp /;
use Test::Xet::S3;
use Test::Xet::S3Fault;

my $refused = qr/"xorb_(?:put|heal)" failed, SQLSTATE 40XT1: .*the copy was/;

# --------------------------------------------------------------------------
# a folder

{
	my $t = Test::Xet->new(workers => 1, log => 'info', stalls => 1);

	$t->run();
	$t->let_age();
	$t->allow($refused);

	my $node = Test::Xet->new(workers => 1, log => 'info', beside => $t,
		directives => { xet_gc => 'on grace=1d interval=1s' });

	$node->run();

	# one xorb gets a row, because a database without any row would count as
	# too old

	is(post($t, make_xorb(mix(1, 300_000)))->{status}, 200, 'an upload');

	my $xorb = make_xorb(mix(2, 300_000));
	my $stall = $t->stall();

	$stall->hold('fsync');

	my $upload = start($t, $xorb);

	ok($stall->wait_held('fsync', 1, 30), 'the upload hangs');

	my @copies = $t->xorb_files($xorb->{hash});

	is(scalar @copies, 1, 'its copy exists');
	is(row($t, $xorb), 0, 'it has no row');

	my $old = time() - 90_000;

	utime($old, $old, $copies[0]) or die "$copies[0]: $!\n";
	$t->sql("SELECT xet.job_now('orphans')");
	ok(wait_for(60, sub { !-e $copies[0] }), 'a sweep removes it');

	age($t, '1 second');
	sleep(2);
	$stall->release('fsync');

	is($upload->response('POST')->{status}, 503,
		'the upload continues: 503');
	is(asked($t), 1, 'the row is refused once, no retry');
	is(row($t, $xorb), 0, 'no row');
	like($t->log(), qr/the copy was made \d+ seconds ago by the clock/,
		'the log says why');

	age($t, '12 hours');
	is(post($t, $xorb)->{status}, 200, 'the upload is repeated');
	is(row($t, $xorb), 1, 'a row');
	is(scalar($t->xorb_files($xorb->{hash})), 1, 'and its copy');

	# the clock of this machine determines the age of the copy

	my $ahead = make_xorb(mix(3, 300_000));

	age($t, '-1 second');
	is(post($t, $ahead)->{status}, 503, 'clocks that differ: 503');
	is(row($t, $ahead), 0, 'clocks that differ: no row');

	# another process might have inserted a row for the copy: so only a
	# sweep may remove the copy

	is(scalar($t->xorb_files($ahead->{hash})), 1,
		'clocks that differ: the copy stays');
	age($t, '12 hours');
	is(post($t, $ahead)->{status}, 200, 'clocks that differ: right again');

	$_->stop() for $node, $t;
}

# --------------------------------------------------------------------------
# while an upload hangs, "xet rebuild" inserts a row for the upload's copy,
# which is old enough; then the upload is refused, and the copy stays

{
	my $t = Test::Xet->new(workers => 1, log => 'info', stalls => 1);

	$t->run();
	$t->let_age();
	$t->allow($refused);

	is(post($t, make_xorb(mix(6, 300_000)))->{status}, 200,
		'rebuild: an upload');

	my $xorb = make_xorb(mix(7, 300_000));
	my $stall = $t->stall();

	$stall->hold('fsync');

	my $upload = start($t, $xorb);

	ok($stall->wait_held('fsync', 1, 30), 'rebuild: another upload hangs');

	my ($file) = $t->xorb_files($xorb->{hash});
	my $old = time() - 2 * 3600;

	utime($old, $old, $file) or die "utime: $!\n";

	my ($status) = run_command([ build_dir() . '/xet', 'rebuild',
		'--store', $t->store(), '--postgres', $t->conninfo() ]);

	is($status, 0, 'rebuild');
	is(row($t, $xorb), 1, 'rebuild: a row is inserted');

	age($t, '1 second');
	sleep(2);
	$stall->release('fsync');

	is($upload->response('POST')->{status}, 503, 'rebuild: 503');
	ok(!wait_for(1, sub { $t->xorb_files($xorb->{hash}) != 1 }),
		"rebuild: the row's copy exists");
	is(slurp($file), $xorb->{bytes}, 'rebuild: with its bytes');

	$t->check();
	$t->stop();
}

# --------------------------------------------------------------------------
# a bucket: an object in one piece, and an object in several parts

for my $size (300_000, 20_000_000) {
	my $s3 = Test::Xet::S3->new();
	my $fault = Test::Xet::S3Fault->new($s3);
	my $t = Test::Xet->new(s3 => $s3, workers => 1, log => 'info',
		s3_endpoint => $fault->endpoint());

	$t->run();
	$t->allow($refused);

	my $xorb = make_xorb(mix(4, $size));
	my $op = $size < 8_000_000 ? 'PutObject' : 'CompleteMultipartUpload';
	my $rule = $fault->add(op => $op, do => 'hold', ms => 3000,
		match => 'xorbs', count => 1);

	age($t, '1 second');
	is(post($t, $xorb)->{status}, 503, "$op: 503");
	is($fault->used($rule), 1, "$op: the request was delayed");
	is(asked($t), 1, "$op: the row is refused once");
	is(row($t, $xorb), 0, "$op: no row");
	is((grep { m!/xorbs/! } keys %{ $s3->objects() }), 1,
		"$op: the object stays");

	age($t, '12 hours');
	is(post($t, $xorb)->{status}, 200, "$op: again");
	is(row($t, $xorb), 1, "$op: a row");

	$t->stop();
}

# an upload that takes hours: a multipart object is as old as its first part, so
# after six hours the upload starts again as another object.  The test shifts
# nginx's clock.  In the last case the first object is older than the 12 hours
# that PostgreSQL accepts, so only the restart lets the upload succeed.

{
	my $s3 = Test::Xet::S3->new();
	my $fault = Test::Xet::S3Fault->new($s3);
	my $t = Test::Xet->new(s3 => $s3, workers => 1, log => 'info',
		stalls => 1, s3_endpoint => $fault->endpoint());

	$t->run();
	$t->allow(qr/the clock of the store is/);

	my $n = 9;
	my $known = make_xorb(mix($n, 300_000));

	is(post($t, $known)->{status}, 200, 'hours: an upload');

	for my $case ([ 'a minute less than six hours', 0, 6 * 3600 - 60, 1 ],
		[ 'a minute more than six hours', 0, 6 * 3600 + 60, 2 ],
		[ 'thirteen hours', -13 * 3600, 0, 2 ])
	{
		my ($name, $begin, $end, $uploads) = @$case;
		my $xorb = make_xorb(random_bytes(++$n, 20_000_000),
			scheme => 'none');
		my $rest = length($xorb->{bytes}) - 2_000_000;

		# the store refuses one request, which is signed with the old
		# time; this must not be an abort request, which is sent only
		# once

		my $moved = sub {
			$t->stall()->set_clock($_[0]);
			is($t->head("/api/v1/xorbs/default/$known->{hash}")
				->{status}, 200,
				"$name: a request to the store");
		};

		$moved->($begin);
		$fault->zero();

		my $c = $t->connect();

		$c->start('POST', "/api/v1/xorbs/default/$xorb->{hash}",
			{ 'Content-Length' => length($xorb->{bytes}) });
		$c->send(substr($xorb->{bytes}, 0, $rest));
		ok(wait_for(30, sub { taken($fault, 'UploadPart') > 0 }),
			"$name: a part is stored");

		$moved->($end);
		$c->send(substr($xorb->{bytes}, $rest));
		is($c->response('POST', timeout => 60)->{status}, 200,
			"$name: 200");
		is(row($t, $xorb), 1, "$name: a row");

		my ($object) = grep { m!/$xorb->{hash}! }
			keys %{ $s3->objects() };
		my @begun = taken($fault, 'CreateMultipartUpload');

		is(scalar @begun, $uploads, "$name: number of uploads");
		like($begun[-1]{target}, qr!/\Q$object\E\?!,
			"$name: the last upload is the object");
		ok(wait_for(10, sub { taken($fault, 'AbortMultipartUpload')
			== $uploads - 1 }),
			"$name: the other uploads are aborted");
		is($s3->get($object)->{body} eq $xorb->{bytes}, 1,
			"$name: its bytes");
	}

	$t->stop();
}

# a delay between the first statement and the healing statement

my $s3 = Test::Xet::S3->new();
my $fault = Test::Xet::S3Fault->new($s3);
my $t = Test::Xet->new(s3 => $s3, workers => 1, log => 'info',
	s3_endpoint => $fault->endpoint(), s3_params => 'timeout=20s');

$t->run();
$t->allow($refused);
$t->allow(qr/can't be read|damaged|missing/);

my $xorb = make_xorb(mix(5, 300_000));

is(post($t, $xorb)->{status}, 200, 'heal: a xorb');
$s3->delete($_) for grep { m!/xorbs/! } keys %{ $s3->objects() };

my $rule = $fault->add(op => 'HeadObject', match => 'xorbs', do => 'hold',
	ms => 6000, count => 1);

age($t, '4 seconds');
is(post($t, $xorb)->{status}, 503, 'heal: 503');
is($fault->used($rule), 1, 'heal: the copy was looked for');
is(asked($t), 2, 'heal: one insert and one heal');
like($t->log(), qr/"xorb_heal" failed.*the copy was made/, 'heal: reason');
is(whole($t), 0, 'heal: the xorb counts as damaged');
age($t, '12 hours');
is(post($t, $xorb)->{status}, 200, 'heal: again');
is(whole($t), 1, 'heal: the xorb is intact');

$t->done();

# --------------------------------------------------------------------------

sub start {
	my ($t, $xorb) = @_;

	my $c = $t->connect();

	$c->start('POST', "/api/v1/xorbs/default/$xorb->{hash}",
		{ 'Content-Length' => length($xorb->{bytes}) });
	$c->send($xorb->{bytes});

	return $c;
}

sub post {
	my ($t, $xorb) = @_;

	return $t->post("/api/v1/xorbs/default/$xorb->{hash}",
		\$xorb->{bytes});
}

# Returns the requests of an operation that the store accepted.

sub taken {
	my ($fault, $op) = @_;

	return grep { $_->{status} =~ /^2/ } $fault->seen($op);
}

sub row {
	my ($t, $xorb) = @_;

	return $t->sql("SELECT count(*) FROM xet.xorbs WHERE hash = '\\x"
		. plain_hash($xorb->{hash}) . "'");
}

sub whole {
	my ($t) = @_;

	return $t->sql('SELECT count(*) FROM xet.xorbs'
		. ' WHERE damaged_at IS NULL');
}

# Sets the maximum age of a copy.  A sequence counts how often the server reads
# this age, including transactions that are rolled back.

sub age {
	my ($t, $age) = @_;

	$t->sql('CREATE SEQUENCE IF NOT EXISTS public.asked;'
		. ' ALTER SEQUENCE public.asked RESTART;'
		. ' GRANT USAGE ON SEQUENCE public.asked TO PUBLIC;'
		. ' CREATE OR REPLACE FUNCTION xet.copy_age() RETURNS interval'
		. ' LANGUAGE sql VOLATILE AS'
		. " 'SELECT nextval(''public.asked'');"
		. " SELECT interval ''$age'''");
}

sub asked {
	my ($t) = @_;

	return $t->sql('SELECT CASE WHEN is_called THEN last_value ELSE 0 END'
		. ' FROM public.asked');
}
