#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Names without an owner, such as "gpt2", and paths that no route has, with the
# files of conf and tokens.  On this server such a repo is missing; a mirror
# gets it from the other Hub.  Every 404 of a Hub has X-Error-Code, and below
# /api/ only the routes of the API have the API's errors.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ build_dir module_table root run_command slurp /;
use Test::Xet::Table;

plan(skip_all => 'nginx without sub')
	if Test::Xet::Nginx::version() !~ /--with-http_sub_module/;

# The other Hub: "gpt2" has moved to an owner, as on huggingface.co, and its big
# file is at a CDN.  The owner "secret" exists here, too.

my $oid = 'c0ffee' x 6 . 'c0ff';
my $far = Test::Xet->new(log => 'info', xet => 0, pg => 0, conf => <<"END");
%%MAIN%%

events {
    worker_connections 512;
}

http {
    %%HTTP%%
    default_type application/json;

    server {
        listen %%ADDR%%:%%PORT_8080%%;
        absolute_redirect off;

        location ~ ^/(api/models/|api/datasets/|datasets/|)(gpt2|squad)(/|\$) {
            rewrite ^/(.*)(gpt2|squad)(.*)\$ /\$1org/\$2\$3 redirect;
        }

        location /org/gpt2/resolve/ {
            add_header X-Repo-Commit $oid always;
            add_header X-Linked-Etag '"abc"' always;
            return 200 "of \$uri";
        }

        location /datasets/org/squad/resolve/ {
            add_header X-Repo-Commit $oid always;
            return 200 "of \$uri";
        }

        location ~ ^/api/[a-z]+/org/ {
            return 200 '{"id":"\$uri"}';
        }

        location / {
            return 404;
        }
    }
}
END

$far->run();

my $here = 'http://127.0.0.1:' . $far->port(8080);
my $t = Test::Xet->new(workers => 1);

$t->allow(qr/xet: 4\d\d /);
$t->write_conf(conf(0));
Test::Xet::Table::mirror($t, $here, '1m');
$t->run();

my $alice = $t->auth('delete', '@alice');

is($t->post('/api/repos/create', \'{"name":"m","private":true}', $alice)
	->{status}, 200, 'a private repo');

# --------------------------------------------------------------------------
# every route that names a repo: the repo is missing, for each caller

my @reads = (map({ my $kind = $_; map { "/api/$kind/gpt2$_" } '',
	'/revision/main', '/tree/main', '/tree/main/d', '/refs',
	'/commits/main', '/auth-check', '/xet-read-token/main' }
		qw/ models datasets spaces /),
	map({ ("/${_}gpt2/resolve/main/d/f", "/${_}gpt2/raw/main/f") }
		'', 'datasets/', 'spaces/'), '/v2/gpt2/manifests/latest',
	'/v2/gpt2/blobs/sha256:' . 'a' x 64);
my @writes = map { [ 'POST', "/api/models/gpt2/$_" ] } 'branch/x',
	'tag/main', 'commit/main', 'preupload/main', 'lfs-files/duplicate';

push @writes, [ 'DELETE', '/api/models/gpt2/branch/x' ],
	[ 'PUT', '/api/models/gpt2/settings' ],
	[ 'GET', '/api/models/gpt2/xet-write-token/main' ];

for my $uri (@reads) {
	missing('GET', $uri, $_->[0], $_->[1])
		for [ nobody => {} ], [ alice => $alice ];
}

missing('POST', $_, alice => $alice, '{"paths":["f"]}')
	for map { "/api/$_/gpt2/paths-info/main" } qw/ models datasets /;
missing('POST', "/$_.git/info/lfs/objects/batch", alice => $alice,
	'{"operation":"download","objects":[]}') for 'gpt2', 'datasets/gpt2';
missing(@$_, alice => $alice, body($_->[1])) for @writes;

# the name of an owner, or "me", is no repo either; a bucket needs an owner

missing('GET', "/api/models/$_", alice => $alice) for qw/ alice me /;
is($t->post('/api/buckets/alice/kept', \'{}', $alice)->{status}, 200,
	'a bucket');
missing('DELETE', "/api/buckets/$_", alice => $alice) for qw/ alice b /;
like($t->get('/api/buckets/alice', $alice)->{body}, qr!"alice/kept"!,
	'the buckets of an owner are not deleted');
is($t->post("/api/buckets/$_", \'{}', $alice)->{status}, 405,
	"$_: no bucket without an owner") for qw/ alice b /;
is($t->get('/api/models/a%2Fb', $alice)->header_value('X-Error-Code'),
	'RepoNotFound', 'an invalid name');

# --------------------------------------------------------------------------
# paths that no route has

my %route = map { (split('/', $_->{form}))[0] => 1 }
	grep { $_->{form} !~ /^(?:file-chunk|xorb-|repo$)/ }
	@{ module_table('routes') };

for my $auth ({}, $alice, { Authorization => 'Bearer hf_any' }) {
	for my $uri (qw! /api/ /api/collections /api/models-tags-by-type
		/api/organizations/x/members /api/healthz
		/api/e1/x /api/chunks2 /api/models/alice/m/discussions
		/api/spaces/a/b/c/d/e /a/b/c !)
	{
		my $r = $t->get($uri, $auth);

		is($r->{status}, 404, "no route: $uri");
		is($r->header_value('X-Error-Code'), $uri =~ m!^/api/!
			? 'NotSupported' : 'EntryNotFound',
			"no route: $uri: the code of a Hub");
		ok(!ref $r->json()->{error}, "no route: $uri: a text");
	}

	for my $uri (qw! /api/kernels/a/b /kernels/a/b/resolve/main/f !) {
		is($t->get($uri, $auth)->header_value('X-Error-Code'),
			'RepoNotFound', "no kernel: $uri");
	}
}

# these paths still belong to the API, whose error is an object

for my $path ('v1/x', 'v2/x', 'e1/v1/x', map { ("$_/x", "e3/$_/x") }
	sort keys %route)
{
	my $r = $t->get("/api/$path");

	ok($r->{status} == 401 && ref $r->json()->{error}, "API: $path")
		or diag("$r->{status} $r->{body}");
}

# --------------------------------------------------------------------------
# a client reports that the repo is missing, not that the connection failed

client(<<'EOP', qr/^gone gone$/m, 'without a mirror');
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import RepositoryNotFoundError
print('gone' if not HfApi().repo_exists('gpt2') else 'there', end=' ')
try:
    hf_hub_download('gpt2', 'config.json')
except RepositoryNotFoundError:
    print('gone')
EOP

# --------------------------------------------------------------------------
# a mirror

$t->write_conf(conf(1));
$t->reload();

for my $time (1, 2) {
	is($t->get('/gpt2/resolve/main/config.json')->{body},
		'of /org/gpt2/resolve/main/config.json', "mirror: $time");
	is($t->get("/gpt2/resolve/$oid/a/b")->{body},
		"of /org/gpt2/resolve/$oid/a/b", "mirror: a commit: $time");
}

is($t->get('/datasets/squad/resolve/main/f')->{body},
	'of /datasets/org/squad/resolve/main/f', 'mirror: a dataset');
is($t->head('/gpt2/resolve/main/config.json')
	->header_value('X-Repo-Commit'), $oid, 'mirror: HEAD');
is($t->get("/api/$_")->json()->{id}, '/api/' . s!/!/org/!r, "mirror: $_")
	for qw! models/gpt2 datasets/squad models/gpt2/refs
	models/gpt2/tree/main/d models/gpt2/revision/main !;
is($t->get('/gpt2/resolve/main/.git/config')->{status}, 403,
	'mirror: an unsafe path');

# the name of an owner on this server is not sent to the other Hub; a 404 of
# that Hub gets the header

my $seen = $far->log_size();

missing('GET', '/alice/resolve/main/f', nobody => {});
missing('GET', '/api/models/alice', nobody => {});
is($far->log_size(), $seen, 'mirror: no owner of this server goes there');

for my $uri ('/none/resolve/main/f', '/api/models/none/x') {
	my $r = $t->get($uri);

	is($r->{status}, 404, "mirror: $uri");
	is($r->header_value('X-Error-Code'), 'EntryNotFound',
		"mirror: $uri: a code");
}

client(<<'EOP', qr/^of \/org/m, 'with a mirror');
from huggingface_hub import hf_hub_download
print(open(hf_hub_download('gpt2', 'config.json')).read())
EOP

$far->stop();
$t->done();

# --------------------------------------------------------------------------

sub conf {
	my ($mirror) = @_;

	my $text = $t->shipped_conf();
	my $tokens = Test::Xet::Token::token_location();

	$text =~ s!xet_auth off;!xet_auth token; xet_hub_public on; $tokens!
		or die;
	$text =~ s!(include \S+/)xet_hub\.conf;!$&
		${1}xet_hub_upstream.conf;! or die if $mirror;
	$text =~ s!\n    server \{!
    include %%DIR%%/xet_hub_mirror.conf;
    resolver 127.0.0.1:%%PORT_8083%%;
    server {! or die if $mirror;

	return $text;
}

sub body {
	my ($uri) = @_;

	return $uri =~ /preupload/ ? '{"files":[]}'
		: $uri =~ /duplicate/ ? '{"target":{"type":"model",'
		. '"name":"a/b"},"files":[]}'
		: $uri =~ /branch/ ? '{}'
		: $uri =~ /tag/ ? '{"tag":"x"}'
		: $uri =~ /commit/ ? '{"key":"header","value":{"summary":"x"}}'
		: '{"private":true}';
}

sub missing {
	my ($method, $uri, $name, $auth, $body) = @_;

	my $r = $t->http($method, $uri, { %$auth, defined $body
		? ('Content-Type' => 'application/json') : () },
		defined $body && $method ne 'GET' ? \$body : undef);

	is($r->{status} . ' ' . ($r->header_value('X-Error-Code') // ''),
		($uri =~ /manifests/ && !%$auth ? 401 : 404) . ' RepoNotFound',
		"$name: $method $uri")
		or diag($r->{body});
}

sub client {
	my ($program, $prints, $name) = @_;

	my $python = build_dir() . '/venv/bin/python';

	SKIP: {
		skip('no huggingface_hub', 1) if (run_command([ $python, '-c',
			'import huggingface_hub' ]))[0] != 0;

		my ($status, $out) = run_command([ $python, '-c', $program ],
			env => { HF_ENDPOINT => $t->url(''),
				HF_HOME => $t->dir() . '/home',
				HF_HUB_DISABLE_XET => 1,
				HF_HUB_DISABLE_UPDATE_CHECK => 1 },
			timeout => 120);

		like($out, $prints, "client: $name");
	}
}
