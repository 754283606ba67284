#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Files that get into a Hub repo without an upload to this repo: copies of files
# of another repo, if the caller may read that repo and the server has computed
# their SHA-256; or files in the request that creates the repo.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ wait_for /;
use Test::Xet::Token;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 ();

my $t = Test::Xet->new(workers => 2, log => 'info',
	http => Test::Xet::Token::token_directive(),
	locations => <<'EOC' . Test::Xet::Token::token_location());
location / {
            xet_hub on;
            xet_auth token;
            xet_hub_public on;
            xet_api_base /cas;
            client_max_body_size 200m;
        }

        %%CAS%%
EOC

$t->token_key();
$t->run();

my $json = JSON::PP->new()->canonical();
my $alice = $t->auth('delete', '@alice');
my $bob = $t->auth('delete', '@bob');
my $reader = $t->auth('read', '@alice');

# --------------------------------------------------------------------------
# a repo of alice with a history, readable by everyone, and a private repo

for ([ $alice, 'm' ], [ $alice, 'p', private => \1 ], [ $alice, 'to' ],
	[ $bob, 'b' ], [ $bob, 'q', private => \1 ])
{
	my ($who, $name, %o) = @$_;

	is(create($who, name => $name, %o)->{status}, 200, "create $name");
}

is(commit($alice, 'alice/m', inline('a.txt', 'hello'),
	inline('past', 'of the past'))->{status}, 200, 'files');
is(commit($alice, 'alice/m', gone('past'))->{status}, 200, 'one goes');
is(commit($alice, 'alice/p', inline('secret', 'of alice'))->{status}, 200,
	'a secret');
is(commit($bob, 'bob/q', inline('secret', 'of bob'))->{status}, 200,
	'one of bob');

my %hash = map { $_->[1] => entry($alice, @$_)->{xetHash} }
	[ 'alice/m', 'a.txt' ], [ 'alice/p', 'secret' ];
my $past = $t->sql("SELECT encode(hash, 'hex') FROM xet.hub_paths"
	. " WHERE path = 'past'");
my $bobs = entry($bob, 'bob/q', 'secret')->{xetHash};
my $hello = [ $hash{'a.txt'}, sha256_hex('hello') ];
my $secret = [ $hash{secret}, sha256_hex('of alice') ];

# a commit can name the file only after it was copied

is(commit($bob, 'bob/b', lfs_line('x', $hello->[1]))->{status}, 400,
	'nobody names the file of another repo');

my $r = copies($bob, 'alice/m', 'bob/b', $hello);

is($r->{status}, 200, 'of a public repo') or diag($r->summary());
is($json->encode($r->json()), '{"failed":[],"success":true}',
	'of a public repo: all of it');
is(commit($bob, 'bob/b', lfs_line('x', $hello->[1]))->{status}, 200,
	'a commit names it');
is(text($bob, 'bob/b', 'x'), 'hello', 'its bytes');
is(places('bob/b'), 1, 'it is a file of that repo');
is(entry($bob, 'bob/b', 'x')->{size}, 5, 'its size');

is(copied($bob, 'alice/m', 'bob/b', $hello, $hello), '', 'again, and twice');
is(places('bob/b'), 1, 'is one place');
is(copied($alice, 'alice/m', 'alice/to', $hello, [ $past,
	sha256_hex('of the past') ]), '', 'a file that a commit had');
is(commit($alice, 'alice/to', lfs_line('past', sha256_hex('of the past')))
	->{status}, 200, 'is committed');
is(text($alice, 'alice/to', 'past'), 'of the past', 'its bytes, too');
is(copied($alice, 'alice/p', 'alice/to', $secret), '', 'of a private repo');
is(copied($alice, 'alice/m', 'alice/m', $hello), '', 'to the same repo');
is(copied($alice, 'alice/m', 'ME/TO', $hello), '', 'in another case');
is(copied($alice, 'alice/m', 'to', $hello), '', 'to one of his own');

# --------------------------------------------------------------------------
# each file that cannot be copied is reported, and no repo gets it

my $before = $t->sql('SELECT count(*) FROM xet.repo_files');

for ([ 'another SHA-256', $hello->[0], sha256_hex('hallo') ],
	[ 'another hash', $secret->[0], $hello->[1] ],
	[ 'a file that nobody has', 'ab' x 32, sha256_hex('x') ],
	[ 'a file of another repo', @$secret ],
	[ 'a file of somebody else', $bobs, sha256_hex('of bob') ])
{
	my ($name, @file) = @$_;

	is(copied($alice, 'alice/m', 'alice/to', \@file), $file[1], $name);
	is(copied($alice, 'alice/m', 'alice/to', $hello, \@file), $file[1],
		"$name: the other one is not reported");
}

# uploaded, but not in any commit

my $loose = lfs_put($alice, 'alice/m', 'uploaded');

is(copied($alice, 'alice/m', 'alice/to', [ $loose, sha256_hex('uploaded') ]),
	sha256_hex('uploaded'), 'a file without a commit');

# a SHA-256 that the server has not computed

is(commit($alice, 'alice/m', inline('doubt', 'a doubt'))->{status}, 200,
	'a file');
$t->sql("UPDATE xet.files SET sha256_proven = false WHERE sha256 = decode('"
	. sha256_hex('a doubt') . "', 'hex')");
is(copied($alice, 'alice/m', 'alice/to', [ entry($alice, 'alice/m', 'doubt')
	->{xetHash}, sha256_hex('a doubt') ]), sha256_hex('a doubt'),
	'a SHA-256 that is only claimed');

is($t->sql('SELECT count(*) FROM xet.repo_files'), $before + 2,
	'no repo has got a file');

# --------------------------------------------------------------------------
# permissions for copies

for ([ 'a private repo of another', $bob, 'alice/p', 'bob/b', 404,
		'RepoNotFound' ],
	[ 'no repo', $bob, 'alice/no', 'bob/b', 404, 'RepoNotFound' ],
	[ 'to a repo of another', $bob, 'alice/m', 'alice/to', 403, '' ],
	[ 'to a private repo of another', $alice, 'alice/m', 'bob/q', 404,
		'RepoNotFound' ],
	[ 'to no repo', $alice, 'alice/m', 'alice/no', 404, 'RepoNotFound' ],
	[ 'may only read', $reader, 'alice/m', 'alice/to', 403, '' ],
	[ 'nobody', {}, 'alice/m', 'alice/to', 401, '' ],
	[ 'a token for the repo that has it', cas($alice, 'alice/m'),
		'alice/m', 'alice/to', 403, '' ])
{
	my ($name, $who, $from, $to, $status, $code) = @$_;
	my $r = copies($who, $from, $to, $hello, $secret);

	is($r->{status}, $status, $name) or diag($r->summary());
	is($r->header_value('X-Error-Code') // '', $code, "$name: code");
	is(ref $r->json(), 'HASH', "$name: an object");
}

is(copied(cas($bob, 'bob/b'), 'alice/m', 'bob/b', $hello), '',
	'a token for the repo that gets it');
is(copies(cas($bob, 'bob/b'), 'bob/q', 'bob/b', [ $bobs,
	sha256_hex('of bob') ])->{status}, 404,
	'a token for one repo does not read another one');
is($t->sql('SELECT count(*) FROM xet.repo_files'), $before + 2,
	'and no repo has got a file');

for ([ '[]', 400 ], [ '{"target":{"name":"alice/to"}}', 400 ],
	[ '{"target":{"name":"a--b"},"files":[]}', 400 ],
	[ $json->encode({ target => { name => 'alice/to' },
		files => [ map { { xetHash => 'ab' x 32,
			sha256 => 'ab' x 32 } } 1 .. 1001 ] }), 413 ])
{
	is(post($alice, '/api/models/alice/m/lfs-files/duplicate', $_->[0])
		->{status}, $_->[1], 'a body of ' . substr($_->[0], 0, 40));
}

# --------------------------------------------------------------------------
# renamed repos

is(post($alice, '/api/repos/move', { fromRepo => 'alice/to',
	toRepo => 'alice/to2' })->{status}, 200, 'the target moves');
is(copied($alice, 'alice/m', 'alice/to', $hello), '',
	'the name that it had leads to it');
is(post($alice, '/api/repos/move', { fromRepo => 'alice/m',
	toRepo => 'alice/m2' })->{status}, 200, 'and the source');
$r = copies($alice, 'alice/m', 'alice/to', $hello);
is($r->{status}, 307, 'as a redirect');
like($r->header_value('Location'),
	qr!/api/models/alice/m2/lfs-files/duplicate\z!, 'that keeps the rest');
is(post($alice, '/api/repos/move', { fromRepo => 'alice/m2',
	toRepo => 'alice/m' })->{status}, 200, 'the source moves back');

# --------------------------------------------------------------------------
# a quota

my $store = store('bob/b');

$t->sql("SELECT xet.quota_set('repo', '$store', NULL, NULL, 10)");
is(commit($alice, 'alice/m', inline('six', 'sixsix'), inline('five', 'fives'))
	->{status}, 200, 'files of six and five bytes');

my $six = [ entry($alice, 'alice/m', 'six')->{xetHash}, sha256_hex('sixsix') ];
my $five = [ entry($alice, 'alice/m', 'five')->{xetHash},
	sha256_hex('fives') ];

$r = copies($bob, 'alice/m', 'bob/b', $six);
is($r->{status}, 413, 'over the quota');
is($r->json()->{details}{code} // $r->json()->{error}{code}, 'quota_exceeded',
	'over the quota: code') or diag($r->{body});
is(places('bob/b'), 1, 'over the quota: nothing comes');
is(copies($bob, 'alice/m', 'bob/b', $five, $six)->{status}, 413,
	'both are over it');
is(copied($bob, 'alice/m', 'bob/b', $five), '', 'to the byte');
is(copied($bob, 'alice/m', 'bob/b', $five, $hello), '',
	'existing files cost nothing');
$t->sql("SELECT xet.quota_set('repo', '$store', NULL, NULL, NULL)");

# the limit also applies to a bucket, and to a subject

is(post($bob, '/api/buckets/bob/k', {})->{status}, 200, 'a bucket');
$store = store('bob/k');
$t->sql("SELECT xet.quota_set('repo', '$store', NULL, NULL, 10)");

sub batch {
	my (@files) = @_;

	return $t->post('/api/buckets/bob/k/batch', \join("\n", map {
		$json->encode({ type => 'copyFile', path => "f$_->[0]",
			xetHash => $_->[0], sourceRepoType => 'model',
			sourceRepoId => 'alice/m' }) } @files),
		{ %$bob, 'Content-Type' => 'application/x-ndjson' });
}

is(batch($six, $five)->{status}, 413, 'a bucket: over the quota');
is(places('bob/k'), 0, 'a bucket: nothing comes');
is(batch($six)->{status}, 200, 'a bucket: within it');
is(batch($six)->{status}, 200, 'a bucket: existing files cost nothing');
$t->sql("SELECT xet.quota_set('repo', '$store', NULL, NULL, NULL)");

is($t->sql("SELECT count(*) FROM xet.repo_files WHERE subject IS NULL"), 0,
	'each place counts for a subject');

# --------------------------------------------------------------------------
# many concurrent copies, and repos that are deleted in the meantime

my @all = map { $_->response() } map { start_copies($bob, 'alice/m', 'bob/b',
	$_ % 2 ? ($six, $five, $hello) : ($hello, $five, $six)) } 1 .. 20;

is(join(' ', map { $_->{status} } @all), join(' ', (200) x 20),
	'twenty at once');
is(places('bob/b'), 3, 'each place is there once');

for (1 .. 2) {
	is(create($alice, name => "go$_")->{status}, 200, "a repo $_");
	is(commit($alice, "alice/go$_", inline('x', "gone $_"))->{status}, 200,
		"a file $_");
}

my @gone = map { [ entry($alice, "alice/go$_", 'x')->{xetHash},
	sha256_hex("gone $_") ] } 1 .. 2;

@all = meets("SELECT FROM xet.files WHERE sha256 = decode('$gone[0][1]',"
	. " 'hex') FOR UPDATE",
	sub { start_copies($bob, 'alice/go1', 'bob/b', $gone[0]) },
	sub { start_delete($alice, 'go1') });
is("$all[0]{status} $all[1]{status}", '200 200', 'copied, then deleted');
is($all[0]->json()->{success}, 1, 'copied: all of it') or diag($all[0]{body});
is(commit($bob, 'bob/b', lfs_line('went', $gone[0][1]))->{status}, 200,
	'its commit');
is(text($bob, 'bob/b', 'went'), 'gone 1', 'stays');

@all = meets("SELECT FROM xet.hub_paths p JOIN xet.hub_repos r"
	. " ON r.id = p.repo_id WHERE r.name = 'go2' FOR UPDATE OF p",
	sub { start_delete($alice, 'go2') },
	sub { start_copies($bob, 'alice/go2', 'bob/b', $gone[1]) });
is("$all[0]{status} $all[1]{status}", '200 404', 'deleted, then not there');
is($all[1]->header_value('X-Error-Code'), 'RepoNotFound', 'as no repo is');

# a request copies two files into a bucket; at the same time a batch adds these
# files to the bucket in another order

{
	is(create($alice, name => 'two')->{status}, 200, 'two files');
	is(commit($alice, 'alice/two', inline('x', 'x of two'),
		inline('y', 'y of two'))->{status}, 200, 'of a repo');
	is(post($alice, '/api/buckets/alice/box', '{}')->{status}, 200,
		'and a bucket');

	my ($first, $second) = split(' ', $t->sql("SELECT string_agg("
		. "encode(sha256, 'hex'), ' ' ORDER BY id) FROM xet.files"
		. " WHERE sha256 IN (sha256('x of two'), sha256('y of two'))"));
	my $body = $json->encode({ %{ $json->decode(duplicate('alice/box',
		map { [ entry($alice, 'alice/two', $_)->{xetHash},
			sha256_hex("$_ of two") ] } qw/ x y /)) },
		target => { type => 'bucket', name => 'alice/box' } });
	my $session = $t->pg_session();

	$session->run('BEGIN');
	$session->run(taken_by_batch(1, $second));

	my $c = $t->http_start('POST',
		'/api/models/alice/two/lfs-files/duplicate', { %$alice,
			'Content-Length' => length($body) }, $body,
		timeout => 60);

	ok(wait_for(20, sub { $t->pg_blocked() }), 'a copy waits for a batch');

	my $said = eval { $session->run(taken_by_batch(2, $first)) } // $@;

	like($said, qr/"succeeded":1,/, 'the batch continues');
	$session->send('COMMIT');
	$session->wait();
	$session->close();

	my $r = $c->response();

	is($r->{status}, 200, 'the copy succeeds') or diag($r->summary());
	is($r->json()->{success}, 1, 'all of it');
	unlike($t->pg()->log(), qr/deadlock detected/, 'no deadlock');
	is($t->sql('SELECT count(*) FROM xet.repo_files rf JOIN xet.repos r'
		. ' ON r.id = rf.repo_id JOIN xet.hub_repos h'
		. " ON r.name = xet.hub_store(h.id) WHERE h.name = 'box'"), 2,
		'each file is there once');
	$t->sql('DELETE FROM xet.hub_staged');
}

# files that are not in a commit are deleted after a day

is(copied($alice, 'alice/m', 'bob/b', $six), '403', 'not by another');
$t->sql("UPDATE xet.hub_loose SET since = now() - interval '2 days'");
$t->sql('SELECT xet.sweep()');
is(places('bob/b'), 2, 'a day later: only files of commits');
is(text($bob, 'bob/b', 'x'), 'hello', 'which is there');
is(text($alice, 'alice/m', 'six'), 'sixsix', 'and there');

# --------------------------------------------------------------------------
# a repo that is created with files

my %files = ('a.txt' => 'hello, first', 'd/e/x' => 'y' x 70000, 'd/no' => '');

$r = create($alice, name => 'first', type => 'dataset',
	files => [ map { stands($_, $files{$_}) } sort keys %files ]);
is($r->{status}, 200, 'create with files') or diag($r->summary());
is($r->json()->{url}, $t->url('/datasets/alice/first'), 'its URL');
is(text($alice, 'datasets/alice/first', $_), $files{$_}, "with $_")
	for sort keys %files;
is(join(' ', map { $_->{path} } @{ $t->get(
	'/api/datasets/alice/first/tree/main?recursive=true', $alice)
	->json() }), 'a.txt d d/e d/e/x d/no', 'its tree');

$r = $t->get('/api/datasets/alice/first/commits/main', $alice);
is(join(' ', map { $_->{title} } @{ $r->json() }), 'initial commit',
	'one commit');
is($r->header_value('X-Total-Count'), 1, 'as is counted');
is($t->sql("SELECT l.files || ' ' || l.bytes FROM xet.hub_lines l"
	. " JOIN xet.hub_repos r ON r.id = l.repo_id WHERE name = 'first'"),
	'3 70012', 'and so are its files');
is($t->post('/api/datasets/alice/first/commit/main', \join("\n",
	map { $json->encode($_) } { key => 'header', value => {
		summary => 'second' } }, inline('a.txt', 'hello, second'),
		gone('d/no')), $alice)->{status}, 200, 'a commit on it');
is(text($alice, 'datasets/alice/first', 'a.txt'), 'hello, second', 'is there');
is($t->get('/datasets/alice/first/resolve/' . $r->json()->[0]{id} . '/a.txt',
	$alice)->{body}, 'hello, first', 'and the first one, too');
empty('created');

$r = create($alice, name => 'first', type => 'dataset',
	files => [ stands('a.txt', 'another') ]);
is($r->{status}, 409, 'create with files: twice');
is($r->json()->{url}, $t->url('/datasets/alice/first'), 'twice: its URL');
is(text($alice, 'datasets/alice/first', 'a.txt'), 'hello, second',
	'twice: it is as it was');

for ([ 'a file and a folder', 'invalid_path', 400, stands('a', 'x'),
		stands('a/b', 'y') ],
	[ 'one that climbs', 'invalid_path', 400, stands('a', 'x'),
		stands('../b', 'y') ],
	[ 'no content', 'invalid_commit', 400, { path => 'a' } ],
	[ '1,001 files', 'file_too_large', 413, map { stands($_, '') }
		1 .. 1001 ],
	[ 'more than 1 MiB', 'body_too_large', 413,
		stands('a', 'x' x 1_000_000) ])
{
	my ($name, $code, $status, @files) = @$_;
	my $r = create($alice, name => 'none', files => \@files);

	is($r->{status}, $status, "create with files: $name");
	is($r->json()->{details}{code}, $code, "$name: code");
	is($t->get('/api/models/alice/none', $alice)->{status}, 404,
		"$name: there is no repo");
}

is(create($alice, name => 'bob/none', files => [ stands('a', 'x') ])
	->{status}, 403, 'create with files: for another');
is(create($reader, name => 'none', files => [ stands('a', 'x') ])->{status},
	403, 'create with files: may only read');

$t->sql("SELECT xet.quota_set('repo', NULL, NULL, NULL, 10)");
is(create($alice, name => 'none', files => [ stands('a', 'x' x 11) ])
	->{status}, 413, 'create with files: over the quota');
is(create($alice, name => 'fits', files => [ stands('a', 'x' x 10) ])
	->{status}, 200, 'to the byte');
$t->sql("SELECT xet.quota_set('repo', NULL, NULL, NULL, NULL)");
empty('refused');
is($t->sql("SELECT count(*) FROM xet.hub_repos WHERE name = 'none'"), 0,
	'and no repo');

@all = map { $_->response() } map { start_create($alice, name => 'race',
	files => [ stands('n', "of $_") ]) } 1 .. 8;
is(join(' ', sort map { $_->{status} } @all), '200' . ' 409' x 7,
	'one of eight creates it');

my ($won) = grep { $all[$_ - 1]{status} == 200 } 1 .. 8;

is(text($alice, 'alice/race', 'n'), "of $won", 'with its file');
empty('one of eight');

# the client disconnects while the repo is created: in the end the repo and its
# files exist, and no staged rows are left

{
	my $session = $t->pg_session();

	$session->run('BEGIN');
	$session->run('LOCK TABLE xet.hub_refs IN EXCLUSIVE MODE');

	my $c = start_create($alice, name => 'left', files =>
		[ stands('a', 'of who left') ]);

	ok(wait_for(20, sub { $t->pg_blocked() }), 'left: the repo is made');
	close($c->{socket});
	ok(wait_for(20, sub { $t->sql('SELECT count(*) FROM pg_locks'
		. ' WHERE NOT granted') }), 'left: by nobody');
	$session->run('COMMIT');
	$session->close();
	ok(wait_for(20, sub { $t->get('/api/models/alice/left', $alice)
		->{status} == 200 }), 'left: it is there');
	empty('left');
	is(text($alice, 'alice/left', 'a'), 'of who left', 'with its file');
}

# the statement that creates a repo with files is repeated

my $again = "SELECT status FROM xet.hub_create(ROW(0, 'me', '%s', true,"
	. " '{}', true, ''), false, 'me', '%s', 1)";

for ([ 'twice', 'a/b', 200 ], [ 'never', 'a/b', 400 ]) {
	my ($name, $path, $status) = @$_;
	my @paths = $status == 200 ? $path : ('a', $path);

	$t->sql("SELECT xet.hub_begin(ROW(0, 'me', '$name', true, '{}', true,"
		. " ''), '$name')");
	$t->sql("SELECT xet.hub_stage('$name', 0, ARRAY["
		. join(', ', map { 2 } @paths) . '], ARRAY['
		. join(', ', map { "'$_'::bytea" } @paths) . '], ARRAY['
		. join(', ', map { '0::bigint' } @paths) . '], ARRAY['
		. join(', ', map { 'NULL::bytea' } @paths) . '], ARRAY['
		. join(', ', map { "sha256('')" } @paths) . '], ARRAY['
		. join(', ', map { 'NULL::bigint' } @paths) . '], ARRAY['
		. join(', ', map { 'NULL::bytea' } @paths) . '], ARRAY['
		. join(', ', map { 'NULL::bytea' } @paths) . '])');
	is($t->sql(sprintf($again, $name, $name)), $status, "$name: once")
		for 1 .. 2;
	$t->sql("SELECT xet.hub_unstage('$name')");
	empty($name);
}

is($t->sql("SELECT count(*) FROM xet.hub_commits c JOIN xet.hub_repos r"
	. " ON r.id = c.repo_id WHERE r.name = 'twice'"), 1, 'one commit');
ok(!eval { $t->sql(sprintf($again, 'never', 'never')); 1 },
	'a repo whose rows were dropped is not made');
like($@, qr/were dropped/, 'and the error says so');

# a temporary repo that a crash leaves behind is deleted after a day

$t->sql("SELECT xet.hub_begin(ROW(0, 'me', 'crash', true, '{}', true, ''), '"
	. '0123456789abcdef' . "')");
$t->sql('SELECT xet.sweep()');
is(nurseries(), 1, 'not before a day has passed');
$t->sql("UPDATE xet.repos SET created_at = now() - interval '2 days'");
$t->sql('SELECT xet.sweep()');
is(nurseries(), 0, 'after a day it is deleted');
is(text($alice, 'alice/left', 'a'), 'of who left', 'others stay');

# --------------------------------------------------------------------------
# a file of the repo is copied by its path, in a commit to the repo

sub copy {
	my ($path, $from, $rev) = @_;

	return { key => 'copyFile', value => { path => $path,
		srcPath => $from, defined $rev ? (srcRevision => $rev) : () } };
}

create($alice, name => 'c');

my $first = commit($alice, 'alice/c', inline('a', 'one'), inline('d/b', 'two'),
	inline('e', ''))->json()->{commitOid};

is(commit($alice, 'alice/c', inline('a', 'ONE'), gone('d/b'))->{status}, 200,
	'paths: a second commit');
is($t->post('/api/models/alice/c/branch/old', \$json->encode({
	startingPoint => $first }), { %$alice, 'Content-Type' =>
	'application/json' })->{status}, 200, 'paths: a branch');

$r = commit($alice, 'alice/c', copy('a2', 'a'),
	copy('d/c/a', 'a', 'main'), copy('b1', 'd/b', $first),
	copy('b2', 'd/b', 'refs/heads/old'),
	copy('b3', 'd/b', 'old'), copy('e2', 'e'),
	copy('e3', 'e', 'refs/heads/old'),
	copy('moved', 'a'), gone('a'));

is($r->{status}, 200, 'paths: copies') or diag($r->summary());
is(text($alice, 'alice/c', $_->[0]), $_->[1], "paths: $_->[0]")
	for [ 'a2', 'ONE' ], [ 'd/c/a', 'ONE' ],
	[ 'b1', 'two' ], [ 'b2', 'two' ], [ 'b3', 'two' ], [ 'e2', '' ],
	[ 'e3', '' ], [ 'moved', 'ONE' ], [ 'a', 404 ];
is(scalar @{ $t->get('/api/models/alice/c', $alice)->json()->{siblings} }, 9,
	'paths: no other ones');

my $last = $t->get('/api/models/alice/c', $alice)->json()->{sha};

for ([ 'nothing', 404, copy('x', 'nope') ],
	[ 'a folder', 404, copy('x', 'd') ],
	[ 'what is gone', 404, copy('x', 'a') ],
	[ 'no revision', 404, copy('x', 'e', 'nope') ],
	[ 'what the same commit writes', 404, inline('n', 'n'),
		copy('x', 'n') ],
	[ 'one of two', 404, copy('x', 'e'), copy('y', 'nope') ],
	[ 'of another repo', 400, copy('x', '../m/e') ],
	[ 'to what climbs', 400, copy('../x', 'e') ],
	[ 'to a folder', 400, copy('d', 'e') ],
	[ 'under a file', 400, copy('e/x', 'e') ])
{
	my ($name, $status, @lines) = @$_;

	$r = commit($alice, 'alice/c', @lines);
	is($r->{status}, $status, "paths: $name") or diag($r->summary());
}

is(commit($bob, 'alice/c', copy('x', 'e'))->{status}, 403,
	'paths: by who may read');
is($t->get('/api/models/alice/c', $alice)->json()->{sha}, $last,
	'paths: nothing was changed');

# a file that is referenced only by the path of the copy is kept by the sweep

$t->sql("UPDATE xet.hub_loose SET since = now() - interval '2 days'");
$t->sql('SELECT xet.sweep()');
is(text($alice, 'alice/c', 'b1'), 'two', 'paths: it stays');

$t->done();

# --------------------------------------------------------------------------

sub post {
	my ($who, $uri, $body) = @_;

	return $t->post($uri, \(ref $body ? $json->encode($body) : $body),
		{ %$who, 'Content-Type' => 'application/json' });
}

sub create {
	my ($who, %o) = @_;

	return post($who, '/api/repos/create', \%o);
}

sub commit {
	my ($who, $repo, @lines) = @_;

	return $t->post("/api/models/$repo/commit/main", \join('',
		map { $json->encode($_) . "\n" } { key => 'header',
			value => { summary => 'a commit' } }, @lines),
		{ %$who, 'Content-Type' => 'application/x-ndjson' });
}

# Copies [ hash, SHA-256 ] from one repo to another.

sub duplicate {
	my ($to, @files) = @_;

	return $json->encode({ target => { type => 'model', name => $to },
		files => [ map { { xetHash => $_->[0], sha256 => $_->[1],
			filename => 'a' } } @files ] });
}

sub copies {
	my ($who, $from, $to, @files) = @_;

	return post($who, "/api/models/$from/lfs-files/duplicate",
		duplicate($to, @files));
}

sub start_copies {
	my ($who, $from, $to, @files) = @_;

	my $body = duplicate($to, @files);

	return $t->http_start('POST',
		"/api/models/$from/lfs-files/duplicate", { %$who,
			'Content-Length' => length($body) }, $body,
		timeout => 60);
}

sub start_delete {
	my ($who, $name) = @_;

	my $text = $json->encode({ name => $name });

	return $t->http_start('DELETE', '/api/repos/delete', { %$who,
		'Content-Length' => length($text) }, $text, timeout => 60);
}

# Copies files.  Returns the SHA-256 hashes of the files that were not copied,
# or the HTTP status if the request failed.

sub copied {
	my ($who, $from, $to, @files) = @_;

	my $r = copies($who, $from, $to, @files);

	return "$r->{status}" if $r->{status} != 200;

	my $said = $r->json();

	return 'success is wrong' if !$said->{success} != @{ $said->{failed} };

	return join(' ', map { $_->{sha256} } @{ $said->{failed} });
}

# Returns the statement of a batch that adds one of the two files to the bucket.

sub taken_by_batch {
	my ($n, $digest) = @_;

	my $upload = sprintf("'\\x%032x'", $n);

	return "SELECT xet.hub_stage($upload, 0, '{3}', ARRAY['p$n'::bytea],"
		. " '{NULL}', ARRAY[(SELECT hash FROM xet.files WHERE sha256 ="
		. " '\\x$digest')], '{NULL}', '{NULL}', '{NULL}',"
		. " ARRAY['model/alice/two'::bytea]);"
		. " SELECT body FROM xet.hub_batch(ROW(3, 'alice', 'box', true,"
		. " '{}', true, ''), $upload, 1)";
}

# Takes a lock with a statement, starts requests that wait for this lock, one
# after the other, and releases the lock.  Returns the responses.

sub meets {
	my ($sql, @starts) = @_;

	my $session = $t->pg_session();
	my @c;

	$session->run('BEGIN');
	$session->run($sql);

	for my $start (@starts) {
		push @c, $start->();
		ok(wait_for(20, sub { $t->pg_blocked() >= @c }),
			@c . ' wait');
	}

	$session->run('COMMIT');
	$session->close();

	return map { $_->response() } @c;
}

sub store {
	my ($owner, $name) = split(m!/!, $_[0]);

	return $t->sql("SELECT xet.hub_store(id) FROM xet.hub_repos"
		. " WHERE owner = '$owner' AND name = '$name'");
}

sub places {
	return $t->sql('SELECT count(*) FROM xet.repo_files rf JOIN xet.repos'
		. " r ON r.id = rf.repo_id WHERE r.name = '" . store($_[0])
		. "'");
}

sub entry {
	my ($who, $repo, $path) = @_;

	my ($entry) = grep { $_->{path} eq $path }
		@{ $t->get("/api/models/$repo/tree/main", $who)->json() };

	return $entry;
}

sub text {
	my ($who, $repo, $path) = @_;

	my $r = $t->get("/$repo/resolve/main/$path", $who);

	return $r->{status} == 200 ? $r->{body} : $r->{status};
}

# Returns an API token for the repo, as clients get it.

sub cas {
	my ($who, $repo) = @_;

	my $r = $t->get("/api/models/$repo/xet-write-token/main", $who);

	return { Authorization => 'Bearer ' . $r->json()->{accessToken} };
}

sub start_create {
	my ($who, %o) = @_;

	my $text = $json->encode(\%o);

	return $t->http_start('POST', '/api/repos/create', { %$who,
		'Content-Length' => length($text) }, $text, timeout => 60);
}

# Returns a file for the body of a request that creates a repo.

sub stands {
	my ($path, $data) = @_;

	return inline($path, $data)->{value};
}

sub nurseries {
	return $t->sql("SELECT count(*) FROM xet.repos"
		. " WHERE name LIKE '\\_hub/new/%'");
}

# Checks that no staged rows are left.

sub empty {
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok(wait_for(20, sub { !nurseries()
		&& !$t->sql('SELECT count(*) FROM xet.hub_staged') }),
		"$name: nothing stays on its way");
}

# Uploads a file without a commit; returns the hash.

sub lfs_put {
	my ($who, $repo, $data) = @_;

	my $r = post($who, "/$repo.git/info/lfs/objects/batch", {
		operation => 'upload', objects => [ { oid => sha256_hex($data),
			size => length $data } ] });

	$r = $t->put($r->json()->{objects}[0]{actions}{upload}{href}
		=~ s!^http://[^/]+!!r, $data);

	die $r->summary() if $r->{status} != 200;

	return $t->sql("SELECT encode(xet.hub_hash(hash), 'hex')"
		. " FROM xet.files WHERE sha256 = decode('"
		. sha256_hex($data) . "', 'hex')");
}

sub lfs_line {
	my ($path, $oid) = @_;

	return { key => 'lfsFile', value => { path => $path, algo => 'sha256',
		oid => $oid } };
}

sub inline {
	my ($path, $data) = @_;

	return { key => 'file', value => { path => $path,
		encoding => 'base64',
		content => MIME::Base64::encode_base64($data, '') } };
}

sub gone { return { key => 'deletedFile', value => { path => $_[0] } } }
