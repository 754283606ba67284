#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Telemetry: which reports are accepted and which are refused.  Reports are
# counted, and none of them waits for the database.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Metrics;
use Test::Xet::Process qw/ patience /;

use JSON::PP ();
use Time::HiRes qw/ time /;

my $t = Test::Xet->new(log => 'info',
	server => 'location = /metrics { xet_metrics; }');

$t->run();
$t->fds_mark();

my $json = JSON::PP->new()->canonical()->allow_nonref();
my $n = 0;

sub report {
	my ($uri, $body, %o) = @_;

	return $t->post($uri, ref $body ? $json->encode($body) : $body,
		{ 'Content-Type' => 'application/json' }, %o);
}

# Returns the number of reports in the metrics, by the class of their status.

sub counted {
	my ($class) = @_;

	return metrics($t)->{"xet_requests_total{route=\"telemetry\","
		. "class=\"$class\"}"} // 0;
}

my ($taken, $refused) = (0, 0);

sub is_taken {
	my ($r, $name) = @_;

	$taken++;
	is_deeply([ $r->{status}, $r->{body},
		scalar $r->header_value('Content-Type') ],
		[ 200, '{}', 'application/json' ], $name);
}

sub is_refused {
	my ($r, $status, $code, $name) = @_;

	my $error = $r->json();

	$refused++;

	is_deeply([ $r->{status}, ref $error eq 'HASH'
		? $error->{error}{code} : $r->{body} ],
		[ $status, $code ], $name);
}

# --------------------------------------------------------------------------
# accepted reports

for my $uri ('/api/v1/telemetry', '/api/telemetry', '/v1/telemetry') {
	is_taken(report($uri, { event => 'where' . ++$n, session_id => "s$n",
		user_agent => "hf_xet/$n", time => '2026-01-01T00:00:00Z',
		metrics => { n => $n, nested => { list => [ 1, 2.5, undef ] },
		big => 12345678901 } }), $uri);
}

for my $case (
	[ 'event alone', {} ],
	[ 'userAgent', { userAgent => 'js' } ],
	[ 'both spellings', { userAgent => 'js', user_agent => 'py' } ],
	[ 'null members', { session_id => undef, user_agent => undef,
		metrics => undef } ],
	[ 'null and the other spelling', { user_agent => undef,
		userAgent => 'js' } ],
	[ 'no metrics', { metrics => {} } ],
	[ 'unknown members', { extra => [ 1, { x => 2 } ], Event => 7 } ],
	[ 'quotes', { session_id => q{'; DROP TABLE xet.files; --},
		user_agent => '"\\' } ],
	[ 'the longest', { session_id => 's' x 128, user_agent => 'u' x 512,
		metrics => { m => 'x' x (16384 - 8) } } ],
	[ 'empty texts', { session_id => '', user_agent => '' } ],
) {
	is_taken(report('/api/v1/telemetry', { event => 'what',
		%{ $case->[1] } }), $case->[0]);
}

is_taken(report('/api/v1/telemetry', '{"event":"' . ('e' x 128) . '"}'),
	'the longest event');

# UTF-8, escaped and plain

is_taken(report('/api/v1/telemetry', "{\"event\":\"utf\",\"session_id\":"
	. "\"\xc3\xbc\\u00fc\",\"metrics\":{\"\xe2\x82\xac\":\"\\u20ac\"}}"),
	'UTF-8');

# reports in several parts, and with much other data

is_taken(report('/api/v1/telemetry', { event => 'pieces', pad => 'x' x 9000,
	session_id => 'p' }, chunked => 7), 'in pieces');

my $full = '{"event":"full","pad":"';

$full .= ('x' x (1048576 - length($full) - 2)) . '"}';

is(length($full), 1048576, '1 MiB');
is_taken(report('/api/v1/telemetry', $full), '1 MiB');

# --------------------------------------------------------------------------
# refused reports

for my $case (
	[ 'nothing', '' ],
	[ 'no JSON', 'event' ],
	[ 'half of it', '{"event":"x"' ],
	[ 'more than it', '{"event":"x"}{}' ],
	[ 'an array', '[{"event":"x"}]' ],
	[ 'a string', '"x"' ],
	[ 'null', 'null' ],
	[ 'no event', '{"session_id":"x"}' ],
	[ 'event: null', '{"event":null}' ],
	[ 'event: a number', '{"event":1}' ],
	[ 'event: an object', '{"event":{}}' ],
	[ 'session_id: a number', '{"event":"x","session_id":1}' ],
	[ 'user_agent: an array', '{"event":"x","user_agent":[]}' ],
	[ 'userAgent: true', '{"event":"x","userAgent":true}' ],
	[ 'metrics: a string', '{"event":"x","metrics":"{}"}' ],
	[ 'metrics: an array', '{"event":"x","metrics":[]}' ],
	[ 'a member twice', '{"event":"x","event":"y"}' ],
	[ 'NaN', '{"event":"x","metrics":{"n":NaN}}' ],
	[ 'a NUL', '{"event":"x","metrics":{"n":"\\u0000"}}' ],
	[ 'a NUL in a name', '{"event":"x\\u0000y"}' ],
	[ 'half a surrogate', '{"event":"x","session_id":"\\ud800"}' ],
	[ 'no UTF-8', "{\"event\":\"x\xff\"}" ],
	[ 'too deep', '{"event":"x","metrics":' . '{"a":' x 50 . '1'
		. '}' x 51 ],
	[ 'very deep', '[' x 500000 ],
) {
	is_refused(report('/api/v1/telemetry', $case->[1]), 400,
		'invalid_body', "refused: $case->[0]");
}

for my $case (
	[ 'more than 1 MiB', '{"event":"x","pad":"' . 'x' x 1048576 . '"}' ],
	[ '1 MiB and a byte', "$full " ],
	[ 'a long event', { event => 'e' x 129 } ],
	[ 'a long session_id', { event => 'x', session_id => 's' x 129 } ],
	[ 'a long user_agent', { event => 'x', user_agent => 'u' x 513 } ],
	[ 'a long userAgent', { event => 'x', userAgent => 'u' x 513 } ],
	[ 'large metrics', { event => 'x',
		metrics => { m => 'x' x (16385 - 8) } } ],
) {
	is_refused(report('/api/v1/telemetry', $case->[1]), 413,
		'body_too_large', "refused: $case->[0]");
	is_refused(report('/api/v1/telemetry', $case->[1], chunked => 5000),
		413, 'body_too_large', "refused: $case->[0], chunked")
		if length(ref $case->[1] ? '' : $case->[1]);
}

# for reports to the root path, nginx's own limit applies

is(report('/v1/telemetry', "$full ")->{status}, 413, 'root: more than 1 MiB');
is(report('/v1/telemetry', 'x')->{status}, 400, 'root: no JSON');

for my $method (qw/ GET HEAD PUT DELETE /) {
	is($t->http($method, '/v1/telemetry')->{status}, 405,
		"root: $method");
}

# --------------------------------------------------------------------------
# all reports are counted, including the two that were sent to the root

ok(wait_for(5, sub { counted('2xx') == $taken }), 'counted: accepted')
	or diag(counted('2xx') . " and not $taken");
ok(wait_for(5, sub { counted('4xx') == $refused + 2 }), 'counted: refused')
	or diag(counted('4xx') . " and not $refused and 2");

# --------------------------------------------------------------------------
# PostgreSQL hangs, then is down: no report waits for it

$t->pg_freeze();

my $from = time();

is_taken(report('/api/v1/telemetry', { event => "hangs$_" }),
	"PostgreSQL hangs: report $_") for 1 .. 3;
cmp_ok(time() - $from, '<', patience(3),
	'PostgreSQL hangs: immediate responses');

$t->pg_thaw();
$t->pg_stop('immediate');

ok(wait_for(10, sub { $t->get('/api/health')->{status} == 503 }),
	'no database');

$from = time();

is_taken(report('/api/v1/telemetry', { event => "none$_" }),
	"no database: report $_") for 1 .. 3;
is_refused(report('/api/v1/telemetry', 'x'), 400, 'invalid_body',
	'no database: no JSON');
cmp_ok(time() - $from, '<', patience(3),
	'no database: immediate responses');

$t->pg_start();
ok(wait_for(20, sub { $t->get('/api/health')->{status} == 200 }),
	'a database again');
is_taken(report('/api/v1/telemetry', { event => 'again' }), 'again');

$t->done();
