#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Two tenants upload the same small files by the LFS API, which stores a file
# and its xorb in one statement: at once, after each other, after damage, after
# a deletion, and with a quota.  With the shipped configuration.  Each tenant
# has its own file, learns nothing about the other one, and is counted exactly.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Pages;
use Test::Xet::Process qw/ wait_for /;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();

start_pages();

my %auth = (alice => { %alice }, bob => { Authorization => 'Bearer '
	. $t->get('/tok/admin/bob')->json()->{accessToken} });

for (qw/ alice bob /) {
	is(post($_, '/api/repos/create', { name => 'm', private =>
		JSON::PP::true })->{status}, 200, "$_: a private repo");
}

# --------------------------------------------------------------------------
# at once

my @all = map { random_bytes($_, 2048) } 1 .. 12;

for my $n (0 .. $#all) {
	my %put = map { $_ => lfs($_, $all[$n]) } qw/ alice bob /;
	my %c = map { $_ => $t->http_start('PUT', $put{$_}[0],
		{ %{ $put{$_}[1] }, 'Content-Length' => 2048 },
		$all[$n]) } keys %put;

	is(join(' ', map { $_->response('PUT')->{status} } values %c),
		'200 200', "at once, $n");
}

is($t->sql('SELECT count(*) FROM xet.files'), 12, 'at once: one row a file');
is($t->sql('SELECT count(*) FROM xet.xorbs'), 12, 'at once: one row a xorb');
is($t->sql('SELECT count(*) FROM xet.repo_files WHERE kept'), 24,
	'at once: each repo has them');
counted('at once');

# --------------------------------------------------------------------------
# after each other: the second tenant can't tell that the file was known

my ($known, $new) = map { random_bytes($_, 2048) } 100, 101;

is(put('alice', $known)->{status}, 200, 'alice has a file');

my @told = map { put('bob', $_) } $known, $new;

is($told[0]{status}, 200, 'a known file');
is($told[0]{status}, $told[1]{status}, 'a new one: the same status');
is($told[0]{body} =~ s/[0-9a-f]{64}//gr, $told[1]{body}
	=~ s/[0-9a-f]{64}//gr, 'the same body');
is(names($told[0]), names($told[1]), 'the same headers');
counted('after each other');

# --------------------------------------------------------------------------
# nobody reads what only the other one has

my $secret = random_bytes(200, 2048);

put('alice', $secret);

my $hash = $t->sql("SELECT encode(hash, 'hex') FROM xet.files WHERE"
	. " encode(sha256, 'hex') = '" . sha256_hex($secret) . "'");
my $name = join('', map { join('', reverse(/../g)) } $hash =~ /.{16}/g);
my %cas = map { $_ => { Authorization => 'Bearer ' . $t->get(
	"/api/models/$_/m/xet-write-token/main", $auth{$_})->json()
	->{accessToken} } } keys %auth;

is(reads('alice'), 200, 'alice reads her file');
is(reads('bob'), 404, 'bob does not');
is(put('bob', $secret)->{status}, 200, 'bob uploads it');
is(reads('bob'), 200, 'and reads it');

# --------------------------------------------------------------------------
# after damage, and after a deletion

$t->allow(qr/can't be read/, qr/is missing|damaged/);

unlink($_) or die "$_: $!\n" for glob($t->store() . '/xorbs/default/*/*');
is($t->http('PUT', '/api/v1/files', $cas{bob}, \$secret)->{status}, 200,
	'without its copy: uploaded again');

my $again = $t->get("/api/v1/files/$name", $cas{alice});

ok($again->{status} == 200 && $again->{body} eq $secret,
	'also alice reads it again') or diag($again->summary());

is($t->http('DELETE', '/api/repos/delete', { %{ $auth{alice} },
	'Content-Type' => 'application/json' }, \'{"name":"m"}')->{status},
	200, 'alice deletes her repo');
is(reads('alice'), 404, 'alice reads nothing');
is(reads('bob'), 200, 'bob still reads the file');
counted('after a deletion');

# --------------------------------------------------------------------------
# a refused file leaves nothing

$t->sql("INSERT INTO xet.quotas (kind, owner, stored) VALUES ('repo',"
	. " (SELECT convert_to(name, 'UTF8') FROM xet.repos ORDER BY id DESC"
	. ' LIMIT 1), 0)');

my $before = rows();
my $refused = put('bob', random_bytes(300, 2048));

is($refused->{status}, 413, 'above the quota: refused')
	or diag($refused->summary());
is(rows(), $before, 'above the quota: no row');
is(put('bob', $known)->{status}, 200, 'a file of the repo is no new one');
counted('above the quota');

$t->done();

# --------------------------------------------------------------------------

sub post {
	my ($who, $uri, $body) = @_;

	return $t->post($uri, \JSON::PP::encode_json($body),
		{ %{ $auth{$who} }, 'Content-Type' => 'application/json' });
}

# Asks for the URL of an LFS object.  Returns the URI and headers of its PUT.

sub lfs {
	my ($who, $data) = @_;

	my $r = $t->post("/$who/m.git/info/lfs/objects/batch",
		\JSON::PP::encode_json({ operation => 'upload',
		transfers => [ 'basic' ], objects => [ {
		oid => sha256_hex($data), size => length($data) } ] }),
		{ %{ $auth{$who} },
		'Content-Type' => 'application/vnd.git-lfs+json' });
	my $action = $r->json()->{objects}[0]{actions}{upload}
		or return;

	return [ $action->{href} =~ s!^https?://[^/]+!!r,
		$action->{header} // {} ];
}

# Uploads a file.  If the repo has it, the API names no URL.

sub put {
	my ($who, $data) = @_;

	my $to = lfs($who, $data) or return { status => 200 };

	return $t->http('PUT', @$to, \$data);
}

sub names {
	return join(' ', sort keys %{ $_[0]{headers} });
}

sub reads {
	return $t->get("/api/v1/reconstructions/$name", $cas{$_[0]})
		->{status};
}

sub rows {
	return join(' ', map { $t->sql("SELECT count(*) FROM xet.$_") }
		qw/ files xorbs chunks file_xorbs repo_files charges /);
}

# The sums of the usage are those of the rows.

sub counted {
	my ($name) = @_;

	is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
		"$name: counted exactly");
}
