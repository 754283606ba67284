#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The size of a Hub request limits its cost in folders, rows and deletions.  A
# request that costs too much is refused before it writes a row; rows that other
# requests write are counted.  Another tenant's commit does not wait for any of
# these requests.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ patience wait_for /;
use Test::Xet::Table;
use Test::Xet::Token;

use JSON::PP ();
use Time::HiRes qw/ time /;

my %o = Test::Xet::Table::hub('xet_auth off;', <<'EOF_CONF');

        location /small/ {
            xet_hub on;
            xet_auth off;
            xet_hub_base /small;
            xet_api_base /cas;
            xet_hub_depth 3;
            xet_hub_operations 1000;
            xet_hub_rows 1100;
            client_max_body_size 200m;
        }

        location /slow/ {
            xet_hub on;
            xet_auth off;
            xet_hub_base /slow;
            xet_api_base /cas;
            xet_body_buffer 16k;
        }

        location = /metrics { xet_metrics; }
EOF_CONF

$o{http} .= ' log_format audit escape=none $xet_audit;'
	. ' access_log %%DIR%%/audit.log audit if=$xet_audit;';

my $t = Test::Xet->new(%o, workers => 1);

$t->token_key();
$t->run();

my $json = JSON::PP->new()->canonical();

create($_) for qw/ m m1 m2 m3 m4 m5 other /;

# --------------------------------------------------------------------------
# large requests and their results

my $deep = join('/', map { 'd' } 1 .. 508);

attack('folders without end', map { empty("f$_/$deep") } 1 .. 200);
attack('folders that are allowed, without end',
	map { empty("f$_/" . join('/', map { 'd' } 1 .. 31) . '/f') }
	1 .. 2000);

# a realistic repo: thousands of folders with one file each

my $r = commit('m', map { empty("data/part-$_/year=2020/a.parquet") }
	1 .. 1000);

is($r->{status}, 200, 'a folder or two for each file') or diag($r->summary());

# --------------------------------------------------------------------------
# limits of a location: the body is refused at the point where it exceeds a
# limit

is(small('m', empty('a/b/c/d'))->{status}, 200, 'three folders');
refused('four folders', 400, 'path_too_deep', empty('a/b/c/d/e'));
refused('four folders, a copy', 400, 'path_too_deep', { key => 'copyFile',
	value => { path => 'a/b/c/d/e', srcPath => 'a/b/c/d' } });
refused('too many operations', 413, 'too_many_operations',
	map { gone("x$_") } 1 .. 1001);
refused('too many files and folders', 413, 'too_many_rows',
	map { empty("x$_/f") } 1 .. 600);
refused('too many files that a folder has', 413, 'too_many_rows',
	{ key => 'deletedFolder', value => { path => 'data' } });
is(small('m', { key => 'deletedFolder', value => { path => 'data/part-1' } })
	->{status}, 200, 'a part of it');
is(small('m', gone('a/b/c/d'))->{status}, 200, 'deep paths can be deleted');

$r = $t->post('/small/api/repos/create', $json->encode({ name => 'new',
	files => [ { path => 'a/b/c/d/e', content => '' } ] }));
is("$r->{status} " . code($r), '400 path_too_deep',
	'a repo with a file in four folders');
is($r->json()->{error}, 'The file path "a/b/c/d/e" has more folders than this'
	. ' server allows', 'its path is in the message');
is($t->get('/api/models/me/new')->{status}, 404, 'is not made');

# a bucket

$r = $t->post('/api/buckets/me/b', '{}');
is($r->{status}, 200, 'a bucket');

my $no = '0' x 64;

for ([ 'four folders', 400, 'path_too_deep', add('a/b/c/d/e') ],
	[ 'too many operations', 413, 'too_many_operations',
		map { add("x$_") } 1 .. 1001 ],
	[ 'too many folders', 413, 'too_many_rows',
		map { add("x$_/f") } 1 .. 600 ])
{
	my ($name, $status, $code, @ops) = @$_;

	$r = batch('/small', @ops);
	is("$r->{status} " . code($r),
		"$status $code", "a bucket: $name") or diag($r->summary());
}

is($t->sql('SELECT count(*) FROM xet.hub_paths p JOIN xet.hub_repos h'
	. ' ON h.id = p.repo_id WHERE h.kind = 3'), 0, 'a bucket: nothing');
is($t->sql('SELECT count(*) FROM xet.hub_staged'), 0, 'nothing is staged')
	if wait_for(20, sub {
		$t->sql('SELECT count(*) FROM xet.hub_staged') == 0 });

# --------------------------------------------------------------------------
# commits that never end: the number of staged rows per caller is limited

staged_most(150_000);

my @many = map { empty("staged/$_") } 1 .. 1500;
my ($open) = start_commit('/slow', 'm1', { part => 70_000 }, @many);

ok(wait_for(20, sub { $t->sql('SELECT count(*) FROM xet.hub_staged') == 1 }),
	'a commit that does not end');
cmp_ok($t->sql('SELECT sum(bytes) FROM xet.hub_staged'), '>', 100_000,
	'its staged rows are counted');

for my $n (1500, 900) {
	$r = commit('m2', @many[0 .. $n - 1]);
	is("$r->{status} " . code($r), '429 too_much_staged',
		"another commit, $n files: refused") or diag($r->summary());
}

is($t->sql('SELECT count(*) FROM xet.hub_staged'), 1, 'and leaves nothing');
is(commit('m2', @many[0 .. 99])->{status}, 200, 'a small commit: accepted');
$r = $t->post('/api/repos/create', $json->encode({ name => 'staged',
	files => [ map { { path => "$_/" . 'x' x 200, content => '' } }
		1 .. 600 ] }));
is("$r->{status} " . code($r), '429 too_much_staged',
	'a repo with many files: refused') or diag($r->summary());
is($t->sql("SELECT xet.hub_stage('x', 0, '{5}', ARRAY['a'::bytea], '{0}',"
	. " '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', 'other')"), 1,
	'another caller: accepted');
is($t->sql("SELECT xet.hub_unstage('x')"), 1, 'and the rows are deleted');
ok(wait_for(20, sub { metric('xet_hub_staged_bytes') > 100_000 }),
	'staged bytes are a metric');
$open->close();
ok(wait_for(20, sub { $t->sql('SELECT count(*) FROM xet.hub_staged') == 0 }),
	'the client leaves: no staged rows');
staged_most(268435456);
is(commit('m2', @many)->{status}, 200, 'sent again: done');

# --------------------------------------------------------------------------
# a branch that starts one commit behind another branch shares that branch's
# rows, even if copying the rows would exceed the limit (t/hub/lines.t)

is($t->post('/api/models/me/m/branch/side', '{}')->{status}, 200,
	'a branch of many files');
is(commit('m', empty('on/main'))->{status}, 200, 'a commit to main');

my $were = $t->sql('SELECT count(*) FROM xet.hub_paths');

$r = small('m', { rev => 'side' }, empty('on/side'));
is($r->{status}, 200, 'a commit to the branch') or diag($r->summary());
is($t->sql('SELECT count(*) FROM xet.hub_paths') - $were, 2,
	'two new rows: a file and a folder');

# --------------------------------------------------------------------------
# bytes of metadata: the count is exact, and is limited

is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
	'the count is exact');

my $used = usage('other');

cmp_ok($used, '>', 1000, 'metadata of a repo');

my $all = $t->sql('SELECT sum(metadata) FROM xet.usage'
	. ' WHERE length(owner) = 8');

ok(wait_for(30, sub { metric('xet_hub_metadata_bytes') == $all }),
	'metadata of all repos is a metric');
$t->sql('ANALYZE xet.hub_paths, xet.hub_commits, xet.hub_refs');
ok(wait_for(30, sub { metric('xet_hub_rows') >= 3000 }), 'and so are the rows');
is(commit('other', empty('a/b/c'))->{status}, 200, 'three rows more');

my $three = usage('other') - $used;

cmp_ok($three, '>', 1200, 'are counted');
is($t->post('/api/models/me/other/tag/main', '{"tag":"v1"}')->{status}, 200,
	'a tag');
cmp_ok(usage('other'), '>', $used + $three, 'is counted');
is($t->http('DELETE', '/api/models/me/other/tag/v1')->{status}, 200,
	'which goes');
is(usage('other'), $used + $three, 'and gives its bytes back');

limit('other', $used + 2 * $three);
is(commit('other', empty('d/e/f'))->{status}, 200, 'a commit up to a limit');

my $before = store_state();

$r = commit('other', empty('g/h/i'));
is("$r->{status} " . code($r),
	'413 quota_exceeded', 'a commit beyond the limit');
like($r->json()->{error}, qr/metadata bytes left/, 'says what it is about');
is(store_state(), $before, 'changes nothing');
$r = $t->post('/api/models/me/other/tag/main', '{"tag":"v2"}');
is($r->{status}, 413, 'a tag beyond the limit');
limit('other');
is(commit('other', empty('g/h/i'))->{status}, 200, 'without the limit');

for my $name (qw/ other m /) {
	is($t->http('DELETE', '/api/repos/delete', {}, $json->encode({
		name => $name }))->{status}, 200, "$name goes");
}

is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
	'the count is exact');

like($t->read_file('audit.log'), qr/"rows":3001,"metadata":\d+/,
	'the audit log has rows and bytes');

$t->done();

# --------------------------------------------------------------------------

# Checks that a commit is refused, or writes rows in proportion to its size; and
# that another tenant's commit does not wait for it.

sub attack {
	my ($name, @ops) = @_;

	my $lsn = $t->sql('SELECT pg_current_wal_lsn()');
	my $rows = $t->sql('SELECT count(*) FROM xet.hub_paths');
	my ($sent, @c) = 0;
	my $n = 0;
	my $worst = 0;

	# one request more than the worker's number of sessions for such
	# requests

	for (1 .. 5) {
		my ($c, $len) = start_commit('', "m$_", @ops);

		push @c, $c;
		$sent += $len;
	}

	for (1 .. 5) {
		my $at = time();
		my $r = commit('other', empty('f' . ++$n . $name =~ tr/ //dr));

		$worst = time() - $at if time() - $at > $worst;
		is($r->{status}, 200, "$name: another tenant's commit")
			or diag($r->summary());
	}

	my ($r) = map { $_->response() } @c;

	$rows = $t->sql('SELECT count(*) FROM xet.hub_paths') - $rows;
	$lsn = $t->sql("SELECT pg_current_wal_lsn() - '$lsn'");

	diag(sprintf('%s: %d, %d bytes sent, %d rows, %d bytes of WAL, another'
		. ' %.3f s', $name, $r->{status}, $sent, $rows, $lsn, $worst));

	cmp_ok($rows, '<=', 1000 + $sent / 20, "$name: rows");
	cmp_ok($lsn, '<=', 5000000 + 30 * $sent, "$name: WAL");
	cmp_ok($worst, '<=', patience(3), "$name: another tenant");
}

sub refused {
	my ($name, $status, $code, @ops) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $before = store_state();
	my $r = small('m', @ops);

	is("$r->{status} " . code($r),
		"$status $code", $name) or diag($r->summary());
	is(store_state(), $before, "$name: changes nothing");
}

sub store_state {
	return $t->sql("SELECT count(*) || (SELECT string_agg(oid::text, '')"
		. ' FROM xet.hub_refs) FROM xet.hub_paths');
}

sub code { return $_[0]->json()->{details}{code} // '' }

sub usage {
	my ($name) = @_;

	return $t->sql("SELECT sum(u.metadata) FROM xet.hub_repos h"
		. ' JOIN xet.repos r ON r.name = xet.hub_store(h.id)'
		. ' CROSS JOIN xet.usage_of(int8send(r.id)) u'
		. " WHERE h.name = '$name'");
}

sub limit {
	my ($name, $most) = @_;

	$t->sql("SELECT xet.quota_set('repo', xet.hub_store(h.id), NULL, NULL,"
		. ' NULL, ' . ($most // 'NULL') . ') FROM xet.hub_repos h'
		. " WHERE h.name = '$name'");
}

sub staged_most {
	$t->sql('CREATE OR REPLACE FUNCTION xet.hub_staged_most()'
		. ' RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE'
		. " AS 'SELECT $_[0]::bigint'");
}

sub metric {
	my ($name) = @_;

	my ($value) = $t->get('/metrics')->{body} =~ /^$name (\S+)/m;

	return $value // -1;
}

sub small { return (start_commit('/small', @_))[0]->response() }
sub commit { return (start_commit('', @_))[0]->response() }

sub start_commit {
	my ($base, $repo, @ops) = @_;

	my $part = exists $ops[0]{part} ? (shift @ops)->{part} : undef;
	my $rev = exists $ops[0]{rev} ? (shift @ops)->{rev} : 'main';
	my $body = join('', map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 's' } }, @ops);

	return ($t->http_start('POST',
		"$base/api/models/me/$repo/commit/$rev", {
		'Content-Type' => 'application/x-ndjson',
		'Content-Length' => length($body) }, defined $part
			? substr($body, 0, $part) : $body, timeout => 300),
		length($body));
}

sub batch {
	my ($base, @ops) = @_;

	my $body = join("\n", map { $json->encode($_) } @ops);

	return $t->http_start('POST', "$base/api/buckets/me/b/batch", {
		'Content-Length' => length($body) }, $body, timeout => 60)
		->response();
}

sub create {
	my $r = $t->post('/api/repos/create', $json->encode({ name => $_[0] }));

	is($r->{status}, 200, "repo $_[0]") or diag($r->summary());
}

sub add {
	return { type => 'addFile', path => $_[0], xetHash => '0' x 64,
		mtime => 1 };
}

sub empty {
	return { key => 'file', value => { path => $_[0], content => '' } };
}

sub gone { return { key => 'deletedFile', value => { path => $_[0] } } }
