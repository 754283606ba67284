package Test::Xet::Client;

# Copyright (C) the ngx_http_xet_module authors

# Implements a small protocol client that shares no code with the core except
# LZ4 decoding.  It trusts nothing: it checks every property of a reconstruction
# that a real client relies on.  Errors name the rule that is broken:
#
#     1   no chunk before or after the range; the offset is in the first chunk
#     2   no term after the end of the range
#     3   each term lies in one range of its xorb; touching ranges are merged
#     4   no two ranges of a xorb begin with the same chunk
#     5   the bytes of a range are exactly those of its chunks
#     6   equal requests get equal plans
#     7   the lengths of the terms add up to the range
#     8   no two entries have the same URL
#     10  URLs and entries are not too large for clients

use warnings;
use strict;

use parent qw/ Exporter /;

use JSON::PP ();
use List::Util qw/ max min sum0 /;

use Test::Xet::Bytes;
use Test::Xet::HTTP;

our @EXPORT = qw/ download reconstruct /;

my $hash_re = qr/\A[0-9a-f]{64}\z/;
my $ranges_max = 500;
my $url_max = 8192;

# --------------------------------------------------------------------------
# download

# Fetches a file, or bytes [ first, last ] of it, as clients do, and checks
# everything against the rules.  Returns
# { status, data, errors => [ ... ], plan, response }.
#
#     range    [ first, last ], inclusive
#     size     size of the file, if known
#     version  version of the reconstruction, 2 or 1
#     base     path before the version, /api
#     uri      replaces base, version and hash
#     headers  headers of the reconstruction request
#     twice    0: no second request to compare with
#     data     0: fetches only the reconstruction
#     multi    0: no multi-range requests

sub download {
	my ($t, $hash, %o) = @_;

	my $result = reconstruct($t, $hash, %o);
	my $plan = $result->{plan};

	return $result if !$plan || defined $o{data} && !$o{data};

	my $errors = $result->{errors};
	my (%blocks, @data);

	for my $xorb (sort keys %{ $plan->{xorbs} }) {
		for my $entry (@{ $plan->{xorbs}{$xorb} }) {
			my @fetched = fetch($entry, $errors, %o)
				or return $result;
			push @{ $blocks{$xorb} }, @fetched;
		}
	}

	for my $term (@{ $plan->{terms} }) {
		my ($block) = grep { $_->{start} <= $term->{range}{start}
			&& $_->{end} >= $term->{range}{end} }
			@{ $blocks{$term->{hash}} };

		my @chunks = @{ $block->{chunks} }[
			$term->{range}{start} - $block->{start}
			.. $term->{range}{end} - $block->{start} - 1 ];

		$term->{first_raw} = length($chunks[0]);
		$term->{last_raw} = length($chunks[-1]);

		my $bytes = join('', @chunks);

		push @$errors, "unpacked_length $term->{unpacked_length} of a"
			. ' term of ' . length($bytes) . ' bytes'
			if length($bytes) != $term->{unpacked_length};

		push @data, $bytes;
	}

	check_trim($plan, $errors, %o);

	my $data = join('', @data);
	my $offset = $plan->{offset_into_first_range};
	my $length = length($data) - $offset;

	$length = min($length, $o{range}[1] - $o{range}[0] + 1) if $o{range};
	$result->{data} = $length > 0 ? substr($data, $offset, $length) : '';

	return $result;
}

# Fetches only the reconstruction, and makes all checks that need no data.
# Returns it in the form of version 2, whatever version was requested.

sub reconstruct {
	my ($t, $hash, %o) = @_;

	my $version = $o{version} || 2;
	my $uri = $o{uri} // (($o{base} // '/api')
		. "/v$version/reconstructions/$hash");
	my %headers = %{ $o{headers} || {} };

	$headers{Range} = "bytes=$o{range}[0]-$o{range}[1]" if $o{range};

	my $ask = sub {
		return $t->http('GET', $uri, \%headers, undef,
			$o{port} ? (port => $o{port}) : ());
	};

	my $r = $ask->();
	my @errors;
	my $result = { status => $r->{status}, errors => \@errors,
		response => $r };

	push @errors, $r->{error} if $r->{error};
	return $result if $r->{status} != 200 || $r->{error};

	push @errors, 'Content-Type '
		. ($r->header_value('Content-Type') // 'is missing')
		if ($r->header_value('Content-Type') // '')
			!~ m!\Aapplication/json\b!;

	for my $name (qw/ Content-Range Accept-Ranges Content-Encoding /) {
		push @errors, "$name in the answer"
			if defined $r->header_value($name);
	}

	my $plan = parse_plan($r, $version, \@errors) or return $result;

	check_plan($plan, \@errors, %o);
	return $result if @errors;

	$result->{plan} = $plan;

	if ($o{twice} // 1) {
		my $again = parse_plan($ask->(), $version, []);

		push @errors, 'the same request gave another structure'
			if !$again || shape($again) ne shape($plan);
	}

	return $result;
}

# Returns the part of a plan that must be equal for equal requests (rule 6).

sub shape {
	my ($plan) = @_;

	my %xorbs = map {
		$_ => [ map { $_->{ranges} } @{ $plan->{xorbs}{$_} } ]
	} keys %{ $plan->{xorbs} };

	return JSON::PP->new->canonical->encode({ %$plan, xorbs => \%xorbs });
}

sub is_int {
	return defined $_[0] && !ref $_[0] && $_[0] =~ /\A\d+\z/;
}

sub is_range {
	my ($range) = @_;

	return ref $range eq 'HASH' && is_int($range->{start})
		&& is_int($range->{end});
}

sub parse_plan {
	my ($r, $version, $errors) = @_;

	my $plan = $r->json();
	my $before = @$errors;

	if (ref $plan ne 'HASH' || ref $plan->{terms} ne 'ARRAY') {
		push @$errors, 'no reconstruction in JSON';
		return undef;
	}

	push @$errors, 'a number that is no integer'
		if $r->{body} =~ /[:\[,]\s*-?\d+(?:\.\d|[eE])/;

	push @$errors, 'no offset_into_first_range'
		unless is_int($plan->{offset_into_first_range});

	for my $term (@{ $plan->{terms} }) {
		push @$errors, 'malformed term' unless ref $term eq 'HASH'
			&& ($term->{hash} // '') =~ $hash_re
			&& is_int($term->{unpacked_length})
			&& is_range($term->{range});
	}

	my $xorbs = $plan->{$version == 1 ? 'fetch_info' : 'xorbs'};

	if (ref $xorbs ne 'HASH') {
		push @$errors, 'no map of xorbs';
		return undef;
	}

	if ($version == 1) {
		$xorbs = { map { $_ => [ map { {
			url => $_->{url}, ranges => [ {
				chunks => $_->{range},
				bytes => $_->{url_range}
			} ]
		} } @{ $xorbs->{$_} } ] } keys %$xorbs };
	}

	for my $hash (keys %$xorbs) {
		push @$errors, "malformed key $hash" unless $hash =~ $hash_re;

		for my $entry (@{ $xorbs->{$hash} }) {
			push @$errors, 'malformed entry'
				unless defined $entry->{url}
				&& ref $entry->{ranges} eq 'ARRAY'
				&& @{ $entry->{ranges} }
				&& !grep { !is_range($_->{chunks})
					|| !is_range($_->{bytes}) }
					@{ $entry->{ranges} };
		}
	}

	return undef if @$errors > $before;

	return {
		terms => $plan->{terms}, xorbs => $xorbs,
		offset_into_first_range => $plan->{offset_into_first_range}
	};
}

# Checks rules 1, 2, 3, 4, 7, 8 and 10, as far as that needs no data.

sub check_plan {
	my ($plan, $errors, %o) = @_;

	my $terms = $plan->{terms};
	my $offset = $plan->{offset_into_first_range};
	my (%urls, %used);

	for my $hash (sort keys %{ $plan->{xorbs} }) {
		my @ranges;

		for my $entry (@{ $plan->{xorbs}{$hash} }) {
			push @$errors, "rule 8: the URL $entry->{url} twice"
				if $urls{$entry->{url}}++;
			push @$errors, 'rule 10: an entry too large'
				if length($entry->{url}) > $url_max
				|| @{ $entry->{ranges} } > $ranges_max;
			push @$errors, "no absolute URL: $entry->{url}"
				unless $entry->{url} =~ m!\Ahttps?://[^/]+/!;

			push @ranges, @{ $entry->{ranges} };

			push @$errors, 'ranges of an entry out of order'
				if grep { $entry->{ranges}[$_]{bytes}{start}
				<= $entry->{ranges}[$_ - 1]{bytes}{end} }
				1 .. $#{ $entry->{ranges} };
		}

		check_ranges($hash, \@ranges, $errors);

		for my $term (grep { $_->{hash} eq $hash } @$terms) {
			$used{$hash} = 1;

			my $in = grep {
				$_->{chunks}{start} <= $term->{range}{start}
				&& $_->{chunks}{end} >= $term->{range}{end}
			} @ranges;

			push @$errors, "rule 3: a term of $hash in $in ranges"
				if $in != 1;
		}

		push @$errors, "a xorb that no term uses: $hash"
			unless $used{$hash};
	}

	for my $term (@$terms) {
		push @$errors, "rule 3: no entry for $term->{hash}"
			unless $plan->{xorbs}{$term->{hash}};
		push @$errors, 'an empty term'
			unless $term->{range}{start} < $term->{range}{end}
			&& $term->{unpacked_length} > 0;
	}

	if (!@$terms) {
		push @$errors, 'rule 1: an offset without terms' if $offset;
		push @$errors, 'no terms' if $o{size};
		return;
	}

	push @$errors, 'rule 1: the offset is not in the first term'
		if $offset >= $terms->[0]{unpacked_length};

	my $sum = sum0(map { $_->{unpacked_length} } @$terms) - $offset;
	my ($first, $last) = @{ $o{range} || [ 0, undef ] };

	$last = min(grep { defined } $last,
		$o{size} ? $o{size} - 1 : undef, 1 << 62);

	my $want = $last - $first + 1;

	push @$errors, 'rule 2: a term after the end of the range'
		if $sum - $terms->[-1]{unpacked_length} >= $want;
	push @$errors, "rule 7: $sum bytes where $want were asked"
		if $o{size} && ($sum < $want
			|| $sum > $want && $last == $o{size} - 1);
	push @$errors, 'rule 1: an offset into a whole file'
		if !$first && $offset;
}

sub check_ranges {
	my ($hash, $ranges, $errors) = @_;

	my @sorted = sort { $a->{chunks}{start} <=> $b->{chunks}{start} }
		@$ranges;

	for my $i (0 .. $#sorted) {
		my ($chunks, $bytes) = @{ $sorted[$i] }{qw/ chunks bytes /};

		push @$errors, "an empty range of $hash"
			if $chunks->{start} >= $chunks->{end}
			|| $bytes->{start} > $bytes->{end};

		next if !$i;
		my $before = $sorted[$i - 1];

		push @$errors, "rule 4: two ranges of $hash start at chunk"
			. " $chunks->{start}"
			if $chunks->{start} == $before->{chunks}{start};
		push @$errors, "rule 3: ranges of $hash are not merged"
			if $chunks->{start} <= $before->{chunks}{end};
		push @$errors, "byte ranges of $hash overlap"
			if $bytes->{start} <= $before->{bytes}{end};
	}
}

# Checks rule 1 once the chunks are known: no range can be trimmed further.

sub check_trim {
	my ($plan, $errors, %o) = @_;

	my @terms = @{ $plan->{terms} } or return;

	push @$errors, 'rule 1: whole chunks before the range'
		if $plan->{offset_into_first_range} >= $terms[0]{first_raw};

	return unless $o{range};

	my $sum = sum0(map { $_->{unpacked_length} } @terms)
		- $plan->{offset_into_first_range};

	push @$errors, 'rule 1: whole chunks after the range'
		if $sum - $terms[-1]{last_raw}
			>= $o{range}[1] - $o{range}[0] + 1;
}

# Fetches all ranges of an entry: one by one and, if there are several, also all
# in one request.  Returns the blocks, or nothing if a request failed.

sub fetch {
	my ($entry, $errors, %o) = @_;

	my @blocks;

	for my $range (@{ $entry->{ranges} }) {
		my $bytes = fetch_range($entry->{url}, $range->{bytes},
			$errors);
		return () unless defined $bytes;

		my $block = split_block($bytes, $range->{chunks}, $errors);
		return () unless $block;

		push @blocks, { %$block, bytes => $bytes };
	}

	fetch_multi($entry, \@blocks, $errors)
		if @blocks > 1 && ($o{multi} // 1);

	return @blocks;
}

sub get_url {
	my ($url, $range) = @_;

	$url =~ m!\Ahttp://([^/:]+)(?::(\d+))?(/.*)\z!
		or die "can't fetch $url\n";

	return Test::Xet::HTTP->request($2 || 80, 'GET', $3,
		{ Range => $range }, undef, timeout => 30, addr => $1,
		host => $2 ? "$1:$2" : $1);
}

sub fetch_range {
	my ($url, $bytes, $errors) = @_;

	my ($start, $end) = @$bytes{qw/ start end /};
	my $r = get_url($url, "bytes=$start-$end");
	my $range = $r->header_value('Content-Range') // '';

	if ($r->{status} != 206 || $r->{error}) {
		push @$errors, "$url: status $r->{status} "
			. ($r->{error} // '');
		return undef;
	}

	push @$errors, "$url: Content-Range $range"
		unless $range =~ m!\Abytes \Q$start-$end\E/\d+\z!;
	push @$errors, "$url: Content-Encoding"
		if defined $r->header_value('Content-Encoding');
	push @$errors, "$url: no Content-Length"
		unless defined $r->header_value('Content-Length');

	if (length($r->{body}) != $end - $start + 1) {
		push @$errors, "$url: " . length($r->{body}) . ' bytes';
		return undef;
	}

	return $r->{body};
}

sub fetch_multi {
	my ($entry, $blocks, $errors) = @_;

	my @ranges = map { $_->{bytes} } @{ $entry->{ranges} };
	my $r = get_url($entry->{url}, 'bytes='
		. join(',', map { "$_->{start}-$_->{end}" } @ranges));

	if ($r->{status} != 206) {
		push @$errors, "$entry->{url}: status $r->{status} to several"
			. ' ranges';
		return;
	}

	my $parts = eval { $r->parts() };

	if (!$parts || @$parts != @ranges) {
		push @$errors, "$entry->{url}: " . ($@ || 'number of parts');
		return;
	}

	for my $i (0 .. $#ranges) {
		push @$errors, "$entry->{url}: part $i differs"
			if $parts->[$i]{start} != $ranges[$i]{start}
			|| $parts->[$i]{body} ne $blocks->[$i]{bytes};
	}
}

# Returns the raw bytes of the chunk records.  Uncompressed records are parsed
# in Perl, because starting a program, as decode_xorb() does, is slow.

sub raw_bytes {
	my ($bytes) = @_;

	my $raw = '';

	for (my $pos = 0; $pos < length($bytes); ) {
		my ($version, $l0, $l1, $scheme, $r0, $r1) =
			unpack('C v C C v C', substr($bytes, $pos, 8)
				. "\0" x 8);
		my $len = $r0 + ($r1 << 16);

		return decode_xorb($bytes) if $version || $scheme || !$len
			|| $len != $l0 + ($l1 << 16)
			|| $len > length($bytes) - $pos - 8;

		$raw .= substr($bytes, $pos + 8, $len);
		$pos += 8 + $len;
	}

	return $raw;
}

# Checks the chunks of a run of records (rule 5).

sub split_block {
	my ($bytes, $range, $errors) = @_;

	my $raw = eval { raw_bytes($bytes) };

	if (!defined $raw) {
		push @$errors, "rule 5: $@";
		return undef;
	}

	my (@chunks, $from);

	for (my $pos = $from = 0; $pos < length($bytes); ) {
		my ($version, $l0, $l1, $scheme, $r0, $r1) =
			unpack('C v C C v C', substr($bytes, $pos, 8));
		my $len = $r0 + ($r1 << 16);

		push @chunks, substr($raw, $from, $len);

		$from += $len;
		$pos += 8 + $l0 + ($l1 << 16);
	}

	if (@chunks != $range->{end} - $range->{start}) {
		push @$errors, 'rule 5: ' . @chunks . ' chunks in bytes of '
			. "[$range->{start}, $range->{end})";
		return undef;
	}

	return { start => $range->{start}, end => $range->{end},
		chunks => \@chunks };
}

1;
