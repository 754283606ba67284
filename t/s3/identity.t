#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A new bucket and a new database get their identity while a health request
# reads the bucket's identity: the outdated result of that request is not used.

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

# a health request reads the bucket; the store delays its response by less than
# 5 seconds, after which it would count as slow

my $rule = $fault->add(op => 'GetObject', match => 'identity', count => 1,
	do => 'hold', ms => 3500);

$t->nginx()->run();

my $c = $t->http_start('GET', '/api/health', {});

ok(wait_for(10, sub { $fault->used($rule) }), 'the bucket is being read');

# the database starts, and the server creates the identity

$t->pg_start();

my $x = make_xorb(mix(1, 300000));
my $r;

ok(wait_for(10, sub {
	$r = $t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes});
	return $r->{status} == 200;
}), 'an upload') or diag($r->{body});

ok(defined $s3->objects('a/prefix/')->{'a/prefix/identity'},
	'the bucket has an identity');
ok(!$c->closed(0.1), 'the response is still pending');

$r = $c->response('GET', timeout => 30);
$c->close();

is($r->json()->{error}{code}, 'database_unavailable',
	'the response does not report a wrong bucket');
unlike($t->log(), qr/is not the store of this database/, 'and no alert');

# from here on, the bucket has another identity, and this is reported

$s3->must('PUT', 'a/prefix/identity', body => '0' x 32 . "\n");
$t->allow(qr/is not the store of this database: it has another identity/);

ok(wait_for(20, sub {
	$t->get('/api/health', {}, timeout => 30)->{status} == 503
}), 'another bucket');

$t->done();
