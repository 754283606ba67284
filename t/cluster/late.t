#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Statements wait in the sockets of PostgreSQL while its sessions are stopped.
# The clients give up, repeat the requests at another node, and continue there.
# When the sessions continue, they skip statements older than five seconds.  If
# the client still waits, its statement is sent again, and takes effect once.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ module_table /;
use Test::Xet::Table;
use Test::Xet::Token;

use Time::HiRes qw/ sleep /;

my @hub = Test::Xet::Table::hub('xet_auth off;',
	"location /api/v1/ {\n xet_api; xet_auth off; xet_access store; }");

@hub = map { s/xet_delete_scope delete;//r } @hub;

my $t = Test::Xet->new(@hub, workers => 1);

$t->token_key();
$t->pg_start();
$t->write_conf(undef, directives => { xet_postgres => '"' . $t->conninfo()
	. '" writes=16' });
$t->run();

create($_) for qw/ r gone moves seen /;
is($t->post('/api/models/me/r/branch/left', '{}', js())->{status}, 200,
	'a branch');
is($t->post('/api/models/me/r/tag/main', '{"tag":"old"}', js())->{status}, 200,
	'a tag');

my $kept = $t->put('/api/v1/files', 'a file that stays')->json()->{hash};

# name, request, and a function that returns whether the request had no effect

my @acts = (
	[ 'a branch', 'POST', '/api/models/me/r/branch/late', '{}',
		sub { refs() !~ m!heads/late! } ],
	[ 'a branch that goes', 'DELETE', '/api/models/me/r/branch/left',
		undef, sub { refs() =~ m!heads/left! } ],
	[ 'a tag', 'POST', '/api/models/me/r/tag/main', '{"tag":"v"}',
		sub { refs() !~ m!tags/v! } ],
	[ 'a tag that goes', 'DELETE', '/api/models/me/r/tag/old', undef,
		sub { refs() =~ m!tags/old! } ],
	[ 'a repo', 'POST', '/api/repos/create', '{"name":"late"}', sub {
		$t->get('/api/models/me/late')->{status} != 200 } ],
	[ 'a repo that goes', 'DELETE', '/api/repos/delete',
		'{"name":"me/gone"}', sub {
		$t->get('/api/models/me/gone')->{status} == 200 } ],
	[ 'a move', 'POST', '/api/repos/move',
		'{"fromRepo":"me/moves","toRepo":"me/moved"}', sub {
		$t->get('/api/models/me/moved')->{status} != 200 } ],
	[ 'settings', 'PUT', '/api/models/me/seen/settings',
		'{"private":true}', sub { $t->sql('SELECT private'
		. " FROM xet.hub_repos WHERE name = 'seen'") eq 'f' } ],
	[ 'a DELETE', 'DELETE', "/api/v1/files/$kept", undef, sub {
		$t->get("/api/v1/files/$kept")->{status} == 200 } ],
);

# open a session for each act: the statements of the requests to "warm" wait for
# this lock, so that each needs a session of its own

my $lock = $t->pg_session();

$lock->run('BEGIN');
$lock->run('LOCK xet.repos, xet.hub_repos, xet.files IN ACCESS EXCLUSIVE MODE');

my @c = map { begin('POST', "/api/models/me/r/branch/warm$_", '{}') }
	1 .. @acts;

ok(wait_for(20, sub { $t->pg_blocked() >= @acts }), 'a session for each');
$lock->run('ROLLBACK');
$lock->close();
is(join(' ', map { $_->response('POST')->{status} } @c),
	join(' ', map { 200 } @acts), 'all sessions are idle');

# --------------------------------------------------------------------------
# the client has disconnected

frozen(6, sub {
	@c = map { begin(@$_[1 .. 3]) } @acts;

	sleep(0.5);
	$_->close() for @c;
});

settle();
ok($_->[4]->(), "$_->[0]: nothing is changed") for @acts;
like($t->log(), qr/the statement arrived too late/, 'which is logged');

# --------------------------------------------------------------------------
# the client still waits

frozen(6, sub { @c = map { begin(@$_[1 .. 3]) } @acts });
is(join(' ', map { $_->response('POST')->{status} } @c),
	join(' ', map { 200 } 2 .. @acts) . ' 204',
	'waiting clients are served');
ok(!$_->[4]->(), "$_->[0]: is changed") for @acts;

# if the sessions stop for only a second, they skip no statement

frozen(1, sub {
	@c = (begin('POST', '/api/models/me/r/branch/short', '{}'));
	sleep(0.3);
});
is($c[0]->response('POST')->{status}, 200, 'a short stop');

# --------------------------------------------------------------------------
# deadlines depend on PostgreSQL's clock

my $now = 'extract(epoch FROM clock_timestamp()) * 1000';

like($t->sql("SELECT xet.in_time(($now + 1000)::bigint)"), qr/^\d+$/,
	'in time');

for my $until ("($now - 1000)::bigint", 'NULL') {
	my $text = eval { $t->sql("SELECT xet.in_time($until)") } // $@;

	like($text, qr/too late/, "until $until: too late");
}

# all statements whose order matters have a deadline

my %acts = map { $_->{name} => 1 } grep { $_->{whom} eq 'WAITS' }
	rules();

cmp_ok(scalar keys %acts, '>=', 13, 'statements that act');
ok($acts{$_}, "$_ is one") for qw/ file_delete hub_batch hub_commit hub_create
	hub_delete hub_move hub_ref_put hub_settings repo_delete file_put
	shard_put /;

$t->done();

# --------------------------------------------------------------------------

sub frozen {
	my ($seconds, $sub) = @_;

	$t->pg_freeze(backends => 1);
	$sub->();
	sleep($seconds);
	$t->pg_thaw();
}

# Waits until all statements that have started are done.

sub settle {
	wait_for(20, sub { $t->sql('SELECT count(*) FROM pg_stat_activity'
		. " WHERE state = 'active' AND pid <> pg_backend_pid()"
		. " AND backend_type = 'client backend'") == 0 });
	sleep(0.5);
	is($t->get('/api/v1/health')->{status}, 200, 'PostgreSQL continues');
}

sub rules {
	return map { { name => $_->{name}, whom => $_->{client} } }
		@{ module_table('statements') };
}

sub js { return { 'Content-Type' => 'application/json' } }

sub begin {
	my ($method, $uri, $body) = @_;

	return $t->http_start($method, $uri, { %{ js() }, defined $body
		? ('Content-Length' => length($body)) : () }, $body,
		timeout => 60);
}

sub create {
	my ($name) = @_;

	is($t->post('/api/repos/create', qq({"name":"$name"}), js())->{status},
		200, "repo $name");
}

sub refs {
	return $t->get('/api/models/me/r/refs')->{body};
}
