#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A node is frozen with complete requests in its sockets.  The clients give up,
# repeat the requests at another node, and continue there.  When the node
# continues, it starts none of these requests, and undoes no later change.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Table;
use Test::Xet::Token;

use JSON::PP ();
use MIME::Base64 ();
use Time::HiRes qw/ sleep /;

my $json = JSON::PP->new()->canonical();
my @hub = Test::Xet::Table::hub('xet_auth off;',
	"location /api/v1/ {\n xet_api; xet_delete_scope delete;\n"
	. " xet_auth off; xet_access store; client_max_body_size 80m;\n }");

@hub = map { s/xet_delete_scope delete;//r } @hub;

my $t = Test::Xet->new(@hub, workers => 1);
$t->token_key();
$t->run();

my $two = Test::Xet->new(@hub, workers => 1, beside => $t);
$two->token_key();
$two->run();

$two->allow(qr/was halted/);

# --------------------------------------------------------------------------
# the client has given up

create('r');
commit($t, 'r', inline('a', 'zero'));
create('gone');
create('seen');
is($t->post('/api/buckets/me/b', '{}', js())->{status}, 200, 'a bucket');
is($t->post('/api/models/me/r/branch/left', '{}', js())->{status}, 200,
	'a branch');

my $put = $t->put('/api/v1/files', 'a file of the store')->json()->{hash};
my $kept = $t->put('/api/v1/files', 'a file that stays')->json()->{hash};

# [ name, request, what the client does at the other node, final check ]

my @acts = (
	[ 'older content', commit_of('r', inline('a', 'one')), sub {
		commit($t, 'r', inline('a', 'one'));
		commit($t, 'r', inline('a', 'two'));
	}, sub { $t->get('/me/r/resolve/main/a')->{body} eq 'two' } ],
	[ 'a deleted file', commit_of('r', inline('b', 'back')), sub {
		commit($t, 'r', inline('b', 'back'));
		commit($t, 'r', { key => 'deletedFile',
			value => { path => 'b' } });
	}, sub { $t->get('/me/r/resolve/main/b')->{status} == 404 } ],
	[ 'a batch of a bucket', [ 'POST', '/api/buckets/me/b/batch', $json
		->encode({ type => 'addFile', path => 'x',
			xetHash => '0' x 64 }) ], sub { },
		sub { $t->sql('SELECT count(*) FROM xet.hub_paths p'
			. ' JOIN xet.hub_repos r ON r.id = p.repo_id'
			. ' WHERE r.kind = 3') == 0 } ],
	[ 'a branch', [ 'POST', '/api/models/me/r/branch/late', '{}' ], sub { },
		sub { refs() !~ /late/ } ],
	[ 'a branch that goes', [ 'DELETE', '/api/models/me/r/branch/left' ],
		sub { }, sub { refs() =~ /left/ } ],
	[ 'a tag', [ 'POST', '/api/models/me/r/tag/main', '{"tag":"v"}' ],
		sub { }, sub { refs() !~ m!tags/v! } ],
	[ 'a repo', [ 'POST', '/api/repos/create', '{"name":"late"}' ], sub { },
		sub { $t->get('/api/models/me/late')->{status} != 200 } ],
	[ 'a repo that goes', [ 'DELETE', '/api/repos/delete',
		'{"name":"me/gone"}' ], sub { },
		sub { $t->get('/api/models/me/gone')->{status} == 200 } ],
	[ 'a move', [ 'POST', '/api/repos/move',
		'{"fromRepo":"me/gone","toRepo":"me/moved"}' ], sub { },
		sub { $t->get('/api/models/me/gone')->{status} == 200 } ],
	[ 'settings', [ 'PUT', '/api/models/me/seen/settings',
		'{"private":true}' ], sub { }, sub { $t->sql('SELECT private'
		. " FROM xet.hub_repos WHERE name = 'seen'") eq 'f' } ],
	[ 'a PUT', [ 'PUT', '/api/v1/files', 'a file of the store' ], sub {
		$t->http('DELETE', "/api/v1/files/$put");
	}, sub { $t->get("/api/v1/files/$put")->{status} == 404 } ],
	[ 'a DELETE', [ 'DELETE', "/api/v1/files/$kept" ], sub {
		$t->http('DELETE', "/api/v1/files/$kept");
		$t->put('/api/v1/files', 'a file that stays');
	}, sub { $t->get("/api/v1/files/$kept")->{status} == 200 } ],
);

frozen(1, sub {
	my @c = map { [ $_, begin($two, @{ $_->[1] }) ] } @acts;

	sleep(0.3);
	$_->[1]->close() for @c;
	$_->[2]->() for @acts;
});

settle();
ok($_->[3]->(), "$_->[0]: nothing is changed") for @acts;
like($two->log(), qr/client prematurely closed|client closed the connection/,
	'which is logged');

# a request that follows another one on its connection

my $c = $two->connect();

frozen(1, sub {
	$c->start('GET', '/api/v1/health/live', {});
	$c->start('POST', '/api/models/me/r/branch/late2', js(2));
	$c->send('{}');
	sleep(0.3);
	$c->close();
});

settle();
unlike(refs(), qr/late2/, 'a pipelined request: not begun');

# --------------------------------------------------------------------------
# the client still waits

frozen(1, sub { $c = begin($two, @{ commit_of('r', inline('c', 'c')) }) });
is($c->response('POST')->{status}, 200, 'a client that waits: 200');
is($t->get('/me/r/resolve/main/c')->{body}, 'c', 'committed');

frozen(8, sub { $c = begin($two, @{ commit_of('r', inline('d', 'd')) }) });

my $r = $c->response('POST');

is($r->{status}, 503, 'stopped for long: 503') or diag($r->summary());
is($r->refusal()->[2] =~ s!.*(server_halted).*!$1!sr, 'server_halted',
	'code');
ok($r->header_value('Retry-After'), 'Retry-After');
is($t->get('/me/r/resolve/main/d')->{status}, 404, 'nothing is committed');
is($two->get('/me/r/resolve/main/c')->{body}, 'c', 'reads work');

sleep(1.5);
is(commit($two, 'r', inline('d', 'd'))->{status}, 200, 'sent again: 200');

# nginx treats a client that half-closes after its request as disconnected

$c = $two->http_start('POST', '/api/models/me/r/branch/half', js(2));
$c->send('{', more => 1);
sleep(0.3);
$c->send('}');
$c->half_close();
settle();

# --------------------------------------------------------------------------
# a commit without a parent follows the branch head that its request has seen;
# if the branch moves before PostgreSQL gets the commit, the commit has no
# effect

my $head = head();

is(commit($t, 'r', inline('a', 'three'))->{status}, 200, 'a newer commit');
my $upload = "'\\x" . '01' x 16 . "'";

is($t->sql("SELECT xet.hub_stage($upload, 0, '{5}', ARRAY['a'::bytea], '{0}',"
	. " '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}')"), 1,
	'a deletion of the path, staged');

for my $seen ([ $head, '409' ], [ head(), '200' ]) {
	is($t->sql("SELECT status FROM xet.hub_commit(ROW(0, 'me', 'r', true,"
		. " '{}', true, ''), 'main', $upload, NULL, 'x', 'late', '',"
		. " 1, '$seen->[0]')"),
		$seen->[1], "seen head $seen->[0]: $seen->[1]");
}

# two concurrent commits without a parent to the same path: both succeed, in any
# order

my $lock = $t->pg_session();
$lock->run('BEGIN');
$lock->run('SELECT FROM xet.hub_refs FOR UPDATE');

my @c = map { begin($_, @{ commit_of('r', inline('a', 'x' . $_->port())) }) }
	$t, $two;

ok(wait_for(20, sub { $t->pg_blocked() == 2 }), 'two commits at once');
$lock->run('ROLLBACK');
$lock->close();
is(join(' ', map { $_->response('POST')->{status} } @c), '200 200',
	'both are committed');

$t->done();

# --------------------------------------------------------------------------

sub frozen {
	my ($seconds, $sub) = @_;

	my @pids = $two->worker_pids();

	kill('STOP', @pids);
	$sub->();
	sleep($seconds);
	kill('CONT', @pids);
}

# Waits until all requests that the node has started are done.

sub settle {
	sleep(0.5);
	is($two->get('/api/v1/health/live')->{status}, 200,
		'the node continues');
	wait_for(20, sub { $t->sql('SELECT count(*) FROM pg_stat_activity'
		. " WHERE state = 'active' AND pid <> pg_backend_pid()"
		. " AND backend_type = 'client backend'") == 0 });
	sleep(0.3);
}

sub js { return { 'Content-Type' => 'application/json',
	$_[0] ? ('Content-Length' => $_[0]) : () } }

sub begin {
	my ($node, $method, $uri, $body) = @_;

	return $node->http_start($method, $uri, {
		'Content-Type' => $uri =~ /commit/ ? 'application/x-ndjson'
			: 'application/json',
		defined $body ? ('Content-Length' => length($body)) : () },
		$body, timeout => 60);
}

sub commit_of {
	my ($repo, @lines) = @_;

	return [ 'POST', "/api/models/me/$repo/commit/main", join('',
		map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 's' } }, @lines) ];
}

sub commit {
	my ($node, @what) = @_;

	return begin($node, @{ commit_of(@what) })->response('POST');
}

sub create {
	my ($name) = @_;

	is($t->post('/api/repos/create', qq({"name":"$name"}), js())->{status},
		200, "repo $name");
}

sub head { return $t->get('/api/models/me/r')->json()->{sha} }

sub refs {
	return $t->get('/api/models/me/r/refs')->{body};
}

sub inline {
	my ($path, $data) = @_;

	return { key => 'file', value => { path => $path,
		encoding => 'base64',
		content => MIME::Base64::encode_base64($data, '') } };
}
