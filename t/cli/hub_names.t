#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Hub repo names as arguments of xet commands for repositories, limits, tokens
# and zTensor files, instead of store names and hashes.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ spew /;
use Test::Xet::Ztensor;

use File::Temp qw/ tempdir /;

delete $ENV{XET_POSTGRES};

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 300,
	http => Test::Xet::Token::token_directive() . <<'EOC',
server {
        listen 127.0.0.1:%%PORT_8081%%;

        location / {
            xet_hub on;
            xet_auth token;
            xet_api_base /cas;
        }

        %%CAS%%
    }
EOC
	server => 'xet_hub_expose on;', locations => <<'EOC');
location / {
            xet_hub on;
            xet_auth off;
            xet_hub_owners *;
            xet_api_base /cas;
        }

        location /api/v1/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }

        %%CAS%%
EOC

$t->token_key();
$t->run();

my $dir = tempdir(CLEANUP => 1);
my $zt = zt_file([ [ 'a/b', { shape => [ 2 ], data => 'abcdefgh' } ] ]);

mkdir("$dir/in");
spew("$dir/in/a.zt", $zt->{bytes});
spew("$dir/in/b", 'b' x 1000);

for my $name (qw! me/model datasets/me/model buckets/me/files me/old !) {
	is(hub_xet('put', '-r', 'in', $name)->{code}, 0, "put $name");
}

is($t->post('/api/repos/move', '{"fromRepo":"me/old","toRepo":"me/new"}')
	->{status}, 200, 'one that is moved');

my %store = map { $_->{hub} => $_->{repo} } grep { $_->{hub} }
	@{ db_xet('repo', 'ls', '--json')->{json} };

is(keys %store, 4, 'repo ls: all of them');

# --------------------------------------------------------------------------
# repositories

my @called = ([ 'me/model', 'models/me/model' ],
	[ 'hf://me/model', 'models/me/model' ],
	[ 'hf://ME/Model', 'models/me/model' ],
	[ 'datasets/me/model', 'datasets/me/model' ],
	[ 'hf://buckets/me/files', 'buckets/me/files' ],
	[ 'me/old', 'models/me/new' ]);

for my $called (@called) {
	my ($name, $title) = @$called;

	for my $verb ([ 'repo', 'files', $name ], [ 'ls', '--repo', $name ]) {
		my $r = db_xet(@$verb, '--json');

		is($r->{code}, 0, "@$verb") or diag($r->{err});
		is(scalar(@{ $r->{json} }), 2, "@$verb: its files");
	}

	my $r = db_xet('usage', '--repo', $name, '--json');

	is($r->{code}, 0, "usage: $name") or diag($r->{err});
	is($r->{json}[0]{repo}, $store{$title}, "usage: $name: the number");
	is($r->{json}[0]{hub}, $title, "usage: $name: the name");
	is($r->{json}[0]{files}, 2, "usage: $name: its files");
}

# a store repo takes precedence over a Hub name without hf://

is(db_xet('repo', 'add', 'me/model')->{code}, 0, 'one of the store');
is(db_xet('repo', 'files', 'me/model')->{out}, '', 'it comes first');
isnt(db_xet('repo', 'files', 'hf://me/model')->{out}, '', 'but with hf://');

for my $bad ([ 'repo', 'files', 'hf://me/none' ], [ 'repo', 'files', 'none' ],
	[ 'ls', '--repo', 'hf://me/none' ], [ 'ls', '--repo', 'datasets/x/y' ],
	[ 'usage', '--repo', 'hf://me/none' ],
	[ 'usage', '--repo', 'hf://me/none', '--set', 'none' ],
	[ 'repo', 'rm', 'hf://me/none', '1' x 64 ])
{
	my $r = db_xet(@$bad);

	is($r->{code}, 1, "@$bad");
	like($r->{err}, qr/no such repository\n\z/, "@$bad: why");
	is($r->{out} =~ s/^kind .*\n//r, '', "@$bad: nothing else");
}

# limits, and the names that usage shows

is(db_xet('usage', '--repo', 'hf://me/model', '--set', 'logical=1G')->{code},
	0, 'a limit');

my $r = db_xet('usage');

my $shown = "$store{'models/me/model'} models/me/model";

like($r->{out}, qr/^repo .* $shown$/m, 'usage: the name');
like($r->{out}, qr/^repo +2 +\d+ +1073741824 .* models\/me\/model$/m,
	'usage: the limit');
is((grep { ($_->{hub} // '') eq 'models/me/model' }
	@{ db_xet('usage', '--json')->{json} })[0]{logical}{limit}, 1 << 30,
	'usage: as JSON');

$t->sql('DELETE FROM xet.usage');
like(db_xet('usage', '--recount')->{out},
	qr/^repo +files \+2 .* $shown$/m, 'usage: counted anew');

# xet repo does not change repos that belong to the Hub

for my $verb (qw/ add rm public private /) {
	for my $name ('hf://me/model', $store{'models/me/model'}) {
		$r = db_xet('repo', $verb, $name);
		is($r->{code}, 2, "repo $verb $name");
		like($r->{err}, qr/ is a Hub repository; /,
			"repo $verb $name: why");
	}
}

is(db_xet('repo', 'add', 'hf://me/none')->{code}, 2, 'repo add: not there');
is($t->get('/me/model/resolve/main/b')->{body}, 'b' x 1000, 'all is there');

# but an administrator may remove a file from all commits

my ($b) = grep { $_->{size} == 1000 }
	@{ db_xet('repo', 'files', '--json', 'me/new')->{json} };

is(db_xet('repo', 'rm', 'me/new', $b->{hash})->{code}, 0, 'a file is out');
is(scalar(@{ db_xet('repo', 'files', '--json', 'me/new')->{json} }), 1,
	'a file is out: of the repo');

# --------------------------------------------------------------------------
# tokens, created after the repos become private, because that revokes earlier
# tokens

for my $type (qw/ model dataset /) {
	is($t->http('PUT', "/api/${type}s/me/model/settings", {},
		\ '{"private":true}')->{status}, 200, "private: $type");
}

my $key = $t->dir() . '/token.key';
my %token = map { $_->[0] => db_xet('token', '--key', $key, @$_[1 .. $#$_])
	->{out} =~ s/\s//gr }
	[ 'reads', '--repo', 'hf://me/model' ],
	[ 'writes', '--repo', 'hf://datasets/me/model', '--scope', 'write' ],
	[ 'me', '--subject', 'me' ];

for my $case ([ 'reads', 'me/model', 0, 4, 4 ],
	[ 'reads', 'datasets/me/model', 4, 4, 4 ],
	[ 'writes', 'datasets/me/model', 0, 0, 0 ],
	[ 'writes', 'me/model', 4, 4, 4 ], [ 'me', 'me/model', 0, 4, 4 ])
{
	my ($who, $name, $reads, $writes, $removes) = @$case;

	my @env = ({ dir => $dir, env => { HF_TOKEN => $token{$who},
		HF_ENDPOINT => $t->url('', 8081) } });

	for my $what ([ $reads, 'get', "$name/b", '-o', '-' ],
		[ $writes, 'put', 'in/b', "$name/of-$who" ],
		[ $removes, 'rm', "$name/of-$who" ])
	{
		my ($code, @args) = @$what;

		$r = xet($t, @env, @args);
		is(!!$r->{code}, !!$code, "token: $who: @args")
			or diag($r->{err});
	}
}

$r = $t->get('/api/whoami-v2', { Authorization => "Bearer hf_$token{reads}" },
	port => 8081);
is($r->{status}, 200, 'token: of a repo: clients log in with it');
is($r->json()->{name}, '', 'token: of a repo: nobody is named');
is($t->sql("SELECT count(*) FROM xet.hub_commits WHERE who = ''"), 2,
	'token: of a repo: nor in its commits');

$r = db_xet('token', '--key', $key, '--repo', 'hf://me/none');
is($r->{code}, 1, 'token: no such repo');
is($r->{out}, '', 'token: no such repo: none');
$r = xet($t, 'token', '--key', $key, '--repo', 'hf://me/model');
is($r->{code}, 2, 'token: needs the database');

# --------------------------------------------------------------------------
# usage of users, of any issuer: names are found in commits, without reading all
# of the commits

my $ann = db_xet('token', '--key', $key, '--subject', 'ann', '--scope',
	'write')->{out} =~ s/\s//gr;

$r = xet($t, { dir => $dir, env => { HF_ENDPOINT => $t->url('', 8081),
	HF_TOKEN => $ann } }, 'put', '-r', 'in', 'hf://ann/model');
is($r->{code}, 0, 'put by ann') or diag($r->{err});
like(db_xet('usage')->{out}, qr/^subject .* ann$/m, 'usage: a user');

$t->sql('DELETE FROM xet.usage');
like(db_xet('usage', '--recount')->{out}, qr/^subject .* ann$/m,
	'usage: a user, counted anew');

$t->sql(<<'EOF_SQL');
WITH users AS (
    SELECT i, 'bob' || i AS who,
           sha256('https://id\000bob' || convert_to(i::text, 'UTF8')) AS subject
      FROM generate_series(0, 9) i
), commits AS (
    INSERT INTO xet.hub_commits (repo_id, line, seq, oid, who, title, subject)
    SELECT (SELECT min(id) FROM xet.hub_repos), 1000, n,
           substr(sha256(int8send(n)), 1, 20), u.who, '', u.subject
      FROM generate_series(1, 20000) n
      JOIN users u ON u.i = n % 10
)
INSERT INTO xet.usage (owner, stored, logical, files)
SELECT u.subject, 1, 1, 1 FROM users u;
ANALYZE xet.hub_commits;
EOF_SQL

is(join(' ', db_xet('usage')->{out} =~ /^subject .* (bob\d)$/mg),
	join(' ', map { "bob$_" } 0 .. 9), 'usage: users of an issuer');
is(($t->sql(<<'EOF_SQL') =~ /(\d+)\s*\z/)[0], 0, 'usage: reads few commits');
BEGIN;
SELECT count(*) FROM xet.usage_list();
SELECT seq_tup_read FROM pg_stat_xact_user_tables
 WHERE relid = 'xet.hub_commits'::regclass;
EOF_SQL

is(db_xet('usage', '--subject', 'bob3', '--issuer', 'https://id', '--set',
	'logical=1G')->{code}, 0, 'usage: a limit of a user');
like(db_xet('usage')->{out}, qr!^subject .* 1073741824 .* https://id/bob3$!m,
	'usage: its issuer');

# --------------------------------------------------------------------------
# zTensor files

my $plain = $t->upload($zt->{bytes});

for my $name ('me/model/a.zt', 'hf://datasets/me/model/a.zt',
	'buckets/me/files/a.zt')
{
	$r = hub_xet('zt', 'ls', '--json', $name);
	is($r->{code}, 0, "zt: $name") or diag($r->{err});
	is_deeply($r->{json}, xet($t, 'zt', 'ls', '--json', $plain->{hash})
		->{json}, "zt: $name: as by its hash");
	is(hub_xet('zt', 'get', $name, 'a/b', '-o', '-')->{out}, 'abcdefgh',
		"zt: $name: an object");
	is(hub_xet('zt', 'verify', $name)->{code}, 0, "zt: $name: is right");
}

is(hub_xet('zt', 'ls', 'me/model/b')->{code}, 4, 'zt: another file');
is(hub_xet('zt', 'ls', 'me/model/none')->{code}, 1, 'zt: no file');
is(hub_xet('zt', 'ls', 'me/none/a.zt')->{code}, 1, 'zt: no repo');
is(hub_xet('zt', 'ls', 'me/model')->{code}, 2, 'zt: a repo');

# --------------------------------------------------------------------------
# the help shows which verbs take names

for my $verb (qw/ get import info ls put rm verify zt /) {
	like(xet(undef, 'help', $verb)->{out}, qr/^usage: .*\bNAME\b/,
		"help: $verb");
}

for my $verb (qw/ repo token usage /) {
	like(xet(undef, 'help', $verb)->{out}, qr!--repo NAME|NAME \[HASH!,
		"help: $verb");
}

# --------------------------------------------------------------------------
# xet ls needs no database, and has the same visibility as xet repo ls

$t->post('/api/repos/create', '{"name":"hidden","private":true}');

my %hub = map { /^(\w+) +\S+ (\S+)$/ ? ($2 => $1) : () }
	split(/\n/, hub_xet('ls')->{out});
my %db = map { m!^(\w+) .* _hub/\d+ (?:models/)?(\S+)$! ? ($2 => $1) : () }
	split(/\n/, db_xet('repo', 'ls')->{out});

is_deeply(\%db, \%hub, 'ls and repo ls: the same repos and visibility');
is($hub{'me/hidden'}, 'private', 'ls: a private repo');
isnt(scalar(grep { $_ eq 'public' } values %hub), 0, 'ls: public repos');

$t->done();

# --------------------------------------------------------------------------

sub hub_xet {
	my (@args) = @_;

	return xet($t, { dir => $dir, env => { HF_ENDPOINT => $t->url('') } },
		@args);
}

sub db_xet {
	my (@args) = @_;

	return xet($t, { env => { XET_POSTGRES => $t->conninfo() } }, @args);
}
