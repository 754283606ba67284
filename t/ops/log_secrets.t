#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# No log contains secrets.  Requests with signatures and tokens provoke messages
# of all kinds, at an origin and at an edge, over HTTP/1.1 and HTTP/2.  Each
# message appears, with every signature and token masked.  Unlike the check in
# done(), this test also looks for the signatures that the edge makes.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Edge;
use Test::Xet::Process qw/ run_command /;
use Test::Xet::Table;
use Test::Xet::Token;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my %hub = Test::Xet::Table::hub('xet_auth token;',
	Test::Xet::Token::token_location() . <<'EOC');
location /rewritten/ {
            rewrite_log on;
            error_log %%DIR%%/rewrite.log notice;
            rewrite ^/rewritten(/.*)$ $1;
        }

        location /dead/ {
            proxy_pass http://127.0.0.1:%%PORT_9999%%;
        }

        location /limited/ {
            limit_req zone=one;
            proxy_pass http://127.0.0.1:%%PORT_9999%%;
        }
EOC

my $t = Test::Xet->new(%hub, http => $hub{http}
	. ' limit_req_zone $server_name zone=one:64k rate=1r/m;'
	. ' log_format all \'$request_uri|$args|$arg_s|$request|$http_referer'
	. '|$remote_user|$request_id\'; access_log %%DIR%%/all.log all;'
	. ' map $request_uri $early { default 1; }', server => <<'EOC');
listen 127.0.0.1:%%PORT_8081%% http2;
        client_header_timeout 2s;
        client_body_timeout 2s;
        error_log %%DIR%%/server.log info;
EOC

my $json = JSON::PP->new()->canonical();
my $dir = $t->dir();

$t->token_key();

my $edge = Test::Xet::Edge::edge($t);

$t->run();
$edge->run();

# --------------------------------------------------------------------------
# the secrets

my $token = $t->get('/token/write/@alice')->json()->{accessToken};
my $alice = { Authorization => "Bearer $token" };
my $url_key = derived_key(pack('H*', '5e' x 32));
my $late = time() + 600;

is($t->post('/api/repos/create', \$json->encode({ name => 'm',
	organization => 'alice' }), { %$alice,
	'Content-Type' => 'application/json' })->{status}, 200, 'a repo');

my $data = random_bytes(1, 3_000_000);
my $put = action('upload');

is($t->http('PUT', $put, {}, \$data, timeout => 60)->{status}, 200, 'LFS: put');
is($t->post('/api/models/alice/m/commit/main', \join("\n", map {
	$json->encode($_) } { key => 'header', value => { summary => 'x' } },
	{ key => 'lfsFile', value => { path => 'x', algo => 'sha256',
	oid => sha256_hex($data), size => length($data) } }), { %$alice,
	'Content-Type' => 'application/x-ndjson' })->{status}, 200, 'a commit');

my $get = action('download');
my ($path) = glob($t->store() . '/xorbs/default/*/*');
my ($xorb) = $path =~ m!([^/]+)\z!;

# --------------------------------------------------------------------------
# messages: each must appear, and its line must have a masked value

my ($ok_url, $old_url) = (data_url($late), data_url(time() - 10));
my $no_file = data_url($late, $xorb =~ s/^(.)/$1 eq 'a' ? 'b' : 'a'/er);
my $wrong = $ok_url =~ s/s=(.)/'s=' . ($1 eq 'a' ? 'b' : 'a')/er;
my %range = (Range => 'bytes=0-99');

is($t->get($ok_url, { %range })->{status}, 206, 'a data URL');
is($edge->get($ok_url, { %range })->{status}, 206, 'a data URL at the edge');

for my $server ([ origin => $t ], [ edge => $edge ]) {
	my ($name, $s) = @$server;

	provoke($s, "$name: expired", qr/403 expired/, sub {
		$s->get($old_url, { %range });
	});
	provoke($s, "$name: another signature", qr/403 invalid_signature/, sub {
		$s->get($wrong, { %range, Referer => "http://h$ok_url" });
	});
	provoke($s, "$name: another range", qr/403 range_not_signed/, sub {
		$s->get($ok_url, { Range => 'bytes=0-100' });
	});
	provoke($s, "$name: a header that is none",
		qr/client sent invalid header line/, sub {
		raw($s, "GET $ok_url HTTP/1.1\r\nHost: x\r\n"
			. "Bad\x01: x\r\n\r\n");
	});
	provoke($s, "$name: a token in a header that is none",
		qr/client sent invalid header line/, sub {
		raw($s, "GET $ok_url HTTP/1.1\r\nHost: x\r\n"
			. "Authorization: Bearer $token\0\r\n\r\n");
	});
	provoke($s, "$name: two tokens", qr/duplicate header line/, sub {
		raw($s, "GET $ok_url HTTP/1.1\r\nHost: x\r\n"
			. "Authorization: Bearer $token\r\n" x 2 . "\r\n");
	});
	provoke($s, "$name: a header too large",
		qr/client sent too (?:long|large)/, sub {
		raw($s, "GET $ok_url HTTP/1.1\r\nHost: x\r\nA: "
			. 'x' x 100_000 . "\r\n\r\n");
	});
	provoke($s, "$name: a URI too long", qr/too long URI/, sub {
		raw($s, "GET $ok_url&n=" . '1' x 100_000
			. " HTTP/1.1\r\n\r\n");
	});
	provoke($s, "$name: no such version", qr/client sent invalid/, sub {
		raw($s, "GET $ok_url HTTP/7.1\r\n\r\n");
	});
	provoke($s, "$name: no host", qr/without "Host"|invalid/, sub {
		raw($s, "GET $ok_url HTTP/1.1\r\n\r\n");
	});
	provoke($s, "$name: a client that leaves before the end",
		qr/prematurely closed connection/, sub {
		my $c = $s->connect();
		$c->send("GET $ok_url HTTP/1.1\r\nHost: x\r\n");
		$c->close();
	});
}

provoke($t, 'not there', qr/open\(\) .* failed/, sub {
	$t->get($no_file, { %range });
});
provoke($t, 'a client that says nothing more', qr/client timed out/, sub {
	my $c = $t->connect();
	$c->send("GET $ok_url HTTP/1.1\r\nHost: x\r\n");
	$c->closed(10);
	$c->close();
});
provoke($t, 'the second request of a connection',
	qr/client sent invalid header line/, sub {
	raw($t, "GET $ok_url HTTP/1.1\r\nHost: x\r\nRange: bytes=0-99\r\n\r\n"
		. "GET $ok_url HTTP/1.1\r\nHost: x\r\nBad\x01: x\r\n\r\n");
});
provoke($t, 'LFS: another signature', qr/403 invalid_signature/, sub {
	$t->get($get =~ s/s=(.)/'s=' . ($1 eq '0' ? '1' : '0')/er);
});
provoke($t, 'LFS: not the bytes', qr/400 digest_mismatch/, sub {
	$t->http('PUT', $put, {}, \'x');
});
provoke($t, 'LFS: broken off', qr/recv\(\) failed|prematurely/, sub {
	my $c = $t->http_start('PUT', $put, { 'Content-Length' => 3_000_000 },
		'x' x 10_000);
	$c->abort();
});
provoke($t, 'a dead upstream', qr/connect\(\) failed/, sub {
	$t->get("/dead$ok_url", { %$alice, Referer => "http://h$get" });
});
provoke($t, 'too many requests', qr/limiting requests/, sub {
	$t->get("/limited$ok_url") for 1 .. 2;
});
provoke($t, 'rewritten', qr/rewritten data/, sub {
	$t->get("/rewritten$ok_url", { %range });
}, 'rewrite.log');

# user names, and tokens in wrong places

for my $who ("x:$token", "$token:x", "hf_$token:x") {
	$t->get('/api/whoami-v2', { Authorization => 'Basic '
		. encode_base64($who, '') });
}

$t->get("/api/whoami-v2?token=$token");
$t->get("/alice/m/resolve/main/x?u=" . ($ok_url
	=~ s/([^\w.-])/sprintf('%%%02X', ord($1))/ger), $alice);

# HTTP/2

for ([ 'expired', $old_url ], [ 'no signature of ours', $wrong ],
	[ 'LFS', $get =~ s/s=(.)/'s=' . ($1 eq '0' ? '1' : '0')/er ])
{
	my ($name, $uri) = @$_;

	provoke($t, "HTTP/2: $name", qr/xet: 403 .*HTTP\/2\.0/, sub {
		run_command([ 'curl', '-s', '--http2-prior-knowledge', '-r',
			'0-99', '-H', "Authorization: Bearer $token", '-e',
			"http://h$ok_url", $t->url($uri, 8081) ]);
	});
}

# the origin is down; requests that are not cached fail

my $elsewhere = data_url($late, $xorb, '100-199');

$t->stop();

provoke($edge, 'edge: no origin', qr/connect\(\) failed.*upstream: "/, sub {
	$edge->get(data_url($late, $xorb =~ s/^(.)/$1 eq 'a' ? 'b' : 'a'/er),
		{ %range });
});
provoke($edge, 'edge: no origin for LFS', qr/connect\(\) failed/, sub {
	$edge->get($get);
});

# --------------------------------------------------------------------------
# the contents of the logs

my $n = 0;

for my $file (map { glob($_->dir() . '/*.log') } $t, $edge) {
	my ($name) = $file =~ m!([^/]+)\z!;

	open(my $f, '<', $file) or die;
	my @lines = <$f>;

	my @shown = grep { /[?&"|]s=[\w-]{32}|[?&]s%3D\w{20}|ey[\w-]{16,}\.
		|Signature=\w|(?:Bearer|Basic)\s+\w/x } @lines;

	is(join('', splice(@shown, 0, 5)), '', "$name: no secret");
	$n += grep { /\*{32}/ } @lines;
}

cmp_ok($n, '>', 60, 'and there were some');

like($t->read_file('all.log'), qr/^\/xorbs.*&s=\*{43}\|.*\|\*{43}\|GET /m,
	'all variables of a request');
like($t->read_file('all.log'), qr/\|x\|\w+$/m, 'the name of a user stays');
like($t->read_file('access.log'), qr/"http:\/\/h\/xorbs[^"]*s=\*{43}"/,
	'a referrer');

$t->allow(qr/./);
$t->done();

# --------------------------------------------------------------------------

# Checks that a new line of the error log matches, and that all secrets in it
# are masked.

sub provoke {
	my ($server, $name, $regex, $what, $log) = @_;

	my $file = $server->dir() . '/' . ($log
		// ($server == $t ? 'server.log' : 'error.log'));
	my $from = -s $file || 0;

	$what->();

	my $text = '';

	wait_for(15, sub {
		open(my $f, '<', $file) or return;
		seek($f, $from, 0);
		local $/ = undef;
		$text = <$f>;

		return $text =~ $regex;
	});

	my @lines = grep { /$regex/ } split(/\n/, $text);

	ok(@lines, "$name: its message") or diag($text);
	ok(!(grep { /[?&]s=[^*\s]/ } @lines), "$name: masked")
		or diag(join("\n", @lines));
}

sub raw {
	my ($server, $text) = @_;

	my $c = $server->connect();
	$c->send($text);
	$c->read_some(100_000, 3);
	$c->close();
}

sub action {
	my ($operation) = @_;

	my $r = $t->post('/alice/m.git/info/lfs/objects/batch',
		\$json->encode({ operation => $operation,
		transfers => [ 'basic' ], objects => [ {
		oid => sha256_hex($data), size => length($data) } ] }),
		{ %$alice, 'Content-Type' => 'application/vnd.git-lfs+json' });

	return $r->json()->{objects}[0]{actions}{$operation}{href}
		=~ s!^http://[^/]+!!r;
}

sub data_url {
	my ($expires, $name, $list) = @_;

	$name //= $xorb;
	$list //= '0-99';

	my $text = 'default/' . substr($name, 0, 2)
		. "/$name?r=$list&e=$expires&k=k1";

	return "/xorbs/$text&s=" . url_mac($text, $url_key);
}
