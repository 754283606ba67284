#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Telemetry: what is kept of a report, which reports are refused, and that
# nobody ever waits for the database because of one.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::Xet;
use Test::Xet::Process qw/ patience /;

use JSON::PP ();
use Time::HiRes qw/ time /;

my $t = Test::Xet->new(log => 'info', server => <<'EOF');
location /off/ {
            xet_api;
            xet_auth       off;
            xet_api_base   /off;
            xet_telemetry  off;
        }
EOF

$t->run();
$t->fds_mark();

my $json = JSON::PP->new()->canonical()->allow_nonref();
my $n = 0;

sub report {
	my ($uri, $body, %o) = @_;

	return $t->post($uri, ref $body ? $json->encode($body) : $body,
		{ 'Content-Type' => 'application/json' }, %o);
}

# The row of a report, which comes after the answer.

sub row {
	my ($event) = @_;
	my $row;

	wait_for(5, sub {
		$row = $t->sql("SELECT json_build_array(event, session_id,"
			. ' user_agent, metrics) FROM xet.telemetry'
			. " WHERE event = '$event'");

		return defined $row && $row ne '';
	});

	return defined $row && $row ne '' ? $json->decode($row) : undef;
}

sub count {
	return $t->sql('SELECT count(*) FROM xet.telemetry');
}

sub is_taken {
	my ($r, $name) = @_;

	is_deeply([ $r->{status}, $r->{body},
		scalar $r->header_value('Content-Type') ],
		[ 200, '{}', 'application/json' ], $name);
}

sub is_refused {
	my ($r, $status, $code, $name) = @_;

	my $error = $r->json();

	is_deeply([ $r->{status}, ref $error eq 'HASH'
		? $error->{error}{code} : $r->{body} ],
		[ $status, $code ], $name);
}

# --------------------------------------------------------------------------
# what is kept

for my $uri ('/api/v1/telemetry', '/api/telemetry', '/v1/telemetry') {
	my $event = 'where' . ++$n;

	is_taken(report($uri, { event => $event, session_id => "s$n",
		user_agent => "hf_xet/$n", time => '2026-01-01T00:00:00Z',
		metrics => { n => $n, nested => { list => [ 1, 2.5, undef ] },
		big => 12345678901 } }), $uri);
	is_deeply(row($event), [ $event, "s$n", "hf_xet/$n", { n => $n,
		nested => { list => [ 1, 2.5, undef ] },
		big => 12345678901 } ], "$uri: the row");
}

for my $case (
	[ 'event alone', {}, [ undef, undef, undef ] ],
	[ 'userAgent', { userAgent => 'js' }, [ undef, 'js', undef ] ],
	[ 'both spellings', { userAgent => 'js', user_agent => 'py' },
		[ undef, 'py', undef ] ],
	[ 'null members', { session_id => undef, user_agent => undef,
		metrics => undef }, [ undef, undef, undef ] ],
	[ 'null and the other spelling', { user_agent => undef,
		userAgent => 'js' }, [ undef, 'js', undef ] ],
	[ 'no metrics', { metrics => {} }, [ undef, undef, {} ] ],
	[ 'unknown members', { extra => [ 1, { x => 2 } ], Event => 7 },
		[ undef, undef, undef ] ],
	[ 'quotes', { session_id => q{'; DROP TABLE xet.telemetry; --},
		user_agent => '"\\' }, [ q{'; DROP TABLE xet.telemetry; --},
		'"\\', undef ] ],
	[ 'the longest', { session_id => 's' x 128, user_agent => 'u' x 512,
		metrics => { m => 'x' x (16384 - 8) } },
		[ 's' x 128, 'u' x 512, { m => 'x' x (16384 - 8) } ] ],
	[ 'empty texts', { session_id => '', user_agent => '' },
		[ '', '', undef ] ],
) {
	my ($name, $members, $want) = @$case;
	my $event = 'what' . ++$n;

	is_taken(report('/api/v1/telemetry', { event => $event, %$members }),
		$name);
	is_deeply(row($event), [ $event, @$want ], "$name: the row");
}

is_taken(report('/api/v1/telemetry', '{"event":"' . ('e' x 128) . '"}'),
	'the longest event');
ok(row('e' x 128), 'the longest event: the row');

# UTF-8, in escapes and plain

is_taken(report('/api/v1/telemetry', "{\"event\":\"utf\",\"session_id\":"
	. "\"\xc3\xbc\\u00fc\",\"metrics\":{\"\xe2\x82\xac\":\"\\u20ac\"}}"),
	'UTF-8');
ok(row('utf'), 'UTF-8: the row');
is($t->sql("SELECT count(*) FROM xet.telemetry WHERE event = 'utf'"
	. " AND session_id = U&'\\00fc\\00fc'"
	. " AND metrics->>U&'\\20ac' = U&'\\20ac'"), 1,
	'UTF-8: as it was sent');

# in pieces, and much that is not kept

is_taken(report('/api/v1/telemetry', { event => 'pieces', pad => 'x' x 9000,
	session_id => 'p' }, chunked => 7), 'in pieces');
is_deeply(row('pieces'), [ 'pieces', 'p', undef, undef ],
	'in pieces: the row');

my $full = '{"event":"full","pad":"';

$full .= ('x' x (1048576 - length($full) - 2)) . '"}';

is(length($full), 1048576, '1 MiB');
is_taken(report('/api/v1/telemetry', $full), '1 MiB');
ok(row('full'), '1 MiB: the row');

# --------------------------------------------------------------------------
# what is refused

my $rows = count();

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

# nginx's own limit holds at the root

is(report('/v1/telemetry', "$full ")->{status}, 413, 'root: more than 1 MiB');
is(report('/v1/telemetry', 'x')->{status}, 400, 'root: no JSON');

for my $method (qw/ GET HEAD PUT DELETE /) {
	is($t->http($method, '/v1/telemetry')->{status}, 405,
		"root: $method");
}

# what was refused before a good one would be there when the good one is

is_taken(report('/api/v1/telemetry', { event => 'after' }), 'a good one');
ok(row('after'), 'a good one: the row');
is(count(), $rows + 1, 'nothing of what was refused is kept');

# --------------------------------------------------------------------------
# off

is_taken(report('/off/v1/telemetry', { event => 'off' }), 'off');
is_taken(report('/off/telemetry', 'anything'), 'off: anything will do');
is_taken(report('/off/telemetry', 'x' x 500000), 'off: much of it');

is_taken(report('/api/v1/telemetry', { event => 'on' }), 'on again');
ok(row('on'), 'on again: the row');
is(count(), $rows + 2, 'off: nothing is kept');

# --------------------------------------------------------------------------
# the table is locked

my $write = sub { $t->get('/api/health')->json()->{postgres}{write} };
my $lock = $t->pg_lock('xet.telemetry');

my $from = time();

is_taken(report('/api/v1/telemetry', { event => 'locked' }), 'locked');
ok(wait_for(5, sub { $write->()->{in_flight} }), 'locked: it waits');

is_taken(report('/api/v1/telemetry', { event => "locked$_" }),
	"locked: report $_") for 1 .. 40;

# what waits for the lock is bounded, in number and in time, and holds up
# nobody's upload; the rest is dropped

my $lane = $write->();

cmp_ok($lane->{in_flight} + $lane->{waiting}, '<', $lane->{sessions},
	'locked: sessions are left');

my $xorb = make_xorb(random_bytes(7, 5000));

is($t->post("/api/v1/xorbs/default/$xorb->{hash}", \$xorb->{bytes}, {},
	timeout => 5)->{status}, 200, 'locked: uploads go on');
is($t->get('/api/v1/reconstructions/' . '0' x 64)->{status}, 200,
	'locked: reads go on');

cmp_ok(time() - $from, '<', patience(6), 'locked: the answers come at once');

ok(wait_for(10, sub { my $l = $write->(); !$l->{in_flight}
	&& !$l->{waiting} }), 'locked: nothing waits for long');

$lock->run('COMMIT');

cmp_ok(count() - $rows - 2, '<', 10, 'unlocked: few were kept');

is_taken(report('/api/v1/telemetry', { event => 'unlocked' }), 'unlocked');
ok(row('unlocked'), 'unlocked: the row');

# --------------------------------------------------------------------------
# without a database

$t->pg_stop('immediate');

ok(wait_for(10, sub { $t->get('/api/health')->{status} == 503 }),
	'no database');

$from = time();

is_taken(report('/api/v1/telemetry', { event => "none$_" }),
	"no database: report $_") for 1 .. 3;
cmp_ok(time() - $from, '<', patience(3),
	'no database: the answers come at once');

$t->pg_start();

# sessions for writes come back by themselves, and not with those for reads

ok(wait_for(20, sub { $t->get('/api/health')->{status} == 200
	&& $write->()->{ready} }), 'a database again');
is_taken(report('/api/v1/telemetry', { event => 'again' }), 'again');
ok(row('again'), 'again: the row');

# a full table takes no more

$t->sql('ANALYZE xet.telemetry');
$t->sql("UPDATE pg_class SET reltuples = 200000"
	. " WHERE oid = 'xet.telemetry'::regclass");
$rows = count();

is_taken(report('/api/v1/telemetry', { event => 'toomuch' }),
	'a full table');
is_taken(report('/api/v1/telemetry', { event => "toomuch$_" }),
	"a full table, $_") for 1 .. 5;
ok(wait_for(5, sub { my $l = $write->(); !$l->{in_flight}
	&& !$l->{waiting} }), 'a full table: nothing waits');
is(count(), $rows, 'a full table: nothing is kept');

$t->done();
