#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Pages of several origins behind one cache, with conf/edge.conf: data cached
# for one page is used for other pages, and each response has the CORS headers
# for its own request.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Edge;

my @origins = ('https://hub.example', 'https://lab.example');
my $cors = 'map $http_origin $allowed { default off; '
	. join(' ', map { "$_ \$http_origin;" } @origins)
	. " }\n    xet_cors \$allowed;";

my $t = Test::Xet->new(workers => 1, http => $cors
	. ' log_format args "$uri $args"; access_log %%DIR%%/args.log args;');
my $edge = Test::Xet::Edge::edge($t, http => $cors);

Test::Xet::Edge::base($t, $edge);
$t->run();
$edge->run();

my $file = $t->upload(random_bytes(1, 6_000_000));
my $plan = $t->get("/api/v1/reconstructions/$file->{hash}")->json();
my ($xorb) = sort keys %{ $plan->{fetch_info} };
my $entry = $plan->{fetch_info}{$xorb}[0];
my $path = $entry->{url} =~ s!^http://[^/]+!!r;
my $range = 'bytes=' . join('-', @{ $entry->{url_range} }{qw/ start end /});

# the first request fills the cache; each page sends two requests

for my $round (1, 2) {
	for my $from ('https://hub.example', undef, 'https://lab.example',
		'https://evil.example')
	{
		my $who = $from // 'no page';
		my $good = grep { $_ eq ($from // '') } @origins;
		my $r = $edge->get($path, { Range => $range,
			defined $from ? (Origin => $from) : () });

		is($r->{status}, 206, "$who, $round");
		is($r->header_value('Access-Control-Allow-Origin'),
			$good ? $from : undef, "$who, $round: allowed origin");
		is_deeply($r->{headers}{vary}, [ 'Origin' ],
			"$who, $round: Vary");
	}
}

my @asked = grep { m!^/xorbs/! } split(/\n/, $t->read_file('args.log'));

cmp_ok(scalar(@asked), '>', 0, 'requests to the origin');
cmp_ok(scalar(@asked), '<=', 2, 'one for each slice');

# URLs signed by the edge are valid for longer than its cache lock may delay a
# request

my ($lock) = $edge->read_file('nginx.conf')
	=~ /proxy_cache_lock_timeout (\d+)s;/;

for (@asked) {
	my ($expires) = / e=(\d+)/;

	cmp_ok($expires - time(), '>', $lock + 60, 'valid for long enough');
}

# a preflight request

my $r = $edge->http('OPTIONS', $path, { Origin => $origins[1],
	'Access-Control-Request-Method' => 'GET',
	'Access-Control-Request-Headers' => 'range' });

is($r->{status}, 204, 'preflight');
is($r->header_value('Access-Control-Allow-Origin'), $origins[1],
	'preflight: allowed origin');

$edge->check();
$edge->remove();
$t->done();
