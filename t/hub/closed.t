#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# When a repo becomes private, all tokens and LFS URLs that were issued for it
# are revoked, including tokens of its owner and of anonymous callers.  With
# these tokens and URLs nobody can read known hashes, detect new data by dedup
# queries, or add data.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Token;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $t = Test::Xet->new(http => Test::Xet::Token::token_directive(),
	locations => <<'EOC' . Test::Xet::Token::token_location());
location / {
            xet_hub on;
            xet_auth token;
            xet_hub_public on;
            xet_api_base /cas;
        }

        %%CAS%%
EOC

$t->token_key();
$t->run();
$t->allow(qr/xet: 40[0-9] /);

my $json = JSON::PP->new()->canonical();
my $alice = $t->auth('admin', '@alice');
my %who = (alice => $alice, bob => $t->auth('read', '@bob'), nobody => {});
my $repo = 'alice/open';
my $info = "/api/models/$repo";

my $old = random_bytes(11, 300_000);
my $new = random_bytes(12, 300_000);

is($t->post('/api/repos/create', \'{"name":"open"}', $alice)->{status}, 200,
	'a public repo');
is(commit(old => $old)->{status}, 200, 'with a file');

my $hash = $t->head("/$repo/resolve/main/old", $alice)
	->header_value('X-Xet-Hash');
my $store = store();

$t->sql("SELECT xet.quota_set('repo', '$store', NULL, NULL, 1000000000)");

# --------------------------------------------------------------------------
# tokens and LFS URLs of the repo

my %given = map { $_ => token('read', $who{$_}) } keys %who;
my %lfs = map { $_ => lfs($_) } qw/ download upload /;

$given{writer} = token('write', $alice);

is($t->get("/cas/v1/files/$hash", $given{$_})->{body}, $old,
	"public: $_ reads by the hash") for sort keys %given;
is($t->get($lfs{download})->{body}, $old, 'public: by the URL of LFS');

my ($chunk) = chunk_of('old');

is($t->get("/cas/v1/chunks/default/$chunk", $given{nobody})->{status}, 200,
	'public: dedup finds its chunks');

# --------------------------------------------------------------------------

# an upload whose commit is in progress completes before the change; an upload
# that begins during the change is handled after it

my $session = $t->pg_session();

$session->run('BEGIN');
$session->run("SELECT xet.repo_row('$store')");

my $private = '{"private":true}';
my $c = $t->http_start('PUT', "$info/settings", { %$alice,
	'Content-Length' => length($private) }, $private, timeout => 60);

ok(wait_for(20, sub { $t->pg_blocked() }), 'it waits for an upload');
is(store(), $store, 'the repo is as it was meanwhile');
$session->run('COMMIT');
$session->close();
is($c->response()->{body}, $private, 'it becomes private');
is(commit(new => $new)->{status}, 200, 'and has another file');

my $fresh = $t->head("/$repo/resolve/main/new", $alice)
	->header_value('X-Xet-Hash');
my %chunks = (old => $chunk, new => chunk_of('new'));

isnt(store(), $store, 'its uploads have another name');
closed('private');

# the owner, with tokens and URLs issued after the change

my %mine = map { $_ => token($_, $alice) } qw/ read write /;

for my $scope (sort keys %mine) {
	is($t->get("/cas/v1/files/$hash", $mine{$scope})->{body}, $old,
		"the owner, to $scope: the file");
	is($t->get("/cas/v1/files/$fresh", $mine{$scope})->{body}, $new,
		"the owner, to $scope: the new one");
	is($t->get("/cas/v1/chunks/default/$chunks{$_}", $mine{$scope})
		->{status}, 200, "the owner, to $scope: dedup of the $_ one")
		for qw/ old new /;
}

is($t->get(lfs('download'))->{body}, $old, 'the owner: by a URL of LFS');
is($t->http('PUT', '/cas/v1/files', $mine{write}, \'mine')->{status}, 200,
	'the owner: an upload');

# the limits of the repo do not change, and administrators still see its name

is($t->sql("SELECT count(*) FROM xet.quotas WHERE kind = 'repo'"
	. " AND owner = convert_to('" . store() . "', 'UTF8')"), 1,
	'its limits stay');
is($t->sql("SELECT xet.hub_title('" . store() . "')"), "models/$repo",
	'its title');
is($t->sql("SELECT xet.repo_named(NULL, 0, 'alice', 'open')"), store(),
	'its name, for administrators');

# public again: tokens and URLs issued before the change stay revoked

is($t->http('PUT', "$info/settings", $alice, \'{"private":false}')->{status},
	200, 'public again');

my $public = store();

closed('public again');
$given{late} = token('read', {});
is($t->get("/cas/v1/files/$fresh", $given{late})->{body}, $new,
	'public again: a new token');

# private again: earlier tokens and URLs stay revoked; setting a private repo to
# private once more revokes nothing

for (1 .. 2) {
	is($t->http('PUT', "$info/settings", $alice, \'{"private":true}')
		->{status}, 200, 'private again');
	isnt(store(), $public, 'private again: by another name');
	$public = $_ == 1 ? 'none' : $public;
}

closed('private again');

my $name = store();

is($t->http('PUT', "$info/settings", $alice, \'{"private":true}')->{status},
	200, 'private, and made so');
is(store(), $name, 'private, and made so: nothing is revoked');

# a deleted repo leaves no name in the store, and no later repo gets the old
# name

my $names = $t->sql('SELECT max(store) FROM xet.hub_repos');

is($t->http('DELETE', '/api/repos/delete', $alice, \'{"name":"open"}')
	->{status}, 200, 'deleted');
is($t->sql("SELECT count(*) FROM xet.repos WHERE name LIKE '\\_hub/%'"), 0,
	'deleted: no name is left');
is($t->post('/api/repos/create', \'{"name":"open"}', $alice)->{status}, 200,
	'and made again');
cmp_ok($t->sql('SELECT max(store) FROM xet.hub_repos'), '>', $names,
	'made again: a new name in the store');
closed('made again');

$t->done();

# --------------------------------------------------------------------------

# Checks that the earlier tokens and URLs have no effect.

sub closed {
	my ($state) = @_;

	my $count = $t->sql('SELECT count(*) FROM xet.repos');

	for my $who (sort keys %given) {
		my $given = $given{$who};

		for ([ old => $hash ], [ new => $fresh ]) {
			my ($what, $file) = @$_;

			my $r = $t->get("/cas/v1/files/$file", $given);

			is($r->{status}, 404,
				"$state: $who: the $what file by its hash");
			is($t->get("/cas/v2/reconstructions/$file", $given)
				->{status}, 404,
				"$state: $who: the plan of the $what one");
			# the chunks of a public repo are found with any token

			is($t->get("/cas/v1/chunks/default/$chunks{$what}",
				$given)->{status},
				$state eq 'public again' ? 200 : 404,
				"$state: $who: dedup of the $what one")
				if $who ne 'writer' && $who ne 'alice';
		}
	}

	is($t->get($lfs{download})->{status}, 404, "$state: the URL of LFS");
	is($t->http('PUT', $lfs{upload}, {}, \'sent late')->{status}, 404,
		"$state: a PUT by the URL of LFS");
	is($t->http('PUT', '/cas/v1/files', $given{writer}, \'brought late')
		->{status}, 404, "$state: a file by the token to write");
	is($t->sql('SELECT count(*) FROM xet.repos'), $count,
		"$state: nothing came of that");
}

sub store {
	return scalar $t->sql('SELECT r.name FROM xet.repos r'
		. " WHERE r.name = xet.hub_store_of((SELECT h.id FROM"
		. " xet.hub_repos h WHERE h.name = 'open'))");
}

sub token {
	my ($scope, $who) = @_;

	return { Authorization => 'Bearer '
		. $t->get("$info/xet-$scope-token/main", $who)->json()
			->{accessToken} };
}

sub commit {
	my ($path, $bytes) = @_;

	return $t->post("$info/commit/main", \join("\n", map {
		$json->encode($_) } { key => 'header', value => { summary =>
			's' } }, { key => 'file', value => { path => $path,
			encoding => 'base64', content => encode_base64($bytes,
				'') } }), { %$alice, 'Content-Type' =>
			'application/x-ndjson' });
}

# Returns the path of a signed URL: to download the old file, or to upload
# another file.

sub lfs {
	my ($operation) = @_;

	my $bytes = $operation eq 'download' ? $old : 'sent late';
	my $r = $t->post("/$repo.git/info/lfs/objects/batch", \$json->encode({
		operation => $operation, objects => [ { oid =>
			sha256_hex($bytes), size => length($bytes) } ] }),
		{ %$alice, 'Content-Type' => 'application/vnd.git-lfs+json' });

	return $r->json()->{objects}[0]{actions}{$operation}{href}
		=~ m!^http://[^/]+(/.*)! ? $1 : undef;
}

# Returns the hash of a file's first chunk, which clients send in dedup queries.

sub chunk_of {
	my ($path) = @_;

	return scalar $t->sql('SELECT encode(xet.hub_hash(c.hash), \'hex\')'
		. ' FROM xet.hub_paths p'
		. ' JOIN xet.files f ON f.hash = xet.hub_hash(p.hash)'
		. ' JOIN xet.file_xorbs fx ON fx.file_id = f.id'
		. ' JOIN xet.chunks c ON c.xorb_id = fx.xorb_id'
		. " WHERE p.path = '$path' ORDER BY c.idx LIMIT 1");
}
