#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The API together with nginx's other modules.  Whatever is configured above
# xet_api or in the same location, the response is what the module's handler
# wrote.  SSI never processes a file, whatever its name.  gzip is a content
# coding of complete responses and removes the digests.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ run_command slurp wait_for /;
use Test::Xet::Ztensor;

use Digest::SHA qw/ sha256_base64 sha256_hex /;
use IO::Uncompress::Gunzip qw/ gunzip /;
use JSON::PP ();

# Each of these would change the body.

my %beside = (
	ssi => 'ssi on; ssi_types *;',
	charset => 'charset koi8-r; source_charset windows-1251;
		charset_types *;',
	userid => 'userid on;',
);

my $version = Test::Xet::Nginx::version();

$beside{sub} = 'sub_filter a bb; sub_filter e ee; sub_filter_once off;
		sub_filter_types *;'
	if $version =~ /--with-http_sub_module/;
$beside{addition} = 'add_before_body /text; add_after_body /text;
		addition_types *;'
	if $version =~ /--with-http_addition_module/;
$beside{gunzip} = 'gunzip on;' if $version =~ /--with-http_gunzip_module/;
$beside{image} = 'image_filter test;'
	if $version =~ /--with-http_image_filter_module(?!=)/;

my $all = join(' ', map { $beside{$_} } grep { $_ ne 'image' }
	sort keys %beside);
my $gzip = 'gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any;';
my $secret = 'what an internal location has';
my $denied = 'what no client may read';

sub location {
	my ($name, $more) = @_;

	return <<"EOC";
        location /$name/ {
            xet_api;
            xet_api_base          /$name;
            xet_auth              off;
            client_max_body_size  10m;
            error_page            413 \@xet_error;
            $more
        }

EOC
}

my $locations = join('', map { location($_, $beside{$_}) } sort keys %beside);

my $http2 = $version =~ /--with-http_v2_module/
	&& `curl -V 2>&1` =~ /^Features:.* HTTP2\b/m;
my $listen = $http2 ? 'listen 127.0.0.1:%%PORT_8083%% http2;' : '';

my $t = Test::Xet->new(log => 'info', http => <<"EOC", server => $locations);
charset_map windows-1251 koi8-r { 80 E1; 61 62; 62 61; 65 66; }

    types {
        text/html   html;
        text/plain  txt;
        text/xml    xml;
    }

    server {
        listen 127.0.0.1:%%PORT_8081%%;
        $listen
        root   %%STORE%%;
        $all
        $gzip

        location = /text {
            return 200 "an addition\\n";
        }

        location /secret/ {
            internal;
            return 200 "$secret\\n";
        }

        location /denied/ {
            deny all;
            return 200 "$denied\\n";
        }

        location /static/ {
            alias %%DIR%%/static/;
        }

        location \@xet_error {
            xet_error;
        }

        ${\ location('api', '')}
        ${\ location('said', 'if ($arg_q) { return 200 "a text, e\\n"; }')}
    }

    server {
        listen 127.0.0.1:%%PORT_8082%%;
        xet_cors off;

        location /api/ {
            xet_verify_body on;
            $gzip
            proxy_pass http://127.0.0.1:%%PORT_8080%%;
        }
    }
EOC

my $body = "<!--#include virtual=\"/secret/x\" -->\n"
	. "<!--#include virtual=\"/denied/x\" -->\n"
	. "<!--#echo var=\"document_root\" -->\n"
	. "<!--#config timefmt=\"x\" -->\n"
	. 'a text, e ' x 1000;

$t->write_file('static/x.html', $body);
$t->run();

my $r = $t->http('PUT', '/api/v1/files', {}, \$body);
my $hash = $r->json()->{hash};
my $digest = sha256_base64($body) . '=';

is($r->{status}, 200, 'a file');

# the same directives have their effect in other locations

$r = $t->get('/static/x.html', {}, port => 8081);
unlike($r->{body}, qr/<!--#/, 'static: a template');
unlike($r->{body}, qr/a text, e/, 'static: other bytes');

# --------------------------------------------------------------------------
# files with all kinds of names, in each location and with all directives above

for my $case (map({ [ "/$_", 8080 ] } sort keys %beside), [ '/api', 8081 ]) {
	my ($base, $port) = @$case;

	for my $name ('', '?filename=x.html', '?filename=x.txt',
		'?filename=x.xml')
	{
		as_made("$base$name", "$base/v1/files/$hash$name", $port);
	}

	# plans, and error responses of the module, of nginx, and of xet_error

	for my $path ("v1/reconstructions/$hash", 'v1/nothing',
		'v1/reconstructions/' . 'ab' x 32, 'health/live',
		"v1/files/$hash?filename=a/b")
	{
		my $want = $t->get("/api/$path");
		my $got = $t->get("$base/$path", {}, port => $port);

		is_deeply([ $got->{status}, bare($got),
			scalar $got->header_value('Content-Type'),
			scalar $got->header_value('Content-Length') ],
			[ $want->{status}, bare($want),
			scalar $want->header_value('Content-Type'),
			scalar $want->header_value('Content-Length') ],
			"$base/$path");
	}
}

$r = $t->http('PUT', '/api/v1/files', { 'Content-Length' => 11 << 20 },
	undef, port => 8081);
is($r->{status}, 413, 'xet_error: status');
is($r->{body}, '{"error":{"code":"body_too_large","message":'
	. '"the request body is too large"}}', 'xet_error: unchanged');

is($t->get('/said/x?q=1', {}, port => 8081)->{body}, "a text, e\n",
	'a response of nginx itself, in the API');

# --------------------------------------------------------------------------
# gzip

for my $case ([ 'api', '/api', 8081 ], [ 'edge', '/api', 8082 ]) {
	my ($name, $base, $port) = @$case;
	my $uri = "$base/v1/files/$hash?filename=x.html";
	my $plain;

	$r = $t->get($uri, { 'Accept-Encoding' => 'gzip' }, port => $port);
	gunzip(\$r->{body}, \$plain);

	is($r->header_value('Content-Encoding'), 'gzip', "$name, gzip: coded");
	ok($plain eq $body, "$name, gzip: the file");
	is($r->header_value('ETag'), "W/\"$hash\"", "$name, gzip: a weak tag");
	is($r->header_value($_), undef, "$name, gzip: no $_ of other bytes")
		for qw/ Repr-Digest Digest /;

	$r = $t->get($uri, {}, port => $port);
	is($r->header_value('Repr-Digest'), "sha-256=:$digest:",
		"$name, not gzip: Repr-Digest");
	is($r->header_value('Digest'), "sha-256=$digest",
		"$name, not gzip: Digest");

	$r = $t->get($uri, { 'Accept-Encoding' => 'gzip',
		Range => 'bytes=0-60' }, port => $port);
	is($r->{body}, substr($body, 0, 61),
		"$name, gzip: a range is not coded");
	is($r->header_value('Repr-Digest'), "sha-256=:$digest:",
		"$name, gzip: a range has Repr-Digest");
}

# a zTensor component, which has a digest after its verification

my $tensor = 'ssi ' x 9000;
my $zt = zt_file([ [ 'a', { shape => [ 9000 ], data => $tensor,
	digest => 'sha256:' . sha256_hex($tensor) } ] ]);
my $at = '/api/v1/zt/' . $t->upload($zt->{bytes})->{hash};

is($t->get("$at/verify")->json()->{ok}, JSON::PP::true, 'zTensor: verified');
ok(wait_for(10, sub { $t->sql('select count(*) from xet.zt_reports') == 1 }),
	'zTensor: the result is cached');

for my $coding (undef, 'gzip') {
	$r = $t->get("$at/data?i=0", { 'Accept-Encoding' => $coding },
		port => 8081);

	my $plain = $r->{body};

	gunzip(\$r->{body}, \$plain) if $coding;

	is($r->header_value('Content-Encoding'), $coding,
		'zTensor: ' . ($coding // 'not coded'));
	ok($plain eq $tensor, 'zTensor: its bytes');
	is($r->header_value('Repr-Digest'), $coding ? undef : 'sha-256=:'
		. sha256_base64($tensor) . '=:', 'zTensor: Repr-Digest');
}

# --------------------------------------------------------------------------
# HTTP/2

SKIP: {
	skip 'no HTTP/2', 2 unless $http2;

	my $out = $t->dir() . '/curl.out';
	my ($status, $text) = run_command([ 'curl', '-sS', '-m', 30,
		'--http2-prior-knowledge', '-o', $out, '-w',
		'%{http_version} %{http_code}',
		$t->url("/api/v1/files/$hash?filename=x.html", 8083) ]);

	is($text, '2 200', 'HTTP/2');
	ok($status == 0 && slurp($out) eq $body, 'HTTP/2: the file');
}

$t->reload();
$t->done();

# --------------------------------------------------------------------------

# Removes the arguments of URLs, which differ between two responses.

sub bare { return $_[0]->{body} =~ s/[?&](?:r|e|k|s)=[^"&]*//gr }

sub as_made {
	my ($name, $uri, $port) = @_;

	my @port = (port => $port);
	my $size = length($body);
	my $r = $t->get($uri, {}, @port);

	is($r->{status}, 200, "$name: status");
	ok($r->{body} eq $body, "$name: bytes")
		or diag(substr($r->{body}, 0, 200));
	unlike($r->{body}, qr/\Q$secret\E|\Q$denied\E/, "$name: no secrets");
	is($r->header_value('Content-Length'), $size, "$name: length");
	is($r->header_value('ETag'), "\"$hash\"", "$name: ETag");
	is($r->header_value('Accept-Ranges'), 'bytes', "$name: ranges");
	is($r->header_value('Repr-Digest'), "sha-256=:$digest:",
		"$name: digest");
	is($r->header_value('Set-Cookie'), undef, "$name: no cookie");
	unlike($r->header_value('Content-Type'), qr/charset/,
		"$name: no charset is added");

	$r = $t->get($uri, { Range => 'bytes=0-60' }, @port);

	is($r->{status}, 206, "$name: 206");
	is($r->header_value('Content-Range'), "bytes 0-60/$size",
		"$name: 206: Content-Range");
	is($r->header_value('Content-Length'), 61, "$name: 206: length");
	is($r->{body}, substr($body, 0, 61), "$name: 206: bytes");

	$r = $t->get($uri, { Range => 'bytes=0-60,100-199' }, @port);

	is_deeply([ map { $_->{body} } @{ +eval { $r->parts() } || [] } ],
		[ substr($body, 0, 61), substr($body, 100, 100) ],
		"$name: several ranges");

	$r = $t->head($uri, {}, @port);

	is_deeply([ $r->{status}, scalar $r->header_value('Content-Length') ],
		[ 200, $size ], "$name: HEAD");
	is($t->get($uri, { 'If-None-Match' => "\"$hash\"" }, @port)->{status},
		304, "$name: 304");
}
