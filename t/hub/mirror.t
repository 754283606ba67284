#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# conf/xet_hub_mirror.conf: if a repo is not local, the mirror fetches each
# response once from another Hub, and serves it from the cache while the other
# Hub is down.  The other Hub runs this module, or redirects clients to a CDN.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ build_dir root run_command slurp
	wait_for /;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

plan(skip_all => 'nginx without sub')
	if Test::Xet::Nginx::version() !~ /--with-http_sub_module/;

my $hub_conf = slurp(root() . '/conf/xet_hub.conf');

sub locations {
	my ($more) = @_;

	return "xet_auth off; include %%DIR%%/xet_hub.conf;\n"
		. "location /xorbs/ { %%DATA%% }\n"
		. "location \@xet_error { xet_error; }\n$more";
}

# --------------------------------------------------------------------------
# the other Hub, and a Hub that redirects clients to a CDN

my $data = mix(1, 300_000);
my $sha256 = sha256_hex($data);
my $oid = 'c0ffee' x 6 . 'c0ff';
my $file = "add_header X-Repo-Commit $oid always;"
	. " add_header X-Linked-Size 300000 always;"
	. " add_header X-Linked-ETag '\"$sha256\"' always;"
	. " add_header X-Xet-Hash " . 'a' x 64 . ' always;'
	. ' add_header Set-Cookie a=b always;'
	. ' add_header Link "<http://$http_host/api/models/o/m/xet-read-token'
	. '/x>; rel=\"xet-auth\"" always;';

my $far = Test::Xet->new(log => 'info',
	http => Test::Xet::Token::token_directive(),
	locations => locations(<<"EOC"));
location = /o/m/resolve/main/big {
            $file
            return 302 http://127.0.0.1:%%PORT_8080%%/cdn/\$request_id?sig=x;
        }

        location = /o/m/resolve/main/small {
            add_header X-Repo-Commit $oid always;
            return 307 /api/resolve-cache/models/o/m/$oid/small;
        }

        location = /api/resolve-cache/models/o/m/$oid/small {
            add_header X-Repo-Commit $oid always;
            add_header ETag '"5d41402abc4b2a76b9719d911017c592"';
            default_type text/plain;
            return 200 hello;
        }

        # responses for a commit id: with this commit, with another commit; and
        # a name that only begins like a commit id

        location = /o/m/resolve/$oid/good {
            add_header X-Repo-Commit $oid always;
            return 200 good;
        }

        location = /o/m/resolve/$oid/other {
            add_header X-Repo-Commit @{[ 'ab' x 20 ]} always;
            return 200 other;
        }

        location = /o/m/resolve/$oid/d/f {
            add_header X-Repo-Commit $oid always;
            return 200 name;
        }

        location /cdn/ {
            limit_except GET { deny all; }
            rewrite ^ /data/big break;
            root %%DIR%%;
            etag off;
        }
EOC

mkdir($far->dir() . '/data');
$far->write_file('data/big', $data);
$far->write_file('xet_hub.conf', $hub_conf);
$far->token_key();
$far->run();

# --------------------------------------------------------------------------
# the mirror

my $here = 'http://127.0.0.1:' . $far->port(8080);
my $t = Test::Xet->new(log => 'info', workers => 2,
	http => Test::Xet::Token::token_directive() . <<'EOC',
include %%DIR%%/xet_hub_mirror.conf;
    include %%DIR%%/some.conf;
    resolver 127.0.0.1:%%PORT_8083%%;
    resolver_timeout 1s;

    server {
        listen 127.0.0.1:%%PORT_8084%%;
        xet_url_base http://127.0.0.1:%%PORT_8084%%;
        xet_hub_upstream $xet_hub_asked;

        include %%DIR%%/mirror_location.conf;
    }
EOC
	locations => locations('include %%DIR%%/xet_hub_upstream.conf;'));

$t->write_file('xet_hub.conf', $hub_conf);
$t->write_file('mirror_location.conf', $t->expand(locations(
	'include %%DIR%%/xet_hub_upstream.conf;')));

# the names that may be requested from the other Hub: the names in
# docs/howto/mirror.md, and two more owners

my ($some) = slurp(root() . '/docs/howto/mirror.md')
	=~ /^(map \$uri \$xet_hub_asked \{\n.*?^\}\n)/ms;

$t->write_file('some.conf', $some =~ s/\(google\|/(o|me|google|/r);

Test::Xet::Table::mirror($t, $here, '1m');

$t->token_key();
$t->run();

my %files = (a => 'one', 'd/b c' => $data, e => '');

create($far, 'm');
commit($far, 'me/m', %files);

my $head = $far->get('/api/models/me/m')->json()->{sha};

# --------------------------------------------------------------------------
# the other Hub runs this module: each response is fetched once

my $asked = settled();

for my $time (1, 2) {
	is($t->get('/api/models/me/m')->json()->{sha}, $head,
		"info, time $time");
	is(scalar @{ $t->get("/api/models/me/m/tree/$head?recursive=true")
		->json() }, 4, "tree, time $time");

	my $r = $t->head("/me/m/resolve/main/d/b%20c");

	is($r->{status}, 200, "HEAD, time $time");
	is($r->header_value('X-Repo-Commit'), $head, "HEAD: commit, $time");
	is($r->header_value('ETag'), "\"$sha256\"", "HEAD: ETag, $time");
	is($r->header_value('X-Linked-Size'), length($data),
		"HEAD: size, $time");

	for my $header (qw/ X-Xet-Hash Link Set-Cookie /) {
		is($r->header_value($header), undef,
			"nothing that leads past this: $header, $time");
	}

	$r = $t->get("/me/m/resolve/$head/d/b%20c");
	ok($r->{body} eq $data, "GET, time $time");
	is($r->header_value('X-Xet-Hash'), undef, "GET: no Xet, $time");

	$r = $t->get("/me/m/resolve/$head/d/b%20c",
		{ Range => 'bytes=100-199' });
	is($r->{status}, 206, "a range, time $time");
	is($r->{body}, substr($data, 100, 100), "a range: its bytes, $time");
	is(requests($asked + 4) - $asked, 4, "time $time: four requests");
}

unlike($t->get("/api/models/me/m/tree/$head?recursive=true")->{body},
	qr/"xetHash"/, 'tree: no Xet');

# missing files, as the other Hub reports them

my $r = $t->get('/me/m/resolve/main/none');

is_deeply([ $r->{status}, $r->header_value('X-Error-Code') ],
	[ 404, 'EntryNotFound' ], 'a path that is not there');
$r = $t->get('/api/models/no/one');
is_deeply([ $r->{status}, $r->header_value('X-Error-Code') ],
	[ 404, 'RepoNotFound' ], 'a repo that is nowhere');

# links between pages lead to the mirror

create($far, 'many');
commit($far, 'me/many', map { $_ => '' } 1 .. 1005);

my @paths;
my $next = '/api/models/me/many/tree/main';

while ($next) {
	$r = $t->get($next);
	push @paths, map { $_->{path} } @{ $r->json() };
	($next) = ($r->header_value('Link') // '')
		=~ m!^<http://[^/]+(/[^>]*)>; rel="next"!;
}

is(scalar @paths, 1005, 'pages: all of them');

# the mirror forwards neither tokens nor cookies

my $seen = $far->log_size();

$t->get('/api/models/me/m/refs', { Authorization => 'Bearer hf_secret',
	Cookie => 'a=secret' });
is($t->get('/api/models/me/m/xet-read-token/main')->{status}, 404,
	'no token of that Hub');
is($t->post('/api/models/me/m/commit/main', '')->{status}, 404,
	'nothing is written there');

# paths-info: the body is sent, and belongs to the key of the cache

my @infos = ([ '{"paths":["a","none","d"]}', 'application/json', 'a d' ],
	[ '{"paths":["d"]}', 'application/json', 'd' ],
	[ 'paths=a&paths=d%2Fb+c&expand=false',
		'application/x-www-form-urlencoded', 'a d/b c' ]);

for my $time (1, 2) {
	for my $rev ('main', $head) {
		for my $info (@infos) {
			my ($body, $type, $paths) = @$info;

			is(paths_info("/api/models/me/m/paths-info/$rev",
				$body, $type), $paths,
				"paths-info of $rev, time $time: $paths");
		}
	}
}

is(paths_info('/api/models/me/m/paths-info/main', $infos[2][0], $infos[2][1],
	$far), 'a d/b c', 'paths-info: directly');

my $infos;

# nginx logs a request after its response

wait_for(20, sub {
	$infos = () = slurp($far->dir() . '/access.log', 1)
		=~ m!/paths-info/!g;
	return $infos >= 7;
});

is($infos, 7, 'paths-info: each body is sent once');
is($t->post('/api/models/me/none/paths-info/main', \'{"paths":["a"]}',
	{ 'Content-Type' => 'application/json' })
	->header_value('X-Error-Code'), 'RepoNotFound', 'paths-info: no repo');

# bodies that nginx writes to a file are not cached: the key would lack them

for my $name ('a', 'd') {
	is(paths_info('/api/models/me/m/paths-info/main',
		JSON::PP::encode_json({ paths => [ ('x' x 200) x 400,
		$name ] }), 'application/json'), $name,
		"paths-info: a long body: $name");
}

$r = $t->post('/api/models/me/m/paths-info/main',
	\'{"paths":["a",".git/config"]}',
	{ 'Content-Type' => 'application/json' });
is($r->{status}, 403, 'paths-info: an unsafe path');
unlike($r->{body}, qr/"xetHash"/, 'paths-info: no Xet');

# GGUF files by a tag

commit($far, 'me/m', 'x-Q4_0.gguf' => 'GGUF 4');

my $manifest = $t->get('/v2/me/m/manifests/q4_0')->json();

is($manifest->{ggufFile}{rfilename}, 'x-Q4_0.gguf', 'a manifest');
is($t->get("/v2/me/m/blobs/$manifest->{layers}[0]{digest}")->{body}, 'GGUF 4',
	'a blob');

# lists: the pages of this server, then those of the other Hub

create($t, 'mine');
is($t->post('/api/repos/create', \'{"organization":"p","name":"local"}')
	->{status}, 200, 'a repo of p');
is($far->post('/api/repos/create', \'{"organization":"p","name":"far"}')
	->{status}, 200, 'a repo of p there');

is(list('/api/models?limit=1'), 'p/local me/mine p/far me/m me/many',
	'lists: both');
is(list('/api/models?search=m&limit=2'), 'me/mine me/m me/many',
	'lists: a search');
is(list('/api/models?author=p'), 'p/local',
	'lists: an owner of this server is not sent');
is(list('/api/datasets?limit=1&cursor=elsewhere'), '', 'lists: datasets');
is($t->http('DELETE', '/api/repos/delete', {}, \'{"name":"mine"}')->{status},
	200, 'a deleted repo');
is(list('/api/models?author=me&search=many&limit=1'), 'me/many',
	'lists: an owner of that Hub');

# the Accept header of one request has no effect on the cached response

commit($far, 'me/m', e2 => 'for all');

my $second = $far->get('/api/models/me/m')->json()->{sha};
my $path = "/me/m/resolve/$second/e2";

for my $accept ('application/vnd.xet-fileinfo+json', 'text/html', '*/*') {
	is($t->get($path, { Accept => $accept })->{body}, 'for all',
		"Accept: $accept");
}

# a repo that was renamed on the other Hub

create($far, 'old');
commit($far, 'me/old', f => 'moved');
is($far->post('/api/repos/move', '{"fromRepo":"me/old","toRepo":"me/new"}')
	->{status}, 200, 'moved there');

for my $method (qw/ HEAD GET /) {
	$r = $t->http($method, '/me/old/resolve/main/f');
	is($r->{status}, 200, "moved: $method");
	like($r->header_value('X-Repo-Commit'), qr/^[0-9a-f]{40}$/,
		"moved: $method: commit");
	is($r->header_value('Location'), undef, "moved: $method: no place");
}

is($r->{body}, 'moved', 'moved: its bytes');

my $tree = $t->get('/api/models/me/old/tree/main');

is($tree->{status}, 200, 'moved: tree');
unlike($tree->{body}, qr/"xetHash"/, 'moved: no Xet');

# A local repo hides the repo of the same name on the other Hub, until the
# local repo is deleted.

create($t, 'm');
commit($t, 'me/m', a => 'mine');
is($t->get('/me/m/resolve/main/a')->{body}, 'mine', 'the local repo first');
is($t->http('DELETE', '/api/repos/delete', {}, \'{"name":"m"}')->{status}, 200,
	'and when it is deleted');
is($t->get("/me/m/resolve/$head/a")->{body}, 'one', 'the other repo again');

# --------------------------------------------------------------------------
# responses that are cached permanently

for my $case ([ "$oid/good", 'good', 1 ], [ "$oid/other", 'other', 2 ],
	[ "$oid%2Fd/f", 'name', 2 ], [ "$oid%2fd%2Ff", 'name', 2 ])
{
	my ($rest, $body, $n) = @$case;
	my $before = settled();

	is($t->get("/o/m/resolve/$rest")->{body}, $body, "pinned: $rest, $_")
		for 1, 2;
	is(settled() - $before, $n, "pinned: $rest: $n requests");
}

# a branch named like a commit, which an older version of the other Hub allowed

commit($far, 'me/m', 'p/x' => 'pinned x', 'p/y' => 'pinned y');

my $pinned = $far->get('/api/models/me/m')->json()->{sha};

commit($far, 'me/m', 'p/x' => 'not x', 'p/y' => 'not y', x => 'no x',
	y => 'no y');

is(pinned($t, 'p/x', 'before'), 'pinned x', 'by the mirror: before');
is(pinned($far, 'p/y', 'before'), 'pinned y', 'without it: before');

$far->sql("INSERT INTO xet.hub_refs (repo_id, name, oid) SELECT r.id, "
	. "'heads/$pinned' || w.name, f.oid FROM xet.hub_repos r JOIN"
	. " xet.hub_refs f ON f.repo_id = r.id AND f.name = 'heads/main',"
	. " (VALUES (''), ('/p')) AS w(name)"
	. " WHERE r.owner = 'me' AND r.name = 'm'");

is(pinned($far, 'p/x', 'after'), 'pinned x', 'without a mirror: a branch');
is(pinned($t, 'p/y', 'after'), 'pinned y', 'by the mirror: a branch');
is($t->get("/me/m/resolve/$pinned/p/x")->{body}, 'pinned x',
	'cached: pinned');

# unsafe paths are not fetched from the other Hub

$seen = settled();

for my $uri (qw! /me/m/resolve/main/.git/config /o/m/raw/main/a/.GIT/x
	/datasets/o/m/resolve/main/c:x /api/models/me/m/tree/main/git~1
	/me/m/resolve/main/a%5Cb !)
{
	for my $method (qw/ GET HEAD /) {
		$r = $t->http($method, $uri);
		is($r->{status}, 403, "unsafe: $method $uri");
		like($r->header_value('X-Error-Message'),
			qr/^A file path must not contain "/,
			"unsafe: $method $uri: what is");
	}
}

is(settled(), $seen, 'unsafe: nothing goes there');

# --------------------------------------------------------------------------
# only names of certain owners are requested from the other Hub

$seen = settled();

for my $uri (qw! /api/models/secret/plan /secret/plan/resolve/main/x
	/api/datasets/secret/plan/tree/main /datasets/secret/plan/raw/main/me/x
	/spaces/secret/plan/resolve/main/o/m /api/models/mew/m
	/x/me/resolve/main/o/m /me/../secret/plan/resolve/main/x
	/google2/resolve/main/x !)
{
	is($t->get($uri, {}, port => 8084)->{status}, 404,
		"some names: not $uri");
}

is(settled(), $seen, 'some names: no other one goes there');

for my $uri (qw! /api/models/me/never /me/never/resolve/main/x
	/api/datasets/ME/never/tree/main /datasets/me/never/resolve/main/x !)
{
	$t->get($uri, {}, port => 8084);
	$seen++;
	is(requests($seen), $seen, "some names: $uri");
}

ok($t->get("/me/m/resolve/$head/d/b%20c", {}, port => 8084)->{body} eq $data,
	'some names: bytes');

# --------------------------------------------------------------------------
# a Hub with a CDN

$r = $t->head('/o/m/resolve/main/big');
is($r->{status}, 200, 'CDN: HEAD leads nowhere');
is($r->header_value('X-Repo-Commit'), $oid, 'CDN: HEAD: commit');
is($r->header_value('X-Linked-Size'), length($data), 'CDN: HEAD: size');
is($r->header_value('X-Linked-ETag'), "\"$sha256\"", 'CDN: HEAD: ETag');
is($r->header_value('Location'), undef, 'CDN: HEAD: no place');

for my $time (1, 2) {
	$r = $t->get('/o/m/resolve/main/big');
	is($r->{status}, 200, "CDN: GET, time $time");
	ok($r->{body} eq $data, "CDN: its bytes, time $time");
}

is(cdn(), 1, 'CDN: once');
is($t->get('/o/m/resolve/main/big', { Range => 'bytes=5-9' })->{body},
	substr($data, 5, 5), 'CDN: a range');

for my $method (qw/ HEAD GET /) {
	$r = $t->http($method, '/o/m/resolve/main/small');
	is($r->{status}, 200, "a place of that Hub: $method");
	is($r->header_value('X-Repo-Commit'), $oid,
		"a place of that Hub: $method: commit");
	like($r->header_value('ETag'), qr/5d41402a/,
		"a place of that Hub: $method: ETag");
}

is($r->{body}, 'hello', 'a place of that Hub: its bytes');

# --------------------------------------------------------------------------
# huggingface_hub

SKIP: {
	my $python = build_dir() . '/venv/bin/python';

	skip('no huggingface_hub', 1) if (run_command([ $python, '-c',
		'import huggingface_hub' ]))[0] != 0;

	client($python, 'first');
}

# the cache keeps responses for only one second, so the next test requests them
# again

Test::Xet::Table::mirror($t, $here, '1s');
$t->reload();
is($t->get('/api/models/me/m/commits/main')->{status}, 200, 'for a second');
sleep(2);
$far->stop();

SKIP: {
	skip('no huggingface_hub', 1) unless -d $t->dir() . '/home-first';
	client(build_dir() . '/venv/bin/python', 'offline');
}

# --------------------------------------------------------------------------
# the other Hub is down

$t->allow(qr/connect\(\) failed|no live upstreams/);

is($t->get('/api/models/me/m')->json()->{sha}, $head, 'away: info');
is($t->get("/api/models/me/m/tree/$head?recursive=true")->{status}, 200,
	'away: tree');
ok($t->get("/me/m/resolve/$head/d/b%20c")->{body} eq $data, 'away: bytes');
$r = $t->get('/api/models/no/body');
is($r->{status}, 502, 'away: never requested before');
ok(!ref $r->json()->{error}, 'away: a text');
is($t->get('/api/models/me/m/commits/main')->{status}, 200,
	'away: an expired response');
is(paths_info("/api/models/me/m/paths-info/$_", $infos[0][0], $infos[0][1]),
	'a d', "away: paths-info of $_") for 'main', $head;

# the name of the other Hub cannot be resolved when nginx starts

Test::Xet::Table::mirror($t, 'http://none.example', '1s');
$t->allow(qr/could not be resolved|(?:recv|send)\(\) failed/);
$t->stop();
$t->nginx()->run();

is($t->get('/api/models/me/m/commits/main')->{status}, 200,
	'no name: an expired response');
ok($t->get("/me/m/resolve/$head/d/b%20c")->{body} eq $data, 'no name: bytes');
is($t->get('/api/models/no/body')->{status}, 502,
	'no name: never requested before');

$t->done();

# --------------------------------------------------------------------------

# requests to the other Hub, and to its CDN

# Returns the number of logged requests.  A request is logged after its
# response, so this waits for at least $least requests.

sub requests {
	my ($least) = @_;

	my $n;

	wait_for(10, sub {
		$n = () = slurp($far->dir() . '/access.log', 1) =~ /\n/g;
		$n >= ($least // 0);
	});

	return $n;
}

# Waits until no more requests arrive, then returns their number.

sub settled {
	my ($n, $before) = (requests(), -1);

	while ($n != $before) {
		select(undef, undef, undef, 0.3);
		($before, $n) = ($n, requests());
	}

	return $n;
}

sub cdn {
	return scalar(() = slurp($far->dir() . '/access.log', 1)
		=~ m!GET /cdn/!g);
}

sub create {
	my ($at, $name) = @_;

	is($at->post('/api/repos/create', \JSON::PP::encode_json({
		name => $name }))->{status}, 200, "create $name");
}

sub commit {
	my ($at, $repo, %files) = @_;

	my @lines = map { {
		key => 'file', value => { path => $_, encoding => 'base64',
			content => encode_base64($files{$_}, '') }
	} } sort keys %files;

	is($at->post("/api/models/$repo/commit/main", \join("\n",
		map { JSON::PP::encode_json($_) } { key => 'header',
			value => { summary => 'a commit' } }, @lines))
		->{status}, 200, "commit to $repo");
}

# Returns the paths of a response.

sub paths_info {
	my ($uri, $body, $type, $at) = @_;

	my $r = ($at // $t)->post($uri, \$body, { 'Content-Type' => $type });

	return $r->{status} == 200 ? join(' ', map { $_->{path} }
		@{ $r->json() }) : "$r->{status} $r->{body}";
}

# Returns the names of the repos on all pages of a list.

sub list {
	my ($next) = @_;

	my @names;

	while ($next) {
		my $r = $t->get($next);

		return "$r->{status} $r->{body}" if $r->{status} != 200;

		push @names, map { $_->{id} } @{ $r->json() };
		($next) = ($r->header_value('Link') // '')
			=~ m!^<http://[^/]+(/[^>]*)>; rel="next"!;
	}

	return join(' ', @names);
}

# Returns the file that "hf download" of a commit gets with an empty cache; if
# hf is not installed, the body of a GET.

sub pinned {
	my ($at, $path, $name) = @_;

	my $hf = build_dir() . '/venv/bin/hf';
	my $dir = $t->dir() . '/pinned-' . $name . ($at == $t ? '-here' : '');

	return $at->get("/me/m/resolve/$pinned/$path")->{body} if !-x $hf;

	my ($status, $out) = run_command([ $hf, 'download', 'me/m', $path,
		'--revision', $pinned, '--local-dir', $dir ],
		env => { HF_ENDPOINT => $at->url(''), HF_HOME => "$dir-home",
			HF_HUB_DISABLE_XET => 1,
			HF_HUB_DISABLE_UPDATE_CHECK => 1 }, timeout => 120);

	diag($out) if $status != 0;

	return slurp("$dir/$path", 1);
}

sub client {
	my ($python, $name) = @_;

	my $home = $t->dir() . "/home-$name";
	my ($status, $out) = run_command([ $python, '-c', <<'EOP', $home ],
import sys
from huggingface_hub import snapshot_download, hf_hub_download

home = sys.argv[1]
print(snapshot_download('me/m', cache_dir=home))
print(open(hf_hub_download('o/m', 'small', cache_dir=home)).read())
open(home + '/big', 'wb').write(
    open(hf_hub_download('o/m', 'big', cache_dir=home), 'rb').read())
EOP
		env => { HF_ENDPOINT => $t->url(''), HF_HOME => $home,
			HF_HUB_DISABLE_UPDATE_CHECK => 1 }, timeout => 120);

	is($status, 0, "client, $name") or diag($out);

	my ($snapshot) = $out =~ m!^(/.*/snapshots/\S+)$!m;

	is(slurp(($snapshot // '') . '/d/b c', 1), $data,
		"client, $name: a file");
	is(slurp("$home/big", 1), $data, "client, $name: by the CDN");
	like($out, qr/^hello$/m, "client, $name: a small one");
}
