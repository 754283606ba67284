#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# If-Match, If-None-Match and dates, for each form of a component.  The
# responses are those of GET files, whether the server or the client decodes,
# and whatever the size.  Dates are ignored.  A condition never changes an error
# response.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Ztensor;

my $t = Test::Xet->new(
	timeout => 300,
	server => <<'EOC');

        location /small/ {
            xet_api;
            xet_auth            off;
            xet_api_base        /small;
            xet_ztensor_limits  decode=64;
        }
EOC

$t->run();

my $past = 'Thu, 01 Jan 1970 00:00:00 GMT';
my $future = 'Sat, 01 Jan 2028 00:00:00 GMT';
my $large = 'x' x (2 << 20);

sub packed {
	my ($name, $data) = @_;

	return [ $name, { shape => [ length($data) ], dtype => 'u8',
		encoding => 'zstd', data => zstd_frame($data) } ];
}

my $hash = $t->upload(zt_file([
	[ 'raw', { shape => [ 4 ], dtype => 'u8', data => '1234' } ],
	packed('small', 'small' x 20), packed('large', $large),
	[ 'unknown', { shape => [ 4 ], dtype => 'u8', encoding => 'lz4',
		data => '1234' } ]
])->{bytes})->{hash};

sub uri {
	my ($name, $form, $base) = @_;

	return ($base // '/api') . "/v1/zt/$hash/data"
		. zt_args(name => $name, form => $form);
}

my @forms = (
	[ 'stored', uri('raw', 'stored'), '1234' ],
	[ 'raw', uri('raw', 'decoded'), '1234' ],
	[ 'frames', uri('large', 'stored'), zstd_frame($large) ],
	[ 'small', uri('small', 'decoded'), 'small' x 20 ],
	[ 'large', uri('large', 'decoded'), $large ],
	[ 'coded', uri('large', 'decoded'), zstd_frame($large),
		'Accept-Encoding' => 'zstd' ],
);

# --------------------------------------------------------------------------
# conditions

my %etags;

for my $form (@forms) {
	my ($name, $uri, $body, @coding) = @$form;

	my $etag = $t->get($uri, [ @coding ])->header_value('ETag');
	my $other = '"other"';

	$etags{$etag} //= $body;
	ok($etags{$etag} eq $body, "$name: a tag of these bytes only");

	for (
		[ 200 ],
		[ 304, 'If-None-Match' => $etag ],
		[ 304, 'If-None-Match' => "W/$etag" ],
		[ 304, 'If-None-Match' => "$other, $etag" ],
		[ 304, 'If-None-Match' => '*' ],
		[ 304, 'If-None-Match' => $etag, Range => 'bytes=0-1' ],
		[ 304, 'If-None-Match' => $etag, 'If-Match' => $etag ],
		[ 304, 'If-None-Match' => $etag,
			'If-Modified-Since' => $past ],
		[ 304, 'If-None-Match' => $etag,
			'If-Unmodified-Since' => $past ],
		[ 200, 'If-None-Match' => $other ],
		[ 200, 'If-None-Match' => '' ],
		[ 200, 'If-None-Match' => $other,
			'If-Modified-Since' => $future ],
		[ 200, 'If-Match' => $etag ],
		[ 200, 'If-Match' => '*' ],
		[ 200, 'If-Match' => $etag, 'If-Unmodified-Since' => $past ],
		[ 412, 'If-Match' => $other ],
		[ 412, 'If-Match' => "W/$etag" ],
		[ 412, 'If-Match' => '' ],
		[ 412, 'If-Match' => $other, 'If-None-Match' => $etag ],
		[ 200, 'If-Modified-Since' => $future ],
		[ 200, 'If-Modified-Since' => $past ],
		[ 200, 'If-Unmodified-Since' => $past ],
		[ 200, 'If-Unmodified-Since' => $future ]
	) {
		my ($status, @headers) = @$_;

		for my $method ('GET', 'HEAD') {
			my $r = $t->http($method, $uri, [ @headers, @coding ]);
			my $what = "$name: $method @headers";

			is($r->{status}, $status, $what);

			if ($status == 412 && $method eq 'GET') {
				is($r->code(), '412 precondition_failed',
					"$what: in JSON");
				ok(!defined scalar $r->header_value('ETag'),
					"$what: without the tag");

			} elsif ($status == 304) {
				is_deeply([ map { scalar $r->header_value($_) }
					qw/ ETag Cache-Control Content-Length
					Content-Type / ], [ $etag,
					'public, max-age=31536000, immutable',
					undef, undef ], "$what: its headers");

			} elsif ($status == 200) {
				is(scalar $r->header_value('ETag'), $etag,
					"$what: the tag");
				ok($r->{body} eq ($method eq 'GET' ? $body
					: ''), "$what: the bytes");
			}
		}
	}
}

is(scalar keys %etags, 5, 'five forms of different bytes');

# --------------------------------------------------------------------------
# an error response stays the same when a condition is added

for (
	[ '422 decode_unavailable', uri('unknown', 'decoded') ],
	[ '413 decode_too_large', uri('small', 'decoded', '/small') ],
	[ '413 decode_too_large', uri('large', 'decoded', '/small') ],
	[ '404 no_such_object', uri('none', 'decoded') ],
) {
	my ($code, $uri) = @$_;

	for my $headers ([], [ 'If-Match' => '"x"' ],
		[ 'If-None-Match' => '*' ], [ 'If-Modified-Since' => $future ],
		[ 'If-Unmodified-Since' => $past ])
	{
		is($t->get($uri, $headers)->code(), $code,
			"$code: @$headers");
	}
}

$t->done();
