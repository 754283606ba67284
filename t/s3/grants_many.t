#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Many concurrent commits of upload grants: memory use depends on the number of
# threads, not on the number of commits that wait for a thread.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Grant;
use Test::Xet::Process qw/ rss /;
use Test::Xet::S3;
use Test::Xet::S3Fault;

my $commits = 40;

my $s3 = Test::Xet::S3->new();
my $fault = Test::Xet::S3Fault->new($s3);

my $t = Test::Xet->new(s3 => $s3, workers => 1, threads => 4, log => 'info',
	s3_endpoint => $fault->endpoint(), s3_params => 'timeout=30s',
	s3_server => '127.0.0.1:' . $fault->port(),
	directives => { xet_grants => 'on' });

$t->run();

my $xorb = make_xorb(random_bytes(1, 5_000_000), scheme => 'none',
	sizes => [ 100_000 ]);
my $body = '{"length":' . length($xorb->{bytes})
	. ',"checksum":{"algo":"crc64nvme","value":"1"}}';

my @grants = map { $t->post("/api/v1/xorb-grants/default/$xorb->{hash}",
	\$body)->json() } 1 .. $commits;

# stores the bytes without a checksum, which this test does not need

$s3->put($_->{url} =~ m!^http://[^/]+/xet/([^?]+)!, $xorb->{bytes})
	for @grants;

$fault->add(op => 'GetObject', match => 'staging', do => 'hold', ms => 200);

my ($worker) = $t->worker_pids();
my $before = rss($worker);
my @c = map { $t->connect(timeout => 60) } @grants;

$c[$_]->start('POST', '/api' . commit_path($xorb, $grants[$_]),
	{ 'Content-Length' => 0 }) for 0 .. $#c;

my $most = 0;
my %status;

for my $c (@c) {
	$status{$c->response('POST')->{status}}++;

	my $now = rss($worker);

	$most = $now if $now > $most;
}

is_deeply(\%status, { 200 => $commits }, 'all are committed');
cmp_ok($most - $before, '<', 100_000, 'memory: of the threads');

$t->done();
