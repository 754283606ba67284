#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Permissions on a Hub repo: the scopes, each a subset of the next one, for
# requests to the Hub and to the API.  The test also covers which callers may
# change the visibility of a repo, and names that are not canonical: they have
# no name space.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Token;

use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $locations = '';

for my $at ([ '/' => '/cas', '' ], [ '/owners/' => '/cas',
		'xet_hub_base /owners; xet_hub_owners $http_x_owners;' ],
	[ '/user/' => '/cas',
		'xet_hub_base /user; xet_hub_user $http_x_user;' ])
{
	my ($path, $api, $more) = @$at;

	$locations .= <<"EOC";
location $path {
            xet_hub on;
            xet_auth token;
            xet_hub_public on;
            xet_api_base $api;
            $more
        }

        location /open$path {
            xet_hub on;
            xet_auth off;
            @{[ $path eq '/' ? 'xet_hub_expose on;' : '' ]}
            xet_api_base $api;
            @{[ $more =~ s!xet_hub_base /(\w*);!!r ]}
            xet_hub_base /open@{[ $path =~ s!/\z!!r ]};
        }
EOC
}

my $t = Test::Xet->new(http => Test::Xet::Token::token_directive(),
	locations => $locations . <<'EOC' . Test::Xet::Token::token_location());
%%CAS%%
EOC

$t->token_key();
$t->run();
$t->allow(qr/xet: 4(?:0[0-9]|22) /);

my $json = JSON::PP->new()->canonical();
my %alice = map { $_ => $t->auth($_, '@alice') } qw/ read write delete admin /;

# --------------------------------------------------------------------------
# visibility

create($alice{write}, 'm');
is(commit($alice{write}, 'alice/m', f => 'bytes of f')->{status}, 200,
	'write: a commit');

for my $scope (qw/ read write delete /) {
	my $r = settings($alice{$scope}, 'alice/m', 'true');

	is($r->{status}, 403, "$scope: not private");
	is(listed('alice/m'), 1, "$scope: still public");
}

like(settings($alice{delete}, 'alice/m', 'true')->header_value(
	'X-Error-Message'), qr/with the scope admin/, 'and why');
is(settings($alice{write}, 'alice/m', 'false')->{status}, 200,
	'write: what it is already');
is(settings($alice{admin}, 'alice/m', 'true')->{status}, 200,
	'admin: private');
is(listed('alice/m'), 0, 'admin: and nobody sees it');

for my $scope (qw/ read write delete /) {
	is(settings($alice{$scope}, 'alice/m', 'false')->{status}, 403,
		"$scope: not public");
	is(listed('alice/m'), 0, "$scope: still private");
}

# tokens that the Hub issues, and an administrator's tokens for one repo

my $store = $t->sql("SELECT xet.repo_named(NULL, 0, 'alice', 'm')");
my $f = $t->head('/alice/m/resolve/main/f', $alice{read})
	->header_value('X-Xet-Hash');
my %bound = map { $_ => cli_token($_, $store) } qw/ write delete admin /;
my %given = map { $_ => { Authorization => 'Bearer ' . $t->get(
	"/api/models/alice/m/xet-$_-token/main", $alice{admin})->json()
	->{accessToken} } } qw/ read write /;

is($t->get('/api/models/alice/m', $bound{$_})->{status}, 200,
	"a token to $_ for the repo: it is there") for sort keys %bound;
is(settings($given{$_}, 'alice/m', 'false')->{status}, 403,
	"a token to $_ of the Hub: not public") for sort keys %given;
is(settings($bound{$_}, 'alice/m', 'false')->{status}, 403,
	"a token to $_ for the repo: not public") for qw/ write delete /;
is(listed('alice/m'), 0, 'still private');
is(settings($bound{admin}, 'alice/m', 'false')->{status}, 200,
	'a token to admin for the repo: public');
is(settings($alice{admin}, 'alice/m', 'true')->{status}, 200, 'private');
%given = map { $_ => { Authorization => 'Bearer ' . $t->get(
	"/api/models/alice/m/xet-$_-token/main", $alice{admin})->json()
	->{accessToken} } } qw/ read write /;

# a move to another name space, whose members then see the repo

sub move {
	my ($who, $from, $to, $base) = @_;

	return request('POST', ($base // '') . '/api/repos/move', $who,
		{ fromRepo => $from, toRepo => $to });
}

my $team = '/owners';
my %owners = ('X-Owners' => 'team');

for my $scope (qw/ write delete /) {
	is(request('POST', "$team/api/repos/move",
		{ %{ $alice{$scope} }, %owners },
		{ fromRepo => 'alice/m', toRepo => 'team/m' })->{status}, 403,
		"$scope: a private repo to another name space");
}

is(move($alice{write}, 'alice/m', 'alice/n')->{status}, 200,
	'write: a private repo to another name');
is($t->get("/cas/v1/files/$f", $given{read})->{status}, 200,
	'which takes nothing back');
is(request('POST', "$team/api/repos/move", { %{ $alice{admin} }, %owners },
	{ fromRepo => 'alice/n', toRepo => 'team/m' })->{status}, 200,
	'admin: a private repo to another name space');
is($t->get("/cas/v1/files/$f", $given{$_})->{status}, 404,
	"earlier token to $_") for sort keys %given;
isnt($t->sql("SELECT xet.repo_named(NULL, 0, 'team', 'm')"), $store,
	'its uploads have another name');

create($alice{write}, 'p');
is(request('POST', "$team/api/repos/move", { %{ $alice{write} }, %owners },
	{ fromRepo => 'alice/p', toRepo => 'team/p' })->{status}, 200,
	'write: a public repo to another name space');

# without tokens everyone has full access

is(request('POST', '/open/api/repos/create', {}, { name => 'o' })->{status},
	200, 'xet_auth off: a repo');
is(request('PUT', '/open/api/models/me/o/settings', {}, { private =>
	JSON::PP::true })->{status}, 200, 'xet_auth off: private');

# --------------------------------------------------------------------------
# the API deletes neither Hub repos nor files of their commits

create($alice{write}, 'kept');
is(commit($alice{write}, 'alice/kept', f => 'what is kept')->{status}, 200,
	'a commit');

my $kept = $t->sql("SELECT xet.repo_named(NULL, 0, 'alice', 'kept')");
my $hash = $t->head('/alice/kept/resolve/main/f', $alice{read})
	->header_value('X-Xet-Hash');

for my $scope (qw/ delete admin /) {
	my $token = cli_token($scope, $kept);

	for my $path ('repo', "files/$hash") {
		my $r = $t->http('DELETE', "/cas/v1/$path", $token);

		is($r->{status}, 403, "$scope: DELETE $path");
		is($r->json()->{error}{code}, 'hub_repo',
			"$scope: DELETE $path: why") or diag($r->{body});
	}
}

is($t->http('DELETE', '/cas/v1/repo', $given{write})->{status}, 403,
	'what the Hub gave out: DELETE repo');
is($t->get('/alice/kept/resolve/main/f', $alice{read})->{body},
	'what is kept', 'the file is there');
is(commit($alice{write}, 'alice/kept', g => 'more of it')->{status}, 200,
	'and the repo takes commits');

# --------------------------------------------------------------------------
# the subjects "Dora" and "dora" are different

my %dora = map { $_ => $t->auth('admin', "\@$_") } qw/ Dora dora DORA /;

create($dora{dora}, 'hers', 1);
is(commit($dora{dora}, 'dora/hers', f => 'of dora')->{status}, 200,
	'dora: a commit');

for my $name (qw/ Dora DORA /) {
	my $who = $dora{$name};

	for my $owner ('dora', 'Dora', $name, 'me', undef) {
		my $r = request('POST', '/api/repos/create', $who, { name =>
			'x', defined $owner ? (organization => $owner) : () });
		my $what = $owner // 'no owner';

		is($r->{status}, 403, "$name: a repo of $what");
		like($r->header_value('X-Error-Message'),
			qr/subject "$name" is not in canonical form/,
			"$name: a repo of $what: why");
	}

	for my $owner (qw/ dora Dora /) {
		is($t->get("/api/models/$owner/hers", $who)->{status}, 404,
			"$name: $owner/hers is not there");
		is(commit($who, "$owner/hers", g => 'x')->{status}, 404,
			"$name: no commit to $owner/hers");
	}

	is($t->get('/api/models?author=dora', $who)->{body}, '[]',
		"$name: no list of hers");

	my $r = $t->get('/api/whoami-v2', $who)->json();

	is($r->{name}, $name, "$name: whoami");
	is(scalar @{ $r->{orgs} }, 0, "$name: whoami: of none");
}

# owner names are shown as they were created, and compared in canonical form

is(request('POST', '/api/repos/create', $dora{dora}, { name => 'Shown',
	organization => 'Dora' })->{status}, 200, 'dora: a repo of Dora');
is($t->get('/api/models/dora/shown', $dora{dora})->json()->{id},
	'Dora/Shown', 'dora: it is shown as it was created');
is(commit($dora{dora}, 'DORA/SHOWN', f => 'x')->{status}, 200,
	'dora: whatever the case');

# the same rule for names in the configuration

for my $case ([ 'dora' => 200 ], [ 'lab,dora' => 200 ], [ 'Dora' => 404 ],
	[ 'lab,DORA' => 404 ], [ 'dora%2Fx' => 404 ], [ '' => 404 ])
{
	my ($owners, $status) = @$case;

	is($t->get('/owners/api/models/dora/hers', { %{ $alice{read} },
		'X-Owners' => $owners })->{status}, $status,
		"xet_hub_owners: \"$owners\"");
}

for my $case ([ 'dora' => 200 ], [ 'Dora' => 404 ], [ 'alice' => 404 ]) {
	my ($user, $status) = @$case;

	is($t->get("$_/api/models/dora/hers", { %{ $alice{read} },
		'X-User' => $user })->{status}, $status,
		"xet_hub_user, $_: \"$user\"")
		for '/user', '/open/user';
}

# uploads are recorded under dora, not under Dora

my %subject = map { $_ => $t->sql("SELECT count(*) FROM xet.repo_files"
	. " WHERE subject = sha256('\\x00'::bytea || '$_'::bytea)") }
	qw/ dora Dora /;

is($subject{Dora}, 0, 'nothing was sent by Dora');

$t->done();

# --------------------------------------------------------------------------

sub request {
	my ($method, $uri, $who, $data) = @_;

	return $t->http($method, $uri, { %$who, 'Content-Type' =>
		'application/json' }, \$json->encode($data));
}

sub create {
	my ($who, $name, $private) = @_;

	is(request('POST', '/api/repos/create', $who, { name => $name,
		private => $private ? JSON::PP::true : JSON::PP::false })
		->{status}, 200, "a repo $name");
}

sub settings {
	my ($who, $repo, $private) = @_;

	return request('PUT', "/api/models/$repo/settings", $who, { private =>
		$private eq 'true' ? JSON::PP::true : JSON::PP::false });
}

sub listed { return $t->get('/api/models')->{body} =~ /"\Q$_[0]\E"/ ? 1 : 0 }

sub commit {
	my ($who, $repo, $path, $bytes) = @_;

	return $t->post("/api/models/$repo/commit/main", \join("\n", map {
		$json->encode($_) } { key => 'header', value => { summary =>
			's' } }, { key => 'file', value => { path => $path,
			encoding => 'base64', content => encode_base64($bytes,
				'') } }), { %$who, 'Content-Type' =>
			'application/x-ndjson' });
}

# Makes a token as an administrator does, for a repo's name in the store.

sub cli_token {
	my ($scope, $repo) = @_;

	my $r = xet(undef, {}, 'token', '--key', $t->dir() . '/token.key',
		'--scope', $scope, '--repo', $repo);

	is($r->{code}, 0, "xet token --scope $scope") or diag($r->{err});

	return { Authorization => 'Bearer ' . ($r->{out} =~ s/\s+\z//r) };
}
