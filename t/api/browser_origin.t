#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Requests that a web page can make a browser send: with host names that are not
# the server's (DNS rebinding), on all routes without tokens; and writes from
# other origins, on all routes.  The test sends such requests itself, and with
# a real browser.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Browser;
use Test::Xet::HTTP;
use Test::Xet::Process qw/ root slurp /;

my $t = Test::Xet->new(log => 'info', conf => <<'END');
%%MAIN%%

events {
    worker_connections 512;
}

http {
    %%HTTP%%
    %%XET%%

    xet_token_key %%DIR%%/token.key;

    map $http_origin $allowed {
        default off;
        https://page.example $http_origin;
    }

    server {
        listen %%ADDR%%:%%PORT_8080%%;
        listen %%ADDR%%:%%PORT_8081%%;
        server_name cas.example *.wild.example;

        xet_hub_expose on;
        xet_hosts listed.example [2001:db8::1];
        xet_url_base http://base.example:8080/prefix;

        %%LOCATIONS%%
        include %%DIR%%/xet_hub.conf;

        location = /metrics {
            xet_metrics;
        }

        location = /status {
            xet_status;
        }

        location /cors/ {
            xet_api;
            xet_api_base /cors;
            xet_cors $allowed;
            client_max_body_size 80m;
        }
    }

    server {
        listen %%ADDR%%:%%PORT_8082%%;

        xet_auth token;
        xet_hub_public on;

        include %%DIR%%/xet_location.conf;
        include %%DIR%%/xet_hub.conf;

        location = /metrics {
            xet_metrics;
        }

        location = /token {
            xet_token;
        }
    }

    server {
        listen %%ADDR%%:%%PORT_8083%%;

        xet_hub_expose on;
        xet_hosts *;

        %%LOCATIONS%%
    }
}
END

$t->write_file('xet_hub.conf', slurp(root() . '/conf/xet_hub.conf'));
$t->token_key();

$t->run();

my $port = $t->port(8080);
my $secure = $t->port(8082);
my $file = $t->upload(mix(1, 100000));

sub ask {
	my ($port, $method, $uri, $headers, @body) = @_;

	return Test::Xet::HTTP->request($port, $method, $uri, $headers, @body);
}

# host names

my @routes = ('/api/v1/health', "/api/v1/files/$file->{hash}",
	"/api/v2/reconstructions/$file->{hash}", '/api/v1/usage',
	'/api/whoami-v2', '/api/models', '/', '/me/m/resolve/main/a',
	'/metrics', '/status', '/v1/telemetry');

for my $host ('evil.example', 'localhost.evil.example', '10.1.2.3',
	'127.0.0.1.evil.example', 'x.wild.example', '0.0.0.0', '[::2]',
	'2130706433.evil.example')
{
	for my $uri (@routes) {
		my $r = ask($port, 'GET', $uri, { Host => "$host:$port" });

		is($r->{status}, 421, "$host: $uri");
		unlike($r->{body}, qr/$file->{hash}|xet_requests|"name"/,
			"$host: $uri: tells nothing");
	}
}

my $r = ask($port, 'GET', '/api/v1/usage', { Host => 'evil.example' });

is($r->json()->{error}{code}, 'unknown_host', 'a code of the API');
like($r->json()->{error}{message}, qr/xet_hosts/,
	'the message names xet_hosts');

$r = ask($port, 'GET', '/api/models', { Host => 'evil.example' });

is($r->json()->{details}{code}, 'unknown_host', 'a code of the Hub');

for my $host ("127.0.0.1:$port", "localhost:$port", 'LocalHost', '[::1]',
	'127.9.9.9', 'base.example', 'BASE.example:8080', 'cas.example',
	'listed.example:1', '[2001:db8::1]')
{
	for my $uri ('/api/v1/health', '/api/models', '/metrics', '/status') {
		is(ask($port, 'GET', $uri, { Host => $host })->{status}, 200,
			"$host: $uri");
	}
}

is(ask($t->port(8083), 'GET', '/api/v1/health', { Host => 'any.example' })
	->{status}, 200, 'any name, if configured');
is(ask($secure, 'GET', '/api/v1/health', { Host => 'any.example' })->{status},
	200, 'any name, with tokens');
is(ask($secure, 'GET', '/metrics', { Host => 'any.example' })->{status}, 421,
	'but not for /metrics');
is(ask($port, 'OPTIONS', '/api/models', { Host => 'evil.example' })->{status},
	421, 'a preflight request');

for my $case ([ 'PUT', '/api/v1/files', 'x' x 1000 ],
	[ 'DELETE', "/api/v1/files/$file->{hash}", '' ],
	[ 'POST', '/api/repos/create', '{"name":"evil"}' ])
{
	my ($method, $uri, $body) = @$case;

	is(ask($port, $method, $uri, { Host => 'evil.example' }, $body)
		->{status}, 421, "$method $uri");
}

is(ask($port, 'HEAD', "/api/v1/files/$file->{hash}", {})->{status}, 200,
	'nothing was deleted');

# origins

my @writes = ([ 'PUT', '/api/v1/files', 'x' x 1000 ],
	[ 'POST', '/api/v1/files', 'x' x 1000 ],
	[ 'POST', '/api/v1/xorbs/default/' . '1' x 64, 'x' ],
	[ 'POST', '/api/v1/shards', 'x' ],
	[ 'DELETE', "/api/v1/files/$file->{hash}", '' ],
	[ 'DELETE', '/api/v1/repo', '' ],
	[ 'POST', '/api/repos/create', '{"name":"m"}' ],
	[ 'DELETE', '/api/repos/delete', '{"name":"m"}' ],
	[ 'POST', '/api/models/me/m/commit/main', '{}' ],
	[ 'POST', '/cas/v1/shards', 'x' ],
	[ 'POST', '/v1/telemetry', '{}' ],
	[ 'POST', '/metrics', '' ], [ 'POST', '/status', '' ]);

my @foreign = ({ Origin => 'https://evil.example' }, { Origin => 'null' },
	{ Origin => "http://127.0.0.1:@{[ $port + 1 ]}" },
	{ Origin => "http://127.0.0.1:$port.evil.example" },
	{ Origin => "http://evil.example/127.0.0.1:$port" },
	{ Origin => "127.0.0.1:$port" }, { Origin => '' },
	{ 'Sec-Fetch-Site' => 'cross-site' },
	{ 'Sec-Fetch-Site' => 'same-site' }, { 'Sec-Fetch-Site' => 'new-word' },
	{ 'Sec-Fetch-Site' => 'cross-site',
		Origin => "http://127.0.0.1:$port" });

for my $headers (@foreign) {
	my $name = join(', ', map { "$_: $headers->{$_}" } sort keys %$headers);

	for my $case (@writes) {
		my ($method, $uri, $body) = @$case;

		$r = ask($port, $method, $uri, $headers, $body);

		is($r->{status}, 403, "$name: $method $uri");
		like($r->{body}, qr/foreign_origin/,
			"$name: $method $uri: why");
	}
}

for my $case (@writes[0, 2, 3, 6, 8]) {
	my ($method, $uri, $body) = @$case;

	is(ask($secure, $method, $uri, $foreign[0], $body)->{status}, 403,
		"tokens: $method $uri");
}

is(ask($secure, 'POST', '/token', $foreign[0], '')->{status}, 403,
	'tokens: a location that gives them out');

for my $headers ({}, { Origin => "http://127.0.0.1:$port" },
	{ Origin => "https://127.0.0.1:$port" },
	{ Origin => 'http://base.example:8080' },
	{ 'Sec-Fetch-Site' => 'same-origin' }, { 'Sec-Fetch-Site' => 'none' },
	{ 'Sec-Fetch-Site' => 'same-origin',
		Origin => 'https://front.example' })
{
	my $name = join(', ', map { "$_: $headers->{$_}" } sort keys %$headers);

	is(ask($port, 'PUT', '/api/v1/files', { %$headers,
		Host => "127.0.0.1:$port" }, "own $name")->{status}, 200,
		"own: $name");
}

is(ask($port, 'PUT', '/cors/v1/files', { Origin => 'https://page.example',
	'Sec-Fetch-Site' => 'cross-site' }, 'allowed')->{status}, 200,
	'an origin in xet_cors');
is(ask($port, 'PUT', '/cors/v1/files', { Origin => 'https://evil.example',
	'Sec-Fetch-Site' => 'cross-site' }, 'not allowed')->{status}, 403,
	'an origin not in xet_cors');
is(ask($port, 'GET', '/api/models', $foreign[0])->{status}, 200,
	'reads: CORS decides');

# a browser: a page on another port, and a host name that resolves to this
# server

SKIP: {
	my $b = Test::Xet::Browser->new(
		'--host-resolver-rules=MAP evil.example 127.0.0.1');

	skip('no Chromium', 4) unless $b;

	my $page = $t->port(8083);
	my $before = ask($port, 'GET', '/api/v1/usage', {})->{body};

	$b->open("http://evil.example:$page/api/v1/health");

	is($b->js("fetch('http://127.0.0.1:$port/api/v1/files', { mode:"
		. " 'no-cors', method: 'POST', body: 'evil' })"
		. ".then(r => r.type, e => 'failed')"), 'opaque',
		'a browser: a blind write is sent');
	is(ask($port, 'GET', '/api/v1/usage', {})->{body}, $before,
		'a browser: it changes nothing');

	$b->open("http://evil.example:$port/api/v1/files/$file->{hash}");

	unlike($b->js('document.documentElement.innerText'),
		qr/^.{1000}/s, 'a browser: another host name: no read');
	is($b->js("fetch('/api/v1/files', { method: 'PUT', body: 'evil' })"
		. '.then(r => r.status)'), 421,
		'a browser: another host name: no write');
}

$t->done();
