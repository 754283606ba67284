#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# An edge that verifies uploads in transit: the origin gets good bodies
# unchanged, and never a complete request with a bad body.  The test covers
# streaming and buffering, bodies with a length and chunked bodies, HTTP/1.1 and
# HTTP/2, slow clients and slow origins.  Memory does not grow with the body.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Origin;
use Test::Xet::Process qw/ run_command /;

use Digest::SHA qw/ sha256_hex /;
use List::Util qw/ max /;

my $http2 = 1;
$http2 = 0 if Test::Xet::Nginx::version() !~ /--with-http_v2_module/;
$http2 = 0 if `curl -V 2>&1` !~ /^Features:.* HTTP2\b/m;

sub location {
	my ($name, @more) = @_;

	return join("\n            ", "location /$name/ {",
		"xet_api_base /$name;", 'proxy_http_version 1.1;',
		'proxy_pass http://127.0.0.1:%%PORT_9000%%;',
		@more) . "\n        }\n\n        ";
}

# no store, database or keys: an edge that only verifies uploads needs none of
# them

my $t = Test::Xet->new(pg => 0, log => 'info', timeout => 900,
	http => 'client_max_body_size 80m;',
	directives => { xet_store => undef, xet_postgres => undef,
		xet_url_key => undef, xet_dedup_key => undef,
		xet_url_base => undef },
	server => ($http2 ? "listen 127.0.0.1:%%PORT_8081%% http2;\n" : '')
		. "xet_verify_body on;\n",
	locations => join('', location('stream',
			'proxy_request_buffering off;'),
		location('buffer', 'proxy_request_buffering on;'),
		location('small', 'proxy_request_buffering off;',
			'xet_body_buffer 16k;', 'client_body_buffer_size 1k;',
			'xet_xorb_max_size 1m;'),
		location('small-buffer', 'xet_body_buffer 16k;',
			'client_body_buffer_size 1k;',
			'xet_xorb_max_size 1m;'),
		location('large', 'proxy_request_buffering off;',
			'client_body_buffer_size 1m;', 'xet_body_buffer 1m;'),
		location('any', 'proxy_request_buffering off;', 'allow all;',
			'auth_basic x;', 'auth_basic_user_file none;',
			'satisfy any;'),
		location('slow', 'proxy_request_buffering off;',
			'client_body_timeout 1s;'),
		location('errors', 'proxy_request_buffering off;',
			'error_page 400 413 502 504 @error;'),
		"location \@error { xet_error; }\n        ",
		'location /there/ { return 418; error_page 418 = @there; }',
		'location @there { xet_api_base /there;'
			. ' proxy_request_buffering off;'
			. ' proxy_pass http://127.0.0.1:%%PORT_9000%%; }',
		location('other', 'proxy_request_buffering off;',
			'xet_verify_body off;')));

my $origin = origin();

$t->run();

my ($worker) = $t->worker_pids();
my $x = make_xorb(mix(1, 900000), footer => 'v1');
my $y = make_xorb(random_bytes(2, 300000));
my $bad = $x->{bytes};

substr($bad, $_, 1) ^= "\x10" for 700000 % length($bad);

# --------------------------------------------------------------------------
# ways to send a body; each returns [ status, body of the response, ... ]

my %ways = (
	length => sub {
		return h1(@_);
	},
	chunks => sub {
		return h1(@_[0, 1], chunked => 7000);
	},
	'a chunk' => sub {
		return h1(@_[0, 1], chunked => 1);
	},
	pieces => sub {
		my ($uri, $body) = @_;
		return h1($uri, [ unpack('(a20011)*', $body) ], pause => 0.001);
	},
	'HTTP/1.0' => sub {
		return h1(@_[0, 1], http10 => 1);
	},
	$http2 ? (
		'HTTP/2' => sub {
			return h2(@_[0, 1]);
		},
		'HTTP/2 without a length' => sub {
			return h2(@_[0, 1], 1);
		}) : ()
);

sub h1 {
	my ($uri, $body, %o) = @_;

	my $r = $t->post($uri, ref $body ? $body : \$body, undef,
		timeout => 20, %o);

	return [ $r->{status}, $r->{body}, $r ];
}

sub h2 {
	my ($uri, $body, $unknown) = @_;

	my $file = $t->write_file('curl.body', $body);
	my $from = $unknown ? '-T -' : "-T $file";
	my ($status, $out) = run_command([ 'sh', '-c', "curl -sS -m 30"
		. " --http2-prior-knowledge -w '|%{http_code}' -X POST"
		. " -H Expect: $from " . $t->url($uri, 8081) . " < $file" ]);

	return [ "curl $status", $out ] if $status != 0;

	my ($text, $code) = $out =~ /\A(.*)\|(\d+)\z/s;

	return [ $code, $text ];
}

sub uri {
	my ($location, $hash) = @_;

	return "/$location/v1/xorbs/default/$hash";
}

# Checks that the origin has received exactly this body.

sub passes {
	my ($name, $got, $body) = @_;

	my $seen = $origin->seen(1);

	is($got->[0], 200, "$name: status") or diag($got->[1]);
	is($got->[1], '{"was_inserted":true}', "$name: response of the origin");
	is($seen->{sha256}, sha256_hex($body), "$name: complete and unchanged");
}

# Checks that the edge has refused the request.

sub refused {
	my ($name, $got, $code, $status) = @_;

	is($got->[0], $status || 400, "$name: status");
	like($got->[1],
		qr/\A\{"error":\{"code":"(?:$code)","message":"[^"]+"\}\}\z/,
		"$name: answer of the edge");
}

sub nothing_whole {
	my ($name) = @_;

	my $got = h1(uri('stream', $y->{hash}), $y->{bytes});
	my $seen = $origin->seen(1);

	is($got->[0], 200, "$name: a good body after it");
	is($seen->{sha256}, sha256_hex($y->{bytes}),
		"$name: is all that is whole at the origin");
	is(scalar(grep { $_->{complete} } $origin->rest()), 0,
		"$name: no request after it");
}

# --------------------------------------------------------------------------
# good bodies pass and bad bodies are refused, however they are sent

my $junk = $y->{bytes} . 'x';
my $first = $y->{bytes};
my $last = $y->{bytes};

substr($first, 0, 1) = "\x07";
substr($last, -1) ^= "\x01";

for my $location (qw/ stream buffer small small-buffer large any /) {
	for my $way (sort keys %ways) {
		my $send = $ways{$way};
		my $name = "$location, $way";

		passes("$name: a xorb", $send->(uri($location, $x->{hash}),
			$x->{bytes}), $x->{bytes});

		refused("$name: a bit", $send->(uri($location, $x->{hash}),
			$bad), 'invalid_xorb|hash_mismatch');
		refused("$name: the first byte", $send->(uri($location,
			$y->{hash}), $first), 'invalid_xorb');
		refused("$name: the last byte", $send->(uri($location,
			$y->{hash}), $last), 'hash_mismatch');
		refused("$name: of another hash", $send->(uri($location,
			$x->{hash}), $y->{bytes}), 'hash_mismatch');
		refused("$name: a byte less", $send->(uri($location,
			$y->{hash}), substr($y->{bytes}, 0, -1)),
			'invalid_xorb');
		refused("$name: a byte more", $send->(uri($location,
			$y->{hash}), $junk), 'invalid_xorb');
		refused("$name: a byte", $send->(uri($location, $y->{hash}),
			'x'), 'invalid_xorb');
	}

	nothing_whole($location);
}

# an empty body, with and without a length

refused('empty', h1(uri('stream', $x->{hash}), ''), 'invalid_xorb');
refused('empty, in chunks', h1(uri('stream', $x->{hash}), '', chunked => 1),
	'invalid_xorb');
refused('no body', do {
	my $r = $t->http('POST', uri('stream', $x->{hash}));
	[ $r->{status}, $r->{body} ];
}, 'invalid_xorb');
refused('too large for nginx, error_page', do {
	my $r = $t->http('POST', uri('errors', $x->{hash}),
		{ 'Content-Length' => 81 << 20 });
	[ $r->{status}, $r->{body} ];
}, 'body_too_large', 413);
nothing_whole('empty');

# too large for the edge: refused in the middle

my $large = make_xorb(random_bytes(3, 1500000));

for my $way (sort keys %ways) {
	refused("too large, $way", $ways{$way}->(uri('small', $large->{hash}),
		$large->{bytes}), 'xorb_too_large', 413);
}

nothing_whole('too large');

# --------------------------------------------------------------------------
# uploads through a named location

passes('named location', h1(uri('there', $x->{hash}), $x->{bytes}),
	$x->{bytes});
refused('named location: bad', h1(uri('there', $x->{hash}), $bad),
	'invalid_xorb|hash_mismatch');
refused('named location: empty', h1(uri('there', $x->{hash}), ''),
	'invalid_xorb');
nothing_whole('named location');

# --------------------------------------------------------------------------
# shards: their structure is verified

my $file = $t->upload(mix(7, 400000), send => 0);
my $shard = $file->{shard};

for my $location (qw/ stream buffer small /) {
	for my $way (sort keys %ways) {
		for my $version (qw/ v1 v2 /) {
			passes("$location, $way: a shard, $version",
				$ways{$way}->("/$location/$version/shards",
				$shard), $shard);
		}

		refused("$location, $way: no shard", $ways{$way}->(
			"/$location/v1/shards", 'x' x 5000), 'invalid_shard');
		refused("$location, $way: half a shard", $ways{$way}->(
			"/$location/v1/shards", substr($shard, 0, -60)),
			'invalid_shard');
	}

	nothing_whole("$location: shards");
}

# --------------------------------------------------------------------------
# other requests, and uploads that the edge does not verify, pass to the origin

for my $case ([ 'GET', '/stream/v1/health' ],
	[ 'POST', '/stream/v1/telemetry', '{}' ],
	[ 'POST', '/stream/v1/xorbs/default/xyz', 'x' x 100 ],
	[ 'POST', '/stream/nothing', 'x' x 100 ],
	[ 'GET', uri('stream', $x->{hash}) ],
	[ 'POST', uri('other', $x->{hash}), $bad ])
{
	my ($method, $uri, $body) = @$case;
	my $r = $t->http($method, $uri, undef, $body);
	my $seen = $origin->seen(1);

	is($r->{status}, 200, "$method $uri: passed on");
	is($seen->{uri}, $uri, "$method $uri: to the origin");
	is($seen->{sha256}, sha256_hex($body // ''), "$method $uri: unchanged");
}

# --------------------------------------------------------------------------
# connections

my $c = $t->connect();

for (1 .. 3) {
	my $r = $c->exchange('POST', uri('stream', $x->{hash}), undef,
		\$x->{bytes});

	is($r->{status}, 200, 'one connection: good');
	$origin->seen(1);
}

my $r = $c->exchange('POST', uri('stream', $x->{hash}), undef, \$bad);

is($r->{status}, 400, 'one connection: bad');
is($r->header_value('Connection'), 'close', 'and closes the connection');
$c->close();
ok($origin->seen(0), 'the origin got a part');

# the edge responds as soon as it knows the verdict, even before the body is
# complete

$c = $t->http_start('POST', uri('stream', $x->{hash}),
	{ 'Content-Length' => 60 << 20 }, random_bytes(5, 600000));
$r = $c->response('POST');

is($r->{status}, 400, 'early: refused');
$c->close();

my $seen = $origin->seen(0);

ok($seen, 'early: truncated at the origin');
cmp_ok($seen->{received}, '<', 600001, 'early: only received bytes');

# clients that disconnect, in the middle and before the last byte

for my $location (qw/ stream buffer /) {
	for my $n (1000, length($x->{bytes}) - 1) {
		$c = $t->http_start('POST', uri($location, $x->{hash}),
			{ 'Content-Length' => length($x->{bytes}) },
			substr($x->{bytes}, 0, $n));
		select(undef, undef, undef, 0.2);
		$c->abort();
	}
}

$t->wait_log(qr/prematurely closed|reset by peer|499/i, 5);

# a client that stops sending

$c = $t->http_start('POST', uri('slow', $x->{hash}),
	{ 'Content-Length' => length($x->{bytes}) },
	substr($x->{bytes}, 0, 300000));
$r = $c->response('POST');
is($r->{status}, 0, 'a client that stops: closed, as nginx does');
$c->close();

nothing_whole('clients that leave');

# a client that sends slowly

passes('a slow client', h1(uri('small', $y->{hash}), $y->{bytes},
	trickle => 5000, pause => 0.005), $y->{bytes});

# many concurrent requests, with good and bad bodies

my (@open, %seen);

for my $i (1 .. 24) {
	my $body = $i % 3 ? $x->{bytes} : $bad;
	my $c = $t->http_start('POST', uri(qw/ stream buffer small /[$i % 3
		? $i % 2 : 0], $x->{hash}), { 'Content-Length' =>
		length($body), Connection => 'close' },
		substr($body, 0, 200000));

	push @open, [ $c, substr($body, 200000), $i % 3 ? 200 : 400 ];
}

for my $open (@open) {
	my ($c, $rest, $want) = @$open;

	$c->send($rest);
	is($c->response('POST')->{status}, $want, "many at once: $want");
	$c->close();
}

for (1 .. 16) {
	is($origin->seen(1)->{sha256}, sha256_hex($x->{bytes}),
		'many at once: complete and good');
}

nothing_whole('many at once');

# --------------------------------------------------------------------------
# HTTP/2: all bytes of a body may arrive before END_STREAM; an origin that
# counts bytes would take such a request as complete

SKIP: {
	skip 'no HTTP/2', 18 unless $http2;

	my $small = make_xorb(random_bytes(4, 40000));
	my $other = make_xorb(random_bytes(5, 40000));

	for my $location (qw/ stream buffer small /) {
		for my $body ($small->{bytes}, $other->{bytes}) {
			my $name = "$location, HTTP/2, the end apart, "
				. ($body eq $small->{bytes} ? 'good' : 'bad');
			my $c = h2_start(uri($location, $small->{hash}), $body);

			$c->read_some(1 << 20, 0.5);
			is(scalar(grep { $_->{complete} } $origin->rest()), 0,
				"$name: nothing complete before the end");

			$c->send(h2_frame(0, 1, ''));

			my $answer = '';

			wait_for(5, sub {
				$answer .= $c->read_some(1 << 20, 0.2);
				return $answer =~ /\}\z|\}.{9}\z/s;
			});
			$c->close();

			if ($body eq $small->{bytes}) {
				like($answer, qr/was_inserted/,
					"$name: passed");
				is(($origin->seen(1) || {})->{sha256},
					sha256_hex($body), "$name: unchanged");
				next;
			}

			like($answer, qr/hash_mismatch/, "$name: refused");
		}
	}

	# clients that disconnect, one of them with a bad body that is being
	# discarded

	for my $body ($x->{bytes}, "x$x->{bytes}") {
		for my $location (qw/ stream buffer /) {
			my $file = $t->write_file('curl.body', $body);

			run_command([ 'curl', '-sS', '-m', 0.5,
				'--limit-rate', '200k', '-X', 'POST',
				'--http2-prior-knowledge', '-H', 'Expect:',
				'-T', $file, $t->url(uri($location,
				$x->{hash}), 8081) ]);
		}
	}

	nothing_whole('HTTP/2: clients that leave');
}

# --------------------------------------------------------------------------
# origins that are slow, respond early, or are down; and memory

my $full = make_xorb(random_bytes(9, 63 << 20));

$t->fds_mark();

for my $location (qw/ stream buffer /) {
	$origin->stop();
	$origin = origin(rate => 40 << 20);

	my $before = $t->rss($worker);
	my $peak = $before;

	$c = $t->http_start('POST', uri($location, $full->{hash}),
		{ 'Content-Length' => length($full->{bytes}) });

	for (my $i = 0; $i < length($full->{bytes}); $i += 2 << 20) {
		$c->send(substr($full->{bytes}, $i, 2 << 20),
			timeout => 60) or last;
		$peak = max($peak, $t->rss($worker));
	}

	my $r = $c->response('POST', timeout => 60);

	$peak = max($peak, $t->rss($worker));
	$c->close();

	passes("$location: 63 MiB, a slow origin", [ @$r{qw/ status body /} ],
		$full->{bytes});

	diag(sprintf('%s: %d KiB more at the peak', $location,
		$peak - $before));
	cmp_ok($peak - $before, '<', 8192, "$location: 63 MiB, memory");
}

for my $location (qw/ stream buffer /) {
	$origin->stop();
	$origin = origin(early => 401);

	my $got = h1(uri($location, $x->{hash}), $x->{bytes});

	is($got->[0], 401, "$location: an early response");
	like($got->[1], qr/of_the_origin/, "$location: from the origin");

	$origin->stop();
	$origin = origin(hangup => 100000);

	$got = h1(uri($location, $x->{hash}), $x->{bytes});
	is($got->[0], 502, "$location: an origin that hangs up");

	$got = h1(uri($location, $x->{hash}), $bad);
	like($got->[0], qr/\A(?:400|502)\z/,
		"$location: an origin that hangs up, a bad body");

	$origin->stop();

	$got = h1(uri($location, $x->{hash}), $x->{bytes});
	is($got->[0], 502, "$location: no origin");

	$got = h1(uri('errors', $x->{hash}), $x->{bytes});
	refused('no origin, error_page', $got, 'bad_gateway', 502);

	$origin = origin();
}

# the origin is down while a job verifies: nginx responds before the job is done

$origin->stop();
$origin = origin(hangup => 1);

for my $round (1 .. 30) {
	@open = ();

	for (1 .. 8) {
		push @open, $t->http_start('POST', uri('stream', $x->{hash}),
			{ 'Content-Length' => length($x->{bytes}) },
			substr($x->{bytes}, 0, -1));
	}

	for my $c (@open) {
		eval { $c->send(substr($x->{bytes}, -1)) };

		my $r = eval { $c->response('POST') } || {};

		$seen{$r->{status} // 'closed'}++;
		$c->close();
	}
}

is(join(' ', grep { $_ ne 'closed' } keys %seen), 502,
	'origins that hang up at once') or diag(explain(\%seen));

$origin->stop();
$origin = origin();

# a bad body that is detected while a slow origin receives it: the edge aborts
# the request

my $broken = $full->{bytes};

substr($broken, 20 << 20, 1) ^= "\xff";

for my $way (grep { /length/ || /HTTP.2/ } sort keys %ways) {
	for my $location (qw/ stream buffer /) {
		$origin->stop();
		$origin = origin(rate => 30 << 20);

		passes("$location, $way: a slow origin",
			$ways{$way}->(uri($location, $full->{hash}),
			$full->{bytes}), $full->{bytes});
		refused("$location, $way: a slow origin, a bad body",
			$ways{$way}->(uri($location, $full->{hash}), $broken),
			'hash_mismatch|invalid_xorb');
		nothing_whole("$location, $way: a slow origin");
	}
}

$origin->stop();
$origin = origin();

# --------------------------------------------------------------------------
# a reload and an exit while jobs run

$c = $t->http_start('POST', uri('stream', $x->{hash}),
	{ 'Content-Length' => length($x->{bytes}), Connection => 'close' },
	substr($x->{bytes}, 0, 400000));
$t->reload();
$c->send(substr($x->{bytes}, 400000));
is($c->response('POST')->{status}, 200, 'across a reload');
$c->close();

# --------------------------------------------------------------------------
# nginx -t

for (['xet_verify_body maybe;', 'invalid value'],
	['xet_verify_body on; xet_verify_body on;', 'duplicate'],
	['xet_verify_body on; xet_body_buffer 1k;', 'xet_body_buffer'],
	['xet_verify_body on; xet_xorb_max_size 1k;', 'xet_xorb_max_size'],
	['xet_verify_body on; xet_api_base api;', 'xet_api_base'])
{
	my ($ok, $out) = $t->config_test(undef, server => $_->[0]);

	ok(!$ok, "nginx -t: $_->[0]");
	like($out, qr/\Q$_->[1]\E/, "nginx -t: $_->[0]: text");
}

$origin->stop();
$t->done();

sub h2_frame {
	my ($type, $flags, $payload, $stream) = @_;

	return substr(pack('N', length($payload)), 1)
		. pack('CCN', $type, $flags, $stream // 1) . $payload;
}

# Sends a request with a length and its whole body, but no END_STREAM flag.

sub h2_start {
	my ($uri, $body) = @_;

	my $c = $t->connect(port => 8081);
	my $headers = join('', map { pack('C C/a C/a', 0, @$_) }
		[ ':method', 'POST' ], [ ':scheme', 'http' ],
		[ ':path', $uri ], [ ':authority', 'localhost' ],
		[ 'content-length', length($body) ]);

	$c->send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
		. h2_frame(4, 0, '', 0) . h2_frame(1, 4, $headers)
		. join('', map { h2_frame(0, 0, $_) }
			unpack('(a16000)*', $body)));

	return $c;
}

sub origin {
	my (%o) = @_;

	return Test::Xet::Origin->new($t->port(9000), %o,
		file => $t->dir() . '/origin.' . ++$t->{origins});
}
