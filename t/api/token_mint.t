#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Tokens that the server mints after nginx has authenticated the caller, by a
# subrequest or by a client certificate.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Compact;
use Test::Xet::Process qw/ run_command /;

use JSON::PP qw/ decode_json /;

my $t = Test::Xet->new(log => 'info',
	http => "xet_token_key %%DIR%%/token.key;\n",
	server => "listen 127.0.0.1:%%PORT_8444%% ssl;\n"
		. "ssl_certificate %%DIR%%/server.crt;\n"
		. "ssl_certificate_key %%DIR%%/server.key;\n"
		. "ssl_client_certificate %%DIR%%/ca.crt;\n"
		. "ssl_verify_client optional;\n",
	locations => <<'EOC');
        location = /asked {
            internal;

            if ($http_cookie != "session=good") {
                return 401;
            }

            return 204;
        }

        location = /request-token {
            auth_request /asked;

            xet_token;
            xet_token_scope write;
            xet_token_subject $http_cookie;
        }

        location = /certificate-token {
            if ($ssl_client_verify != SUCCESS) {
                return 403;
            }

            xet_token;
            xet_token_scope read;
            xet_token_subject $ssl_client_s_dn;
        }
EOC

$t->write_file('token.key', 'token:t1:' . 'ab' x 32 . "\n");
chmod(0600, $t->dir() . '/token.key');

openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', 2,
	'-subj', "/CN=$_", '-keyout', file("$_.key"), '-out', file("$_.crt"))
	for qw/ ca server stranger /;
openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=bob',
	'-keyout', file('bob.key'), '-out', file('bob.csr'));
openssl('x509', '-req', '-in', file('bob.csr'), '-CA', file('ca.crt'),
	'-CAkey', file('ca.key'), '-CAcreateserial', '-days', 2,
	'-out', file('bob.crt'));

$t->run();

# --------------------------------------------------------------------------
# a subrequest

for my $cookie (undef, 'session=bad') {
	my $r = $t->get('/request-token', $cookie ? { Cookie => $cookie } : {});

	is($r->{status}, 401, 'auth_request refuses');
	unlike($r->{body}, qr/accessToken/, 'no token is returned');
}

my $r = $t->get('/request-token', { Cookie => 'session=good' });

is($r->{status}, 200, 'auth_request allows');
is(claims($r->json())->{scope}, 'write', 'its scope');
is(claims($r->json())->{sub}, 'session=good', 'its subject');
like('hf_' . $r->json()->{accessToken}, qr/\Ahf_[A-Za-z0-9]{34,253}\z/,
	'a form that all clients send');
is($r->{headers}{'x-xet-access-token'}[0], $r->json()->{accessToken},
	'the same token in the header');

# --------------------------------------------------------------------------
# a client certificate

is(asked()->[0], 403, 'no certificate');
is(asked('stranger')->[0], 400, 'a certificate of another authority');

my $got = asked('bob');

is($got->[0], 200, 'a good certificate');
is(claims(decode_json($got->[1]))->{scope}, 'read', 'its scope');
is(claims(decode_json($got->[1]))->{sub}, 'CN=bob', 'its subject');

# --------------------------------------------------------------------------
# a server that only mints tokens: it has no store, no database, and no URL key

$t->write_conf(<<'EOF');
%%MAIN%%

events {
    worker_connections  %%CONNECTIONS%%;
}

http {
    %%HTTP%%

    server {
        listen       127.0.0.1:%%PORT_8080%%;
        server_name  localhost;

        location = /token {
            xet_token;
            xet_token_scope    read;
            xet_token_subject  somebody;
        }

        location = /elsewhere {
            xet_token;
            xet_token_scope    read;
            xet_token_subject  somebody;
            xet_token_cas_url  https://cas.example.com;
        }
    }
}
EOF
$t->reload();

for (1, 2) {
	my $r = $t->get('/token');

	is($r->{status}, 200, 'tokens alone: status');
	is($r->json()->{casUrl}, $t->url('/api'),
		'tokens alone: own API');
	is($t->get('/elsewhere')->json()->{casUrl}, 'https://cas.example.com',
		'tokens alone: another API');
}

# a request without a Host header, from which the server would make the URL

{
	my %refused = ('/token' => 400, '/elsewhere' => 200);

	for my $uri (sort keys %refused) {
		my $c = $t->http_start('GET', $uri, { Host => undef }, undef,
			http10 => 1);
		my $r = $c->response('GET');

		is($r->{status}, $refused{$uri}, "no Host: $uri");
		is($r->json()->{error}{code}, 'no_host', 'no Host: code')
			if $r->{status} != 200;
		$c->close();
	}
}

$t->done();

# Returns [ status, body ] of a request with a certificate.

sub asked {
	my ($who) = @_;

	my ($status, $out) = run_command([ 'curl', '-sk', '-m', 20, '-w',
		'|%{http_code}', $who ? ('--cert', file("$who.crt"), '--key',
		file("$who.key")) : (), 'https://127.0.0.1:' . $t->port(8444)
		. '/certificate-token' ]);

	my ($body, $code) = $out =~ /\A(.*)\|(\d+)\z/s;

	return [ $code, $body ];
}

sub claims {
	my ($answer) = @_;

	return Test::Xet::Compact::claims($answer->{accessToken});
}

sub file {
	return $t->dir() . "/$_[0]";
}

sub openssl {
	my ($status, $out) = run_command([ 'openssl', @_ ]);

	die "openssl @_: $out" if $status != 0;
}
