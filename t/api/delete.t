#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# DELETE of files and of repos: deleted data is gone on all nodes and all routes
# once the response is sent, and returns with the next upload.  The test also
# covers who may delete, and that xorbs which were reported to clients stay
# stored.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Collect;
use Test::Xet::Process qw/ spew wait_for /;
use Test::Xet::Real;
use Test::Xet::Ztensor;

use File::Temp qw/ tempdir /;

my %conf = (workers => 2, log => 'info',
	pg_params => 'lock_timeout=500ms',
	Test::Xet::Token::beside());

my $t = Test::Xet->new(%conf);

$t->token_key();
$t->run();

my $other = Test::Xet->new(%conf, beside => $t);

$other->token_key();
$other->run();

$_->fds_mark() for $t, $other;

my ($data, $zt) = (mix(1, 300000), zt_file([ [ 't', { shape => [ 50 ],
	data => random_bytes(4, 200) } ] ])->{bytes});

# --------------------------------------------------------------------------
# a store without repos

for my $case ([ 'file', $data ], [ 'zTensor', $zt ]) {
	my ($name, $bytes) = @$case;
	my $hash = put($bytes)->{hash};

	is(seen($_, $hash), 'all', "$name: there") for $t, $other;

	# both nodes have served the file, so their caches are filled

	is(delete_file($t, $hash)->{status}, 204, "$name: deleted");
	is(seen($other, $hash), 'none', "$name: gone on the other node");
	is(seen($t, $hash), 'none', "$name: gone on this node");
	is(refusal(delete_file($_, $hash)), '404 file_not_found',
		"$name: deleted twice: 404") for $other, $t;

	is(put($bytes)->{hash}, $hash, "$name: put again");
	is(seen($_, $hash), 'all', "$name: there again") for $t, $other;
	is($t->get("/api/v1/files/$hash")->{body}, $bytes, "$name: its bytes");
	is(delete_file($other, $hash)->{status}, 204,
		"$name: deleted at the other node");
	is(seen($t, $hash), 'none', "$name: gone here, too");
}

# shards, of both versions

{
	my $file = $t->upload($data);

	for my $v (1, 2) {
		is(delete_file($t, $file->{hash})->{status}, 204,
			"v$v/shards: deleted");

		my $r = $other->post("/api/v$v/shards", \$file->{shard});

		is($r->{status}, 200, "v$v/shards: registered again");
		like($r->{body}, qr/"result": ?1|"registered"|"type":"result"/,
			"v$v/shards: as new");
		is(seen($t, $file->{hash}), 'all', "v$v/shards: there again");
	}

	is(delete_file($t, $file->{hash})->{status}, 204, 'shard: deleted');
	is(collect($t), 2, 'shard: its xorb is deleted');
	is(refusal($t->post('/api/v1/shards', \$file->{shard})),
		'400 unknown_xorb', 'shard: the xorb has to be sent');
	is($t->upload($data)->{hash}, $file->{hash}, 'shard: uploaded again');
	is(seen($other, $file->{hash}), 'all', 'shard: there again');
	is(delete_file($t, $file->{hash})->{status}, 204, 'shard: cleared');
}

# a file of more terms than fit into a row

{
	my $hash = long_file(3);

	is($t->get("/api/v1/files/$hash")->{status}, 200, 'long: there');
	is(delete_file($t, $hash)->{status}, 204, 'long: deleted');
	is(seen($other, $hash), 'none', 'long: gone');
	collect_rows($t);
	is($t->sql('SELECT count(*) FROM xet.terms'), '0', 'long: its terms');
	is(long_file(3), $hash, 'long: registered again');
	is($t->get("/api/v1/files/$hash")->{status}, 200, 'long: there again');
	delete_file($t, $hash);
}

# invalid hashes, and a body that the server does not read

is(refusal(delete_file($t, 'xyz')), '400 invalid_hash', 'no hash');
is(refusal($t->http('DELETE', '/api/v1/files/' . 'ab' x 32, {}, 'x' x 5000)),
	'404 file_not_found', 'a body');

# hf_xet remembers what it has sent; what it remembers is right until the
# collector runs

{
	my $machine = tempdir(CLEANUP => 1);
	my $path = make_mix("$machine/file", 5, 3000000);
	my $hash;

	for my $round (1 .. 3) {
		my $infos = hf_xet({ machine => $machine }, 'upload',
			'session', $t->url('/api'), $path);

		$hash = $infos->[0]{hash} // 'none';

		is(seen($other, $hash), 'all', "hf_xet: there, $round");
		is(sha256_file($path), served_sha256($hash),
			"hf_xet: its bytes, $round");
		is(delete_file($t, $hash)->{status}, 204,
			"hf_xet: deleted, $round");
		is(seen($t, $hash), 'none', "hf_xet: gone, $round");
	}
}

# --------------------------------------------------------------------------
# who may delete

{
	my $hash = put($data)->{hash};
	my $path = "/token-api/v1/files/$hash";

	is(refusal($t->http('DELETE', $path)), '401 invalid_token',
		'no token');
	is(refusal($t->http('DELETE', $path, $t->auth($_, ''))),
		'403 insufficient_scope', "a token to $_") for qw/ read write /;
	is(seen($t, $hash), 'all', 'nothing was deleted');
	is($t->http('DELETE', $path, $t->auth('delete', ''))->{status}, 204,
		'a token to delete');
	is($t->put('/token-api/v1/files', \$data, $t->auth('delete', ''))
		->{status}, 200, 'a token to delete may write');
	is($t->get($path, $t->auth('delete', ''))->{status}, 200,
		'and may read');
	is(refusal($t->http('DELETE', '/token-api/v1/repo',
		$t->auth('delete', 'a/a'))), '403 no_repos', 'no repos');
	is(refusal($t->http('DELETE', '/api/v1/repo')), '403 no_repos',
		'no repos, without tokens');
	delete_file($t, $hash);
}

# --------------------------------------------------------------------------
# the store does not delete files that belong to repos

my %file = (a => repo_put('a/a', 11), both => repo_put('a/a', 12));

is(repo_put('b/b', 12), $file{both}, 'a file of two repos');

for my $name (sort keys %file) {
	is(refusal(delete_file($t, $file{$name})), '409 file_in_repos',
		"$name: refused: repos have it");
	is(repo_sees('a/a', $file{$name}), '200',
		"$name: the repo still has it");
}

is(put(mix(12, 100000))->{hash}, $file{both}, 'the store has the file, too');
is(repo_delete('a/a', "files/$file{both}"), '204', 'removed from one repo');
is(refusal(delete_file($t, $file{both})), '409 file_in_repos',
	'the other repo still has it');
is(repo_delete('b/b', "files/$file{both}"), '204',
	'removed from the other repo');
is(seen($t, $file{both}), 'all', 'the store still has it');
is(repo_sees('b/b', $file{both}), '404', 'the repos do not');
is(delete_file($t, $file{both})->{status}, 204, 'deleted from the store');
is(seen($other, $file{both}), 'none', 'the file is gone');
is(repo_delete('a/a', "files/$file{a}", 'write'),
	'403 insufficient_scope', 'a writer may not let go');
is(repo_sees('a/a', $file{a}), '200', 'the repo still has it');

# --------------------------------------------------------------------------
# repos

%file = map { $_ => repo_put('a/a', 20 + ord($_)) } qw/ m n o /;

is(repo_put('b/b', 20 + ord('o')), $file{o},
	'a file that another repo also has');
$t->sql("SELECT xet.repo_set_public('a/a', true)");
is(repo_sees('c/c', $file{m}), '200', 'repo: visible to all');

for my $scope (qw/ read write /) {
	is(repo_delete('a/a', 'repo', $scope), '403 insufficient_scope',
		"repo: scope $scope: refused");
}

is(repo_delete('', 'repo'), '403 insufficient_scope',
	'repo: a token without a repo');
is(refusal($t->http('DELETE', '/repo/v1/repo')), '401 invalid_token',
	'repo: without a token');
is(repo_delete('b/b', 'repo?name=a/a'), '409 other_repo',
	'repo: another repo');
is(repo_delete('a/a', 'repo?name='), '409 other_repo', 'repo: no name');
is(repo_delete('none/none', 'repo'), '404 repo_not_found',
	'repo: a missing repo');
is(repo_sees('c/c', $file{n}), '200', 'repo: nothing was deleted');

is(repo_delete('a/a', 'repo?name=a%2Fa'), '204', 'repo: deleted');

for my $name (qw/ m n o /) {
	is(repo_sees($_, $file{$name}), $_ eq 'b/b' && $name eq 'o' ? 200 : 404,
		"repo: $name for $_") for 'a/a', 'b/b', 'c/c';
}

is(repo_delete('a/a', 'repo'), '404 repo_not_found', 'repo: not twice');
is($t->sql("SELECT count(*) FROM xet.repo_files rf LEFT JOIN xet.repos r"
	. " ON r.id = rf.repo_id WHERE r.id IS NULL OR r.name = 'a/a'"), '0',
	'repo: no references left');
is(repo_put('a/a', 20 + ord('m')), $file{m}, 'repo: created again');
is(repo_sees('a/a', $file{m}), '200', 'repo: has the file');
is(repo_sees('a/a', $file{n}), '404', 'repo: has no other file');
is(repo_sees('c/c', $file{m}), '404', 'repo: is private');
is(repo_delete('a/a', 'repo'), '204', 'repo: deleted again');

cmp_ok(collect($t), '>=', 2, 'unused files are collected');
is(repo_sees('b/b', $file{o}), '200', 'used files are not');

# --------------------------------------------------------------------------
# waits for locks are bounded

{
	my $hash = put($data)->{hash};

	repo_put('l/l', 13);

	for my $case ([ 'SELECT id FROM xet.files FOR KEY SHARE', sub {
			refusal(delete_file($t, $hash)) } ],
		[ 'SELECT id FROM xet.repos FOR KEY SHARE', sub {
			repo_delete('l/l', 'repo') } ],
		[ "SELECT pg_advisory_xact_lock_shared(hashtext('xet.repos'),"
			. ' hashint8(id)) FROM xet.repos', sub {
			repo_delete('l/l', 'repo') } ])
	{
		my ($sql, $what) = @$case;
		my $hold = $t->pg_session();

		$hold->run('BEGIN');
		$hold->run($sql);
		is($what->(), '503 database_unavailable', "locks: $sql");
		$hold->run('ROLLBACK');
	}

	is(seen($t, $hash), 'all', 'locks: the file still exists');
	is(delete_file($t, $hash)->{status}, 204, 'locks: deleted then');
	is(repo_delete('l/l', 'repo'), '204', 'locks: and the repo');
}

$_->check_fds() for $t, $other;
$t->done();

# --------------------------------------------------------------------------

sub put {
	my ($bytes) = @_;

	my $r = $t->put('/api/v1/files', \$bytes);

	die "put: $r->{status} $r->{body}\n" if $r->{status} != 200;

	return $r->json();
}

sub delete_file {
	my ($node, $hash) = @_;

	return $node->http('DELETE', "/api/v1/files/$hash");
}

sub refusal {
	my ($r) = @_;

	return "$r->{status} " . (($r->json() || {})->{error}{code} // 'none');
}

# Checks that all routes of a file serve it, or that none does.  A batch omits
# files that do not exist.

sub seen {
	my ($node, $hash) = @_;

	my %ok;

	for my $route ("v1/files/$hash", "files/$hash",
		"v1/reconstructions/$hash", "reconstructions/$hash",
		"v2/reconstructions/$hash", "v2/file-chunk-hashes/$hash")
	{
		my $r = $node->get("/api/$route",
			{ 'X-Range-Dirty' => 'bytes=0-9' });

		$ok{$r->{status}}++;
	}

	$ok{$node->head("/api/v1/files/$hash")->{status}}++;

	my $zt = $node->get("/api/v1/zt/$hash")->{status};

	$ok{404}++ if $zt == 404;

	my $r = $node->get("/api/v1/reconstructions?file_id=$hash");
	my $in = $r->{status} == 200 && $r->json()->{files}{$hash};

	$ok{$in ? 200 : 404}++;

	return 'all' if ($ok{200} // 0) == 8 && keys %ok == 1;
	return 'none' if ($ok{404} // 0) == 9 && keys %ok == 1;
	return join(' ', map { "$_: $ok{$_}" } sort keys %ok);
}

# Registers a file of n segments of 256 terms each.

sub long_file {
	my ($segments) = @_;

	my $xorb = make_xorb(random_bytes(3, 100000), sizes => [ 50000 ]);

	$t->post("/api/v1/xorbs/default/$xorb->{hash}", \$xorb->{bytes});

	my $shard = make_shard({ files => [ { terms => [ map { {
		xorb => $xorb->{hash}, start => $_ % 2, end => $_ % 2 + 1 } }
		map { ($_, 1 - $_ % 2) } 1 .. 128 * $segments ] } ],
		xorbs => [ { %$xorb, raw => '', bytes => '' } ] });
	my $r = $t->post('/api/v1/shards', \$shard->{bytes});

	die "shard: $r->{status} $r->{body}\n" if $r->{status} != 200;

	return $shard->{files}[0]{hash};
}

sub served_sha256 {
	my ($hash) = @_;

	my $path = tempdir(CLEANUP => 1) . '/served';

	spew($path, $t->get("/api/v1/files/$hash")->{body});

	return sha256_file($path);
}

sub repo_put {
	my ($repo, $seed) = @_;

	my $bytes = mix($seed, 100000);
	my $r = $t->put('/repo/v1/files', \$bytes, $t->auth('write', $repo));

	die "put: $r->{status} $r->{body}\n" if $r->{status} != 200;

	return $r->json()->{hash};
}

sub repo_sees {
	my ($repo, $hash) = @_;

	my %status = map { $_->get("/repo/v1/files/$hash",
		$t->auth('read', $repo))->{status} => 1 } $t, $other;

	return join(' ', sort keys %status);
}

sub repo_delete {
	my ($repo, $path, $scope) = @_;

	my $r = $t->http('DELETE', "/repo/v1/$path",
		$t->auth($scope // 'delete', $repo));

	return $r->{status} == 204 ? 204 : refusal($r);
}
