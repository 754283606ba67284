#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A preupload refuses files that exceed a quota, before the client sends them,
# and says what is left.  Files that may be in the repo already are accepted.
# Uploads without a preupload are refused with the same figures.  The quota of a
# private repo is unknown to others.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ root /;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;
use Time::HiRes qw/ time /;

my $t = Test::Xet->new(Test::Xet::Table::hub(
	'xet_auth token; xet_hub_public on;'), workers => 1);

$t->token_key();
$t->run();
$t->allow(qr/413 quota_exceeded|403 insufficient_scope/);

my $json = JSON::PP->new()->canonical();
my %auth = map { $_ => header($_ =~ /(\w+?)(_read)?\z/, $_) }
	qw/ alice alice_read bob /;

for my $name (qw/ m other /) {
	is($t->post('/api/repos/create', $json->encode({ name => $name,
		organization => 'alice', private => JSON::PP::true }),
		$auth{alice})->{status}, 200, "$name");
}

my $text = 'x' x 3000;
my $r = commit('m', 'old', $text);

is($r->{status}, 200, 'a file') or diag($r->summary());

# --------------------------------------------------------------------------
# logical bytes

limit('m', 'NULL, 10000');

accepted('up to the limit', [ a => 7000 ]);
over('a byte more', 'logical', 10000, 7000, 7001, [ a => 7001 ]);
over('of two files', 'logical', 10000, 7000, 7001, [ a => 7000, 'A' ],
	[ b => 1, 'B' ]);
over('of two files without samples', 'logical', 10000, 7000, 8000,
	[ a => 4000, undef ], [ b => 4000, undef ]);
accepted('files that may be equal', [ a => 4000 ], [ b => 4000 ]);
accepted('files that may be in the repo', [ a => 7000 ], [ old => 3000 ],
	[ copy => 3000, 'other' ]);
over('the sizes of many files', 'logical', 10000, 7000, 60300,
	map { [ "f$_" => 200 + ($_ == 300 ? 300 : 0), "s$_" ] } 1 .. 300);
over('a sum over 64 bits', 'logical', 10000, 7000, 9223372036854775807,
	[ a => 9223372036854775807 ], [ b => 9223372036854775806 ]);

$r = pre('m', $auth{alice}, { gitIgnore => 'big*' }, [ big => 70000 ],
	[ small => 7 ]);
is($r->{status}, 200, 'an ignored file does not count');

is(pre('other', $auth{alice}, {}, [ a => 70000 ])->{status}, 200,
	'another repo has no limit');

limit('m', 'NULL, 3000');
over('nothing is left', 'logical', 3000, 0, 1, [ a => 1 ]);
accepted('the same folder again', [ old => 3000 ]);
accepted('empty files', [ a => 0 ]);

# --------------------------------------------------------------------------
# stored bytes depend on the content

limit('m', '1000000, NULL');
accepted('stored: something is left', [ a => 70_000_000 ]);
limit('m', '1, NULL');
like(pre('m', $auth{alice}, {}, [ a => 1 ])->json()->{error},
	qr/has 0 of 1 stored bytes left/, 'stored: nothing is left');
accepted('stored: the same folder again', [ old => 3000 ]);

# --------------------------------------------------------------------------
# rows

limit('m', 'NULL, NULL, 1');
like(pre('m', $auth{alice}, {}, [ a => 1 ])->json()->{error},
	qr/has 0 of 1 metadata bytes left, and the upload needs at least 406/,
	'metadata');
accepted('metadata: the same folder again', [ old => 3000 ]);
limit('m', 'NULL, NULL');

# --------------------------------------------------------------------------
# subjects

$t->sql("SELECT xet.quota_set('subject', NULL, NULL, NULL, 5000)");
like(pre('other', $auth{alice}, {}, [ a => 5000 ])->json()->{error},
	qr/the subject has 2000 of 5000 logical bytes left/, 'a subject');
$t->sql("SELECT xet.quota_set('subject', NULL, NULL, NULL, NULL)");

# --------------------------------------------------------------------------
# uploads without a preupload

limit('m', 'NULL, 3010');

refused('a commit', commit('m', 'new', 'y' x 20), 20);

$r = $t->post('/alice/m.git/info/lfs/objects/batch', $json->encode({
	operation => 'upload', transfers => [ 'basic' ], objects => [ {
	oid => sha256_hex('z' x 20), size => 20 } ] }), { %{ $auth{alice} },
	'Content-Type' => 'application/vnd.git-lfs+json' });
refused('LFS', $t->http('PUT', $r->json()->{objects}[0]{actions}{upload}{href}
	=~ s!^https?://[^/]+!!r, {}, 'z' x 20), 20);

$t->sql("SELECT xet.quota_set('subject', NULL, NULL, NULL, 3010)");
refused('the first files of a repo', $t->post('/api/repos/create',
	$json->encode({ name => 'first', organization => 'alice',
	files => [ { path => 'a', encoding => 'utf-8',
	content => 'w' x 20 } ] }),
	$auth{alice}), 20, 'subject');
$t->sql("SELECT xet.quota_set('subject', NULL, NULL, NULL, NULL)");

# --------------------------------------------------------------------------
# other callers

limit('m', 'NULL, 10');

my $missing = pre('missing', $auth{bob}, {}, [ a => 70000 ]);
my $hidden = pre('m', $auth{bob}, {}, [ a => 70000 ]);

is($hidden->{status}, 404, 'a private repo of another owner');
is($hidden->{body}, $missing->{body}, 'is like a missing repo');

$r = pre('m', $auth{alice_read}, {}, [ a => 70000 ]);
is($r->{status}, 403, 'a token to read');
unlike($r->{body}, qr/quota/, 'without figures of the quota');

is($t->http('PUT', '/api/models/alice/m/settings', $auth{alice},
	'{"private":false}')->{status}, 200, 'a public repo');
$r = pre('m', $auth{bob}, {}, [ a => 70000 ]);
is($r->{status}, 403, 'of another owner');
like($r->json()->{error}, qr/not write/, 'says why');
unlike($r->{body}, qr/quota|70000/, 'and nothing about the quota');

# --------------------------------------------------------------------------
# hf

my $dir = tempdir(CLEANUP => 1);
my $table = Test::Xet::Table->new($t);

open(my $fh, '>', "$dir/big") or die "big: $!\n";
print $fh random_bytes(3, 200_000);
close($fh) or die "big: $!\n";

$table->requests();

my $began = time();

$table->hf('hf: over the quota', { fails => 1, token => token('alice',
	'admin'), prints => qr/0 of 10 logical bytes left.*at least 200000/s },
	'upload', 'alice/m', "$dir/big");
cmp_ok(time() - $began, '<', 60, 'hf: ends');
is(Test::Xet::Table::sent(qr/cas|lfs/, $table->requests()), 0,
	'hf: sends no bytes');

$t->done();

# --------------------------------------------------------------------------

sub token {
	my ($who, $scope) = @_;

	my @command = (root() . '/build/xet', 'token', '--key',
		$t->dir() . '/token.key', '--subject', $who, '--scope', $scope,
		'--lifetime', '2h');

	open(my $out, '-|', @command) or die "$command[0]: $!\n";

	my $token = <$out>;

	close($out) or die "$command[0]: $?\n";
	chomp($token);

	return "hf_$token";
}

sub header {
	my ($who, $read) = @_;

	return { Authorization => 'Bearer '
		. token($who, $read && $read eq '_read' ? 'read' : 'admin') };
}

sub sample { return encode_base64($_[0] x 512, '') }

sub pre {
	my ($name, $auth, $more, @files) = @_;

	my @list = map {
		my ($path, $size, $sample) = @$_;

		{ path => $path, size => 0 + $size, sample => @$_ == 2
			? sample('x') : defined($sample)
			? encode_base64(substr($sample x 512, 0, 512), '')
			: '' };
	} @files;

	return $t->post("/api/models/alice/$name/preupload/main",
		$json->encode({ %$more, files => \@list }), $auth);
}

sub accepted {
	my ($name, @files) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $r = pre('m', $auth{alice}, {}, @files);

	is($r->{status}, 200, $name) or diag($r->summary());
}

sub over {
	my ($name, $what, $limit, $left, $needs, @files) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $r = pre('m', $auth{alice}, {}, @files);

	is($r->{status}, 413, $name) or diag($r->summary());
	is($r->json()->{error}, 'the upload exceeds the quota: the repo has '
		. "$left of $limit $what bytes left, and the upload needs at"
		. " least $needs", "$name: the message");
	is($r->json()->{details}{code}, 'quota_exceeded', "$name: the code");
}

sub refused {
	my ($name, $r, $needs, $kind) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $text = sprintf('the %s has 10 of 3010 logical bytes left, and the'
		. ' upload needs at least %d', $kind || 'repo', $needs);

	is($r->{status}, 413, "$name: the status") or diag($r->summary());
	like($r->{body}, qr/\Q$text\E/, "$name: the figures");
}

sub commit {
	my ($name, $path, $data) = @_;

	return $t->post("/api/models/alice/$name/commit/main", join("\n",
		map { $json->encode($_) } { key => 'header', value => {
		summary => 's' } }, { key => 'file', value => { path => $path,
		encoding => 'base64',
		content => encode_base64($data, '') } }),
		{ %{ $auth{alice} },
			'Content-Type' => 'application/x-ndjson' });
}

sub limit {
	my ($name, $limits) = @_;

	$t->sql("SELECT xet.quota_set('repo', xet.hub_store(h.store), NULL,"
		. " $limits) FROM xet.hub_repos h WHERE h.name = '$name'");
}
