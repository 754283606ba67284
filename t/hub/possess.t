#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Which xorbs a caller of the Hub may refer to without sending them: those of
# files that the caller may read by name.  A xorb of one chunk has the hash of
# that chunk as its name, so its hash proves nothing.  Xorbs of private repos,
# and of files that are not committed, look as if they were not stored.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Collect;
use Test::Xet::Token;

use JSON::PP ();
use MIME::Base64 ();

my $t = Test::Xet->new(workers => 2, log => 'info',
	http => Test::Xet::Token::token_directive(),
	locations => <<'EOC' . Test::Xet::Token::token_location());
location / {
            xet_hub on;
            xet_auth token;
            xet_hub_public on;
            xet_api_base /cas;
            client_max_body_size 200m;
        }

        %%CAS%%
EOC

$t->token_key();
$t->run();
$t->allow(qr/unknown_xorb/);

my $json = JSON::PP->new()->canonical();
my %who = map { $_ => $t->auth('admin', "\@$_") } qw/ alice bob /;
my $seed = 0;

create('alice', 'open');
create('alice', 'closed', private => \1);
create('bob', 'own', private => \1);

# --------------------------------------------------------------------------
# bob refers to xorbs of alice

my $open = file('alice/open');
my $closed = file('alice/closed');
my $loose = xorb();
my $none = xorb();

is(send_xorb($loose, 'alice', 'open')->{status}, 200, 'a xorb');
is(refer($loose, 'alice', 'open')->{status}, 200, 'a file, not committed');

# the first two are equal except for the names

my @refused = map { scalar refer($_, 'bob', 'own') } $none, $closed, $loose;

for my $i (0 .. 2) {
	my $name = (qw/ none private uncommitted /)[$i];

	is_deeply($refused[$i]->refusal(),
		[ 400, 'application/json', 'unknown_xorb' ], "$name: refused");
	is(text($refused[$i]), text($refused[0]), "$name: as if not stored");
	is(grant($_, 'bob', 'own'), 404, "$name: no grant")
		for (($none, $closed, $loose)[$i]);
}

is(refer($open, 'bob', 'own')->{status}, 200, 'of a public repo: accepted');
is(refer($closed, 'alice', 'open')->{status}, 200,
	'alice sent it herself, to another repo');

# a token for one repo, with another subject

is(refer($open, 'bob', 'own', 'ci')->{status}, 200, 'subject ci: accepted');
is(refer($closed, 'bob', 'own', 'ci')->{status}, 400,
	'subject ci: not of a private repo');

# --------------------------------------------------------------------------
# visibility

$open = file('alice/open');

is(settings('open', 1), 200, 'it becomes private');
is(refer($open, 'bob', 'own')->{status}, 400, 'and its xorbs are hidden');

my $hidden = file('alice/open');

is(settings('open', 0), 200, 'it becomes public');
is(refer($open, 'bob', 'own')->{status}, 200, 'and its xorbs are visible');
is(refer($hidden, 'bob', 'own')->{status}, 200,
	'also those of a file committed meanwhile');

# a repo that is created with its files

is(post('alice', '/api/repos/create', { name => 'first', files => [ {
	path => 'f', encoding => 'base64',
	content => MIME::Base64::encode_base64((my $first = xorb())->{data}, '')
} ] })->{status}, 200, 'a repo with files');
is(refer($first, 'bob', 'own')->{status}, 200, 'its xorbs are visible');

# a file in many public repos, of which the oldest did not commit it

my $many = xorb();

for my $n (1 .. 3) {
	create('alice', "m$n");
	send_xorb($many, 'alice', "m$n");
	is(refer($many, 'alice', "m$n")->{status}, 200, "repo $n: uploaded");
}

is(refer($many, 'bob', 'own')->{status}, 400, 'no repo committed it');
create('alice', 'm4');
file('alice/m4', $many);
is(refer($many, 'bob', 'own')->{status}, 200, 'the fourth repo committed it');

# --------------------------------------------------------------------------
# the file of bob stays when alice deletes her repo

my $kept = file('alice/open');
my $hash = (refer($kept, 'bob', 'own'))[1];

is($t->http('DELETE', '/api/repos/delete', { %{ $who{alice} },
	'Content-Type' => 'application/json' },
	\'{"name":"open","organization":"alice"}')->{status}, 200, 'deleted');
collect($t);

my $token = token('bob', 'own', 'read');

is($t->get("/cas/v1/files/$hash", $token)->{body}, $kept->{data},
	'the file of bob is intact');
is(refer($open, 'bob', 'own')->{status}, 200, 'and so are the others');

$t->done();

# --------------------------------------------------------------------------

sub post {
	my ($who, $uri, $body) = @_;

	return $t->post($uri, \$json->encode($body),
		{ %{ $who{$who} }, 'Content-Type' => 'application/json' });
}

sub create {
	my ($who, $name, %o) = @_;

	is(post($who, '/api/repos/create', { name => $name, %o })->{status},
		200, "create $name");
}

sub settings {
	my ($name, $private) = @_;

	return $t->http('PUT', "/api/models/alice/$name/settings", $who{alice},
		\$json->encode({ private => $private ? \1 : \0 }))->{status};
}

# Makes a xorb of one chunk.

sub xorb {
	my $data = random_bytes(++$seed, 5000);

	return { %{ make_xorb($data, sizes => [ 5000 ]) }, data => $data };
}

# Commits a file, which the server stores as one xorb of one chunk.

sub file {
	my ($repo, $xorb) = @_;

	$xorb //= xorb();

	my ($owner) = split(m!/!, $repo);
	my $r = $t->post("/api/models/$repo/commit/main", \join('',
		map { $json->encode($_) . "\n" } { key => 'header',
			value => { summary => 'a commit' } },
		{ key => 'file', value => { path => "f$seed",
			encoding => 'base64', content =>
			MIME::Base64::encode_base64($xorb->{data}, '') } }),
		{ %{ $who{$owner} },
			'Content-Type' => 'application/x-ndjson' });

	is($r->{status}, 200, "$repo: a commit") or diag($r->{body});
	is($t->sql("SELECT count(*) FROM xet.xorbs WHERE encode(hash, 'hex')"
		. " = '" . plain_hash($xorb->{hash}) . "'"), 1,
		"$repo: its xorb");

	return $xorb;
}

# Returns a token that the Hub issues.  A token for the repo alone has another
# subject.

sub token {
	my ($who, $name, $right, $subject) = @_;

	my $caller = $who{$who};

	if ($subject) {
		my %env = (XET_POSTGRES => $t->conninfo());
		my $made = xet($t, { env => \%env }, 'token', '--key',
			$t->dir() . '/token.key', '--scope', $right,
			'--subject', $subject, '--repo', "hf://$who/$name");

		die "token: $made->{err}\n" if $made->{code} != 0;

		chomp(my $text = $made->{out});
		$caller = { Authorization => "Bearer $text" };
	}

	my $r = $t->get("/api/models/$who/$name/xet-$right-token/main",
		$caller);

	die "$who/$name: $r->{status} $r->{body}\n" if $r->{status} != 200;

	return { Authorization => 'Bearer ' . $r->json()->{accessToken} };
}

sub send_xorb {
	my ($xorb, $who, $name) = @_;

	return $t->post("/cas/v1/xorbs/default/$xorb->{hash}",
		\$xorb->{bytes}, token($who, $name, 'write'));
}

# Registers a file of a xorb.  Returns the response, and the hash of the file.

sub refer {
	my ($xorb, $who, $name, $subject) = @_;

	my $shard = make_shard({ files => [ { terms => [ {
		xorb => $xorb->{hash}, start => 0, end => 1,
		chunks => $xorb->{chunks} } ],
		verification => JSON::PP::true } ], xorbs => [] });

	my $r = $t->post('/cas/v1/shards', \$shard->{bytes},
		token($who, $name, 'write', $subject));

	return wantarray ? ($r, $shard->{files}[0]{hash}) : $r;
}

sub grant {
	my ($xorb, $who, $name) = @_;

	return $t->head("/cas/v1/xorbs/default/$xorb->{hash}",
		token($who, $name, 'write'))->{status};
}

sub text { return $_[0]{body} =~ s/[0-9a-f]{64}/HASH/gr }
