#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Reads from a standby: misses are repeated at the primary, known data is served
# without a primary, and outdated data is served for a limited time only.  The
# test also covers conflicts, healed copies, and standbys that lag, are down,
# belong to another database or are promoted.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Metrics;
use Test::Xet::Process qw/ patience slurp /;

use Time::HiRes qw/ sleep time /;

my $tokens = Test::Xet::Token::token_location();
my %conf = (workers => 1, log => 'info',
	http => Test::Xet::Token::token_directive(), locations => <<"EOC");
location /api/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }

        location /repo/ {
            xet_api;
            xet_api_base /repo;
            xet_auth token;
            xet_access repo;
            client_max_body_size 80m;
        }

        location /xorbs/ {
            %%DATA%%
        }

        location = /metrics { xet_metrics; }
$tokens
EOC

my $t = Test::Xet->new(%conf);
my $none = '0123456789abcdef' x 4;
my $seed = 0;

$t->token_key();
$t->run();

# files that both servers have

my @old = map { $t->upload(random_bytes(++$seed, 60000), scheme => 'none') }
	1 .. 4;
my $big = $t->upload(random_bytes(++$seed, 3000000), scheme => 'none');

my $pg = $t->pg();
my $sb = $pg->standby($t->dir() . '/sb');

$sb->start();
$pg->followed($sb);

my $read = '"host=' . $sb->socket_dir() . ' user=xet dbname=xet"';

$t->stop();
$t->write_conf(undef, directives => { xet_postgres_read => "$read lag=2s" });
$t->nginx()->run();

my $other = Test::Xet->new(%conf, beside => $t,
	directives => { xet_postgres_read => "$read lag=2s" });

$other->token_key();
$other->run();

$_->fds_mark() for $t, $other;

sub readable {
	my ($n, $seconds, $node) = @_;

	return wait_for($seconds || 15, sub {
		my $m = metrics($node || $t);

		return ($m->{'xet_standby_readable{standby="1"}'} // 0) == $n;
	});
}

sub figure {
	my ($name) = @_;

	# metrics may be one second old

	my $m = metrics($t);

	return $m->{$name} // die "no $name\n";
}

sub answers { return figure('xet_standby_answers_total{standby="1"}') }

sub again {
	return figure("xet_standby_asked_again_total{reason=\"$_[0]\"}");
}

sub uri { return "/api/v2/reconstructions/$_[0]{hash}" }

# Returns the status, and the server that responded, "standby" or "primary";
# followed by "again" if a miss on the standby was repeated at the primary.

sub asked {
	my ($uri, %o) = @_;

	my ($from, $lost) = (answers(), again('missing'));
	my $r = $t->get($uri, $o{headers});

	my $who = answers() > $from ? 'standby' : 'primary';
	$who .= ', again' if again('missing') > $lost;

	return "$r->{status} $who";
}

sub frozen {
	my ($sub) = @_;

	$sb->sql('SELECT pg_wal_replay_pause()');
	wait_for(5, sub { $sb->sql('SELECT pg_get_wal_replay_pause_state()')
		eq 'paused' }) or die "it goes on\n";
	$sub->();
	$sb->sql('SELECT pg_wal_replay_resume()');
	$pg->followed($sb);
}

# --------------------------------------------------------------------------
# a standby that follows the primary

ok(readable(1), 'the standby is readable')
	or diag(substr($t->log(), -2000));
is(figure('xet_standby_nearest{standby="1"}'), 1, 'and the nearest');
ok(figure('xet_standby_answer_microseconds{standby="1"}') > 0,
	'its distance is measured');
ok(figure('xet_standby_lag_seconds{standby="1"}') < 2, 'its lag is measured');

is(asked(uri($old[0])), '200 standby', 'a reconstruction');
is(asked(uri($big), headers => { Range => 'bytes=100000-1500000' }),
	'200 standby', 'a range of one');
is(asked("/api/v1/files/$old[0]{hash}"), '200 standby', 'a file');
is(asked("/api/v1/reconstructions/$none"), '404 primary, again',
	'a missing file: the primary decides');
is(asked("/api/v1/files/$none"), '404 primary, again', 'a missing file by GET');
is(asked("/api/v1/chunks/default/$none"), '404 primary, again',
	'a missing chunk');
is($t->get("/api/v1/chunks/default/$big->{xorbs}[0]{chunks}[0]{hash}")
	->{status}, 200, 'a chunk, which is recorded');
$pg->followed($sb);
is(asked("/api/v1/chunks/default/$big->{xorbs}[0]{chunks}[0]{hash}"),
	'200 standby', 'a recorded chunk');

my $d = $t->download($big->{hash}, size => 3000000);

is_deeply($d->{errors}, [], 'what clients rely on');
is($d->{data}, random_bytes(5, 3000000), 'the same bytes');

is($sb->sql("SELECT count(*) > 0 FROM pg_stat_activity"
	. " WHERE application_name = 'nginx-xet'"), 't', 'sessions are there');
unlike($sb->log(), qr/cannot execute|read-only transaction/,
	'nothing was written to the standby');

# --------------------------------------------------------------------------
# lag of the standby hides no acknowledged data

frozen(sub {
	my $rounds = 8;

	for my $n (1 .. $rounds) {
		my $file = $t->upload(random_bytes(++$seed, 30000 + $n),
			scheme => 'none');

		is($t->get(uri($file))->{status}, 200,
			"just acknowledged, $n: its node");
		is($other->get(uri($file))->{status}, 200,
			"just acknowledged, $n: the other node");
		is($other->get("/api/v1/files/$file->{hash}")->{body},
			random_bytes($seed, 30000 + $n), "its bytes, $n");

		# a request for two files, of which the standby has one

		my $batch = $other->get('/api/v1/reconstructions?file_id='
			. "$old[1]{hash}&file_id=$file->{hash}"
			. "&file_id=$none");

		is_deeply([ $batch->{status},
			sort keys %{ $batch->json()->{files} || {} } ],
			[ 200, sort $old[1]{hash}, $file->{hash} ],
			"both in one response, $n");
	}
});

# --------------------------------------------------------------------------
# how long the standby serves outdated data

ok(readable(1), 'the standby is readable again');

my $gone = $t->upload(random_bytes(++$seed, 40000), scheme => 'none');

$pg->followed($sb);
ok(readable(1), 'readable, with a new file');

frozen(sub {
	is($t->http('DELETE', "/api/v1/files/$gone->{hash}")->{status}, 204,
		'a file is deleted');

	my $start = time();
	my $hidden = wait_for(10, sub {
		$t->get(uri($gone))->{status} == 404 });

	ok($hidden, 'gone before the standby replays that');
	cmp_ok(time() - $start, '<', patience(3), 'in the time of lag=');

	ok(readable(0), 'a standby that lags is not used');
	ok($t->wait_log(qr/not reading from standby 1 .*: it is behind/, 5),
		'which is logged');
	is($t->get(uri($old[2]))->{status}, 200, 'reads use the primary');
});

ok(readable(1), 'a standby that caught up is used');
is($t->get(uri($gone))->{status}, 404, 'the file stays deleted');

# permissions: new ones apply immediately, revoked ones end within lag=

my $mine = $t->upload(random_bytes(++$seed, 40000), scheme => 'none',
	base => '/repo/v1', headers => $t->auth('write', 'a/a'));

sub sees {
	my ($repo) = @_;

	return $t->get("/repo/v2/reconstructions/$mine->{hash}",
		$t->auth('read', $repo))->{status};
}

is(sees('a/a'), 200, 'a file of a repo');
is(sees('b/b'), 404, 'which other repos do not see');
$pg->followed($sb);
ok(readable(1), 'the standby is readable');

frozen(sub {
	$t->sql("SELECT xet.repo_set_public('a/a', true)");
	is(sees('b/b'), 200, 'a repo that has become public, at once');
	ok(readable(0), 'the standby lags too far');
});

ok(readable(1), 'and has caught up');
is(sees('b/b'), 200, 'public, by the standby');

frozen(sub {
	$t->sql("SELECT xet.repo_set_public('a/a', false)");

	my $start = time();

	ok(wait_for(10, sub { sees('b/b') == 404 }),
		'a repo that has become private');
	cmp_ok(time() - $start, '<', patience(3), 'in the time of lag=');
	is(sees('a/a'), 200, 'visible to its own tokens');
});

# --------------------------------------------------------------------------
# a healed copy: the row of the standby names a copy that is gone

ok(readable(1), 'the healed copy: readable');

my $sick = $t->upload(random_bytes(++$seed, 50000), scheme => 'none');
my $hash = $sick->{xorbs}[0]{hash};

$pg->followed($sb);
ok(readable(1), 'the healed copy: the standby has the file');

frozen(sub {
	$t->remove_copy($t->copy($hash));

	is($t->post("/api/v1/xorbs/default/$hash", $sick->{xorbs}[0]{bytes})
		->{status}, 200, 'an upload heals the xorb');

	my $before = again('changed');
	my $r = $t->get("/api/v1/files/$sick->{hash}");

	is($r->{status}, 200, 'the old row is not damage');
	is(again('changed'), $before + 1,
		'the read was repeated at the primary');
	is($r->{body}, random_bytes($seed, 50000), 'its bytes are right');
	is($t->sql('SELECT count(*) FROM xet.xorbs'
		. ' WHERE damaged_at IS NOT NULL'), 0,
		'no damage was recorded');

	is($t->get("/api/v1/chunks/default/$sick->{xorbs}[0]{chunks}[0]{hash}")
		->{status}, 200, 'the xorb is known');
});

# --------------------------------------------------------------------------
# a conflict between a query and replay

ok(readable(1), 'a conflict: readable');

{
	my $before = again('conflict');

	# replay takes the lock, and the standby cancels the query that blocks
	# replay

	my $lock = $pg->session();

	$sb->sql("ALTER SYSTEM SET max_standby_streaming_delay = '0'",
		db => 'postgres');
	$sb->sql('SELECT pg_reload_conf()', db => 'postgres');

	# a slow statement: a function that sleeps replaces the original
	# function

	$t->sql('ALTER FUNCTION xet.xorb_slices RENAME TO xorb_slices_fast');
	$t->sql(<<'EOS');
CREATE FUNCTION xet.xorb_slices(xorbs bytea[], starts integer[],
    ends integer[], with_hashes boolean)
    RETURNS TABLE (chunk_count integer, hashes bytea, raw_ends bytea,
                   stored_ends bytea, copy_id integer, stored_size bigint,
                   intact boolean)
    LANGUAGE sql STABLE
AS $$
    SELECT s.* FROM (SELECT pg_sleep(CASE WHEN pg_is_in_recovery() THEN 1.5
                                     ELSE 0 END)) w,
           xet.xorb_slices_fast(xorbs, starts, ends, with_hashes) s
$$
EOS
	$t->sql('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA xet TO xet');
	$pg->followed($sb);

	# existing sessions keep their plans for the old function

	$sb->terminate();
	$t->pg_terminate();
	ok(wait_for(10, sub { $t->get(uri($old[0]))->{status} == 200 })
		&& readable(1), 'a conflict: readable, slowly');

	my $c = $t->http_start('GET', uri($big),
		{ Range => 'bytes=100000-1500000' });

	wait_for(10, sub { $sb->sql("SELECT count(*) FROM pg_stat_activity"
		. " WHERE state = 'active' AND wait_event = 'PgSleep'") })
		or diag('it does not sleep');

	$lock->run('BEGIN');
	$lock->run('LOCK TABLE xet.xorbs IN ACCESS EXCLUSIVE MODE');
	$lock->run('SELECT txid_current()');
	$lock->run('COMMIT');

	my $r = $c->response('GET', timeout => 20);

	is($r->{status}, 200, 'a conflict: status 200');
	cmp_ok(again('conflict'), '>', $before,
		'a conflict: repeated at the primary')
		or diag(substr($t->log(), -2000));
	like($sb->log(), qr/conflict with recovery/, 'a conflict: logged');

	$lock->close() if $lock->can('close');

	$t->sql('DROP FUNCTION xet.xorb_slices');
	$t->sql('ALTER FUNCTION xet.xorb_slices_fast RENAME TO xorb_slices');
	$pg->followed($sb);
	$sb->terminate();
	$t->pg_terminate();
}

# --------------------------------------------------------------------------
# no standby is available

ok(wait_for(10, sub { $t->get(uri($old[0]))->{status} == 200 })
	&& readable(1), 'readable before it stops');

$sb->stop('immediate');

is($t->get(uri($_))->{status}, 200, 'no standby: read from the primary')
	for @old;
ok(readable(0), 'no standby: detected');
is($t->get("/api/v1/reconstructions/$none")->{status}, 404,
	'no standby: a missing file');
is(eval { $t->upload(random_bytes(++$seed, 20000), scheme => 'none')
	->{result} }, 1, 'no standby: uploads');

$sb->start();
ok(readable(1), 'the standby is back');
is(asked(uri($old[1])), '200 standby', 'and is used');

# a standby that hangs

$sb->freeze();

{
	my $start = time();

	is($t->get(uri($old[3]))->{status}, 200, 'a standby that hangs');
	cmp_ok(time() - $start, '<', patience(5),
		'a standby that hangs: a short delay');
	ok(readable(0, 10), 'a standby that hangs: detected');

	$start = time();
	is($t->get(uri($old[3]))->{status}, 200, 'after that: a read');
	cmp_ok(time() - $start, '<', patience(1), 'after that: no delay');
}

$sb->thaw();
ok(readable(1, 20), 'the standby works again');

# --------------------------------------------------------------------------
# the primary is down

{
	my $plan = $t->reconstruct($old[0]{hash})->{plan};
	my ($entry) = map { @$_ } values %{ $plan->{xorbs} };
	my ($signed) = $entry->{url} =~ m!//[^/]+(/.*)!;
	my $range = "bytes=$entry->{ranges}[0]{bytes}{start}-"
		. $entry->{ranges}[0]{bytes}{end};

	$pg->followed($sb);
	ok(readable(1), 'no primary: the standby is readable');
	ok(readable(1, 15, $other), 'no primary: likewise at another node');

	$pg->stop('immediate');

	for my $n ($t, $other) {
		is($n->get(uri($_))->{status}, 200, 'no primary: known files')
			for @old, $big;
		is($n->get("/api/v1/files/$old[0]{hash}")->{body},
			random_bytes(1, 60000), 'no primary: bytes');

		my $r = $n->get("/api/v1/reconstructions/$none");

		is($r->{status}, 503,
			'no primary: a missing file: 503');
		is($r->json()->{error}{code}, 'database_unavailable',
			'no primary: code');
		ok($r->header_value('Retry-After'),
			'no primary: Retry-After');
		is($n->get("/api/v1/files/$none")->{status}, 503,
			'no primary: a missing file by GET');
		is($n->get("/api/v1/chunks/default/$none")->{status}, 503,
			'no primary: a missing chunk');
	}

	is($t->get($signed, { Range => $range })->{status}, 206,
		'no primary: data');

	# the primary is down for longer than lag=

	sleep(3);

	is($t->get(uri($_))->{status}, 200, 'no primary for long: known files')
		for @old;

	# workers that have never connected to the primary

	$t->reload();
	ok(wait_for(15, sub { $t->get(uri($old[0]))->{status} == 200 }),
		'no primary: new workers read');

	$pg->start();
	ok(wait_for(15, sub {
		$t->get("/api/v1/reconstructions/$none")->{status} == 404 }),
		'a primary: a missing file');
	ok(readable(1), 'a primary: the standby is readable');
}

# --------------------------------------------------------------------------
# a standby that is promoted while reads use it

is($t->get(uri($old[0]))->{status}, 200, 'before it is promoted');

$sb->promote();

{
	my @bad = grep { $_->{status} != 200 } map { $t->get(uri($_)) }
		(@old) x 5;

	is(scalar @bad, 0, 'promoted: reads work');
	ok(readable(0, 10), 'promoted: not used any more')
		or diag(substr($t->log(), -1500));
	ok($t->wait_log(qr/not reading from .*: it follows another primary/, 5),
		'promoted: which is logged');

	my $files = sub { $_[0]->sql('SELECT count(*) FROM xet.files') };
	my @before = map { $files->($_) } $sb, $pg;
	my $new = $t->upload(random_bytes(++$seed, 20000), scheme => 'none');

	is($t->get(uri($new))->{status}, 200, 'promoted: new files');
	is_deeply([ map { $files->($_) } $sb, $pg ],
		[ $before[0], $before[1] + 1 ], 'promoted: no writes to it');
}

$sb->stop('fast');
$other->stop();
$t->done();
