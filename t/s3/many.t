#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# HEAD and DELETE for many objects of a bucket in one call, with
# build/tools/xet_s3 and a store that fails for some or all of these requests.
# The test also covers the callers of these functions: the commit of a shard, a
# dedup response, the collectors.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Process qw/ build_dir run_command /;
use Test::Xet::S3;
use Test::Xet::S3Fault;
use Time::HiRes qw/ time /;

my $tool = $ENV{XET_TEST_S3_TOOL} || build_dir() . '/tools/xet_s3';

plan(skip_all => "no $tool") unless -x $tool;

my $s3 = Test::Xet::S3->new();
my $fault = Test::Xet::S3Fault->new($s3);
my $t = Test::Xet->new(s3 => $s3, log => 'info', timeout => 600,
	s3_endpoint => $fault->endpoint(),
	s3_server => '127.0.0.1:' . $fault->port());

# --------------------------------------------------------------------------
# the client

$s3->must('PUT', name($_), body => 'x' x $_) for 0 .. 39;

is_deeply(all('head-all', 40), [ 'OK', map { "OK:$_" } 0 .. 39 ],
	'heads, with sizes');
is(delayed('HEAD', 40, sub { all('head-all', 40) }), 8,
	'as many at once as half of the connections');
is(delayed('HEAD', 10, sub { all('head-all', 10, connections => 1) }), 1,
	'one by one with one connection');

is_deeply(all('head-all', 0), [ 'OK' ], 'of nothing');
is_deeply(all('head-all', 1), [ 'OK', 'OK:0' ], 'of one');

$s3->must('DELETE', name($_)) for 3, 17;

my @here = map { $_ == 3 || $_ == 17 ? 'NOT_FOUND' : "OK:$_" } 0 .. 39;

is_deeply(all('head-all', 40), [ 'OK', @here ], 'two that are not there');

# requests that fail once, and a request that fails permanently

my $rule = $fault->add(op => 'HEAD', match => '00[5-9]', do => 'status',
	status => 503, count => 5);

is_deeply(all('head-all', 40), [ 'OK', @here ], 'five requests are repeated');
is($fault->used($rule), 5, 'they were refused');
$fault->clear();

$rule = $fault->add(op => 'HEAD', match => '020', do => 'drop', count => 1);
is_deeply(all('head-all', 40), [ 'OK', @here ], 'one dropped: repeated');
is($fault->used($rule), 1, 'one was dropped');
$fault->clear();

$fault->add(op => 'HEAD', match => '002', do => 'status', status => 503);

my $all = all('head-all', 40, timeout => 1000);

is($all->[0], 'AWAY', 'one fails for good: so does all');
is_deeply([ @$all[1, 2, 3] ], [ 'OK:0', 'OK:1', 'AWAY' ],
	'completed requests have their results');
is($all->[4], 'AWAY', 'a request without a result is no 404');
is($all->[40], 'AWAY', 'no more requests are sent');
$fault->clear();

# one delete fails: objects before it are deleted, and the next attempt deletes
# the remaining ones

$fault->add(op => 'DELETE', match => '030', do => 'status', status => 403,
	code => 'AccessDenied');
is(all('rm-all', 40)->[0], 'DENIED', 'a delete that is denied');
$fault->clear();

cmp_ok(scalar(keys %{ $s3->objects('many/') }), '<', 38, 'some are gone');
ok($s3->head(name(30))->{status} == 200, 'that one is not');
is_deeply(all('rm-all', 40), [ 'OK', ('OK') x 40 ], 'again');
is_deeply($s3->objects('many/'), {}, 'none is left');
is_deeply(all('rm-all', 40), [ 'OK', ('OK') x 40 ], 'nor is that an error');

# a store that does not respond: the wait is no longer than for one object

$s3->put(name($_), 'x') for 0 .. 39;
$s3->freeze();

my $began = time();

is(all('head-all', 40, timeout => 2000)->[0], 'AWAY', 'no answer');
cmp_ok(time() - $began, '<', 6, 'for the time of one');
$s3->thaw();

is(all('rm-all', 40)->[0], 'OK', 'it is back');

# if the bucket is missing, no object is reported as missing

is_deeply(all('head-all', 3, url => 's3://nobucket'), [ 'NO_BUCKET',
	('NO_BUCKET') x 3 ], 'no bucket');

# --------------------------------------------------------------------------
# a shard's commit

$t->allow(qr/\[crit\] .* treated as not stored until it is uploaded again/);
$t->allow(qr/\[crit\] .* xet: "s3:/);
$t->run();

my $data = random_bytes(1, 30 * 20000);
my $file = $t->upload($data, sizes => [ (20000) x 30 ], xorb_chunks => 1);

is(scalar(copies()), 30, 'xorbs in the bucket');
cmp_ok(delayed('HEAD', 30, sub { is(shard()->{status}, 200,
	'a shard of them') }), '>=', 8, 'many copies are checked at once');

# two xorbs are missing: the response names the first one in the file, and both
# are recorded

my @lost = @{ $file->{xorbs} }[7, 20];

for my $xorb (@lost) {
	$s3->must('DELETE', $_) for grep { /$xorb->{hash}/ } copies();
}

my $r = shard();

is($r->{status}, 400, 'two are missing');
like($r->{body}, qr/file $file->{hash} refers to xorb $lost[0]{hash}, /,
	'the first one is named');
is($t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NOT NULL'), 2,
	'both are recorded');

$file = $t->upload($data, sizes => [ (20000) x 30 ], xorb_chunks => 1);
is(scalar(copies()), 30, 'sent again');
is(shard()->{status}, 200, 'and the shard is accepted');

# an error on one copy is reported even if the copies checked before it exist

$rule = $fault->add(op => 'HEAD', match => $lost[0]{hash}, do => 'status',
	status => 403, code => 'AccessDenied');
is(shard()->{status}, 503, 'the state of a copy is unknown');
$fault->clear();
is($t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NOT NULL'), 0,
	'is not lost');

# a dedup response

$r = $t->get("/api/v1/chunks/default-merkledb/"
	. $file->{xorbs}[0]{chunks}[0]{hash});

SKIP: {
	skip('the chunk is not in the index', 1) if $r->{status} != 200;

	cmp_ok(delayed('HEAD', 30, sub { $t->get('/api/v1/chunks/'
		. 'default-merkledb/' . $file->{xorbs}[0]{chunks}[0]{hash}) }),
		'>=', 8, 'a dedup answer looks at many');
}

# --------------------------------------------------------------------------
# the collector

$t->sql('DELETE FROM xet.files');

my $deleted = delayed('DELETE', 30, sub {
	$t->write_conf(undef, directives => {
		xet_gc => 'on grace=0s interval=1s' });
	$t->reload();
	ok(wait_for(60, sub { !copies() }), 'xet_gc removes them');
});

cmp_ok($deleted, '>=', 8, 'many at once');
ok(wait_for(20, sub { $t->sql('SELECT count(*) FROM xet.gc_copies') == 0 }),
	'no note is left');

$t->done();

# --------------------------------------------------------------------------

sub name {
	return sprintf('many/%03d', $_[0]);
}

# Returns [ the overall result, the result for each object ].

sub all {
	my ($verb, $n, %o) = @_;

	my %all = (url => $s3->url(), endpoint => $fault->endpoint(),
		region => $s3->region(), credentials => $s3->credentials(),
		timeout => 10000, connections => 16, path_style => 1, %o);

	my ($status, $out) = run_command([ $tool, (map { "$_=$all{$_}" }
		sort keys %all), '--', $verb, 'many/', $n ]);
	my ($each) = $out =~ /^all (.*)$/m;
	my ($result) = $out =~ /^([A-Z_]+)(?: |$)/m;

	return [ $result // $out, split(' ', $each // '') ];
}

# Runs code with a slow store; returns the maximum number of concurrent requests
# of a method.

sub delayed {
	my ($method, $n, $code) = @_;

	my $rule = $fault->add(op => $method, do => 'wait', ms => 100);

	$fault->zero();
	$code->();

	my @seen = grep { $_->{method} eq $method
		&& $_->{target} =~ m!/xorbs/|/many/! } $fault->seen();

	$fault->clear($rule);

	is(scalar(@seen), $n, "$method, $n times");

	my ($now, $most) = (0, 0);

	for my $e (sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] }
		map { [ $_->{began}, 1 ], [ $_->{began} + $_->{took}, -1 ] }
		@seen)
	{
		$now += $e->[1];
		$most = $now if $now > $most;
	}

	return $most;
}

sub shard {
	return $t->post('/api/v1/shards', \$file->{shard});
}

sub copies {
	return grep { m!/xorbs/! } sort keys %{ $s3->objects() };
}
