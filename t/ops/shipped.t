#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Responses with the configuration in conf: each response, from any nginx
# module, has an X-Request-Id, and missing resources cause no errors in the log.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

my $t = Test::Xet->new(workers => 1);

$t->write_conf($t->shipped_conf());
$t->run();

my $file = $t->upload(mix(1, 300000));
my $none = 'f' x 64;
my $plan = $t->get("/api/v2/reconstructions/$file->{hash}")->json();
my ($xorb) = keys %{ $plan->{xorbs} };
my $entry = $plan->{xorbs}{$xorb}[0];
my ($data) = $entry->{url} =~ m!^http://[^/]+(/.*)!;
my $bytes = $entry->{ranges}[0]{bytes};
my %range = (Range => "bytes=$bytes->{start}-$bytes->{end}");

# --------------------------------------------------------------------------
# missing resources

my $from = $t->log_size();

for (
	[ GET => "/api/v1/reconstructions/$none" ],
	[ GET => "/api/v2/reconstructions/$none" ],
	[ GET => "/api/v1/files/$none" ], [ DELETE => "/api/v1/nothing" ],
	[ GET => "/api/v1/chunks/default/$none" ],
	[ HEAD => "/api/v1/xorbs/default/$none" ],
	[ GET => "/api/v1/xorbs/default/$none" ],
	[ GET => "/api/v1/zt/$none" ], [ GET => '/api/v1/nothing' ],
	[ POST => "/api/v1/xorb-grants/default/$none", '{}' ],
	[ PUT => '/api/v1/nothing', '{}' ], [ GET => '/no/thing/at/all' ],
	[ GET => '/favicon.ico' ], [ POST => '/v1/nothing', '{}' ],
	[ GET => '/index.html' ], [ PUT => '/x', '{}' ]
) {
	my ($method, $uri, $body) = @$_;
	my $r = $t->http($method, $uri, {}, $body);

	is($r->{status}, 404, "$method $uri");
	like($r->header_value('X-Request-Id') // '', qr/^[0-9a-f]{32}$/,
		'its id');
	is($r->header_value('Content-Type'), 'application/json', 'JSON');
}

unlike(substr($t->log(), $from), qr/\[(?:error|crit|alert)\]/,
	'and no error');

# --------------------------------------------------------------------------
# X-Request-Id: existing resources, refusals of the module, nginx errors

my %seen;

sub id {
	my ($name, $status, $r) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my @ids = $r->header_value('X-Request-Id');

	is($r->{status}, $status, $name);
	ok(@ids == 1 && ($ids[0] // '') =~ /^[0-9a-f]{32}$/
		&& !$seen{$ids[0]}++, "$name: one of its own")
		or diag(explain(\@ids));
}

$t->allow(qr/client sent|client intended|xet: 4\d\d/);

id('a plan', 200, $t->get("/api/v2/reconstructions/$file->{hash}"));
id('a file', 200, $t->get("/api/v1/files/$file->{hash}"));
id('a range', 206, $t->get("/api/v1/files/$file->{hash}",
	{ Range => 'bytes=0-9' }));
id('PUT', 200, $t->put('/api/v1/files', 'x'));
id('pages', 200, $t->get('/'));
id('a repo that is not there', 404, $t->get('/api/models/no/one'));
id('health', 200, $t->get('/api/health'));
id('telemetry', 200, $t->post('/v1/telemetry', '{"event":"x"}'));
id('a bad hash', 400, $t->get('/api/v1/files/x'));
id('a method', 405, $t->http('DELETE', '/api/v1/shards'));
id('OPTIONS', 405, $t->http('OPTIONS', '/api/v1/shards'));
id('a bad shard', 400, $t->post('/api/v1/shards', 'x' x 100));
id('a coding', 415, $t->http('PUT', '/api/v1/files',
	{ 'Content-Encoding' => 'gzip' }, \'x'));
id('too large', 413, $t->http('POST', '/api/v1/shards',
	{ 'Content-Length' => 100 << 20 }));
id('data', 206, $t->get($data, \%range));
id('data: no Range', 403, $t->get($data));
id('data: not signed', 403, $t->get("/xorbs/default/ff/$none"));
id('data: a method', 405, $t->http('DELETE', $data));
id('long headers', 400, $t->get('/api/health', { 'X-Long' => 'x' x 80000 }));
id('a long line', 414, $t->get('/api/health?' . 'x' x 80000));
id('above the root', 400, $t->get('/../x'));

$t->pg_stop();
$t->allow(qr/connecting to PostgreSQL failed|terminating connection/);
$t->allow(qr/xet: 503 database_unavailable/);
ok(wait_for(20, sub { $t->get('/api/health')->{status} == 503 }),
	'PostgreSQL is away');
id('no database', 503, $t->get('/api/health'));
$t->pg_start();

# open_file_cache keeps files open that done() would report as leaked

$t->write_conf(undef);
$t->reload();

$t->done();
