#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet with a server that tries to exhaust memory, time or disk: endless
# reconstructions, URLs and errors, lists that are slow to search, files larger
# than announced.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Process qw/ slurp spew /;

use File::Temp qw/ tempdir /;
use JSON::PP ();

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 400,
	http => <<'EOC');
server {
        listen 127.0.0.1:%%PORT_8081%%;
        default_type application/json;
        client_max_body_size 80m;
        large_client_header_buffers 4 32k;

        location ~ ^/api/v[12]/reconstructions/ {
            root %%DIR%%/lies;
            max_ranges 0;
            try_files /plan =404;
        }

        location ~ ^/slow/v[12]/reconstructions/ {
            root %%DIR%%/lies;
            max_ranges 0;
            limit_rate 8k;
            try_files /plan =404;
        }

        location /files/ {
            alias %%DIR%%/lies/;
        }

        location /forbidden {
            error_page 403 /big;
            deny all;
        }

        location /big {
            root %%DIR%%/lies;
        }

        location ~ ^/said/v[12]/reconstructions/ {
            root %%DIR%%/lies;
            max_ranges 0;
            try_files /plan =404;
        }

        location ~ ^/said/v1/files/ {
            return 200 'short';
        }

        location /same/ {
            return 200 '{"objects":[],"next":5}';
        }

        location /back/ {
            if ($arg_after) {
                return 200 '{"objects":[],"next":4}';
            }

            return 200 '{"objects":[],"next":5}';
        }

        location /last/ {
            if ($arg_after = 6) {
                return 200 '{"objects":[]}';
            }

            if ($arg_after) {
                return 200 '{"objects":[],"next":6}';
            }

            return 200 '{"objects":[],"next":5}';
        }

        location ~ ^/put/v1/chunks/ {
            root %%DIR%%/lies;
            try_files /chunks =404;
        }

        location /put/ {
            return 200 '{"was_inserted":true,"result":1}';
        }

        location /small/ {
            return 500 '{"error":{"code":"of_the_server","message":"no"}}';
        }

        location /long/ {
            root %%DIR%%/lies;
            error_page 400 =400 /lists;
            return 400;
        }

        location /lists {
            root %%DIR%%/lies;
        }

        location ~ ^/api/v1/files/ {
            return 404;
        }
    }
EOC

$t->run();

my $dir = tempdir(CLEANUP => 1);
my $out = "$dir/out";
my $json = JSON::PP->new->canonical();

my $xorb = make_xorb(mix(5, 300000), sizes => [ 30000 ]);
my @chunks = @{ $xorb->{chunks} };
my $data = decode_xorb($xorb->{bytes});
my $hash = make_shard({ files => [ { terms => [ { xorb => $xorb->{hash},
	start => 0, end => 10, chunks => \@chunks } ] } ],
	xorbs => [ $xorb ] })->{files}[0]{hash};
my $last = length($xorb->{bytes}) - 1;
my $url = $t->url('/files/xorb', 8081);

$t->write_file('lies/xorb', $xorb->{bytes});

# --------------------------------------------------------------------------
# memory: xet needs only slightly more than with an honest server

my $room = 40000;
my $r;

$t->write_file('lies/plan', $json->encode(answer()));

for (1 .. 40) {
	$r = limited({ endpoint => $t->url('/api', 8081) });
	last if defined $r->{code} && $r->{code} == 0;
	$room += 20000;
}

# a sanitizer needs more memory

$room = $room > 800000 ? 'unlimited' : $room + 60000;

is(get(answer()), 0, 'an honest server');
ok((slurp($out, 1) // '') eq $data, 'what it has');

my $large = qr/too large for its range|the response is too long/;
my $spare = { chunks => { start => 2, end => 3 },
	bytes => { start => 0, end => 8 } };

is(get(answer(url => "$url?" . 'u' x 15000, spare => [ ($spare) x 6000 ])), 0,
	'ranges without a term, and a long URL');
ok((slurp($out, 1) // '') eq $data, 'are not heeded');

refused('a URL without end', qr/has a URL longer than 16 KiB/,
	answer(url => "$url?" . 'u' x 17000));
refused('ranges without end', $large, answer(spare => [ ($spare) x 60000 ]));
refused('terms without end', $large, { %{ answer() },
	terms => [ (term(0, 1, 1)) x 60000 ] });
refused('lists without end', $large, '{"offset_into_first_range":0,"terms":['
	. '[],' x 20000000 . '[]]}');
refused('objects without end', $large, '{"offset_into_first_range":0,"terms":['
	. '{},' x 600000 . '{}]}');
refused('text without end', $large, '{"a":"' . 'x' x 60000000 . '"}');
refused('chunks without end', $large, { %{ answer() },
	terms => [ (term(0, 8192, 8192)) x 8000 ] });

# a long error response

$t->write_file('lies/lists', '[' . '{},' x 20000000 . '{}]');

$r = limited({ endpoint => $t->url('/long', 8081) });

is($r->{code}, 4, 'an error without end');
like($r->{err}, qr/\Axet: server: \S+: 400\n\z/, 'is not read');

like(limited({ endpoint => $t->url('/small', 8081) })->{err},
	qr/: 500 of_the_server: no\n\z/, 'a short one is');

# all URLs have expired, and each URL gets a long error response before the
# response with new URLs arrives

$t->write_file('lies/big', 'x' x 30000000);

my %forbidden = map { sprintf('%064x', $_) => [ { url =>
	$t->url('/forbidden', 8081), ranges => [ { chunks => { start => 0,
	end => 1 }, bytes => { start => 0, end => 30007 } } ] } ] } 1 .. 40;

$t->write_file('lies/plan', $json->encode({ offset_into_first_range => 0,
	terms => [ map { { hash => $_, unpacked_length => 30000,
		range => { start => 0, end => 1 } } } sort keys %forbidden ],
	xorbs => \%forbidden }));

$r = limited({ endpoint => $t->url('/slow', 8081), timeout => 300 });

is($r->{code}, 4, 'errors of expired URLs');
like($r->{err}, qr!/forbidden: 403\n\z!, 'are not kept') or diag($r->{err});

# --------------------------------------------------------------------------
# a file of very many chunks is downloaded within the limits, in smaller parts

{
	my @xorbs = map { send_xorb($t, mix($_, 600000), scheme => 'none',
		sizes => [ 100 ]) } 1 .. 2;

	srand(5);

	my $many = register_file($t, [ map {
		my $start = 3 * int(rand(1900));
		[ $xorbs[int(rand(2))], $start, $start + 2 ]
	} 1 .. 30000 ]);

	is(xet($t, { timeout => 300 }, 'get', '--json', '-o', $out,
		$many->{hash})->{code}, 0, 'a file of many chunks');
	ok((slurp($out, 1) // '') eq $many->{data}, 'its bytes');

	is(xet($t, { timeout => 300 }, 'get', '-o', '-', $many->{hash})
		->{out}, $many->{data}, 'as a stream');

	my $info = xet($t, { timeout => 300 }, 'info', '--json',
		$many->{hash});

	is($info->{json}[0]{size}, $many->{size}, 'info of it');
	cmp_ok($info->{json}[0]{terms}, '>=', 30000, 'its terms');
}

# --------------------------------------------------------------------------
# time: responses with lists that are slow to search; at this length a quadratic
# search would take a quarter of an hour

my $short = 100;

is(get(answer(spare => [ map { { chunks => $_, bytes => { start => 0,
	end => 8 } } } { start => 0, end => 2 }, { start => 3, end => 4 },
	{ start => 4, end => 5 }, { start => 4, end => 9 } ])), 0,
	'ranges that overlap');
ok((slurp($out, 1) // '') eq $data, 'do no harm');

my $range = '{"chunks":{"start":1,"end":2},"bytes":{"start":0,"end":8}}';
my $term = $json->encode(term(1, 9, 1));

$room = 'unlimited';
refused('ranges that overlap, without end', $large,
	'{"offset_into_first_range":0,"terms":['
	. join(',', ($term) x 220000) . '],"xorbs":{"' . $xorb->{hash}
	. '":[{"url":"http://127.0.0.1/","ranges":[' . $range =~ s/1/0/r
	=~ s/2/9/r . ",$range" x 500000 . ']}]}}');

spew("$dir/file", $data);

for my $case ([ 'of no chunks', 1300000 ], [ 'of one chunk each', 300000 ],
	[ 'whose hashes begin alike', 300000, 1 ])
{
	my ($name, $n, $alike) = @$case;

	$t->write_file('lies/chunks', known($n, $name =~ /one|alike/,
		$alike));

	$r = xet($t, { endpoint => $t->url('/put', 8081), timeout => $short },
		'put', '--retries', 0, "$dir/file");

	is($r->{code}, 0, "known xorbs $name") or diag($r->{err});
}

# pages that refer to each other

for my $case ([ same => 4 ], [ back => 4 ], [ last => 0 ]) {
	my ($name, $code) = @$case;

	$r = xet($t, { endpoint => $t->url("/$name", 8081), timeout => $short },
		'zt', 'ls', $hash);

	is($r->{code}, $code, "pages of zt ls: $name");
	is($r->{err} =~ tr/\n//, $code ? 1 : 0, 'reported once');
}

# --------------------------------------------------------------------------
# the disk: an endless file that repeats one chunk

my $one = make_xorb(mix(9, 131072), sizes => [ 131072 ]);

$t->write_file('lies/one', $one->{bytes});
$t->write_file('lies/plan', $json->encode({ offset_into_first_range => 0,
	terms => [ map { { hash => $one->{hash}, unpacked_length => 131072,
		range => { start => 0, end => 1 } } } 1 .. 512 ],
	xorbs => { $one->{hash} => [ { url => $t->url('/files/one', 8081),
		ranges => [ { chunks => { start => 0, end => 1 }, bytes => {
		start => 0, end => length($one->{bytes}) - 1 } } ] } ] } }));

spew("$dir/manifest", join('', map { $json->encode({ file => "many/$_",
	hash => $hash, size => 100000000 + $_ }) . "\n" } 1, 2));

my %disk = (timeout => 60, ulimit => '-f 600000');

$r = xet($t, { endpoint => $t->url('/api', 8081), %disk }, 'get', '--recursive',
	'-o', $out, "$dir/manifest");

is($r->{code}, 1, 'files larger than the manifest has');
is($r->{err}, join('', map { "xet: many/$_: is larger than the expected"
	. " 10000000$_ bytes\n" } 1, 2), 'reported');
is_deeply([ glob("$out/many/*") ], [], 'nothing is left');
rmdir($_) for "$out/many", $out;

$r = xet($t, { endpoint => $t->url('/said', 8081), %disk }, 'get', '-o', $out,
	$hash);

is($r->{code}, 1, 'a file larger than the server has said');
is($r->{err}, "xet: $out: is larger than the expected 5 bytes\n",
	'reported');
is_deeply([ glob("$out*") ], [], 'nothing is left');

# --------------------------------------------------------------------------

$t->done();

# --------------------------------------------------------------------------

sub term {
	my ($start, $end, $length) = @_;

	return { hash => $xorb->{hash}, unpacked_length => $length,
		range => { start => $start, end => $end } };
}

# Returns a dedup response: n xorbs, each with no chunk or with one chunk.

sub known {
	my ($n, $chunk, $alike) = @_;

	my $answer = 'HFRepoMetaData' . pack('H*', '00556967456a7b81578'
		. '3a5bdd95ccdd14aa9') . pack('Q<Q<', 2, 200) . "\xff" x 32
		. "\0" x 16;

	for my $i (1 .. $n) {
		my @hash = $alike ? (7, $i) : ($i << 12, 7);

		$answer .= pack('Q<Q<x16VVVV', @hash, 0, $chunk ? 1 : 0, 100,
			100);
		$answer .= pack('Q<Q<x16VVQ<', @hash, 0, 100, 0) if $chunk;
	}

	return $answer . "\xff" x 32 . "\0" x 16 . pack('Q<x192', 1);
}

sub answer {
	my (%o) = @_;

	return { offset_into_first_range => 0, terms => [
		term(0, 10, 300000) ], xorbs => { $xorb->{hash} => [ {
		url => $o{url} // $url, ranges => [ { chunks => {
		start => 0, end => 10 }, bytes => { start => 0,
		end => $last } }, @{ $o{spare} || [] } ] } ] } };
}

# Downloads with a memory limit.

sub limited {
	my ($o, @args) = @_;

	unlink(glob("$out*"));

	return xet($t, { ulimit => "-v $room", timeout => 200, %$o }, 'get',
		'--retries', 0, '-o', $out, @args, $hash);
}

sub get {
	my ($plan) = @_;

	$t->write_file('lies/plan', ref $plan ? $json->encode($plan) : $plan);

	$r = limited({ endpoint => $t->url('/api', 8081) });

	return $r->{code};
}

sub refused {
	my ($name, $text, $plan) = @_;

	is(get($plan), 4, "$name: refused");
	like($r->{err}, qr/\Axet: server: .*$text\n\z/, "$name: reported");
	ok(!-e $out, "$name: nothing under the name");
}
