#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A Hub with a standby: names are looked up on the primary while it responds,
# and on the standby otherwise.  While the primary is down, a name that the
# standby does not have gives 503, not 404.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 ();
use Time::HiRes qw/ time /;

my $json = JSON::PP->new()->canonical();
my %hub = Test::Xet::Table::hub('xet_auth off;');

my $t = Test::Xet->new(%hub, workers => 1);

$t->token_key();

$t->run();

my $standby = $t->pg()->standby($t->dir() . '/sb');

$standby->start();
$t->pg()->followed($standby);
$t->allow(qr/PostgreSQL|is retried|not reading from|did not respond/);
$t->allow(qr/503 database_unavailable|statements are waiting/);
$t->stop();
$t->write_conf(undef, directives => { xet_postgres_read => '"host='
	. $standby->socket_dir() . ' user=xet dbname=xet" lag=600s' });
$t->nginx()->run();

is($t->post('/api/repos/create', '{"name":"r"}', js())->{status}, 200, 'repo');
is(commit('a', 'zero')->{status}, 200, 'a commit');
ok(wait_for(30, sub { $t->log() =~ /xet: reading from/ }), 'a standby');

# a new commit is found even if the standby lags

$standby->sql('SELECT pg_wal_replay_pause()', user => 'postgres');
is(commit('a', 'one')->{status}, 200, 'another commit');
is($t->get('/me/r/resolve/main/a')->{body}, 'one', 'it is found at once');
$standby->sql('SELECT pg_wal_replay_resume()', user => 'postgres');
$t->pg()->followed($standby);

my $head = $t->get('/api/models/me/r')->json()->{sha};
my @reads = (
	[ 'resolve', sub { $t->get('/me/r/resolve/main/a') }, qr/^one$/ ],
	[ 'head', sub { $t->http('HEAD', '/me/r/resolve/main/a') }, qr/^$/ ],
	[ 'info', sub { $t->get('/api/models/me/r') }, qr/$head/ ],
	[ 'a list', sub { $t->get('/api/models') }, qr!me/r! ],
	[ 'tree', sub { $t->get('/api/models/me/r/tree/main') },
		qr/"path":"a"/ ],
	[ 'paths', sub { $t->post('/api/models/me/r/paths-info/main',
		'{"paths":["a"]}', js()) }, qr/"path":"a"/ ],
	[ 'refs', sub { $t->get('/api/models/me/r/refs') }, qr/$head/ ],
	[ 'commits', sub { $t->get('/api/models/me/r/commits/main') },
		qr/$head/ ],
	[ 'a token', sub { $t->get('/api/models/me/r/xet-read-token/main') },
		qr/accessToken/ ],
	[ 'whoami', sub { $t->get('/api/whoami-v2') }, qr/"name"/ ],
	[ 'changes', sub { $t->get('/api/models/me/r/changes/main') },
		qr/"path" : "a"/ ],
	[ 'LFS', sub { $t->post('/me/r.git/info/lfs/objects/batch', $json
		->encode({ operation => 'download', transfers => [ 'basic' ],
			objects => [ { oid => sha256_hex('one'),
				size => 3 } ] }), js()) }, qr/"download"/ ],
);

looks('with a primary');

# the primary is killed

$t->pg()->kill();

ok(wait_for(30, sub { $t->get('/me/r/resolve/main/a')->{status} == 200 }),
	'without a primary: after a moment');
looks('without a primary');
is($t->get('/me/r/resolve/main/none')->{status}, 503,
	'a file that the standby has not: 503, not 404');
is($t->get('/api/models/me/none')->{status}, 503,
	'a repo that the standby has not: 503, not 404');
is(commit('a', 'two')->{status}, 503, 'a commit: 503');

$t->done();

# --------------------------------------------------------------------------

sub looks {
	my ($name) = @_;

	for (@reads) {
		my $r = $_->[1]->();

		ok($r->{status} == 200 && $r->{body} =~ $_->[2],
			"$name: $_->[0]") or diag($r->summary());
	}
}

sub js { return { 'Content-Type' => 'application/json' } }

sub commit {
	my ($path, $data) = @_;

	return $t->post('/api/models/me/r/commit/main', join('',
		map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 's' } },
		{ key => 'file', value => { path => $path,
			encoding => 'base64',
			content => MIME::Base64::encode_base64($data, '') } }),
		{ 'Content-Type' => 'application/x-ndjson' });
}
