package Test::Xet::Upload;

# Copyright (C) the ngx_http_xet_module authors

# Sends files, xorbs and shards to a server the way clients do;
# build/tools/xet_make builds them.  Methods of Test::Xet.

use warnings;
use strict;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use Test::More ();

use Test::Xet::Bytes;

# Sends a file as its xorbs and one shard; dies unless every response is 200.
# Returns { hash, size, sha256, terms, xorbs (with "bytes" and "inserted"),
# shard, result }.
#
#     scheme, sizes, footer  options of make_xorb()
#     xorb_chunks            maximum number of chunks in a xorb
#     shard_footer           none, js, full
#     sha256                 0: without a metadata row
#     base                   path of the API, /api/v1
#     headers                { ... }, headers of each request
#     port                   port of another server
#     send                   0: builds everything, sends nothing

sub upload {
	my ($t, $data, %o) = @_;

	my $base = $o{base} // '/api/v1';
	my @xorbs = length($data) ? xorbs($data, %o) : ();

	my $file = {
		verification => JSON::PP::true,
		terms => [ map { {
			xorb => $_->{hash}, start => 0,
			end => scalar @{ $_->{chunks} }
		} } @xorbs ]
	};

	my $sha256 = sha256_hex($data);
	$file->{sha256} = $sha256 if $o{sha256} // 1;

	my %seen;
	my @distinct = grep { !$seen{$_->{hash}}++ } @xorbs;

	my $shard = make_shard({
		files => [ $file ], footer => $o{shard_footer} || 'none',
		xorbs => \@distinct
	});

	my $result = {
		%{ $shard->{files}[0] }, sha256 => $sha256, xorbs => \@distinct,
		terms => $file->{terms}, shard => $shard->{bytes}
	};

	return $result if defined $o{send} && !$o{send};

	for my $xorb (@distinct) {
		my $r = send_ok($t, "$base/xorbs/default/$xorb->{hash}",
			$xorb->{bytes}, %o);
		$xorb->{inserted} = $r->json()->{was_inserted};
	}

	$result->{result} = send_ok($t, "$base/shards", $shard->{bytes}, %o)
		->json()->{result};

	return $result;
}

sub send_ok {
	my ($t, $uri, $body, %o) = @_;

	my $r = $t->http('POST', $uri, $o{headers} || {}, \$body, timeout => 60,
		$o{port} ? (port => $o{port}) : ());

	die "POST $uri: $r->{status} $r->{body}" . ($r->{error} // '') . "\n"
		if $r->{status} != 200 || $r->{error};
	die "POST $uri: no JSON: $r->{body}\n" unless $r->json();

	return $r;
}

# Uploads a xorb of the data, as a result of the test.  Returns the result of
# make_xorb(), and the data.

sub put_xorb {
	my ($t, $data, %o) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 2;

	my $xorb = make_xorb($data, %o);
	my $r = $t->post("/api/v1/xorbs/default/$xorb->{hash}",
		\$xorb->{bytes});

	Test::More::is($r->{status}, 200, 'xorb stored');
	$xorb->{data} = $data;

	return $xorb;
}

# Registers a file of terms [ xorb, first chunk, end ].  Returns ({ hash, size
# }, response).

sub put_file {
	my ($t, @terms) = @_;

	my %xorbs = map { $_->[0]{hash} => $_->[0] } @terms;

	my $shard = make_shard({
		files => [ { terms => [ map { {
			xorb => $_->[0]{hash}, start => $_->[1],
			end => $_->[2]
		} } @terms ] } ],
		xorbs => [ values %xorbs ]
	});

	return ($shard->{files}[0],
		$t->post('/api/v1/shards', \$shard->{bytes}));
}

# Cuts data into xorbs.  A xorb is full at 64 MiB of data, as in hf_xet; if the
# data is incompressible, the stored size of the xorb exceeds 64 MiB.

sub xorbs {
	my ($data, %o) = @_;

	my @chunks = @{ hash_file($data, sizes => $o{sizes})->{chunks} };
	my $most = $o{xorb_chunks} || 8192;
	my @xorbs;

	for (my $pos = 0; @chunks; ) {
		my ($n, $size) = (0, 0);

		while ($n < @chunks && $n < $most
			&& $size + $chunks[$n]{raw_length} <= 64 << 20)
		{
			$size += $chunks[$n++]{raw_length};
		}

		my @taken = splice(@chunks, 0, $n);

		push @xorbs, make_xorb(substr($data, $pos, $size),
			scheme => $o{scheme}, footer => $o{footer}, large => 1,
			sizes => [ map { $_->{raw_length} } @taken ]);

		$pos += $size;
	}

	return @xorbs;
}

1;
