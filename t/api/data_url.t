#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Signed xorb URLs: which bytes they return, and that no URL returns unsigned
# bytes.  HEAD requests for xorbs and files are also tested here.
#
# "trap N" in names: docs/protocol.md numbers the traps.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

Test::Xet->folder('several ranges of a URL, and aliases of the folder');

my $t = Test::Xet->new(workers => 2, http => 'gzip on;', server => <<'EOF');
location /few/xorbs/ {
            max_ranges  2;
            %%DATA_ALIAS%%
        }

        location /any/xorbs/ {
            %%DATA_ALIAS%%
            satisfy  any;
            allow    all;
        }

        location /closed/xorbs/ {
            %%DATA_ALIAS%%
            deny   all;
        }
EOF

$t->run();
$t->fds_mark();

my %keys = (k1 => derived_key(pack('H*', '5e' x 32)));

sub put_xorb {
	my ($data, %o) = @_;

	my $xorb = $t->put_xorb($data, scheme => 'none', %o);

	$xorb->{bytes} = substr($xorb->{bytes}, 0, $xorb->{stored_size});
	($xorb->{name}) = $t->copy($xorb->{hash}) =~ m!([^/]+)\z!;

	return $xorb;
}

my $x = put_xorb(random_bytes(1, 20 * 9000), sizes => [ 9000 ]);
my $y = put_xorb(random_bytes(2, 50000), footer => 'v1');
my $size = $x->{stored_size};
my $late = time() + 600;

# --------------------------------------------------------------------------
# the signer of this test

sub mac {
	my ($k, $path, $e, $list, $key) = @_;

	my $text = $path =~ s!/(..)!/$1/$1!r;

	return url_mac("$text?" . ($list eq '' ? '' : "r=$list&")
		. "e=$e&k=$k", $key // $keys{$k});
}

# Returns a signed URL.  Options:
#
#     ns, aa, hash, r, e, k, s, key, base    replace the default parts
#     sign  { ... }, parts whose signed value differs from the sent one

sub url {
	my (%o) = @_;

	%o = (ns => 'default', hash => $x->{name}, r => '0-9007', e => $late,
		k => 'k1', base => '', %o);
	$o{aa} //= substr($o{hash}, 0, 2);

	my %s = (%o, %{ $o{sign} || {} });
	my $s = $o{s} // mac($s{k}, "$s{ns}/$s{hash}", $s{e}, $s{r} // '',
		$s{key} // $keys{k1});

	return "$o{base}/xorbs/$o{ns}/$o{aa}/$o{hash}?"
		. (defined $o{r} ? "r=$o{r}&" : '') . "e=$o{e}&k=$o{k}&s=$s";
}

sub fetch {
	my ($url, $range, $headers, %o) = @_;

	return $t->http($o{method} || 'GET', $url,
		{ Range => defined $range ? "bytes=$range" : undef,
			%{ $headers || {} } }, undef, %o);
}

sub slice {
	my ($first, $last, $xorb) = @_;

	return substr(($xorb || $x)->{bytes}, $first, $last - $first + 1);
}

# Checks that the response is exactly these bytes.

sub served {
	my ($name, $r, $first, $last, $xorb) = @_;

	my $total = ($xorb || $x)->{stored_size};

	ok($r->{status} == 206 && !$r->{error}
		&& ($r->header_value('Content-Range') // '')
			eq "bytes $first-$last/$total"
		&& $r->header_value('Content-Length') == $last - $first + 1
		&& $r->{body} eq slice($first, $last, $xorb), $name)
		or diag("status $r->{status}, ", length($r->{body}),
			' bytes, Content-Range ',
			$r->header_value('Content-Range') // 'none');
}

sub refused {
	my ($name, $r, $code) = @_;

	my $json = $r->json();

	is_deeply([ $r->{status}, $r->{error},
		ref $json eq 'HASH' ? $json->{error}{code}
			: length($r->{body}) . ' bytes' ],
		[ 403, undef, $code // 'invalid_signature' ], $name);
}

# Checks, whatever the response is, that it has no bytes outside of the signed
# ranges.

sub never_more {
	my ($name, $r, @signed) = @_;

	my $body = $r->{body};
	my $good = 1;

	if ($r->{status} == 206
		&& $r->header_value('Content-Type') !~ /multipart/)
	{
		my ($first, $last) = $r->header_value('Content-Range')
			=~ /(\d+)-(\d+)/;

		$good = grep { $_->[0] <= $first && $last <= $_->[1] }
			@signed;
		$good &&= $body eq slice($first, $last);

	} elsif ($r->{status} == 206) {
		for my $part (@{ $r->parts() }) {
			$good = 0 unless grep { $_->[0] <= $part->{start}
				&& $part->{end} <= $_->[1] } @signed;
		}

	} else {
		$good = 0 if $r->{status} < 300 || length($body) > 1000;
	}

	ok($good, $name) or diag("status $r->{status}, ", length($body),
		" bytes\n", substr($r->{raw}, 0, 500));
}

# --------------------------------------------------------------------------
# signed texts of every length, up to the maximum

for my $ns (1, 44, 45, 56, 63, 64, 65) {
	for my $e (1, $late, '9' x 18, '9223372036854775807') {
		refused("a namespace of $ns, expiry $e", fetch(url(e => $e,
			ns => 'n' x $ns, s => 'A' x 43)));
	}
}

# --------------------------------------------------------------------------
# valid URLs

my $r = fetch(url(), '0-9007');

served('a signed range', $r, 0, 9007);
is($r->header_value('ETag'), "\"$x->{name}\"", 'ETag');
is(scalar(() = $r->header_value('ETag')), 1, 'one ETag');
is($r->header_value('Content-Type'), 'application/octet-stream', 'type');

my ($age) = $r->header_value('Cache-Control')
	=~ /\Apublic, max-age=(\d+), immutable\z/;

ok($age && $age <= $late - time() + 1 && $age > $late - time() - 30,
	'Cache-Control within the life of the URL');

$r = fetch(url(e => time() + 30), '0-9');
served('a URL about to expire', $r, 0, 9);
like($r->header_value('Cache-Control'), qr/max-age=(?:[12]?\d|30),/,
	'its Cache-Control');

served('the first byte', fetch(url(), '0-0'), 0, 0);
served('the last byte', fetch(url(), '9007-9007'), 9007, 9007);
served('inside', fetch(url(), '100-199'), 100, 199);
served('a range in the middle', fetch(url(r => '9008-18015'), '9008-18015'),
	9008, 18015);
served('the complete xorb', fetch(url(r => '0-' . ($size - 1)),
	'0-' . ($size - 1)), 0, $size - 1);
served('trap 10: Authorization is ignored', fetch(url(), '0-9007',
	{ Authorization => 'Bearer nonsense' }), 0, 9007);
served('HTTP/1.0', fetch(url(), '0-9', {}, http10 => 1), 0, 9);
served('another base', fetch(url(base => '/few'), '0-9'), 0, 9);
served('a key id that is not k1 is no part of the path',
	fetch(url(base => '/any'), '5-9'), 5, 9);
served('far in the future', fetch(url(e => '9223372036854775807'), '0-9'), 0,
	9);

$r = fetch(url(), '0-9007', { 'Accept-Encoding' => 'gzip, br' });
served('no content coding', $r, 0, 9007);
is($r->header_value('Content-Encoding'), undef, 'trap 30: no content coding');

$r = fetch(url(r => '0-9007', hash => $y->{name}), '0-9007');
served('a xorb sent with a footer', $r, 0, 9007, $y);

my $end = $y->{stored_size} - 1;

served('trap 11: its end', fetch(url(r => "0-$end", hash => $y->{name}),
	"49000-$end"), 49000, $end, $y);

# several ranges

my $list = '0-9007,18016-27023,45040-54047';
my @signed = ([ 0, 9007 ], [ 18016, 27023 ], [ 45040, 54047 ]);

sub parts {
	my ($name, $r, @want) = @_;

	my $parts = $r->{status} == 206 && eval { $r->parts() };

	ok($parts && join('|', map { $_->{body} } @$parts)
		eq join('|', map { slice(@$_) } @want)
		&& join('|', map { "$_->{start}-$_->{end}/$_->{total}" }
			@$parts)
		eq join('|', map { "$_->[0]-$_->[1]/$size" } @want), $name)
		or diag("status $r->{status} $@");

	return $parts;
}

parts('trap 7: all signed ranges', fetch(url(r => $list), $list), @signed);
parts('trap 7: blanks between them', fetch(url(r => $list),
	'0-9007, 18016-27023 ,  45040-54047'), @signed);
never_more('a tab between ranges, refused by nginx', fetch(url(r => $list),
	"0-9007,\t18016-27023"), @signed);
parts('trap 8: two of them', fetch(url(r => $list),
	'0-9007,45040-54047'), @signed[0, 2]);
parts('trap 8: parts of them', fetch(url(r => $list),
	'1-2,18016-18016,54047-54047'), [ 1, 2 ], [ 18016, 18016 ],
	[ 54047, 54047 ]);
parts('trap 8: two parts of one', fetch(url(r => $list), '1-2,5-6'),
	[ 1, 2 ], [ 5, 6 ]);
served("trap 8: $_->[0]-$_->[1] alone", fetch(url(r => $list),
	"$_->[0]-$_->[1]"), @$_) for @signed;

$r = fetch(url(r => $list), $list);
cmp_ok(length(($r->header_value('Content-Type') =~ /boundary=(\S+)/)[0]),
	'>=', 10, 'trap 7: boundary');
is($r->header_value('ETag'), "\"$x->{name}\"", 'ETag of several ranges');

# conditional requests

is(fetch(url(), '0-9', { 'If-None-Match' => "\"$x->{name}\"" })->{status},
	304, 'If-None-Match');
is(fetch(url(), '0-9', { 'If-None-Match' => '*' })->{status}, 304,
	'If-None-Match: *');

# no cache may store a response for longer than its URL is valid

for my $case ([ '206', {} ], [ '304', { 'If-None-Match' => '*' } ],
	[ 'several ranges', {}, '0-9,20-29', '0-19,20-39' ],
	[ 'HEAD', {}, undef, undef, method => 'HEAD' ])
{
	my ($name, $headers, $ranges, $signed, %o) = @$case;
	my $life = 100;
	my $r = fetch(url(e => time() + $life, r => $signed // '0-9'),
		$ranges // '0-9', $headers, %o);
	my @control = @{ $r->{headers}{'cache-control'} || [] };

	is($r->{status}, $name eq '304' ? 304 : 206, "life: $name");
	is(scalar(@control), 1, "life: $name: one Cache-Control");

	my ($age) = $control[0] =~ /\Apublic, max-age=(\d+), immutable\z/;

	ok($age && $age <= $life && $age > $life - 30,
		"life: $name: Cache-Control") or diag($control[0]);
	is(scalar(@{ $r->{headers}{expires} || [] }), 1,
		"life: $name: one Expires");
	is($r->header_value('ETag'), "\"$x->{name}\"", "life: $name: ETag");
}

for my $r (fetch(url(e => 1), '0-9'), fetch(url(), '0-99999'),
	fetch(url(hash => '0' x 64), '0-9'))
{
	is_deeply($r->{headers}{'cache-control'}, [ 'no-store' ],
		"life: $r->{status}: no-store");
	is($r->header_value('Expires'), undef, "life: $r->{status}: Expires");
}
served('If-None-Match, another tag', fetch(url(), '0-9',
	{ 'If-None-Match' => "\"$y->{name}\"" }), 0, 9);
served('If-Match', fetch(url(), '0-9', { 'If-Match' => "\"$x->{name}\"" }), 0,
	9);

$r = fetch(url(), '0-9', { 'If-Match' => '"x"' });
is($r->{status}, 412, 'If-Match, another tag');
cmp_ok(length($r->{body}), '<', 500, 'no data');

# HEAD

$r = fetch(url(), '0-9007', {}, method => 'HEAD');

is($r->{status}, 206, 'HEAD');
is($r->header_value('Content-Length'), 9008, 'HEAD: Content-Length');
is($r->header_value('ETag'), "\"$x->{name}\"", 'HEAD: ETag');
is(fetch(url(), undef, {}, method => 'HEAD')->{status}, 403,
	'HEAD without Range');
is(fetch(url(), '0-9008', {}, method => 'HEAD')->{status}, 403,
	'HEAD outside');

# --------------------------------------------------------------------------
# Range headers that are not signed

refused("Range: " . ($_ // 'none'), fetch(url(r => $list), $_),
	'range_not_signed')
	for undef, '', '-', '-10', '-0', '0-', '9007-', '18016-',
	'0-9008', '9008-9008', '9007-9008', '9008-18015', '18015-18016',
	'18015-18015', '54048-54048', '0-54047', '0-99999', '5-99999999',
	'0-9007,18016-27024', '0-9007,9008-9009', '0-9007,18015-27023',
	'0-9007,18016-27023,45040-54047,54048-54048', '1-2,3-4,5-6,7-8',
	'18016-27023,0-9007', '0-9007,0-9007', '0-9007,0-0', '0-9007,9007-9007',
	'0-5,5-9', '5-4', '0-9007,', ',0-9007', '0-9,,10-19', '0-9;10-19',
	'0-9007 18016-27023', ' 0-9', '0 -9', '0- 9', '+0-9', '0x0-9', 'a-b',
	'0-9,-5', '0-9,18016-', '9223372036854775807-9223372036854775807',
	'9223372036854775808-9223372036854775808',
	'0-9223372036854775808', '0-18446744073709551615',
	'18446744073709551616-18446744073709551617',
	'0-9,18446744073709551616-18446744073709551617', '0-1-2',
	join(',', ('0-0') x 600), '9' x 400 . '-';

for my $value ('bytes', 'bytes0-9', 'bits=0-9', '0-9', 'byte=0-9', '',
	'bytes=0-9007=1', 'chunks=0-9', 'bytes=0-9 bytes=10-19')
{
	refused("Range: $value", $t->get(url(), { Range => $value }),
		'range_not_signed');
}

served('Range: BYTES=', $t->get(url(), { Range => 'BYTES=3-9' }), 3, 9);

refused("If-Range: $_", fetch(url(), '0-9', { 'If-Range' => $_ }),
	'range_not_signed')
	for '"x"', "\"$x->{name}\"", 'Thu, 01 Jan 1970 00:00:01 GMT', '';

never_more('two Range headers', $t->get(url(), [ Range => 'bytes=0-9',
	Range => 'bytes=100000-100009' ]), [ 0, 9007 ]);
never_more('two Range headers, a bad one first', $t->get(url(),
	[ Range => 'bytes=100000-100009', Range => 'bytes=0-9' ]),
	[ 0, 9007 ]);
never_more('two Range headers, an empty one', $t->get(url(),
	[ Range => 'bytes=0-9', Range => '' ]), [ 0, 9007 ]);

# more ranges than max_ranges, for which nginx would send the complete file

parts('max_ranges: as many', fetch(url(base => '/few', r => $list),
	'0-9,18016-18020'), [ 0, 9 ], [ 18016, 18020 ]);
refused('max_ranges: one more', fetch(url(base => '/few', r => $list),
	$list), 'range_not_signed');

# fewer bytes than were signed are an error: signed ranges beyond the end of the
# file, and a truncated file

for my $last ($size, 99999999) {
	$r = fetch(url(r => "9008-$last"), "9008-$last");
	is($r->{status}, 500, "signed beyond the end, to $last");
	never_more('no bytes', $r);
	$r = fetch(url(r => "0-9,9008-$last"), "0-9,9008-$last");
	is($r->{status}, 500, "several, to $last");
}

$t->allow(qr/does not match the signed URL: it is another range/);
is(fetch(url(r => '0-99999999'), "$size-$size")->{status}, 416,
	'a start beyond the end');
never_more('several beyond the end', fetch(url(r => "0-9,$size-99999999"),
	"0-9,$size-99999999"), [ 0, 9 ]);

# --------------------------------------------------------------------------
# URLs that differ from the signed URL

refused('trap 9: expired', fetch(url(e => time() - 1), '0-9'), 'expired');
refused('trap 9: expired just now', fetch(url(e => time()), '0-9'),
	'expired');
refused('trap 9: expired long ago', fetch(url(e => 0), '0-9'), 'expired');
is(fetch(url(e => time() - 1), undef)->{status}, 403,
	'trap 9: expired, no Range');
refused('expired and altered', fetch(url(e => 1, sign => { r => '0-1' }),
	'0-9'));

my $other = substr($x->{name}, 0, 2) . '0' x 62;

for my $case (
	[ 'another range', r => '0-9008' ], [ 'a narrower range', r => '0-9' ],
	[ 'no range', r => undef ], [ 'another expiry', e => $late + 1 ],
	[ 'another namespace', ns => 'other' ],
	[ 'another xorb', hash => $y->{name} ],
	[ 'a xorb that is not there', hash => $other ],
	[ 'another key', k => 'k2' ],
)
{
	my ($name, %o) = @$case;
	my $url = url(%o, sign => { ns => 'default', hash => $x->{name},
		r => '0-9007', e => $late, k => 'k1' });

	refused($name, fetch($url, '0-9'));
}

for my $case (
	[ 'a key nobody has', k => 'k9' ], [ 'an empty key id', k => '' ],
	[ 'a key id too long', k => 'k' x 17 ],
	[ 'a key id of other characters', k => 'k.1' ],
	[ 'a key id in upper case', k => 'K1' ],
	[ 'another secret', key => 'x' x 32 ],
	[ 'an empty secret', key => '' ],
	[ 'an empty namespace', ns => '' ],
	[ 'a namespace with a dot', ns => 'a.b' ],
	[ 'a namespace too long', ns => 'n' x 65 ],
	[ 'a folder that is not of the hash', aa => '00' ],
	[ 'upper case', hash => uc($x->{name}) ],
	[ 'upper case of the hash alone', hash => uc($x->{name}),
		sign => { hash => $x->{name} } ],
	[ 'a hash too short', hash => substr($x->{name}, 0, 63) ],
	[ 'a hash too long', hash => "$x->{name}0" ],
	[ 'a hash of other characters', hash => substr($x->{name}, 0, 63)
		. 'g' ],
	map([ "expiry $_", e => $_ ], '', "0$late", "+$late", "-$late",
		"$late.0", "${late}x", '1e12', '0x7fffffff',
		'9223372036854775808', '18446744073709551616', ' ' x 0 . 'x',
		"%3$late"),
	map([ "list $_", r => $_ ], '', '0', '0-', '-9', '9-0', '00-9',
		'0-09', '+0-9', '0-9,', ',0-9', '0-9,,20-29', '0-9;20-29',
		'0-9%2c20-29', '0%2d9', '20-29,0-9', '0-9,0-9', '0-9,9-19',
		'0-9,5-7', '0-9007,100-200', '0-9223372036854775808',
		'9223372036854775808-9223372036854775809',
		'0-18446744073709551625', '0-0x10', 'bytes=0-9',
		join(',', map { 10 * $_ . '-' . (10 * $_ + 5) } 0 .. 512)),
)
{
	my ($name, %o) = @$case;

	refused(substr($name, 0, 60), fetch(url(%o), '0-9'));
}

parts('512 ranges', fetch(url(r => join(',', map { 10 * $_ . '-'
	. (10 * $_ + 5) } 0 .. 511)), '0-5,5110-5115'), [ 0, 5 ],
	[ 5110, 5115 ]);

my $mac = mac('k1', "default/$x->{name}", $late, '0-9007');
my $last = substr($mac, -1);

(my $turned = $mac) =~ tr/A-Za-z0-9_-/B-ZAb-za1-90\-_/;

for my $case (
	[ 'empty' => '' ], [ 'too short' => substr($mac, 0, 42) ],
	[ 'too long' => "${mac}A" ], [ 'padded' => "$mac=" ],
	[ 'padded, encoded' => "$mac%3D" ], [ 'in upper case' => uc($mac) ],
	[ 'with a blank' => "$mac%20" ], [ 'of zeros' => 'A' x 43 ],
	[ 'turned' => $turned ], [ 'of other characters' => '*' x 43 ],
	[ 'of a NUL' => substr($mac, 0, 40) . '%00' ],
	[ 'in hex' => 'a1' x 32 ],
	map([ "with another character at $_" => do {
		my $s = $mac;
		substr($s, $_, 1) = substr($s, $_, 1) eq 'A' ? 'B' : 'A';
		$s
	} ], 0, 1, 20, 41, 42),
	map([ "with spare bits ($_)" => substr($mac, 0, 42) . $_ ],
		grep { $_ ne $last } 'A' .. 'Z')
)
{
	my ($name, $s) = @$case;

	refused("signature $name", fetch(url(s => $s), '0-9'));
}

# arguments

my %arg = (r => 'r=0-9007', e => "e=$late", k => 'k=k1', s => "s=$mac");
my $where = "/xorbs/default/" . substr($x->{name}, 0, 2) . "/$x->{name}";

served('arguments', fetch("$where?" . join('&', @arg{qw/ r e k s /}), '0-9'),
	0, 9);

refused("arguments $_", fetch("$where?" . join('&', map { $arg{$_} // $_ }
	split(/ /, $_, -1)), '0-9'))
	for 'e k s', 'r k s', 'r e s', 'r e k', 'r', 's', 'e k', 'e r k s',
	'r k e s', 's r e k', 'k e r s', 'r r e k s', 'r e e k s',
	'r e k k s', 'r e k s s', 'r e k s r', 'r e k s x=1', 'x=1 r e k s',
	'r x=1 e k s', 'r e k s  ', ' r e k s', 'r  e k s', 'r e k s a',
	'R=0-9007 e k s', 'r E=9 k s', 'r=0-9 r e k s', 'r e k s r=0-99999',
	'r e=9999999999 k s e', 'r%3D0-9007 e k s', '%72=0-9007 e k s',
	'r;e k s', 'r[]=0-9007 e k s', 'r= e k s', 'r=0-9007%20 e k s';

refused('no arguments', fetch($where, '0-9'));
refused('an empty query', fetch("$where?", '0-9'));
refused('an encoded query', fetch("$where%3f"
	. join('&', @arg{qw/ r e k s /}), '0-9'));

# paths: nginx may normalize a path to the signed one, but a path that differs
# after that is refused

my $query = '?' . join('&', @arg{qw/ r e k s /});
my $hash = $x->{name};
my $aa = substr($hash, 0, 2);

for my $path ("/xorbs/def%61ult/$aa/$hash", "/xorbs/default/$aa%2f$hash",
	"/xorbs/default%2F$aa/$hash", "/xorbs//default//$aa/$hash",
	"//xorbs/default/$aa/$hash", "/xorbs/default/x/../$aa/$hash",
	"/xorbs/default/./$aa/./$hash", "/xorbs/default/%2e%2e/default/$aa/"
	. $hash, "/x/../xorbs/default/$aa/$hash",
	"/xorbs/default/$aa/$hash/", "/xorbs/default/$aa/$hash/x",
	"/xorbs/default/$aa/$hash%00", "/xorbs/default/$aa/$hash%20",
	"/xorbs/default/$aa/$hash.", "/xorbs/default/$aa/$hash~",
	"/xorbs/default/$aa/x/$hash", "/xorbs/default/x/$aa/$hash",
	"/xorbs/x/default/$aa/$hash", "/xorbs/default/$hash",
	"/xorbs/$aa/$hash", "/xorbs/default/$aa", '/xorbs/default/$aa/',
	'/xorbs/default/', '/xorbs/', "/Xorbs/default/$aa/$hash",
	"/XORBS/default/$aa/$hash", "/xorbs/DEFAULT/$aa/$hash",
	"/few/xorbs/xorbs/default/$aa/$hash", "/xorbs/tmp/$aa/$hash",
	"/xorbs/default/$aa/\\$hash", "/xorbs/default/$aa/../$aa/$hash",
	"/xorbs/xorbs/default/$aa/$hash")
{
	for my $range ('0-9007', undef, '0-99999') {
		never_more("path $path", fetch("$path$query", $range),
			[ 0, 9007 ]);
	}
}

for my $path ('/xorbs/../url.key', '/xorbs/%2e%2e/url.key',
	'/xorbs/..%2furl.key', '/xorbs/default/../../../url.key',
	'/few/xorbs/../../url.key', '/few/xorbs../url.key',
	'/few/xorbs/%2e%2e/%2e%2e/url.key',
	"/few/xorbs/default/$aa/../../../../url.key")
{
	for my $q ('', $query) {
		my $r = $t->get("$path$q");

		ok($r->{status} >= 400 && $r->{body} !~ /5e5e/,
			"no way up: $path$q");
	}
}

# --------------------------------------------------------------------------
# other access rules of nginx do not bypass the signature

refused('satisfy any lets nobody in', fetch(url(base => '/any', e => 1),
	'0-9'), 'expired');
refused('satisfy any, no Range', fetch(url(base => '/any'), undef),
	'range_not_signed');
is(fetch(url(base => '/closed'), '0-9')->{status}, 403,
	'deny all is heeded');

# --------------------------------------------------------------------------
# URLs in the cacheable form

my $free = url(r => undef);

$r = fetch($free, undef);

is($r->{status}, 200, 'cacheable: complete');
ok($r->{body} eq $x->{bytes}, 'cacheable: data');
is($r->header_value('ETag'), "\"$hash\"", 'cacheable: ETag');
is($r->header_value('Accept-Ranges'), 'bytes', 'cacheable: Accept-Ranges');

served("cacheable: $_->[0]", fetch($free, $_->[0]), @$_[1, 2])
	for [ '0-9', 0, 9 ], [ '9000-9999', 9000, 9999 ],
	[ '100-', 100, $size - 1 ], [ '-100', $size - 100, $size - 1 ],
	[ '100-99999999', 100, $size - 1 ];

parts('cacheable: several', fetch($free, '0-9,90000-90009,100-109'),
	[ 0, 9 ], [ 90000, 90009 ], [ 100, 109 ]);
served('cacheable: If-Range', fetch($free, '5-9',
	{ 'If-Range' => "\"$hash\"" }), 5, 9);
is(fetch($free, '5-9', { 'If-Range' => '"x"' })->{status}, 200,
	'cacheable: If-Range, another tag');
is(fetch($free, "$size-")->{status}, 416, 'cacheable: past the end');
is(fetch($free, undef, { 'If-None-Match' => "\"$hash\"" })->{status}, 304,
	'cacheable: If-None-Match');
refused("cacheable: Range $_", fetch($free, $_), 'range_not_signed')
	for 'x', '5-4', '', join(',', ('0-0') x 513);
refused('cacheable: expired', fetch(url(r => undef, e => time()), undef),
	'expired');
refused('cacheable: altered', fetch(url(r => undef, sign => { r => '0-9' }),
	undef));

$r = fetch($free, undef, {}, method => 'HEAD');
is_deeply([ $r->{status}, $r->header_value('Content-Length') ],
	[ 200, $size ], 'cacheable: HEAD');

# URLs for a CDN, with its host and a prefix.  All requests within a quantum get
# the same URL, which is valid for any host.

$t->write_conf(undef, directives => {
	xet_url_base => 'https://cdn.example.com/some/prefix/',
	xet_url_mode => 'cacheable' });
$t->reload();

{
	my $file = $t->upload(mix(77, 500000));
	my @asked = map { $t->get("/api/v1/reconstructions/$file->{hash}",
		$_)->json()->{fetch_info} } {}, { Range => 'bytes=5-99' },
		{ Host => 'other.example.com' };
	my @urls = map { my $info = $_; map { map { $_->{url} }
		@{ $info->{$_} } } sort keys %$info } @asked;
	my %paths = map { s/[?].*//r => 1 } @urls;

	my $form = qr!\Ahttps://cdn\.example\.com/some/prefix/xorbs/default/
		[0-9a-f]{2}/[0-9a-f]{64}\.[0-9a-f]{8}
		\?e=\d+&k=k1&s=[\w-]+&n=\d+-\d+\z!x;

	is(join("\n", grep { $_ !~ $form } @urls), '', 'CDN: URLs');
	is(scalar(keys %paths), scalar(@{ $file->{xorbs} }),
		'CDN: one path a xorb');

	for my $url (@urls) {
		my ($e) = $url =~ /e=(\d+)/;

		ok($e % 600 == 0 && $e > time() + 3590, 'CDN: quantised');

		for my $base ('', '/few') {
			my $r = $t->get($base . $url
				=~ s!^https://[^/]+/some/prefix!!r,
				{ Range => 'bytes=0-99' });

			is($r->{status}, 206, "CDN: \"$base\"");
			is(length($r->{body}), 100, "CDN: \"$base\": bytes");
		}
	}
}

$t->write_conf(undef, directives => {});
$t->reload();

# --------------------------------------------------------------------------
# other methods, and xorbs that do not exist

for my $method (qw/ POST PUT DELETE PATCH OPTIONS PROPFIND COPY MKCOL /) {
	for my $body (undef, 'x' x 100) {
		my $r = $t->http($method, url(), { Range => 'bytes=0-9' },
			$body);

		is($r->{status}, 405, "$method: $r->{status}");
		cmp_ok(length($r->{body}), '<', 500, "$method: no data");
	}
}

is(fetch(url(hash => $other), '0-9')->{status}, 404,
	'a missing xorb');
is(fetch(url(ns => 'other'), '0-9')->{status}, 404,
	'a missing namespace');

# --------------------------------------------------------------------------
# URLs with one byte changed, at every position

my $seed = 7;

sub pick {
	my ($n) = @_;

	$seed = ($seed * 1103515245 + 12345) & 0x7fffffff;

	return ($seed >> 8) % $n;
}

my $c = $t->connect();
my @chars = ('0' .. '9', 'a' .. 'f', 'Z', '-', ',', '&', '=', '%', '/', '.',
	'+', '_', ';');
my $wrong = 0;
my %statuses;

for (1 .. 1500) {
	my $text = "$where$query|bytes=0-9007";
	my $at = 1 + pick(length($text) - 1);
	my $kind = pick(3);

	next if substr($text, $at, 1) eq '|';

	substr($text, $at, $kind ? 1 : 0) = $kind == 2 ? ''
		: $chars[pick(scalar @chars)];

	my ($url, $range) = split(/\|/, $text);
	my $r = $c->exchange('GET', $url, { Range => $range });

	# the server may have closed the connection after the previous response

	if ($r->{status} == 0) {
		$c = $t->connect();
		$r = $c->exchange('GET', $url, { Range => $range });
	}

	$statuses{$r->{status}}++;

	if ($r->{status} == 206) {
		my ($first, $last) = $r->header_value('Content-Range')
			=~ /^bytes (\d+)-(\d+)/;

		if ($last > 9007 || $r->{body} ne slice($first, $last)) {
			$wrong++;
			diag("$url $range: $r->{status}");
		}

	} elsif ($r->{status} < 400 || length($r->{body}) > 1000) {
		$wrong++;
		diag("$url $range: $r->{status}");
	}

	$c = $t->connect() if $c->closed(0) || $r->{status} == 400;
}

is($wrong, 0, 'altered requests: nothing that was not signed');
cmp_ok($statuses{403}, '>', 1000, 'most are refused');

# --------------------------------------------------------------------------
# URLs that the server signs itself

my $data = mix(5, 400000);
my $file = $t->upload($data, xorb_chunks => 3);

sub entries {
	return map { @$_ } values %{ $t->reconstruct($file->{hash})->{plan}
		{xorbs} };
}

sub parse {
	return $_[0] =~ m!://[^/]+(/xorbs/(\w+)/(..)/(\w{64}\.\w{8})
		\?r=([\d,-]+)&e=(\d+)&k=(\w+)&s=([\w-]+))\z!x;
}

for my $entry (entries()) {
	my ($uri, $ns, $aa, $hash, $r, $e, $k, $s) = parse($entry->{url});

	is($s, mac($k, "$ns/$hash", $e, $r), 'signature of the server');
	ok($e > time() + 3590 && $e < time() + 3600 + 600 && $e % 600 == 0,
		'life of an hour, rounded up');
	is($aa, substr($hash, 0, 2), 'folder');
	is($r, join(',', map { "$_->{bytes}{start}-$_->{bytes}{end}" }
		@{ $entry->{ranges} }), 'ranges');
}

# --------------------------------------------------------------------------
# keys that change while a client downloads

$c->close();
$t->check_fds();

my $big = put_xorb(random_bytes(9, 8 << 20), sizes => [ 131072 ]);

my $slow = $t->http_start('GET', url(hash => $big->{name}, r => undef), {},
	undef, rcvbuf => 65536, timeout => 20, close => 1);
my $head = $slow->read_some(1000, 5);

like($head, qr!\AHTTP/1.1 200!, 'a slow download');

my ($before) = parse((entries())[0]{url});

$t->write_file('url.key', "# two keys\n\nurl:k2:" . 'c3' x 64 . "\r\n"
	. 'url:k1:' . '5e' x 32 . "\n");
$keys{k2} = derived_key(pack('H*', 'c3' x 64));
my @old = $t->reload();

sub still {
	my %now = map { $_ => 1 } $t->worker_pids(all => 1);

	return scalar grep { $now{$_} } @old;
}

wait_for(5, sub { still() == 1 });
is(still(), 1, 'its worker keeps running');

my ($after, undef, undef, undef, undef, undef, $id)
	= parse((entries())[0]{url});

is($id, 'k2', 'the first key signs');
like($after, qr/k=k2/, 'the URL names the key');
served('the new key', fetch(url(k => 'k2', key => $keys{k2}), '0-9'), 0, 9);
served('the old key', fetch(url(), '0-9'), 0, 9);
refused('the new id with the old secret', fetch(url(k => 'k2'), '0-9'));
is($t->download($file->{hash})->{data}, $data, 'a download with the new one');

my ($bytes) = $before =~ /r=([\d-]+)/;
is(fetch($before, $bytes)->{status}, 206, 'an earlier URL');

$t->write_file('url.key', 'url:k2:' . 'c3' x 64 . "\n");
$t->reload();

refused('a key that is gone', fetch(url(), '0-9'));
refused('an earlier URL', fetch($before, $bytes));
served('the key that stays', fetch(url(k => 'k2', key => $keys{k2}), '0-9'),
	0, 9);

my $rest = $head . $slow->read_some(length($big->{bytes}) + 2000, 20);

$rest =~ s/\A.*?\r\n\r\n//s;
ok($rest eq $big->{bytes}, 'the slow download is complete')
	or diag(length($rest));
$slow->close();

# --------------------------------------------------------------------------
# HEAD of xorbs and files

for my $xorb ($x, $y, $big, @{ $file->{xorbs} }) {
	my $r = $t->head("/api/v1/xorbs/default/$xorb->{hash}");

	is_deeply([ $r->{status}, $r->header_value('Content-Length'),
		$r->{body} ], [ 200, $xorb->{stored_size}, '' ],
		'HEAD of a xorb');
}

$r = $t->head("/api/v1/files/$file->{hash}");
is_deeply([ $r->{status}, $r->header_value('Content-Length') ],
	[ 200, 400000 ], 'HEAD of a file');

is($t->head("/api/v1/xorbs/default/$other")->{status}, 404,
	'HEAD of a missing xorb');
is($t->head("/api/v1/files/$other")->{status}, 404,
	'HEAD of a missing file');

$r = $t->head("/api/v1/xorbs/default/$x->{hash}", { Range => 'bytes=0-9' });
is_deeply([ $r->{status}, $r->header_value('Content-Length') ],
	[ 200, $size ], 'HEAD of a xorb with Range');

# complete xorbs, for callers that may read them

my $get = "/api/v1/xorbs/default/$x->{hash}";

$r = $t->get($get);

is($r->{status}, 200, 'GET of a xorb');
ok($r->{body} eq $x->{bytes}, 'its data');
is($r->header_value('ETag'), "\"$hash\"", 'its ETag');
served('GET of a xorb: a range', $t->get($get, { Range => 'bytes=5-9' }), 5,
	9);
served('GET of a xorb: an open range', $t->get($get,
	{ Range => 'bytes=100-' }), 100, $size - 1);
parts('GET of a xorb: two ranges', $t->get($get,
	{ Range => 'bytes=5-9,20-29' }), [ 5, 9 ], [ 20, 29 ]);
served('GET of a xorb: arguments', $t->get("$get?r=0-1&e=1&k=x&s=y",
	{ Range => 'bytes=5-9' }), 5, 9);
served('GET of a xorb: upper case', $t->get('/api/v1/xorbs/default/'
	. uc($x->{hash}), { Range => 'bytes=5-9' }), 5, 9);
is($t->get("/api/v1/xorbs/default/$y->{hash}")->header_value(
	'Content-Length'), $y->{stored_size}, 'trap 11: GET without footer');
is($t->get($get, { Range => "bytes=$size-" })->{status}, 416,
	'GET of a xorb: past the end');

$r = $t->get("/api/v1/xorbs/default/$other");

is($r->{status}, 404, 'GET of a missing xorb');
ok($r->json(), 'is JSON') or diag($r->{body});

$c = $t->connect();
$c->exchange('HEAD', "/api/v1/xorbs/default/$_") for $x->{hash}, $other;
is($c->exchange('GET', '/api/v1/health')->{status}, 200,
	'the connection works after HEAD');
$c->close();

$t->done();
