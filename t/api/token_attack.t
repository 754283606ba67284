#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Tokens of every kind of key over HTTP, and attacks without a key: other
# algorithms, malformed or duplicate claims, other clocks.  The test also covers
# keys that a reload adds and removes, and the cache up to the second when a
# token expires.  No token appears in the module's debug log, in a response, or
# in PostgreSQL.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Compact;
use Test::Xet::Process qw/ run_command slurp spew /;

use Digest::SHA qw/ hmac_sha256 sha256 /;
use File::Temp qw/ tempdir /;
use JSON::PP ();
use MIME::Base64 qw/ decode_base64 encode_base64url /;

my $t = Test::Xet->new(workers => 2, http => <<'EOC', locations => <<'EOL',
xet_token_key    %%DIR%%/secret.key;
    xet_token_key    %%DIR%%/ed.pem;
    xet_token_key    %%DIR%%/keys.json;
    xet_token_cache  zone=tokens:256k;

    server {
        listen               127.0.0.1:%%PORT_8443%%;
        listen               127.0.0.1:%%PORT_8444%% ssl;
        ssl_certificate      %%DIR%%/tls.crt;
        ssl_certificate_key  %%DIR%%/tls.key;

        location /api/ {
            xet_api;
            xet_auth         token;
            xet_access       store;
            xet_require_tls  on;
        }
    }

    server {
        listen  127.0.0.1:%%PORT_8445%%;

        # "set" makes nginx verify a token before it has found a location: the
        # rules of the server apply

        xet_auth token;
        xet_access store;
        xet_token_audience one;
        set $who "$xet_subject $xet_repo $xet_client $xet_route";

        location /one/ {
            xet_api;
            xet_api_base /one;
            add_header X-Who "$xet_subject,$xet_scope" always;
        }

        location /two/ {
            xet_api;
            xet_api_base /two;
            xet_token_audience two;
            add_header X-Who "$xet_subject,$xet_scope" always;

            if ($arg_three) {
                rewrite ^/two(/.*) /one$1 last;
            }
        }

        location /swap/ {
            xet_token;
            xet_token_audience two;
            xet_token_scope $xet_scope;
            xet_token_subject $xet_subject;
        }
    }
EOC
location /api/ {
            xet_api;
            xet_auth token;
            xet_access repo;
            client_max_body_size 80m;
        }

        location /us/ {
            xet_api;
            xet_api_base /us;
            xet_auth token;
            xet_access store;
            xet_token_issuer us;
            xet_token_audience them;
            xet_token_leeway 60s;
        }
EOL
	pg_conf => "log_statement = all\n");

my $dir = tempdir(CLEANUP => 1);
my $secret = 'ab' x 32;
my %keys = map { $_ => private_key($_) } qw/ ed e1 e2 e3 r1 /;

key_file('secret.key', "token:h1:$secret\n");
key_file('ed.pem', public_pem('ed'));
key_file('keys.json', jwks(qw/ e1 e2 r1 /));
openssl(qw! req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes
	-days 2 -subj /CN=localhost -keyout !, $t->dir() . '/tls.key', '-out',
	$t->dir() . '/tls.crt');

$t->run();

my $path = '/api/v1/reconstructions/' . 'a' x 64;
my @sent;

# --------------------------------------------------------------------------
# each kind of key, with its id in the token and without; 404 means that the
# token is accepted

my %algs = (h1 => 'HS256', ed => 'EdDSA', e1 => 'ES256', e2 => 'ES256',
	r1 => 'RS256');

for my $key (sort keys %algs) {
	is(status(token($key)), 404, "$algs{$key}, $key: good");
	is(status(token($key, header => { kid => undef })), 404,
		"$algs{$key}, $key: good without its id") if $key ne 'ed';

	my $token = token($key);
	my ($head, $mac) = $token =~ /^(.*\.)(.*)$/;

	substr($mac, 20, 1) = substr($mac, 20, 1) eq 'A' ? 'B' : 'A';
	is(status("$head$mac"), 401, "$algs{$key}, $key: altered signature");

	(my $other = $token) =~ s/^([^.]+)\.[^.]+/"$1." . text({
		exp => time() + 600, scope => 'write', repo => 'a\/b' })/e;
	is(status($other), 401, "$algs{$key}, $key: altered claims");
	is(status($head), 401, "$algs{$key}, $key: no signature");
}

# --------------------------------------------------------------------------
# an algorithm other than the key's

for my $key (qw/ h1 ed e1 r1 /) {
	for my $alg (qw/ none None NONE HS384 HS512 PS256 ES384 /, '',
		grep { $_ ne $algs{$key} } qw/ HS256 EdDSA ES256 RS256 /)
	{
		my $token = token($key, header => { alg => $alg });

		is(status($token), 401, "alg \"$alg\" of $key");
		is(status($token =~ s/[^.]*$//r), 401,
			"alg \"$alg\" of $key, unsigned");
	}
}

# compact tokens: changed, with another signature of the same key, of another
# purpose, or in another spelling

{
	my $hmac = sub { hmac_sha256($_[0], pack('H*', $secret)) };
	my $good = { exp => time() + 600 };
	my $token = compact($good);
	my $bytes = Test::Xet::Compact::decode(substr($token, 4));
	my $body = substr($bytes, 0, -32);

	is(status($token), 404, 'compact: good');
	is(status("hf_$token"), 404, 'compact: with the prefix');
	is(status("hf_hf_$token"), 401, 'compact: with the prefix twice');
	is(status(compact($good, 'ed', sub { signature('ed', @_) },
		public_id('ed'))), 404, 'compact: a private key');

	for my $at (map { $_ * 5 } 1 .. length($token) / 5 - 1) {
		my $other = $token;

		substr($other, $at, 1) =~ tr/A-Za-z0-9/B-ZAb-za1-90/;
		is(status($other), 401, "compact: changed at $at");
		is(status(substr($token, 0, $at)), 401, "compact: $at bytes");
	}

	my %signed = (
		'no prefix' => sub { $hmac->(substr($_[0], 12)) },
		'another prefix' => sub { $hmac->('xet token 2' . substr($_[0],
			11)) },
		'another secret' => sub { hmac_sha256($_[0], 'x' x 32) },
		'no secret' => sub { hmac_sha256($_[0], '') },
		'the public key' => sub { hmac_sha256($_[0],
			public_pem('ed')) },
		'the key of data URLs' => sub { hmac_sha256($_[0],
			pack('H*', '00' x 32)) },
		'no signature' => sub { '' },
		'zeros' => sub { "\0" x 32 });

	is(status(compact($good, 'h1', $signed{$_})), 401, "compact: $_")
		for sort keys %signed;

	# signatures of a JWT with this key

	my $jwt = token('h1');
	my ($mac) = $jwt =~ /([^.]+)$/;

	is(status('xet1' . Test::Xet::Compact::encode($body
		. MIME::Base64::decode_base64url($mac))), 401,
		'compact: the signature of a JWT');
	is(status($jwt =~ s/[^.]+$/encode_base64url(substr($bytes, -32))/er),
		401, 'compact: its signature in a JWT');
	is(status(compact($good, $_, $hmac)), 401, "compact: key id $_")
		for qw/ H1 e1 r1 none /, '';

	my %claims = (expired => { exp => time() - 1 },
		'not yet valid' => { exp => time() + 600, nbf => time() + 90 },
		'unknown flags' => { %$good, head => "\0\x40" },
		'an unknown scope' => { %$good, head => "\x08\0" },
		'more bytes' => { %$good, more => 'x' },
		'a repo that leads up' => { %$good, repo => 'a/../b' },
		'a line in the subject' => { %$good, sub => "a\nb" },
		'a subject cut off' => { %$good, head => "\0\x10",
			more => "\xffa" },
		'a time past the limit' => { exp => 2 ** 53 + 2 });

	is(status(compact($claims{$_})), 401, "compact: $_")
		for sort keys %claims;

	# other spellings of the same bytes

	my %spelt = ('a version' => 'xet2' . substr($token, 4),
		'upper case' => 'XET1' . substr($token, 4),
		'a zero more' => "${token}0",
		'zeros in front' => 'xet1' . '0' x 11 . substr($token, 4),
		'a large block' => 'xet1' . 'z' x 11 . substr($token, 15),
		'a dot' => "$token.", 'dots' => "$token..",
		'padded' => "$token=",
		'underscore' => substr($token, 0, 30) . '_'
			. substr($token, 31),
		'the mark alone' => 'xet1', 'too long' => $token . '0' x 200);

	is(status($spelt{$_}), 401, "compact: $_") for sort keys %spelt;

	for ([ us => 'them', 404 ], [ us => 'others', 401 ],
		[ you => 'them', 401 ], [ us => undef, 401 ],
		[ undef, 'them', 401 ], [ 'them', 'us', 401 ])
	{
		my ($iss, $aud, $want) = @$_;
		my $uri = "/us$path" =~ s!/us/api!/us!r;

		is(status(compact({ %$good, iss => $iss, aud => $aud }), $uri),
			$want, 'compact: iss ' . ($iss // 'none') . ', aud '
			. ($aud // 'none'));
	}
}

# public data, used as a secret key

for my $key (qw/ ed e1 r1 /) {
	my $pem = public_pem($key);
	my $der = public_der($key);

	my %secrets = (PEM => $pem, 'PEM without its end' => $pem =~ s/\n$//r,
		DER => $der, bits => substr($der, $key eq 'ed' ? -32 : -65));

	for my $form (sort keys %secrets) {
		for my $kid ($key, undef, 'h1') {
			is(status(token('h1', secret => $secrets{$form},
				header => { kid => $kid })), 401,
				"HS256 with the public $form of $key, kid "
				. ($kid // 'none'));
		}
	}
}

is(status(token('h1', secret => '')), 401, 'HS256 with an empty secret');
is(status(token('e1', header => { kid => 'e2' })), 401,
	'the id of another key');
is(status(token('e3')), 401, 'an unknown key');
is(status(token('e3', header => { kid => 'e1' })), 401,
	'an unknown key, with a known id');

for my $kid ('', 'x', 'H1', 'h1 ', '../secret.key', 'x' x 300, 1,
	[ 'h1' ])
{
	my $name = ref $kid ? 'no text' : substr($kid, 0, 20);

	is(status(token('h1', header => { kid => $kid })), 401,
		"kid \"$name\"");
}

for my $header ({ crit => [ 'exp' ] }, { crit => [] }, { b64 => JSON::PP::false,
	crit => [ 'b64' ] })
{
	is(status(token('h1', header => $header)), 401,
		'header ' . JSON::PP->new->canonical->encode($header));
}

is(status(token('h1', header => '{"alg":"HS256","alg":"none","kid":"h1"}')),
	401, 'alg twice');
is(status(token('h1', header => '{"alg":"HS256","kid":"h1","kid":"e1"}')),
	401, 'kid twice');
is(status(token('h1', header => '{"alg":"HS256","kid":null}')), 401,
	'kid null');
is(status(token('h1', header => '{"alg":"HS256","kid":"h1"} {}')), 401,
	'a header with trailing data');

# --------------------------------------------------------------------------
# invalid claims with a valid signature

my $late = time() + 600;

for my $exp ('18446744073709551616', '9223372036854775808',
	'9223372036854775807', '9007199254740993', '1e999', "$late.5",
	"$late.0", '-1', '0', 'true', 'null', '[]', '{}', "\"$late\"",
	"[$late]", "0$late", "+$late", '0x7fffffff', 'NaN')
{
	is(status(token('h1', claims => "{\"exp\":$exp,\"scope\":\"read\"}")),
		401, "exp $exp");
}

for my $claims ("\"exp\":$late,\"exp\":$late", "\"exp\":1,\"exp\":$late",
	"\"exp\":$late,\"exp\":1", "\"exp\":$late,\"e\\u0078p\":$late",
	"\"exp\":$late,\"scope\":\"write\"",
	"\"exp\":$late,\"repo\":\"a/b\",\"repo\":\"c/d\"",
	"\"exp\":$late,\"sub\":\"a\",\"sub\":\"b\"",
	"\"exp\":$late,\"sub\":1", "\"exp\":$late,\"repo\":[\"a/b\"]",
	"\"exp\":$late,\"repo\":\"../a\"", "\"exp\":$late,\"repo\":null",
	"\"exp\":$late,\"repo\":\"" . 'a' x 257 . '"',
	"\"exp\":$late,\"sub\":\"a\\nb\"", "\"exp\":$late,\"sub\":\"\\u0000\"",
	"\"exp\":$late,\"nbf\":\"0\"", "\"exp\":$late,\"nbf\":-1",
	"\"exp\":$late,\"nbf\":" . ($late - 300), '"nbf":1')
{
	is(status(token('h1', claims => "{\"scope\":\"read\",$claims}")), 401,
		"claims $claims") or diag('claims ' . substr($claims, 0, 60));
}

for my $text ('', '{', '[]', 'null', '"exp"', "{\"exp\":$late}}",
	"{\"exp\":$late,}", "\xef\xbb\xbf{\"exp\":$late}",
	"{\"exp\":$late,\"x\":\"\xff\"}", '[' x 2000)
{
	is(status(token('h1', claims => $text)), 401, 'claims that are '
		. (length($text) > 20 ? 'too much' : "\"$text\""));
}

is(status(token('h1', claims => "{\"exp\":$late,\"scope\":1}")), 401,
	'a scope that is a number');
is(status(token('h1', claims => "{\"exp\":$late,\"scope\":\"owner\"}")), 403,
	'an unknown scope');

# the first token has no scope; the scopes of the other tokens are too long

for my $case ([ 7000, 403 ], [ 20000, '400|401' ], [ 60000, '400|401' ]) {
	my ($n, $status) = @$case;
	my $token = token('h1', claims => "{\"exp\":$late,\"x\":\""
		. 'x' x $n . '"}');

	like(status($token), qr/^(?:$status)$/, "a token of $n bytes");
}

# --------------------------------------------------------------------------
# issuer, audience and times

my $us = '/us/v1/reconstructions/' . 'a' x 64;

for my $case (
	[ 404, iss => 'us', aud => 'them' ],
	[ 404, iss => 'us', aud => [ 'them' ] ],
	[ 404, iss => 'us', aud => [ 'a', 'them', 'b' ] ],
	[ 401, iss => 'us', aud => [] ], [ 401, iss => 'us', aud => 'the' ],
	[ 401, iss => 'us', aud => [ 'the', 'm' ] ],
	[ 401, iss => 'us', aud => [ 'them', 1 ] ],
	[ 401, iss => 'us', aud => { them => 1 } ], [ 401, iss => 'us' ],
	[ 401, aud => 'them' ], [ 401, iss => 'US', aud => 'them' ],
	[ 401, iss => [ 'us' ], aud => 'them' ],
	[ 401, iss => 'them', aud => 'us' ],
	[ 404, iss => 'us', aud => 'them', exp => time() - 30 ],
	[ 401, iss => 'us', aud => 'them', exp => time() - 90 ],
	[ 404, iss => 'us', aud => 'them', nbf => time() + 30 ],
	[ 401, iss => 'us', aud => 'them', nbf => time() + 90 ],
) {
	my ($want, %claims) = @$case;

	is(status(token('r1', claims => { exp => $late, %claims }), $us),
		$want, 'us: ' . JSON::PP->new->canonical->encode(\%claims));
}

# a cached result is valid only under the rules of one location, whoever has
# used the token before

for my $case ([ 'one', 'one', 404 ], [ 'two', 'two', 404 ],
	[ 'one', 'two', 401 ], [ 'two', 'one', 401 ])
{
	my ($at, $aud, $want) = @$case;
	my $token = token('h1', claims => { exp => $late, sub => 'alice',
		aud => $aud });
	my $tail = '/v1/reconstructions/' . 'a' x 64;

	for (1 .. 2) {
		my $r = get("/$at$tail", $token, port => 8445);

		is($r->{status}, $want, "$at: a token for $aud");
		is($r->header_value('X-Who'), $want == 401 ? ','
			: 'alice,read', "$at: a token for $aud: variables");
	}

	is(get("/two$tail?three=1", $token, port => 8445)->{status},
		$aud eq 'one' ? 404 : 401, "from two to one: a token for $aud");
	is(get('/swap/', $token, port => 8445)->{status},
		$aud eq 'two' ? 200 : 403, "swap: a token for $aud");
}

# --------------------------------------------------------------------------
# TLS: a token over plain HTTP is refused, valid or not

for my $token (token('h1'), 'x.y.z') {
	my $r = $t->get($path, { Authorization => "Bearer $token" },
		port => 8443);

	is($r->{status}, 403, 'plain HTTP');
	is($r->json()->{error}{code}, 'tls_required', 'in clear: code');
}

is(tls_status(token('h1')), 404, 'over TLS: good');
is(tls_status('x.y.z'), 401, 'over TLS: bad');

# --------------------------------------------------------------------------
# the cache stores a token's result until the token expires, and no longer

my $soon = time() + 3;
my $short = token('e1', claims => { exp => $soon });

is(status($short), 404, 'a token about to expire') for 1 .. 4;

wait_for(10, sub { time() > $soon });

is(status($short), 401, 'has expired, cached or not') for 1 .. 4;

my $r = get($path, $short);

is($r->json()->{error}{code}, 'expired_token', 'code expired_token');

# --------------------------------------------------------------------------
# a reload adds and removes keys

my %tokens = map { $_ => token($_) } qw/ h1 e1 e2 e3 r1 /;

is(status($tokens{$_}), $_ eq 'e3' ? 401 : 404, "before: $_")
	for sort keys %tokens;

key_file('keys.json', jwks(qw/ e2 e3 /));
$t->reload();

is(status($tokens{$_}), $_ =~ /^(?:e1|r1)$/ ? 401 : 404, "after: $_")
	for sort keys %tokens;

# two keys with the same id are accepted, as during a change of keys

key_file('keys.json', jwks('e2', [ 'e2', 'e3' ], 'r1'));
$t->reload();

is(status($tokens{$_}), 404, "two keys with one id: $_") for qw/ e2 r1 h1 /;
is(status(token('e3', header => { kid => 'e2' })), 404,
	'two keys with one id: the second');
is(status($tokens{e3}), 401, 'two keys with one id: its old id');

# --------------------------------------------------------------------------
# an invalid key file is refused, and no log shows its contents

for my $case ([ 'ed.key', 'private', 0600 ], [ 'open.pem', 'public', 0644 ],
	[ 'secrets.json', 'oct', 0600 ])
{
	my ($name, $what, $mode) = @$case;

	my $text = $what eq 'private' ? slurp($keys{r1})
		: $what eq 'public' ? public_pem('ed')
		: "{\"keys\":[{\"kty\":\"oct\",\"k\":\"$secret\"}]}";

	$t->write_file($name, $text);
	chmod($mode, $t->dir() . "/$name");

	my ($ok, $out) = $t->config_test(undef,
		http => "xet_token_key %%DIR%%/$name;");

	ok(!$ok, "nginx -t: $name");
	unlike($out, qr/$secret|[A-Za-z0-9+\/]{40}/,
		"nginx -t: $name: not shown");
}

# --------------------------------------------------------------------------
# Tokens appear nowhere.  nginx's own debug log has each header of a request, so
# it must stay private; no line of the module in that log has a token.

my $xorb = make_xorb(random_bytes(1, 100000));
my $write = token('h1', claims => { exp => $late, scope => 'write',
	repo => 'a/b', sub => 'alice' });

for my $case ([ 'POST', "/api/v1/xorbs/default/$xorb->{hash}",
	$xorb->{bytes}, 200 ], [ 'POST', '/api/v1/shards', 'x' x 100, 400 ],
	[ 'GET', '/api/v1/reconstructions/' . 'b' x 64, undef, 404 ],
	[ 'GET', '/api/nothing', undef, 404 ],
	[ 'PUT', '/api/v1/shards', 'x', 405 ],
	[ 'HEAD', '/api/v1/files/' . 'c' x 64, undef, 404 ],
	[ 'POST', '/api/v1/telemetry', '{"event":"e"}', 200 ])
{
	my ($method, $uri, $body, $want) = @$case;

	$r = $t->http($method, $uri, { Authorization => "Bearer $write" },
		$body);

	is($r->{status}, $want, "$method $uri");
	unlike($r->{raw} // $r->{body}, qr/\Q$write\E/, "$method $uri: answer");
}

push @sent, $write;

my %seen;
my %parts = map { (/([^.]{30})[^.]*$/)[0] // $_ => 1 }
	grep { length($_) > 100 } @sent;

cmp_ok(scalar(keys %parts), '>', 100, 'tokens to look for');

for my $line (split(/\n/, $t->log())) {
	next if $line =~ /\[debug\] .*http header: "Authorization: /;

	for my $part (keys %parts) {
		$seen{$line} = 1 if index($line, $part) >= 0;
	}
}

is(join("\n", sort keys %seen), '', 'no token in our lines of a debug log');
unlike($t->log(), qr/\Q$secret\E/, 'no secret in it');

my $statements = slurp($t->dir() . '/pg/postgres.log');

like($statements, qr/xet\./, 'statements are logged');
is(join(' ', grep { index($statements, $_) >= 0 } keys %parts), '',
	'no token in PostgreSQL');
is(join(' ', grep { index($t->read_file('access.log'), $_) >= 0 }
	keys %parts), '', 'no token in the access log');

$t->done();

# --------------------------------------------------------------------------

sub key_file {
	my ($name, $text) = @_;

	$t->write_file($name, $text);
	chmod(0600, $t->dir() . "/$name");
}

sub openssl {
	my ($status, $out) = run_command([ 'openssl', @_ ]);

	die "openssl @_: $out" if $status != 0;
}

sub private_key {
	my ($name) = @_;

	my @kind = $name =~ /^ed/ ? ('-algorithm', 'ed25519')
		: $name =~ /^e/ ? ('-algorithm', 'EC', '-pkeyopt',
			'ec_paramgen_curve:prime256v1')
		: ('-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048');

	openssl('genpkey', @kind, '-out', "$dir/$name.key");

	return "$dir/$name.key";
}

sub public_pem {
	my ($name) = @_;

	openssl('pkey', '-in', $keys{$name}, '-pubout', '-out', "$dir/pub");

	return slurp("$dir/pub");
}

sub public_der {
	my ($name) = @_;

	my $pem = public_pem($name);
	$pem =~ s/-----[^-]+-----//g;

	return decode_base64($pem);
}

# Returns a JWK set of keys, or of [ id, key ].

sub jwks {
	my (@keys) = @_;

	return JSON::PP->new->canonical->encode({ keys => [ map { jwk(ref $_
		? @$_ : ($_, $_)) } @keys ] });
}

sub jwk {
	my ($kid, $name) = @_;

	my $der = public_der($name);
	my %jwk = (kid => $kid, use => 'sig');

	if ($name =~ /^e\d/) {
		my ($x, $y) = unpack('x1 a32 a32', substr($der, -65));

		return { %jwk, kty => 'EC', crv => 'P-256', alg => 'ES256',
			x => encode_base64url($x), y => encode_base64url($y) };
	}

	my ($status, $out) = run_command([ 'openssl', 'rsa', '-in',
		$keys{$name}, '-noout', '-modulus' ]);
	my ($n) = $out =~ /Modulus=(\w+)/;

	return { %jwk, kty => 'RSA', alg => 'RS256', e => 'AQAB',
		n => encode_base64url(pack('H*', $n)) };
}

sub text {
	my ($value) = @_;

	return encode_base64url(ref $value
		? JSON::PP->new->canonical->encode($value) : $value);
}

# Returns a token signed with a key.  Options:
#
#     header   { ... } added to the valid header, undef omits a member; or text
#     claims   { ... } added to a read scope; or text
#     secret   secret instead of the right one

sub token {
	my ($key, %o) = @_;

	my $alg = $key eq 'ed' ? 'EdDSA' : $key =~ /^e/ ? 'ES256'
		: $key eq 'r1' ? 'RS256' : 'HS256';
	my $header = $o{header} // {};
	my $claims = $o{claims} // { exp => time() + 600 };

	$header = { alg => $alg, $key eq 'ed' ? () : (kid => $key),
		%$header } if ref $header;
	$claims = { scope => 'read', %$claims } if ref $claims;

	for my $part (grep { ref } $header, $claims) {
		delete $part->{$_} for grep { !defined $part->{$_} }
			keys %$part;
	}

	my $input = text($header) . '.' . text($claims);

	return "$input." . encode_base64url(signature($key, $input, %o));
}

# Returns a compact token; by default signed with the secret.

sub compact {
	my ($claims, $key, $sign, $id) = @_;

	return Test::Xet::Compact::token($claims, $id // $key // 'h1',
		$sign // sub { hmac_sha256($_[0], pack('H*', $secret)) });
}

# Returns the id of a public key: its thumbprint.

sub public_id {
	my ($key) = @_;

	return encode_base64url(sha256('{"crv":"Ed25519","kty":"OKP","x":"'
		. encode_base64url(substr(public_der($key), -32)) . '"}'));
}

sub signature {
	my ($key, $input, %o) = @_;

	return hmac_sha256($input, $o{secret} // pack('H*', $secret))
		if $key eq 'h1';

	spew("$dir/input", $input);

	if ($key eq 'ed') {
		openssl('pkeyutl', '-sign', '-rawin', '-inkey', $keys{ed},
			'-in', "$dir/input", '-out', "$dir/sig");
		return slurp("$dir/sig");
	}

	openssl('dgst', '-sha256', '-sign', $keys{$key}, '-out', "$dir/sig",
		"$dir/input");

	my $sig = slurp("$dir/sig");

	return $sig if $key eq 'r1';

	# two integers in ASN.1, converted to 32 bytes each

	my ($r, $s) = unpack('x3 C/a x1 C/a', $sig);

	return join('', map { substr("\0" x 32 . $_, -32) } $r, $s);
}

sub get {
	my ($uri, $token, %o) = @_;

	push @sent, $token;

	return $t->get($uri, { Authorization => "Bearer $token" }, %o);
}

sub tls_status {
	my ($token) = @_;

	my (undef, $out) = run_command([ 'curl', '-sk', '-o', '/dev/null',
		'-w', '%{http_code}', '-H', "Authorization: Bearer $token",
		'https://127.0.0.1:' . $t->port(8444) . $path ]);

	return $out;
}

sub status {
	my ($token, $uri) = @_;

	return get($uri // $path, $token)->{status};
}
