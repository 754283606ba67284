#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Two edges and an origin, with conf/edge.conf: edges check signatures, clients
# share cache entries by path, ranges are exact, uploads are verified, and
# cached data remain available when the origin is down.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Edge;


my %modes = (strict => '', cacheable => 'xet_url_mode cacheable;');

for my $mode (sort keys %modes) {
	my $origin = Test::Xet->new(workers => 1, log => 'info',
		http => 'xet_token_key %%DIR%%/token.key;',
		server => "$modes{$mode}\n" . <<'EOC');
location /token-api/ {
            xet_api;
            xet_api_base /token-api;
            xet_auth token;
            xet_access store;
        }

        location ~ ^/token/(?<who>\w+)$ {
            xet_token;
            xet_token_subject $who;
        }

        location /several/ {
            xet_api;
            xet_api_base /several;
            xet_auth off;
            xet_url_ranges 8;
        }

        location = /metrics { allow 127.0.0.1; deny all; xet_metrics; }
        location = /status { allow 127.0.0.1; deny all; xet_status; }
EOC

	$origin->write_file('token.key', 'token:t1:' . '70' x 32 . "\n");
	chmod(0600, $origin->dir() . '/token.key');

	my @edges = map { Test::Xet::Edge::edge($origin) } 1 .. 2;

	# URLs point to the first edge, and later to the second one

	Test::Xet::Edge::base($origin, $edges[0]);

	$origin->run();
	$_->run() for @edges;

	for my $uri (qw! /metrics /status //status /%73tatus?format=json !) {
		is($origin->get($uri)->{status}, 200, "$mode: $uri");
		is($edges[0]->get($uri)->{status}, 404,
			"$mode: $uri: not by way of an edge");
	}

	my $data = mix(3, 9000000);
	my $file = $origin->upload($data, xorb_chunks => 40);

	# ------------------------------------------------------------------
	# several downloads through the edge: the origin gets only one request
	# for each part

	for my $range (undef, [ 5, 4999999 ], [ 4000000, 8999999 ],
		[ 8999999, 8999999 ], undef)
	{
		my $d = $origin->download($file->{hash},
			$range ? (range => $range) : (), size => 9000000);
		my ($a, $b) = $range ? @$range : (0, 8999999);

		is_deeply($d->{errors}, [], "$mode: rules, $a-$b");
		ok($d->{data} eq substr($data, $a, $b - $a + 1),
			"$mode: data, $a-$b");
	}

	my $asked = asked($origin);

	$origin->download($file->{hash}, size => 9000000);
	is(asked($origin), $asked, "$mode: nothing more from the origin");

	# other clients with their own tokens: their URLs have other signatures,
	# but the bytes are the same

	for my $who (qw/ alice bob /) {
		my $d = download_as($origin, $edges[0], $who, $file->{hash});

		ok($d->{data} eq $data, "$mode: $who: data, by the edge");
		is_deeply($d->{errors}, [], "$mode: $who: rules");
	}

	is(asked($origin), $asked,
		"$mode: nothing more from the origin for others");

	my $refused = $edges[0]->get('/token-api/v1/reconstructions/'
		. $file->{hash});

	is($refused->{status}, 401, "$mode: the origin wants a token");

	my $sent = sent($origin);

	cmp_ok($sent, '<', 1.2 * stored($origin),
		"$mode: each byte left the origin once");

	# the second edge has its own cache

	Test::Xet::Edge::base($origin, $edges[1]);
	$origin->reload();

	my $d = $origin->download($file->{hash}, size => 9000000);
	ok($d->{data} eq $data, "$mode: other edge");
	cmp_ok(asked($origin), '>', $asked, "$mode: other edge: requests");

	# the second edge serves another client, whose URLs point to this edge,
	# from its cache

	$asked = asked($origin);
	$d = download_as($origin, $edges[1], 'bob', $file->{hash});
	ok($d->{data} eq $data, "$mode: other edge, second client");
	is(asked($origin), $asked, "$mode: other edge: its cache is hit");

	# all bytes of the file, read while the origin still runs

	my @whole = whole($origin, $file->{hash});
	my $raw = join('', map { raw($edges[1], $_) } @whole);

	cmp_ok(length($raw), '>', 4000000, "$mode: bytes of the file");

	# ------------------------------------------------------------------
	# requests that the edge refuses

	my $url = url($origin, $file->{hash});
	my ($path) = $url->{url} =~ m!^http://[^/]+(/.*)!;
	my ($first, $last) = @{ $url->{range} };
	my %range = (Range => "bytes=$first-$last");
	my $edge = $edges[1];
	my $r = $edge->get($path, \%range);

	is($r->{status}, 206, "$mode: edge: signed");
	is(length($r->{body}), $last - $first + 1, "$mode: edge: length");
	like($r->header_value('Cache-Control'), qr/^public, max-age=\d+, imm/,
		"$mode: edge: Cache-Control");
	is(scalar(@{ $r->{headers}{'cache-control'} }), 1,
		"$mode: edge: one Cache-Control");
	is(scalar(@{ $r->{headers}{etag} }), 1, "$mode: edge: one ETag");

	# responses from the cache have their own request ids: no response
	# repeats the id of another request

	my @answers = ($r, $edge->get($path, \%range), $edge->get($path),
		map { $edge->get($_) } '/api/health', '/api/health', '/x');
	my %ids = map { $_ => 1 }
		map { @{ $_->{headers}{'x-request-id'} // [] } } @answers;

	is(scalar(keys %ids), 6, "$mode: edge: X-Request-Id");

	(my $bad = $path) =~ s/s=(.)/'s=' . ($1 eq 'A' ? 'B' : 'A')/e;

	is($edge->get($bad, \%range)->{status}, 403,
		"$mode: edge: wrong signature");

	($bad = $path) =~ s/e=(\d+)/'e=' . ($1 + 600)/e;

	is($edge->get($bad, \%range)->{status}, 403,
		"$mode: edge: altered expiry");

	(my $plain = $path) =~ s/\?.*//;

	is($edge->get($plain, \%range)->{status}, 403,
		"$mode: edge: no signature");

	if ($mode eq 'strict') {
		is($edge->get($path)->{status}, 403,
			"$mode: edge: no range");
		is($edge->get($path,
			{ Range => 'bytes=0-' . ($last + 1) })->{status},
			403, "$mode: edge: a byte more");
	}

	# ------------------------------------------------------------------
	# several ranges: the edge serves them, but does not cache them

	my $half = int(($first + $last) / 2);

	if ($mode eq 'cacheable') {
		$r = $edge->get($path,
			{ Range => "bytes=$first-99,200-$half" });

		is($r->{status}, 206, "$mode: several ranges");
		is_deeply([ map { length($_->{body}) } @{ $r->parts() } ],
			[ 100 - $first, $half - 199 ],
			"$mode: several ranges, parts");
	}

	if ($mode eq 'strict') {
		my @parts = ([ $first, $first + 99 ], [ $half, $half + 49 ]);
		my ($several, @list) = Test::Xet::Edge::several($origin);

		$r = $edge->get($several,
			{ Range => 'bytes=' . join(',', @list) });

		is($r->{status}, 206, "$mode: several ranges");
		is_deeply([ map { "$_->{start}-$_->{end}" }
			@{ $r->parts() } ], \@list,
			"$mode: several ranges, parts");
		is($edge->get($several, { Range => 'bytes=' . join(',', @list,
			'999999990-999999999') })->{status}, 403,
			"$mode: several ranges, and one that is not signed");
		is($edge->get($path, { Range => "bytes=$parts[0][0]-"
			. "$parts[0][1],$parts[1][0]-$parts[1][1]" })
			->{status}, 403, "$mode: several of one");
	}

	# the ETag is the name of the xorb's copy, even for cached responses

	my ($name) = $path =~ m!/(\w{64}\.\w{8})\?!;

	is($edge->get($path, { %range, 'If-None-Match' => "\"$name\"" })
		->{status}, 304, "$mode: edge: 304");
	is($edge->head($path, \%range)->{status}, 206, "$mode: edge: HEAD");

	# ------------------------------------------------------------------
	# uploads through the edge: bad ones do not reach the origin

	my $xorb = make_xorb(random_bytes(8, 500000));
	my $broken = $xorb->{bytes};

	substr($broken, -100, 1) ^= "\x04";

	$r = $edge->post("/api/v1/xorbs/default/$xorb->{hash}", \$broken);

	is($r->{status}, 400, "$mode: a bad upload");
	is($r->json()->{error}{code}, 'hash_mismatch',
		"$mode: a bad upload: code");
	is(join("\n", grep { /$xorb->{hash}/ && !/" (?:400|499) / }
		uploads($origin)), '',
		"$mode: a bad upload: broken off at the origin");
	unlike($origin->log(), qr/hash_mismatch/,
		"$mode: a bad upload: the origin had nothing to verify");

	$r = $edge->post("/api/v1/xorbs/default/$xorb->{hash}",
		\$xorb->{bytes});
	is($r->{body}, '{"was_inserted":true}', "$mode: a good upload");

	my $other = $edge->upload(mix(12, 300000));

	ok($other->{hash}, "$mode: a file by way of the edge");
	ok($origin->download($other->{hash})->{data} eq mix(12, 300000),
		"$mode: the file is downloaded");

	# a file by PUT, larger than any xorb or shard

	$r = $edge->put('/api/v1/files', "\0" x (81 << 20), {},
		timeout => 120);
	is($r->{status}, 200, "$mode: PUT of a file by way of the edge");
	is($r->json()->{size}, 81 << 20, "$mode: PUT of a file: its size");

	# ------------------------------------------------------------------
	# the origin stops, and the cache still serves

	$origin->stop();

	$r = $edge->get($path, \%range);

	is($r->{status}, 206, "$mode: cached, the origin is gone");
	is(length($r->{body}), $last - $first + 1,
		"$mode: cached, the origin is gone: length");

	my $gone = join('', map { raw($edge, $_) } @whole);

	ok($gone eq $raw, "$mode: cached, the origin is gone: all of the file");
	is($edge->get('/api/health')->{status}, 502,
		"$mode: the API is unavailable");

	$_->allow(qr/connect\(\) failed/) for @edges;

	$_->check() for @edges;
	$_->remove() for @edges;
	$origin->check();
	$origin->remove();
}

done_testing();

# --------------------------------------------------------------------------

# Returns the log lines of data requests, with the bytes that the origin sent.

sub lines {
	my ($origin) = @_;

	return grep { m!"GET /xorbs/! } split(/\n/,
		$origin->read_file('access.log'));
}

sub asked { return scalar(lines($_[0])) }

sub sent {
	my $sum = 0;

	$sum += (/" 20[06] (\d+) /)[0] // 0 for lines($_[0]);

	return $sum;
}

sub uploads {
	my ($origin) = @_;

	return grep { m!"POST /api/v1/xorbs/! } split(/\n/,
		$origin->read_file('access.log'));
}

# Downloads a file through an edge, with a token of the named user.

sub download_as {
	my ($origin, $edge, $who, $hash) = @_;

	my $token = $origin->get("/token/$who")->json()->{accessToken};

	return $edge->download($hash, base => '/token-api',
		headers => { Authorization => "Bearer $token" },
		size => 9000000);
}

# whole() returns paths and ranges of all data of a file; raw() returns the
# bytes of one range.

sub whole {
	my ($origin, $hash) = @_;

	my $info = $origin->get("/api/v1/reconstructions/$hash")->json()
		->{fetch_info};

	return map { [ $_->{url} =~ s!^http://[^/]+!!r,
		"$_->{url_range}{start}-$_->{url_range}{end}" ] }
		map { @{ $info->{$_} } } sort keys %$info;
}

sub raw {
	my ($edge, $of) = @_;

	my $r = $edge->get($of->[0], { Range => "bytes=$of->[1]" });

	return $r->{status} == 206 ? $r->{body} : "status $r->{status}";
}

sub stored {
	my ($origin) = @_;

	return $origin->sql('select sum(stored_size) from xet.xorbs');
}

sub url {
	my ($origin, $hash) = @_;

	my $r = $origin->get("/api/v1/reconstructions/$hash")->json();
	my ($xorb) = sort keys %{ $r->{fetch_info} };
	my $entry = $r->{fetch_info}{$xorb}[0];

	return { url => $entry->{url},
		range => [ @{ $entry->{url_range} }{qw/ start end /} ] };
}
