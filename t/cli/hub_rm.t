#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet rm with Hub names: a bucket with many files, which is listed page by page,
# and deletions whose response is lost.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ spew wait_for /;
use Test::Xet::S3Fault;

my $files = 25_000;

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 600,
	http => Test::Xet::Token::token_directive() . <<'EOC',
log_format hub "$request_method $uri $status";
    access_log %%DIR%%/hub.log hub;
EOC
	locations => <<'EOC');
location / {
            xet_hub on;
            xet_auth off;
            xet_api_base /cas;
        }

        location /api/v1/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }

        location = /api/v1/repo {
            xet_api;
            xet_auth token;
            xet_access repo;
            client_max_body_size 80m;
        }

        %%CAS%%
EOC

$t->token_key();
$t->run();

my $fault = Test::Xet::S3Fault->new($t, dir => $t->dir() . '/fault');

# --------------------------------------------------------------------------
# a bucket with many files

is($t->post('/api/buckets/me/many', '{}')->{status}, 200, 'a bucket');

$t->sql("INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash,"
	. " size, made)"
	. " SELECT h.id, 0, 'd/' || lpad(n::text, 6, '0'), 0,"
	. " xet.hub_folder('d/' || lpad(n::text, 6, '0')),"
	. " decode(repeat('00', 32), 'hex'), 0, ''"
	. " FROM xet.hub_repos h, generate_series(1, $files) AS n"
	. " WHERE h.name = 'many'");
$t->sql("INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, made)"
	. " SELECT h.id, 0, 'd', 0, xet.hub_folder('d'), ''"
	. " FROM xet.hub_repos h WHERE h.name = 'many'");
is($t->post('/api/buckets/me/many/batch', \ join("\n",
	map { "{\"type\":\"addFile\",\"path\":\"$_\",\"xetHash\":\""
		. '0' x 64 . '"}' } qw/ c e d.x /))->{status}, 200,
	'its neighbours');
$t->sql("UPDATE xet.hub_lines SET files = files + $files");

spew($t->dir() . '/hub.log', '');

my $r = hub_xet('rm', '-r', '--json', 'buckets/me/many/d');

is($r->{code}, 0, 'many: rm') or diag($r->{err});
is(scalar(@{ $r->{json} }), $files, 'many: each is reported');

my ($pages, $most) = (0, 0);

for my $line ($t->read_file('hub.log') =~ /^(\S+ \S+) 200$/mg) {
	$pages++ if $line =~ m!^GET \S+/tree/!;
	$pages = 0 if $line =~ m!^POST \S+/batch$!;
	$most = $pages if $pages > $most;
}

is($most, 10, 'many: ten pages are held');

# each deletion skips the index entries of files that are already deleted

ok(wait_for(60, sub { $t->sql("SELECT idx_tup_read >= $files"
	. " FROM pg_stat_user_indexes"
	. " WHERE indexrelname = 'hub_paths_pkey'") eq 't' }),
	'many: statistics are up to date');
cmp_ok($t->sql("SELECT idx_tup_read FROM pg_stat_user_indexes"
	. " WHERE indexrelname = 'hub_paths_folder'"), '<', 20 * $files,
	'many: entries of the folder that were read');
is_deeply([ map { $_->{path} } @{ $t->get(
	'/api/buckets/me/many/tree?recursive=true')->json() } ],
	[ qw/ c d.x e / ], 'many: the neighbours stay');
is(hub_xet('rm', '-r', 'buckets/me/many/d')->{code}, 1,
	'many: nothing is left');

# --------------------------------------------------------------------------
# the response is lost

for my $n (1 .. 3) {
	commit("a$n", "d/b$n");
}

for my $what ([ 'a1', 'drop' ], [ 'a2', 'lost' ], [ '-r', 'd', 'lost' ],
	[ 'a3', 'status' ])
{
	my ($do, $path, @options) = reverse @$what;
	my $rule = $fault->add(op => 'POST', do => $do, count => 1,
		$do eq 'status' ? (status => 502, done => 1) : ());

	$r = lost('rm', '--json', @options, "me/model/$path");
	is($r->{code}, 0, "$do: $path: exit status") or diag($r->{err});
	is($r->{err}, '', "$do: $path: without a word");
	is($r->{json}[0]{removed}, $path, "$do: $path: reported");
	is($fault->used($rule), 1, "$do: $path: once");
	$fault->clear();
	is_deeply([ grep { $_->{path} =~ /^\Q$path\E(?:\/|\z)/ }
		@{ $t->get('/api/models/me/model/tree/main?recursive=true')
		->json() } ], [], "$do: $path: is not there");
}

$r = lost('rm', 'me/model/a1');
is($r->{code}, 1, 'a missing file is an error') or diag($r->{err});

my $rule = $fault->add(op => 'POST', do => 'status', status => 429,
	count => 1, retry_after => 1);

$r = lost('rm', 'me/model/a1');
is($fault->used($rule), 1, 'refused at first');
is($r->{code}, 1, 'refused at first: what was not there before');
$fault->clear();

$rule = $fault->add(op => 'POST', do => 'lost', count => 1);
$r = lost('rm', 'me/none/a1');
is($fault->used($rule), 1, 'no repo, and no answer');
is($r->{code}, 1, 'no repo, and no answer: a fault');
$fault->clear();

# files by hash

my $file = $t->upload(mix(1, 300_000));
my $hash = $file->{hash};

$rule = $fault->add(op => 'DELETE', do => 'lost', count => 1);
$r = lost('rm', '--json', $hash);
is($r->{code}, 0, 'hash: lost') or diag($r->{err});
is($r->{json}[0]{removed}, $hash, 'hash: reported');
is($fault->used($rule), 1, 'hash: once');
$fault->clear();
is(lost('rm', $hash)->{code}, 1, 'hash: is not there');

# a repository by its token

xet($t, { env => { XET_POSTGRES => $t->conninfo() } }, 'repo', 'add', 'mine');

my $token = xet($t, 'token', '--key', $t->dir() . '/token.key', '--repo',
	'mine', '--scope', 'delete')->{out} =~ s/\s//gr;

$rule = $fault->add(op => 'DELETE', do => 'lost', count => 1);
$r = lost({ env => { XET_TOKEN => $token } }, 'rm', '--json', '--repo',
	'mine');
is($r->{code}, 0, 'repo: lost') or diag($r->{err});
is($r->{json}[0]{removed_repo}, 'mine', 'repo: reported');
is($fault->used($rule), 1, 'repo: once');
$fault->clear();
is(lost({ env => { XET_TOKEN => $token } }, 'rm', '--repo', 'mine')->{code},
	1, 'repo: is not there');

$fault->stop();
$t->done();

# --------------------------------------------------------------------------

sub hub_xet {
	my (@args) = @_;

	return xet($t, { timeout => 300,
		env => { HF_ENDPOINT => $t->url('') } }, @args);
}

# Runs xet through a proxy that loses responses.

sub lost {
	my (@args) = @_;

	my %o = ref $args[0] ? %{ shift @args } : ();

	return xet($t, { endpoint => $fault->endpoint() . '/api', %o,
		env => { HF_ENDPOINT => $fault->endpoint(),
		%{ $o{env} || {} } } }, @args);
}

sub commit {
	my (@paths) = @_;

	$t->post('/api/repos/create', '{"name":"model"}');
	is($t->post('/api/models/me/model/commit/main', \ join("\n",
		'{"key":"header","value":{"summary":"x"}}',
		map { '{"key":"file","value":{"content":"","encoding":"base64"'
		. ",\"path\":\"$_\"}}" } @paths))->{status}, 200,
		"a commit of @paths");
}
