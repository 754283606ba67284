#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Metrics of an object store: its requests, by method and outcome, and the
# results of upload grants.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Grant;
use Test::Xet::S3;
use Test::Xet::S3Fault;

my $s3 = Test::Xet::S3->new();
my $fault = Test::Xet::S3Fault->new($s3);

my $t = Test::Xet->new(s3 => $s3, workers => 2, log => 'info',
	s3_endpoint => $fault->endpoint(), s3_params => 'timeout=2s',
	directives => { xet_grants => 'on' },
	server => "location = /metrics {\nxet_metrics;\n}");

$t->allow(qr/\[crit\] .* xet: "s3:/);
$t->run();

my $xorb = make_xorb(mix(1, 20_000_000));
my $file;

# --------------------------------------------------------------------------
# the metrics equal the counts of the store

is(post($xorb)->{status}, 200, 'an upload');
$file = $t->upload(mix(2, 3_000_000));
is($t->get("/api/v1/files/$file->{hash}")->{status}, 200, 'a file');

same('all went well');
is(requests('PUT', '5xx') + requests('GET', '5xx'), 0, 'no errors');
is(value('xet_s3_repeats_total', method => 'PUT'), 0, 'no repeats');

my $objects = $s3->objects('a/prefix/xorbs/');
my $stored = 0;

$stored += $_ for values %$objects;

cmp_ok(value('xet_s3_bytes_total', way => 'sent') - $stored, '<', 10_000,
	'bytes: sent, and a request that ends the parts');
cmp_ok(value('xet_s3_bytes_total', way => 'sent'), '>', $stored,
	'bytes: sent, all of them');
cmp_ok(value('xet_s3_bytes_total', way => 'received'), '>',
	$stored - length($xorb->{bytes}), 'bytes: received');
is(value('xet_s3_request_duration_seconds_count', method => 'PUT'),
	requests('PUT'), 'times: each has one');
cmp_ok(value('xet_s3_request_duration_seconds_sum', method => 'PUT'), '>', 0,
	'times: which are some');
is(value('xet_s3_connections'), 0, 'connections: none is in use');

# --------------------------------------------------------------------------
# failures

$fault->add(op => 'PutObject', do => 'status', status => 500, count => 1);
is(post(make_xorb(mix(3, 300_000)))->{status}, 200, 'a 500');
same('a 500');
is(requests('PUT', '5xx'), 1, 'a 500: told');
is(value('xet_s3_repeats_total', method => 'PUT'), 1, 'a 500: sent again');

my $before = requests('PUT', 'lost');

$fault->add(op => 'PutObject', do => 'drop', count => 1);
is(post(make_xorb(mix(4, 300_000)))->{status}, 200, 'no answer');
ok(wait_for(5, sub { requests('PUT', 'lost') + value('xet_s3_repeats_total',
	method => 'PUT') > $before + 1 }), 'no answer: told');

$fault->add(op => 'HeadObject', do => 'status', status => 404, count => 1);
$fault->add(op => 'PutObject', do => 'hold', ms => 5000, count => 1);

my $upload = start(make_xorb(mix(5, 300_000)));

ok(wait_for(5, sub { value('xet_s3_connections') > 0 }),
	'one that hangs: a connection is in use');
like($upload->response('POST')->{status}, qr/^(?:200|503)$/,
	'one that hangs: an answer');
ok(wait_for(5, sub { requests('PUT', 'timeout') > 0 }),
	'one that hangs: told');

$fault->clear();
$fault->add(do => 'drop');
post(make_xorb(mix(6, 300_000))) for 1 .. 4;
ok(wait_for(10, sub {
	post(make_xorb(mix(6, 300_000)));
	return requests(undef, 'withheld') > 0;
}), 'a store that is away: not all are sent');
$fault->clear();
ok(wait_for(20, sub { post(make_xorb(mix(6, 300_000)))->{status} == 200 }),
	'a store that is away: over');

# a worker that has sent no request since the store recovered may hold back
# requests for one more second

select(undef, undef, undef, 1.5);

# --------------------------------------------------------------------------
# grants

my $good = make_xorb(mix(7, 200_000));
my $bad = make_xorb(mix(8, 200_000));
my ($one, $two, $three) = map { grant(@$_) } [ $good, $good ], [ $bad, $good ],
	[ $bad, $bad ];

is(grants(), 'given 3, committed 0, refused 0, swept 0', 'grants: given');
send_to($one, $good->{bytes});
send_to($two, $good->{bytes});
send_to($three, $bad->{bytes});
is(commit($good, $one), 200, 'grants: commit');
is(commit($bad, $two), 400, 'grants: not this xorb');
is(commit($good, $one), 404, 'grants: nothing there');
is(grants(), 'given 3, committed 1, refused 1, swept 0', 'grants: all');

# --------------------------------------------------------------------------
# counts survive the end of a worker

my $requests = requests();

$t->reload();
ok(wait_for(20, sub { value('xet_workers') == 2 }), 'a reload');
cmp_ok(requests(), '>=', $requests, 'a reload: nothing is forgotten');

# a store in a folder has no such metrics

my $folder = Test::Xet->new(workers => 1,
	server => "location = /metrics {\nxet_metrics;\n}");

$folder->run();
is(join(' ', grep { /^xet_(?:s3|grants)_.*\{/ }
	split(/\n/, $folder->get('/metrics')->{body})), '',
	'a folder: nothing of it');
$folder->stop();

$t->done();

# --------------------------------------------------------------------------

sub post {
	my ($xorb) = @_;

	return $t->post("/api/v1/xorbs/default/$xorb->{hash}",
		\$xorb->{bytes});
}

sub start {
	my ($xorb) = @_;

	my $c = $t->connect();

	$c->start('POST', "/api/v1/xorbs/default/$xorb->{hash}",
		{ 'Content-Length' => length($xorb->{bytes}) });
	$c->send($xorb->{bytes});

	return $c;
}

# Workers report every second; the worker that serves the request reports
# immediately.

sub text {
	return $t->get('/metrics')->{body};
}

sub value {
	my ($name, %labels) = @_;

	my $sum = 0;

	for my $line (split(/\n/, text())) {
		my ($n, $l, $v) = $line =~ /^(\w+)(?:\{(.*)\})? ([0-9.]+)$/
			or next;

		next if $n ne $name || grep {
			($l // '') !~ /\b$_="\Q$labels{$_}\E"/ } keys %labels;
		$sum += $v;
	}

	return $sum;
}

sub requests {
	my ($method, $result) = @_;

	return value('xet_s3_requests_total',
		$method ? (method => $method) : (),
		$result ? (result => $result) : ());
}

sub same {
	my ($name) = @_;

	my %seen;

	ok(wait_for(10, sub {
		%seen = ();
		$seen{$_->{method}}++ for $fault->seen();

		return !grep { requests($_) != ($seen{$_} // 0) }
			qw/ GET HEAD PUT POST DELETE /;
	}), "$name: as many as the store has seen") or diag(join(', ', map {
		"$_ " . requests($_) . '/' . ($seen{$_} // 0)
	} qw/ GET HEAD PUT POST DELETE /));
}

sub grants {
	my $said;

	wait_for(3, sub {
		my $now = join(', ', map { "$_ " . value('xet_grants_total',
			state => $_) } qw/ given committed refused swept /);
		my $same = $now eq ($said // '');

		$said = $now;

		return $same;
	});

	return $said;
}

# Requests a grant for one xorb, with the length and checksum of another xorb.

sub grant {
	my ($xorb, $bytes) = @_;

	my $r = $t->post("/api/v1/xorb-grants/default/$xorb->{hash}",
		\('{"length":' . length($bytes->{bytes})
		. ',"checksum":{"algo":"crc64nvme","value":"'
		. crc64($bytes->{bytes}) . '"}}'));

	die "$r->{status} $r->{body}\n" if $r->{status} != 201;

	return $r->json();
}

sub send_to {
	my ($grant, $bytes) = @_;

	my ($port, $target) = $grant->{url} =~ m!^http://[^/:]+:(\d+)(/.*)!;
	my $r = Test::Xet::HTTP->request($port, 'PUT', $target, {
		Host => "127.0.0.1:$port", %{ $grant->{headers} } }, $bytes);

	die "$r->{status} $r->{body}\n" if $r->{status} != 200;
}

sub commit {
	my ($xorb, $grant) = @_;

	return $t->post("/api/v1/xorb-commits/default/$xorb->{hash}/grant/"
		. $grant->{id}, \'')->{status};
}
