#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A page of another origin accesses the store directly.  The bucket has the CORS
# rules of docs/scaling.md: it allows preflights and requests of that origin
# only.  A browser reads with a presigned URL and uploads with a grant.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Browser;
use Test::Xet::Grant;
use Test::Xet::Process qw/ root slurp /;
use Test::Xet::S3;

use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

# Garage and radosgw also support CORS rules; s3proxy and s3s have no bucket
# rules.

my $s3 = Test::Xet::S3->new();
my $size = 3_000_000;

plan(skip_all => $s3->name() . ' has no rules of a bucket')
	if $s3->name() =~ /^(?:s3proxy|s3s)$/;

my $t = Test::Xet->new(s3 => $s3, workers => 1, log => 'info',
	directives => { xet_grants => 'on', xet_data_mode => 'presigned',
		xet_cors => '*' },
	http => <<'EOC');
server {
    listen 127.0.0.1:%%PORT_8081%%;

    location / {
        default_type text/html;
        return 200 "<!DOCTYPE html><title>a page</title>";
    }
}
EOC

$t->run();

my $origin = 'http://127.0.0.1:' . $t->port(8081);
my $rules = rules();

is_deeply([ sort keys %$rules ], [ qw/ AllowedHeaders AllowedMethods
	AllowedOrigins ExposeHeaders MaxAgeSeconds / ], 'the document');

my $file = $t->upload(mix(1, $size));
my ($entry) = map { @$_ } values %{ $t->get("/api/v1/reconstructions/"
	. $file->{hash})->json()->{fetch_info} };
my $range = 'bytes=' . join('-', @{ $entry->{url_range} }{qw/ start end /});
my ($target) = $entry->{url} =~ m!^http://[^/]+(/.*)!;

# --------------------------------------------------------------------------
# without rules

my $r = ask('GET', $target, Origin => $origin, Range => $range);

is($r->{status}, 206, 'no rules: a client that is no browser');
is(value('access-control-allow-origin'), '',
	'no rules: and nothing for a page');

# --------------------------------------------------------------------------
# with rules

is($s3->request('PUT', '', query => { cors => '' }, body => xml($rules),
	headers => { 'content-type' => 'application/xml' })->{status}, 200,
	'the store takes the rules');

for my $case ([ GET => 'range' ],
	[ PUT => 'if-none-match,x-amz-checksum-crc64nvme' ])
{
	my ($method, $headers) = @$case;

	$r = ask('OPTIONS', $target, Origin => $origin,
		'Access-Control-Request-Method' => $method,
		'Access-Control-Request-Headers' => $headers);

	like($r->{status}, qr/^20[04]$/, "preflight of $method");
	is(value('access-control-allow-origin'), $origin,
		"preflight of $method: origin");
	like(value('access-control-allow-methods'), qr/\b$method\b/,
		"preflight of $method: method");
	like(lc(value('access-control-allow-headers')), qr/\b\Q$_\E\b/,
		"preflight of $method: $_") for split(/,/, $headers);
}

$r = ask('OPTIONS', $target, Origin => 'https://evil.example',
	'Access-Control-Request-Method' => 'GET');
isnt(value('access-control-allow-origin'), 'https://evil.example',
	'another origin: nothing');

$r = ask('GET', $target, Origin => $origin, Range => $range);

is($r->{status}, 206, 'GET');
is(value('access-control-allow-origin'), $origin, 'GET: origin');
like(lc(value('access-control-expose-headers')), qr/content-range/,
	'GET: what a page may read');

$r = ask('GET', $target, Origin => 'https://evil.example', Range => $range);
is(value('access-control-allow-origin'), '',
	'GET: another origin');

# --------------------------------------------------------------------------
# a browser

SKIP: {
	my $b = Test::Xet::Browser->new();

	skip('no chromium', 9) unless $b;

	my $xorb = make_xorb(mix(2, 300_000));
	my $page = sub {
		my ($code) = @_;

		return JSON::PP->new()->allow_nonref()->decode($b->js(
			"(async () => { try { $code } catch (e) {"
			. ' return JSON.stringify({ error: String(e) }) } })()'
			));
	};
	my %of = (plan => $t->url("/api/v1/reconstructions/$file->{hash}"),
		grant => $t->url("/api/v1/xorb-grants/default/$xorb->{hash}"),
		commit => $t->url("/api/v1/xorb-commits/default/$xorb->{hash}"
			. '/grant/'),
		body => '{"length":' . length($xorb->{bytes}) . ',"checksum":'
			. '{"algo":"crc64nvme","value":"'
			. crc64($xorb->{bytes}) . '"}}',
		bytes => encode_base64($xorb->{bytes}, ''));

	$b->open("$origin/");

	my $got = $page->(<<"EOC");
const plan = await (await fetch("$of{plan}")).json();
const entry = Object.values(plan.fetch_info)[0][0];
const { start, end } = entry.url_range;
const answer = await fetch(entry.url,
    { headers: { Range: `bytes=\${start}-\${end}` } });
const bytes = await answer.arrayBuffer();

return JSON.stringify({ status: answer.status, length: bytes.byteLength,
    wanted: end - start + 1, range: answer.headers.get("content-range") });
EOC

	is($got->{error}, undef, 'browser: GET');
	is($got->{status}, 206, 'browser: GET: status');
	is($got->{length}, $got->{wanted} // '', 'browser: GET: all of it');
	like($got->{range}, qr/^bytes \d+-\d+\/\d+$/, 'browser: GET: a header');

	$got = $page->(<<"EOC");
const grant = await (await fetch("$of{grant}",
    { method: "POST", body: '$of{body}' })).json();
const bytes = Uint8Array.from(atob("$of{bytes}"), (c) => c.charCodeAt(0));
const put = await fetch(grant.url, { method: grant.method,
    headers: grant.headers, body: bytes });
const commit = await fetch("$of{commit}" + grant.id, { method: "POST" });

return JSON.stringify({ put: put.status, commit: commit.status });
EOC

	is($got->{error}, undef, 'browser: PUT');
	is($got->{put}, 200, 'browser: PUT: status');
	is($got->{commit}, 200, 'browser: PUT: it is committed');

	# another origin: the browser hides the response from the page

	$b->open("http://localhost:@{[ $t->port(8081) ]}/");
	$got = $page->(<<"EOC");
const answer = await fetch("$entry->{url}",
    { headers: { Range: "$range" } });

return JSON.stringify({ status: answer.status });
EOC

	like($got->{error}, qr/Failed to fetch/, 'browser: another origin');
	is($got->{status}, undef, 'browser: another origin: nothing is read');
}

$t->done();

# --------------------------------------------------------------------------

sub ask {
	my ($method, $target, %headers) = @_;

	return Test::Xet::HTTP->request($s3->port(), $method, $target,
		{ Host => $s3->host(), %headers });
}

# Returns a header of the last response.

sub value {
	my ($name) = @_;

	return scalar($r->header_value($name)) // '';
}

# Returns the rules of docs/scaling.md, with the origin of the test's page.

sub rules {
	my ($json) = slurp(root() . '/docs/scaling.md')
		=~ /<!-- cors -->\n```json\n(.*?)```/s or die "no rules\n";

	my $all = JSON::PP::decode_json($json)->{CORSRules};

	$all->[0]{AllowedOrigins} = [ $origin ];

	return $all->[0];
}

sub xml {
	my ($rules) = @_;

	my %name = (AllowedOrigins => 'AllowedOrigin',
		AllowedMethods => 'AllowedMethod',
		AllowedHeaders => 'AllowedHeader',
		ExposeHeaders => 'ExposeHeader');

	return '<CORSConfiguration><CORSRule>' . join('', map {
		my $name = $name{$_} // $_;

		map { "<$name>$_</$name>" } ref($rules->{$_})
			? @{ $rules->{$_} } : $rules->{$_}
	} sort keys %$rules) . '</CORSRule></CORSConfiguration>';
}
