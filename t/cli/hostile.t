#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet with a server that sends false responses: after a faulty reconstruction,
# xorb or dedup response, either xet prints one line and returns an error code,
# or the bytes are right.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ slurp spew /;

use File::Temp qw/ tempdir /;
use JSON::PP ();

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 300,
	http => <<'EOC');
map $http_range $window {
        default      2;
        ""           "";
        ~^bytes=0-   "";
    }

    server {
        listen 127.0.0.1:%%PORT_8081%%;
        default_type application/json;

        location ~ ^/api/v[12]/reconstructions/ {
            root %%DIR%%/lies;
            max_ranges 0;
            try_files /plan$window =404;
        }

        location ~ ^/api/v1/files/ {
            return 404;
        }

        location /xorb {
            root %%DIR%%/lies;
        }

        location ~ ^/api/v1/chunks/ {
            root %%DIR%%/lies;
            try_files /chunks =404;
        }

        location /api/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }
    }

    server {
        listen 127.0.0.1:%%PORT_8082%%;
        client_max_body_size 80m;

        location /all/ {
            return 200 '<html>sign in</html>';
        }

        location /empty/ {
            return 204;
        }

        location ~ ^/shards/v1/xorbs/ {
            return 200 '{"was_inserted":true}';
        }

        location /shards/ {
            return 200 '{"was_inserted":true}';
        }

        location ~ ^/says/v1/xorbs/ {
            return 200 '{"was_inserted":false}';
        }

        location /says/ {
            return 200 '{"result":0}';
        }
    }
EOC

$t->run();

my $dir = tempdir(CLEANUP => 1);
my $out = "$dir/out";
my $told = '';
my $json = JSON::PP->new->canonical();

# an honest response: two terms of one xorb, the second range comes first

my $xorb = make_xorb(mix(5, 300000), sizes => [ 30000 ]);
my @chunks = @{ $xorb->{chunks} };
my $data = decode_xorb($xorb->{bytes});
my $file = $t->upload($data);
my $shard = make_shard({ files => [ { terms => [
	map { { xorb => $xorb->{hash}, start => $_->[0], end => $_->[1],
	chunks => [ @chunks[$_->[0] .. $_->[1] - 1] ] } } [ 4, 10 ], [ 0, 4 ]
] } ], xorbs => [ $xorb ] });
my $hash = $shard->{files}[0]{hash};
my $want = substr($data, 120000) . substr($data, 0, 120000);

my $url = $t->url('/xorb', 8081);

sub lie {
	my (%change) = @_;

	return { offset_into_first_range => 0, terms => [
		{ hash => $xorb->{hash}, unpacked_length => 180000,
		range => { start => 4, end => 10 } },
		{ hash => $xorb->{hash}, unpacked_length => 120000,
		range => { start => 0, end => 4 } } ],
	xorbs => { $xorb->{hash} => [ { url => $url, ranges => [ {
		chunks => { start => 0, end => 10 },
		bytes => { start => 0,
			end => length($xorb->{bytes}) - 1 } } ] } ] },
	%change };
}

is(get(lie(), $xorb->{bytes}), 0, 'an honest server');
ok(slurp($out) eq $want, 'what it has');

# --------------------------------------------------------------------------
# reconstructions, each with one fault

my $big = '18446744073709551616';

for my $fault (
	[ 'no JSON', '{' ], [ 'nothing', '' ], [ 'an array', '[]' ],
	[ 'no terms', { terms => undef } ],
	[ 'no xorbs', { xorbs => undef } ],
	[ 'xorbs as a list', { xorbs => [] } ],
	[ 'other xorbs', { xorbs => { 'ab' x 32 => [] } } ],
	[ 'a bad hash of them', { xorbs => { xyz => [] } } ],
	[ 'an offset behind', { offset_into_first_range => 180000 } ],
	[ 'a large offset', { offset_into_first_range => 9e15 } ],
	[ 'a negative offset', { offset_into_first_range => -1 } ],
	(map { my $fault = $_; [ "term: @$fault", { terms => [ term(@$fault) ]
		} ] } [ hash => 'x' ], [ unpacked_length => 0 ],
		[ unpacked_length => -1 ], [ unpacked_length => 1e12 ],
		[ unpacked_length => 5 ], [ unpacked_length => 180001 ],
		[ range => { start => 5, end => 5 } ],
		[ range => { start => 9, end => 11 } ],
		[ range => { start => 0, end => 9000 } ],
		[ range => { start => -1, end => 2 } ], [ range => 7 ]),
	(map { my $fault = $_; [ 'range: ' . $json->encode($fault),
		{ xorbs => { $xorb->{hash} => [ { url => $url,
		ranges => [ $fault ] } ] } } ] }
		{ chunks => { start => 0, end => 10 } },
		{ chunks => { start => 0, end => 10 },
			bytes => { start => 5, end => 4 } },
		{ chunks => { start => 0, end => 10 },
			bytes => { start => 1, end => 4000 } },
		{ chunks => { start => 0, end => 10 },
			bytes => { start => 0, end => 4000 } },
		{ chunks => { start => 0, end => 10 },
			bytes => { start => 0, end => 1e18 } },
		{ chunks => { start => 0, end => 9 },
			bytes => { start => 0,
			end => length($xorb->{bytes}) - 1 } },
		{ chunks => { start => 1, end => 10 },
			bytes => { start => 0,
			end => length($xorb->{bytes}) - 1 } },
		{ chunks => { start => 10, end => 0 },
			bytes => { start => 0, end => 4000 } }),
	(map { [ "URL $_", { xorbs => { $xorb->{hash} => [ { url => $_,
		ranges => [ { chunks => { start => 0, end => 10 },
		bytes => { start => 0, end => 9 } } ] } ] } } ] }
		'', 'x', 'file:///etc/passwd', 'http://', 'ftp://127.0.0.1/x',
		"$url/none"),
) {
	my ($name, $change) = @$fault;

	unlink(glob("$out*"));

	my $code = get(ref $change ? lie(%$change) : $change,
		$xorb->{bytes});

	ok($code == 1 || $code == 4, "$name: refused");
	ok(!-e $out, "$name: nothing under the name");
}

# data URLs are shown without their user names, passwords and queries

for my $where ('all/x', 'none') {
	my $data = $t->url("/$where?secret=1", 8082);

	get(lie(xorbs => { $xorb->{hash} => [ { url => $data
		=~ s!//!//me:secret\@!r, ranges => [ {
		chunks => { start => 0, end => 10 }, bytes => { start => 0,
			end => length($xorb->{bytes}) - 1 } } ] } ] }),
		$xorb->{bytes});

	my $url = $data =~ s/\?.*//r;

	like($told, qr/^xet: server: \Q$url\E: (?:HTTP )?\d+/,
		"data URL: $where");
	unlike($told, qr/secret/, 'what is secret in it is not shown');
}

# --------------------------------------------------------------------------
# flipped bytes of reconstructions and xorbs

srand(17);

my ($right, $wrong) = (0, 0);

for my $n (1 .. 120) {
	my $text = $json->encode(lie());
	my $bytes = $xorb->{bytes};

	for (0 .. rand(3)) {
		my $r = $n % 2 ? \$text : \$bytes;

		substr($$r, int(rand(length($$r))), 1) = chr(int(rand(256)));
	}

	unlink(glob("$out*"));

	my $code = get($text, $bytes, quiet => 1);

	$wrong++ if !defined $code || $code !~ /^[014]$/
		|| ($code == 0) != (-e $out ? 1 : 0)
		|| ($code == 0 && slurp($out) ne $want);
	$right++ if defined $code && $code == 0;
}

is($wrong, 0, "flipped bytes: no wrong ones came out ($right were no harm)");

# --------------------------------------------------------------------------
# dedup responses: with any contents, the put either is correct or fails

my $half = substr($data, 0, 150000) . random_bytes(6, 150000);

spew("$dir/half", $half);

my $first = $file->{xorbs}[0]{chunks}[0]{hash};
my $answer = $t->get("/api/v1/chunks/default/$first")->{body};

is(substr($answer, 0, 14), 'HFRepoMetaData', 'an answer');

# an expired shard, or a shard of another version, is not used

my %footer = (honest => sub { }, expires => sub { put64($_[0], 112, 1) },
	'expires never' => sub { put64($_[0], 112, 0) },
	'footer version' => sub { put64($_[0], 0, 2) },
	'header version' => sub { substr($_[0], 32, 8) = pack('Q<', 3) });

spew("$dir/all", $data);

for my $name (sort keys %footer) {
	my $bytes = $answer;

	$footer{$name}->($bytes);
	spew($t->dir() . '/lies/chunks', $bytes);

	my $known = xet($t, { endpoint => $t->url('/api', 8081) }, 'put',
		'--json', "$dir/all")->{json}[0]{deduplicated_bytes};

	is($known, $name =~ /honest|never/ ? length($data) : 0,
		"dedup answer: $name");
}

sub put64 { substr($_[0], length($_[0]) - 200 + $_[1], 8) = pack('Q<', $_[2]) }

for my $n (0 .. 60) {
	my $bytes = $answer;

	if ($n == 1) {
		$bytes = '';

	} elsif ($n == 2) {
		$bytes = substr($answer, 0, 300);

	} elsif ($n > 2) {
		my $pos = $n < 30 ? 96 + int(rand(length($bytes) - 296))
			: int(rand(length($bytes)));

		substr($bytes, $pos, 1) = chr(int(rand(256)));
	}

	spew($t->dir() . '/lies/chunks', $bytes);

	my $r = xet($t, { endpoint => $t->url('/api', 8081) }, 'put',
		'--json', '--retries', 0, "$dir/half");

	if (!defined $r->{code} || ($r->{code} != 0 && $r->{code} != 4)) {
		fail("dedup answer $n");
		diag($r->{err});
	}

	next unless $r->{code} == 0;

	$r = xet($t, 'get', '-o', $out, $r->{json}[0]{hash});
	fail("dedup answer $n: other bytes")
		if $r->{code} != 0 || slurp($out) ne $half;
}

pass('dedup answers');

# --------------------------------------------------------------------------
# status 200 alone does not mean that the data is stored

for my $what ([ all => 4, 'xorbs' ], [ empty => 4, 'xorbs' ],
	[ shards => 4, 'shards' ], [ says => 0 ])
{
	my ($name, $code, $where) = @$what;

	my $r = xet($t, { endpoint => $t->url("/$name", 8082) }, 'put',
		'--retries', 0, "$dir/half");

	is($r->{code}, $code, "200 to anything: $name");
	next unless $code;
	is($r->{out}, '', "$name: nothing is acknowledged");
	like($r->{err},
		qr!\Axet: server: \S+/v1/$where\S*: unexpected response!,
		"$name: reported");
}

my $rm = xet($t, { endpoint => $t->url('/all', 8082) }, 'rm', '--json', $hash);

is($rm->{code}, 4, '200 to a DELETE');
is($rm->{out}, '', 'nothing is said to be removed');

# --------------------------------------------------------------------------
# a file in two batches: the second response has the right chunks, but claims
# that the requested bytes begin inside its first chunk

{
	my $pairs = 230;
	my @terms = map { { xorb => $xorb->{hash}, start => $_->[0],
		end => $_->[1], chunks => [ @chunks[$_->[0] .. $_->[1] - 1] ] }
		} ([ 4, 10 ], [ 0, 4 ]) x $pairs;

	$hash = make_shard({ files => [ { terms => \@terms,
		verification => JSON::PP::false } ],
		xorbs => [ $xorb ] })->{files}[0]{hash};

	my ($first, $rest) = map { my $n = $_; lie(terms => [
		(@{ lie()->{terms} }) x $n ]) } 224, $pairs - 224;

	for my $offset (0, 1, 29999, 179999) {
		$t->write_file('lies/plan2', $json->encode({ %$rest,
			offset_into_first_range => $offset }));

		my $code = get($first, $xorb->{bytes}, quiet => 1);

		if ($offset) {
			isnt($code, 0, "a second window with $offset bytes"
				. ' of the first');
			ok(!-e $out || -s $out == length($want) * $pairs,
				'nothing else has the name');

		} else {
			is($code, 0, 'two honest windows');
			ok(slurp($out) eq $want x $pairs, 'their bytes');
		}

		unlink($out);
	}
}

# --------------------------------------------------------------------------

$t->done();

# --------------------------------------------------------------------------

sub term {
	my (%change) = @_;

	return { hash => $xorb->{hash}, unpacked_length => 180000,
		range => { start => 4, end => 10 }, %change };
}

# Sets the server's response, and downloads; returns the exit code.

sub get {
	my ($plan, $bytes, %o) = @_;

	$t->write_file('lies/plan', ref $plan ? $json->encode($plan) : $plan);
	$t->write_file('lies/xorb', $bytes);

	my $r = xet($t, { endpoint => $t->url('/api', 8081) }, 'get',
		'--retries', 0, '-o', $out, $hash);

	if (!$o{quiet} && $r->{code}) {
		is($r->{err} =~ tr/\n//, 1, 'one line') or diag($r->{err});
	}

	$told = $r->{err};

	return $r->{code};
}
