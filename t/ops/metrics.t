#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Metrics: the counts of all workers, in both formats; promtool finds no errors,
# and docs/metrics.md lists the same metrics.  Also methods, formats, other
# nginx modules, servers without an API, and metrics while PostgreSQL or the
# store is unavailable.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Metrics;
use Test::Xet::Process qw/ root run_command slurp /;

use IO::Uncompress::Gunzip ();

my $two = { Test::Xet::two_workers() };
my $t = Test::Xet->new(log => 'info', workers => 2, http => <<'EOC',
gzip on;
    gzip_types text/plain application/json;
    ssi_types *;
EOC
	directives => { xet_token_key => '%%DIR%%/token.key',
		xet_token_cache => 'zone=tokens:1m' },
	server => $two->{server}, locations => <<'EOC');
xet_auth off;
xet_url_base http://127.0.0.1:%%PORT_8080%%;

location /api/ {
    xet_api;
    client_max_body_size 1m;
    error_page 413 @xet_error;
}

location /tokens/ {
    xet_api;
    xet_api_base /tokens;
    xet_auth token;
    xet_access store;
}

location /xorbs/ {
    %%DATA%%
    error_page 404 @xet_error;
}

location = /metrics { xet_metrics; }
location = /metrics.json { xet_metrics json; }
location = /also { xet_metrics prometheus; }

location = /limited {
    xet_metrics;
    limit_except POST { }
}

location = /page { ssi on; root %%DIR%%; }
location @xet_error { xet_error; }
EOC

$t->write_file('token.key', 'token:t1:' . '70' x 32 . "\n");
chmod(0600, $t->dir() . '/token.key');
$t->write_file('page', 'a<!--#include virtual="/metrics" -->b');
$t->allow(qr/xet: 4\d\d|client intended to send too large/);

$t->run();

# --------------------------------------------------------------------------
# the format

my $r = $t->get('/metrics');

is($r->{status}, 200, 'there are metrics');
is($r->header_value('Content-Type'),
	'text/plain; version=0.0.4; charset=utf-8', 'their type');
is($r->header_value('Cache-Control'), 'no-store', 'nobody keeps them');

SKIP: {
	my $file = $t->write_file('scrape', $r->{body});
	my ($status, $out) = run_command([ 'sh', '-c',
		"promtool check metrics < $file 2>&1" ]);

	skip 'no promtool', 1 if $status >> 8 == 127;

	is("$status$out", '0', 'promtool finds nothing wrong');
}

# the document: name, type, labels, help

my ($doc) = slurp(root() . '/docs/metrics.md')
	=~ /^\| name \|.*?\n\|\s*---.*?\n(.*?)\n\n/ms;
my (%told, %is);

for (split(/\n/, $doc)) {
	my ($name, $rest) = /^\| `(\w+)` \| (.*) \|$/ or die "$_\n";

	$told{$name} = $rest;
}

while ($r->{body} =~ /^# HELP (\w+) (.*)\n# TYPE \w+ (\w+)\n(\w+)(.*) /mg) {
	my ($name, $help, $type, $labels) = ($1, $2, $3, $5);

	$is{$name} = join(' | ', $type, join(', ', grep { $_ ne 'le' }
		$labels =~ /(\w+)="/g) || "\xe2\x80\x93", $help);
}

is_deeply([ map { "$_: $is{$_}" } sort keys %is ],
	[ map { "$_: " . ($told{$_} // '') } sort keys %is ],
	'all reported metrics are documented');

my $def = slurp(root() . '/src/http/base/metrics.def');

my @rows = $def =~ /^XET_METRIC\([^"]*"(xet_\w+)"/mg;

is_deeply([ sort keys %told ], [ sort 'xet_build_info', @rows ],
	'and all possible metrics');

# the reasons are the error codes of docs/api.md

my %codes = map { $_ => 1 } slurp(root() . '/docs/api.md')
	=~ /^\| `(\w+)` \| \d+(?:, \d+)* \|/mg;
my $m = parse_metrics($r->{body});

is_deeply([ sort map { /^xet_refusals_total\{reason="(\w+)"/ ? $1 : () }
	keys %$m ], [ sort 'other', keys %codes ], 'reasons');

# the routes are those of the route table

is(scalar(grep { /^xet_requests_total\{route="file_get",/ } keys %$m), 4,
	'a route has four classes');
is($m->{'xet_workers'}, 2, 'workers');
is($m->{'xet_workers_started_total'}, 2, 'workers that have started');

# --------------------------------------------------------------------------
# methods and formats

is($t->head('/metrics')->{status}, 200, 'HEAD');

$r = $t->post('/metrics', 'x');
is($r->{status}, 405, 'POST');
is($r->header_value('Allow'), 'GET, HEAD', 'POST: what is allowed');
is($r->code(), '405 method_not_allowed', 'POST: JSON');
is($t->post('/limited', 'x')->{status}, 405, 'POST within limit_except');
is($t->get('/limited')->{status}, 200, 'GET within limit_except');

my $json = $t->get('/metrics?format=json')->json();

is($json->{xet_workers}, 2, 'JSON by an argument');
is($t->get('/metrics.json')->json()->{xet_workers}, 2, 'JSON by a word');
like($t->get('/metrics.json?format=prometheus')->{body}, qr/^xet_workers 2$/m,
	'text by an argument');
is($t->get('/metrics?format=xml')->{status}, 400, 'unknown format');
is(keys %{ $json->{xet_request_duration_seconds}{health} }, 12,
	'JSON: a histogram');

for my $c ($t->connect()) {
	$c->send("GET /metrics HTTP/1.0\r\n\r\n");

	my $r = $c->response('GET');

	is($r->{status}, 200, 'HTTP/1.0');
	like($r->{body}, qr/^xet_workers 2\n/m, 'HTTP/1.0: whole');
}

$r = $t->get('/metrics', { 'Accept-Encoding' => 'gzip' });
is($r->header_value('Content-Encoding'), 'gzip', 'compressed');

my $plain = '';

IO::Uncompress::Gunzip::gunzip(\$r->{body} => \$plain);
like($plain, qr/^xet_workers 2\n/m, 'compressed: whole');

$t->allow(qr/subrequest rejected/);
unlike($t->get('/page')->{body}, qr/xet_workers/, 'not by a subrequest');

# --------------------------------------------------------------------------
# the counts after certain requests

sub change {
	my ($name, $code, %expected) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $before = metrics($t);

	$code->();

	my (%got, $now);

	# a request is counted when it ends, possibly after the client got the
	# response

	wait_for(10, sub {
		$now = metrics($t);
		%got = map { $_ => $now->{$_} - $before->{$_} } keys %expected;
		return !grep { $got{$_} != $expected{$_} } keys %expected;
	});

	is_deeply(\%got, \%expected, $name);

	return ($before, $now);
}

sub requests {
	my ($route, $class) = @_;

	return qq/xet_requests_total{route="$route",class="$class"}/;
}

# sends one request to each of the two workers

change('both workers', sub {
	for my $port (8080, 8081) {
		$t->get('/api/health/live', {}, port => $port) for 1 .. 20;
	}
}, requests(live => '2xx') => 40,
	'xet_request_duration_seconds_count{route="live"}' => 40,
	'xet_request_duration_seconds_bucket{route="live",le="+Inf"}' => 40);

my $file;

change('an upload by a client', sub { $file = $t->upload(mix(1, 300000)) },
	requests(xorb_post => '2xx') => 1, requests(shard => '2xx') => 1,
	xet_registered_bytes_total => 300000, xet_new_bytes_total => 300000);

change('the same once more', sub { $t->upload(mix(1, 300000)) },
	xet_registered_bytes_total => 300000, xet_new_bytes_total => 0);

change('a file by PUT',
	sub { $t->put('/api/v1/files', random_bytes(9, 200000)) },
	requests(file_put => '2xx') => 1, xet_registered_bytes_total => 200000,
	xet_new_bytes_total => 200000);

my ($before, $after) = change('a download', sub {
	$t->get("/api/v1/files/$file->{hash}");
}, requests(file_get => '2xx') => 1);

my $sent = 'xet_sent_bytes_total{route="file_get"}';

cmp_ok($after->{$sent} - $before->{$sent}, '>=', 300000, 'bytes sent');
cmp_ok($after->{$sent} - $before->{$sent}, '<', 302000, 'and no more');

change('data', sub { $t->download($file->{hash}, size => 300000) },
	requests(reconstruction => '2xx') => 2, requests(data => '2xx') => 1,
	'xet_responses_total{code="206"}' => 1);

change('refusals', sub {
	$t->get('/api/v1/files/' . 'f' x 64);
	$t->get('/api/v1/files/x');
	$t->get('/api/v1/nothing');
	$t->get('/tokens/v1/files/' . 'f' x 64);
	$t->http('POST', '/api/v1/shards', { 'Content-Length' => 100 << 20 });
	$t->get('/xorbs/default/ff/' . 'f' x 64);
}, map({ ("xet_refusals_total{reason=\"$_\"}" => 1) } qw/ file_not_found
	invalid_hash no_route invalid_token body_too_large
	invalid_signature /),
	requests(file_get => '4xx') => 3, requests(other => '4xx') => 1,
	requests(shard => '4xx') => 1, requests(data => '4xx') => 1,
	'xet_responses_total{code="413"}' => 1);

change('a path of a client is no label', sub {
	$t->get('/api/v1/"}\\evil');
}, requests(other => '4xx') => 1);

unlike($t->get('/metrics')->{body}, qr/evil/, 'nowhere');

# requests in progress

{
	my $c = $t->http_start('PUT', '/api/v1/files',
		{ 'Content-Length' => 100000 }, 'x' x 40000);
	my $now;

	ok(wait_for(10, sub {
		$now = metrics($t);
		return $now->{xet_uploads_in_flight_bytes} == 40000;
	}), 'bytes of an upload in flight');
	is($now->{xet_uploads_in_flight}, 1, 'an upload in flight');
	$c->abort();

	ok(wait_for(10, sub {
		$now = metrics($t);
		return $now->{xet_uploads_in_flight} == 0;
	}), 'its client has left');
	is($now->{xet_uploads_in_flight_bytes}, 0, 'and so have the bytes');
}

# two locations report the same metrics

is(parse_metrics($t->get('/also')->{body})->{'xet_workers_started_total'}, 2,
	'two locations');

# --------------------------------------------------------------------------
# figures that are queried in the background appear after some time

sub later {
	my ($name, $ok, $seconds) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $now;

	ok(wait_for($seconds || 40, sub { $now = metrics($t); $ok->($now) }),
		$name) or diag(explain({ map { $_ => $now->{$_} }
		grep { !/\{/ } keys %$now }));

	return $now;
}

my $now = later('files are counted', sub { ($_[0]->{xet_files} // 0) == 2 });

is($now->{xet_file_bytes}, 500000, 'their bytes');
is($now->{xet_xorbs}, 2, 'xorbs');
is($now->{xet_xorb_raw_bytes}, 500000, 'their bytes before compression');
is($now->{xet_damaged_xorbs}, 0, 'none is damaged');
is($now->{xet_postgres_up}, 1, 'PostgreSQL is there');
is($now->{xet_store_writable}, 1, 'the store is writable');
cmp_ok($now->{xet_store_size_bytes}, '>', $now->{xet_store_free_bytes},
	'the store has a size');

# the figures are queried at intervals, however often clients read metrics

{
	my $asked = 'xet_statements_total{pg_pool="write",result="ok"}';
	my $start = time();
	my $from = metrics($t)->{$asked};

	metrics($t) for 1 .. 300;

	my $n = metrics($t)->{$asked} - $from;

	cmp_ok($n, '<=', 1 + (time() - $start) / 10, 'asked once in a while');
}

# PostgreSQL is down

$t->allow(qr/connecting to PostgreSQL failed|terminating connection/);
$t->allow(qr/xet: 503|did not respond|failed, SQLSTATE/);
$t->sql(q{UPDATE xet.xorbs SET damaged_at = now()});
later('damage is reported', sub { $_[0]->{xet_damaged_xorbs} == 2 });

$t->pg_stop();
$now = later('PostgreSQL is away', sub { !$_[0]->{xet_postgres_up} });
is($now->{xet_files}, 2, 'the last known figures remain');
cmp_ok($now->{xet_figures_time_seconds}, '<', time() + 1, 'with its age');
is($t->get('/metrics')->{status}, 200, 'without PostgreSQL');
is($now->{'xet_sessions{pg_pool="read"}'}, 0, 'no sessions');
$t->pg_start();
later('PostgreSQL is back', sub { $_[0]->{xet_postgres_up} });

# now the store is unavailable as well

$t->allow(qr/xet: open ".*" failed|is not the store of this database/);

$t->hide_store();
$now = later('the store is gone', sub { !$_[0]->{xet_store_writable} });
is($t->get('/metrics')->{status}, 200, 'without a store');
$t->show_store();
later('the store is back', sub { $_[0]->{xet_store_writable} });

$t->check();

# --------------------------------------------------------------------------
# servers without an API

my $alone = Test::Xet->new(log => 'info', pg => 0, directives => {
	map { $_ => undef } qw/ xet_store xet_postgres xet_url_base
	xet_dedup_key xet_thread_pool / }, locations => <<'EOC');
location /xorbs/ { %%DATA%% }
location = /metrics { xet_metrics; }
EOC

$alone->run();
$alone->get('/xorbs/default/ff/' . 'f' x 64);
ok(wait_for(10, sub { $now = metrics($alone);
	$now->{requests(data => '4xx')} == 1 }), 'data only');
ok(!exists $now->{xet_postgres_up}, 'data only: nothing of PostgreSQL');
$alone->check();

$alone = Test::Xet->new(log => 'info', pg => 0, directives => {
	map { $_ => undef } qw/ xet_store xet_postgres xet_url_base xet_url_key
	xet_dedup_key xet_thread_pool / },
	locations => 'location = /metrics { xet_metrics; }');

$alone->run();
is(metrics($alone)->{xet_workers}, 1, 'nothing else at all');

# --------------------------------------------------------------------------
# configurations

for my $good ('xet_metrics;', 'xet_metrics json;', 'xet_status;',
	'xet_status repos;', 'xet_status page=/x repos;')
{
	my ($ok, $out) = $alone->config_test(undef,
		locations => "location = /m { $good }");

	ok($ok, "accepted: $good") or diag($out);
}

for (
	[ 'xet_metrics xml;', qr/invalid parameter "xml"/ ],
	[ 'xet_metrics; xet_metrics json;', qr/is duplicate/ ],
	[ 'xet_metrics json prometheus;', qr/invalid number of arguments/ ],
	[ 'xet_metrics "";', qr/invalid parameter ""/ ],
	[ 'xet_metrics; xet_status;', qr/is duplicate/ ],
	[ 'xet_status files;', qr/invalid parameter "files"/ ],
	[ 'xet_status page=x;', qr/invalid parameter "page=x"/ ],
	[ 'xet_metrics page=/x;', qr/invalid parameter "page=\/x"/ ],
	[ 'xet_status "";', qr/invalid parameter ""/ ]
) {
	my ($ok, $out) = $alone->config_test(undef,
		locations => "location = /m { $_->[0] }");

	ok(!$ok, "refused: $_->[0]");
	like($out, $_->[1], "refused: $_->[0]: why");
}

$alone->done();
