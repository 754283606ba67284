#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The age of a standby's rows: a standby that follows the primary stays young,
# whatever the age of another standby, and however much is written.  The age of
# a standby that lags increases, even when the primary commits writes but does
# not respond to queries for its position.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Metrics;
use Test::Xet::Process qw/ patience /;

use Time::HiRes qw/ sleep time /;

my $t = Test::Xet->new(workers => 1, log => 'info',
	allow => [ qr/too many connections/ ], locations => <<'EOC');
location /api/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }

        location = /metrics { xet_metrics; }
EOC

$t->run();

my $file = $t->upload(random_bytes(1, 60000), scheme => 'none');
my $pg = $t->pg();
my $sb = $pg->standby($t->dir() . '/sb');

$sb->start();
$pg->followed($sb);

# one server with two names

my @read = map { '"host=' . $sb->socket_dir() . "$_ user=xet dbname=xet\"" }
	'', '/.';

sub reads {
	my ($value, $params) = @_;

	$t->stop();
	$t->write_conf(undef, pg_params => $params,
		directives => { xet_postgres_read => $value });
	$t->nginx()->run();
}

sub figure {
	my ($name, $n) = @_;

	return metrics($t)->{"xet_standby_$name\{standby=\"$n\"}"};
}

sub readable {
	my ($n, $is) = @_;

	return wait_for(15, sub { figure('readable', $n) == $is });
}

sub status {
	return $t->get("/api/v2/reconstructions/$_[0]{hash}")->{status};
}

# --------------------------------------------------------------------------
# two standbys follow during writes, for longer than nginx keeps the primary's
# recorded positions

reads("$read[0] lag=2s;\n    xet_postgres_read $read[1] lag=1h");
ok(readable($_, 1), "standby $_ is used") for 1, 2;

my $from = $t->log_size();
my $oldest = 0;
my $end = time() + 36;

$t->sql('CREATE TABLE public.written (n integer)');

while (time() < $end) {
	$t->sql('INSERT INTO public.written SELECT generate_series(1, 2000)');

	my $lag = figure('lag_seconds', 2);

	$oldest = $lag if $lag > $oldest;
}

unlike($t->log($from), qr/not reading from/, 'both are always used');
cmp_ok($oldest, '<', patience(4), 'and never lag');

$sb->sql('SELECT pg_wal_replay_pause()');
$t->sql('INSERT INTO public.written VALUES (1)');
sleep(4);
cmp_ok(figure('lag_seconds', 2), '>', 2, 'a standby that waits lags');
is(figure('readable', 2), 1, 'which its lag= allows');
is(figure('readable', 1), 0, 'the other standby is not used');
$sb->sql('SELECT pg_wal_replay_resume()');
$pg->followed($sb);

# --------------------------------------------------------------------------
# a primary with a session for writes, and without a session that could query
# its position

reads("$read[0] lag=2s", 'writes=1');
is($t->upload(random_bytes(2, 60000), scheme => 'none')->{result}, 1,
	'a session that writes');

my $writes = $t->sql("SELECT string_agg(pid::text, ',') FROM pg_stat_activity"
	. " WHERE usename = 'xet' AND query ~ 'shard_put|xorb_put'");

$pg->followed($sb);
ok(readable(1, 1), 'the standby is used');

$t->sql('ALTER ROLE xet CONNECTION LIMIT 0');
$t->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
	. " WHERE usename = 'xet' AND pid NOT IN ($writes)");
$pg->followed($sb);
sleep(1);
is(status($file), 200, 'reads work');

$sb->sql('SELECT pg_wal_replay_pause()');
is($t->http('DELETE', "/api/v1/files/$file->{hash}")->{status}, 204,
	'a file is deleted');

my $start = time();

ok(wait_for(10, sub {
	$t->http('DELETE', '/api/v1/files/' . '0' x 64);

	return status($file) != 200
}), 'gone, whatever lag the standby reports');
cmp_ok(time() - $start, '<', patience(5), 'in the time of lag=, or so');

$sb->sql('SELECT pg_wal_replay_resume()');
$t->sql('ALTER ROLE xet CONNECTION LIMIT -1');
ok(wait_for(15, sub { status($file) == 404 }), 'and the file is gone');

$sb->stop('fast');
$t->done();
