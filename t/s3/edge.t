#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Edges for a store in a bucket: conf/edge.conf in front of an nginx that reads
# the bucket; and an nginx with the bucket's keys, conf/xet_bucket.conf and no
# database.  The test checks the requests that each edge sends, and the
# responses while the bucket, the database, or the nginx behind the edge is
# down.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Edge;
use Test::Xet::Process qw/ slurp wait_for /;
use Test::Xet::S3;
use Test::Xet::S3Fault;

my $size = 9_000_000;
my $s3 = Test::Xet::S3->new();
my $fault = Test::Xet::S3Fault->new($s3);
my @bucket = (s3 => $s3, s3_endpoint => $fault->endpoint(),
	s3_server => '127.0.0.1:' . $fault->port());

my $origin = Test::Xet->new(@bucket, workers => 1, log => 'info',
	allow => [ qr/PostgreSQL/, qr/upstream/, qr/store/ ]);

my %edges = (
	'edge of an nginx' => Test::Xet::Edge::edge($origin),
	'edge of the bucket' => Test::Xet->new(@bucket, pg => 0, xet => 1,
		log => 'info', allow => [ qr/upstream/ ],
		directives => { map { $_ => undef } qw/ xet_postgres
			xet_dedup_key xet_url_base / },
		locations => 'include ' . Test::Xet::Process::root()
			. '/conf/xet_bucket.conf;'
			. ' location @xet_error { xet_error; }')
);

my $bare = $edges{'edge of the bucket'};

$bare->write_file('url.key', slurp($origin->dir() . '/url.key'));
$bare->write_conf();

my ($good, $said) = $bare->config_test();

ok($good, 'an edge of the bucket: nginx -t') or diag($said);
unlike($said, qr/warn|emerg/, 'has nothing to say');

$origin->run();
$_->run() for values %edges;

my $file = $origin->upload(mix(1, $size), xorb_chunks => 40);
my $old = $origin->upload(mix(2, $size), xorb_chunks => 40);

# --------------------------------------------------------------------------
# an edge reads each slice from the bucket once, for all clients

my %urls;

for my $name (sort keys %edges) {
	my $edge = $edges{$name};

	$origin->write_conf(undef,
		directives => { xet_url_base => $edge->url('') });
	$origin->reload();

	my $d = $origin->download($file->{hash}, size => $size);

	is_deeply($d->{errors}, [], "$name: what clients rely on");
	ok($d->{data} eq mix(1, $size), "$name: the same bytes");

	my $seen = gets();

	$d = $origin->download($file->{hash}, size => $size);
	ok($d->{data} eq mix(1, $size), "$name: again");
	is(gets(), $seen, "$name: from its cache");

	my ($entry) = @{ $urls{$name} = [ entries($file) ] };
	my ($path, $range) = @$entry;

	(my $forged = $path) =~ s/&s=(.)/'&s=' . ($1 eq 'A' ? 'B' : 'A')/e;

	is($edge->get($forged, { Range => "bytes=$range" })->{status}, 403,
		"$name: cached, and another signature");
	is($edge->get($path, { Range => 'bytes=0-' . (2 * $size) })->{status},
		403, "$name: cached, and another range");
	is($edge->get($path, { Range => "bytes=$range",
		'If-None-Match' => '"' . ($path =~ m!/(\w{64}\.\w{8})\?!)[0]
			. '"' })->{status}, 304, "$name: 304");
}

is($bare->get('/api/v1/reconstructions/' . $file->{hash})->{status}, 404,
	'an edge of the bucket has no plans');

# uploads through an edge are stored in the bucket

my $edge = $edges{'edge of an nginx'};
my $new = $edge->upload(mix(3, 3_000_000));

ok($origin->download($new->{hash})->{data} eq mix(3, 3_000_000),
	'an upload by way of an edge');

# --------------------------------------------------------------------------
# the bucket is down: an edge serves its cached slices, and 503 for other slices

my @others = entries($old);
my @last = entries($new);
my $rule = $fault->add(op => 'GetObject', do => 'status', status => 503);

for my $name (sort keys %edges) {
	is_deeply(statuses($name, @{ $urls{$name} }), [ 206 ],
		"without the bucket, $name: what is cached");
	is_deeply(statuses($name, @others), [ 503 ],
		"without the bucket, $name: what is not");
}

$fault->clear();

for my $name (sort keys %edges) {
	is_deeply(statuses($name, $others[0]), [ 206 ],
		"with the bucket, $name: without help");
}

# --------------------------------------------------------------------------
# the database is down: all data is still served, even data that was never
# requested before

$origin->pg_stop('immediate');

for my $name (sort keys %edges) {
	is_deeply(statuses($name, @others), [ 206 ],
		"without PostgreSQL, $name");
}

is($edge->get('/api/v1/reconstructions/' . $file->{hash})->{status}, 503,
	'without PostgreSQL there are no plans');

$origin->pg_start();

# --------------------------------------------------------------------------
# nginx behind the edge is down: reconstructions fail, but cached data is served

$origin->stop();

for my $name (sort keys %edges) {
	is_deeply(statuses($name, @{ $urls{$name} }), [ 206 ],
		"without the nginx of the database, $name");
}

is_deeply(statuses('edge of the bucket', @last), [ 206 ],
	'an edge of the bucket needs it for nothing');

for ($origin, values %edges) {
	$_->check();
	$_->remove();
}

done_testing();

# --------------------------------------------------------------------------

# Returns the paths and ranges of all data URLs of a file, newly signed.

sub entries {
	my ($of) = @_;

	my $info = $origin->get('/api/v1/reconstructions/' . $of->{hash})
		->json()->{fetch_info};

	return map { [ $_->{url} =~ s!^http://[^/]+!!r,
		"$_->{url_range}{start}-$_->{url_range}{end}" ] }
		map { @{ $info->{$_} } } sort keys %$info;
}

sub statuses {
	my ($name, @entries) = @_;

	my %seen;

	$seen{ $edges{$name}->get($_->[0], { Range => "bytes=$_->[1]" })
		->{status} }++ for @entries;

	return [ sort keys %seen ];
}

sub gets {
	return scalar grep { $_->{op} eq 'GetObject' } $fault->seen();
}
