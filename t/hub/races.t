#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Concurrent Hub commits, and very large ones.  Each commit is in the history
# exactly once or is refused, deleted files stay deleted, and the worker serves
# other requests in the meantime.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ slurp wait_for /;
use Test::Xet::Table;
use Test::Xet::Token;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 ();

# memory is measured, and a sanitizer would keep freed memory

$ENV{ASAN_OPTIONS} .= ':quarantine_size_mb=1'
	if length($ENV{ASAN_OPTIONS} // '');

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth off;'), workers => 1);

$t->token_key();
$t->run();

my $json = JSON::PP->new()->canonical();
my $tables = 'hub_moved hub_lines hub_commits hub_refs hub_paths';

# --------------------------------------------------------------------------
# two concurrent commits, then twenty

my @made = map { $_->response() } map { start('/api/repos/create',
	{ name => 'm' }) } 1 .. 8;

is(join(' ', sort map { $_->{status} } @made), '200' . ' 409' x 7,
	'one of eight makes a repo');
is((grep { ($_->json()->{url} // '') eq $t->url('/me/m') } @made), 8,
	'all responses have its URL');
is($t->sql('SELECT count(*) FROM xet.hub_commits'), 1, 'with one commit');

my $parent = head('m');
my @all = map { $_->response() } map { start_commit('m', { parent => $parent },
	inline("at-once/$_", "file $_")) } 1 .. 20;

is(join(' ', map { $_->{status} } @all), join(' ', (200) x 20),
	'twenty of one parent, whose paths do not meet');

my %times;

$times{$_}++ for map { $_->{id} } @{ history('m') };

is(join(' ', map { $times{$_->json()->{commitOid}} // 0 } @all),
	join(' ', (1) x 20), 'each is in the history once');
is(scalar keys %times, 21, 'and nothing else');
is(join(' ', sort map { $_->{path} } grep { $_->{type} eq 'file' } tree('m')),
	join(' ', sort map { "at-once/$_" } 1 .. 20), 'all files are there');
is($t->get("/me/m/resolve/main/at-once/$_")->{body}, "file $_", "file $_")
	for 1 .. 20;

$parent = head('m');
@all = map { $_->response() } map { start_commit('m', { parent => $parent },
	inline('one', "of $_")) } 1 .. 20;

is(join(' ', sort map { $_->{status} } @all), '200' . ' 412' x 19,
	'twenty of one parent to one path');
is(scalar @{ history('m') }, 22, 'one has made a commit');

my ($won) = grep { $all[$_ - 1]{status} == 200 } 1 .. 20;

is($t->get('/me/m/resolve/main/one')->{body}, "of $won", 'that of its file');

@all = map { $_->response() } map { start_commit('m', inline('any',
	"of $_")) } 1 .. 20;

is(join(' ', map { $_->{status} } @all), join(' ', (200) x 20),
	'twenty that name no parent');
is(scalar @{ history('m') }, 42, 'each makes a commit');

($won) = grep { $all[$_ - 1]->json()->{commitOid} eq head('m') } 1 .. 20;

is($t->get('/me/m/resolve/main/any')->{body}, "of $won", 'the last one counts');

# a folder is deleted while files are added to it

$parent = head('m');
is(commit('m', inline('at-once/new', 'new'))->{status}, 200, 'a new file');
is(commit('m', { parent => $parent }, folder('at-once'))->{status}, 412,
	'a folder with what its deleter has not seen');
is(commit('m', { parent => head('m') }, folder('at-once'))->{status}, 200,
	'and has seen');
is(commit('m', { parent => $parent }, gone('at-once/1'))->{status}, 412,
	'what was deleted since');

for my $short ('0', substr(head('m'), 0, 1), substr(head('m'), 0, 6), 'main') {
	is(commit('m', { parent => $short }, inline('p', $short))->{status},
		412, "a parent \"$short\"");
}

is(commit('m', { parent => substr(head('m'), 0, 7) }, inline('p', 'p'))
	->{status}, 200, 'a parent of seven digits');

my $old = substr(head('m'), 0, 7);

is(commit('m', inline('q', 'q'))->{status}, 200, 'another commit');
is(commit('m', { parent => $old }, inline('r', 'r'))->{status}, 200,
	'an old parent of seven digits, another path');
is(commit('m', { parent => $old }, inline('q', 'r'))->{status}, 412,
	'an old parent of seven digits, the same path');
is(commit('m', { parent => substr($old, 0, 6) . 'g' }, inline('s', 's'))
	->{status}, 412, 'no digits');

# a short parent id is ambiguous if it is a prefix of two commit ids

$t->sql("INSERT INTO xet.hub_commits (repo_id, line, seq, oid, who, title)"
	. " SELECT repo_id, 1000, 1, overlay(oid PLACING '\\x00'::bytea"
	. " FROM 20), 'me', 'another' FROM xet.hub_commits"
	. " WHERE encode(oid, 'hex') LIKE '$old%'");
is(commit('m', { parent => $old }, inline('s', 's'))->{status}, 412,
	'an ambiguous old parent');
$t->sql('DELETE FROM xet.hub_commits WHERE line = 1000');
is(commit('m', { parent => $old }, inline('s', 's'))->{status}, 200,
	'an unambiguous old parent');

# the staged rows of a refused commit are deleted, and every commit has all of
# its rows

ok(wait_for(20, sub { !staged() }), 'refused: no staged rows are left');

{
	my $session = $t->pg_session();
	my $at = head('m');

	$session->run('BEGIN');
	$session->run("SELECT FROM xet.hub_refs WHERE name = 'heads/main'"
		. ' FOR UPDATE');

	my $c = start_commit('m', inline('left/1', '1'), inline('left/2', '2'));

	ok(wait_for(20, sub { $t->pg_blocked() }), 'left: a commit waits');
	close($c->{socket});
	$session->run('COMMIT');
	$session->close();
	ok(wait_for(20, sub { !staged() }), 'left: no staged rows are left');
	is(join(' ', map { $_->{path} } grep { $_->{path} =~ m!^left/! }
		tree('m')), head('m') eq $at ? '' : 'left/1 left/2',
		'left: all of it, or nothing');
}

$t->sql("INSERT INTO xet.hub_loose SELECT r.id, -1, '2020-01-01'"
	. " FROM xet.repos r WHERE r.name = (SELECT xet.hub_store(id)"
	. " FROM xet.hub_repos WHERE name = 'm')");
$t->sql('SELECT xet.sweep()');
is($t->sql('SELECT count(*) FROM xet.hub_loose WHERE file_id = -1'), 0,
	'the row of a file that the repo no longer has is deleted');

# --------------------------------------------------------------------------
# the last operation on a path wins

is(commit('m', inline('one', 'new'), gone('one'))->{status}, 200,
	'a file that is put and deleted');
is($t->get('/me/m/resolve/main/one')->{status}, 404, 'is gone');
is(commit('m', gone('any'), inline('any', 'again'))->{status}, 200,
	'one that is deleted and put');
is($t->get('/me/m/resolve/main/any')->{body}, 'again', 'is there');
is(commit('m', inline('any', 'x'), inline('any', 'y'))->{status}, 200,
	'one that is put twice');
is($t->get('/me/m/resolve/main/any')->{body}, 'y', 'is the second');

# --------------------------------------------------------------------------
# a commit that waits, and other requests that arrive in the meantime

sub meets {
	my ($name, $sql, @starts) = @_;

	my $session = $t->pg_session();

	$session->run('BEGIN');
	$session->run($sql);

	my @c;

	for my $start (@starts) {
		push @c, $start->();

		ok(wait_for(20, sub { $t->pg_blocked() >= @c }),
			"$name: " . @c . ' wait');
	}

	$session->run('COMMIT');
	$session->close();

	return map { $_->response() } @c;
}

my $refs = "SELECT FROM xet.hub_refs f JOIN xet.hub_repos r"
	. " ON r.id = f.repo_id WHERE r.name = '%s' AND f.name = 'heads/%s'"
	. ' FOR UPDATE OF f';
my $rows = "SELECT FROM xet.%s x JOIN xet.hub_repos r ON r.id = x.repo_id"
	. " WHERE r.name = '%s' FOR UPDATE OF x";

for my $name (qw/ d1 d2 /) {
	create($name);
	is(commit($name, inline('x', 'x'))->{status}, 200, "$name: a file");
}

my @r = meets('deleted under a commit', sprintf($refs, 'd1', 'main'),
	sub { start_commit('d1', inline('y', 'y')) },
	sub { start_delete('d1') });

is("$r[0]{status} $r[1]{status}", '200 200', 'a commit, then the end');

@r = meets('a commit while it is deleted', sprintf($rows, 'hub_paths', 'd2'),
	sub { start_delete('d2') },
	sub { start_commit('d2', inline('y', 'y')) },
	sub { start('/api/models/me/d2/branch/b', {}) });

is("$r[0]{status} $r[1]{status} $r[2]{status}", '200 404 404',
	'the end, then a commit');
is($r[$_]->header_value('X-Error-Code'), 'RepoNotFound', 'which finds no repo')
	for 1, 2;
is($t->get("/api/models/me/$_")->{status}, 404, "$_ is gone") for qw/ d1 d2 /;
is($t->sql("SELECT count(*) FROM xet.$_ x WHERE NOT EXISTS (SELECT FROM"
	. ' xet.hub_repos r WHERE r.id = x.repo_id)'), 0, "$_: nothing left")
	for split(' ', $tables);

# a move does not wait for a commit

create('mw');

{
	my $session = $t->pg_session();

	$session->run('BEGIN');
	$session->run(sprintf($refs, 'mw', 'main'));

	my $c = start_commit('mw', inline('y', 'moved'));

	ok(wait_for(20, sub { $t->pg_blocked() }), 'moved: a commit waits');
	is(start('/api/repos/move', { fromRepo => 'me/mw', toRepo => 'me/mx' })
		->response()->{status}, 200, 'moved: meanwhile');
	$session->run('COMMIT');
	$session->close();
	is($c->response()->{status}, 200, 'moved: the commit');
	is($t->get('/me/mx/resolve/main/y')->{body}, 'moved', 'is there');
}

# two moves of the same repo

create('o');
@r = meets('two moves', "SELECT FROM xet.hub_repos WHERE name = 'o' FOR UPDATE",
	map { my $to = $_; sub { start('/api/repos/move', {
		fromRepo => 'me/o', toRepo => "me/$to" }) } } qw/ o1 o2 /);
is("$r[0]{status} $r[1]{status}", '200 404', 'one moves it');
is($t->get('/api/models/me/o1')->json()->{id}, 'me/o1', 'to its name');
is($t->get('/api/models/me/o2')->{status}, 404, 'the other one is not there');

# creation of a branch

create('b');
is(start('/api/models/me/b/branch/side', {})->response()->{status}, 200,
	'a branch');
@r = meets('a branch deleted under a commit', sprintf($rows, 'hub_lines', 'b'),
	sub { start_commit('b', { rev => 'side' }, inline('y', 'y')) },
	sub { start_ref('DELETE', '/api/models/me/b/branch/side') });
is("$r[0]{status} $r[1]{status}", '200 200', 'a commit, then no branch');

is(start('/api/models/me/b/branch/side', {})->response()->{status}, 200,
	'a branch again');
@r = meets('a commit to a branch that goes', sprintf($refs, 'b', 'side'),
	sub { start_ref('DELETE', '/api/models/me/b/branch/side') },
	sub { start_commit('b', { rev => 'side' }, inline('z', 'z')) });
is("$r[0]{status} $r[1]{status}", '200 404', 'no branch, then no commit');
is($r[1]->header_value('X-Error-Code'), 'RevisionNotFound', 'but its error');

# concurrent commits to branches that start from one commit: each branch has its
# own file

is(start("/api/models/me/b/branch/$_", {})->response()->{status}, 200,
	"branch $_") for qw/ l r /;
@r = map { $_->response() } map { start_commit('b', { rev => $_ },
	inline('same', "of $_")) } qw/ l r main /;
is(join(' ', map { $_->{status} } @r), '200 200 200', 'three branches');
is($t->get("/me/b/resolve/$_/same")->{body}, "of $_", "$_ has its own")
	for qw/ l r main /;

# --------------------------------------------------------------------------
# a file that the collector deletes before its commit

my $data = 'to be collected';
my $oid = loose_put('m', $data);

$t->sql("UPDATE xet.hub_loose SET since = now() - interval '2 days'");
$t->sql('SELECT xet.sweep()');

my $r = commit('m', lfs_line('late', $oid, length $data));

is($r->{status}, 400, 'collected before the commit');
like($r->json()->{error}, qr/was not uploaded/, 'is told so');

$oid = loose_put('m', $data);

{
	my $session = $t->pg_session();

	$session->run('BEGIN');
	$session->run(sprintf($refs, 'm', 'main'));

	my $c = start_commit('m', lfs_line('late', $oid, length $data));

	ok(wait_for(20, sub { $t->pg_blocked() }), 'collected: a commit waits');
	$t->sql("UPDATE xet.hub_loose SET since = now() - interval '2 days'");
	$t->sql('SELECT xet.sweep()');
	$session->run('COMMIT');
	$session->close();

	my $r = $c->response();

	like("$r->{status}", qr/^(?:409|503)$/, 'collected within the commit')
		or diag($r->summary());
	is($t->get('/me/m/resolve/main/late')->{status}, 404, 'is no commit');
}

$oid = lfs_put('m', $data);
is(commit('m', lfs_line('late', $oid, length $data))->{status}, 200,
	'uploaded again');
$t->sql("UPDATE xet.hub_loose SET since = now() - interval '2 days'");
$t->sql('SELECT xet.sweep()');
is($t->get('/me/m/resolve/main/late')->{body}, $data, 'and stays');

# the sweep also works if a user's repo is named like a Hub repo in the store

$t->sql("INSERT INTO xet.repos (name) VALUES ('_hub/x'), ('_hub/99999999')");
$t->sql("INSERT INTO xet.repo_files (repo_id, file_id) SELECT r.id, f.id"
	. " FROM xet.repos r, xet.files f WHERE r.name IN ('_hub/x',"
	. " '_hub/99999999')");
$t->sql("INSERT INTO xet.hub_loose SELECT rf.repo_id, rf.file_id, '2020-01-01'"
	. " FROM xet.repo_files rf JOIN xet.repos r ON r.id = rf.repo_id"
	. " WHERE r.name IN ('_hub/x', '_hub/99999999')"
	. ' ON CONFLICT DO NOTHING');
ok(eval { $t->sql('SELECT xet.sweep()'); 1 }, 'a sweep of strange names')
	or diag($@);
is($t->sql("SELECT count(*) > 0 FROM xet.repo_files rf JOIN xet.repos r"
	. " ON r.id = rf.repo_id WHERE r.name = '_hub/x'"), 't',
	'which keep their files');

# --------------------------------------------------------------------------
# 100,000 operations

my $n = $ENV{XET_TEST_HUB_OPERATIONS} || 100_000;
my $one = 'one for all';

create('large');
my $staged = $t->sql('SELECT count(*) FROM xet.hub_staged');

$oid = lfs_put('large', $one);

for ([ 'puts', sub { lfs_line("f$_[0]/of/$_[0]", $oid, length $one) } ],
	[ 'deletes', sub { gone("f$_[0]/of/$_[0]") } ],
	[ 'puts once more', sub { $_[0] % 4 ? () : lfs_line("f$_[0]/of/$_[0]",
		$oid, length $one) } ],
	[ 'folders', sub { $_[0] % 4 ? () : folder("f$_[0]") } ],
	[ 'puts again', sub { lfs_line("d/f$_[0]", $oid, length $one) } ],
	[ 'files become folders', sub { $_[0] % 8 ? () : (gone("d/f$_[0]"),
		lfs_line("d/f$_[0]/x", $oid, length $one)) } ],
	[ 'folders become files', sub { $_[0] % 8 ? () : (gone("d/f$_[0]/x"),
		lfs_line("d/f$_[0]", $oid, length $one)) } ])
{
	my ($name, $op) = @$_;
	my $peak = peak(1);
	my $c = start_commit('large', map { $op->($_) } 1 .. $n);
	my $meanwhile = 0;
	my $ready = '';

	while (!$ready) {
		is($t->get('/api/whoami-v2')->{status}, 200, 'meanwhile')
			if !$meanwhile++;
		$t->get('/api/models/me/m')->{status} == 200 or last;

		vec(my $bits = '', fileno($c->{socket}), 1) = 1;
		$ready = select($bits, undef, undef, 0.05);
	}

	my $r = $c->response();

	is($r->{status}, 200, "of $n operations: $name")
		or diag($r->summary());
	cmp_ok($meanwhile, '>', 3, "$name: others meanwhile: $meanwhile");
	$peak = peak() - $peak;
	cmp_ok($peak, '<', 32768, "$name: memory of the worker: $peak KiB");
}

is($t->sql("SELECT l.files FROM xet.hub_lines l JOIN xet.hub_repos r"
	. " ON r.id = l.repo_id WHERE r.name = 'large'"), $n, 'all are there');
is(scalar @{ $t->get('/api/models/me/large/tree/main/d')->json() }, 1000,
	'a page of them');
is(commit('large', folder('d'))->{status}, 200, 'a folder of all');
is($t->get('/api/models/me/large/tree/main')->{body}, '[]', 'leaves nothing');
is($t->sql('SELECT count(*) FROM xet.hub_staged'), $staged,
	'no staged rows are left');

# --------------------------------------------------------------------------
# a lost response: PostgreSQL has committed, and another session repeats the
# statement

sub twice {
	my ($name, $statement, $start, $lock) = @_;

	my $held = 'SELECT pid FROM pg_stat_activity'
		. " WHERE wait_event = 'SyncRep'"
		. " AND query LIKE '%xet.$statement(%'";
	my ($c, $session);

	# staging, which precedes the commit, is not delayed

	if ($lock) {
		$session = $t->pg_session();
		$session->run('BEGIN');
		$session->run("SELECT FROM xet.$lock FOR UPDATE");
		$c = $start->();
		ok(wait_for(20, sub { $t->pg_blocked() }), "$name: it waits");
	}

	waits_for_standby('nobody');

	if ($lock) {
		$session->run('ROLLBACK');
		$session->close();

	} else {
		$c = $start->();
	}

	ok(wait_for(20, sub { $t->sql($held) }), "$name: it is committed");
	$t->allow(qr/xet: .*(?:PostgreSQL|sent again|connect)/);
	$t->sql("SELECT pg_terminate_backend(pid) FROM ($held) a");
	waits_for_standby('');

	my $r = $c->response();

	is($r->{status}, 200, "$name: success, though a response was lost")
		or diag($r->summary());

	return $r;
}

sub waits_for_standby {
	my ($who) = @_;

	$t->sql("ALTER SYSTEM SET synchronous_standby_names = '$who'",
		user => 'postgres');
	$t->sql('SELECT pg_reload_conf()', user => 'postgres');
	wait_for(20, sub { $t->sql('SHOW synchronous_standby_names')
		eq $who }) or die "no reload\n";
}

create('again');

my $again = '/api/models/me/again';

sub start_move {
	my ($to) = @_;

	return start('/api/repos/move', { fromRepo => 'me/again',
		toRepo => "me/$to" });
}

twice('branch', 'hub_ref_put', sub { start("$again/branch/b", {}) });
is(start("$again/branch/b", {})->response()->{status}, 409,
	'a branch that was there');
twice('tag', 'hub_ref_put', sub { start("$again/tag/main", { tag => 'v' }) });
twice('no branch', 'hub_ref_put', sub { start_ref('DELETE',
	"$again/branch/b") });
is(start_ref('DELETE', "$again/branch/b")->response()->{status}, 404,
	'a branch that was not there');
twice('no tag', 'hub_ref_put', sub { start_ref('DELETE', "$again/tag/v") });
twice('commit', 'hub_commit', sub { start_commit('again', inline('x', '')) },
	'hub_refs');
is(scalar @{ history('again') }, 2, 'commit: one');
twice('move', 'hub_move', sub { start_move('again2') });
is(start_move('again2')->response()->{status}, 200, 'a move that was made');
is(start_move('again3')->response()->{status}, 404, 'to another name');
twice('delete', 'hub_delete', sub { start_delete('again2') });
is(start_delete('again2')->response()->{status}, 404,
	'a repo that was not there');
twice('create', 'hub_create', sub { start('/api/repos/create',
	{ name => 'again' }) });

is(start('/api/buckets/me/again', {})->response()->{status}, 200, 'a bucket');
is(start_batch({ type => 'addFile', path => 'a', xetHash => '0' x 64 })
	->response()->{status}, 200, 'a file of it');

my $said = twice('batch', 'hub_batch', sub { start_batch(
	{ type => 'deleteFile', path => 'a' }, { type => 'addFile',
		path => 'b', xetHash => 'ab' x 32 }) }, 'hub_lines');

is(join(' ', map { $said->json()->{$_} } qw/ processed succeeded /), '2 1',
	'batch: the same response as before');
ok(wait_for(20, sub { !staged() }), 'batch: no staged rows are left');

$t->done();

# --------------------------------------------------------------------------

# Returns the worker's peak memory in KiB; $anew resets the peak first.

sub peak {
	my ($anew) = @_;

	my ($pid) = $t->worker_pids();

	if ($anew && open(my $out, '>', "/proc/$pid/clear_refs")) {
		print $out "5\n";
		close($out);
	}

	return slurp("/proc/$pid/status") =~ /^VmHWM:\s+(\d+)/m ? $1 : 0;
}

sub start {
	my ($uri, $body) = @_;

	my $text = $json->encode($body);

	return $t->http_start('POST', $uri, {
		'Content-Type' => 'application/json',
		'Content-Length' => length($text) }, $text, timeout => 60);
}

sub start_ref {
	my ($method, $uri) = @_;

	return $t->http_start($method, $uri, {}, undef, timeout => 60);
}

sub start_delete {
	my ($name) = @_;

	my $text = $json->encode({ name => "me/$name" });

	return $t->http_start('DELETE', '/api/repos/delete', {
		'Content-Length' => length($text) }, $text, timeout => 60);
}

# Sends the request; { parent, rev } may precede the lines.

sub start_commit {
	my ($repo, @lines) = @_;

	my %header = (summary => 'a commit');
	my $rev = 'main';

	if (ref $lines[0] && !exists $lines[0]{key}) {
		my $o = shift @lines;

		$header{parentCommit} = $o->{parent} if exists $o->{parent};
		$rev = $o->{rev} // $rev;
	}

	my $body = join('', map { $json->encode($_) . "\n" }
		{ key => 'header', value => \%header }, @lines);

	return $t->http_start('POST', "/api/models/me/$repo/commit/$rev", {
		'Content-Type' => 'application/x-ndjson',
		'Content-Length' => length($body) }, $body, timeout => 240);
}

sub start_batch {
	my $body = join("\n", map { $json->encode($_) } @_);

	return $t->http_start('POST', '/api/buckets/me/again/batch', {
		'Content-Length' => length($body) }, $body, timeout => 60);
}

sub staged { return $t->sql('SELECT count(*) FROM xet.hub_staged') }
sub commit { return start_commit(@_)->response() }
sub create { return start('/api/repos/create', { name => $_[0] })->response() }

sub head { return $t->get("/api/models/me/$_[0]")->json()->{sha} }

sub tree {
	return @{ $t->get("/api/models/me/$_[0]/tree/main?recursive=true")
		->json() };
}

sub history {
	return $t->get("/api/models/me/$_[0]/commits/main?limit=100")->json();
}

sub lfs_put {
	my ($repo, $data) = @_;

	my $oid = sha256_hex($data);
	my $r = start("/me/$repo.git/info/lfs/objects/batch", {
		operation => 'upload', transfers => [ 'basic' ],
		objects => [ { oid => $oid, size => length $data } ] })
		->response();
	my $href = $r->json()->{objects}[0]{actions}{upload}{href}
		or die "no URL for an upload\n";

	$r = $t->put($href =~ s!^http://[^/]+!!r, $data);

	die $r->summary() if $r->{status} != 200;

	return $oid;
}

# Uploads a file as without LFS, which would keep the file.

sub loose_put {
	my $oid = lfs_put(@_);

	$t->sql('WITH loose AS (UPDATE xet.repo_files SET kept = false'
		. " WHERE sha256 = '\\x$oid' RETURNING repo_id, file_id)"
		. ' INSERT INTO xet.hub_loose (repo_id, file_id)'
		. ' SELECT repo_id, file_id FROM loose');

	return $oid;
}

sub lfs_line {
	my ($path, $oid, $size) = @_;

	return { key => 'lfsFile', value => { path => $path, algo => 'sha256',
		oid => $oid, size => $size } };
}

sub inline {
	my ($path, $data) = @_;

	return { key => 'file', value => { path => $path,
		encoding => 'base64',
		content => MIME::Base64::encode_base64($data, '') } };
}

sub gone { return { key => 'deletedFile', value => { path => $_[0] } } }
sub folder { return { key => 'deletedFolder', value => { path => $_[0] } } }
