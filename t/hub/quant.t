#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# GGUF files by a tag: the manifests and blobs that llama.cpp (up to 2025),
# node-llama-cpp and Ollama request.  The requests are those of their sources.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $t = Test::Xet->new(Test::Xet::Table::hub(
	'xet_auth token; xet_hub_public on;',
	Test::Xet::Token::token_location() . <<'EOF'));

        location /closed/ {
            xet_hub on;
            xet_hub_base /closed;
            xet_api_base /cas;
            xet_auth token;
        }
EOF

$t->allow(qr/xet: 4\d\d /);
$t->token_key();
$t->run();

my $alice = $t->auth('admin', '@alice');
my $bob = $t->auth('admin', '@bob');
my $ollama = { Accept =>
	'application/vnd.docker.distribution.manifest.v2+json' };
my $json = { Accept => 'application/json', 'User-Agent' => 'llama-cpp' };

# --------------------------------------------------------------------------
# one file, and the other files of Ollama

my %gg = ('tiny-Q4_K_M.gguf' => mix(1, 300_000), 'tiny.Q8_0.gguf' => 'GGUF 8',
	'tiny-Q4_K.gguf' => 'GGUF 4', 'F16/tiny-f16.gguf' => 'GGUF 16',
	'tiny-UD-Q4_K_XL.gguf' => 'GGUF XL', 'tiny_iq2_xs.gguf' => 'GGUF 2',
	'mmproj-tiny-BF16.gguf' => 'mm b', 'mmproj-tiny-F16.gguf' => 'mm',
	'imatrix.gguf' => 'imatrix', 'a b-Q5_0.gguf' => 'GGUF 5',
	'empty-Q2_K.gguf' => '', 'note.txt' => 'Q6_K',
	template => '{{ .Prompt }}', params => '{"stop":["x"]}');

create($alice, 'alice', 'gg');

my $head = commit('alice/gg', %gg);
my $r = $t->get('/v2/alice/gg/manifests/Q4_K_M', $json);
my $m = $r->json();

is($r->{status}, 200, 'a manifest');
is($r->header_value('Docker-Content-Digest'),
	'sha256:' . sha256_hex($r->{body}), 'its digest');
is($r->header_value('Content-Type'), $m->{mediaType}, 'its media type');
is_deeply($m->{ggufFile}, sibling('tiny-Q4_K_M.gguf'), 'ggufFile');
is_deeply($m->{mmprojFile}, sibling('mmproj-tiny-F16.gguf'), 'mmprojFile');
is_deeply($m->{layers}, [ map { layer(@$_) }
	[ model => 'tiny-Q4_K_M.gguf' ],
	[ projector => 'mmproj-tiny-F16.gguf' ],
	[ template => 'template' ], [ params => 'params' ] ], 'layers');
is($m->{schemaVersion}, 2, 'schemaVersion');
is_deeply($t->get('/v2/alice/gg/manifests/Q4_K_M', $ollama)->json(), $m,
	'the same for Ollama');
is($t->head('/v2/alice/gg/manifests/Q4_K_M')->{status}, 200, 'HEAD');

for my $case ([ 'q4_k_m', 'tiny-Q4_K_M.gguf' ],
	[ latest => 'tiny-Q4_K_M.gguf' ],
	[ LATEST => 'tiny-Q4_K_M.gguf' ], [ Q8_0 => 'tiny.Q8_0.gguf' ],
	[ Q4_K => 'tiny-Q4_K.gguf' ], [ F16 => 'F16/tiny-f16.gguf' ],
	[ Q4_K_XL => 'tiny-UD-Q4_K_XL.gguf' ],
	[ 'UD-Q4_K_XL' => 'tiny-UD-Q4_K_XL.gguf' ],
	[ IQ2_XS => 'tiny_iq2_xs.gguf' ], [ 'Q5_0' => 'a b-Q5_0.gguf' ],
	[ 'tiny.Q8_0.gguf' => 'tiny.Q8_0.gguf' ],
	[ 'TINY.Q8_0' => 'tiny.Q8_0.gguf' ],
	[ 'mmproj-tiny-BF16.gguf' => 'mmproj-tiny-BF16.gguf' ])
{
	my ($tag, $path) = @$case;

	$r = $t->get("/v2/alice/gg/manifests/$tag", $json);
	is($r->{status}, 200, "tag $tag");
	is(($r->json()->{ggufFile} // {})->{rfilename}, $path,
		"tag $tag: $path");
}

for my $tag (qw/ Q4 K_M Q4_K_M2 Q6_K Q2_K BF16 tiny2 % main /, '%25', '..',
	"%27", '%5C', 'x' x 300)
{
	$r = $t->get("/v2/alice/gg/manifests/$tag", $json);
	ok($r->{status} == 404 || $tag =~ /^(?:%|\.\.)$/ && $r->{status} == 400,
		"no such tag: $tag") or diag("$r->{status} $r->{body}");
}

# Ollama shows the text of a 400, but not of a 404

$r = $t->get('/v2/alice/gg/manifests/Q9', $ollama);
is($r->{status}, 400, 'Ollama: no such tag');
like($r->{body}, qr/\\"Q9\\", only for F16, IQ2_XS, Q4_K, Q4_K_M, Q4_K_XL, /,
	'Ollama: the tags are named');
like($t->get('/v2/alice/gg/manifests/Q9', $json)->{body},
	qr/only for F16, /, 'others: the tags are named');

# --------------------------------------------------------------------------
# the blobs of Ollama: HEAD, then GET without ranges for the URL of the data,
# which the last response must name, then ranges without any other header

for my $blob (@{ $m->{layers} }, $m->{config}) {
	my $uri = "/v2/alice/gg/blobs/$blob->{digest}";
	my ($length) = follow('HEAD', $uri)->header_value('Content-Length');

	is($length, $blob->{size}, "$blob->{mediaType}: the size");

	my $place = follow('GET', $uri)->header_value('Location');

	like($place, qr/^http:/, "$blob->{mediaType}: a place");
	$place =~ s!^http://[^/]+!!;
	$r = $t->get($place, { Range => 'bytes=0-' . ($length - 1) });
	is(sha256_hex($r->{body}), $blob->{digest} =~ s/sha256://r,
		"$blob->{mediaType}: the bytes");
}

is_deeply($t->get("/v2/alice/gg/blobs/$m->{config}{digest}")->json(),
	{ model_format => 'gguf', file_type => 'Q4_K_M',
	architecture => 'amd64', os => 'linux', rootfs => { type => 'layers',
	diff_ids => [ $m->{layers}[0]{digest} ] } }, 'the configuration');

$r = $t->get('/v2/alice/gg/blobs/sha256:' . sha256_hex('GGUF 5'));
is($r->{status}, 307, 'a blob redirects');
is($r->header_value('Location'), $t->url('')
	. "/alice/gg/resolve/$head/a%20b-Q5_0.gguf?blob=1", 'to the commit');

# no file of the repo that no manifest names, and nothing of other repos

create($bob, 'bob', 'gg');
commit('bob/gg', 'other-Q4_0.gguf' => 'GGUF of bob');

for my $digest (map({ 'sha256:' . $_ } sha256_hex('Q6_K'),
	sha256_hex('GGUF of bob'), sha256_hex('imatrix none'), 'ab', 'A' x 64),
	'sha512:' . 'a' x 64, 'x')
{
	missing("/v2/alice/gg/blobs/$digest", "no blob: $digest");
}

# --------------------------------------------------------------------------
# split files: Ollama cannot load them, the others find the parts themselves

create($alice, 'alice', 'split');
commit('alice/split', map { sprintf('Q8_0/big-Q8_0-%05d-of-00002.gguf', $_)
	=> "part $_" } 1, 2);

$r = $t->get('/v2/alice/split/manifests/q8_0', $json);
is($r->json()->{ggufFile}{rfilename}, 'Q8_0/big-Q8_0-00001-of-00002.gguf',
	'split: the first part');
$r = $t->get('/v2/alice/split/manifests/latest', $ollama);
is($r->{status}, 400, 'split: not for Ollama');
like($r->header_value('X-Error-Message'), qr/split/, 'split: why');

# latest without the usual quantizations: the first file, but no projector

create($alice, 'alice', 'rest');
commit('alice/rest', 'mmproj-x.gguf' => 'm', 'imatrix.gguf' => 'i',
	'y-Q3_K_S.gguf' => 'y', 'z-Q6_K.gguf' => 'z');
is($t->get('/v2/alice/rest/manifests/latest')->json()->{ggufFile}{rfilename},
	'y-Q3_K_S.gguf', 'latest: the first file');
commit('alice/rest', 'z-Q4_0.gguf' => 'z4');
is($t->get('/v2/alice/rest/manifests/latest')->json()->{ggufFile}{rfilename},
	'z-Q4_0.gguf', 'latest: Q4_0');

create($alice, 'alice', 'none');
missing('/v2/alice/none/manifests/latest', 'no GGUF file');

# --------------------------------------------------------------------------
# rights: a private repo is like a missing one; a moved repo redirects

create($alice, 'alice', 'secret', 1);
commit('alice/secret', 's-Q4_0.gguf' => 'GGUF secret');

my $secret = 'sha256:' . sha256_hex('GGUF secret');

for my $rest ('manifests/latest', 'manifests/none', "blobs/$secret",
	'blobs/x')
{
	for my $who ([ nobody => {} ], [ bob => $bob ]) {
		my @seen = map { $t->get("/v2/alice/$_/$rest", $who->[1]) }
			qw/ secret missing /;

		is($seen[0]{status}, $rest =~ /^man/ && $who->[0] eq 'nobody'
			? 401 : 404, "$who->[0]: $rest");
		alike("$who->[0]: $rest", @seen);
	}
}

# node-llama-cpp sends its token after a 401 only, with which Ollama would ask
# for a token at a URL in WWW-Authenticate

for my $tag (qw/ latest none Q4_0 /) {
	my @seen = map { $t->get("/v2/$_/manifests/$tag", $ollama) }
		qw! alice/secret alice/missing !;

	is($seen[0]{status}, 403, "Ollama: $tag of a private repo");
	like($seen[0]{body}, qr/not public; Ollama cannot send a token/,
		"Ollama: $tag: why");
	alike("Ollama: $tag", @seen);

	@seen = map { $t->get("/v2/$_/manifests/$tag") }
		qw! alice/secret alice/missing !;
	is($seen[0]{status}, 401, "a 401 without a token: $tag");
	is($seen[0]->header_value('WWW-Authenticate'), 'Bearer realm="xet"',
		"a challenge: $tag");
	is($seen[0]->header_value('X-Error-Code'), 'RepoNotFound',
		"code: $tag");
	alike("nobody: $tag", @seen);
}

is($t->get('/v2/alice/secret/manifests/latest', $alice)->{status}, 200,
	'alice: with her token');

# a Hub that is not public

for my $name (qw/ gg secret missing /) {
	my $uri = "/closed/v2/alice/$name/manifests/latest";

	is($t->get($uri, $ollama)->{status}, 403, "closed: Ollama: $name");
	is($t->get($uri, $json)->{status}, 401, "closed: others: $name");
	is($t->get($uri, { %$ollama, Authorization => 'Bearer x' })->{status},
		401, "closed: a wrong token: $name");
}

is($t->get("/v2/alice/secret/blobs/$secret", $alice)->{status}, 307,
	'alice: her blob');
is($t->get("/v2/alice/gg/blobs/$secret", $alice)->{status}, 404,
	'alice: not from another repo');
is($t->post('/api/repos/move',
	\'{"fromRepo":"alice/gg","toRepo":"alice/moved"}', $alice)->{status},
	200, 'moved');
$r = $t->get('/v2/alice/gg/manifests/Q4_K_M');
is($r->{status}, 307, 'the old name redirects');
like($r->header_value('Location'), qr!/v2/alice/moved/manifests/Q4_K_M$!,
	'to the new one');
is($t->post('/api/repos/create', \'{"organization":"v2","name":"m"}',
	$alice)->{status}, 400, 'no owner v2');

# an older commit, and a branch, are not searched

$t->post('/api/models/alice/moved/commit/main', \join("\n", map {
	JSON::PP::encode_json($_) } { key => 'header', value => { summary =>
	'x' } }, { key => 'deletedFile', value => { path => 'tiny-Q4_K_M.gguf' }
	}), { %$alice, 'Content-Type' => 'application/x-ndjson' });
is($t->get('/v2/alice/moved/manifests/Q4_K_M')->{status}, 404, 'deleted');
is($t->get("/v2/alice/moved/blobs/$m->{layers}[0]{digest}")->{status}, 404,
	'its blob, too');

$t->done();

# --------------------------------------------------------------------------

sub create {
	my ($who, $owner, $name, $private) = @_;

	is($t->post('/api/repos/create', \JSON::PP::encode_json({
		organization => $owner, name => $name, private => $private
		? JSON::PP::true() : JSON::PP::false() }), $who)->{status}, 200,
		"create $owner/$name");
}

sub commit {
	my ($repo, %files) = @_;

	my $who = $repo =~ /^bob/ ? $bob : $alice;
	my $r = $t->post("/api/models/$repo/commit/main", \join("\n", map {
		JSON::PP::encode_json($_) } { key => 'header', value =>
		{ summary => 'files' } }, map { { key => 'file', value => {
		path => $_, encoding => 'base64',
		content => encode_base64($files{$_}, '') } } }
		sort keys %files),
		{ %$who, 'Content-Type' => 'application/x-ndjson' });

	is($r->{status}, 200, "commit to $repo") or diag($r->{body});

	return $r->json()->{commitOid};
}

# Checks that responses differ in nothing but the identifier of the request.

sub alike {
	my ($name, @seen) = @_;

	my @text = map { my $r = $_; join("\n", $r->{status}, $r->{body},
		map { "$_: " . ($r->header_value($_) // 'none') }
		qw/ WWW-Authenticate X-Error-Code X-Error-Message / ) } @seen;

	is($text[$_], $text[0], "$name: alike $_") for 1 .. $#text;
}

sub missing {
	my ($uri, $name) = @_;

	my $r = $t->get($uri);

	is($r->{status}, 404, $name);
	is($r->header_value('X-Error-Code'), 'EntryNotFound', "$name: code");
}

sub follow {
	my ($method, $uri) = @_;

	my $r = $t->http($method, $uri);

	return $r if $r->{status} != 307;

	return $t->http($method, $r->header_value('Location')
		=~ s!^http://[^/]+!!r);
}

sub sibling {
	my ($path) = @_;

	my ($size, $sum) = (length($gg{$path}), sha256_hex($gg{$path}));

	return { rfilename => $path, size => $size,
		blobId => "sha256:$sum", lfs => { size => $size,
		sha256 => $sum, pointerSize => 134 } };
}

sub layer {
	my ($name, $path) = @_;

	return { mediaType => "application/vnd.ollama.image.$name",
		digest => 'sha256:' . sha256_hex($gg{$path}),
		size => length($gg{$path}) };
}
