#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Reconstructions: all properties that clients rely on, for complete files and
# for ranges, in both versions.
#
# "trap N" in names: docs/protocol.md numbers the traps.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ root slurp /;

use JSON::PP ();

my $t = Test::Xet->new(
	workers => 2,
	directives => { xet_url_base => undef, xet_hosts => '*' },
	server => <<'EOF',
xet_url_base  http://127.0.0.1:%%PORT_8080%%;

        location /many/ {
            xet_api;
            xet_auth        off;
            xet_api_base    /many;
            xet_url_ranges  8;
        }

        location /most/ {
            xet_api;
            xet_auth        off;
            xet_api_base    /most;
            xet_url_ranges  100;
        }

        location /cacheable/ {
            xet_api;
            xet_auth         off;
            xet_api_base     /cacheable;
            xet_url_mode     cacheable;
            xet_url_quantum  1d;
            xet_url_ranges   8;
        }

        location /slash/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /slash;
            xet_url_base  http://127.0.0.1:%%PORT_8080%%//;
        }

        location /variable/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /variable;
            xet_url_base  https://$http_x_base/cdn/;
        }
EOF
	http => <<'EOF');

    server {
        listen  127.0.0.1:%%PORT_8081%%;

        location /api/ {
            xet_api;
            xet_auth  off;
        }
    }
EOF

$t->run();
$t->fds_mark();

my $none = '0123456789abcdef' x 4;
my $empty = '0' x 64;

# --------------------------------------------------------------------------
# files of given terms: [ xorb, first chunk, end ]

sub put_xorb { return $t->put_xorb(@_) }

sub put_file {
	my ($file, $r) = $t->put_file(@_);

	is($r->{body}, '{"result":1}', 'file registered');

	return $file;
}

sub chunks {
	my ($xorb, $from, $to) = @_;

	my $c = $xorb->{chunks};
	my $start = $c->[$from]{raw_start};
	my $last = $c->[$to - 1];

	return substr($xorb->{data}, $start,
		$last->{raw_start} + $last->{raw_length} - $start);
}

# Returns chunks in ranges that no term needs; there should be none.

sub surplus {
	my ($plan) = @_;

	my %needed;

	for my $term (@{ $plan->{terms} }) {
		$needed{$term->{hash}}{$_} = 1
			for $term->{range}{start} .. $term->{range}{end} - 1;
	}

	my $surplus = 0;

	for my $hash (keys %{ $plan->{xorbs} }) {
		for my $range (map { @{ $_->{ranges} } }
			@{ $plan->{xorbs}{$hash} })
		{
			$surplus += !$needed{$hash}{$_} for
				$range->{chunks}{start}
				.. $range->{chunks}{end} - 1;
		}
	}

	return $surplus;
}

sub good {
	my ($name, $hash, $want, %o) = @_;

	my $d = $t->download($hash, %o);
	my $surplus = $d->{plan} ? surplus($d->{plan}) : 0;

	ok($d->{status} == 200 && !@{ $d->{errors} } && !$surplus
		&& defined $d->{data} && $d->{data} eq $want, $name)
		or diag("status $d->{status}, $surplus chunks too many, ",
			length($d->{data} // ''), ' bytes: ',
			join("\n", @{ $d->{errors} }));

	return $d;
}

# --------------------------------------------------------------------------
# a typical file

my $data = mix(1, 1500000);
my $file = $t->upload($data, xorb_chunks => 4, scheme => 'none');
my $size = length($data);

cmp_ok(scalar @{ $file->{xorbs} }, '>', 3, 'several xorbs');

my %uri = (
	'v1' => { version => 1 }, 'v2' => { version => 2 },
	'unversioned' => { version => 1,
		uri => "/api/reconstructions/$file->{hash}" }
);

for my $form (sort keys %uri) {
	my %o = (%{ $uri{$form} }, size => $size);

	my $d = good("$form: whole file", $file->{hash}, $data, %o);

	is_deeply([ map { $_->{hash} } @{ $d->{plan}{terms} } ],
		[ map { $_->{xorb} } @{ $file->{terms} } ],
		"$form: terms in the order of the file");
	is_deeply([ grep { @{ $_->{ranges} } != 1 } map { @$_ }
		values %{ $d->{plan}{xorbs} } ], [],
		"$form: one range an entry");
	is($d->{response}->header_value('Cache-Control'), 'private, no-store',
		"trap 41: $form: Cache-Control");

	for my $range ([ 0, 0 ], [ 0, $size - 1 ], [ 1, $size - 2 ],
		[ $size - 1, $size - 1 ], [ 5, 99999 ], [ 700000, 700000 ],
		[ 400000, 1400000 ], [ 0, 255999999 ],
		[ 10, 9223372036854775806 ], [ $size - 1, $size ])
	{
		my ($first, $last) = @$range;

		good("trap 4: $form: bytes $first-$last", $file->{hash},
			substr($data, $first, $last - $first + 1),
			range => $range, %o);
	}
}

# a file that is stored compressed

my $packed = $t->upload(mix(2, 400000), xorb_chunks => 3);

for my $version (1, 2) {
	good("compressed, version $version: whole", $packed->{hash},
		mix(2, 400000), version => $version, size => 400000);
	good("compressed, version $version: a range", $packed->{hash},
		substr(mix(2, 400000), 123456, 100000), size => 400000,
		version => $version, range => [ 123456, 223455 ]);
}

# both sides of every chunk boundary

my $pos = 0;

for my $chunk (map { @{ $_->{chunks} } } @{ $file->{xorbs} }) {
	my $end = $pos + $chunk->{raw_length};

	for my $range ([ $pos, $end - 1 ], [ $pos, $end ],
		[ $pos ? $pos - 1 : 0, $pos ])
	{
		next if $range->[1] >= $size;

		good("trap 4: an edge at $pos: $range->[0]-$range->[1]",
			$file->{hash}, substr($data, $range->[0],
			$range->[1] - $range->[0] + 1), range => $range,
			size => $size, twice => 0);
	}

	$pos = $end;
}

# --------------------------------------------------------------------------
# the Range header

my $path = "/api/v2/reconstructions/$file->{hash}";

sub ask {
	my ($range, $uri) = @_;

	return $t->get($uri // $path, { Range => $range });
}

sub refused {
	my ($r, $status, $code, $name) = @_;

	is_deeply($r->refusal(), [ $status, 'application/json', $code ],
		$name);
}

for my $version (qw/ v1 v2 /) {
	my $uri = "/api/$version/reconstructions/$file->{hash}";

	for my $range ("$size-", "$size-$size", '256000000-767999999',
		'9223372036854775807-9223372036854775807',
		'9223372036854775807-', '99999999999999-999999999999999')
	{
		refused(ask("bytes=$range", $uri), 416,
			'range_not_satisfiable',
			"trap 2, 3: $version: bytes=$range");
	}
}

my $whole = $t->reconstruct($file->{hash}, size => $size)->{plan};
my $tail = $t->reconstruct($file->{hash}, size => $size,
	range => [ 9, $size - 1 ])->{plan};

for my $range ('bytes=9-', 'Bytes=9-', 'BYTES=9-99999999', 'bytes=0009-',
	"bytes=9-$size", 'bytes=9- ')
{
	my $r = ask($range);

	is($r->{status}, 200, "$range: status");
	is_deeply($r->json()->{terms}, $tail->{terms}, "$range: terms");
	is($r->json()->{offset_into_first_range}, 9, "$range: offset");

	for my $header (qw/ Accept-Ranges Content-Range /) {
		is($r->header_value($header), undef,
			"trap 1: $range: no $header");
	}
}

for my $range ('', 'bytes', 'bytes=', 'bytes=-', 'bytes=-5', 'bytes=-0',
	'bytes=5-4', 'bytes=a-b', 'bytes=1-b', 'bytes 0-1', 'chars=0-1',
	'0-1', '=0-1', 'bytes=0-1,3-4', 'bytes=0-1, 3-4', 'bytes=0-1,,3-4',
	'bytes=,', 'bytes=0-1,-1', 'bytes=0x1-2', 'bytes=+0-1',
	'bytes=0 -1', 'bytes= 0-1', 'bytes=0-1x', 'bytes=0-1;', 'bytes=0--1',
	'bytes=0-1-2', "bytes=0-\x{e9}")
{
	refused(ask($range), 400, 'invalid_range', 'Range: '
		. substr($range, 0, 40));
}

# numbers beyond the size of any file, and empty elements: RFC 9110

refused(ask("bytes=$_-"), 416, 'range_not_satisfiable', 'from '
	. substr($_, 0, 40))
	for '9223372036854775808', '18446744073709551616', '9' x 1000;

for my $range ('0-9223372036854775808', '0-18446744073709551616',
	'0-' . '9' x 1000, ',0-', '0-, ,')
{
	is_deeply(ask("bytes=$range")->json(), ask(undef)->json(),
		'the complete file: ' . substr($range, 0, 40));
}

# other request headers have no effect on reconstructions

for my $header ([ 'If-None-Match', '*' ], [ 'If-None-Match', '"x"' ],
	[ 'If-Match', '"x"' ], [ 'If-Range', '"x"' ],
	[ 'If-Modified-Since', 'Fri, 01 Jan 2038 00:00:00 GMT' ],
	[ 'If-Unmodified-Since', 'Thu, 01 Jan 1970 00:00:01 GMT' ],
	[ 'Accept', 'text/html' ], [ 'Accept-Encoding', 'gzip, br, zstd' ],
	[ 'Content-Type', 'x/y' ], [ 'Authorization', 'Bearer nonsense' ])
{
	my ($name, $value) = @$header;
	my $d = $t->reconstruct($file->{hash}, size => $size,
		range => [ 9, $size - 1 ], headers => { $name => $value });

	is_deeply([ $d->{status}, $d->{errors} ], [ 200, [] ],
		"$name: $value");
	is_deeply($d->{plan}{terms}, $tail->{terms}, "$name: terms");
}

# HEAD

for my $range (undef, 'bytes=9-', "bytes=$size-", 'bytes=x') {
	my @answers = map { $t->http($_, $path, { Range => $range }) }
		qw/ GET HEAD /;
	my ($get, $head) = map {
		my %h = (%{ $_->{headers} }, status => $_->{status});
		delete @h{qw/ date x-request-id /};
		\%h;
	} @answers;

	is_deeply($head, $get, 'HEAD: the same headers');
	is($answers[1]{body}, '', 'HEAD: no body');
}

# --------------------------------------------------------------------------
# hashes

for my $version (qw/ v1 v2 /) {
	for my $range (undef, 'bytes=0-255999999', 'bytes=256000000-767999999')
	{
		my $r = $t->get("/api/$version/reconstructions/$none",
			{ Range => $range });
		refused($r, 404, 'file_not_found', "$version: unknown file");
	}
}

my $upper = good('trap 39: upper case', uc($file->{hash}), $data,
	size => $size);

is_deeply([ map { $_->{hash} } @{ $upper->{plan}{terms} } ],
	[ map { $_->{hash} } @{ $whole->{terms} } ], 'trap 39: terms');
unlike($upper->{response}{body}, qr/"[0-9A-F]{64}"/,
	'trap 39: lower case in the response');

for my $uri ("//api/v2/reconstructions/$file->{hash}",
	"/api//v2//reconstructions//$file->{hash}")
{
	good("trap 38: $uri", $file->{hash}, $data, uri => $uri,
		size => $size);
}

# --------------------------------------------------------------------------
# the empty file

for my $state ('unknown', 'registered') {

	if ($state eq 'registered') {
		my $file = $t->upload('');

		is($file->{hash}, $empty, 'trap 31: hash of the empty file');
		ok($file->{result} == 0 || $file->{result} == 1,
			'trap 31: upload of the empty file');
	}

	for my $version (1, 2) {
		my $map = $version == 1 ? 'fetch_info' : 'xorbs';

		for my $range (undef, [ 0, 0 ], [ 0, 255999999 ]) {
			my $d = $t->download($empty, version => $version,
				$range ? (range => $range) : ());

			is_deeply([ $d->{status}, $d->{errors}, $d->{data} ],
				[ 200, [], '' ],
				"trap 31: $state: download");
			is_deeply($d->{response}->json(), {
				offset_into_first_range => 0, terms => [],
				$map => {} }, "trap 31: $state: response");
		}

		for my $range ('1-', '256000000-767999999') {
			refused(ask("bytes=$range",
				"/api/v$version/reconstructions/$empty"),
				416, 'range_not_satisfiable',
				"trap 31: $state: bytes=$range");
		}
	}

	my $r = $t->head("/api/v1/files/$empty");

	is($r->{status}, 200, "trap 31: $state: HEAD");
	is($r->header_value('Content-Length'), 0, "trap 31: $state: length");
}

# --------------------------------------------------------------------------
# terms that repeat, overlap or are in reverse order

my $x = put_xorb(mix(10, 20 * 9000), sizes => [ 9000 ], scheme => 'none');
my $y = put_xorb(random_bytes(11, 15 * 8500), sizes => [ 8500 ],
	scheme => 'none');
my $z = put_xorb(random_bytes(12, 10), scheme => 'none');

my @terms = (
	[ $x, 0, 5 ], [ $y, 3, 9 ], [ $x, 2, 4 ], [ $x, 2, 4 ], [ $x, 10, 20 ],
	[ $x, 8, 12 ], [ $y, 0, 15 ], [ $z, 0, 1 ], [ $z, 0, 1 ],
	[ $x, 19, 20 ], [ $x, 18, 19 ], [ $x, 0, 1 ], [ $y, 14, 15 ],
	[ $y, 12, 14 ], [ $x, 0, 20 ], [ $z, 0, 1 ], [ $y, 4, 5 ],
	[ $x, 6, 7 ]
);

my $mixed = join('', map { chunks(@$_) } @terms);
my $odd = put_file(@terms);

is($odd->{size}, length($mixed), 'size of the file');

for my $base (qw/ api many most slash cacheable /) {
	for my $version (1, 2) {
		my $d = good("trap 32: /$base: version $version: whole",
			$odd->{hash}, $mixed, version => $version,
			base => "/$base", size => $odd->{size});

		is(scalar @{ $d->{plan}{terms} }, scalar @terms,
			"trap 32: /$base: version $version: all terms");
	}
}

# a range of the middle terms only, so that two ranges of x stay separate

my @starts = (0);
push @starts, $starts[-1] + length(chunks(@$_)) for @terms;

my $part = good('trap 5: ranges are merged', $odd->{hash},
	substr($mixed, $starts[2], $starts[6] - $starts[2]),
	range => [ $starts[2], $starts[6] - 1 ], size => $odd->{size});

is_deeply([ map { [ @{ $_->{ranges}[0]{chunks} }{qw/ start end /} ] }
	@{ $part->{plan}{xorbs}{$x->{hash}} } ], [ [ 2, 4 ], [ 8, 20 ] ],
	'trap 5: chunks of the ranges');
is($part->{plan}{terms}[2]{unpacked_length}, 90000, 'trap 4: term length');

my $seed = 42;

sub pick {
	my ($n) = @_;

	$seed = ($seed * 1103515245 + 12345) & 0x7fffffff;

	return ($seed >> 8) % $n;
}

for my $i (1 .. 100) {
	my $first = pick($odd->{size});
	my $len = $i % 3 ? 1 + pick(60000) : 1 + pick($odd->{size});
	my $last = $first + $len - 1;

	good("trap 4, 5, 6: random bytes $first-$last", $odd->{hash},
		substr($mixed, $first, $len), range => [ $first, $last ],
		version => 1 + $i % 2, base => $i % 4 ? '/api' : '/many',
		size => $odd->{size}, twice => $i % 5 == 0);
}

# --------------------------------------------------------------------------
# entries of several ranges

my $wide = put_xorb(random_bytes(20, 300 * 100), sizes => [ 100 ],
	scheme => 'none');
my @every = map { [ $wide, 3 * $_, 3 * $_ + 1 ] } 0 .. 99;
my $sparse = put_file(reverse(@every[0 .. 19]));
my $sparser = put_file(@every);

sub ranges {
	my ($d) = @_;

	return [ map { scalar @{ $_->{ranges} } }
		@{ $d->{plan}{xorbs}{$wide->{hash}} } ];
}

# conf/xet_bucket.conf only supports URLs with one range

SKIP: {
	skip('several ranges of a URL are for a folder', 8) if $t->s3();

	my $d = good('trap 7, 8: entries of 8 ranges', $sparse->{hash},
		join('', map { chunks(@$_) } reverse(@every[0 .. 19])),
		base => '/many', size => 2000);
	is_deeply(ranges($d), [ 8, 8, 4 ], 'trap 7: ranges of the entries');

	$d = good('trap 7: not in version 1', $sparse->{hash},
		join('', map { chunks(@$_) } reverse(@every[0 .. 19])),
		base => '/many', version => 1, size => 2000);
	is_deeply(ranges($d), [ (1) x 20 ], 'trap 7: ranges of version 1');

	$d = good('trap 7, 8: an entry of 100 ranges', $sparser->{hash},
		join('', map { chunks(@$_) } @every), base => '/most',
		size => 10000);
	is_deeply(ranges($d), [ 100 ], 'trap 7: ranges of the entry');
	cmp_ok(length($d->{plan}{xorbs}{$wide->{hash}}[0]{url}), '<', 4096,
		'trap 43: length of the URL');

	# requests for some of a URL's ranges, but not for all

	my ($host, $url) = $d->{plan}{xorbs}{$wide->{hash}}[0]{url}
		=~ m!^http://([^/]+)(/.*)!;
	my $bytes = 'bytes=324-431,972-1079';
	my $parts = $t->get($url, { Range => $bytes })->parts();

	is(join('', map { $_->{body} } @$parts),
		substr($wide->{bytes}, 324, 108)
			. substr($wide->{bytes}, 972, 108),
		'trap 8: two of the ranges');
}

# two URLs for the same complete xorb differ

for my $version (1, 2) {
	my $d = good("trap 6: cacheable URLs, version $version",
		$sparse->{hash},
		join('', map { chunks(@$_) } reverse(@every[0 .. 19])),
		base => '/cacheable', version => $version, size => 2000);

	is_deeply(ranges($d), [ (1) x 20 ],
		"trap 7: cacheable URLs, version $version: one range an entry")
		if $d->{plan};
}

# one URL for each entry

my $d = good('trap 6: 100 entries', $sparser->{hash},
	join('', map { chunks(@$_) } @every), size => 10000, twice => 0);
is(scalar @{ $d->{plan}{xorbs}{$wide->{hash}} }, 100, 'trap 6: entries');

# --------------------------------------------------------------------------
# many terms

my $small = put_xorb(random_bytes(30, 8192 * 16), sizes => [ 16 ],
	scheme => 'none');
my @many = map { my $i = $_ * 11 % 8190; [ $small, $i, $i + 1 + $_ % 2 ] }
	0 .. 19999;
my $long = put_file(@many);
my $longdata = join('', map { chunks(@$_) } @many);

my $longplan = good('20,000 terms', $long->{hash}, $longdata,
	size => $long->{size}, twice => 0);

is(scalar @{ $longplan->{plan}{terms} }, 20000, 'all terms');

my ($longtext) = $longplan->{response}{body} =~ /("terms":\[[^\]]*\])/;

ok(index($t->get("/api/v1/reconstructions/$long->{hash}")->{body},
	$longtext) > 0, '20,000 terms, version 1: the same');

for my $range ([ 0, 0 ], [ 6143, 6144 ], [ 100000, 100500 ],
	[ 12200, 12400 ], [ 479000, 1 << 40 ], [ 479999, 479999 ],
	[ 255 * 24, 256 * 24 - 1 ], [ 256 * 24, 257 * 24 - 1 ],
	[ 250000, 270000 ])
{
	good("of 20,000 terms: $range->[0]-$range->[1]", $long->{hash},
		substr($longdata, $range->[0], $range->[1] - $range->[0] + 1),
		range => $range, size => $long->{size}, twice => 0);
}

refused(ask("bytes=$long->{size}-",
	"/api/v2/reconstructions/$long->{hash}"), 416,
	'range_not_satisfiable', 'trap 2: of 20,000 terms');

# a plan with 1,200 entries

my @apart = map { [ $small, 5 * $_, 5 * $_ + 2 ] } 0 .. 1199;
my $apart = put_file(@apart);

$d = $t->reconstruct($apart->{hash}, size => $apart->{size});

is_deeply($d->{errors}, [], '1,200 entries');
is(scalar @{ $d->{plan}{xorbs}{$small->{hash}} }, 1200, 'all entries');
is(surplus($d->{plan}), 0, 'no surplus');

# --------------------------------------------------------------------------
# 64-bit offsets

my $large = put_xorb(join('', map { chr(1 + $_ % 251) x 131072 } 0 .. 511),
	sizes => [ 131072 ], scheme => 'lz4');
my $huge = put_file(([ $large, 0, 512 ]) x 100);

is($huge->{size}, 100 * 512 * 131072, 'a file of 6.25 GiB');
is($t->head("/api/v1/files/$huge->{hash}")->header_value('Content-Length'),
	$huge->{size}, 'its size by HEAD');

sub at {
	my ($first, $last) = @_;

	my $data = '';

	for (my $pos = $first; $pos <= $last; ) {
		my $chunk = int($pos / 131072);
		my $end = ($chunk + 1) * 131072;
		$end = $last + 1 if $end > $last + 1;

		$data .= chr(1 + $chunk % 512 % 251) x ($end - $pos);
		$pos = $end;
	}

	return $data;
}

for my $first (4294967295, 4294967296, 5000000000, $huge->{size} - 1) {
	my $last = $first + 131071;
	$last = $huge->{size} - 1 if $last >= $huge->{size};

	good("trap 33: bytes $first-$last", $huge->{hash},
		at($first, $last),
		range => [ $first, $last ], size => $huge->{size},
		version => 1 + $first % 2);
}

refused(ask("bytes=$huge->{size}-",
	"/api/v2/reconstructions/$huge->{hash}"), 416,
	'range_not_satisfiable', 'trap 2: past 6.25 GiB');

$d = $t->reconstruct($huge->{hash}, size => $huge->{size});

is_deeply($d->{errors}, [], 'trap 32: the complete plan');
is(scalar @{ $d->{plan}{terms} }, 100, 'trap 32: its terms');
is($d->{plan}{terms}[99]{unpacked_length}, 512 * 131072,
	'trap 32: unpacked_length');

# --------------------------------------------------------------------------
# the host and path of URLs

sub urls {
	my ($r) = @_;

	my $plan = $r->json() or return ("status $r->{status}");

	return map { $_->{url} } map { @$_ } values %{ $plan->{xorbs} };
}

sub bases {
	my %seen = map { m!\A(.*?)/xorbs/default/../\w{64}\.\w{8}\?!
		? ($1 => 1) : ($_ => 1) } urls(@_);

	return join(' ', sort keys %seen);
}

my $local = $t->url('');

is(bases($t->get($path)), $local, 'trap 38: configured base');
is(bases($t->get("/slash/v2/reconstructions/$file->{hash}")), $local,
	'trap 38: a base with slashes at its end');
is(bases($t->get($path, { Host => 'evil.example' })), $local,
	'trap 38: a base that is configured beats Host');
is(bases($t->get("/variable/v2/reconstructions/$file->{hash}",
	{ 'X-Base' => 'cdn.example' })), 'https://cdn.example/cdn',
	'trap 38: a base with a variable');

for my $value ('a"b', 'a\\b', "a\tb", "a\x{e9}b") {
	my $r = $t->get("/variable/v2/reconstructions/$file->{hash}",
		{ 'X-Base' => $value });

	isnt($r->{status}, 200, 'trap 38: a base that breaks JSON');
}

for my $value ('example.org', 'example.org:8443', '[::1]:8081') {
	is(bases($t->get($path, { Host => $value }, port => 8081)),
		"http://$value", "trap 38: Host: $value");
}

my $r = $t->get($path, { Host => undef }, port => 8081, http10 => 1);

ok($r->{status} != 200 || bases($r) =~ m!\Ahttps?://[^/]+\z!,
	'trap 38: no Host, no URL without a host') or diag($r->{body});
is($r->{error}, undef, 'a complete response');

# --------------------------------------------------------------------------
# the form is the same as in responses of the service that clients know

sub form {
	my ($value) = @_;

	if (ref $value eq 'HASH') {
		my %form;

		for my $key (sort keys %$value) {
			my $name = $key =~ /\A[0-9a-f]{64}\z/ ? 'hash' : $key;
			my $form = form($value->{$key});
			$form{$name} //= $form;
		}

		return \%form;
	}

	return [ map { form($_) } @{$value}[0 .. ($#$value < 0 ? -1 : 0)] ]
		if ref $value eq 'ARRAY';

	return JSON::PP->new->allow_nonref->encode($value) =~ /\A"/
		? 'string' : 'number';
}

my $captured = root() . '/../shared/data/xet/captured-responses';

SKIP: {
	skip('reference data absent', 5) unless -d $captured;

	for my $name (qw/ gpt2-model-safetensors-range.v2
		ev-population-range.v2 gpt2-model-safetensors.v2
		ev-population.v2 ev-population-range.v1 /)
	{
		my ($version) = $name =~ /\.v(\d)$/;
		my %range = $name =~ /range/ ? (Range => 'bytes=5-99999')
			: ();
		my $r = $t->get("/api/v$version/reconstructions/$file->{hash}",
			\%range);

		is_deeply(form($r->json()),
			form(JSON::PP->new->utf8->decode(
				slurp("$captured/$name.json"))),
			"form of $name");
	}
}

$t->done();
