package Test::Xet::Files;

# Copyright (C) the ngx_http_xet_module authors

# Registers files for tests of GET files/{file}, with the terms that a test
# gives, and checks the responses as plain HTTP.

use warnings;
use strict;

use parent qw/ Exporter /;

use Test::More ();

use Test::Xet::Bytes;

our @EXPORT = qw/ borders insert_file part_ok parts_ok register_file
	send_xorb /;

# Makes a xorb of the data and uploads it.  Takes the options of make_xorb(),
# such as the chunk sizes in "sizes", and "headers" of the request.  Returns the
# result of make_xorb(), with the data in "raw".

sub send_xorb {
	my ($t, $data, %o) = @_;

	my $xorb = make_xorb($data, large => 1, %o);

	my $r = $t->http('POST', "/api/v1/xorbs/default/$xorb->{hash}",
		$o{headers} || {}, \$xorb->{bytes}, timeout => 60);
	die "xorb: $r->{status} $r->{body}\n" if $r->{status} != 200;

	return { %$xorb, raw => $data };
}

# Registers a file of the terms [ xorb, first chunk, end ].  Returns { hash,
# size, data, terms => [ { start, chunks => [ offsets ] } ] }.  data => 0 omits
# the data.

sub register_file {
	my ($t, $terms, %o) = @_;

	my (%xorbs, @spec, @terms);
	my ($data, $size) = ('', 0);

	for (@$terms) {
		my ($xorb, $start, $end) = @$_;
		my @chunks = @{ $xorb->{chunks} };

		$end //= @chunks;
		$xorbs{$xorb->{hash}} = $xorb;

		push @spec, { xorb => $xorb->{hash}, start => $start // 0,
			end => $end };

		my $from = $chunks[$start // 0]{raw_start};
		my $to = $chunks[$end - 1]{raw_start}
			+ $chunks[$end - 1]{raw_length};

		push @terms, { start => $size, chunks => [
			map { $size + $_->{raw_start} - $from }
			@chunks[($start // 0) .. $end - 1] ] };

		$data .= substr($xorb->{raw}, $from, $to - $from)
			if $o{data} // 1;
		$size += $to - $from;
	}

	my $shard = make_shard({
		files => [ { verification => JSON::PP::true,
			terms => \@spec } ],
		xorbs => [ map { { %$_, raw => '' } } values %xorbs ],
		footer => 'none'
	});

	my $r = $t->http('POST', '/api/v1/shards', $o{headers} || {},
		\$shard->{bytes}, timeout => 60);
	die "shard: $r->{status} $r->{body}\n" if $r->{status} != 200;

	return { hash => $shard->{files}[0]{hash}, size => $size,
		data => $data, terms => \@terms };
}

# Inserts only the rows of a file.  Each of its terms is one chunk of 1000 bytes
# of one of the xorbs, which do not exist.  No two terms are adjacent.  Returns
# { hash, size }.

sub insert_file {
	my ($t, $id, $terms, $xorbs) = @_;

	my $hash = sprintf('%02x', $id) x 32;
	my $size = $terms * 1000;

	my $term = join(' || ', "sha256(int4send(i % $xorbs))",
		('substring(xet.le4(c) FOR 2)') x 2, map { "xet.le4($_)" }
		'c * 1000', 'c * 1000 + 1000', 1000, 0);

	$t->sql(<<"EOF_SQL", timeout => 180);
WITH f AS (
    INSERT INTO xet.files (hash, size, term_count)
    VALUES ('\\x$hash', $size, $terms)
    RETURNING id
)
INSERT INTO xet.terms (file_id, first_offset, end_offset, packed)
SELECT f.id, min(i) * 1000, (max(i) + 1) * 1000,
       string_agg($term, ''::bytea ORDER BY i)
  FROM f, generate_series(0, $terms - 1) AS i, LATERAL (
           SELECT i / $xorbs * 2 AS c
       ) AS chunk
 GROUP BY f.id, i / 256
EOF_SQL

	return { hash => $hash, size => $size };
}

# Returns the offsets of the terms and chunks in the file.

sub borders {
	my ($file) = @_;

	my %at = map { $_ => 1 } map { @{ $_->{chunks} } } @{ $file->{terms} };

	return grep { $_ } sort { $a <=> $b } keys %at;
}

# Checks a response with one range, first and last inclusive, and all headers of
# a 206.

sub part_ok {
	my ($r, $file, $first, $last, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $len = $last - $first + 1;
	my $size = $file->{size};
	my @wrong;

	push @wrong, "status $r->{status}" if $r->{status} != 206;
	push @wrong, $r->{error} if $r->{error};
	push @wrong, 'length' if ($r->header_value('Content-Length') // -1)
		!= $len;
	push @wrong, 'range' if ($r->header_value('Content-Range') // '')
		ne "bytes $first-$last/$size";
	push @wrong, 'ETag' if ($r->header_value('ETag') // '')
		ne "\"$file->{hash}\"";
	push @wrong, 'bytes'
		if $r->{body} ne substr($file->{data}, $first, $len);

	return Test::More::is("@wrong", '', $name);
}

# Checks a response with several ranges, each [ first, last ], in this order.

sub parts_ok {
	my ($r, $file, $ranges, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $parts = eval { $r->parts() } || [];
	my @wrong = $@ ? ($@) : ();

	push @wrong, "status $r->{status}" if $r->{status} != 206;
	push @wrong, $r->{error} if $r->{error};
	push @wrong, 'Content-Range' if $r->header_value('Content-Range');
	push @wrong, 'length' if ($r->header_value('Content-Length') // -1)
		!= length($r->{body});
	push @wrong, 'ETag' if ($r->header_value('ETag') // '')
		ne "\"$file->{hash}\"";

	my @got = map { "$_->{start}-$_->{end}/$_->{total}" } @$parts;
	my @want = map { "$_->[0]-$_->[1]/$file->{size}" } @$ranges;

	push @wrong, "ranges @got" if "@got" ne "@want";

	push @wrong, grep { defined } map {
		$_->{body} eq substr($file->{data}, $_->{start},
			$_->{end} - $_->{start} + 1)
		? undef : "bytes of $_->{start}" } @$parts;

	return Test::More::is("@wrong", '', $name);
}

1;
