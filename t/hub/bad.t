#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Invalid requests to a Hub: each gets a 4xx response with an error message in
# JSON.  X-Error-Code has a code if clients map this code to an exception.  The
# server logs one line for each request and changes nothing, and no caller
# learns anything about other users' data.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Refusal;
use Test::Xet::Table;
use Test::Xet::Token;

use Digest::SHA qw/ hmac_sha256 sha256_hex /;
use JSON::PP ();
use MIME::Base64 ();

my $t = Test::Xet->new(Test::Xet::Table::hub(
	'xet_auth token; xet_hub_public on;',
	Test::Xet::Token::token_location()), workers => 1);

$t->token_key();
$t->run();

my $refusal = Test::Xet::Refusal->new($t);
my $json = JSON::PP->new()->canonical();
my %known = map { $_ => 1 } qw/ EntryNotFound RepoNotFound RevisionNotFound /;
my $alice = $t->auth('write', '@alice');
my $bob = $t->auth('write', '@bob');
my $reader = $t->auth('read', '@alice');
my $ours = $t->auth('delete', '@alice');

# Returns digests of all rows that callers can see.  Uploaded files without a
# commit are not included; the sweep deletes such files after a day.

sub state {
	return join("\n", map { $t->sql('SELECT md5(coalesce(string_agg('
		. "x::text, E'\\n' ORDER BY x::text), '')) FROM xet.$_ x") }
		qw/ hub_repos hub_moved hub_lines hub_commits hub_refs
		hub_paths repos /);
}

my $state;

# The message of a refusal.

sub reason {
	my ($who, $uri, $body) = @_;

	my $r = $t->post($uri, \$json->encode($body), { %$who,
		'Content-Type' => 'application/json' });

	is($r->header_value('X-Error-Message'), $r->json()->{error},
		"$uri: the header has the same reason");

	return $r->json()->{error};
}


# Headers with a token of alice, made with the key of token_key().

sub expired {
	my $text = join('.', map { MIME::Base64::encode_base64url(
		$json->encode($_)) } { alg => 'HS256', kid => 't1' },
		{ exp => time() - 10, scope => 'write', sub => 'alice' });

	return { Authorization => "Bearer $text."
		. MIME::Base64::encode_base64url(hmac_sha256($text,
			pack('H*', 'ab' x 32))) };
}


# Checks an invalid request: [ name, method, uri, body, status, code ], and the
# caller.

sub bad {
	my ($name, $method, $uri, $body, $status, $code, %o) = @_;

	my %headers = (%{ $o{who} // $alice },
		'Content-Type' => 'application/json', %{ $o{headers} // {} });

	my $r = $t->http($method, $uri, \%headers,
		defined $body ? (ref $body ? \$json->encode($body) : \$body)
		: undef, timeout => 60);

	refused($r, $name, $status, $code, %o);

	return $r;
}

sub refused {
	my ($r, $name, $status, $code, %o) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 2;

	my $said = $r->json();
	my $now = state();
	my @lines = grep { / xet: \d\d\d \w+: / } $refusal->all();
	my $level = $status !~ /^40[1459]|^412/ && $o{reads} ? 'info'
		: $status =~ /^40[1459]|^412/ ? 'info' : 'error';
	my @wrong;

	push @wrong, "status $r->{status}: $r->{body}"
		if $r->{status} != $status;
	push @wrong, 'no JSON: ' . substr($r->{body} // '', 0, 200)
		unless ref $said eq 'HASH' && defined $said->{error}
			&& !ref $said->{error} && length $said->{error};
	push @wrong, 'no X-Error-Message'
		unless length($r->header_value('X-Error-Message') // '');
	my $told = $r->header_value('X-Error-Code') // '';

	push @wrong, "X-Error-Code: $told"
		if $told ne ($known{$code} ? $code
			: $status == 404 ? 'EntryNotFound' : '');
	push @wrong, @lines . " lines: @lines"
		if @lines != 1
			|| $lines[0] !~ /\[$level\].* xet: $status $code: /;
	push @wrong, 'something has changed' if $now ne $state;

	is(join('; ', @wrong), '', $name);
	$state = $now;
}

sub good {
	my ($r, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($r->{status}, 200, $name) or diag($r->summary());
	$refusal->all();
	$state = state();

	return $r;
}

sub Test::Xet::Refusal::all {
	my ($self) = @_;

	if (!$self->{log}) {
		CORE::open($self->{log}, '<', $t->dir() . '/error.log')
			or die "error.log: $!\n";
	}

	my $log = $self->{log};

	seek($log, 0, 1);

	my @lines = <$log>;

	return @lines;
}

sub create {
	my ($who, %o) = @_;

	return $t->post('/api/repos/create', \$json->encode(\%o),
		{ %$who, 'Content-Type' => 'application/json' });
}

sub lines {
	my (@lines) = @_;

	my %header = (summary => 'a commit');

	if (ref $lines[0] && exists $lines[0]{parent}) {
		$header{parentCommit} = (shift @lines)->{parent};
	}

	return join('', map { ref $_ ? $json->encode($_) . "\n" : $_ }
		{ key => 'header', value => \%header }, @lines);
}

sub commit {
	my ($who, $repo, @lines) = @_;

	return $t->post("/api/models/$repo/commit/main", \lines(@lines),
		{ %$who, 'Content-Type' => 'application/x-ndjson' },
		timeout => 60);
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

sub gone { return { key => 'deletedFile', value => { path => $_[0] } } }
sub folder { return { key => 'deletedFolder', value => { path => $_[0] } } }

sub text_of {
	my ($who, $uri) = @_;

	my $r = $t->get($uri, $who);

	return $r->{status} == 200 ? $r->{body} : $r->{status};
}

sub tree {
	my ($who, $repo) = @_;

	return join(' ', map { $_->{path} } grep { $_->{type} eq 'file' }
		@{ $t->get("/api/models/$repo/tree/main?recursive=true", $who)
			->json() });
}

# Returns an API token for the repo, as clients get it.

sub cas {
	my ($who, $repo) = @_;

	my $r = $t->get("/api/models/$repo/xet-write-token/main", $who);

	return { Authorization => 'Bearer ' . $r->json()->{accessToken} };
}

# --------------------------------------------------------------------------
# alice and bob each have a public and a private repo

for ([ $alice, name => 'm' ], [ $alice, name => 'p', private => \1 ],
	[ $bob, name => 'b' ], [ $bob, name => 'q', private => \1 ])
{
	my ($who, %o) = @$_;

	good(create($who, %o), "create $o{name}");
}

good(commit($alice, 'alice/m', inline('a.txt', 'hello'),
	inline('d/x', 'in a folder'), inline('Case', '1')), 'commit');
good(commit($bob, 'bob/q', inline('secret', 'of bob')), 'commit of bob');

# --------------------------------------------------------------------------
# requests for repos and files that do not exist, or belong to other callers

for my $path (qw{ no/m alice/no bob/q }) {
	for my $uri ("/api/models/$path", "/api/models/$path/tree/main",
		"/api/models/$path/refs", "/$path/resolve/main/secret",
		"/api/models/$path/commits/main",
		"/api/models/$path/xet-read-token/main",
		"/api/models/$path/xet-write-token/main",
		"/api/models/$path/auth-check/write",
		"/$path/raw/main/secret")
	{
		bad($uri, 'GET', $uri, undef, 404, 'RepoNotFound', reads => 1);
	}

	bad("$path: preupload", 'POST', "/api/models/$path/preupload/main",
		{ files => [ { path => 'x', size => 1 } ] }, 404,
		'RepoNotFound');
	bad("$path: commit", 'POST', "/api/models/$path/commit/main",
		lines(inline('x', 'y')), 404, 'RepoNotFound');
	bad("$path: paths", 'POST', "/api/models/$path/paths-info/main",
		{ paths => [ 'secret' ] }, 404, 'RepoNotFound');
	bad("$path: lfs $_", 'POST', "/$path.git/info/lfs/objects/batch",
		{ operation => $_, objects => [ { oid => sha256_hex('of bob'),
			size => 6 } ] }, 404, 'RepoNotFound')
		for qw/ upload download /;
	bad("$path: branch", 'POST', "/api/models/$path/branch/x", {}, 404,
		'RepoNotFound');
	bad("$path: tag", 'DELETE', "/api/models/$path/tag/x", undef, 404,
		'RepoNotFound');
	bad("$path: settings", 'PUT', "/api/models/$path/settings",
		{ private => \0 }, 404, 'RepoNotFound');
	bad("$path: move", 'POST', '/api/repos/move', { fromRepo => $path,
		toRepo => 'alice/got' }, 404, 'RepoNotFound');
	bad("$path: delete", 'DELETE', '/api/repos/delete', { name => $path },
		404, 'RepoNotFound', who => $ours);
}

for my $uri (map { "/api/models/alice/m/$_" } 'tree/no', 'commits/no',
	'revision/no', 'tree/' . 'a' x 40, 'tree/' . '0' x 39,
	'tree/refs%2Fpr%2F1', 'tree/main%2F', 'tree/%ff',
	'tree/' . 'x' x 255, 'tree/' . 'x' x 256)
{
	bad($uri, 'GET', $uri, undef, 404, 'RevisionNotFound', reads => 1);
}

# writes by callers with only read access

for ([ 'POST', 'commit/main', lines(inline('x', 'y')) ],
	[ 'POST', 'preupload/main', { files => [] } ],
	[ 'GET', 'xet-write-token/main' ], [ 'POST', 'branch/x', {} ],
	[ 'DELETE', 'branch/main' ], [ 'POST', 'tag/main', { tag => 'v' } ],
	[ 'PUT', 'settings', { private => \1 } ],
	[ 'GET', 'auth-check/write' ])
{
	my ($method, $route, $body) = @$_;

	bad("of another: $route", $method, "/api/models/alice/m/$route", $body,
		403, 'insufficient_scope', who => $bob,
		reads => $method ne 'POST' && $method ne 'PUT');
	bad("may only read: $route", $method, "/api/models/alice/m/$route",
		$body, 403, 'insufficient_scope', who => $reader,
		reads => $method ne 'POST' && $method ne 'PUT');
	bad("nobody: $route", $method, "/api/models/alice/m/$route", $body, 401,
		'invalid_token', who => {});
}

bad('of another: lfs', 'POST', '/alice/m.git/info/lfs/objects/batch',
	{ operation => 'upload', objects => [] }, 403, 'insufficient_scope',
	who => $bob);
bad('may only read: lfs', 'POST', '/alice/m.git/info/lfs/objects/batch',
	{ operation => 'upload', objects => [] }, 403, 'insufficient_scope',
	who => $reader);
bad('of another: delete', 'DELETE', '/api/repos/delete',
	{ name => 'alice/m' }, 403, 'insufficient_scope', reads => 1,
	who => $t->auth('delete', '@bob'));
bad('without the scope: delete', 'DELETE', '/api/repos/delete',
	{ name => 'alice/m' }, 403, 'insufficient_scope', reads => 1);
bad('of another: move', 'POST', '/api/repos/move', { fromRepo => 'alice/m',
	toRepo => 'bob/m' }, 403, 'insufficient_scope', who => $bob);
bad('to another: move', 'POST', '/api/repos/move', { fromRepo => 'alice/m',
	toRepo => 'bob/m' }, 403, 'insufficient_scope');
bad('of another: create', 'POST', '/api/repos/create', { name => 'alice/new' },
	403, 'insufficient_scope', who => $bob);
bad('a forged token', 'GET', '/api/models/alice/m', undef, 401,
	'invalid_token', who => { Authorization => 'Bearer hf_'
		. ($alice->{Authorization} =~ s/^Bearer //r =~ s/.\z/!/r) });

# an API token for one repo gives no access to a name space or to another repo

my $bound = cas($alice, 'alice/m');

is(text_of($bound, '/alice/m/resolve/main/a.txt'), 'hello',
	'a token for a repo reads it');
$refusal->all();

bad('a token for a repo: create', 'POST', '/api/repos/create',
	{ name => 'alice/new' }, 403, 'insufficient_scope', who => $bound);
bad('a token for a repo: another one', 'GET', '/api/models/alice/p', undef,
	404, 'RepoNotFound', who => $bound, reads => 1);
bad('a token for a repo: commit to another', 'POST',
	'/api/models/bob/b/commit/main', lines(inline('x', 'y')), 403,
	'insufficient_scope', who => $bound);
bad('a token for a repo: move', 'POST', '/api/repos/move',
	{ fromRepo => 'alice/m', toRepo => 'alice/m2' }, 403,
	'insufficient_scope', who => $bound);

# the reason, which clients print; it is the same if a private repo has the name

my $create = 'The token is for one repository, and must not create or move '
	. 'repositories';

for my $case ([ 'create', '/api/repos/create', { name => 'alice/new' } ],
	[ 'create a private one', '/api/repos/create', { name => 'alice/p' } ],
	[ 'move', '/api/repos/move', { fromRepo => 'alice/m',
		toRepo => 'alice/m2' } ])
{
	my ($name, $uri, $body) = @$case;

	is(reason($bound, $uri, $body), $create,
		"a token for a repo: $name: the reason");
}

is(reason($bound, '/api/models/bob/b/preupload/main', { files => [] }),
	'The token is for another repository',
	'a token for a repo: upload to another: the reason');
is(reason($bob, '/api/models/alice/m/preupload/main', { files => [] }),
	'You may read this repository, but not write to it',
	'of another: the reason');

# 401: Python recognizes the header, and prints both

for my $case ([ 'nobody', {}, 'a token is required' ],
	[ 'a token that is none', { Authorization => 'Bearer hf_junk' },
		'malformed token' ],
	[ 'an expired token', expired(), 'the token has expired' ])
{
	my ($name, $who, $reason) = @$case;
	my $r = $t->post('/api/repos/create',
		\$json->encode({ name => 'alice/new' }),
		{ %$who, 'Content-Type' => 'application/json' });

	is($r->json()->{error}, $reason, "$name: the reason");
	is($r->header_value('X-Error-Message'),
		'Invalid credentials in Authorization header',
		"$name: what Python recognizes");
}

$refusal->all();

# --------------------------------------------------------------------------
# invalid paths

for my $path ('a%0ab', '%7f', 'd%5c..%5ca.txt', '..%5ca.txt', '%ff%fe',
	'%c0%ae%c0%ae/a.txt', '%ed%a0%80', 'a.txt/x', 'a.txt/', 'A.TXT', 'D/x',
	'case', 'd', 'x' x 256, join('/', ('y' x 200) x 6), '%252e%252e/a.txt',
	'z/' x 32000)
{
	my $name = length $path > 40 ? substr($path, 0, 40) . '...' : $path;

	next if $path eq 'a.txt/';
	bad("resolve $name", 'GET', "/alice/m/resolve/main/$path", undef, 404,
		'EntryNotFound', reads => 1);
	next if $path eq 'd';
	bad("tree $name", 'GET', "/api/models/alice/m/tree/main/$path", undef,
		404, 'EntryNotFound', reads => 1);
}

# nginx resolves dots and slashes before the module gets the path.  Dots may
# lead out of a folder, but not out of the files of the repo.

is(text_of($alice, "/alice/m/resolve/main/$_"), 'hello', "$_ is a.txt")
	for 'd/../a.txt', 'd%2f..%2fa.txt', './a.txt', '/a.txt';
$refusal->all();

bad("no revision: $_", 'GET', "/alice/m/resolve/main/$_", undef, 404,
	'RevisionNotFound', reads => 1)
	for '../a.txt', '%2e%2e/a.txt', '%2e%2e%2fa.txt';
bad("no route: $_", 'GET', "/alice/m/resolve/main/$_", undef, 404, 'no_route',
	reads => 1) for '..', '..%2f..%2fetc/passwd', '../../../../x/y/z/';
is($t->get("/alice/m/resolve/main/$_", $alice)->{status}, 400, "400: $_")
	for '%', '%zz', 'a.txt%00', '../../../../../../etc/passwd';
$refusal->all();

for my $path ('..', '.', '', '/', '/a', 'a/', '../x', 'd/../a', 'd/./x', 'd//x',
	"a\0b", "a\nb", "a\x7f", "a\tb", 'x' x 256, join('/', ('y' x 200) x 6),
	'z/' x 32768, 'a/..', './x')
{
	my $name = $json->allow_nonref()->encode(substr($path, 0, 20));
	my $code = $path =~ /\0/ ? 'invalid_commit' : 'invalid_path';

	my $r = bad("commit of $name", 'POST',
		'/api/models/alice/m/commit/main',
		lines(inline($path, 'x')), 400, $code);
	my $shown = substr($path, 0, 255) =~ tr/\x00-\x1f\x7f/?/r;

	ok(index($r->json()->{error}, "Invalid file path \"$shown\":") == 0,
		"commit of $name: the path") if $code eq 'invalid_path';
	bad("commit, lfs of $name", 'POST', '/api/models/alice/m/commit/main',
		lines(lfs_line($path, 'ab' x 32, 5)), 400, $code);
	bad("commit, delete $name", 'POST', '/api/models/alice/m/commit/main',
		lines(gone($path)), $path eq 'a/' ? (404, 'EntryNotFound')
			: (400, $code));
}

bad("commit, not UTF-8", 'POST', '/api/models/alice/m/commit/main',
	lines("{\"key\":\"file\",\"value\":{\"path\":\"\xff\","
		. "\"content\":\"\"}}\n"), 400, 'invalid_commit');
bad("commit, half a surrogate", 'POST', '/api/models/alice/m/commit/main',
	lines("{\"key\":\"file\",\"value\":{\"path\":\"\\ud800\","
		. "\"content\":\"\"}}\n"), 400, 'invalid_commit');

for ([ 'a.txt/b', 'below a file' ], [ 'd', 'a folder' ]) {
	my ($path, $name) = @$_;

	bad("commit: $name", 'POST', '/api/models/alice/m/commit/main',
		lines(inline($path, 'x')), 400, 'invalid_path');
	bad("commit: $name, empty", 'POST', '/api/models/alice/m/commit/main',
		lines(inline($path, '')), 400, 'invalid_path');
}

bad('commit: a file and below it', 'POST', '/api/models/alice/m/commit/main',
	lines(inline('n', 'x'), inline('n/m', 'y')), 400, 'invalid_path');
bad('commit: below it and the file', 'POST', '/api/models/alice/m/commit/main',
	lines(inline('n/m/o', 'x'), inline('n/m', 'y')), 400, 'invalid_path');
bad('commit: deletes nothing', 'POST', '/api/models/alice/m/commit/main',
	lines(gone('nothing')), 404, 'EntryNotFound');
bad('commit: deletes a file as a folder', 'POST',
	'/api/models/alice/m/commit/main', lines(folder('a.txt')), 404,
	'EntryNotFound');

good(commit($alice, 'alice/m', inline('case', '2')),
	'names that differ in case');
is(text_of($alice, '/alice/m/resolve/main/Case')
	. text_of($alice, '/alice/m/resolve/main/case'), '12', 'are two files');
$refusal->all();

# --------------------------------------------------------------------------
# invalid names

for my $name ('x' x 97, '', '.', '..', '-a', 'a-', '.a', 'a.', 'a--b', 'a..b',
	'a b', "a\nb", 'a/b/c', 'a.git', 'ä', 'a%2fb', '/a', 'a/')
{
	bad('create ' . $json->allow_nonref()->encode(substr($name, 0, 20)),
		'POST', '/api/repos/create', { name => $name }, 400,
		'invalid_name');
}

for my $body ('', '{', '[]', '"x"', '{}', '{"name":1}', '{"name":null}',
	'{"name":"x","type":"folder"}', "{\"name\":\"\xff\"}", '[' x 5000,
	'{"name":"x\u0000"}')
{
	bad("create: $body" =~ s/(?<=.{40}).*//sr, 'POST', '/api/repos/create',
		$body, 400, $body =~ /:1|folder/ ? 'unsupported_value'
			: 'invalid_body');
}

good(create($alice, name => 'x' x 96), 'a name of 96');
good($t->http('DELETE', '/api/repos/delete', { %$ours,
	'Content-Type' => 'application/json' }, $json->encode({
	name => 'alice/' . 'x' x 96 })), 'which goes');
bad('a body of 2 MiB', 'POST', '/api/repos/create', ' ' x (2 << 20), 413,
	'body_too_large');

for my $ref ('', '..', 'a..b', '-a', 'a.lock', 'x' x 256, 'a~b', 'a^b', 'a:b') {
	bad("tag '" . substr($ref, 0, 20) . "'", 'POST',
		'/api/models/alice/m/tag/main', { tag => $ref }, 400,
		'invalid_revision');
}

for my $ref ('HEAD', 'ab' x 20, 'refs/heads/x', 'ab' x 20 . '/x') {
	bad("tag '" . substr($ref, 0, 20) . "'", 'POST',
		'/api/models/alice/m/tag/main', { tag => $ref }, 400,
		'ref_reserved');
}

bad('a branch of nothing', 'POST', '/api/models/alice/m/branch/x',
	{ startingPoint => 'no' }, 404, 'RevisionNotFound');
bad('a branch that is there', 'POST', '/api/models/alice/m/branch/main', {},
	409, 'ref_exists');
bad('main can not go', 'DELETE', '/api/models/alice/m/branch/main', undef, 403,
	'main_branch', reads => 1);
bad('a tag that is not there', 'DELETE', '/api/models/alice/m/tag/no', undef,
	404, 'RevisionNotFound');

# --------------------------------------------------------------------------
# invalid arguments

bad("a cursor: $_", 'GET', "/api/models?cursor=$_", undef, 400,
	'invalid_cursor', reads => 1)
	for 'x', '1', '1/x', '/', '1e999/1', '-/-', '%ff', '%00', 'NaN/1',
	'1/99999999999999999999', '1' x 500 . '/1', '%0a1/1', '1/1%0a';
bad("a cursor of commits: $_", 'GET', "/api/models/alice/m/commits/main"
	. "?cursor=$_", undef, 400, 'invalid_cursor', reads => 1)
	for 'x', 'a' x 41, '%ff';
bad("a cursor of a tree: $_", 'GET', "/api/models/alice/m/tree/main"
	. "?cursor=$_", undef, 400, 'invalid_cursor', reads => 1)
	for '%ff', '..', '%00';

for my $arg ('author=%ff', 'search=%ff', 'author=%00', 'search=%00',
	'author=' . 'x' x 5000, 'search=%25%25', 'limit=-1', 'limit=x',
	'limit=99999999999999999999', 'author=a,b', "search='")
{
	my $r = $t->get("/api/models?$arg", $alice);

	like("$r->{status}", qr/^(?:200|400)$/,
		'list: ' . substr($arg, 0, 40)) or diag($r->summary());
}

$refusal->all();

# --------------------------------------------------------------------------
# invalid lines of a commit

my $uri = '/api/models/alice/m/commit/main';
my $file = inline('new', 'x');
my $header = $json->encode({ key => 'header', value => { summary => 's' } });

sub op { return $json->encode({ key => $_[0], value => $_[1] }) . "\n" }

for ([ 'nothing', '' ], [ 'no header', op('file', $file->{value}) ],
	[ 'a header twice', lines({ key => 'header',
		value => { summary => 's' } }) ],
	[ 'a header behind', op('file', $file->{value}) . $header ],
	[ 'a header without a summary', "{\"key\":\"header\",\"value\":{}}\n" ],
	[ 'NUL in the title', $header =~ s/"s"/"a\\u0000b"/r ],
	[ 'an unknown key', lines(op('renamedFile', { path => 'a' })) ],
	[ 'no key', lines("{\"value\":{\"path\":\"a\"}}\n") ],
	[ 'no value', lines("{\"key\":\"file\"}\n") ],
	[ 'a number for a value', lines("{\"key\":\"file\",\"value\":1}\n") ],
	[ 'a number for a path', lines(op('deletedFile', { path => 1 })) ],
	[ 'no JSON', lines("nonsense\n") ],
	[ 'half of a line', substr(lines($file), 0, -5) ],
	[ 'two in a line', lines('{"key":"deletedFile",'
		. '"value":{"path":"a.txt"}}' . "{}\n") ],
	[ 'a deep one', lines('{"key":"file","value":' . '[' x 20000 . "\n") ],
	[ 'no content', lines(op('file', { path => 'x' })) ],
	[ 'bad base64', lines(op('file', { path => 'x', encoding => 'base64',
		content => '!!!!' })) ],
	[ 'base64 with a space', lines(op('file', { path => 'x',
		encoding => 'base64', content => ' AAA' })) ],
	[ 'base64 of three', lines(op('file', { path => 'x',
		encoding => 'base64', content => 'AAA' })) ],
	map({ [ "base64 of $_", lines(op('file', { path => 'x',
		encoding => 'base64', content => $_ })) ] } 'A=AA', 'AA=A',
		'=AAA', '====', 'A===', 'AA==AAAA', "AAAA\n", "AA\n="),
	[ 'another encoding', lines(op('file', { path => 'x',
		encoding => 'gzip', content => 'AAAA' })) ],
	[ 'no oid', lines(op('lfsFile', { path => 'x' })) ],
	[ 'half an oid', lines(lfs_line('x', 'ab' x 31, 1)) ],
	[ 'an oid that is none', lines(lfs_line('x', 'zz' x 32, 1)) ],
	[ 'another algorithm', lines(op('lfsFile', { path => 'x',
		algo => 'md5', oid => 'ab' x 32, size => 1 })) ],
	[ 'a size below 0', lines(lfs_line('x', 'ab' x 32, -1)) ],
	[ 'a size beyond 2^63', lines("{\"key\":\"lfsFile\",\"value\":"
		. '{"path":"x","oid":"' . 'ab' x 32 . "\",\"size\":1e30}}\n") ],
	[ 'an operation of a bucket', lines(
		'{"type":"deleteFile","path":"a.txt"}' . "\n") ])
{
	bad("commit: $_->[0]", 'POST', $uri, $_->[1], 400, 'invalid_commit');
}

for ([ 'a title of 5,000', summary => 's' x 5000 ],
	[ 'a text of 70,000', description => 's' x 70000 ],
	[ 'a parent of 41', parentCommit => 'a' x 41 ])
{
	my ($name, $key, $value) = @$_;
	my $r = bad("commit: $name", 'POST', $uri, op('header', {
		summary => 's', $key => $value }), 400, 'unsupported_value');

	like($r->json()->{error}, qr/^The key "$key" must have at most \d+ /,
		"commit: $name: the key and the limit");
}

for ([ 'a line of 1 MiB', lines(inline('x', 'y' x (1 << 20))) ],
	[ 'a line without an end', $header . ' ' x (2 << 20) ],
	[ '1,001 files in it', lines(map { inline("many/$_", "file $_") }
		1 .. 1001) ])
{
	bad("commit: $_->[0]", 'POST', $uri, $_->[1], 413, 'file_too_large');
}

bad('a coding', 'POST', $uri, lines($file), 415,
	'unsupported_content_encoding', headers => {
		'Content-Encoding' => 'gzip' });
bad('a pull request', 'POST', "$uri?create_pr=1", lines($file), 501,
	'no_pull_requests');
bad("to $_", 'POST', "/api/models/alice/m/commit/$_", lines($file), 404,
	'RevisionNotFound') for 'no', 'a' x 40, 'refs%2Ftags%2Fmain';

# a truncated commit changes nothing, wherever it ends

for my $cut (1, length($header) - 3, length($header) + 10,
	length(lines($file)) - 1)
{
	for my $chunked (0, 1) {
		my $body = lines($file);
		my $c = $t->http_start('POST', $uri, { %$alice, $chunked
			? ('Transfer-Encoding' => 'chunked')
			: ('Content-Length' => length($body)) });

		$c->send($chunked ? sprintf("%x\r\n%s", length($body),
			substr($body, 0, $cut)) : substr($body, 0, $cut));
		$cut % 2 ? $c->abort() : $c->close();
	}
}

is($t->get('/api/models/alice/m', $alice)->{status}, 200, 'it still works');
is(state(), $state, 'half a commit is none');
good(commit($alice, 'alice/m', lines($file) =~ s/.*?\n//r =~ s/\n\z//r),
	'a last line without an end');
is(text_of($alice, '/alice/m/resolve/main/new'), 'x', 'is one');
$refusal->all();

# --------------------------------------------------------------------------
# a SHA-256 in a request is only a claim: it does not prove that the client has
# the data

my $secret = sha256_hex('of bob');
my $p = cas($alice, 'alice/p');

sub claim {
	my ($cas, $data, $sha256) = @_;

	my $xorb = make_xorb($data);
	my $shard = make_shard({ files => [ { sha256 => $sha256,
		verification => JSON::PP::true, terms => [ {
			xorb => $xorb->{hash}, start => 0,
			end => scalar @{ $xorb->{chunks} } } ] } ],
		xorbs => [ $xorb ] });

	for ([ "xorbs/default/$xorb->{hash}", $xorb->{bytes} ],
		[ 'shards', $shard->{bytes} ])
	{
		my $r = $t->post("/cas/v1/$_->[0]", \$_->[1], $cas);

		die $r->summary() if $r->{status} != 200;
	}

	return $shard->{files}[0];
}

sub objects {
	my ($who, $repo, $operation, $oid, $size) = @_;

	my $r = $t->post("/$repo.git/info/lfs/objects/batch", \$json->encode({
		operation => $operation, transfers => [ 'basic' ],
		objects => [ { oid => $oid, size => $size } ] }), { %$who,
		'Content-Type' => 'application/vnd.git-lfs+json' });

	return $r->json()->{objects}[0];
}

my $lie = claim($p, mix(1, 5000), $secret);

my $url = objects($alice, 'alice/p', 'download', $secret, 6)
	->{actions}{download}{href} =~ s!^http://[^/]+!!r;
my $given = $t->get($url);

is($given->{status}, 404, 'a claim gives nobody anything')
	or diag($given->summary());
$refusal->all();
bad('a wrong claim', 'POST', '/api/models/alice/p/commit/main',
	lines(lfs_line('stolen', $secret, $lie->{size})), 400, 'unknown_file');
bad('a wrong claim, without a size', 'POST', '/api/models/alice/p/commit/main',
	lines(lfs_line('stolen', $secret)), 400, 'unknown_file');
bad('a wrong claim, of another size', 'POST',
	'/api/models/alice/p/commit/main',
	lines(lfs_line('stolen', $secret, 6)), 400, 'unknown_file');
ok(objects($alice, 'alice/p', 'upload', $secret, 6)->{actions}{upload},
	'and is dropped');

# alice's response does not depend on whether bob has such a file

for my $size (undef, 0, 6, 7) {
	my @told = map { my $sha256 = $_;
		my $r = commit($alice, 'alice/p',
			lfs_line('x', $sha256, $size));

		"$r->{status} $r->{body}" } $secret, sha256_hex('nobody has');

	is($told[0], $told[1], 'not told: size ' . ($size // 'unsaid'));
	like($told[0], qr/^400 /, 'and refused');
}

for my $operation (qw/ upload download /) {
	my @told = map { my $o = objects($alice, 'alice/p', $operation, $_, 6);

		$json->encode($o) =~ s/$_//gr =~ s/s=[0-9a-f]{64}//r
			=~ s/e=\d+//r } $secret, sha256_hex('nobody has');

	is($told[0], $told[1], "not revealed: $operation");
}

is(commit($alice, 'alice/p', lfs_line('x', sha256_hex('no'), 0))->{status},
	400, 'no bytes have one SHA-256');

# a correct claim is accepted: both repos then have the same file

my $right = mix(2, 5000);

claim($p, $right, sha256_hex($right));
good(commit($alice, 'alice/p', lfs_line('right', sha256_hex($right), 5000)),
	'a claim that is true');
ok(text_of($alice, '/alice/p/resolve/main/right') eq $right, 'its bytes');

# knowing the SHA-256 and the Xet hash of a file does not give access to it

bad('of another repo of his own', 'POST', '/api/models/alice/m/commit/main',
	lines(lfs_line('x', sha256_hex($right), 5000)), 400, 'unknown_file');
bad('of another repo of somebody else', 'POST',
	'/api/models/bob/b/commit/main',
	lines(lfs_line('x', sha256_hex($right), 5000)), 400, 'unknown_file',
	who => $bob);

my $xet = $t->head('/bob/q/resolve/main/secret', $bob)
	->header_value('X-Xet-Hash');

is($t->get("/cas/v1/reconstructions/$xet", $p)->{status}, 404,
	'a token of alice gives no file of bob');
is($t->get("/cas/v1/files/$xet", $p)->{status}, 404, 'nor its bytes');
$refusal->all();

# --------------------------------------------------------------------------
# LFS URLs

my $put = objects($alice, 'alice/p', 'upload', sha256_hex('lfs'), 3)
	->{actions}{upload}{href} =~ s!^http://[^/]+!!r;
my $get = objects($alice, 'alice/p', 'download', sha256_hex($right), 5000)
	->{actions}{download}{href} =~ s!^http://[^/]+!!r;

ok(text_of({}, $get) eq $right, 'a URL needs no token');

my ($theirs) = map { s/^.*?r=//r =~ s/&.*//r } objects($bob, 'bob/q',
	'download', $secret, 6)->{actions}{download}{href};

for ([ 'a changed signature', $get =~ s/(.)\z/$1 eq '0' ? '1' : '0'/er ],
	[ 'half of one', substr($get, 0, -1) ], [ 'none', $get =~ s/&s=.*//r ],
	[ 'of another object', $get =~ s/[0-9a-f]{64}/$secret/r ],
	[ 'of another repo', $get =~ s/r=[^&]*/r=$theirs/r ],
	[ 'both', $get =~ s/r=[^&]*/r=$theirs/r =~ s/[0-9a-f]{64}/$secret/r ],
	[ 'no repo', $get =~ s/r=[^&]*/r=/r ],
	[ 'later', $get =~ s/e=(\d+)/'e=' . ($1 + 1)/er ],
	[ 'long ago', $get =~ s/e=\d+/e=1/r ],
	[ 'to put', $put ])
{
	bad("a URL: $_->[0]", 'GET', $_->[1], undef, 403, 'invalid_signature',
		who => {}, reads => 1);
}

bad('a URL: to get', 'PUT', $get, $right, 403, 'invalid_signature',
	who => {});
bad('other bytes', 'PUT', $put, 'lsf', 400, 'digest_mismatch', who => {});

# a new key signs, and the old key is still accepted; then the old key is
# removed

my $keys = $t->read_file('token.key');

$t->write_file('token.key', 'token:t2:' . '7c' x 32 . "\n$keys");
$t->reload();
ok(text_of({}, $get) eq $right, 'a URL of the key before');
good($t->http('PUT', $put, { 'Content-Length' => 3 }, 'lfs'),
	'a URL of the key before, to put');
isnt(objects($alice, 'alice/p', 'download', sha256_hex($right), 5000)
	->{actions}{download}{href} =~ s!^.*&s=!!r, $get =~ s!^.*&s=!!r,
	'the new key signs');

$t->write_file('token.key', 'token:t2:' . '7c' x 32 . "\n");
$t->reload();
bad('a URL of a key that is gone', 'GET', $get, undef, 403,
	'invalid_signature', who => {}, reads => 1);

$t->write_file('token.key', $keys);
$t->reload();

bad('a batch of nonsense', 'POST', '/alice/p.git/info/lfs/objects/batch',
	$_, 400, 'invalid_body')
	for '', '{}', '{"operation":"delete","objects":[]}',
		'{"operation":"upload","objects":[{"oid":"x","size":1}]}',
		'{"operation":"upload","objects":[{"oid":"' . 'ab' x 32
			. '","size":-1}]}';

# --------------------------------------------------------------------------
# buckets

for my $who ($alice, $bob) {
	my $name = $who == $alice ? 'alice' : 'bob';

	good($t->post("/api/buckets/$name/s", \'{"private":true}', { %$who,
		'Content-Type' => 'application/json' }),
		"a bucket of ${name}'s");
}

sub batch {
	my ($who, $bucket, @ops) = @_;

	return $t->post("/api/buckets/$bucket/batch",
		\join('', map { ref $_ ? $json->encode($_) . "\n" : $_ } @ops),
		{ %$who, 'Content-Type' => 'application/x-ndjson' });
}

sub copy {
	my ($path, $hash, $from, $type) = @_;

	return { type => 'copyFile', path => $path, xetHash => $hash,
		sourceRepoType => $type // 'model', sourceRepoId => $from };
}

my $nowhere = 'ab' x 32;

for ([ 'not his', $xet, 'bob/q' ], [ 'is not there', $xet, 'bob/no' ],
	[ 'does not have it', $xet, 'alice/p' ], [ 'nobody has', $nowhere,
		'alice/p' ], [ 'not his, a bucket', $xet, 'bob/s', 'bucket' ],
	[ 'of no name', $xet, '../q' ], [ 'of one part', $xet, 'bob' ])
{
	my ($name, @copy) = @$_;
	my $r = batch($alice, 'alice/s', copy('x', @copy));

	is("$r->{status} " . $json->encode($r->json()), '422 ' . $json->encode({
		success => JSON::PP::false, processed => 1, succeeded => 0,
		failed => [ { path => 'x', error => 'no such file was uploaded'
			} ] }), "a copy from a repo that $name");
	is($t->get('/api/buckets/alice/s/tree', $alice)->{body}, '[]',
		'makes nothing');
}

is(batch($alice, 'alice/s', { type => 'addFile', path => 'x',
	xetHash => $xet })->{status}, 422, 'a hash of somebody else');
$refusal->all();
$state = state();

for ([ 'no path', { type => 'deleteFile' } ], [ 'no type', { path => 'x' } ],
	[ 'another type', { type => 'moveFile', path => 'x' } ],
	[ 'no hash', { type => 'addFile', path => 'x' } ],
	[ 'half a hash', { type => 'addFile', path => 'x', xetHash => 'ab' } ],
	[ 'no source', { type => 'copyFile', path => 'x',
		xetHash => $nowhere } ],
	[ 'a source that is none', copy('x', $nowhere, 'a/b', 'folder') ],
	[ 'a header', { key => 'header', value => { summary => 's' } } ],
	[ 'a time below 0', { type => 'addFile', path => 'x',
		xetHash => $nowhere, mtime => -1 } ])
{
	bad("batch: $_->[0]", 'POST', '/api/buckets/alice/s/batch',
		$json->encode($_->[1]), 400, 'invalid_commit');
}

bad("batch: a path $_", 'POST', '/api/buckets/alice/s/batch',
	$json->encode({ type => 'deleteFile', path => $_ }), 400,
	'invalid_path') for '../x', '/x', 'x//y', "a\nb";

my $good = $t->head('/alice/p/resolve/main/right', $alice)
	->header_value('X-Xet-Hash');

is(batch($alice, 'alice/s', copy('d/x', $good, 'alice/p'))->{status}, 200,
	'a copy of his own');

for my $path ('d', 'd/x/y') {
	is(batch($alice, 'alice/s', copy($path, $good, 'alice/p'))->{status},
		422, "a file can't be a folder: $path");
}

is(batch($alice, 'alice/s', { type => 'addFile', path => "later/$_",
	xetHash => $good, mtime => $_ })->{status}, $_ > 1e14 ? 400 : 200,
	"a time: $_") for 0, 1 << 46, 1 << 62, (1 << 63) - 1;
is(batch($alice, 'alice/s', '{"type":"addFile","path":"later/x","xetHash":"'
	. $good . '","mtime":8e15}')->{status}, 400, 'a time: 8e15');
is($t->get('/api/buckets/alice/s/tree?recursive=true', $alice)->{status}, 200,
	'and they can be read');
$refusal->all();
$state = state();

bad('a bucket of another', 'GET', '/api/buckets/bob/s', undef, 404,
	'RepoNotFound', reads => 1);
$refusal->all();


$t->done();
