#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Invalid xorbs: each gets a 4xx response in JSON and one line in the error log,
# and stores nothing.  The next valid xorb is accepted, on the same connection
# if it stays open.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Refusal;

my $t = Test::Xet->new(log => 'info', server => <<'EOC');
location /small/ {
            xet_api;
            xet_api_base         /small;
            xet_auth             off;
            xet_xorb_max_size    150000;
            xet_body_buffer      16k;
            client_max_body_size 160000;
            error_page           400 413 @xet_error;
        }
EOC

$t->run();
$t->fds_mark();

my $route = '/api/v1/xorbs/default';
my $small = '/small/v1/xorbs/default';

# valid xorbs, used repeatedly

my @good = map { make_xorb(random_bytes($_, 30000), sizes => [ 10000 ]) }
	1, 2;

$t->post("$route/$_->{hash}", \$_->{bytes}) for @good;

my @files = $t->files_in_store();
my $rows = $t->rows();

is(@files, 2, 'two xorbs');

# --------------------------------------------------------------------------

my $refusal = Test::Xet::Refusal->new($t);
my ($reused, $few);

# Sends an invalid body, then a valid one.  Returns what is wrong with the
# responses, '' if nothing is.

sub refusal {
	my ($status, $code, $body, %o) = @_;

	$refusal->lines();

	my $r = $refusal->send($o{uri}, $body, %o);
	my @wrong = $refusal->wrong($r, $status, $code, %o);

	push @wrong, "files: @{[ $t->files_in_store() ]}"
		if $t->files_in_store() != @files;

	# valid uploads are slow (synced to disk): loops send one for every ten
	# bodies

	return join('; ', @wrong) if $o{few} && ++$few % 10;

	my $next = $good[ rand @good ];

	$reused++ if $refusal->open();
	$r = $refusal->send("$route/$next->{hash}", $next->{bytes});

	push @wrong, "then $r->{status} $r->{body} " . ($r->{error} // '')
		if $r->{status} != 200;

	return join('; ', @wrong);
}

# Checks that a body is refused because of its contents, with Content-Length and
# chunked.

sub bad {
	my ($name, $code, $body, %o) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $hash = $o{hash} || ('a1' x 32);
	my $status = $o{status} || 400;
	my $uri = ($o{route} || $route) . "/$hash";

	is(refusal($status, $code, $body, uri => $uri), '', $name);
	is(refusal($status, $code, $body, uri => $uri, chunked => 1000), '',
		"$name, chunked");
}

# The next two functions build chunk records, to make invalid xorbs by hand.

sub u24 {
	return substr(pack('V', $_[0]), 0, 3);
}

sub chunk {
	my ($scheme, $raw, $data, %o) = @_;

	return chr($o{version} || 0) . u24($o{stored} // length($data))
		. chr($scheme) . u24($raw) . $data;
}

my $x = make_xorb(random_bytes(9, 300), sizes => [ 100 ]);
my ($hash, $bytes) = @$x{qw/ hash bytes /};
my $raw = random_bytes(10, 1000);

# --------------------------------------------------------------------------
# the path

sub bad_uri {
	my ($name, $code, $uri, %o) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(refusal(400, $code, $bytes, uri => "/api/v1/xorbs/$uri", %o), '',
		$name);
}

my $other = ('0' x 63) . '1';

is(refusal(400, 'hash_mismatch', $bytes, uri => "$route/$other"), '',
	'another hash');
is(refusal(400, 'hash_mismatch', $bytes, uri => "$route/" . ('0' x 64)), '',
	'zero hash');
is(refusal(400, 'hash_mismatch', $bytes, uri => "$route/$good[0]{hash}"), '',
	'the hash of a stored xorb');

my $plain = plain_hash($hash);
is(refusal(400, 'hash_mismatch', $bytes, uri => "$route/$plain"), '',
	'hash in plain hex order');

bad_uri('a digit short', 'invalid_hash', 'default/' . substr($hash, 1));
bad_uri('a digit long', 'invalid_hash', "default/${hash}0");
bad_uri('not hex', 'invalid_hash', 'default/g' . substr($hash, 1));
bad_uri('not hex at the end', 'invalid_hash', 'default/' . substr($hash, 0, 63)
	. '%20');
bad_uri('a NUL', 'invalid_hash', 'default/' . substr($hash, 0, 63) . '%01');
bad_uri('no hash', 'invalid_hash', 'default/');
bad_uri('no prefix', 'invalid_prefix', "%2e%2e%2e%2b/$hash");
bad_uri('a blank in the prefix', 'invalid_prefix', "de%20fault/$hash");
bad_uri('a colon in the prefix', 'invalid_prefix', "default:/$hash");
bad_uri('UTF-8 in the prefix', 'invalid_prefix', "d%c3%a9faut/$hash");
bad_uri('a long prefix', 'invalid_prefix', ('d' x 300) . "/$hash");

# --------------------------------------------------------------------------
# headers of chunks

bad('no bytes', 'invalid_xorb', '');

for my $scheme (schemes() .. schemes() + 1, 98 .. 100, 255) {
	bad("scheme $scheme", 'invalid_xorb', chunk($scheme, 1000, $raw));
}

for my $version (1, 2, 255) {
	bad("version $version", 'invalid_xorb',
		chunk(0, 1000, $raw, version => $version));
}

bad('stored length 0', 'invalid_xorb', chunk(1, 1000, ''));
bad('stored length 0 of a stored chunk', 'invalid_xorb', chunk(0, 0, ''));
bad('stored length 131073', 'invalid_xorb', chunk(1, 131072, 'x' x 131073));
bad('stored length 0xffffff', 'invalid_xorb', chunk(1, 131072, $raw,
	stored => 0xffffff));
bad('stored length past the end', 'invalid_xorb', chunk(0, 1001, $raw,
	stored => 1001));
bad('raw length 0', 'invalid_xorb', chunk(1, 0, $raw));
bad('raw length 131073', 'invalid_xorb', chunk(1, 131073, $raw));
bad('raw length 0xffffff', 'invalid_xorb', chunk(1, 0xffffff, $raw));
bad('raw length 131073, not compressed', 'invalid_xorb',
	chunk(0, 131073, 'x' x 131073));
bad('a stored chunk of other length', 'invalid_xorb', chunk(0, 999, $raw));
bad('a bad second chunk', 'invalid_xorb', chunk(0, 1000, $raw)
	. chunk(99, 1000, $raw));
bad('text', 'invalid_xorb', "hello, world\n" x 100);
bad('zeros', 'invalid_xorb', "\0" x 5000);
bad('noise', 'invalid_xorb', random_bytes(11, 50000));

# the largest valid values are accepted, so the limits are exact

for my $y (make_xorb(random_bytes(12, 131072), scheme => 'none',
	sizes => [ 131072 ]))
{
	is($t->post("$route/$y->{hash}", \$y->{bytes})->{status}, 200,
		'a chunk of 128 KiB');
	@files = $t->files_in_store();
	$rows = $t->rows();
}

# --------------------------------------------------------------------------
# LZ4

my $text = 'the same again and ' x 50;
my $lz4 = make_xorb($text, scheme => 'lz4', sizes => [ 950 ]);
my $frame = substr($lz4->{bytes}, 8);

cmp_ok(length($frame), '<', 200, 'a frame');
is(unpack('H*', substr($frame, -4)), '00000000', 'its end marker');

for my $scheme (1, 2) {
	my $n = "scheme $scheme";

	bad("$n: garbage", 'invalid_xorb', chunk($scheme, 1000, $raw));
	bad("$n: garbage after the magic", 'invalid_xorb', chunk($scheme,
		1000, "\x04\x22\x4d\x18$raw"));
	bad("$n: more than declared", 'invalid_xorb',
		chunk($scheme, 949, $frame));
	bad("$n: less than declared", 'invalid_xorb',
		chunk($scheme, 951, $frame));
	bad("$n: one byte declared", 'invalid_xorb',
		chunk($scheme, 1, $frame));
	bad("$n: without end marker", 'invalid_xorb',
		chunk($scheme, 950, substr($frame, 0, -4)));
	bad("$n: a byte after the end marker", 'invalid_xorb',
		chunk($scheme, 950, "$frame\0"));
	bad("$n: two frames", 'invalid_xorb',
		chunk($scheme, 1900, "$frame$frame"));
	bad("$n: cut short", 'invalid_xorb',
		chunk($scheme, 950, substr($frame, 0, 30)));
	bad("$n: only the magic", 'invalid_xorb',
		chunk($scheme, 950, substr($frame, 0, 4)));
}

# Frames of more than 128 KiB, made by hand: each block of the first frame
# repeats one byte 65,536 times.  Another frame declares a size of 2^40 bytes.

my $block = lz4_run(65536);
my $magic = "\x04\x22\x4d\x18";
my $bomb = "$magic\x60\x40\x82" . ($block x 3) . "\0\0\0\0";

# Makes a block: one literal, a match of that literal, five final literals.

sub lz4_run {
	my ($n) = @_;

	my $left = $n - 1 - 4 - 5 - 15;
	my $data = "\x1fA\x01\0" . ("\xff" x int($left / 255))
		. chr($left % 255) . "\x50AAAAA";

	return pack('V', length($data)) . $data;
}

my $whole = "$magic\x60\x40\x82" . ($block x 2) . "\0\0\0\0";
my $a = make_xorb('A' x 131072, sizes => [ 131072 ]);

is($t->post("$route/$a->{hash}", chunk(1, 131072, $whole))->{status}, 200,
	'a frame of 128 KiB');
@files = $t->files_in_store();
$rows = $t->rows();

bad('a frame of 192 KiB', 'invalid_xorb', chunk(1, 131072, $bomb),
	hash => $a->{hash});
bad('a frame of 16 MiB', 'invalid_xorb', chunk(1, 131072,
	"$magic\x60\x40\x82" . ($block x 256) . "\0\0\0\0"));

# --------------------------------------------------------------------------
# xorbs truncated at any byte

my %wrong;

# Truncates a xorb at each byte of its first two chunks.

sub truncated {
	my ($name, $y) = @_;

	my $end = $y->{chunks}[1]{stored_end};

	%wrong = ();

	for my $n (1 .. $end) {
		my $whole = grep { $_->{stored_end} == $n } @{ $y->{chunks} };
		my $wrong = refusal(400, $whole ? 'hash_mismatch'
			: 'invalid_xorb', substr($y->{bytes}, 0, $n),
			uri => "$route/$y->{hash}", few => 1,
			$n % 2 ? (chunked => 1) : ());

		$wrong{$n} = $wrong if $wrong ne '';
	}

	is_deeply(\%wrong, {}, "$name: truncated at each of $end bytes");
}

truncated('stored', $x);

for my $scheme (qw/ lz4 bg4 /) {
	my $y = make_xorb('abcdefgh' x 300, scheme => $scheme,
		sizes => [ 800 ]);

	cmp_ok($y->{chunks}[1]{stored_end}, '<', 400, "$scheme: compressed");
	is(ord(substr($y->{bytes}, 4, 1)), $scheme eq 'lz4' ? 1 : 2,
		"$scheme: scheme");
	truncated($scheme, $y);
}

%wrong = ();

for my $n (0 .. 7, 8, 50, 107) {
	my $flipped = $bytes;
	substr($flipped, $n, 1) ^= "\xff";

	my $wrong = refusal(400, $n < 8 ? 'invalid_xorb' : 'hash_mismatch',
		$flipped, uri => "$route/$hash");
	$wrong{$n} = $wrong if $wrong ne '';
}

is_deeply(\%wrong, {}, 'bytes changed');

bad('chunks in another order', 'hash_mismatch', join('',
	map { substr($bytes, $_, 108) } 108, 0, 216), hash => $hash);
bad('a chunk twice', 'hash_mismatch', substr($bytes, 0, 108) . $bytes,
	hash => $hash);
bad('zeros after the xorb', 'invalid_xorb', "$bytes\0\0\0", hash => $hash);
bad('XETB after the xorb', 'invalid_xorb', "${bytes}XETB", hash => $hash);

# --------------------------------------------------------------------------
# limits

my $many = make_xorb('x' x 8193, sizes => [ 1 ], large => 1);

bad('8,193 chunks', 'invalid_xorb', $many->{bytes}, hash => $many->{hash});

my $most = make_xorb(random_bytes(13, 149984), scheme => 'none',
	sizes => [ 74992 ]);
is($most->{stored_size}, 150000, 'the maximum size');
is($t->post("$small/$most->{hash}", \$most->{bytes})->{status}, 200,
	'is accepted');

my $footed = make_xorb(random_bytes(14, 149984), scheme => 'none',
	sizes => [ 74992 ], footer => 'v1');
is($t->post("$small/$footed->{hash}", \$footed->{bytes})->{status}, 200,
	'a footer does not count');

@files = $t->files_in_store();
$rows = $t->rows();

my $more = make_xorb(random_bytes(13, 149985), scheme => 'none',
	sizes => [ 74992, 74993 ]);
bad('a byte more', 'xorb_too_large', $more->{bytes}, hash => $more->{hash},
	route => $small, status => 413);

$more = make_xorb(random_bytes(13, 170000), scheme => 'none');

is(refusal(413, 'body_too_large', $more->{bytes},
	uri => "$small/$more->{hash}", line => qr/too large body/), '',
	'more than client_max_body_size');
is(refusal(413, 'body_too_large', $more->{bytes},
	uri => "$small/$more->{hash}", line => qr/too large body/,
	expect => 1), '', 'the same with Expect: 100-continue');

# nginx writes the log line, and the module the response; the body is valid
# except for its footer, which is too large

$more = make_xorb(random_bytes(13, 130000), scheme => 'none', sizes => [ 100 ],
	footer => 'v1');
cmp_ok($more->{stored_size}, '<', 150000, 'the xorb is not too large');
cmp_ok(length($more->{bytes}), '>', 160000, 'with the footer it is');

is(refusal(413, 'body_too_large', $more->{bytes},
	uri => "$small/$more->{hash}", chunked => 1000, lines => 2,
	line => qr/too large (?:chunked )?body|xet: 413 body_too_large/), '',
	'more than client_max_body_size, chunked');

# --------------------------------------------------------------------------
# footers

for my $version (qw/ v0 v1 /) {
	my $y = make_xorb(random_bytes(9, 300), sizes => [ 100 ],
		footer => $version);
	my $start = $y->{stored_size};
	my $end = length($y->{bytes});

	is($y->{hash}, $hash, "$version: the same xorb");

	%wrong = ();

	for my $n ($start .. $end - 1) {
		next if $n >= $end - 20 && $n < $end - 4;

		my $flipped = $y->{bytes};
		substr($flipped, $n, 1) ^= "\x01";

		my $wrong = refusal(400, 'invalid_xorb', $flipped,
			uri => "$route/$hash", few => 1);
		$wrong{$n - $start} = $wrong if $wrong ne '';
	}

	is_deeply(\%wrong, {}, "$version: each byte changed");

	%wrong = ();

	for my $n ($start + 1 .. $end - 1) {
		my $wrong = refusal(400, 'invalid_xorb',
			substr($y->{bytes}, 0, $n), uri => "$route/$hash",
			few => 1);
		$wrong{$n - $start} = $wrong if $wrong ne '';
	}

	is_deeply(\%wrong, {}, "$version: truncated at each byte");

	bad("$version: garbage after it", 'invalid_xorb', "$y->{bytes}\0",
		hash => $hash);
	bad("$version: a footer twice", 'invalid_xorb', $y->{bytes}
		. substr($y->{bytes}, $start), hash => $hash);
	bad("$version: chunks after it", 'invalid_xorb', $y->{bytes}
		. substr($y->{bytes}, 0, $start), hash => $hash);
	bad("$version: nothing but a footer", 'invalid_xorb',
		substr($y->{bytes}, $start), hash => $hash);
	bad("$version: of another xorb", 'invalid_xorb',
		$good[0]{bytes} . substr($y->{bytes}, $start),
		hash => $good[0]{hash});
}

bad('version 2 of a footer', 'invalid_xorb', "${bytes}XETBLOB\2" . ("\0" x 200),
	hash => $hash);
bad('a wrong xorb with a footer', 'hash_mismatch',
	make_xorb(random_bytes(9, 300), sizes => [ 100 ], footer => 'v1')
		->{bytes}, hash => $other);

# --------------------------------------------------------------------------
# framing: nginx itself refuses these requests

sub framing {
	my ($name, $headers, @pieces) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$refusal->lines();

	my $c = $t->http_start('POST', "$route/$hash", $headers);

	for (@pieces) {
		select(undef, undef, undef, 0.02);
		$c->send($_);
	}

	my $r = $c->response('POST');
	my @lines = $refusal->lines();

	is("$r->{status} " . ($r->{error} // ''), '400 ', "$name: 400");
	ok(!$t->temp_files() && $t->files_in_store() == @files,
		"$name: nothing left");
	$c->close();

	# nginx has not selected a location yet

	return unless @pieces;

	like($r->{body}, qr/\A\{"error":\{"code":"\w+","message":"[^"]+"\}\}\z/,
		"$name: JSON");
	ok(@lines <= 2 && grep({ /sent invalid|xet: 400/ } @lines),
		"$name: logged") or diag("@lines");
}

my @te = ('Transfer-Encoding' => 'chunked');

framing('no size', { @te }, "zz\r\n");
framing('a huge size', { @te }, "ffffffffffffffffff\r\n");
framing('a negative size', { @te }, "-5\r\n");
framing('a chunk too long', { @te }, "a\r\n" . substr($bytes, 0, 12));
framing('broken later', { @te }, "64\r\n" . substr($bytes, 0, 100) . "\r\n",
	"zz\r\n");
framing('broken at the end', { @te }, sprintf("%x\r\n", length($bytes))
	. "$bytes\r\n", "x\r\n");
framing('both framings', { @te, 'Content-Length' => 5 });
framing('two lengths', [ 'Content-Length' => 5, 'Content-Length' => 6 ]);
framing('no number', { 'Content-Length' => 'abc' });
framing('a negative length', { 'Content-Length' => '-1' });

# an empty body

my $r = $t->http('POST', "$route/$hash", {});
is($r->{status}, 400, 'neither length nor coding');
is($r->json()->{error}{code}, 'invalid_xorb', 'an empty body');

# --------------------------------------------------------------------------
# methods

for my $method (qw/ PUT DELETE PATCH FOO /) {
	$refusal->lines();

	$r = $t->http($method, "$route/$hash", {}, $bytes);
	is($r->{status}, 405, "$method");
	is($r->json()->{error}{code}, 'method_not_allowed', "$method: code");
	like($r->header_value('Allow') // '', qr/\bPOST\b/, "$method: Allow");
	like($r->header_value('Allow') // '', qr/\bHEAD\b/, 'and HEAD');
	is(scalar(my @lines = $refusal->lines()), 0, "$method: no log line");
}

for my $method (qw/ GET HEAD PUT DELETE /) {
	$r = $t->http($method, '/api/v1/shards', {});
	is($r->{status}, 405, "$method shards");
	is($r->header_value('Allow'), 'POST', 'Allow');
}

# --------------------------------------------------------------------------

$refusal->close();

cmp_ok($reused, '>', 200, "connections went on $reused times");
is_deeply($t->rows(), $rows, 'no rows');
is_deeply([ $t->files_in_store() ], \@files, 'no files');

for (@good) {
	ok($t->copy_bytes($t->copy($_->{hash})) eq $_->{bytes},
		'the good ones as they were');
}

$t->done();
