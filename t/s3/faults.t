#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Failures of an object store, and the responses that clients get.  No
# acknowledged data is lost, and the server recovers on its own.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::S3;
use Test::Xet::S3Fault;

use Time::HiRes qw/ time /;

my $size = 3_000_000;
my $s3 = Test::Xet::S3->new();
my $fault = Test::Xet::S3Fault->new($s3);

my $t = Test::Xet->new(s3 => $s3, log => 'info',
	s3_endpoint => $fault->endpoint(), s3_params => 'timeout=3s',
	s3_server => '127.0.0.1:' . $fault->port());

$t->allow(qr/\[crit\] .* xet: "s3:/);
$t->allow(qr/\[crit\] .* is not the store of this database/);
$t->run();

my $n = 0;
my %files;

# --------------------------------------------------------------------------
# temporary faults

for my $case (
	[ 'a 500', do => 'status', status => 500 ],
	[ 'slow down', do => 'status', status => 503, code => 'SlowDown',
		retry_after => 1 ],
	[ 'no answer', do => 'drop' ],
	[ 'an answer that is lost', do => 'lost' ],
	[ 'a bit of the body', do => 'flip', way => 'request', at => 10000 ],
	[ 'a body that is cut', do => 'cut', way => 'request' ],
	[ 'a late answer', do => 'hold', ms => 1000 ])
{
	my ($name, @fault) = @$case;
	my $rule = $fault->add(op => 'PutObject', count => 1, @fault);

	is(put()->{status}, 200, "upload, $name");
	is($fault->used($rule), 1, "upload, $name: it was met");
	$fault->clear();
}

for my $case (
	[ 'a 500', do => 'status', status => 500 ],
	[ 'no answer', do => 'drop' ],
	[ 'a body that is cut', do => 'cut', way => 'answer' ],
	[ 'a late answer', do => 'hold', ms => 1000 ])
{
	my ($name, @fault) = @$case;
	my $rule = $fault->add(op => 'GetObject', match => 'xorbs', count => 1,
		@fault);

	ok(same(1), "download, $name");
	is($fault->used($rule), 1, "download, $name: it was met");
	$fault->clear();
}

# --------------------------------------------------------------------------
# permanent faults: 503, then recovery

my $rows = rows();

for my $case (
	[ 'a 500', do => 'status', status => 500 ],
	[ 'no answer', do => 'drop' ],
	[ 'denied', do => 'status', status => 403, code => 'AccessDenied' ],
	[ 'nothing for long', do => 'hold', ms => 6000 ])
{
	my ($name, @fault) = @$case;

	$fault->add(@fault);

	my $began = time();
	my $r = put();

	is($r->{status}, 503, "$name, always: 503");
	is(eval { $r->json()->{error}{code} }, 'storage_unavailable',
		"$name, always: why");
	ok($r->{headers}{'retry-after'}, "$name, always: Retry-After");
	cmp_ok(time() - $began, '<', 15, "$name, always: in time");

	my $known = $t->get("/api/v1/reconstructions/$files{1}");

	is($known->{status}, 200, "$name, always: plans are answered");
	is($t->get("/api/v1/files/$files{1}")->{status}, 503,
		"$name, always: a file is not to be had");
	is(rows(), $rows, "$name, always: no row");

	$fault->clear();

	ok(wait_for(10, sub { put()->{status} == 200 }), "$name: over");
	ok(same(1), "$name: over, files are there");

	$rows = rows();
}

# --------------------------------------------------------------------------
# a bit that flips while a copy is read does not reach the client

$fault->add(op => 'GetObject', match => 'xorbs', do => 'flip',
	way => 'answer', at => 20000);

my $r = $t->get("/api/v1/files/$files{2}");

ok($r->{status} != 200 || $r->{body} ne mix(2, $size),
	'wrong bytes are not the file');
isnt($r->{status}, 200, 'wrong bytes: no 200');

$fault->clear();
$t->allow(qr/\[alert\] .* can't be read: /);

# one bad read: before an error is reported or the copy is marked as damaged,
# the read is repeated

$t->sql('UPDATE xet.xorbs SET damaged_at = NULL');

for my $at (20, 20000) {
	my $rule = $fault->add(op => 'GetObject', match => 'xorbs',
		do => 'flip', way => 'answer', at => $at, count => 1);

	ok(same(2), "one bit, at $at: the file all the same");
	is($fault->used($rule), 1, "one bit, at $at: it was met");
	is(damaged(), 0, "one bit, at $at: nothing is marked");
	$fault->clear();
}

# the same for an upload of a known xorb, and for the scrub

my $again = random_bytes(77, 100_000);
my $x = make_xorb($again, scheme => 'none');
my $sent = sub { $t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes}) };

is($sent->()->{status}, 200, 'a xorb');
sleep(6);

my $once = $fault->add(op => 'GetObject', match => 'xorbs', do => 'flip',
	way => 'answer', at => 20000, count => 1);

is($sent->()->{status}, 200, 'sent again, one bit');
is($fault->used($once), 1, 'sent again, one bit: it was met');
is(damaged(), 0, 'sent again, one bit: nothing is marked');
$fault->clear();

$once = $fault->add(op => 'GetObject', match => 'xorbs', do => 'flip',
	way => 'answer', at => 20000, count => 1);
$t->write_conf(undef, directives => {
	xet_scrub => 'on rate=1g interval=1s' });
$t->reload();
ok(wait_for(60, sub { $t->sql("SELECT count(*) FROM xet.jobs_show()"
	. " WHERE name = 'scrub' AND finished_at IS NOT NULL") == 1 }),
	'the scrub, one bit');
is($fault->used($once), 1, 'the scrub, one bit: it was met');
is(damaged(), 0, 'the scrub, one bit: nothing is marked');
$fault->clear();
$t->write_conf(undef, directives => {});
$t->reload();

# --------------------------------------------------------------------------
# changing keys

$s3->rotate();
$t->give_credentials();

ok(wait_for(10, sub { put()->{status} == 200 }),
	'keys were changed: the file is read again');

$s3->rotate(file => 0);

is(put()->{status}, 503, 'keys were changed, and the file was not');

$s3->write_credentials();
$t->give_credentials();

ok(wait_for(10, sub { put()->{status} == 200 }), 'and is now');

# --------------------------------------------------------------------------
# another bucket, which is empty

my $rows_before = rows();
my $damaged = damaged();

$s3->drop_bucket();

is(put()->{status}, 503, 'no bucket: no upload');
is($t->get("/api/v1/files/$files{1}")->{status}, 503, 'no bucket: no file');

$s3->make_bucket();

# the cached identity is valid for five seconds

sleep(6);

is(put()->{status}, 503, 'an empty bucket: no upload');
is($t->get("/api/v1/files/$files{1}")->{status}, 503,
	'an empty bucket: nothing is lost');
is(rows(), $rows_before, 'an empty bucket: no row');
is(damaged(), $damaged, 'an empty bucket: nothing counts as damaged');
like($t->log(),
	qr/the bucket "s3:[^"]*" is not the store .* no object "identity"/,
	'an empty bucket: the log says what it is');
unlike($t->log(), qr/disk|folder/, 'and nothing of disks');

$t->done();

# --------------------------------------------------------------------------

sub put {
	my $r = $t->put('/api/v1/files', mix(++$n, $size));

	$files{$n} = $r->json()->{hash} if $r->{status} == 200;

	return $r;
}

sub same {
	my ($i) = @_;

	my $r = $t->get("/api/v1/files/$files{$i}");

	return $r->{status} == 200 && $r->{body} eq mix($i, $size);
}

sub rows {
	return $t->sql('SELECT count(*) FROM xet.xorbs');
}

sub damaged {
	return $t->sql('SELECT count(*) FROM xet.xorbs
		WHERE damaged_at IS NOT NULL');
}
