#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# All URLs in responses begin like the URL at which the client reaches the
# server: by another name, by IPv6, by another port, through proxies that
# terminate TLS, remove a prefix or decode the path.  A host that the client
# invents is in no response.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Fronts;
use Test::Xet::Process qw/ run_command /;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $t = Test::Xet->new(directives => { xet_url_base => undef },
	conf => Test::Xet::Fronts::conf(<<'EOC'));

    server {
        listen 127.0.0.1:%%PORT_8083%%;
        xet_url_base https://hub.example;
        xet_proxies 127.0.0.0/8 ::1 unix:;
        server_name third.example;
        %%HUB%%
    }

    # data from a CDN, everything else from this server

    server {
        listen 127.0.0.1:%%PORT_8084%%;
        xet_url_base https://cdn.example;
        server_name fourth.example;
        xet_hosts *;
        %%HUB%%
    }

    # any host name

    server {
        listen 127.0.0.1:%%PORT_8085%%;
        xet_url_base http://127.0.0.1:%%PORT_8085%%;
        xet_hosts *;
        %%HUB%%
    }

EOC

Test::Xet::Fronts::files($t);

$t->run();
$t->allow(qr/xet: (?:400|404|421) /);

my $json = JSON::PP->new();
my $content = 'some bytes ' x 2000;
my $n = 0;

# --------------------------------------------------------------------------
# all routes, at each URL of the server

everything(@$_) for Test::Xet::Fronts::urls($t);
everything('another name', 'http://second.example:' . $t->port(8080));
everything('beside a prefix', 'http://localhost:' . $t->port(8081));

diag('no IPv6') unless Test::Xet::Fronts::six();

# --------------------------------------------------------------------------
# the base for a request: port, headers, scheme, host and prefix

my @proto = ('X-Forwarded-Proto: https');

for ([ 8081, 'localhost:1', [], "https://localhost:@{[ $t->port(8091) ]}/hf" ],
	[ 8081, 'cas.example', [], 'http://cas.example' ],
	[ 8081, 'CAS.example:80', [], 'http://cas.example' ],

	# headers of a client are not those of a proxy

	[ 8080, 'localhost', [ @proto, 'X-Forwarded-Host: second.example',
		'X-Forwarded-Prefix: /x', 'X-Forwarded-Port: 1' ],
		'http://localhost' ],

	[ 8082, 'a.example', [], undef ],
	[ 8082, 'localhost', [], 'http://localhost' ],
	[ 8082, 'localhost', [ @proto ], 'https://localhost' ],
	[ 8082, 'localhost', [ 'X-Forwarded-Proto: http, HTTPS ' ],
		'https://localhost' ],
	[ 8082, 'localhost', [ 'X-Forwarded-Proto: gopher' ],
		'http://localhost' ],
	[ 8082, 'localhost', [ @proto, 'X-Forwarded-Port: 8443' ],
		'https://localhost:8443' ],
	[ 8082, 'localhost', [ @proto, 'X-Forwarded-Port: 443' ],
		'https://localhost' ],
	[ 8082, 'localhost:1', [ 'X-Forwarded-Port: 8443' ],
		'http://localhost:1' ],
	[ 8082, 'localhost', [ 'X-Forwarded-Host: a.example:1' ],
		'http://a.example:1' ],
	[ 8082, 'localhost', [ 'X-Forwarded-Host: b.example',
		'X-Forwarded-Host: c.example, a.example' ],
		'http://a.example' ],
	[ 8082, 'localhost', [ 'X-Forwarded-Host: a.example/x' ],
		'http://localhost' ],
	[ 8082, 'localhost', [ 'X-Forwarded-Prefix: /a/b/' ],
		'http://localhost/a/b' ],
	(map { [ 8082, 'localhost', [ "X-Forwarded-Prefix: $_" ],
		'http://localhost' ] } '//evil.example', '/', 'x', '/a"',
		'/a?b', '/%2e'),

	# with xet_url_base, even a proxy reports only names of the server

	[ 8083, 'localhost', [ 'X-Forwarded-Host: evil.example', @proto ],
		'https://hub.example' ],
	[ 8083, 'localhost', [ 'X-Forwarded-Host: hub.example:8443', @proto ],
		'https://hub.example:8443' ],
	[ 8083, 'localhost', [ 'X-Forwarded-Host: hub.example',
		'X-Forwarded-Prefix: /p' ], 'https://hub.example/p' ],
	[ 8083, 'localhost', [ 'X-Forwarded-Host: third.example', @proto,
		'X-Forwarded-Prefix: /p' ], 'https://third.example/p',
		'https://hub.example' ],

	# a proxy that does not pass Host on

	[ 8083, '127.0.0.1:%', [], 'https://hub.example' ],
	[ 8083, 'third.example', [], 'https://third.example',
		'https://hub.example' ],

	# a CDN

	[ 8084, 'fourth.example', [], 'https://fourth.example',
		'https://cdn.example' ],
	[ 8084, 'fourth.example:%', [], 'http://fourth.example:%',
		'https://cdn.example' ],
	[ 8084, 'evil.example', [], 'https://cdn.example' ],
	[ 8085, 'evil.example', [], 'http://127.0.0.1:%' ],
	[ 8085, 'localhost:99999', [], 'http://127.0.0.1:%' ],
	[ 8085, 'localhost:1x', [], 'http://127.0.0.1:%' ])
{
	my ($port, $host, $headers, $want, $data) = @$_;

	base($port, $host, $headers, $want, $data // $want);
}

# --------------------------------------------------------------------------
# git

for ([ '', 'upload-pack', 'download me/none' ],
	[ '', 'receive-pack', 'upload me/none .' ],
	[ 'datasets/', 'upload-pack',
		'download me/none --repo-type dataset' ])
{
	my ($kind, $service, $command) = @$_;

	for my $suffix ('', '.git') {
		my $r = $t->get("/${kind}me/none$suffix/info/refs"
			. "?service=git-$service");

		is($r->{status}, 200, "git: $kind$suffix $service");
		is($r->header_value('Content-Type'),
			"application/x-git-$service-advertisement", 'its type');
		is($r->{body}, line("# service=git-$service") . '0000'
			. line("ERR this server has no git objects; use: "
			. "HF_ENDPOINT=@{[ $t->url('') ]} hf $command"),
			'its lines');
	}
}

is($t->get("/me/none/info/refs$_")->{status}, 400, "git: \"$_\"")
	for '', '?service=', '?service=git-annex';

for my $verb ([ 'ls-remote' ], [ 'clone' ]) {
	my ($code, $text) = run_command([ 'git', @$verb,
		'http://localhost:' . $t->port(8080) . '/me/none',
		$verb->[0] eq 'clone' ? $t->dir() . '/clone' : () ]);

	isnt($code, 0, "git @$verb: fails");
	like($text, qr/remote error: .* hf download me\/none/,
		"git @$verb: why");
}

$t->done();

# --------------------------------------------------------------------------

# Sends requests to all routes whose responses may have URLs, and follows the
# URLs.

sub everything {
	my ($name, $url) = @_;

	my $repo = 'me/r' . ++$n;
	my $id = "$repo-moved";
	my @json = ('-H', 'Content-Type: application/json');
	my ($path) = $url =~ m!^\w+://[^/]*(.*)!;

	my $r = ask($name, $url, '/api/repos/create', @json, '-d',
		"{\"name\":\"r$n\"}");

	is($r->{json}{url}, "$url/$repo", "$name: create");
	is(ask($name, $url, '/api/repos/create', @json, '-d',
		"{\"name\":\"r$n\"}")->{json}{url}, "$url/$repo",
		"$name: create again");
	is(ask($name, $url, "/api/buckets/me/b$n", @json, '-d', '{}')
		->{json}{url}, "$url/buckets/me/b$n", "$name: a bucket");

	$r = ask($name, $url, "/api/models/$repo/branch/a%2Fb", '-X', 'POST');
	is($r->{status}, 200, "$name: a branch");

	$r = commit($name, $url, $repo, 'main', 'd/w.bin');
	like($r->{json}{commitUrl}, qr!^\Q$url/$repo\E/commit/\w{40}$!,
		"$name: commit");

	is(commit($name, $url, $repo, 'a%2Fb', 'x', 1)->{status}, 200,
		"$name: commit to a branch");

	ask($name, $url, '/api/repos/move', @json, '-d',
		"{\"fromRepo\":\"$repo\",\"toRepo\":\"$id\"}");

	# an old name

	for my $uri ("/api/models/$repo", "/$repo/resolve/main/d/w.bin",
		"/api/models/$repo/tree/main?expand=true",
		"/api/models/$repo/revision/a%2Fb")
	{
		for my $how ([], [ '-I' ]) {
			$r = ask($name, $url, $uri, @$how,
				'-H', 'Accept: text/html, */*');

			is($r->{status}, 307, "$name: $uri: moved");
			like($r->{location},
				qr!^\Q$path\E/(?:api/models/)?\Q$id\E(?:$|/)!,
				"$name: $uri: to a path");
		}

		is(ask($name, $url, $uri, '-L')->{status}, 200,
			"$name: $uri: leads there");
	}

	# revisions, in all routes

	for my $uri (qw! revision/a%2Fb tree/a%2Fb commits/a%2Fb
		xet-read-token/a%2Fb xet-write-token/a%2Fb refs !)
	{
		$r = ask($name, $url, "/api/models/$id/$uri");
		is($r->{status}, 200, "$name: $uri");

		next unless $uri =~ /token/;

		like($r->{json}{casUrl}, qr!^\Q$url\E/cas(?:/e\d+)?$!,
			"$name: $uri: casUrl");
		is($r->{headers}{'x-xet-cas-url'}, $r->{json}{casUrl},
			"$name: $uri: header");
	}

	is(ask($name, $url, "/api/models/$id/paths-info/a%2Fb", @json, '-d',
		'{"paths":["x"]}')->{json}[0]{path}, 'x', "$name: paths-info");
	is(ask($name, $url, "/api/models/$id/tag/a%2Fb", @json, '-d',
		'{"tag":"v/1"}')->{status}, 200, "$name: a tag");
	is(ask($name, $url, "/api/models/$id/branch/a%2Fb", '-X', 'DELETE')
		->{status}, 200, "$name: delete a branch");
	is(ask($name, $url, "/$id/resolve/v%2F1/x")->{body}, $content,
		"$name: a file of a tag");

	# links to the next page

	for my $uri ('/api/models?limit=1',
		"/api/models/$id/tree/main?recursive=true&limit=1",
		"/api/models/$id/commits/main?limit=1")
	{
		$r = ask($name, $url, $uri);

		my ($next) = ($r->{headers}{link} // '')
			=~ /^<([^>]*)>; rel="next"/;

		like($next, qr!^\Q$url/api/models\E!, "$name: $uri: next");
		is(ask($name, $next // "$url/-", '')->{status}, 200,
			"$name: $uri: next page");
	}

	# a file

	$r = ask($name, $url, "/$id/resolve/main/d/w.bin", '-I');
	like($r->{headers}{link}, qr!^<\Q$url/api/models/$id\E/xet-read-token/!,
		"$name: the token of a file");

	my $hash = $r->{headers}{'x-xet-hash'};
	my ($token) = $r->{headers}{link} =~ /<([^>]*)>/;

	$r = ask($name, $url, "/$id/resolve/main/d/w.bin", '-H',
		'Accept: application/vnd.xet-fileinfo+json');
	like($r->{headers}{link} , qr!<\Q$url/cas/v1/reconstructions/$hash\E>!,
		"$name: the plan of a file");

	$r = ask($name, $token, '')->{json};
	$r = ask($name, $r->{casUrl}, "/v1/reconstructions/$hash", '-H',
		"Authorization: Bearer $r->{accessToken}");

	my ($part) = map { @$_ } values %{$r->{json}{fetch_info}};

	like($part->{url}, qr!^\Q$url/xorbs/\E!, "$name: data");
	is(ask($name, $part->{url}, '', '-r',
		"$part->{url_range}{start}-$part->{url_range}{end}")->{status},
		206, "$name: bytes");

	# Git LFS

	my $sha256 = sha256_hex($content);

	$r = ask($name, $url, "/$id.git/info/lfs/objects/batch", @json, '-d',
		"{\"operation\":\"download\",\"objects\":[{\"oid\":\"$sha256\","
		. '"size":' . length($content) . '}]}');

	my $href = $r->{json}{objects}[0]{actions}{download}{href};

	like($href, qr!^\Q$url/api/lfs/$sha256\E!, "$name: LFS");
	is(ask($name, $href, '')->{body}, $content, "$name: an LFS object");

	$r = ask($name, $url, "/$id.git/info/lfs/objects/batch", @json, '-d',
		'{"operation":"upload","transfers":["xet","basic"],"objects":[{'
		. "\"oid\":\"" . ('1' x 64) . "\",\"size\":3}]}");
	like($r->{body}, qr!"\Q$url\E!, "$name: LFS upload");

	like(ask($name, $url, "/$id/info/refs?service=git-upload-pack")->{body},
		qr!HF_ENDPOINT=\Q$url\E hf!, "$name: git");
}

# Commits a file, sent in the commit.

sub commit {
	my ($name, $url, $repo, $rev, $path, $small) = @_;

	my $text = encode_base64($content, '');

	return ask($name, $url, "/api/models/$repo/commit/$rev", '-H',
		'Content-Type: application/x-ndjson', '--data-binary',
		qq({"key":"header","value":{"summary":"s"}}\n)
		. qq({"key":"file","value":{"path":"$path","encoding":"base64",)
		. qq("content":"$text"}}\n)
		. ($small ? '' : qq({"key":"file","value":{"path":"README.md",)
		. qq("encoding":"base64","content":"IyB4Cg=="}}\n)));
}

# Sends a request with curl.  The names of the test are those of this machine,
# and no URL in the response has another beginning.

sub ask {
	my ($name, $url, $uri, @more) = @_;

	my $port = $t->port(8080);
	my ($status, $text) = run_command([ qw/ curl -sk --http1.1 -D - -m 60
		--resolve /, "second.example:$port:127.0.0.1", @more,
		"$url$uri" ]);

	my ($head, %headers);

	while ($text =~ s!\A(HTTP/\S+ \d+.*?)\r\n\r\n!!s) {
		$head = $1;
	}

	$headers{lc($1)} = $2 while ($head // '') =~ /^([\w-]+): (.*?)\r?$/mg;

	my ($origin) = $url =~ m!^(\w+://[^/]*(?:/hf|/forwarded)?)!;
	my @foreign = grep { !m!^\Q$origin\E(?:/|$)! } (($head // '') . $text)
		=~ m!\bhttps?://[^\s"'<>&;,)]+!g;

	is("@foreign", '', "$name: $uri: URLs of $origin only") if @foreign;

	return {
		status => ($head // '') =~ m!^HTTP/\S+ (\d+)!
			? "$1" : "curl $status",
		headers => \%headers, body => $text,
		location => $headers{location},
		json => ($headers{'content-type'} // '') =~ /json/
			? scalar(eval { $json->decode($text) }) : undef
	};
}

# Checks the URLs of a repo and of its data, for a request with some headers.
# "%" is the port.

sub base {
	my ($port, $host, $headers, $want, $data) = @_;

	my $at = $t->port($port);
	my $title = "$port: $host: @$headers";

	s/%$/$at/ for grep { defined } $host, $want, $data;

	my $get = sub {
		my ($uri) = @_;

		my (undef, $text) = run_command([ 'curl', '-s', '-i', '-H',
			"Host: $host", (map { ('-H', $_) } @$headers),
			"http://127.0.0.1:$at$uri" ]);

		return $text;
	};

	my $text = $get->('/api/models/me/r1-moved/xet-read-token/main');

	if (!defined $want) {
		like($text, qr/ 421 /, "$title: unknown");
		return;
	}

	my ($cas) = $text =~ /"casUrl":"([^"]*)\/cas"/;

	is(lc($cas // $text), $want, "$title: the URL");

	my ($hash) = $get->('/me/r1-moved/resolve/main/d/w.bin?')
		=~ /X-Xet-Hash: (\w+)/;

	$text = $get->("/api/v1/reconstructions/$hash");

	my ($found) = $text =~ /"url":"([^"]*)\/xorbs\//;

	is(lc($found // $text), $data, "$title: the URL of data");
	unlike($text, qr/evil/, "$title: no other name");
}

sub line { return sprintf('%04x', length($_[0]) + 5) . "$_[0]\n" }
