#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The files of conf with tokens: nginx.conf with xet_location.conf, xet_hub.conf
# and the mirror of another Hub.  Two tenants and an anonymous caller send
# requests, directly and through a cache that keeps every response that it may
# keep.  A private repo and a missing one look alike on all routes, in all
# headers.  Tokens and URLs of a repo are useless for a later repo of the same
# name.  A repo that became private is in no cache.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ root slurp /;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

plan(skip_all => 'nginx without sub')
	if Test::Xet::Nginx::version() !~ /--with-http_sub_module/;

my $json = JSON::PP->new()->canonical();

# --------------------------------------------------------------------------
# another Hub, to which everyone may write

my $far = Test::Xet->new(Test::Xet::Table::hub());

$far->token_key();
$far->run();

# --------------------------------------------------------------------------
# the shipped configuration, with the tokens of docs/hub.md and the mirror of
# docs/howto/mirror.md

my $t = Test::Xet->new(workers => 1);

$t->write_conf(conf('alice team; bob team;'));
Test::Xet::Table::mirror($t, $far->url(''), '1s');
$t->run();

my %who = (nobody => {}, alice => who('alice'), bob => who('bob'));
my ($alice, $bob) = @who{qw/ alice bob /};
my $secret = 'the bytes of a secret ' . random_bytes(7, 90_000);
my $sha256 = sha256_hex($secret);

$t->allow(qr/xet: (?:4\d\d|501) /);

# --------------------------------------------------------------------------
# a private repo, and a missing one

my %oid;

for my $kind (qw/ model dataset space /) {
	create('alice', 'secret', type => $kind, private => 1);
	commit($alice, "${kind}s", 'alice/secret', 'd/f.bin' => $secret,
		'README.md' => '# the title of a secret');
	is($t->post("/api/${kind}s/alice/secret/tag/main",
		\'{"tag":"v1"}', $alice)->{status}, 200, "a tag of a $kind");
	$oid{"${kind}s"} = $t->get("/api/${kind}s/alice/secret", $alice)
		->json()->{sha};

	# the old name of a renamed repo does not lead other callers to the new
	# name

	create('alice', 'was', type => $kind, private => 1);
	is(send_json('POST', '/api/repos/move', $alice, { fromRepo =>
		'alice/was', toRepo => 'alice/is', type => $kind })->{status},
		200, "a $kind with another name");
}

is($t->post('/api/buckets/alice/secret', \'{"private":true}', $alice)
	->{status}, 200, 'a bucket');

my $xet = $t->head('/alice/secret/resolve/main/d/f.bin', $alice)
	->header_value('X-Xet-Hash');

# With a mirror, the server requests both names from the other Hub, and returns
# the responses of the other Hub.

for my $mirror (0, 1) {
	$t->write_conf(conf('alice team; bob team;', $mirror));
	$t->reload();

	for my $name (qw/ bob nobody /) {
		my $who = $name . ($mirror ? ', with a mirror' : '');

		for my $kind (qw/ models datasets spaces /) {
			alike($who, $who{$name}, $kind, $_)
				for reads($kind), writes($kind);
		}

		alike($who, $who{$name}, 'buckets', $_) for buckets();
	}
}

# alice can read the repo, so the comparison means something

for my $kind (qw/ models datasets spaces /) {
	for my $route (reads($kind)) {
		my ($method, $path, $body, $type) = @$route;
		my $r = request($alice, $method,
			$path =~ s!%!alice/secret!r, $body, $type);

		ok($r->{status} < 300, "alice: $kind: $method $path")
			or diag("$r->{status} $r->{body}");
	}
}

# lists name neither the private repo nor the missing one

for my $uri ('/api/models?author=alice', '/api/datasets?search=secret',
	'/api/spaces', '/api/buckets/alice', '/', '/alice', '/models',
	'/?search=secret')
{
	for my $name (qw/ bob nobody /) {
		unlike(request($who{$name}, 'GET', $uri)->{body},
			qr/alice\/(?:secret|is)\b|title of/,
			"$name: $uri: names neither");
	}
}

# --------------------------------------------------------------------------
# one tenant requests the other tenant's data by name, or writes to the other
# tenant's repo

create('bob', 'own');

for my $op ({ key => 'lfsFile', value => { path => 'x', algo => 'sha256',
		oid => $sha256, size => length($secret) } },
	{ key => 'copyFile', value => { path => 'x', srcPath => 'd/f.bin',
		srcRevision => $oid{models} } })
{
	my $r = ndjson($bob, '/api/models/bob/own/commit/main',
		{ key => 'header', value => { summary => 's' } }, $op);

	cmp_ok($r->{status}, '>=', 400, "bob: $op->{key} of alice's");
	cmp_ok($r->{status}, '<', 500, "bob: $op->{key} of alice's: refused");
}

is($t->post('/api/buckets/bob/own', \'{}', $bob)->{status}, 200, 'a bucket');

for my $from ([ addFile => () ], [ copyFile => sourceRepoType => 'model',
	sourceRepoId => 'alice/secret' ])
{
	my ($type, @more) = @$from;

	is(ndjson($bob, '/api/buckets/bob/own/batch', { type => $type,
		path => 'x', xetHash => $xet, mtime => 0, @more })->{status},
		422, "bob: $type of alice's");
}

is($t->get('/api/models/bob/own/tree/main', $bob)->{body}, '[]',
	'bob: nothing came of it');

for my $name (qw/ alice bob /) {
	my $other = $name eq 'bob' ? 'alice' : 'bob';

	is(send_json('POST', '/api/repos/create', $who{$name},
		{ name => 'x', organization => $other })->{status}, 403,
		"$name: a repo called as $other");
	is($t->post("/api/buckets/$other/x", \'{}', $who{$name})->{status},
		403, "$name: a bucket called as $other");
	is(send_json('POST', '/api/repos/move', $who{$name},
		{ fromRepo => "$name/" . ($name eq 'bob' ? 'own' : 'secret'),
			toRepo => "$other/x" })->{status}, 403,
		"$name: a repo to $other");
}

# --------------------------------------------------------------------------
# a repo is deleted, and another member of the team creates it again

my $r;
my %old = team('alice', 'what alice had ' . random_bytes(8, 90_000));

is(send_json('DELETE', '/api/repos/delete', who('alice', 'delete'),
	{ name => 'again', organization => 'team' })->{status}, 200,
	'deleted');

given_out('gone', \%old, 404);

# alice is no longer in the team

$t->write_conf(conf('bob team;', 1));
$t->reload();

my %new = team('bob', 'what bob has ' . random_bytes(9, 90_000));

given_out('another one', \%old, 404);
given_out('another one: its file', { %old, hash => $new{hash},
	lfs => undef, put => undef }, 404);
is($t->get("/cas/v1/files/$new{hash}", $new{read})->{body}, $new{data},
	'another one: a token of that repo reads it');

# a signed URL is valid for its own data until it expires, as docs/security.md
# says, and for no other data

$r = data(\%old, $old{xorb});
is_deeply([ @$r{qw/ status body /} ], [ 206, $old{bytes} ],
	'another one: a signed URL');
is(data(\%old, $new{xorb})->{status}, 403,
	'another one: a signed URL with its xorb');

# bob uploads the same bytes: alice's tokens do not give access to them

commit($bob, 'models', 'team/again', 'the same' => $old{data});
given_out('the same bytes', \%old, 404);
is($t->get('/team/again/resolve/main/the%20same', $bob)->{body}, $old{data},
	'the same bytes: bob reads them');

# a token of a repo, used for requests to the Hub

for my $token (qw/ read write /) {
	is($t->get($_, $old{$token})->{status}, 404, "the old $token token: $_")
		for '/api/models/team/again', '/team/again/resolve/main/f.bin';
}

is(commit($old{write}, 'models', 'team/again', x => 'x')->{status}, 404,
	'the old write token: no commit');

# an upload with the old write token is refused, and no repo gets its data

$r = $t->http('PUT', '/cas/v1/files', $old{write}, \'brought late');

is($r->{status}, 404, 'the old write token: a file by PUT');
is(ndjson($bob, '/api/models/team/again/commit/main', { key => 'header',
	value => { summary => 's' } }, { key => 'lfsFile', value => {
	path => 'x', algo => 'sha256', oid => sha256_hex('brought late'),
	size => 12 } })->{status}, 400, 'the old write token: brings nothing');

# --------------------------------------------------------------------------
# private, public, private again, with a cache in front of the server that
# keeps responses for up to an hour

my $front = $t->port(8084);

create('alice', 'open', private => 1);
commit($alice, 'models', 'alice/open', 'd/f.bin' => $secret,
	'README.md' => 'open or not');

my @routes = grep { $_->[0] ne 'POST' && $_->[1] !~ /v1/ } reads('models');
my %given;

for my $state ('private', 'public', 'private again', 'public again', 'gone') {
	my $there = $state =~ /public/;

	$r = $state eq 'gone'
		? send_json('DELETE', '/api/repos/delete', who('alice',
			'delete'), { name => 'open', organization => 'alice' })
		: send_json('PUT', '/api/models/alice/open/settings',
			who('alice', 'admin'),
			{ private => $there ? JSON::PP::false
				: JSON::PP::true });
	is($r->{status}, 200, "it is $state");

	# tokens that were given out while the repo was public

	%given = map { $_ => { Authorization => 'Bearer ' . $t->get(
		'/api/models/alice/open/xet-read-token/main', $who{$_})
		->json()->{accessToken} } } qw/ bob nobody /
		if $state eq 'public';

	for my $name (sort keys %given) {
		is($t->get($_, $given{$name})->{status}, $there ? 200 : 404,
			"$state: what $name was given: $_")
			for map { s!%!alice/open!r } '/api/models/%',
				'/api/models/%/tree/main',
				'/%/resolve/main/d/f.bin',
				'/api/models/%/xet-read-token/main';
		is($t->get("/cas/v1/files/$xet", $given{$name})->{status},
			$state eq 'public' ? 200 : 404,
			"$state: what $name was given: by a hash");
	}

	# the first caller has access, and its request fills the cache

	for my $name (qw/ alice nobody /) {
		my $sees = $there || $name eq 'alice' && $state ne 'gone';

		for my $route (@routes) {
			my ($method, $path, undef, $type) = @$route;

			$path =~ s!%!alice/open!;
			$path =~ s!\Q$oid{models}\E!main!;
			$r = Test::Xet::HTTP->request($front, $method, $path,
				{ %{ $who{$name} }, $type ? (Accept => $type)
					: () });

			is($r->{status} < 300, !!$sees,
				"$state, by a cache: $name: $method $path");
			like(join(',', $r->header_value('Cache-Control')),
				qr/no-store|private/,
				"$state, Cache-Control: $name: $method $path");
		}
	}
}

# --------------------------------------------------------------------------
# the same checks with the other Hub, whose responses the mirror keeps

$far->post('/api/repos/create', \'{"organization":"there","name":"far"}');
is(commit({}, 'models', 'there/far', [ $far ], f => 'from afar')->{status}, 200,
	'a repo elsewhere');

my $commit = $far->get('/api/models/there/far')->json()->{sha};
my @far = map { "/there/far/resolve/$_/f" } 'main', $commit;

push @far, '/api/models/there/far', '/api/models/there/far/tree/main';

for my $name (qw/ alice nobody /) {
	is($t->get($_, $who{$name})->{status}, 200, "the mirror: $name: $_")
		for @far;
}

is($far->http('DELETE', '/api/repos/delete', {},
	\'{"organization":"there","name":"far"}')
	->{status}, 200, 'it is deleted there');

for my $uri (grep { !/$commit/ } @far) {
	ok(wait_for(20, sub { $t->get($uri)->{status} == 404 }),
		"the mirror: gone: $uri");
}

is($t->get($far[1])->{body}, 'from afar',
	'the mirror: gone: a commit is kept, as docs/howto/mirror.md says');

# a remote repo with the name of a local repo does not replace the local repo,
# and callers without access to the local repo do not see the remote repo

$far->post('/api/repos/create', \'{"name":"secret","organization":"alice"}');
is(commit({}, 'models', 'alice/secret', [ $far ], 'd/f.bin' => 'of afar')
	->{status}, 200, 'a repo elsewhere that is called as a private one');
is($t->get('/alice/secret/resolve/main/d/f.bin', $alice)->{body}, $secret,
	'the mirror: alice: the local repo');

for my $name (qw/ bob nobody /) {
	$r = $t->get('/alice/secret/resolve/main/d/f.bin', $who{$name});

	is($r->{status}, 404, "the mirror: $name: no namesake");
	unlike($r->{body}, qr/of afar/, "the mirror: $name: no byte of it");
}

is($t->get('/alice/secret/resolve/main/d/f.bin', $alice)->{body}, $secret,
	'the mirror: alice: and again');

my $logs = join('', map { slurp($t->dir() . "/$_") }
	qw/ access.log error.log /);

for my $header (values %who, @old{qw/ read write /}) {
	my ($token) = ($header->{Authorization} // '') =~ /(\S+)$/ or next;

	unlike($logs, qr/\Q$token\E/, 'no token in a log');
}

# done() would report descriptors in open_file_cache as leaked

$t->write_conf(undef);
$t->reload();
$t->done();

# --------------------------------------------------------------------------

# Returns conf/nginx.conf with tokens and a mirror, as documented, and a cache
# in front of the server.

sub conf {
	my ($owners, $mirror) = @_;

	my $text = $t->shipped_conf();
	my $tokens = Test::Xet::Token::token_location()
		=~ s/xet_token;/xet_token; allow 127.0.0.1; deny all;/r;

	$text =~ s!xet_auth off;!xet_auth token; xet_hub_public on;
		xet_hub_owners \$owners; $tokens! or die;
	$text =~ s!(include \S+/)xet_hub\.conf;!$&
		${1}xet_hub_upstream.conf;! or die if $mirror;
	$mirror = $mirror ? 'include %%DIR%%/xet_hub_mirror.conf;' : '';
	$text =~ s!\n    server \{!
    map \$xet_subject \$owners { $owners default ""; }
    $mirror
    resolver 127.0.0.1:%%PORT_8083%%;
    proxy_cache_path %%DIR%%/front keys_zone=front:1m;

    server {
        listen 127.0.0.1:%%PORT_8084%%;

        location / {
            proxy_pass http://127.0.0.1:%%PORT_8080%%;
            proxy_cache front;
            proxy_cache_valid any 1h;
            proxy_cache_key "\$request_method \$request_uri";
        }
    }

    server {! or die;

	return $text;
}

sub who {
	my ($who, $scope) = @_;

	return $t->auth($scope // 'write', "\@$who");
}

sub request {
	my ($who, $method, $path, $body, $type) = @_;

	return $t->http($method, $path, { %$who, defined $body
		? ('Content-Type' => $type // 'application/json')
		: $type ? (Accept => $type) : () },
		defined $body ? \$body : undef);
}

sub send_json {
	my ($method, $uri, $who, $data) = @_;

	return request($who, $method, $uri, $json->encode($data));
}

sub create {
	my ($owner, $name, %o) = @_;

	is(send_json('POST', '/api/repos/create', $who{$owner}, { name => $name,
		organization => $owner, type => $o{type} // 'model',
		$o{type} && $o{type} eq 'space' ? (sdk => 'static') : (),
		private => $o{private} ? JSON::PP::true : JSON::PP::false })
		->{status}, 200, "create $name");
}

sub ndjson {
	my ($who, $uri, @lines) = @_;

	return request($who, 'POST', $uri, join('', map { $json->encode($_)
		. "\n" } @lines), 'application/x-ndjson');
}

# Commits files to a repo.  If the first of @files is a reference, it is the
# harness of another server, to which the commit is sent.

sub commit {
	my ($who, $type, $repo, @files) = @_;

	my $at = ref $files[0] ? (shift @files)->[0] : $t;
	my %files = @files;

	return $at->http('POST', "/api/$type/$repo/commit/main", { %$who,
		'Content-Type' => 'application/x-ndjson' }, \join("\n",
		map { $json->encode($_) } { key => 'header', value =>
			{ summary => 'a commit' } }, map { { key => 'file',
			value => { path => $_, encoding => 'base64',
				content => encode_base64($files{$_}, '') } } }
			sort keys %files));
}

# Returns [ method, path with % for the repo, body, media type of the body or
# for Accept ] for each route that reads.

sub reads {
	my ($type) = @_;

	my $web = $type eq 'models' ? '' : "/$type";
	my $lfs = $json->encode({ operation => 'download', objects => [ {
		oid => $sha256, size => length($secret) } ] });

	return ((map { [ GET => "/api/$type/%$_" ] } '', '/revision/main',
		"/revision/$oid{$type}", '/revision/v1', '/tree/main',
		'/tree/main/d?recursive=true',
		'/tree/main?expand=true', '/refs', '/commits/main',
		'/changes/main',
		'/xet-read-token/main', '/auth-check'),
		[ HEAD => "/api/$type/%" ],
		(map { [ $_ => "$web/%/resolve/main/d/f.bin" ],
			[ $_ => "$web/%/raw/main/README.md" ] } qw/ GET HEAD /),
		[ POST => "/api/$type/%/paths-info/main",
			'{"paths":["d/f.bin"]}' ],
		[ POST => "$web/%.git/info/lfs/objects/batch", $lfs,
			'application/vnd.git-lfs+json' ]);
}

sub writes {
	my ($type) = @_;

	my $web = $type eq 'models' ? '' : "/$type";
	my $lfs = $json->encode({ operation => 'upload', objects => [ {
		oid => $sha256, size => length($secret) } ] });
	my $one = $type =~ s/s\z//r;

	return ([ GET => "/api/$type/%/xet-write-token/main" ],
		[ GET => "/api/$type/%/auth-check/write" ],
		[ PUT => "/api/$type/%/settings", '{"private":false}' ],
		[ POST => "/api/$type/%/branch/new", '{}' ],
		[ POST => "/api/$type/%/tag/main", '{"tag":"new"}' ],
		(map { [ DELETE => "/api/$type/%/$_" ] }
			qw! branch/main tag/v1 !),
		[ POST => "/api/$type/%/preupload/main", '{"files":[{"path":'
			. '"a","size":1,"sample":"YQ=="}]}' ],
		[ POST => "/api/$type/%/commit/main", '{"key":"header",'
			. '"value":{"summary":"s"}}', 'application/x-ndjson' ],
		[ POST => "$web/%.git/info/lfs/objects/batch", $lfs,
			'application/vnd.git-lfs+json' ],
		[ POST => '/api/repos/move', $json->encode({ fromRepo => '%',
			toRepo => 'bob/mine', type => $one }) ]);
}

sub buckets {
	return ((map { [ GET => "/api/buckets/%$_" ] } '', '/tree',
		'/xet-read-token', '/xet-write-token'),
		(map { [ $_ => '/buckets/%/resolve/f' ] } qw/ GET HEAD /),
		[ POST => '/api/buckets/%/paths-info', '{"paths":["f"]}' ],
		[ POST => '/api/buckets/%/batch', '{"type":"deleteFile",'
			. '"path":"f"}', 'application/x-ndjson' ],
		[ PUT => '/api/buckets/%/settings', '{"private":false}' ],
		[ DELETE => '/api/buckets/%' ]);
}

# Checks that a caller gets the same response for a private repo, a missing one
# and a renamed one, except for the name.

sub alike {
	my ($name, $who, $type, $route) = @_;

	my ($method, $path, $body, $media) = @$route;
	my $oid = $oid{$type} // $oid{models};
	my @told;

	for my $repo (qw! alice/nothing alice/secret alice/was !) {
		my $r = request($who, $method, $path =~ s!%!$repo!r,
			defined $body ? $body =~ s!%!$repo!r : undef, $media);
		my $text = join("\n", $r->{status}, (map {
			my ($header, $value) = @$_;

			$header =~ /^(?:Date|X-Request-Id)$/i ? $header
				: "$header: $value"
		} headers($r)), $r->{body});

		# lengths differ where the name is included

		$text =~ s!\Q$repo\E!alice/%!g;
		$text =~ s!/(?:nothing|secret|was)\b!/%!g;
		$text =~ s!^(Content-Length|ETag).*!$1!mg;
		push @told, $text;
	}

	my $what = "$type: $method $path" . ($media // '')
		. ($body && $body =~ /"upload"/ ? ', to write' : '');

	is($told[1], $told[0], "$name: private or not there: $what");
	is($told[2], $told[0], "$name: of a former name, or not there: $what")
		if $type ne 'buckets';
	unlike($told[1], qr/bytes of a|title of|\Q$oid\E|\Q$xet\E|^2/,
		"$name: nothing of it: $what");
}

sub headers {
	my ($r) = @_;

	return map { my $name = $_; map { [ $name, $_ ] }
		@{ $r->{headers}{$name} } } sort keys %{ $r->{headers} };
}

# Creates a private repo of the team with a file; returns tokens and URLs that
# its creator got for it.

sub team {
	my ($name, $data) = @_;

	my $repo = 'team/again';

	is(send_json('POST', '/api/repos/create', $who{$name}, {
		organization => 'team', name => 'again',
		private => JSON::PP::true })->{status}, 200, "$name: $repo");
	is(commit($who{$name}, 'models', $repo, 'f.bin' => $data)->{status},
		200, "$name: its file");

	my %given = (data => $data, hash => $t->head(
		"/$repo/resolve/main/f.bin", $who{$name})
		->header_value('X-Xet-Hash'));

	for my $scope (qw/ read write /) {
		$given{$scope} = { Authorization => 'Bearer ' . $t->get(
			"/api/models/$repo/xet-$scope-token/main",
			$who{$name})->json()->{accessToken} };
	}

	for ([ lfs => 'download', $data ], [ put => 'upload', 'sent late' ]) {
		my ($what, $operation, $bytes) = @$_;
		my $object = request($who{$name}, 'POST',
			"/$repo.git/info/lfs/objects/batch", $json->encode({
				operation => $operation, objects => [ {
				oid => sha256_hex($bytes),
				size => length($bytes) } ] }),
			'application/vnd.git-lfs+json')->json()->{objects}[0];

		($given{$what}) = $object->{actions}{$operation}{href}
			=~ m!^http://[^/]+(/.*)!;
	}

	is($t->get($given{lfs})->{body}, $data, "$name: by the URL of LFS");
	is($t->get("/cas/v1/files/$given{hash}", $given{read})->{body}, $data,
		"$name: by the token");

	my $r = reconstruction($given{hash}, $given{read});

	is($r->{status}, 200, "$name: its plan");

	my ($xorb, $entries) = %{ $r->json()->{xorbs} };

	$given{xorb} = $xorb;
	($given{url}) = $entries->[0]{url} =~ m!^http://[^/]+(/.*)!;
	$given{range} = 'bytes=' . join('-',
		@{ $entries->[0]{ranges}[0]{bytes} }{qw/ start end /});
	$given{bytes} = data(\%given, $xorb)->{body};

	return %given;
}

# Returns the response to a signed URL in which the xorb has been replaced.

sub data {
	my ($given, $xorb) = @_;

	my $short = substr($xorb, 0, 2);

	return $t->get($given->{url}
		=~ s!/[0-9a-f]{2}/\Q$given->{xorb}\E!/$short/$xorb!r,
		{ Range => $given->{range} });
}

sub reconstruction {
	my ($hash, $who) = @_;

	return $t->get("/cas/v2/reconstructions/$hash", $who);
}

# Checks that tokens and URLs are no longer accepted.

sub given_out {
	my ($name, $given, $status) = @_;

	for my $token (qw/ read write /) {
		is($t->get("/cas/v1/files/$given->{hash}", $given->{$token})
			->{status}, $status, "$name: the $token token: file");
		is(reconstruction($given->{hash}, $given->{$token})->{status},
			$status, "$name: the $token token: plan");
	}

	is($t->get($given->{lfs})->{status}, $status, "$name: the URL of LFS")
		if $given->{lfs};

	return unless $given->{put};

	my $r = $t->http('PUT', $given->{put}, {}, \'sent late');

	is($r->{status}, 404, "$name: PUT by LFS");
	is(ndjson($bob, '/api/models/team/again/commit/main',
		{ key => 'header', value => { summary => 's' } },
		{ key => 'lfsFile', value => { path => 'x', algo => 'sha256',
			oid => sha256_hex('sent late'), size => 9 } })
		->{status} < 300, '', "$name: PUT by LFS brings nothing");
}
