#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The HTTP interface of a Hub: repos, commits, trees and files by name, as
# clients request them; refused requests, and the errors that clients get.

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

my $t = Test::Xet->new(Test::Xet::Table::hub());

$t->token_key();
$t->run();

# --------------------------------------------------------------------------
# repos

my $r = create(name => 'm', organization => 'me');

is($r->{status}, 200, 'create');
is($r->json()->{url}, $t->url('/me/m'), 'create: its URL');

$r = create(name => 'M', organization => 'ME');
is($r->{status}, 409, 'create: twice');
is($r->json()->{url}, $t->url('/me/m'), 'create: twice: with the URL');
like($r->json()->{error}, qr/already/, 'create: twice: a text');

is(create(name => 'x')->json()->{url}, $t->url('/me/x'),
	'create: without a name space');
is(create(name => 'd', type => 'dataset')->json()->{url},
	$t->url('/datasets/me/d'), 'create: a dataset');

for my $bad ('a--b', '.a', 'a.git', 'a/b/c', '') {
	is(create(name => $bad)->{status}, 400, "create: '$bad'");
}

is(create(name => 'a', organization => $_)->{status}, 400,
	"create: by '$_'") for qw/ api datasets xorbs /;

$r = $t->get('/api/models/me/m');
is($r->{status}, 200, 'info');
is($r->json()->{id}, 'me/m', 'info: id');
like($r->json()->{sha}, qr/^[0-9a-f]{40}$/, 'info: a commit, though empty');
like($r->json()->{lastModified}, qr/^\d{4}-\d\d-\d\dT[\d:.]+Z$/,
	'info: a date');

refused('/api/models/me/no', 'RepoNotFound');
refused('/api/datasets/me/m', 'RepoNotFound', 'another kind');
refused('/api/models/me/m/revision/no', 'RevisionNotFound');
refused('/api/models/me/m/tree/main/no', 'EntryNotFound');
refused('/me/m/resolve/main/no', 'EntryNotFound');
refused('/me/m/resolve/no/x', 'RevisionNotFound');
refused('/me/no/resolve/main/x', 'RepoNotFound');
refused('/api/models/me/m/discussions', 'NotSupported', 'no list');

# --------------------------------------------------------------------------
# files: uploaded by LFS, inside a commit, and empty

my %files = ('a.txt' => 'hello', 'd/e/f g#?.bin' => mix(1, 300_000),
	'd/empty' => '', '.x' => 'dot');
my $head = commit('me/m', map { lfs('me/m', $_, $files{$_}) }
	sort keys %files);

is($head->{status}, 200, 'commit') or diag($head->summary());

my $oid = $head->json()->{commitOid};

is($head->json()->{commitUrl}, $t->url("/me/m/commit/$oid"),
	'commit: its URL');
is($t->get('/api/models/me/m')->json()->{sha}, $oid, 'commit: is the last');

is(paths('/api/models/me/m/tree/main?recursive=true'),
	'.x a.txt d/ d/e/ d/e/f g#?.bin d/empty', 'tree: recursive');
is(paths('/api/models/me/m/tree/main'), '.x a.txt d/', 'tree');
is(paths("/api/models/me/m/tree/$oid/d"), 'd/e/ d/empty', 'tree: a folder');
is(paths('/api/models/me/m/tree/main/d%2Fe'), 'd/e/f g#?.bin',
	'tree: a folder, encoded');

my ($entry) = grep { $_->{path} eq 'a.txt' }
	@{ $t->get('/api/models/me/m/tree/main?expand=true')->json() };

is($entry->{lfs}{oid}, sha256_hex('hello'), 'tree: sha256');

for my $case ([ 'a.txt', 'is not a folder' ], [ 'no', 'does not exist' ],
	[ 'a.txt/b', 'does not exist' ])
{
	my ($path, $text) = @$case;
	my $r = $t->get("/api/models/me/m/tree/main/$path");

	is($r->{status}, 404, "tree of $path");
	is($r->header_value('X-Error-Code'), 'EntryNotFound',
		"tree of $path: the code");
	is($r->header_value('X-Error-Message'), qq{$path $text on "main"},
		"tree of $path: the message");
}
is($entry->{size}, 5, 'tree: size');
is($entry->{lastCommit}{id}, $oid, 'tree: the commit');

for my $path (sort keys %files) {
	my $uri = '/me/m/resolve/main/' . escape($path);
	my $r = $t->get($uri);

	is($r->{status}, 200, "resolve: $path");
	ok($r->{body} eq $files{$path}, "resolve: $path: its bytes");
	is($r->header_value('X-Repo-Commit'), $oid, "resolve: $path: commit");

	my $h = $t->head($uri);

	is($h->{status}, 200, "resolve: $path: HEAD");
	is($h->header_value('Content-Length'), length($files{$path}),
		"resolve: $path: HEAD: size");
	is($h->header_value('ETag'), $r->header_value('ETag'),
		"resolve: $path: HEAD: the same ETag");
}

$r = $t->head('/me/m/resolve/main/a.txt');
is($r->header_value('ETag'), '"' . sha256_hex('hello') . '"',
	'resolve: ETag is the SHA-256');
is($r->header_value('X-Linked-Size'), 5, 'resolve: X-Linked-Size');
is($r->header_value('Link'), '<' . $t->url("/api/models/me/m/xet-read-token/"
	. $oid) . '>; rel="xet-auth"', 'resolve: Link');
like($r->header_value('X-Xet-Hash'), qr/^[0-9a-f]{64}$/, 'resolve: hash');

$r = $t->get('/me/m/resolve/main/a.txt', { Range => 'bytes=1-2' });
is($r->{status}, 206, 'resolve: a range');
is($r->{body}, 'el', 'resolve: a range: its bytes');
is($r->header_value('Content-Range'), 'bytes 1-2/5', 'resolve: a range: of');

$r = $t->get('/me/m/resolve/main/d/empty', { Range => 'bytes=0-0' });
is($r->{status}, 200, 'resolve: a range of nothing');
is($r->header_value('Content-Range'), 'bytes */0',
	'resolve: an invalid range: the size');

is($t->get('/me/m/resolve/main/a.txt', { 'If-None-Match' => '"'
	. sha256_hex('hello') . '"' })->{status}, 304, 'resolve: 304');

# The conditions apply to HEAD, too, and to a range of an empty file.

for my $case ([ 'a.txt', sha256_hex('hello') ],
	[ 'd/empty', 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391' ])
{
	my ($path, $etag) = @$case;

	for my $row ([ 'If-None-Match' => qq{"$etag"}, 304 ],
		[ 'If-None-Match' => qq{"x", W/"$etag"}, 304 ],
		[ 'If-None-Match' => '"x"', 200 ],
		[ 'If-Match' => '"x"', 412 ],
		[ 'If-Match' => qq{"$etag"}, 200 ])
	{
		my ($name, $value, $status) = @$row;

		is($t->head("/me/m/resolve/main/$path", { $name => $value })
			->{status}, $status, "HEAD $path: $name: $value");
	}
}

is($t->get('/me/m/resolve/main/d/empty', { Range => 'bytes=0-0',
	'If-None-Match' => '"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"' })
	->{status}, 304, 'resolve: a range of nothing: 304');

# --------------------------------------------------------------------------
# raw: the pointer of a file that is in LFS on huggingface.co

my %raw = ('raws/t.gguf' => 'GGUF', 'raws/t.safetensors' => 'st',
	'raws.bin/a' => 'text', 'raws/README.md' => '# text',
	'raws/x.png' => 'PNG', 'raws/no.gguf' => '', 'raws/pt' => 'p');

is(commit('me/m', map { inline($_, $raw{$_}) } sort keys %raw)->{status}, 200,
	'raw: a commit');

$raw{"raws/$_"} = "\0" x (10 * 1024 * 1024 + $_) for 0, 1;

is(commit('me/m', map { lfs('me/m', $_, $raw{$_}) } 'raws/0', 'raws/1')
	->{status}, 200, 'raw: large files');

for my $path (sort keys %raw) {
	my $sum = sha256_hex($raw{$path});
	my $points = $path =~ m!t\.(gguf|safetensors)$|/1$!;
	my $want = $points ? "version https://git-lfs.github.com/spec/v1\n"
		. "oid sha256:$sum\nsize " . length($raw{$path}) . "\n"
		: $raw{$path};

	$r = $t->get("/me/m/raw/main/$path");
	is($r->{status}, 200, "raw: $path");
	ok($r->{body} eq $want, "raw: $path: the body");
	is($t->head("/me/m/raw/main/$path")->header_value('Content-Length'),
		length($want), "raw: $path: HEAD");
	ok($t->get("/me/m/resolve/main/$path")->{body} eq $raw{$path},
		"resolve: $path");
	next if !$points;

	is($r->header_value('ETag'), '"' . substr($sum, 0, 40) . '"',
		"raw: $path: ETag");
	is($r->header_value('X-Xet-Hash'), undef, "raw: $path: no hash");
	is($t->get("/me/m/raw/main/$path", { 'If-None-Match' =>
		$r->header_value('ETag') })->{status}, 304, "raw: $path: 304");
	is($t->get("/me/m/raw/main/$path", { Range => 'bytes=0-0' })->{body},
		$want, "raw: $path: a range");
}

# --------------------------------------------------------------------------
# a file inside the commit

is(commit('me/m', inline('in.txt', 'inline'), inline('in0', ''))->{status},
	200, 'inline');
is($t->get('/me/m/resolve/main/in.txt')->{body}, 'inline', 'inline: bytes');
is($t->get('/me/m/resolve/main/in0')->{body}, '', 'inline: none');

# --------------------------------------------------------------------------
# claims of a SHA-256

create(name => 'other');
is(commit('me/other', lfs_line('s', sha256_hex('hello'), 5))->{status}, 400,
	'a hash of another repo');
is(commit('me/m', lfs_line('s', sha256_hex('hello'), 6))->{status}, 400,
	'a size that is another');
is(commit('me/m', lfs_line('s', sha256_hex('never'), 5))->{status}, 400,
	'a file that was never sent');
is(paths('/api/models/me/other/tree/main'), '', 'nothing of it is there');

# a commit is complete or has no effect

is(commit('me/m', inline('half', 'x'), lfs_line('s', sha256_hex('never')))
	->{status}, 400, 'half of a commit');
refused('/me/m/resolve/main/half', 'EntryNotFound', 'not committed');

# --------------------------------------------------------------------------
# concurrent changes

my $first = $t->get('/api/models/me/m')->json()->{sha};

is(commit('me/m', inline('w', '1'))->{status}, 200, 'parent: one');
is(commit('me/m', { parent => $first }, inline('v', '2'))->{status}, 200,
	'parent: another path, both stand');
is(commit('me/m', { parent => $first }, inline('w', '2'))->{status}, 412,
	'parent: the same path');
is($t->get('/me/m/resolve/main/w')->{body}, '1', 'parent: is as it was');

my $same = $t->get('/api/models/me/m')->json()->{sha};

is(commit('me/m', inline('w', '1'))->json()->{commitOid}, $same,
	'the same again is no commit');

# --------------------------------------------------------------------------
# invalid paths

for my $bad ('../x', 'a/../x', '/x', 'a//b', './x', 'a/.', "a\nb", '') {
	is(commit('me/m', inline($bad, 'x'))->{status}, 400,
		'no path: ' . JSON::PP->new()->allow_nonref()->encode($bad));
}

is(commit('me/m', inline('a.txt/b', 'x'))->{status}, 400,
	'a file is no folder');
is(commit('me/m', inline('d', 'x'))->{status}, 400, 'a folder is no file');
is(commit('me/m', delete_line('nope'))->{status}, 404,
	'what is not there can\'t be deleted');

# --------------------------------------------------------------------------
# changes: a folder is deleted, a file replaces it, the history remains

is(commit('me/m', { key => 'deletedFolder', value => { path => 'd/' } },
	inline('d', 'a file'))->{status}, 200, 'a file for a folder');
is($t->get('/me/m/resolve/main/d')->{body}, 'a file', 'is there');
is($t->get("/me/m/resolve/$oid/d/e/" . escape('f g#?.bin'))->{status}, 200,
	'and the past');

# --------------------------------------------------------------------------
# paths without a page, for a browser and for a client

for my $accept ('text/html', '*/*') {
	my $r = $t->get('/me/m.git/info/lfs/objects/batch',
		{ Accept => $accept });

	is($r->{status}, 405, "a method that is none: $accept");
	is($r->header_value('Allow'), 'POST', "$accept: which are");
	like($r->{body}, qr/^\{"error":/, "$accept: the body");
}

$t->done();

# --------------------------------------------------------------------------

sub create {
	my (%o) = @_;

	return $t->post('/api/repos/create', \JSON::PP::encode_json(\%o),
		{ 'Content-Type' => 'application/json' });
}

sub refused {
	my ($uri, $code, $name) = @_;

	my $r = $t->get($uri);

	$name = defined $name ? "$uri: $name" : $uri;

	is($r->{status}, 404, "$name: 404");
	is($r->header_value('X-Error-Code') // '', $code, "$name: code");
	is(ref($r->json()), 'HASH', "$name: an object");
	ok(!ref $r->json()->{error}, "$name: with a text");
}

# Sends a commit of these lines; the parent may come first.

sub commit {
	my ($repo, @lines) = @_;

	my %header = (summary => 'a commit');

	if (ref $lines[0] && exists $lines[0]{parent}) {
		$header{parentCommit} = (shift @lines)->{parent};
	}

	my $body = join("\n", map { JSON::PP::encode_json($_) }
		{ key => 'header', value => \%header }, @lines);

	return $t->post("/api/models/$repo/commit/main", \$body,
		{ 'Content-Type' => 'application/x-ndjson' });
}

# Uploads a file by LFS, and returns the line that adds it to a commit.

sub lfs {
	my ($repo, $path, $data) = @_;

	return inline($path, '') if $data eq '';

	my $oid = sha256_hex($data);
	my $r = $t->post("/$repo.git/info/lfs/objects/batch",
		\JSON::PP::encode_json({ operation => 'upload',
			transfers => [ 'basic' ], objects => [ { oid => $oid,
				size => length($data) } ] }),
		{ 'Content-Type' => 'application/vnd.git-lfs+json' });
	my $action = $r->json()->{objects}[0]{actions}{upload};

	if ($action) {
		my ($uri) = $action->{href} =~ m!^http://[^/]+(/.*)!;
		my $put = $t->http('PUT', $uri, {
			'Content-Length' => length($data) }, $data);

		die $put->summary() if $put->{status} != 200;
	}

	return lfs_line($path, $oid, length($data));
}

sub lfs_line {
	my ($path, $oid, $size) = @_;

	return { key => 'lfsFile', value => { path => $path, algo => 'sha256',
		oid => $oid, defined $size ? (size => $size) : () } };
}

sub inline {
	my ($path, $data) = @_;

	return { key => 'file', value => { path => $path,
		encoding => 'base64',
		content => MIME::Base64::encode_base64($data, '') } };
}

sub delete_line { return { key => 'deletedFile', value => { path => $_[0] } } }

sub paths {
	my ($uri) = @_;

	return join(' ', map { $_->{path}
		. ($_->{type} eq 'directory' ? '/' : '') }
		@{ $t->get($uri)->json() });
}

sub escape {
	my ($path) = @_;

	return $path =~ s!([^A-Za-z0-9._/-])!sprintf('%%%02X', ord($1))!ger;
}
