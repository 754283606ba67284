#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The server passes the body of a shard to a thread in parts.  It stores the
# shard wherever a part ends, even inside the record that ends the file section.
# A part ends at the end of a buffer; the first part ends with the buffer of the
# headers.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;

use JSON::PP ();

my $t = Test::Xet->new(workers => 1, server => <<'EOF');
location /same/ {
            xet_api;
            xet_auth                 off;
            xet_api_base             /same;
            xet_body_buffer          16k;
            client_body_buffer_size  16k;
        }

        location /other/ {
            xet_api;
            xet_auth                 off;
            xet_api_base             /other;
            xet_body_buffer          16k;
            client_body_buffer_size  8k;
        }
EOF

$t->run();

my $x = send_xorb($t, random_bytes(1, 5000), scheme => 'none',
	sizes => [ 1000 ]);

# Makes a shard whose file section has n records before the final one.

sub shard {
	my ($n, $end) = @_;

	my @terms = map { {
		xorb => $x->{hash}, start => $_->[0], end => $_->[1],
		chunks => [ @{ $x->{chunks} }[$_->[0] .. $_->[1] - 1 ] ]
	} } ([ 0, 1 ]) x ($n - 3), [ 1, $end ];

	return make_shard({ files => [ { terms => \@terms,
		verification => JSON::PP::false } ] });
}

sub sent {
	my ($uri, $bytes, $part, %o) = @_;

	my $c;

	if ($o{chunked}) {
		$c = $t->http_start('POST', $uri,
			{ 'Transfer-Encoding' => 'chunked' });

		while (length($bytes)) {
			my $n = substr($bytes, 0, $o{chunked}, '');
			$c->send(sprintf("%x\r\n", length($n)) . "$n\r\n");
		}

		$c->send("0\r\n\r\n");

	} else {
		$c = $t->http_start('POST', $uri,
			{ 'Content-Length' => length($bytes) },
			substr($bytes, 0, $part));
		$c->send(substr($bytes, $part));
	}

	my $answer = $c->response('POST', timeout => 60)->summary();
	$c->close();

	return $answer;
}

for my $n (341, 342, 682, 683, 1024) {
	my $s = shard($n, 2 + $n % 3);
	my $at = index($s->{bytes}, "\xff" x 32);

	is($at, 48 * $n, "$n records");

	for my $base (qw/ same other /) {
		for my $part (0, grep { $_ > 0 && $_ < 700 }
			map { $at % 16384 + $_ } -1, 0, 1, 16, 32, 47, 48, 49)
		{
			like(sent("/$base/v1/shards", $s->{bytes}, $part),
				qr/^200 \{"result":[01]\}$/,
				"/$base, $n records, $part bytes first");
		}

		for my $chunk (1, 47, 1000, 16384, 100_000) {
			next if $chunk < 100 && $n > 341;

			is(sent("/$base/v1/shards", $s->{bytes}, 0,
				chunked => $chunk), '200 {"result":0}',
				"/$base, $n records, in chunks of $chunk");
		}
	}

	my $r = $t->get("/api/v1/files/$s->{files}[0]{hash}");

	ok($r->{body} eq substr($x->{raw}, 0, 1000) x ($n - 3)
		. substr($x->{raw}, 1000, 1000 * (1 + $n % 3)),
		"$n records: the file") or diag($r->summary());
}

# with the default buffer sizes, and with those of the shipped configuration

my $s = shard(5461, 2);

is(index($s->{bytes}, "\xff" x 32), 262128, '5,461 records');
is(sent('/api/v1/shards', $s->{bytes}, 0), '200 {"result":1}',
	'the last record crosses the first buffer');

$t->done();
