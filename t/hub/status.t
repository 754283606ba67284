#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The status page and the metrics beside a Hub with private repos: with the
# shipped configuration they have sums and words, but no name, path, user, hash
# or token, not even after damage, deletions, refused requests and jobs.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Pages;
use Test::Xet::Process qw/ wait_for /;

use Digest::SHA qw/ sha256_hex /;
use File::Find ();

start_pages();

my $data = join('', map { pack('L', $_ * 2654435761 % 4294967296) }
	1 .. 60000);

create('zebra', 1);
commit('zebra', 'walrus title', 'walrus.bin' => $data,
	'README.md' => "---\ntags: [okapi]\n---\n# lemur\n");
create('gazelle', 1);
commit('gazelle', 'walrus again', 'walrus.txt' => 'walrus');

my $uri = '/alice/zebra/resolve/main/walrus.bin';
my $sha256 = sha256_hex($data);
my ($hash) = $t->sql("SELECT encode(hash, 'hex') FROM xet.hub_paths"
	. " WHERE path = 'walrus.bin'");

is($t->get($uri, \%alice)->{body}, $data, 'the owner reads the file');
is($t->get($uri)->{status}, 404, 'a stranger does not');
is($t->get("$uri?download=okapi", { Authorization => "Bearer $token{read}x" })
	->{status}, 401, 'nor a broken token');
is($t->http('DELETE', '/api/repos/delete', { %alice, 'Content-Type' =>
	'application/json' }, \'{"name":"gazelle"}')->{status}, 200,
	'a repo is deleted');

my $read = $t->get('/api/models/alice/zebra/xet-read-token/main', \%alice)
	->json()->{accessToken};

my %read = (Authorization => "Bearer $read");

is($t->get("/api/v1/reconstructions/$hash", \%read)->{status}, 200,
	'a reconstruction');
unlike(whole(), words(), 'nothing private');

# damage, which the status page tells in words

$t->allow(qr/can't be read/, qr/is missing or has another size/);

File::Find::find({ no_chdir => 1, wanted => sub {
	unlink($_) if -f && m!/store/.*[0-9a-f]{20}! && -s > 100000;
} }, $t->{dir});

ok(wait_for(60, sub {
	$t->get($uri, \%alice);
	$t->get('/status')->{body} =~ /damaged|missing/;
}), 'a check tells of the damage') or diag($t->get('/status')->{body});

unlike(whole(), words(), 'nothing private after damage');
like($t->get('/status', \%alice)->{body}, qr/damaged|missing/,
	'the same with a token');
unlike($t->get('/status?format=json&repos=1', \%alice)->{body}, words(),
	'a request can not ask for repos');

# they close to other addresses, whatever a request says about its origin

for my $at (qw( /status /status?format=json /metrics )) {
	my $url = $t->url($at);

	my $code = `curl -s -o /dev/null -w '%{http_code}' --interface \\
		127.0.0.2 -H 'X-Forwarded-For: 127.0.0.1' '$url'`;

	is($code, 403, "$at: not for another address");
}

$t->done();

sub whole {
	return join("\n", map {
		my ($at, $accept) = @$_;
		my $r = $t->get($at, { Accept => $accept });

		is($r->{status}, 200, "$at, $accept");
		$r->{body} . "\n" . join("\n", map { "@$_" }
			$r->header_value('Link') // ());
	} [ '/status', '*/*' ], [ '/status', 'text/html' ],
		[ '/status?format=json', '*/*' ], [ '/metrics', '*/*' ],
		[ '/-/status.html', 'text/html' ], [ '/api/v1/health', '*/*' ]);
}

sub words {
	return qr/zebra|gazelle|walrus|okapi|lemur|alice|$sha256|$hash
		|\Q$token{admin}\E/xi;
}
