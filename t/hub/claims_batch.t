#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Two tenants commit the same small files at once, in opposite order, with the
# shipped configuration.  The server proves the SHA-256 of many files in one
# statement.  One tenant has a false claim among true ones: only that tenant is
# refused, and no file gets a false SHA-256.  PostgreSQL crashes when
# the operations of both are staged: neither is committed.

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

my $rounds = 4;
my $files = 12;

start_pages();

my %auth = (alice => { %alice }, bob => { Authorization => 'Bearer '
	. $t->get('/tok/admin/bob')->json()->{accessToken} });
my %cas;
my $json = JSON::PP->new()->canonical();

for my $who (qw/ alice bob /) {
	is($t->post('/api/repos/create', \$json->encode({ name => 'm',
		private => JSON::PP::true }), { %{ $auth{$who} },
		'Content-Type' => 'application/json' })->{status}, 200,
		"$who: a private repo");
	$cas{$who} = { Authorization => 'Bearer ' . $t->get(
		"/api/models/$who/m/xet-write-token/main", $auth{$who})->json()
		->{accessToken} };
}

for my $round (1 .. $rounds) {
	my $lie = sha256_hex("what nobody has, $round");
	my $data = random_bytes($round, 2000 * $files);
	my $x = make_xorb($data, scheme => 'none',
		sizes => [ (2000) x $files ]);
	my @true = map { sha256_hex(substr($data, 2000 * $_, 2000)) }
		0 .. $files - 1;
	my %said = (alice => [ @true[0 .. $files - 2], $lie ],
		bob => [ @true ]);

	claim($_, $x, $said{$_}) for qw/ alice bob /;

	my %order = (alice => [ 0 .. $files - 1 ],
		bob => [ reverse(0 .. $files - 1) ]);
	my %c = map { $_ => start_commit($_, $round, $said{$_}, $order{$_}) }
		qw/ alice bob /;
	my %r = map { $_ => $c{$_}->response('POST') } qw/ alice bob /;

	is($r{bob}{status}, 200, "$round: true claims are committed")
		or diag($r{bob}->summary());
	is($r{alice}{status}, 400, "$round: a false claim is refused")
		or diag($r{alice}->summary());
	is($t->sql('SELECT count(*) FROM xet.files WHERE NOT sha256_proven'),
		0, "$round: all files are proven");
	is(join(' ', $t->sql("SELECT encode(sha256, 'hex') FROM xet.files"
		. " ORDER BY id DESC LIMIT $files")), join(' ', $t->sql(
		'SELECT h FROM unnest(ARRAY[' . join(', ', map { "'$_'" }
		@true) . ']) WITH ORDINALITY AS u(h, n) JOIN xet.files f'
		. " ON f.sha256 = decode(h, 'hex') ORDER BY f.id DESC")),
		"$round: with the SHA-256 of their bytes");

	my $again = start_commit('alice', $round, $said{alice},
		[ 0 .. $files - 2 ])->response('POST');

	is($again->{status}, 200, "$round: without it: accepted")
		or diag($again->summary());

	my $uri = "/alice/m/resolve/main/$round/f0";
	my $got = $t->get($uri, $auth{alice});

	is($t->get($uri, $auth{bob})->{status}, 404,
		"$round: the other tenant does not see it");
	is($got->{status} . ($got->{body} eq substr($data, 0, 2000)), 2001,
		"$round: its owner reads it") or diag($got->summary());
}

# --------------------------------------------------------------------------
# PostgreSQL crashes after both commits are staged, before they are made

my $one = sha256_hex(substr(random_bytes($rounds, 2000), 0, 2000));
my %text = map { $_ => operations("crash-$_", [ ($one) x 1200 ],
	[ 0 .. 1199 ]) } qw/ alice bob /;
my $hold = $t->pg_session();

$hold->run('BEGIN');
$hold->run('SELECT FROM xet.hub_refs FOR UPDATE');

my %c = map { $_ => post_commit($_, $text{$_}) } qw/ alice bob /;

ok(wait_for(20, sub { $t->pg_blocked() >= 2 }), 'crash: both commits wait');
cmp_ok($t->sql('SELECT count(*) FROM xet.hub_staged'), '>=', 2,
	'crash: both are staged');
$t->pg_restart('immediate');

for my $who (qw/ alice bob /) {
	my $r = $c{$who}->response('POST');

	is($r->{status}, 503, "crash: $who: refused") or diag($r->summary());
	ok($r->header_value('Retry-After'), "crash: $who: for now");
}

is($t->sql("SELECT count(*) FROM xet.hub_paths WHERE path LIKE 'crash%'"), 0,
	'crash: nothing is committed');

for my $who (qw/ alice bob /) {
	my $other = $who eq 'alice' ? 'bob' : 'alice';
	my $r = post_commit($who, $text{$who})->response('POST');

	is($r->{status}, 200, "crash: $who: again") or diag($r->summary());

	for ([ $who, 200 ], [ $other, 404 ]) {
		is($t->head("/$who/m/resolve/main/crash-$who/f1199",
			$auth{$_->[0]})->{status}, $_->[1],
			"crash: $who: $_->[0] asks for it");
	}
}

is($t->sql('SELECT count(*) FROM xet.hub_staged'), 0,
	'crash: nothing is staged');
is($t->sql('SELECT count(*) FROM xet.hub_proofs'), 0,
	'no file is marked as being read');
is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
	'counted exactly');

$t->done();

# --------------------------------------------------------------------------

# Uploads a xorb, and a shard that has each chunk as a file.

sub claim {
	my ($who, $x, $sha256) = @_;

	is($t->post("/cas/v1/xorbs/default/$x->{hash}", \$x->{bytes},
		$cas{$who})->{status}, 200, "$who: a xorb");

	my $shard = make_shard({ files => [ map { {
		sha256 => $sha256->[$_], verification => JSON::PP::true,
		terms => [ { xorb => $x->{hash}, start => $_, end => $_ + 1 } ]
		} } 0 .. $files - 1 ], xorbs => [ $x ] });
	my $r = $t->post('/cas/v1/shards', \$shard->{bytes}, $cas{$who});

	is($r->{status}, 200, "$who: a shard") or diag($r->summary());
}

sub start_commit {
	my ($who, @ops) = @_;

	return post_commit($who, operations(@ops));
}

sub post_commit {
	my ($who, $body) = @_;

	return $t->http_start('POST', "/api/models/$who/m/commit/main", {
		%{ $auth{$who} }, 'Content-Type' => 'application/x-ndjson',
		'Content-Length' => length($body) }, $body, timeout => 60);
}

sub operations {
	my ($folder, $sha256, $order) = @_;

	return join("\n", $json->encode({ key => 'header',
		value => { summary => 's' } }), map { $json->encode({
		key => 'lfsFile', value => { path => "$folder/f$_",
		algo => 'sha256', oid => $sha256->[$_], size => 2000 } }) }
		@$order) . "\n";
}
