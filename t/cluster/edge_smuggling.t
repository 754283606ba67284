#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The path of a signed URL stays a path, whatever a client writes into it.  An
# edge with conf/edge.conf sends its origin one request for each request that it
# gets, whatever escapes precede the signed part.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Edge;
use Test::Xet::Process qw/ slurp /;

my %modes = (strict => '', cacheable => 'xet_url_mode cacheable;');

# escapes such as "%0d%0a", which would change the request line of the edge

my $head = 'x%20HTTP/1.1%0d%0aHost:%20a%0d%0a%0d%0a';
my %attacks = (
	'a request of the attacker' =>
		"${head}GET%20/api/smuggled%20HTTP/1.1%0d%0aHost:%20b%0d%0a"
		. 'X:%20',
	'a body of what comes next' =>
		"${head}PUT%20/api/v1/files%20HTTP/1.1%0d%0aHost:%20b%0d%0a"
		. 'Content-Length:%20700%0d%0a%0d%0a',
	'line feeds alone' =>
		'x%20HTTP/1.1%0aHost:%20a%0a%0aGET%20/api/smuggled%20HTTP/1.1'
		. '%0aHost:%20b%0aX:%20',
	'a header' => 'x%20HTTP/1.1%0d%0aX-Smuggled:%20',
	'another version' => 'x%20HTTP/0.9%0d%0a',
	'a blank' => 'smuggled%20',
	'arguments' => 'smuggled%3Fx=',
	'a fragment' => 'smuggled%23',
	'an escape' => 'smuggled%250d%250a',
	'a tab' => 'smuggled%09',
	'a carriage return' => 'smuggled%0d',
);

for my $mode (sort keys %modes) {
	my $origin = Test::Xet->new(workers => 1, server => $modes{$mode}
			. ' if ($http_x_lie) { return 200 lies; }',
		http => 'log_format seen escape=json'
			. ' "$request_method $uri $http_x_smuggled";'
			. ' access_log %%DIR%%/seen.log seen;');
	my $edge = Test::Xet::Edge::edge($origin);

	Test::Xet::Edge::base($origin, $edge);

	$origin->run();
	$edge->run();

	my $data = mix(7, 6_000_000);
	my $file = $origin->upload($data);
	my $plan = $origin->get("/api/v1/reconstructions/$file->{hash}")
		->json();
	my ($xorb) = sort keys %{ $plan->{fetch_info} };
	my $entry = $plan->{fetch_info}{$xorb}[0];
	my ($path) = $entry->{url} =~ m!^http://[^/]+(/.*)!;
	my ($bare) = $path =~ m!^([^?]+)!;
	my $range = join('-', @{ $entry->{url_range} }{qw/ start end /});

	for my $name (sort keys %attacks) {
		for my $asked ("bytes=$range", "bytes=$range,", '') {
			my $before = length(seen($origin));
			my $label = "$mode: $name: range '$asked'";

			my $evil = "/xorbs/$attacks{$name}$path";
			my $r = $edge->get($evil,
				{ $asked ne '' ? (Range => $asked) : () });

			is($r->{status}, 403, $label);

			# the request of another client, on the same connection
			# to the origin

			my $put = $edge->put('/api/v1/files', "$label\n", {
				Authorization => 'Bearer ' . 'v' x 300 });

			is($put->{status}, 200, "$label: the next client")
				or diag($put->{body});
			is($origin->get('/api/v1/files/'
				. ($put->json()->{hash} // ''))->{body},
				"$label\n", "$label: the next client's bytes");

			unlike(substr(seen($origin), $before),
				qr/smuggled|HTTP|PUT [^\n]*\n(?=.*PUT)/s,
				"$label: not sent to the origin");
		}
	}

	# a response whose range differs from the requested one

	unlike($edge->get($path, { Range => "bytes=$range", 'X-Lie' => 1 })
		->{status}, qr/^206$/, "$mode: a response of another range");

	# through a cache that does not have the xorb

	my $r = $edge->get($path, { Range => "bytes=$range" });

	is($r->{status}, 206, "$mode: the xorb itself");
	is(length($r->{body}), $range =~ /^(\d+)-(\d+)$/ ? $2 - $1 + 1 : -1,
		"$mode: all of the range");

	# a prefix without escapes is accepted

	is($edge->get("/xorbs/a-b.c_d~1/%7Eb$path",
		{ Range => "bytes=$range" })->{status}, 404,
		"$mode: a prefix that needs no escaping");

	$_->check(), $_->remove() for $edge, $origin;
}

done_testing();

# --------------------------------------------------------------------------

sub seen { return slurp($_[0]->dir() . '/seen.log') }
