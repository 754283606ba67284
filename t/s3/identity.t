#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A new bucket and a new database that get their identity while a request looks
# it up: a result from before that is not used.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::S3;
use Test::Xet::S3Fault;

my $s3 = Test::Xet::S3->new();
my $fault = Test::Xet::S3Fault->new($s3);

my $t = Test::Xet->new(s3 => $s3, log => 'info',
	s3_endpoint => $fault->endpoint());

# a health request reads the bucket; its response takes less than the 5 seconds
# after which a store counts as slow

my $rule = $fault->add(op => 'GetObject', match => 'identity', count => 1,
	do => 'hold', ms => 3500);

$t->nginx()->run();

my $c = $t->http_start('GET', '/api/health', {});

ok(wait_for(10, sub { $fault->used($rule) }), 'a look at the bucket');

# the database starts, and with it the identity

$t->pg_start();

my $x = make_xorb(mix(1, 300000));
my $r;

ok(wait_for(10, sub {
	$r = $t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes});
	return $r->{status} == 200;
}), 'an upload') or diag($r->{body});

ok(defined $s3->objects('a/prefix/')->{'a/prefix/identity'},
	'the bucket has an identity');
ok(!$c->closed(0.1), 'the answer is still on its way');

$r = $c->response('GET', timeout => 30);
$c->close();

is($r->json()->{error}{code}, 'database_unavailable',
	'when it comes the bucket is not a wrong one');
unlike($t->log(), qr/is not the store of this database/, 'and no alert');

# another identity is reported from then on

$s3->must('PUT', 'a/prefix/identity', body => '0' x 32 . "\n");
$t->allow(qr/is not the store of this database: it has another identity/);

ok(wait_for(20, sub {
	$t->get('/api/health', {}, timeout => 30)->{status} == 503
}), 'another bucket');

$t->done();
