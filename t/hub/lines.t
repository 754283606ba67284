#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The cost of a branch that starts from another branch: its commits write only
# their own rows, however many files the repo has.  The test also covers the
# cost of reading such a branch, which of two branches continues a line, and how
# many branches may start from each other.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ wait_for /;
use Test::Xet::Table;
use Test::Xet::Token;

use JSON::PP ();

my %o = Test::Xet::Table::hub('xet_auth off;', <<'EOF_CONF');

        location /small/ {
            xet_hub on;
            xet_auth off;
            xet_hub_base /small;
            xet_api_base /cas;
            xet_hub_rows 1000;
        }
EOF_CONF

my $t = Test::Xet->new(%o, workers => 1);

$t->token_key();
$t->run();

my $json = JSON::PP->new()->canonical();
my $files = 20_000;

# --------------------------------------------------------------------------
# a small commit to a branch of a large repo: the location allows 1,000 rows for
# a commit, and the limit of metadata is too small for a copy of all rows

create('m');
is(commit('m', 'main', map { empty(sprintf('d%02d/f%05d', $_ % 100, $_)) }
	1 .. $files)->{status}, 200, "$files files");

my $large = head('m', 'main');

commit('m', 'main', empty("on/main-$_")) for 1 .. 3;
$t->sql("SELECT xet.quota_set('repo', xet.hub_store(h.id), NULL, NULL, NULL,"
	. " u.metadata + 200000) FROM xet.hub_repos h"
	. ' JOIN xet.repos r ON r.name = xet.hub_store(h.id)'
	. ' CROSS JOIN xet.usage_of(int8send(r.id)) u');

branch('m', 'old', $large);
branch('m', 'side', 'main');
commit('m', 'main', empty('on/main-4'));

for ([ 'a branch of an old commit', 'old', empty('s') ],
	[ 'its next commit', 'old', empty('t') ],
	[ 'a branch of the last one', 'side', empty('s') ],
	[ 'a file that it replaces', 'side', copy('d07/f00007', 'd08/f00008',
		$large), empty('new/f') ],
	[ 'a file that it deletes', 'side', gone('d11/f00011') ],
	[ 'a folder of 200', 'old', { key => 'deletedFolder',
		value => { path => 'd12' } } ],
	[ 'a branch of a branch', 'side2', empty('on/side2') ],
	[ 'and the one it began at', 'side', empty('on/side') ],
	[ 'main', 'main', empty('on/main-5') ])
{
	my ($name, $branch, @ops) = @$_;

	branch('m', 'side2', 'side') if $branch eq 'side2';

	my $rows = $t->sql('SELECT count(*) FROM xet.hub_paths');
	my $lsn = $t->sql('SELECT pg_current_wal_lsn()');
	my $r = commit('m', $branch, { base => '/small' }, @ops);

	$lsn = $t->sql("SELECT pg_current_wal_lsn() - '$lsn'");
	$rows = $t->sql('SELECT count(*) FROM xet.hub_paths') - $rows;

	is($r->{status}, 200, $name) or diag($r->summary());

	my $most = $ops[0]{key} eq 'deletedFolder' ? 201 : 5;

	cmp_ok($rows, '<=', $most, "$name: $rows rows");
	cmp_ok($lsn, '<=', 1_000_000, "$name: $lsn bytes of WAL");
}

my %expected = (main => $files + 5, old => $files + 2 - 200,
	side => $files + 3 + 2 - 1 + 1, side2 => $files + 3 + 2 - 1 + 1);

for my $branch (sort keys %expected) {
	my $r = $t->get("/api/models/me/m/revision/$branch");

	is($r->{status}, 200, "$branch: the error");
	is($t->sql('SELECT l.files FROM xet.hub_lines l JOIN xet.hub_commits c'
		. ' USING (repo_id, line) JOIN xet.hub_refs f'
		. ' USING (repo_id, oid)'
		. " WHERE f.name = 'heads/$branch'"), $expected{$branch},
		"$branch: number of files");
	is($t->sql("SELECT count(hash) FROM xet.hub_tree_rows(ROW(0, 'me', 'm',"
		. " true, '{}', true, ''), '$branch', '', true, false, NULL,"
		. ' 30000, 30000)'), $expected{$branch}, "$branch: files");
}

is($t->head('/me/m/resolve/side/d11/f00011')->{status}, 404, 'deleted');
is($t->head('/me/m/resolve/side2/d11/f00011')->{status}, 404,
	'also behind the branch that did');
is($t->head('/me/m/resolve/old/d11/f00011')->{status}, 200, 'there');
is($t->head('/me/m/resolve/old/on/main-1')->{status}, 404, 'not there yet');
is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
	'the counts are exact');

# --------------------------------------------------------------------------
# the number of buffers that a page reads: on main, the same as without
# branches; on a branch, also the buffers of rows that the page skips

my $all = "ROW(0, 'me', 'm', true, '{}', true, '')";

for my $when ('before ANALYZE', 'after ANALYZE') {
	for ([ 'main', 300, 300, 25 ], [ 'side2', 400, 400, 40 ],
		[ $large, 400, 400, 25 ])
	{
		my ($rev, $page, $folder, $one) = @$_;
		my %most = (
			"hub_tree_rows($all, '$rev', '', true, false,"
				. ' NULL, 500, 500)' => $page,
			"hub_tree_rows($all, '$rev', 'd07', false, false,"
				. ' NULL, 64, 64)' => $folder,
			"hub_paths_rows($all, '$rev', '{d07/f00007}', false)"
				=> $one,
			"hub_resolve($all, '$rev', 'd07/f00007')" => $one
		);

		$most{"hub_info($all, '$rev', true, '" . head('m', $rev)
			. "d50')"} = $page;

		for my $call (sort keys %most) {
			my $buffers = $t->pg()->buffers($call);

			cmp_ok($buffers, '<=', $most{$call}, "$when: $call:"
				. " $buffers buffers");
		}
	}

	$t->sql('ANALYZE');
}

# --------------------------------------------------------------------------
# a file that 10,000 commits have changed, read at a commit in the middle and on
# a branch from that commit: a page reads only a few rows of the file

create('log');
$t->sql(<<'EOF_SQL', timeout => 120);
INSERT INTO xet.hub_commits (repo_id, line, seq, oid, who, title)
SELECT 2, 0, n, substr(sha256(int8send(n)), 1, 20), 'me', 'c' || n
  FROM generate_series(2, 10000) n;
INSERT INTO xet.hub_paths (repo_id, line, path, since, till, folder, hash,
                           size, sha256, made)
SELECT 2, 0, f, n, CASE WHEN n = 10000 THEN 2147483647 ELSE n + 1 END, '',
       sha256('x'), 5, sha256('y'), substr(sha256(int8send(n)), 1, 20)
  FROM generate_series(2, 10000) n, unnest('{a,m,z}'::text[]) f;
UPDATE xet.hub_lines SET last = 10000, files = 3 WHERE repo_id = 2;
UPDATE xet.hub_refs SET oid = substr(sha256(int8send(10000)), 1, 20)
 WHERE repo_id = 2;
EOF_SQL

my ($middle) = $t->sql("SELECT encode(substr(sha256(int8send(5000)), 1, 20),"
	. " 'hex')");

branch('log', 'side', $middle);
is(commit('log', 'side', empty('b'))->{status}, 200, 'a commit in the middle');

for (($middle) x 3, ('side') x 3) {
	my $call = "hub_tree_rows(ROW(0, 'me', 'log', true, '{}', true, ''),"
		. " '$_', '', true, false, NULL, 1000, 500)";
	my $buffers = $t->pg()->buffers($call);

	is($t->sql("SELECT count(*) FROM xet.$call"), 4 + ($_ eq 'side'),
		"$_: rows");
	cmp_ok($buffers, '<', 300, "$_: $buffers buffers");
}

# --------------------------------------------------------------------------
# A branch that commits first does not take over the line of the branch from
# which it starts: main, or any other branch from which many branches start,
# keeps its own line.

create('rounds');
is(commit('rounds', 'main', empty('a'))->{status}, 200, 'a file');
branch('rounds', 'dev', 'main');

my %failed;

for my $n (1 .. 200) {
	for my $of ('main', $n % 5 ? () : 'dev') {
		branch('rounds', 'topic', $of, 1);

		for my $branch ('topic', $of) {
			my $r = commit('rounds', $branch, empty("$of-$n"));

			$failed{$branch}++ if $r->{status} != 200;
		}

		drop('rounds', 'topic');
	}
}

is(join(' ', %failed), '', 'all rounds are done');
is(line('rounds', 'main'), '0 0', 'main: its line goes on from none');
is((split(/ /, line('rounds', 'dev')))[1], 1, 'dev: from one');
is(scalar(my @dev = tree('rounds', 'dev')), 41, 'dev has its files');
is(scalar(my @main = tree('rounds', 'main')), 201, 'main has its files');

# --------------------------------------------------------------------------
# each branch starts from the previous one

create('chain');
commit('chain', 'main', empty('a'));

my $from = 'main';

for (1 .. 40) {
	branch('chain', "c$_", $from);

	my $r = commit('chain', "c$_", empty("on/c$_"));

	is($r->{status}, 200, "c$_") or diag($r->summary());
	$from = "c$_";
}

is((split(/ /, line('chain', 'c32')))[1], 32, 'the 32nd goes on from 32');
is(line('chain', 'c40'), line('chain', 'c32'), 'those behind it go on with it');
is(scalar(tree('chain', 'c40')), 41, 'all files of all of them');
is($t->get("/me/chain/resolve/c40/on/c$_")->{status}, 200, "c40: of c$_")
	for 1, 31 .. 34, 40;

for ([ "hub_resolve(ROW(0, 'me', 'chain', true, '{}', true, ''), 'c40',"
	. " 'on/c1')", 250 ],
	[ "hub_tree_rows(ROW(0, 'me', 'chain', true, '{}', true, ''), 'c40',"
	. " '', true, false, NULL, 500, 500)", 500 ])
{
	my ($call, $most) = @$_;
	my $buffers = $t->pg()->buffers($call);

	cmp_ok($buffers, '<=', $most, "$call: $buffers buffers");
}

is(commit('chain', 'c10', empty('b'))->{status}, 200, 'one in between');
is(commit('chain', 'c40', empty('b'))->{status}, 200, 'the last one');

my $before = state();
my $r = commit('chain', 'c35', empty('b'));

is("$r->{status} $r->{json}{details}{code}", '400 branch_too_deep',
	'one that would go on from 33') if $r->{json} = $r->json();
is(state(), $before, 'changes nothing');
branch('chain', 'again', $large = head('chain', 'c9'));
is(commit('chain', 'again', empty('b'))->{status}, 200, 'one of before');

# --------------------------------------------------------------------------
# two branches start from a line at the same time, one of them is deleted in the
# meantime, and the client repeats a commit

create('twice');
commit('twice', 'main', empty($_)) for qw/ a b /;

my $old = head('twice', 'main');

commit('twice', 'main', empty('c'));
branch('twice', $_, $old) for qw/ l r gone /;

my $session = $t->pg_session();

$session->run('BEGIN');
$session->run('SELECT FROM xet.hub_lines WHERE repo_id = (SELECT id'
	. " FROM xet.hub_repos WHERE name = 'twice') FOR UPDATE");

my @c = map { start_commit('twice', $_, gone('a'), empty("of-$_")) }
	qw/ l r gone /;

ok(wait_for(5, sub { $t->pg_blocked() >= 3 }), 'three wait');

my $delete = $t->http_start('DELETE', '/api/models/me/twice/branch/gone',
	{ 'Content-Length' => 0 }, '');

ok(wait_for(5, sub { $t->pg_blocked() >= 4 }), 'and one');
$session->run('COMMIT');
$session->close();

my @r = map { $_->response() } @c;

is(join(' ', map { $_->{status} } @r, $delete->response()),
	'200 200 200 200', 'all is done');
is(commit('twice', 'main', gone('a'), empty('of-main'))->{status}, 200,
	'main continues its line');
is(join(' ', map { $_->{path} } tree('twice', $_)), $_ eq 'main'
	? 'b c of-main' : "b of-$_", "$_ has its own") for qw/ l r main /;
is($t->sql('SELECT count(*), count(DISTINCT line) FROM xet.hub_lines'
	. " WHERE repo_id = (SELECT id FROM xet.hub_repos WHERE name ="
	. " 'twice')"), '4|4', 'each its line');
is($t->get('/api/models/me/twice/revision/' . $r[2]->json()->{commitOid})
	->{status}, 200, 'the commit of the branch that went stays');

branch('twice', 'again', $old);
$t->sql("SELECT xet.hub_stage('u', 0, '{5}', ARRAY['a'::bytea], '{0}',"
	. " '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}')");

my $call = "SELECT status, body FROM xet.hub_commit(ROW(0, 'me', 'twice', true,"
	. " '{}', true, ''), 'again', 'u', NULL, 'me', 't', '', 1)";
my @told = map { $t->sql($call) } 1 .. 2;

like($told[0], qr/^200\|[0-9a-f]{40}$/, 'a commit of a branch');
is($told[1], $told[0], 'sent again: the same response');
is($t->sql('SELECT count(*) FROM xet.hub_lines WHERE repo_id = (SELECT id'
	. " FROM xet.hub_repos WHERE name = 'twice')"), 5, 'of one line');
is(join(' ', map { $_->{path} } tree('twice', 'again')), 'b', 'done once');

# --------------------------------------------------------------------------
# a commit stores the number of its files and the sum of their sizes

is(commit('twice', 'main', { key => 'file', value => { path => 'e/f',
	encoding => 'base64', content => 'YWJj' } })->{status}, 200, 'bytes');
is(commit('twice', 'main', gone('c'))->{status}, 200, 'and one less');

is($t->sql("SELECT string_agg(c.files || ' ' || c.bytes, ', ' ORDER BY c.seq)"
	. " FROM xet.hub_commits c JOIN xet.hub_repos r ON r.id = c.repo_id"
	. " WHERE r.name = 'twice' AND c.line = 0"),
	'0 0, 1 0, 2 0, 3 0, 3 0, 4 3, 3 3', 'commits were counted');

$t->done();

# --------------------------------------------------------------------------

sub create {
	my $r = $t->post('/api/repos/create', $json->encode({ name => $_[0] }));

	is($r->{status}, 200, "repo $_[0]") or diag($r->summary());
}

sub branch {
	my ($repo, $name, $from, $quiet) = @_;

	my $r = $t->post("/api/models/me/$repo/branch/$name", $json->encode({
		startingPoint => $from }));

	is($r->{status}, 200, "$repo: branch $name") or diag($r->summary())
		unless $quiet && $r->{status} == 200;
}

sub drop {
	my ($repo, $name) = @_;

	$t->http('DELETE', "/api/models/me/$repo/branch/$name");
}

sub commit { return start_commit(@_)->response() }

sub start_commit {
	my ($repo, $branch, @ops) = @_;

	my $base = exists $ops[0]{base} ? (shift @ops)->{base} : '';
	my $body = join('', map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 's' } }, @ops);

	return $t->http_start('POST',
		"$base/api/models/me/$repo/commit/$branch", {
		'Content-Type' => 'application/x-ndjson',
		'Content-Length' => length($body) }, $body, timeout => 120);
}

sub empty {
	return { key => 'file', value => { path => $_[0], content => '' } };
}

sub gone { return { key => 'deletedFile', value => { path => $_[0] } } }

sub copy {
	my ($path, $from, $rev) = @_;

	return { key => 'copyFile', value => { path => $path, srcPath => $from,
		srcRevision => $rev } };
}

sub head {
	my ($repo, $rev) = @_;

	return $t->get("/api/models/me/$repo/revision/$rev")->json()->{sha};
}

sub tree {
	my ($repo, $rev) = @_;

	my $next = "/api/models/me/$repo/tree/$rev?recursive=1";
	my @all;

	while ($next) {
		my $r = $t->get($next);

		push @all, grep { $_->{type} eq 'file' } @{ $r->json() };
		$next = ($r->header_value('Link') // '')
			=~ m!<http://[^/]+([^>]+)>! ? $1 : undef;
	}

	return @all;
}

# Returns the line of a branch, and the number of lines below it.

sub line {
	my ($repo, $branch) = @_;

	return $t->sql("SELECT l.line || ' ' || cardinality(l.bases)"
		. ' FROM xet.hub_repos r'
		. ' JOIN xet.hub_refs f ON f.repo_id = r.id'
		. ' JOIN xet.hub_commits c ON c.repo_id = r.id'
		. ' AND c.oid = f.oid'
		. ' JOIN xet.hub_lines l ON l.repo_id = r.id'
		. ' AND l.line = c.line'
		. " WHERE r.name = '$repo' AND f.name = 'heads/$branch'");
}

sub state {
	return $t->sql("SELECT count(*) || (SELECT string_agg(oid::text, '')"
		. ' FROM xet.hub_refs) || (SELECT count(*) FROM xet.hub_lines)'
		. ' FROM xet.hub_paths');
}
