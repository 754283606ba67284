#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A key for one purpose is not accepted for another purpose: neither in key
# files, where each line names its purpose, nor in requests that are signed with
# any bytes derived from a key file.  The purposes are data URLs (an edge has
# their key), tokens, dedup responses, and LFS URLs, whose keys are derived from
# the token keys.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ spew /;
use Test::Xet::Table;
use Test::Xet::Token;

use Digest::SHA qw/ hmac_sha256 sha256 sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64url /;

my %hex = (url => '5e' x 32, token => 'ab' x 32, dedup => 'd0' x 32);
my %line = (url => "url:k1:$hex{url}", token => "token:t1:$hex{token}",
	dedup => "dedup:$hex{dedup}");

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth token;',
	Test::Xet::Token::token_location()), workers => 1, log => 'info');
my $json = JSON::PP->new()->canonical();
my $dir = $t->dir();

$t->write_file("$_.key", "$line{$_}\n") for keys %line;
chmod(0600, map { "$dir/$_.key" } keys %line);

# --------------------------------------------------------------------------
# key files: nginx -t

my %file = (%line, bare => $hex{url}, 'without a purpose' => "k1:$hex{url}",
	upper => uc($line{url}), pem => '-----BEGIN PRIVATE KEY-----',
	jwks => '{"keys":[]}');

for my $to (sort keys %line) {
	for my $from (sort keys %file) {
		next if $from eq $to;

		my $own = $to eq 'token' && $from =~ /pem|jwks/;
		my ($ok, $out) = try_file($to,
			($own ? '' : "# x\n\n") . "$file{$from}\n");
		my $found = { pem => 'token', jwks => 'token' }->{$from}
			// $from;

		ok(!$ok, "nginx -t: $from for $to");

		if ($own) {
			like($out, qr/key 1 of "\S+keys\/tried"/,
				"nginx -t: $from for $to: its own form");

		} elsif ($line{$found}) {
			like($out, qr/invalid\ key\ in\ "\S+",\ line\ 3:\ the
				\ key\ is\ of\ purpose\ "$found";\ expected
				\ one\ of\ purpose\ "$to"/x,
				"nginx -t: $from for $to: said so");
		} else {
			like($out, qr/line 3: the key names no purpose/,
				"nginx -t: $from for $to: said so");
		}

		unlike($out, qr/(?:5e|ab|d0){8}/i,
			"nginx -t: $from for $to: no secret");
	}
}

# a second line for another purpose, and the same bytes for two purposes

for my $to (sort keys %line) {
	for my $from (grep { $_ ne $to } sort keys %line) {
		my $mine = $line{$to} =~ s/\w{64}/'7c' x 32/er;

		my ($ok, $out) = try_file($to, "$mine\n$line{$from}\n");

		ok(!$ok && $out =~ /line 2: the key is of purpose "$from"/,
			"nginx -t: $from behind a key for $to");

		($ok, $out) = try_file($to, $line{$to}
			=~ s/\w{64}/$hex{$from}/r);

		ok(!$ok && $out =~ /is the same as the key in/,
			"nginx -t: the bytes of $from for $to");
		unlike($out, qr/(?:5e|ab|d0){8}/i,
			"nginx -t: the bytes of $from for $to: no secret");
	}
}

# a key file is not accepted as another secret

for my $key (sort keys %line) {
	my ($ok, $out) = $t->config_test(undef, http => $t->{o}{http}
		. " xet_store_peer http://127.0.0.1:1 token=%%DIR%%/$key.key;");

	ok(!$ok && $out =~ /no token in "/, "nginx -t: $key as a peer's token");
}

sub try_file {
	my ($purpose, $content) = @_;

	chmod(0600, $t->write_file('keys/tried', $content));

	my $directive = "xet_${purpose}_key";

	return $t->config_test(undef, http => $t->{o}{http}
		=~ s!(xet_token_key) \S+;!$1 %%DIR%%/keys/tried;!r)
		if $purpose eq 'token';

	return $t->config_test(undef, directives => {
		$directive => '%%DIR%%/keys/tried' });
}

# --------------------------------------------------------------------------
# key files: the command line

my $xorb = 'ab' x 32 . '.00000001';

spew("$dir/bare.key", "$hex{url}\n");

for ([ 'token', 'token' ], [ 'url', 'url', $xorb ]) {
	my ($purpose, @args) = @$_;

	is(xet(undef, $args[0], '--key', "$dir/$purpose.key",
		@args[1 .. $#args])->{code}, 0, "xet @args: its own key");

	for my $from (grep { $_ ne $purpose } qw/ url token dedup bare /) {
		my $r = xet(undef, $args[0], '--key', "$dir/$from.key",
			@args[1 .. $#args]);

		is($r->{code}, 3, "xet $args[0] --key $from.key");
		is($r->{out}, '', "xet $args[0] --key $from.key: nothing");
		like($r->{err}, $from eq 'bare' ? qr/names no purpose/
			: qr/is of purpose "$from"; .* "$purpose"$/,
			"xet $args[0] --key $from.key: said so");
		unlike($r->{err}, qr/(?:5e|ab|d0){8}/,
			"xet $args[0] --key $from.key: no secret");
	}
}

# --------------------------------------------------------------------------
# requests

$t->run();

my $token = jwt(pack('H*', $hex{token}), 'alice');
my $alice = { Authorization => "Bearer $token" };
my $late = time() + 600;

is($t->post('/api/repos/create', \$json->encode({ name => 'm',
	organization => 'alice', private => JSON::PP::true }), { %$alice,
	'Content-Type' => 'application/json' })->{status}, 200, 'a repo');

my $data = 'what only alice has';
my $sha256 = sha256($data);
my ($store) = action('upload')->{href} =~ /[?&]r=([^&]+)/;

# the bytes of each key file, and all keys that can be derived from them with
# the server's labels

my @labels = ('xet data url 1', 'xet dedup 1', 'xet token seed 1',
	'xet lfs url 1', 'xet grant 1', 'xet key mark 1', 'xet hub lfs 1');
my %made;

for my $name (sort keys %hex) {
	my $bytes = pack('H*', $hex{$name});
	my $seed = derived_key($bytes, 'xet token seed 1');

	$made{"$name.key as it is"} = $bytes;
	$made{"$name.key for $_"} = derived_key($bytes, $_) for @labels;
	$made{"$name.key, its seed for $_"} = derived_key($seed, $_)
		for @labels;
}

my %right = (data => 'url.key for xet data url 1',
	token => 'token.key as it is',
	lfs => 'token.key, its seed for xet lfs url 1');

# the right key is tried first, so that a later refusal must be due to the key

is(lfs('PUT', $made{$right{lfs}}), 200, 'LFS: a PUT by the right key');
is($t->post('/api/models/alice/m/commit/main', \join("\n", map {
	$json->encode($_) } { key => 'header', value => { summary => 'x' } },
	{ key => 'lfsFile', value => { path => 'x', algo => 'sha256',
	oid => sha256_hex($data), size => length($data) } }), { %$alice,
	'Content-Type' => 'application/x-ndjson' })->{status}, 200,
	'LFS: its commit');
is(lfs('GET', $made{$right{lfs}}), 200, 'LFS: a GET by the right key');
is(data($made{$right{data}}), 404, 'a data URL by the right key');
is(who($made{$right{token}}), 200, 'a token by the right key');

for my $name (sort keys %made) {
	my $key = $made{$name};

	if ($name ne $right{lfs}) {
		is(lfs('PUT', $key), 403, "LFS, PUT: $name");
		is(lfs('GET', $key), 403, "LFS, GET: $name");
	}

	is(data($key), 403, "data: $name") if $name ne $right{data};
	is(who($key), 401, "token: $name") if $name ne $right{token};
}

# the rule of older versions, one key for data URLs and LFS, is not supported

is(lfs('PUT', pack('H*', $hex{url})), 403, 'an edge writes nothing by LFS');
is(lfs('GET', derived_key(pack('H*', $hex{url}))), 403,
	'an edge reads nothing by LFS');

# --------------------------------------------------------------------------
# an edge whose key for data URLs has the bytes of the origin's token key

my $edge = Test::Xet->new(pg => 0, log => 'info', directives => {
	map { $_ => undef } qw/ xet_postgres xet_dedup_key xet_store
		xet_url_base xet_thread_pool / },
	locations => 'location /xorbs/ { %%DATA%% }');

$edge->write_file('url.key', "url:k1:$hex{token}\n");
chmod(0600, $edge->dir() . '/url.key');
$edge->run();

my $same = pack('H*', $hex{token});

is(data(derived_key($same), $edge), 404, 'same bytes: a data URL');
is(data($same, $edge), 403, 'same bytes: a data URL by the secret of tokens');
is(data($made{$right{lfs}}, $edge), 403,
	'same bytes: a data URL by the key of LFS');
is(who(derived_key($same)), 401, 'same bytes: a token by the key of data');
is(lfs('PUT', derived_key($same)), 403, 'same bytes: LFS by the key of data');

$t->done();

# --------------------------------------------------------------------------

sub action {
	my ($operation) = @_;

	my $r = $t->post('/alice/m.git/info/lfs/objects/batch',
		\$json->encode({ operation => $operation,
		transfers => [ 'basic' ], objects => [ {
		oid => sha256_hex($data), size => length($data) } ] }),
		{ %$alice, 'Content-Type' => 'application/vnd.git-lfs+json' });

	return $r->json()->{objects}[0]{actions}{$operation};
}

# Returns the status for an LFS URL that is signed with these bytes.

sub lfs {
	my ($method, $key) = @_;

	my $mac = unpack('H*', hmac_sha256("xet hub lfs 1\0$sha256"
		. pack('CQ<', $method eq 'PUT', $late) . $store, $key));

	return $t->http($method, '/api/lfs/' . sha256_hex($data)
		. "?r=$store&e=$late&s=$mac", {}, $method eq 'PUT' ? \$data
		: undef)->{status};
}

# Returns the status for a data URL of a missing copy, signed with these bytes.

sub data {
	my ($key, $server) = @_;

	my $text = 'default/' . substr($xorb, 0, 2)
		. "/$xorb?r=0-9&e=$late&k=k1";

	return ($server // $t)->get("/xorbs/$text&s=" . url_mac($text, $key),
		{ Range => 'bytes=0-9' })->{status};
}

sub jwt {
	my ($key, $subject) = @_;

	my $text = join('.', map { encode_base64url($json->encode($_)) }
		{ alg => 'HS256' }, { exp => time() + 600, scope => 'write',
		sub => $subject });

	return "$text." . encode_base64url(hmac_sha256($text, $key));
}

sub who {
	my ($key) = @_;

	return $t->get('/api/whoami-v2', { Authorization => 'Bearer '
		. jwt($key, 'alice') })->{status};
}
