#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A mirror of a hostile Hub: redirects to other hosts, cached bytes of each
# file, responses that a browser might execute, and information that the other
# Hub gets.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::HTTP;
use Test::Xet::Process qw/ root slurp wait_for /;
use Test::Xet::Table;

use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;
use Time::HiRes qw/ time /;

plan(skip_all => 'nginx without sub')
	if Test::Xet::Nginx::version() !~ /--with-http_sub_module/;

# The other Hub: /lead/… redirects to the URL in its argument.  Its port 8081
# is internal to this machine; 8082 is its CDN.

my $far = Test::Xet->new(log => 'info', xet => 0, pg => 0, conf => <<'END');
%%MAIN%%

events {
    worker_connections 512;
}

http {
    %%HTTP%%

    server {
        listen %%ADDR%%:%%PORT_8080%%;

        location ~ ^/o/lead/resolve/main/(.*)$ {
            add_header X-Repo-Commit c0ffeec0ffeec0ffeec0ffeec0ffeec0ffeec0ff;
            return 302 $arg_to;
        }

        location ~ ^/api/models/o/inside/paths-info/ {
            return 307 http://127.0.0.1:%%PORT_8081%%/x;
        }

        location ~ ^/api/models/o/cdn/paths-info/ {
            return 307 http://127.0.0.1:%%PORT_8082%%/posted;
        }

        location ~ ^/api/models/o/evil/paths-info/ {
            return 307 https://hf.co.evil.example/x;
        }

        location ~ ^/api/models/o/same/paths-info/ {
            return 307 /api/models/o/any;
        }

        location = /api/models/o/seen/paths-info/main {
            default_type text/plain;
            return 200 "$content_type,$http_authorization$http_cookie,";
        }

        location ~ ^/o/(one|other)/resolve/main/file$ {
            add_header X-Linked-ETag '"same"' always;
            add_header X-Linked-Size 6 always;
            return 302 http://127.0.0.1:%%PORT_8082%%/$1;
        }

        location /o/page/ {
            default_type text/html;
            add_header Content-Security-Policy "script-src *";
            add_header Content-Disposition inline;
            add_header Access-Control-Allow-Origin *;
            add_header Refresh "0; url=https://evil.example";
            add_header Clear-Site-Data '"cookies"';
            add_header Service-Worker-Allowed /;
            return 200 "<script>alert(1)</script>";
        }

        location /o/gone/ {
            default_type text/html;
            add_header WWW-Authenticate 'Basic realm="x"' always;
            return 404 "<script>alert(1)</script>";
        }

        location / {
            default_type application/json;
            return 200 '{"from":"there"}';
        }
    }

    server {
        listen %%ADDR%%:%%PORT_8081%%;
        return 200 secret;
    }

    server {
        listen %%ADDR%%:%%PORT_8082%%;
        return 200 "of $uri";
    }
}
END

$far->run();

my ($here, $inside, $cdn) = map { "127.0.0.1:" . $far->port($_) }
	8080, 8081, 8082;

my $t = Test::Xet->new(log => 'info',
	http => Test::Xet::Token::token_directive() . <<'EOC',
include %%DIR%%/xet_hub_mirror.conf;
    resolver 127.0.0.1:%%PORT_8083%%;
    resolver_timeout 1s;
EOC
	locations => Test::Xet::Token::token_location() . <<'EOC');
        xet_auth token;
        xet_hub_public on;
        include %%DIR%%/xet_hub.conf;
        include %%DIR%%/xet_hub_upstream.conf;
EOC

$t->write_file('xet_hub.conf', slurp(root() . '/conf/xet_hub.conf'));
Test::Xet::Table::mirror($t, "http://$here", '1m');

# the CDN in this test has no certificate, so the rule also accepts its http URL

my $upstream = slurp($t->dir() . '/xet_hub_upstream.conf');

$upstream =~ s!\^https://\(\[a-z0-9-\]\+\[\.\]\)\*\(hf\|huggingface\)\[\.\]co/
	!^(http://\Q$cdn\E|https://([a-z0-9-]+[.])*(hf|huggingface)[.]co)/!x
	or die "xet_hub_upstream.conf names no CDN\n";

$t->write_file('xet_hub_upstream.conf', $upstream);
$t->token_key();
$t->allow(qr/could not be resolved|(?:recv|send)\(\) failed|no resolver/);
$t->run();

# redirects

for my $to ("http://$inside/x", "https://$inside/x", "http://127.0.0.1/x",
	"https://hf.co\@$inside/x", "https://hf.co:443\@$inside/x",
	"https://$inside/hf.co/", "http://hf.co/x", 'https://hf.co:22/x',
	'https://hf.co.evil.example/x', 'https://evilhf.co/x',
	'https://xhuggingface.co/', 'ftp://hf.co/x', "\\\\$inside\\x",
	"https:/$inside/x", 'https://[::1]/x', 'https://2130706433/x',
	"http://$here.evil.example/x", "http://$here\@$inside/x")
{
	for my $method (qw/ GET HEAD /) {
		my $r = $t->http($method, "/o/lead/resolve/main/"
			. unpack('H*', $to) . "?to=$to");

		isnt($r->{status}, 200, "$method leads to $to") unless
			$method eq 'HEAD';
		unlike($r->{body} // '', qr/secret/,
			"$method leads to $to: no byte");
	}
}

is(() = slurp($far->dir() . '/access.log', 1) =~ m! secret!g, 0,
	'no request to the internal port');

is($t->get("/o/lead/resolve/main/a?to=http://$cdn/a")->{body}, 'of /a',
	'a CDN that is named');
is($t->get("/o/lead/resolve/main/b?to=/api/models/x/y")->{body},
	'{"from":"there"}', 'a redirect within that Hub');

# a list of paths is sent to that Hub only, without credentials

sub cdn { return scalar(() = slurp($far->dir() . '/access.log', 1)
	=~ m!POST /posted!g) }

for my $to (qw/ inside cdn evil /) {
	is($t->post("/api/models/o/$to/paths-info/main", \'{"paths":["x"]}')
		->{status}, 502, "a body does not go elsewhere: $to");
}

is(cdn(), 0, 'no body at the CDN');
is($t->post('/api/models/o/same/paths-info/main', \'{"paths":["x"]}')
	->{body}, '{"from":"there"}', 'a body goes to a path of that Hub');

for my $type ([ "x\ty", 'application/json', '{"paths":["x"]}' ],
	[ 'application/x-www-form-urlencoded; charset=utf-8',
		'application/x-www-form-urlencoded', 'paths=x' ])
{
	is($t->post('/api/models/o/seen/paths-info/main', \$type->[2],
		{ 'Content-Type' => $type->[0], Cookie => 'a=secret',
			%{ $t->auth('write', '@bob') } })->{body},
		"$type->[1],,", "paths-info: sent as $type->[1]");
}

# two files with the same ETag: the cache does not mix them up

for my $name (qw/ one other one other /) {
	is($t->get("/o/$name/resolve/main/file")->{body}, "of /$name",
		"the same ETag: that of $name");
}

# headers that prevent a browser from executing a response

for my $uri ('/o/page/resolve/main/x.html', '/o/gone/resolve/main/x.html',
	"/o/lead/resolve/main/c?to=http://$cdn/c", '/api/models/o/any')
{
	my $r = $t->get($uri);

	like($r->header_value('Content-Security-Policy') // '',
		qr/default-src 'none'; sandbox/, "$uri: nothing is run");
	is($r->header_value('X-Content-Type-Options'), 'nosniff',
		"$uri: nothing is guessed");
	like($r->header_value('Content-Disposition') // '', qr/^attachment/,
		"$uri: a download");

	for my $name (qw/ Access-Control-Allow-Origin Refresh
		Clear-Site-Data Service-Worker-Allowed WWW-Authenticate /)
	{
		is($r->header_value($name), undef, "$uri: no $name");
	}
}

# names that are not requested from the other Hub: buckets, and repos of local
# owners

sub asked { return scalar(() = slurp($far->dir() . '/access.log', 1) =~ /\n/g) }

my %alice = %{ $t->auth('delete', '@alice') };
my %bob = %{ $t->auth('write', '@bob') };

is($t->post('/api/repos/create', '{"name":"plans","private":true}', \%alice)
	->{status}, 200, 'a private repo');

my $before = asked();

for my $uri (qw! /api/buckets/o/b /api/buckets/o/b/tree/x
	/buckets/o/b/resolve/x !)
{
	is($t->get($uri, \%alice)->{status}, 404, "a bucket: $uri");
}

for my $who ({}, \%bob) {
	is($t->post('/api/models/alice/plans/paths-info/main',
		\'{"paths":["a"]}', $who)->{status}, 404,
		'paths of a local owner');
	is($t->get('/api/models?author=alice&cursor=elsewhere', $who)->{body},
		'[]', 'a list of a local owner');

	for my $uri (qw! /api/models/alice/plans /alice/plans/resolve/main/a
		/api/models/alice/other /alice/other/resolve/main/a
		/api/models/Alice/plans /ALICE/other/resolve/main/a
		/api/datasets/alice/plans !)
	{
		my $r = $t->get($uri, $who);

		is($r->{status}, 404, 'of a local owner: ' . $uri);
		unlike($r->{body}, qr/there/, 'and not the namesake: ' . $uri);
	}
}

select(undef, undef, undef, 0.5);
is(asked(), $before, 'no request to the other Hub');

# a request whose body does not arrive gets its response immediately

my $c = Test::Xet::HTTP->new($t->port(8080), timeout => 20);
my $began = time();

$c->send("GET /o/late/resolve/main/x HTTP/1.1\r\nHost: localhost\r\n"
	. "Content-Length: 100000\r\n\r\n");
is($c->response('GET')->{status}, 200, 'a GET whose body comes late');
cmp_ok(time() - $began, '<', 15, 'gets a response at once');
$c->close();

$c = Test::Xet::HTTP->new($t->port(8080), timeout => 20);
$began = time();
$c->send("GET /o/late/resolve/main/y HTTP/1.1\r\nHost: localhost\r\n"
	. "Transfer-Encoding: chunked\r\n\r\n");
is($c->response('GET')->{status}, 200, 'chunked: a GET whose body comes late');
cmp_ok(time() - $began, '<', 15, 'chunked: gets a response at once');
$c->close();

# a body in chunks is sent on with its length

$c = Test::Xet::HTTP->new($t->port(8080), timeout => 20);
$c->send("POST /api/models/o/chunks/paths-info/main HTTP/1.1\r\n"
	. "Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
	. "6\r\n{\"path\r\n9\r\ns\":[\"x\"]}\r\n0\r\n\r\n");
is($c->response('POST')->{body}, '{"from":"there"}', 'a body in chunks');
$c->close();

$far->stop();
$t->done();
