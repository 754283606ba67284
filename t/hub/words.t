#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# What people read when this Hub cannot do what they ask for.  A client shows
# the message of the server only if the response has no code that the client
# knows, and git-lfs shows only the key "message".

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ spew wait_for /;
use Test::Xet::Real;
use Test::Xet::Table;

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth token;',
	'xet_hub_owners "team";'));

$t->token_key();
$t->run();
$t->allow(qr/xet: 40[0349] /, qr/xet: 501 /);

my %token = map { $_ => token($_) } qw/ read write admin /;

is(post('/api/repos/create', { name => 'm', private => JSON::PP::true() })
	->{status}, 200, 'a repo');

# --------------------------------------------------------------------------
# functions that this Hub lacks

my $lacks = 'This server does not support this function of a Hub:'
	. ' no such route';

for my $uri (qw! models/alice/m/discussions models/alice/m/likers
	models/alice/m/lfs-files settings/webhooks collections jobs/alice
	users/alice/overview datasets-tags-by-type spaces/alice/s/runtime !)
{
	my $r = $t->get("/api/$uri", bearer('read'));

	is($r->{status}, 404, $uri);
	is($r->header_value('X-Error-Code'), 'NotSupported', "$uri: the code");
	is($r->header_value('X-Error-Message'), $lacks, "$uri: the header");
	is($r->json()->{$_}, $lacks, "$uri: $_") for qw/ error message /;
}

for my $uri (qw! models/alice/m/duplicate models/alice/m/discussions
	models/alice/m/user-access-request/grant spaces/alice/s/secrets
	collections settings/webhooks jobs/alice !)
{
	is(post("/api/$uri", {})->json()->{error}, $lacks, "POST $uri");
}

for my $uri (qw! alice/m datasets/alice/no !) {
	for my $path ('', '/verify', '/1/unlock') {
		my $r = post("/$uri.git/info/lfs/locks$path", {});

		is($r->{status}, 404, "$uri: locks$path");
		is($r->json()->{message},
			'This server does not support file locks',
			"$uri: locks$path: the message");
	}
}

# --------------------------------------------------------------------------
# "exist_ok": clients ignore the 409, but print the warning

for ([ 'm', private => 0, 'private' ], [ 'm', private => 1, '' ],
	[ 'm', visibility => 'public', 'private' ],
	[ 'm', private => undef, '' ],
	[ 'open', private => 1, 'public' ], [ 'open', private => 0, '' ],
	[ 'open', visibility => 'private', 'public' ])
{
	my ($name, $key, $value, $is) = @$_;

	post('/api/repos/create', { name => 'open' }) if $name eq 'open';
	$value = $value ? JSON::PP::true() : JSON::PP::false()
		if $key eq 'private' && defined $value;

	my $r = post('/api/repos/create', { name => $name, $key => $value });

	is($r->{status}, 409, "$name exists");
	is($r->header_value('X-HF-Warning') // '', $is ? "visibility; "
		. "alice/$name already exists and remains $is" : '',
		"$name exists, $key " . ($value // 'null'));
}

$t->post('/api/buckets/alice/b', \'{}', bearer('write'));
is($t->post('/api/buckets/alice/b', \'{"private":true}', bearer('write'))
	->header_value('X-HF-Warning'), 'visibility; alice/b already exists and'
	. ' remains public', 'a bucket exists');
ok(!defined $t->post('/api/repos/create',
	\'{"organization":"bob","name":"m","private":false}', bearer('write'))
	->header_value('X-HF-Warning'), 'no warning to others');

# --------------------------------------------------------------------------
# a refused move is not a change of the visibility

like(post('/api/repos/move', { fromRepo => 'alice/m', toRepo => 'team/m',
	type => 'model' })->json()->{error},
	qr/scope admin may move a private repository/, 'a move');

# --------------------------------------------------------------------------
# a token that is refused: clients know the header, and people need the reason

for ([ 'a token is required' ], [ 'malformed token', 'hf_foo' ],
	[ 'the token has expired', token('write', '1s') ],
	[ 'malformed token', "\"$token{write}\"" ])
{
	my ($why, $sent) = @$_;
	my $headers = $sent ? { Authorization => "Bearer $sent" } : {};
	my $r;

	for my $uri ('/api/whoami-v2', '/api/models/alice/m') {
		wait_for(20, sub {
			$r = $t->get($uri, $headers);

			return $r->{status} == 401;
		});

		is($r->json()->{error}, $why, "$why: $uri");
		is($r->header_value('X-Error-Message'),
			'Invalid credentials in Authorization header',
			"$why: $uri: the header");
	}
}

# --------------------------------------------------------------------------
# the same in the words of the clients

SKIP: {
	skip 'no git-lfs', 5 if system('git lfs version >/dev/null 2>&1');

	my $dir = $t->dir() . '/git';
	my $url = $t->url('/alice/m.git/info/lfs');

	mkdir($dir);
	$ENV{GIT_CONFIG_NOSYSTEM} = 1;
	$ENV{GIT_TERMINAL_PROMPT} = 0;
	$ENV{HOME} = $dir;

	git('init -q -b main');
	git("config $_") for 'user.name n', 'user.email n@localhost',
		"lfs.url $url";
	git('lfs install --local');
	git("lfs track '*.bin'");
	spew("$dir/a.bin", 'of git');
	git('add .');
	git('commit -q -m one');

	my $lfs = sub {
		my ($scope, $command) = @_;

		return scalar git("-c 'http.extraHeader=Authorization: Bearer"
			. " $token{$scope}' lfs $command");
	};

	like($lfs->('write', 'lock a.bin'), qr/does not support file locks/,
		'git lfs lock');
	like($lfs->('write', 'locks'), qr/does not support file locks/,
		'git lfs locks');
	like($lfs->('read', 'push --all ' . $t->url('/alice/m.git')),
		qr/The token does not permit writing/, 'git lfs push');

	git("config lfs.url " . $t->url('/alice/no.git/info/lfs'));
	like($lfs->('write', 'push --all ' . $t->url('/alice/no.git')),
		qr/Repository not found/, 'git lfs push: no such repo');

	git("config lfs.url $url");
	unlike($lfs->('write', 'push --all ' . $t->url('/alice/m.git')),
		qr/error|support/i, 'git lfs push succeeds');
}

SKIP: {
	my $hf = Test::Xet::Real::build() . '/venv/bin/hf';

	skip 'no hf', 3 unless -x $hf;

	$ENV{HF_ENDPOINT} = $t->url('');
	$ENV{HF_TOKEN} = $token{write};
	$ENV{HF_HOME} = $t->dir() . '/hf';

	for my $args ('repos duplicate alice/m alice/n',
		'discussions list alice/m', 'webhooks list')
	{
		my $said = `$hf $args 2>&1 </dev/null`;

		like($said, qr/\Q$lacks\E/, "hf $args");
	}
}

$t->done();

# --------------------------------------------------------------------------

sub bearer { return { Authorization => "Bearer $token{$_[0]}" } }

sub post {
	my ($uri, $body) = @_;

	return $t->post($uri, \JSON::PP::encode_json($body), {
		%{ bearer('write') }, 'Content-Type' => 'application/json' });
}

sub token {
	my ($scope, $lifetime) = @_;

	$lifetime //= '1h';

	my $text = `@{[ Test::Xet::Real::build() ]}/xet token --hf --key \\
		@{[ $t->dir() ]}/token.key --subject alice --scope $scope \\
		--lifetime $lifetime`;

	chomp($text);

	return $text;
}

sub git {
	my ($command) = @_;

	return scalar `cd @{[ $t->dir() ]}/git && git $command 2>&1 </dev/null`;
}
